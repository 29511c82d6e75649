"""Bytes that a barrier is told against bytes that its copies move, on each path; what is not certain is left to the verifier."""

from __future__ import annotations

import pytest

from tests.mypy_plugin.analysed import Checked
from tests.mypy_plugin.built import marks

HEAD = """\
from typing import Any, Final, Literal as L
import oxidecopy as ox
from oxidecopy import A1024, Box2, Cta, D2, Leader, SwizzleNone, TmaDescriptor, f32
Desc = TmaDescriptor[f32, D2, SwizzleNone, Box2[L[64], L[32]]]  # 8192 bytes
Open = TmaDescriptor[f32, D2, SwizzleNone]
Tile = ox.SharedArray[f32, Box2[L[64], L[32]], A1024]
Armed = ox.TxToken[ox.TmaBarrier]
Bar = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]
BYTES: Final = 64 * 32 * 4
HALF: Final = BYTES // 2
def load(leader: Leader, d: Desc, t: Tile, tok: Armed) -> None: d.g2s(leader, t, (0, 0), tok)
def tell(leader: Leader, b: Bar) -> Armed: return b.arrive_expect_tx(leader, 8192)
"""

# Each body stands in a function of its own: `cta`, d: Desc, o: Open, a bool `c`, an int `n`; `bar` is ready, `t` a tile of d.
CASES: dict[str, str] = {
    "too_few": "tok = bar.arrive_expect_tx(leader, 4096); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)  # E tx",
    "too_many": "tok = bar.arrive_expect_tx(leader, 8192 * 2); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)  # E tx",
    "equal": "tok = bar.arrive_expect_tx(leader, 8192); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)",
    "final": "tok = bar.arrive_expect_tx(leader, HALF); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)  # E tx",
    "final_equal": "tok = bar.arrive_expect_tx(leader, BYTES); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)",
    "nbytes": "tok = bar.arrive_expect_tx(leader, t.nbytes // 2); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)  # E tx",
    "tile": "tok = bar.arrive_expect_tx(leader, t); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)",
    "two_tiles": "tok = bar.arrive_expect_tx(leader, t, t); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)  # E tx",
    "no_copy": "tok = bar.arrive_expect_tx(leader, t); bar.wait(tok)  # E tx",
    "nothing": "tok = bar.arrive(); bar.wait(tok)",
    "expect": """\
bar.expect_tx(leader, 4096)
tok = bar.arrive_expect_tx(leader, 4096)
d.g2s(leader, t, (0, 0), tok)
bar.wait(tok)
""",
    "expect_less": """\
bar.expect_tx(leader, 2048)
tok = bar.arrive_expect_tx(leader, 4096)
d.g2s(leader, t, (0, 0), tok)
bar.wait(tok)  # E tx
""",
    "completed_by_hand": """\
tok = bar.arrive_expect_tx(leader, 8192 + 16)
d.g2s(leader, t, (0, 0), tok)
bar.complete_tx(leader, 16)
bar.wait(tok)
""",
    "two_phases": """\
tok = bar.arrive_expect_tx(leader, 8192)
d.g2s(leader, t, (0, 0), tok)
bar.wait(tok)
tok = bar.arrive_expect_tx(leader, 8192)
bar.wait(tok)  # E tx
""",
    "value_box": """\
v = cta.shared(f32, (32, 32), align=A1024)
tok = bar.arrive_expect_tx(leader, 8192)
o.g2s(leader, v, (0, 0), tok)
bar.wait(tok)  # E tx
""",
    "value_box_equal": """\
v = cta.shared(f32, (32, 32), align=A1024)
tok = bar.arrive_expect_tx(leader, v.nbytes)
o.g2s(leader, v, (0, 0), tok)
bar.wait(tok)
""",
    "unknown_box": """\
v = cta.shared(f32, (n, 32), align=A1024)
tok = bar.arrive_expect_tx(leader, 4096)
o.g2s(leader, v, (0, 0), tok)
bar.wait(tok)
""",
    "unknown_number": "tok = bar.arrive_expect_tx(leader, n); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)",
    "unknown_more": "xs = [n]; tok = bar.arrive_expect_tx(leader, 4096, *xs); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)",
    "one_path": """\
tok = bar.arrive_expect_tx(leader, 8192)
if c:
    d.g2s(leader, t, (0, 0), tok)
    bar.wait(tok)
else:
    bar.wait(tok)  # E tx
""",
    "correlated": """\
tok = bar.arrive_expect_tx(leader, 16384 if c else 8192)
d.g2s(leader, t, (0, 0), tok)
if c:
    d.g2s(leader, t, (0, 32), tok)
bar.wait(tok)
""",
    "neither_path": """\
tok = bar.arrive_expect_tx(leader, 4096) if c else bar.arrive_expect_tx(leader, 2048)
d.g2s(leader, t, (0, 0), tok)
bar.wait(tok)  # E tx
""",
    "when": """\
tok = bar.arrive_expect_tx(leader, 8192)
with cta.when(cta.block_idx.x == 0):
    d.g2s(leader, t, (0, 0), tok)
with cta.when(cta.block_idx.x != 0):
    d.g2s(leader, t, (64, 0), tok)
bar.wait(tok)
""",
    "loop": """\
tok = bar.arrive_expect_tx(leader, 8192 * 4)
for i in range(4):
    d.g2s(leader, t, (i, 0), tok)
bar.wait(tok)
""",
    "loop_of_many": """\
tok = bar.arrive_expect_tx(leader, 8192 * 40)
for i in range(40):
    d.g2s(leader, t, (i, 0), tok)
bar.wait(tok)
""",
    "helper_loads": """\
tok = bar.arrive_expect_tx(leader, 8192)
load(leader, d, t, tok)
bar.wait(tok)
""",
    "helper_tells": "tok = tell(leader, bar); d.g2s(leader, t, (0, 0), tok); bar.wait(tok)",
    "part": """\
tok = bar.arrive_expect_tx(leader, t.part(0, of=2).nbytes, t.part(1, of=2))
d.g2s(leader, t, (0, 0), tok)
bar.wait(tok)
""",
    "stages": """\
ts = cta.shared(d, stages=2)
tok = bar.arrive_expect_tx(leader, ts[0], ts[1])
d.g2s(leader, ts[0], (0, 0), tok)
d.g2s(leader, ts[1], (0, 32), tok)
bar.wait(tok)
""",
    "stages_one_missing": """\
ts = cta.shared(d, stages=2)
tok = bar.arrive_expect_tx(leader, ts[0], ts[1])
d.g2s(leader, ts[0], (0, 0), tok)
bar.wait(tok)  # E tx
""",
    "other_barrier": """\
other = cta.barrier().init(1)
tok, tok2 = bar.arrive_expect_tx(leader, t), other.arrive_expect_tx(leader, t)
d.g2s(leader, t, (0, 0), tok)
d.g2s(leader, t, (0, 0), tok)
bar.wait(tok)  # E tx
other.wait(tok2)  # E tx
""",
    "by_phase": """\
tok = bar.arrive_expect_tx(leader, t)
bar.wait_phase(0)
d.g2s(leader, t, (0, 0), tok)
""",
    "remote": """\
bar.arrive_expect_tx_remote(leader, 8192, cta_rank=1)
tok = bar.arrive()
bar.wait(tok)
""",
    "by_lambda": "go = lambda tok: d.g2s(leader, t, (0, 0), tok); tok = bar.arrive_expect_tx(leader, t); go(tok); bar.wait(tok)",
    "closure": """\
def go(tok: Armed) -> None: d.g2s(leader, t, (0, 0), tok)
tok = bar.arrive_expect_tx(leader, t)
go(tok)
bar.wait(tok)
""",
    "stored": """\
toks = {"a": bar.arrive_expect_tx(leader, t)}
load(leader, d, t, toks["a"])
""",
}


def source() -> str:
    functions = []
    for name, body in CASES.items():
        lines = ["bar, t = cta.barrier().init(1), cta.shared(d)", "with cta.elect() as leader:"]
        lines += [f"    {line}" for line in body.splitlines()]
        functions.append(f"def {name}(cta: Cta, d: Desc, o: Open, c: bool, n: int) -> None:\n" + "\n".join(f"    {x}" for x in lines))
    return HEAD + "\n".join(functions) + "\n"


@pytest.fixture(scope="module")
def said(checked: Checked) -> list[tuple[int, str, str]]:
    """Line, code and words of every error but leaks: what waits for nobody here is not these cases' matter."""
    return [found for found in checked.said("copies") if found[1] != "oxidecopy-leak"]


@pytest.mark.parametrize("name", CASES)
def test_marked_lines_and_no_others(said: list[tuple[int, str, str]], name: str) -> None:
    lines = source().splitlines()
    first = next(i for i, line in enumerate(lines, 1) if line.startswith(f"def {name}("))
    last = first + 2 + len(CASES[name].splitlines())
    found = sorted((line, code.removeprefix("oxidecopy-")) for line, code, _ in said if first <= line <= last)
    assert found == [(line, kind) for line, kind in sorted(marks(source())) if first <= line <= last], said


def test_words(said: list[tuple[int, str, str]]) -> None:
    first = min(said)
    assert first[2] == 'Barrier "bar" was told to expect 4096 bytes, but the copies issued on it move 8192'
