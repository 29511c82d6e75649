"""`oxidecopy bench matmul`: its cases give what numpy gives, and a wrong result is noticed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

import oxidecopy as ox
from oxidecopy.bench.matmul import CASES, Case, arranged, check, multiplying
from oxidecopy.errors import ExecutionError

SMALL = (
    Case(m=72, n=136, k=96),
    Case(m=72, n=72, k=64, batch=2, work="products"),
    Case(m=72, n=72, k=144, dtype=ox.e4m3, work="product of fp8"),
    Case(m=72, n=136, k=96, work="product, bias, gelu"),
)


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.work)
def test_cases_are_right_and_wrong_ones_are_noticed(case: Case) -> None:
    bench = cast("Any", SimpleNamespace(device=ox.Device.open("sim")))
    arrays = arranged(bench, case)
    multiplying(case, arrays, None)()
    check(case, arrays)
    with pytest.raises(ExecutionError, match="is wrong"):
        check(case, replace(arrays, rows=arrays.rows * 1.5 + 3))


def test_all_kinds_are_measured() -> None:
    assert {case.work for case in SMALL} == {case.work for case in CASES}
    assert CASES[0].words == "bf16 8192x8192x8192"
    assert CASES[0].flops == 2 * 8192**3
