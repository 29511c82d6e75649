"""What a run leaves undone is noted, exactly; it is no hazard."""

from __future__ import annotations

import pytest

from tests.engines.sim.harness import Rig
from tests.helpers.programs import BX, Builder, add, eq, mul


def notes(b: Builder) -> list[tuple[str, str]]:
    result = Rig(b).explore()
    assert result.outcome == "ok"
    assert not result.findings
    assert not Rig(b).explore(hazards=False).notes
    return [(d.rule, d.got) for d in result.notes]


def stored(grid: int, columns: int = 64, dtype: str = "f32", *, plain: bool = False) -> Builder:
    """Boxes of 4 x 32 elements to an array of 4 rows."""
    b = Builder(grid=(grid, 1, 1), threads=32)
    b.map("dst", box=(4, 32), dims=(4, columns), dtype=dtype)
    b.array(shape=(4, columns), dtype=dtype)
    b.tile(shape=(4, 32), dtype=dtype)
    b.fill()
    b.fence()
    b.sync()
    if plain:
        b.store((0, mul(BX, 32)))
    else:
        with b.elect():
            b.s2g((0, mul(BX, 32)), name="dst")
            b.commit()
            b.wait_group()
    return b


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("dtype", ["u8", "bf16", "f32", "f64"])
def test_holes_are_named(dtype: str, plain: bool) -> None:
    assert notes(stored(2, dtype=dtype, plain=plain)) == []
    assert notes(stored(1, dtype=dtype, plain=plain)) == [("OX4132", "nothing in elements [0:4, 32:64]")]


def test_an_edge_is_covered_by_a_clipped_box() -> None:
    assert notes(stored(2, columns=60)) == []
    assert notes(stored(1, columns=60)) == [("OX4132", "nothing in elements [0:4, 32:60]")]


def test_sums_may_go_anywhere() -> None:
    b = stored(2)
    with b.elect():
        b.reduce("add", (0, 0), name="src")
        b.commit()
        b.wait_group()
    b.map("src", box=(4, 32), dims=(4, 64))
    assert notes(b) == []


def test_roles_that_never_run() -> None:
    for limit, found in ((4, []), (0, [("OX4133", "no thread of any CTA came to an op of it")])):
        b = Builder(threads=64, grid=(4, 1, 1))
        with b.scope((32, 64)):
            b.fence()
        with b.scope((0, 32)), b.loop(limit) as i, b.when(eq(BX, add(i, 0))):
            b.fence()
        assert notes(b) == found


def test_the_inner_of_two_blocks_may_be_the_one_that_does_not_run() -> None:
    b = Builder(threads=64, grid=(1, 1, 1))
    with b.scope((0, 32)):
        b.fence()
        with b.elect(), b.loop(0):
            b.fence()
    assert [rule for rule, _ in notes(b)] == ["OX4133"]
