"""Plain bulk copies in what is said of outputs: stores that meet, loads of what others store, and what a run is as a box."""

from __future__ import annotations

import pytest

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const, Expr
from oxidecopy.isa.ops import ArrayRef, BarrierRef
from oxidecopy.verify.outputs.places import run_extents
from tests.engines.sim.harness import findings
from tests.helpers.programs import BX, Builder, E, e, mul
from tests.helpers.verdicts import accepted, refused, report

N = 64


def stored(b: Builder, *starts: E, wait: bool = True, op: str = "", nbytes: int = 4 * N) -> None:
    """Runs of `out` that one thread stores, one after the other; `op`: as reductions."""
    if not b.tiles:
        b.array(shape=(4 * N,))
        b.tile(shape=(N,), align=16)
        b.fill()
        b.fence()
        b.sync()
    with b.elect():
        for at in starts:
            coords = (e(at),)
            if op:
                b.op(ops.BulkReduce(op=op, array=ArrayRef("out"), coords=coords, tile=b.ref(0), nbytes=nbytes), "store")
            else:
                b.op(ops.BulkS2G(array=ArrayRef("out"), coords=coords, tile=b.ref(0), nbytes=nbytes), "store")
            b.commit()
            if wait:
                b.wait_group(0)
        b.wait_group(0)


def test_stores_of_two_ctas_meet() -> None:
    b = Builder()
    stored(b, 0)
    refused(b, "OX3201", "store")
    assert "OX4117" in {rule for rule, _ in findings(b)}
    at: E
    for at, op in ((mul(BX, N), ""), (0, "add")):
        b = Builder()
        stored(b, at, op=op)
        accepted(b)
        assert not findings(b)


def test_stores_of_one_thread_are_ordered() -> None:
    for wait in (False, True):
        b = Builder()
        b.grid = (1, 1, 1)
        stored(b, 0, 32, wait=wait)
        if wait:
            accepted(b)
            assert not findings(b)
        else:
            refused(b, "OX3202", "store")
            assert "OX4117" in {rule for rule, _ in findings(b)}


def test_what_no_run_reaches_is_told() -> None:
    b = Builder()
    b.grid = (3, 1, 1)
    stored(b, mul(BX, N))
    accepted(b, "OX3106")
    assert "[192:256]" in str(report(b).warnings[0])


def test_loads_of_what_another_cta_stores() -> None:
    for at, rule in ((0, "OX3203"), (mul(BX, N), "")):
        b = Builder()
        stored(b, mul(BX, N))
        b.bar()
        b.init()
        with b.elect():
            token = b.arm(4 * N)
            b.op(ops.BulkG2S(array=ArrayRef("out"), coords=(e(at),), tile=b.ref(0), nbytes=4 * N, bar=BarrierRef(0, Const(0))), "load")
            b.wait(token)
        if rule:
            refused(b, rule, "load")
        else:
            accepted(b)
        assert {r for r, _ in findings(b)} == ({"OX4118"} if rule else set())


@pytest.mark.parametrize(
    ("dims", "coords", "count", "box"),
    [
        ((256,), (BX,), 64, (64,)),
        ((256,), (Const(3),), 256, None),
        ((8, 64), (BX, Const(32)), 32, (1, 32)),
        ((8, 64), (BX, Const(48)), 32, None),
        ((8, 64), (BX, Const(0)), 192, (3, 64)),
        ((8, 64), (BX, Const(0)), 96, None),
        ((2, 4, 64), (Const(0), Const(0), Const(0)), 512, (2, 4, 64)),
        ((2, 4, 64), (Const(0), Const(1), Const(0)), 512, None),
        ((8, 64), (BX, mul(BX, 16)), 16, (1, 16)),
        ((8, 60), (BX, mul(BX, 16)), 16, None),
    ],
)
def test_a_run_is_a_box_or_none(dims: tuple[int, ...], coords: tuple[Expr, ...], count: int, box: tuple[int, ...] | None) -> None:
    assert run_extents(dims, coords, count) == box
