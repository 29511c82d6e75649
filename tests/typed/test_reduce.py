"""The operations are those of the op table."""

from __future__ import annotations

import oxidecopy as ox
from oxidecopy.isa.ops import REDUCE


def test_an_object_for_every_operation() -> None:
    assert [getattr(ox.reduce, name).name for name in REDUCE.words] == list(REDUCE.words)
    assert {name for name, value in vars(ox.reduce).items() if isinstance(value, ox.ReduceOp)} == set(REDUCE.words)


def test_an_operation_says_its_name() -> None:
    assert repr(ox.reduce.bit_xor) == "ox.reduce.bit_xor"
