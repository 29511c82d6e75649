"""Inits that stand together are one record for barriers that lie together; loops of one trip at most are no loops."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code import Image
from oxidecopy.program.program import Launch
from oxidecopy.program.text import from_text
from tests.helpers.device_agreement import check
from tests.helpers.device_emulator import fields

HEAD = """\
program inits threads=32 cluster=(1, 1, 1) shared=1024:
  barrier a: TmaBarrier stages=4 at=0
  barrier b: TmaBarrier stages=4 at=32
  barrier c: TmaBarrier stages=40 at=128
"""


def heads(body: str, grid: int = 5) -> list[tuple[str, int, int, int]]:
    """Records by name, with operand 0 and what an init says of its barriers."""
    image = image_of(body, grid)
    records = [fields(image.code, abi.RECORD, abi.RECORD_BYTES * pc) for pc in sorted(image.sites)]
    return [(DeviceOp(r["op"]).name.lower(), *r["imm"][:3]) for r in records]


def image_of(body: str, grid: int) -> Image:
    return check(from_text(HEAD + body), Launch(grid=(grid, 1, 1)))


def inits(*barriers: str, count: int = 1) -> str:
    return "".join(f"  mbarrier.init {bar}, count={count}\n" for bar in barriers)


def test_barriers_side_by_side() -> None:
    names = [f"{name}[{i}]" for i in range(4) for name in "ba"]
    assert heads(inits(*names)) == [("mbarrier_init", 0, 1, 8), ("end", 0, 0, 0)]
    assert heads(inits("a[0]", "a[2]", "a[3]")) == [("mbarrier_init", 0, 1, 1), ("mbarrier_init", 16, 1, 2), ("end", 0, 0, 0)]


def test_no_more_than_a_warp_has_lanes() -> None:
    assert heads(inits(*[f"c[{i}]" for i in range(40)]))[:2] == [("mbarrier_init", 128, 1, 32), ("mbarrier_init", 384, 1, 8)]


def test_counts_are_kept_apart() -> None:
    found = heads(inits("a[0]", "a[1]") + inits("a[2]", "b[0]", "a[3]", count=7))
    assert found[:2] == [("mbarrier_init", 0, 1, 2), ("mbarrier_init", 16, 7, 3)]


@pytest.mark.parametrize(
    "between",
    [
        "  mbarrier.inval a[0]\n",
        "  fence.mbarrier_init.release.cluster\n",
        "  mbarrier.init a[block_idx.x % 4], count=1\n",
        "  mbarrier.init a[0], count=1\n",
    ],
)
def test_what_does_not_stand_together_is_not_joined(between: str) -> None:
    found = [n for name, _, _, n in heads(inits("a[0]") + between + inits("a[1]")) if name == "mbarrier_init"]
    assert set(found) == {1}
    assert len(found) >= 2


ARRIVE = "      mbarrier.arrive a[0] -> %1\n"
TRIPS = {
    "one": ("start=0, stop=1, step=1", "mbarrier_arrive"),
    "one for each block": ("start=block_idx.x, stop=5, step=5", "mbarrier_arrive"),
    "one, down": ("start=block_idx.x, stop=-1, step=-5", "mbarrier_arrive"),
    "one at most": ("start=block_idx.x, stop=3, step=3", "jump_unless"),
    "one at most, down": ("start=block_idx.x, stop=2, step=-3", "jump_unless"),
    "two in some blocks": ("start=block_idx.x, stop=5, step=4", "loop"),
    "two, down": ("start=block_idx.x, stop=-1, step=-4", "loop"),
    "none": ("start=2, stop=2, step=1", "end"),
}


@pytest.mark.parametrize(("bounds", "first"), TRIPS.values(), ids=list(TRIPS))
def test_loops_by_their_trips(bounds: str, first: str) -> None:
    names = [name for name, *_ in heads(f"  loop i, {bounds}:\n    mbarrier.arrive a[i % 4] -> %1\n")]
    assert next(name for name in names if name != "eval") == first
