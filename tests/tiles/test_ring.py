"""Rings: every shape is accepted and right on any schedule; one edit makes it refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy import BoundLaunch
from oxidecopy.engines.sim import explore
from oxidecopy.errors import OxidecopyError, RecordError, ScopeError, ShapeError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const, add, mod
from oxidecopy.isa.ops import BarrierRef
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Program
from oxidecopy.verify import inspect
from tests.helpers.edits import changed, dropped, edited

F32: TypeAlias = ox.TmaDescriptor[ox.f32, ox.D2]
Out: TypeAlias = ox.GlobalArray[ox.f32, ox.D2]
Array: TypeAlias = npt.NDArray[np.float32]
Shape: TypeAlias = Callable[[ox.Device, Array], tuple[BoundLaunch, ox.GlobalArray[Any, Any]]]

DATA = np.random.default_rng(7).random((200, 160), np.float32)


# ---- the shapes
@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def plain(cta: ox.Cta, src: F32, out: Out) -> None:
    ring = cta.ring(stages=3, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, at)
    del group


@ox.pipeline(warps=ox.roles(producer=1, consumers=(1, 2)))
def two_groups(cta: ox.Cta, src: F32, out: Out) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, order=ox.order.grouped(2)):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    for number in range(2):
        with cta.consumers(number) as group:
            for at in cta.tiles(src, order=ox.order.grouped(2)):
                with ring.consume(group) as (tile,):
                    if number:
                        cta.store(out, tile, at)


@ox.pipeline(warps=ox.roles(producer=1, consumers=2), cluster=(2, 1))
def multicast(cta: ox.ClusterCta, src: F32, out: Out) -> None:
    ring = cta.multicast_ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, per="cluster", box=(64, 32)):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src, per="cluster", box=(64, 32)):
            with ring.consume(group) as (tile,), cta.when(cta.cta_rank == 1):
                cta.store(out, tile, at)


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def through_stores(cta: ox.Cta, src: F32, dst: F32) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, order=ox.order.once):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src, order=ox.order.once):
            with ring.consume(group) as (tile,):
                group.store(dst, tile, at)


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def rows(cta: ox.Cta, dst: F32) -> None:
    """A store ring: each tile holds its column numbers."""
    outs = cta.store_ring(dst, stages=2)
    with cta.producer():
        pass
    with cta.consumers() as group:
        for at in cta.tiles(dst):
            with outs.put(group, at) as tile:
                cta.iota(tile, axis=1)


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def held(cta: ox.Cta, src: F32, out: Out) -> None:
    """The stage before the newest one is stored: out[i] = src[i - 1] in tiles, along the first column of tiles."""
    ring = cta.ring(stages=3, tiles=(src,))
    n = src.shape[0] // 32
    with cta.producer() as leader:
        for i in cta.range(n):
            with ring.produce(leader) as (slot,):
                slot.load(src, (i * 32, 0))
    with cta.consumers() as group:
        for i in cta.range(n):
            with ring.consume(group, keep=1) as (tile,), cta.when(i >= 1):
                cta.store(out, tile.back(1), (i * 32, 0))


@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def forwarded(cta: ox.Cta, src: F32, dst: F32) -> None:
    """Two copies chained by a ring: no thread touches the data."""
    ring = cta.ring(stages=3, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.storer() as leader:
        for at in cta.tiles(src):
            ring.forward(leader, dst, at)


@ox.pipeline(warps=ox.roles(producer=1, consumers=1))
def chained(cta: ox.Cta, src: F32, dst: F32) -> None:
    """One ring's drained tile feeds another: landed tiles are copied into a store ring."""
    ring = cta.ring(stages=2, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group), outs.put(group, at) as out:
                cta.fill(out, 3)


def to_array(pipe: Any, grid: int, box: tuple[int, int] = (32, 32)) -> Shape:
    def make(dev: ox.Device, x: Array) -> tuple[BoundLaunch, ox.GlobalArray[Any, Any]]:
        out = dev.zeros(x.shape, ox.f32)
        return pipe[grid].bind(ox.TmaDescriptor.tiled(dev.array(x), box=box, swizzle=ox.Swizzle128B), out), out

    return make


def to_map(pipe: Any, grid: int) -> Shape:
    def make(dev: ox.Device, x: Array) -> tuple[BoundLaunch, ox.GlobalArray[Any, Any]]:
        out = dev.zeros(x.shape, ox.f32)
        maps = [ox.TmaDescriptor.tiled(a, box=(32, 32), swizzle=ox.Swizzle128B) for a in (dev.array(x), out)]
        return pipe[grid].bind(*maps), out

    return make


def rows_shape(dev: ox.Device, x: Array) -> tuple[BoundLaunch, ox.GlobalArray[Any, Any]]:
    out = dev.zeros(x.shape, ox.f32)
    return rows[3].bind(ox.TmaDescriptor.tiled(out, box=(32, 32), swizzle=ox.Swizzle128B)), out


def shifted(x: Array) -> Array:
    wanted = np.zeros_like(x)
    wanted[32:192, :32] = x[:160, :32]
    return wanted


SHAPES: dict[str, tuple[Shape, Callable[[Array], Array]]] = {
    "plain": (to_array(plain, 3), lambda x: x),
    "two groups": (to_array(two_groups, 4), lambda x: x),
    "multicast": (to_array(multicast, 4), lambda x: x),
    "through stores": (to_map(through_stores, 35), lambda x: x),
    "rows": (rows_shape, lambda x: np.broadcast_to(np.arange(x.shape[1]) % 32, x.shape).astype(np.float32)),
    "held": (to_array(held, 1), shifted),
    "forwarded": (to_map(forwarded, 3), lambda x: x),
    "chained": (to_map(chained, 2), lambda x: np.full_like(x, 3)),
}


@pytest.fixture
def dev() -> ox.Device:
    return ox.Device.open("sim")


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_accepted_and_right_on_any_schedule(dev: ox.Device, name: str) -> None:
    shape, expected = SHAPES[name]
    bound, out = shape(dev, DATA)
    assert not inspect(bound.program, bound.launch).violations
    for seed in range(4):
        result = explore(bound.program, bound.bindings, seed=seed)
        assert (result.outcome, result.findings) == ("ok", ())
        np.testing.assert_array_equal(out.numpy(), expected(DATA))


# ---- broken twins: one edit of the recorded program
def refused(bound: BoundLaunch, program: Program) -> tuple[set[str], bool]:
    """The verifier's rules, and whether some schedule of the simulator shows the fault."""
    rules = {d.rule for d in inspect(program, bound.launch).violations}
    seen = any(r.outcome != "ok" or r.findings for r in (explore(program, bound.bindings, seed=s, max_steps=20_000) for s in range(12)))
    return rules, seen


def named(bound: BoundLaunch, suffix: str) -> int:
    return next(i for i, b in enumerate(bound.program.barriers) if b.name.endswith(suffix))


def on(bound: BoundLaunch, kind: type[ops.Instr], suffix: str) -> Callable[[ops.Instr], bool]:
    """Ops of `kind` on the ring's barriers of that name."""
    decl = named(bound, suffix)
    return lambda op: isinstance(op, kind) and getattr(op, "bar", None) is not None and vars_of(op).barrier == decl


def vars_of(op: Any) -> Any:
    """The barrier operand of an op that has one."""
    return op.bar


def is_a(kind: type[ops.Instr], **values: object) -> Callable[[ops.Instr], bool]:
    """Ops of `kind` with these operands."""
    return lambda op: isinstance(op, kind) and all(getattr(op, name) == value for name, value in values.items())


def next_slot(ref: BarrierRef) -> BarrierRef:
    """The barrier after this one in a ring of three."""
    return BarrierRef(ref.barrier, mod(add(ref.index, Const(1)), Const(3)))


Twin: TypeAlias = Callable[[BoundLaunch], Program]
TWINS: dict[str, tuple[str, Twin]] = {
    "one arrival missing": ("plain", lambda b: edited(expanded(b.program), on(b, ops.MbarrierInit, "_empty"), changed(count=lambda _: 2))),
    "released by nobody": ("plain", lambda b: dropped(expanded(b.program), on(b, ops.MbarrierArrive, "_empty"))),
    "released before the group has met": ("plain", lambda b: dropped(expanded(b.program), is_a(ops.BarSync, number=1))),
    "not waited for": ("plain", lambda b: dropped(expanded(b.program), on(b, ops.MbarrierWaitPhase, "_full"))),
    "refilled without asking": ("plain", lambda b: dropped(expanded(b.program), on(b, ops.MbarrierWaitPhase, "_empty"))),
    "phase one too high": (
        "plain",
        lambda b: edited(expanded(b.program), on(b, ops.MbarrierWaitPhase, "_full"), changed(phase=lambda e: add(e, Const(1)))),
    ),
    "phase one too low": (
        "plain",
        lambda b: edited(expanded(b.program), on(b, ops.MbarrierWaitPhase, "_full"), changed(phase=lambda e: add(e, Const(-1)))),
    ),
    "too few bytes": ("plain", lambda b: edited(expanded(b.program), is_a(ops.MbarrierArriveExpectTx), changed(nbytes=lambda n: n // 2))),
    "too many bytes": ("plain", lambda b: edited(expanded(b.program), is_a(ops.MbarrierArriveExpectTx), changed(nbytes=lambda n: n + 16))),
    "one group does not release": ("two groups", lambda b: dropped(expanded(b.program), on(b, ops.MbarrierArrive, "_empty"), nth=0)),
    "only its own consumers release": (
        "multicast",
        lambda b: dropped(
            edited(expanded(b.program), on(b, ops.MbarrierInit, "_empty"), changed(count=lambda _: 1)),
            is_a(ops.MbarrierArriveRemote),
            nth=1,
        ),
    ),
    "no cluster sync before the first use": ("multicast", lambda b: dropped(expanded(b.program), is_a(ops.ClusterSync), nth=0)),
    "no cluster sync at the end": ("multicast", lambda b: dropped(expanded(b.program), is_a(ops.ClusterSync), nth=1)),
    "no fence before the store": ("rows", lambda b: dropped(expanded(b.program), is_a(ops.FenceProxyAsync))),
    "one store too many pending": (
        "rows",
        lambda b: edited(expanded(b.program), is_a(ops.WaitGroupRead, pending=1), changed(pending=lambda _: 2)),
    ),
    "not drained": ("rows", lambda b: dropped(expanded(b.program), is_a(ops.WaitGroupRead, pending=0))),
    "forwarded stage released before its store is read": (
        "forwarded",
        lambda b: edited(expanded(b.program), is_a(ops.WaitGroupRead, pending=1), changed(pending=lambda _: 2)),
    ),
    "released a stage too early": (
        "held",
        lambda b: edited(expanded(b.program), on(b, ops.MbarrierArrive, "_empty"), changed(bar=next_slot)),
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_one_edit_is_refused(dev: ox.Device, name: str) -> None:
    shape, edit = TWINS[name]
    bound, _ = SHAPES[shape][0](dev, DATA)
    rules, seen = refused(bound, edit(bound))
    assert rules, name
    assert seen, f"{name}: refused for {rules}, but no schedule shows it"


def test_a_stage_stride_off_its_swizzle_is_refused(dev: ox.Device) -> None:
    bound, _ = SHAPES["plain"][0](dev, DATA)
    (tile,) = bound.program.tiles
    broken = replace(
        bound.program, tiles=(replace(tile, stage_bytes=tile.stage_bytes + 128),), shared_bytes=bound.program.shared_bytes + 384
    )
    assert any("swizzle" in d.what or "aligned" in d.what for d in inspect(broken, bound.launch).violations)


# ---- what the recorder refuses
def misuse(body: Callable[[ox.Cta, F32, Any], None], warps: ox.Roles | None = None) -> OxidecopyError:
    @ox.pipeline(warps=warps or ox.roles(producer=1, consumers=2))
    def wrong(cta: ox.Cta, src: F32) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        body(cta, src, ring)

    dev = ox.Device.open("sim")
    with pytest.raises(OxidecopyError) as caught:
        wrong[1].bind(ox.TmaDescriptor.tiled(dev.array(DATA), box=(32, 32)))
    return caught.value


def produce(cta: ox.Cta, src: F32, ring: Any) -> None:
    with cta.producer() as leader, ring.produce(leader) as (slot,):
        slot.load(src, (0, 0))


def consume(cta: ox.Cta, src: F32, ring: Any) -> None:
    del src
    with cta.consumers() as group, ring.consume(group):
        pass


def test_a_tile_outside_its_block(dev: ox.Device) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=2))
    def wrong(cta: ox.Cta, src: F32, out: Out) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        produce(cta, src, ring)
        with cta.consumers() as group:
            with ring.consume(group) as (tile,):
                pass
            cta.store(out, tile, (0, 0))  # type: ignore[oxidecopy-scope]

    a = dev.array(DATA)
    with pytest.raises(ScopeError) as caught:
        wrong[1].bind(ox.TmaDescriptor.tiled(a, box=(32, 32)), a)
    assert caught.value.rule == "OX1102"


def stores(body: Callable[[ox.Cta, F32, Any, Any], None]) -> Any:
    """A pipeline whose group runs `body` for each tile, with a store ring; a function that binds it."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=2))
    def wrong(cta: ox.Cta, dst: F32) -> None:
        outs = cta.store_ring(dst, stages=2)
        with cta.producer():
            pass
        with cta.consumers() as group:
            for at in cta.tiles(dst):
                with outs.put(group, at) as tile:
                    body(cta, dst, tile, None)
                body(cta, dst, None, tile)  # type: ignore[oxidecopy-scope]

    return lambda dev: wrong[1].bind(ox.TmaDescriptor.tiled(dev.array(DATA), box=(32, 32)))


def test_a_staging_tile_outside_its_block(dev: ox.Device) -> None:
    def body(cta: ox.Cta, dst: F32, inside: Any, outside: Any) -> None:
        del dst, inside
        if outside is not None:
            cta.iota(outside, axis=1)

    with pytest.raises(ScopeError) as caught:
        stores(body)(dev)
    assert caught.value.rule == "OX1102"


def test_what_a_user_raises_in_a_block_is_not_hidden(dev: ox.Device) -> None:
    def body(cta: ox.Cta, dst: F32, inside: Any, outside: Any) -> None:
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        stores(body)(dev)


def test_a_part_of_a_tile_outside_its_block(dev: ox.Device) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=2))
    def wrong(cta: ox.Cta, src: F32, out: Out, n: int) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        with cta.producer() as leader:
            for at in cta.tiles(src):
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for at in cta.tiles(src):
                with ring.consume(group, keep=n) as (tile,):
                    part = (tile.back(n) if n else tile).part(1, of=2)
                cta.store(out, part, at)

    a = dev.array(DATA)
    for n in range(2):
        with pytest.raises(ScopeError) as caught:
            wrong[1].bind(ox.TmaDescriptor.tiled(a, box=(32, 32)), a, n)
        assert caught.value.rule == "OX1102"


def forwards(dev: ox.Device, stages: int, pending: list[int]) -> BoundLaunch:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
    def pass_on(cta: ox.Cta, src: F32, dst: F32) -> None:
        ring = cta.ring(stages=stages, tiles=(src,))
        with cta.producer() as leader:
            for _ in cta.range(len(pending) * 20):
                with ring.produce(leader) as (slot,):
                    slot.load(src, (0, 0))
        with cta.storer() as leader:
            for i in cta.range(20):
                for at, n in enumerate(pending):
                    ring.forward(leader, dst, ((i * len(pending) + at) * 8, 0), pending=n)

    a = dev.array(DATA)
    maps = [ox.TmaDescriptor.tiled(x, box=(8, 8)) for x in (a, dev.zeros(a.shape, ox.f32))]
    return pass_on[1].bind(*maps)


@pytest.mark.parametrize(("stages", "pending"), [(4, 3), (20, 15)])
def test_stores_pending_up_to_the_stages_and_the_instruction(dev: ox.Device, stages: int, pending: int) -> None:
    bound = forwards(dev, stages, [pending])
    assert not inspect(bound.program, bound.launch).violations
    with pytest.raises(ScopeError) as caught:
        forwards(dev, stages, [pending + 1])
    assert caught.value.rule == "OX1108"


def test_a_refusal_behind_a_forwarded_stage_is_not_hidden(dev: ox.Device) -> None:
    with pytest.raises(ScopeError) as caught:
        forwards(dev, 4, [1, 2])
    assert caught.value.rule == "OX1108"


def test_a_cluster_s_producer_may_multicast_by_hand(dev: ox.Device) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=2)
    def by_hand(cta: ox.ClusterCta, src: F32, out: Out) -> None:
        tile, full = cta.shared(src), cta.barrier().init(1)
        cta.cluster_sync()
        with cta.producer() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            with cta.when(cta.cta_rank == 0):
                src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=0b11)
        with cta.consumers():
            full.wait_phase(0)
            cta.store(out, tile, (cta.cta_rank * 32, 0))
        cta.cluster_sync()

    out = dev.zeros((64, 32), ox.f32)
    by_hand[2](ox.TmaDescriptor.tiled(dev.array(DATA), box=(32, 32)), out)
    np.testing.assert_array_equal(out.numpy(), np.tile(DATA[:32, :32], (2, 1)))


def test_a_slot_not_loaded() -> None:
    def body(cta: ox.Cta, src: F32, ring: Any) -> None:
        with cta.producer() as leader, ring.produce(leader):
            pass

    found = misuse(body)
    assert isinstance(found, RecordError)
    assert found.rule == "OX1107"


def test_a_slot_loaded_twice() -> None:
    def body(cta: ox.Cta, src: F32, ring: Any) -> None:
        with cta.producer() as leader, ring.produce(leader) as (slot,):
            slot.load(src, (0, 0))
            slot.load(src, (0, 0))

    assert misuse(body).rule == "OX1107"


def test_a_slot_loaded_outside_its_block() -> None:
    def body(cta: ox.Cta, src: F32, ring: Any) -> None:
        with cta.producer() as leader:
            with ring.produce(leader) as (slot,):
                slot.load(src, (0, 0))
            slot.load(src, (0, 0))

    assert misuse(body).rule == "OX1102"


def test_a_group_as_leader_and_a_leader_as_group() -> None:
    def as_leader(cta: ox.Cta, src: F32, ring: Any) -> None:
        with cta.consumers() as group, ring.produce(group):
            pass

    def as_group(cta: ox.Cta, src: F32, ring: Any) -> None:
        with cta.producer() as leader, ring.consume(leader):
            pass

    assert misuse(as_leader).rule == "OX1014"
    assert misuse(as_group).rule == "OX1104"


def test_nobody_consumes_or_produces() -> None:
    def no_consumer(cta: ox.Cta, src: F32, ring: Any) -> None:
        produce(cta, src, ring)
        with cta.consumers():
            pass

    def no_producer(cta: ox.Cta, src: F32, ring: Any) -> None:
        consume(cta, src, ring)
        with cta.producer():
            pass

    assert misuse(no_consumer).rule == "OX1109"
    assert misuse(no_producer).rule == "OX1109"


def test_a_role_without_a_block() -> None:
    def body(cta: ox.Cta, src: F32, ring: Any) -> None:
        produce(cta, src, ring)
        consume(cta, src, ring)

    assert misuse(body, ox.roles(producer=1, consumers=2, store=1)).rule == "OX1112"


def test_keep_is_bounded_and_back_stays_inside_it() -> None:
    def all_stages(cta: ox.Cta, src: F32, ring: Any) -> None:
        produce(cta, src, ring)
        with cta.consumers() as group, ring.consume(group, keep=2):
            pass

    def too_far(cta: ox.Cta, src: F32, ring: Any) -> None:
        produce(cta, src, ring)
        with cta.consumers() as group, ring.consume(group, keep=1) as (tile,):
            tile.back(2)

    assert misuse(all_stages).rule == "OX1108"
    assert misuse(too_far).rule == "OX1108"


def test_a_descriptor_of_another_box(dev: ox.Device) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=2))
    def wrong(cta: ox.Cta, src: F32, other: F32) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        with cta.producer() as leader, ring.produce(leader) as (slot,):
            slot.load(other, (0, 0))

    a = dev.array(DATA)
    with pytest.raises(ShapeError) as caught:
        wrong[1].bind(ox.TmaDescriptor.tiled(a, box=(32, 32)), ox.TmaDescriptor.tiled(a, box=(16, 32)))
    assert caught.value.rule == "OX1103"


def test_rings_take_no_wide_im2col_descriptors() -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def wrong(cta: ox.Cta, src: ox.Im2colWideDescriptor[ox.f16, ox.D4]) -> None:
        made: Any = cta
        made.ring(stages=2, tiles=(src,))

    array = ox.Device.open("sim", arch=100).empty((2, 3, 9, 64), ox.f16)
    wide = ox.TmaDescriptor.im2col_wide(array, lower=-1, upper=-1, channels=64, pixels=16, swizzle=ox.Swizzle128B)
    with pytest.raises(OxidecopyError, match="takes no wide im2col descriptor") as caught:
        wrong[1].bind(wide)
    assert caught.value.rule == "OX1009"
