"""Schedules that roles share: by a counter, every deal of the tiles gives the same bytes; what the proof could not cover is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy import BoundLaunch
from oxidecopy.engines.sim import explore
from oxidecopy.errors import OxidecopyError
from oxidecopy.isa import ops
from oxidecopy.program.text import from_text, to_text
from oxidecopy.verify import inspect

F32: TypeAlias = ox.TmaDescriptor[ox.f32, ox.D2]
Out: TypeAlias = ox.GlobalArray[ox.f32, ox.D2]
DATA = np.random.default_rng(11).random((200, 160), np.float32)
COUNTER = ox.order.counter()


OUTSIDE = 1 << 20


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def by_counter(cta: ox.Cta, src: F32, out: Out) -> None:
    ring = cta.ring(stages=3, tiles=(src,))
    work = cta.schedule(src, order=COUNTER)
    with cta.producer() as leader:
        for at in work:
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for stage in ring.stages(group, work):
            (tile,) = stage.tiles
            cta.store(out, tile, stage.at)


@ox.pipeline(warps=ox.roles(producer=1, consumers=(1, 2)))
def two_groups(cta: ox.Cta, src: F32, out: Out) -> None:
    ring = cta.ring(stages=4, tiles=(src, src))
    work = cta.schedule(src, order=COUNTER)
    for number in range(2):
        with cta.consumers(number) as group:
            for stage in ring.stages(group, work, keep=number):
                row, column = stage.at
                cta.store(out, stage.tiles[number], (row + number * OUTSIDE, column))  # what both store once is compared
    with cta.producer() as leader:
        for at in work:
            with ring.produce(leader) as (first, second):
                first.load(src, at)
                second.load(src, at)


@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def forwarded(cta: ox.Cta, src: F32, dst: F32) -> None:
    ring = cta.ring(stages=3, tiles=(src,), consumers=1)
    work = cta.schedule(src, order=COUNTER)
    with cta.producer() as leader:
        for at in work:
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.storer() as leader:
        for at in ring.visits(leader, work):
            ring.forward(leader, dst, at)


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def one_role_then_more(cta: ox.Cta, src: F32, out: Out) -> None:
    """Stages taken after the loop: their numbers hang on how many tiles there were."""
    ring = cta.ring(stages=2, tiles=(src,))
    work = cta.schedule(src, order=COUNTER)
    with cta.producer() as leader:
        for at in work:
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
        with ring.produce(leader) as (slot,):
            slot.load(src, (0, 0))
    with cta.consumers() as group:
        for stage in ring.stages(group, work):
            cta.store(out, stage.tiles[0], stage.at)
        with ring.consume(group) as (tile,):
            cta.store(out, tile, (OUTSIDE, cta.block_idx.x))  # so that no two blocks meet


def static(order: Any) -> ox.Pipeline[[F32, Out]]:
    """The same roles with a static order."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=2))
    def pipe(cta: ox.Cta, src: F32, out: Out) -> None:
        ring = cta.ring(stages=3, tiles=(src,))
        work = cta.schedule(src, order=order)
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                cta.store(out, stage.tiles[0], stage.at)

    return pipe


def bound(pipe: Any, grid: int, *, to: str = "array", box: tuple[int, int] = (64, 32)) -> tuple[BoundLaunch, ox.GlobalArray[Any, Any]]:
    dev = ox.Device.open("sim")
    out = dev.zeros(DATA.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(DATA), box=box)
    return pipe[grid].bind(src, out if to == "array" else ox.TmaDescriptor.tiled(out, box=box)), out


PIPES = {
    "plain": (by_counter, "array"),
    "groups": (two_groups, "array"),
    "forward": (forwarded, "map"),
    "more": (one_role_then_more, "array"),
}
ROWS = ox.order.custom(lambda i, counts: (i // counts[1], i % counts[1]), lambda counts: counts[0] * counts[1])


@pytest.mark.parametrize("name", PIPES)
@pytest.mark.parametrize("grid", [1, 3, 50])
def test_every_deal_of_the_tiles_gives_the_same_bytes(name: str, grid: int) -> None:
    pipe, to = PIPES[name]
    launch, out = bound(pipe, grid, to=to)
    assert launch.verify().warnings == ()
    for seed in range(4):
        out.device.engine.write(out.buffer, out.offset_bytes, memoryview(bytes(DATA.nbytes)))  # type: ignore[attr-defined]  # the simulator
        result = explore(launch.program, launch.bindings, seed=seed)
        assert (result.outcome, result.findings) == ("ok", ())
        assert np.array_equal(out.numpy(), DATA)
    launch()


@pytest.mark.parametrize(
    "order",
    [ox.order.linear, ox.order.once, ox.order.grouped(2), ROWS],
    ids=["linear", "once", "grouped", "custom"],
)
def test_static_orders_take_the_same_form(order: Any) -> None:
    launch, out = bound(static(order), 1 if order is ROWS else 20)  # of a custom order each block does all that it says
    launch()
    assert np.array_equal(out.numpy(), DATA)


def test_more_tiles_than_any_walk_tries() -> None:
    """The proof covers 10,000 tiles by the state that repeats."""
    dev = ox.Device.open("sim")
    wide = ox.TmaDescriptor.tiled(dev.zeros((100 * 8, 100 * 8), ox.f32), box=(8, 8))
    by_counter[7].bind(wide, dev.zeros((800, 800), ox.f32)).verify()


def test_the_text_form_keeps_it() -> None:
    launch, _ = bound(two_groups, 3)
    assert from_text(to_text(launch.program)) == launch.program


# ---- broken twins
def last(text: str, old: str, new: str) -> str:
    head, found, tail = text.rpartition(old)
    assert found
    return head + new + tail


def test_a_consumer_with_a_trip_count_of_its_own_is_refused() -> None:
    launch, _ = bound(by_counter, 3)
    lines = last(to_text(launch.program), "stop=tiles_given", "stop=4").split("\n")
    at = max(i for i, line in enumerate(lines) if "share.next" in line)
    text = "\n".join(lines[:at] + lines[at + 1 :]).replace("read1", "0")
    found = inspect(from_text(text), launch.launch).violations
    assert {d.rule for d in found} == {"OX3012"}
    assert "when the counter gives this CTA no tile" in found[0].what


def test_a_tile_asked_for_outside_its_loop_is_refused() -> None:
    launch, _ = bound(by_counter, 3)
    text = last(to_text(launch.program), "stop=tiles_given", "stop=4")
    assert {d.rule for d in inspect(from_text(text), launch.launch).violations} == {"OX3093"}
    text = last(to_text(launch.program), "index=i1", "index=i1 + 1")
    assert {d.rule for d in inspect(from_text(text), launch.launch).violations} == {"OX3093"}
    assert explore(from_text(text), launch.bindings).diagnostics[0].rule == "OX4016"


def recorded(body: Callable[[ox.Cta, F32, Out], None], grid: int = 2) -> BoundLaunch:
    return bound(ox.pipeline(warps=ox.roles(producer=1, consumers=2))(body), grid)[0]


def test_an_arrival_once_more_than_there_are_tiles_is_refused() -> None:
    def extra(cta: ox.Cta, src: F32, out: Out) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        work = cta.schedule(src, order=COUNTER)
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
            with ring.produce(leader) as (slot,):
                slot.load(src, (0, 0))
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                cta.store(out, stage.tiles[0], stage.at)

    found = inspect(*_parts(recorded(extra))).violations
    assert {d.rule for d in found} == {"OX3051"}
    assert "when the counter gives this CTA no tile" in found[0].what


def _parts(launch: BoundLaunch) -> tuple[Any, Any]:
    return launch.program, launch.launch


def claimed_twice(cta: ox.Cta, src: F32, out: Out) -> None:
    work = cta.schedule(src, order=COUNTER)
    for _ in range(2):
        for _at in work:
            cta.sync()


def in_a_loop(cta: ox.Cta, src: F32, out: Out) -> None:
    work = cta.schedule(src, order=COUNTER)
    for _ in cta.range(2):
        for _at in work:
            cta.sync()


def under_a_condition(cta: ox.Cta, src: F32, out: Out) -> None:
    work = cta.schedule(src, order=COUNTER)
    with cta.when(cta.block_idx.x == 0):
        for _at in work:
            cta.sync()


def two_counters(cta: ox.Cta, src: F32, out: Out) -> None:
    cta.schedule(src, order=COUNTER)
    cta.schedule(src, order=COUNTER)


def own_tiles(cta: ox.Cta, src: F32, out: Out) -> None:
    for _ in cta.tiles(src, order=COUNTER):
        cta.sync()


def steered(cta: ox.Cta, src: F32, out: Out) -> None:
    for at in cta.schedule(src, order=COUNTER):
        with cta.when(at[0] == 0):
            cta.sync()


def out_of_its_block(cta: ox.Cta, src: F32, out: Out) -> None:
    tile = cta.shared(src)
    cta.fill(tile, 0.0)
    last = None
    for at in cta.schedule(src, order=COUNTER):
        last = at
    assert last is not None
    cta.store(out, tile, last)


def untold(cta: ox.Cta, src: F32, out: Out) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    work = cta.schedule(src, order=COUNTER)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for stage in ring.stages(group, work):
            cta.store(out, stage.tiles[0], stage.at)


REFUSED = {
    claimed_twice: "OX1144",
    in_a_loop: "OX1144",
    under_a_condition: "OX1144",
    two_counters: "OX1143",
    own_tiles: "OX1141",
    steered: "OX1140",
    out_of_its_block: "OX1146",
    untold: "OX1145",
}


@pytest.mark.parametrize("body", REFUSED, ids=lambda b: b.__name__)
def test_what_is_no_counter_schedule_is_refused(body: Any) -> None:
    with pytest.raises(OxidecopyError) as caught:
        bound(ox.pipeline(threads=64)(body) if body is not untold else ox.pipeline(warps=ox.roles(producer=1, consumers=1))(body), 2)
    assert caught.value.rules == (REFUSED[body],)
    assert caught.value.diagnostics[0].site is not None


def test_a_cluster_has_no_counter() -> None:
    @ox.pipeline(threads=64, cluster=(2, 1))
    def clustered(cta: ox.ClusterCta, src: F32, out: Out) -> None:
        cta.schedule(src, order=COUNTER)

    with pytest.raises(OxidecopyError) as caught:
        bound(clustered, 2)
    assert caught.value.rules == ("OX1143",)


def test_leaving_a_stage_early_is_refused() -> None:
    def left(cta: ox.Cta, src: F32, out: Out) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        work = cta.schedule(src)
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for _ in ring.stages(group, work):
                break

    with pytest.raises(OxidecopyError) as caught:
        recorded(left)
    assert "OX1025" in caught.value.rules


def test_the_share_is_one_op_at_the_top_level() -> None:
    launch, _ = bound(by_counter, 3)
    assert [type(s.op) for s in launch.program.walk()].count(ops.ShareTiles) == 1
    assert any(isinstance(s.op, ops.ShareTiles) for s in launch.program.steps)
