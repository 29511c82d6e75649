"""`transpose`, `sum` and `max` of groups: right results through whole pipelines, broken twins and misuse refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import DTypeError, OxidecopyError, RecordError, ScopeError, ShapeError
from oxidecopy.isa import ops
from oxidecopy.program.text import from_text, to_text
from oxidecopy.verify import inspect
from tests.helpers.edits import dropped

Map = ox.TmaDescriptor[Any, Any, Any, Any]
DATA = np.random.default_rng(3).standard_normal((96, 160)).astype(np.float32)


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def flip(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=3, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for y, x in cta.tiles(src):
            with ring.consume(group) as (tile,), outs.put(group, (x, y)) as out:
                group.transpose(tile, out=out)


@ox.pipeline(threads=64)
def norms(
    cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], rows: ox.TmaDescriptor[ox.f32, ox.D1], most: ox.GlobalArray[ox.f32, ox.D1]
) -> None:
    """Sums of the rows of two boxes side by side, and the largest element of each column of the second one."""
    tile, sums, large = cta.shared(src), cta.shared(rows), cta.shared(ox.f32, (32,), align=ox.A128)
    full = cta.barriers(1).init(1)
    cta.fill(sums, 0)
    for k in cta.range(2):
        with cta.elect() as leader:
            src.g2s(leader, tile, (0, k * 32), full[0].arrive_expect_tx(leader, tile.nbytes))
        full[0].wait_phase(k)
        cta.sync()
        cta.sum(tile, axis=1, out=sums, accumulate=True)
        cta.max(tile, axis=0, out=large)
        cta.sync()
    cta.store(most, large, (0,))
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        rows.s2g(leader, sums, (0,))
        leader.commit_group()
        leader.wait_group(0)


@pytest.fixture
def dev() -> ox.Device:
    return ox.Device.open("sim")


def flipping(dev: ox.Device) -> tuple[ox.BoundLaunch, Any]:
    out = dev.zeros((160, 96), ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(DATA), box=(64, 32), swizzle=ox.Swizzle128B)
    return flip[3].bind(src, ox.TmaDescriptor.tiled(out, box=(32, 64))), out


def summing(dev: ox.Device) -> tuple[ox.BoundLaunch, Any, Any]:
    rows, most = dev.zeros((64,), ox.f32), dev.zeros((32,), ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(DATA), box=(64, 32))
    return norms[1].bind(src, ox.TmaDescriptor.tiled(rows, box=(64,)), most), rows, most


def test_a_transpose_of_boxes_is_that_of_the_array(dev: ox.Device) -> None:
    launch, out = flipping(dev)
    launch()
    assert (out.numpy() == DATA.T).all()


def in_order(row: np.ndarray[Any, Any]) -> np.float32:
    """The sum of 32 elements as the order of additions says: they are the partial sums themselves."""
    parts = list(row)
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return np.float32(parts[0])


def test_sums_in_the_stated_order_and_maxima(dev: ox.Device) -> None:
    launch, rows, most = summing(dev)
    launch()
    wanted = [np.float32(0) + in_order(row[:32]) + in_order(row[32:64]) for row in DATA[:64]]
    assert (rows.numpy() == np.array(wanted, np.float32)).all()
    assert (most.numpy() == DATA[:64, 32:64].max(0)).all()


def test_both_forms_of_the_program_come_back(dev: ox.Device) -> None:
    for launch in (flipping(dev)[0], summing(dev)[0]):
        assert from_text(to_text(launch.program)) == launch.program
    text = to_text(summing(dev)[0].program)
    assert "reduce.tile sum onto=1, axis=1, src_tile, rows_tile" in text
    assert "reduce.tile max onto=0, axis=0, src_tile, tile" in text


# Which sync is left out -> what is wrong then.
BROKEN = [
    (lambda op: isinstance(op, ops.BarSync), 2, "OX3045"),  # after the loads: the fill of the sums
    (lambda op: isinstance(op, ops.MbarrierWaitPhase), 0, "OX3040"),
    (lambda op: isinstance(op, ops.FenceProxyAsync), 0, "OX3046"),
]


@pytest.mark.parametrize(("which", "number", "rule"), BROKEN, ids=[b[2] for b in BROKEN])
def test_one_op_less(dev: ox.Device, which: Callable[[ops.Instr], bool], number: int, rule: str) -> None:
    launch, *_ = summing(dev)
    chosen = [step.op for step in launch.program.walk() if which(step.op)][number]
    broken = dropped(launch.program, lambda op: op is chosen)
    assert not inspect(launch.program, launch.launch).violations
    assert rule in {d.rule for d in inspect(broken, launch.launch).violations}


class Case(NamedTuple):
    """What a line of the table below may use."""

    cta: ox.Cta
    group: Any
    tile: Any
    flat: Any
    halves: Any
    whole: Any
    rows: Any
    columns: Any


def inner(c: Case) -> None:
    with c.group.elect():
        c.group.transpose(c.tile, out=c.flat)


WRONG: list[tuple[str, Callable[[Case], object], type[OxidecopyError], str]] = [
    ("same shape", lambda c: c.group.transpose(c.tile, out=c.halves), ShapeError, "OX1190"),
    ("a part", lambda c: c.group.transpose(c.tile.part(0, of=2), out=c.flat), ShapeError, "OX1190"),
    ("a vector", lambda c: c.group.transpose(c.rows, out=c.columns), ShapeError, "OX1190"),
    ("another type", lambda c: c.group.transpose(c.halves, out=c.flat), DTypeError, "OX1193"),
    ("itself", lambda c: c.group.transpose(c.whole, out=c.whole), ShapeError, "OX1194"),
    ("no tile", lambda c: c.group.transpose(3, out=c.flat), RecordError, "OX1009"),
    ("no out", lambda c: c.group.transpose(c.tile, out=None), RecordError, "OX1009"),
    ("inner block", inner, ScopeError, "OX1121"),
    ("the other side", lambda c: c.group.sum(c.tile, axis=0, out=c.rows), ShapeError, "OX1191"),
    ("no such axis", lambda c: c.group.sum(c.tile, axis=2, out=c.rows), ShapeError, "OX1191"),
    ("axis from the end", lambda c: c.group.max(c.tile, axis=-1, out=c.rows), ShapeError, "OX1191"),
    ("a vector's sum", lambda c: c.group.max(c.rows, axis=1, out=c.rows), ShapeError, "OX1191"),
    ("into a tile", lambda c: c.group.max(c.tile, axis=1, out=c.flat), ShapeError, "OX1191"),
    ("of integers", lambda c: c.group.sum(c.whole, axis=1, out=c.columns), DTypeError, "OX1192"),
    ("a number for a flag", lambda c: c.group.sum(c.tile, axis=1, out=c.rows, accumulate=1), OxidecopyError, "OX5016"),
]


@pytest.mark.parametrize(("line", "error", "rule"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_misuse_is_refused_at_the_users_line(
    dev: ox.Device, line: Callable[[Case], object], error: type[OxidecopyError], rule: str
) -> None:
    @ox.pipeline(threads=64)
    def wrong(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
        shapes: Any = ((ox.f32, (32, 16)), (ox.f32, (16, 32)), (ox.f16, (32, 16)), (ox.i32, (16, 16)), (ox.f32, (32,)), (ox.f32, (16,)))
        tiles = [cta.shared(dtype, shape, align=ox.A128) for dtype, shape in shapes]
        with cta.warps(0, 1) as group:
            line(Case(cta, group, *tiles))

    with pytest.raises(error) as caught:
        wrong[1].bind(dev.zeros((32, 32), ox.f32))
    assert caught.value.rules == (rule,)
    (found,) = caught.value.diagnostics
    assert found.site is not None
    assert found.site.file == __file__
