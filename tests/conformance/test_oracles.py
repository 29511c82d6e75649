"""The simulator against what a GPU made of the recorded set; and the generator, the file and the comparison themselves."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from oxidecopy.conformance.oracle_cases import cases, copies, result_bytes
from oxidecopy.conformance.oracles import Oracle, Recorded, as_bytes, compare, differences, read
from oxidecopy.engines.sim import tma
from oxidecopy.host.device import Device
from oxidecopy.isa.dtypes import DTYPES, REDUCE_OPS

PATH = Path(__file__).parents[1] / "cases" / "h200" / "oracles.json.gz"
RECORDED = read(PATH)


def test_the_simulator_does_what_the_gpu_did() -> None:
    assert list(differences(RECORDED.oracles, Device.open("sim-fast"))) == []


def test_the_file_says_where_it_comes_from_and_is_small() -> None:
    about = RECORDED.about
    assert "H200" in about["device"]
    assert about["programs"] == len(RECORDED.oracles) >= 900
    assert about["copies"] == copies([o.case for o in RECORDED.oracles]) >= 1_800
    assert PATH.stat().st_size < 500_000
    assert {"format", "command", "date", "seed", "oxidecopy"} < about.keys()


def test_the_set_reaches_every_type_rank_swizzle_fill_and_operation() -> None:
    found = [o.case for o in RECORDED.oracles]
    types = {name for name, row in DTYPES.items() if row.min_sm == 90}
    assert {(c.dtype, len(c.shape)) for c in found if (c.op, c.kind) == ("load", "tiled")} == {(t, r) for t in types for r in range(1, 6)}
    assert {(c.dtype, len(c.shape)) for c in found if (c.op, c.kind) == ("store", "tiled")} == {(t, r) for t in types for r in range(1, 6)}
    assert {(c.dtype, len(c.shape)) for c in found if (c.op, c.kind) == ("load", "im2col")} == {(t, r) for t in types for r in range(3, 6)}
    assert {(c.op, c.dtype) for c in found if c.op in REDUCE_OPS} >= {(op, t) for t in types for op in DTYPES[t].reduce}
    assert {(c.kind, c.swizzle) for c in found} >= {(k, s) for k in ("tiled", "im2col") for s in ("none", "32B", "64B", "128B")}
    assert {c.fill for c in found} == {"zero", "nan"}
    assert any(max(c.steps) > 1 for c in found)
    assert any(0 in c.strides_bytes for c in found)
    assert any(min(c.at) < 0 for c in found)
    assert any(c.kind == "interleaved" for c in found)


def test_the_same_seed_makes_the_same_set() -> None:
    assert cases(3) == cases(3) != cases(4)


# ---- the file
def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    some = Recorded(about=RECORDED.about, oracles=RECORDED.oracles[::100])
    path = tmp_path / "some.gz"
    path.write_bytes(as_bytes(some))
    assert read(path) == some
    assert as_bytes(some) == as_bytes(read(path))
    assert json.loads(gzip.decompress(path.read_bytes()))["about"] == RECORDED.about


def test_results_have_the_bytes_that_their_cases_say() -> None:
    assert all(len(o.result) == result_bytes(o.case) for o in RECORDED.oracles)


# ---- the comparison
@pytest.mark.parametrize(("op", "words"), [("load", "of block 1: "), ("store", "at byte ")])
def test_a_difference_names_case_element_and_values(op: str, words: str) -> None:
    oracle = next(o for o in RECORDED.oracles if o.case.op == op and o.case.dtype == "u32")
    wrong = bytearray(oracle.result)
    wrong[-4] ^= 1
    said = compare(Oracle(case=oracle.case, result=bytes(wrong)), oracle.result)
    assert said.startswith("1 elements differ, first ")
    assert words in said
    assert ", recorded " in said


def test_what_the_simulator_does_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule changed: the fill."""
    monkeypatch.setattr(tma, "OOB_NAN", 0x7FF8)
    some = tuple(o for o in RECORDED.oracles if o.case.fill == "nan" and o.case.kind == "tiled")
    found = list(differences(some, Device.open("sim-fast")))
    assert found
    assert all("fill nan" in line for line in found)


def test_a_shorter_result_is_told() -> None:
    oracle = RECORDED.oracles[0]
    assert "recorded were" in compare(replace(oracle, result=oracle.result[:-1]), oracle.result)
