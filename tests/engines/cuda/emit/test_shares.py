"""Which shares a counter deals, and which are fixed; each that is dealt has a twin with one thing in its way."""

from __future__ import annotations

from dataclasses import replace

import pytest

import oxidecopy as ox
from oxidecopy.conformance.run import cases
from oxidecopy.engines.cuda.emit.shares import CountedShare, counted_shares, fixed_tile, fixed_trips
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Cmp, CmpOp, Const, Sym, SymKind, evaluate
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Program, Step


def counter(name: str) -> Program:
    case = next(c for c in cases() if c.name == name)
    return expanded(case.make(ox.Device.open("sim-fast")).launch.program)


@pytest.mark.parametrize("name", ["counter stages=4 grid=5", "counter chain stages=2 grid=5"])
def test_one_producer_and_its_consumers_count(name: str) -> None:
    program = counter(name)
    (share,) = counted_shares(program, 90).values()
    assert share.slots % 4 == 0
    assert share.slots >= program.shared_bytes
    assert share.stages == program.barriers[share.full].stages


def dealt(program: Program, sm: int = 90) -> dict[str, CountedShare]:
    return counted_shares(program, sm)


def test_a_ring_of_one_stage_does_not_go_round() -> None:
    assert dealt(counter("counter stages=1 grid=5")) == {}


def test_a_cluster_shares_its_barriers() -> None:
    assert dealt(replace(counter("counter stages=4 grid=5"), cluster=(2, 1, 1))) == {}


def test_shared_memory_must_have_room_for_the_slots() -> None:
    program = counter("counter stages=4 grid=5")
    assert dealt(replace(program, shared_bytes=232_448)) == {}
    assert dealt(replace(program, shared_bytes=232_448 - 16)) != {}


def test_nobody_else_may_ask_how_many_there_are() -> None:
    program = counter("counter stages=4 grid=5")
    (name,) = dealt(program)
    asks = Step(ops.When(cond=Cmp(CmpOp.LT, Const(3), Sym(name, SymKind.TRIPS))))
    assert dealt(replace(program, steps=(*program.steps, asks))) == {}
    loops = Step(ops.Loop(counter="more", start=Const(0), stop=Sym(name, SymKind.TRIPS), step=1))
    assert dealt(replace(program, steps=(*program.steps, loops))) == {}


def test_the_rings_barriers_belong_to_it() -> None:
    program = counter("counter stages=4 grid=5")
    (share,) = dealt(program).values()
    waits = Step(ops.MbarrierWaitPhase(bar=ops.BarrierRef(share.full, Const(0)), phase=Const(0)))
    assert dealt(replace(program, steps=(*program.steps, waits))) == {}


@pytest.mark.parametrize(("tiles", "grid"), [(0, (3, 2, 1)), (5, (3, 2, 1)), (25, (2, 2, 2)), (24, (2, 2, 2))])
def test_fixed_shares_are_all_tiles_once(tiles: int, grid: tuple[int, int, int]) -> None:
    given = []
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                env = dict(zip(("grid_dim.x", "grid_dim.y", "grid_dim.z"), grid, strict=True))
                env |= {"block_idx.x": x, "block_idx.y": y, "block_idx.z": z}
                given += [evaluate(fixed_tile(Const(i)), env) for i in range(evaluate(fixed_trips(Const(tiles)), env))]
    assert sorted(given) == list(range(tiles))
