"""Launches to follow over time, each with one thing to see."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import oxidecopy as ox
from oxidecopy.engines.sim.costs import Costs
from oxidecopy.engines.sim.timed import OPS_MAX, stamped
from oxidecopy.host.bound import BoundLaunch
from oxidecopy.program.stamps import Stamped

Map: TypeAlias = ox.TmaDescriptor[Any, Any, Any, Any]


@cache
def computation(stages: int = 2, *, rows: int = 16, ctas: int = 1, counter: bool = False) -> BoundLaunch:
    """A ring of loads that consumers double into a store ring; tiles of 4 KiB."""
    return computation_on(ox.Device.open("sim"), stages, rows=rows, ctas=ctas, counter=counter)


def computation_on(dev: ox.Device, stages: int, *, rows: int, ctas: int, counter: bool) -> BoundLaunch:
    """The same on any device."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=2))
    def doubled(cta: ox.Cta, src: Map, dst: Map) -> None:
        ring = cta.ring(stages=stages, tiles=(src,))
        outs = cta.store_ring(dst, stages=2)
        work = cta.schedule(src, order=ox.order.counter() if counter else None)
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                (tile,) = stage.tiles
                with outs.put(group, stage.at) as out:
                    group.map(lambda v: v + v, tile, out=out)

    src, dst = (ox.TmaDescriptor.tiled(dev.zeros((rows, 1024), ox.f32), box=(4, 256)) for _ in range(2))
    return doubled[ctas].bind(src, dst)


@cache
def two_loads() -> BoundLaunch:
    """One thread loads two boxes to one barrier each and waits; it stores the first, and waits twice for that."""

    @ox.pipeline(threads=32)
    def two(cta: ox.Cta, src: Map, dst: Map) -> None:
        first, second = cta.shared(src), cta.shared(src)
        full0, full1 = cta.barrier(name="full0").init(1), cta.barrier(name="full1").init(1)
        with cta.elect() as leader:
            one = full0.arrive_expect_tx(leader, first.nbytes)
            src.g2s(leader, first, (0, 0), one)
            other = full1.arrive_expect_tx(leader, second.nbytes)
            src.g2s(leader, second, (8, 0), other)
        full0.wait(one)
        full1.wait(other)
        with cta.elect() as leader:
            dst.s2g(leader, first, (0, 0))
            leader.commit_group()
            leader.wait_group_read(0)
            leader.wait_group(0)

    dev = ox.Device.open("sim")
    src, dst = (ox.TmaDescriptor.tiled(dev.zeros((16, 64), ox.f32), box=(8, 64)) for _ in range(2))
    return two[1].bind(src, dst)


def followed(launch: BoundLaunch, *, ctas: int = 1, ops_max: int = OPS_MAX, costs: Costs | None = None) -> Stamped:
    """The first CTAs, along x."""
    blocks = [(x, 0, 0) for x in range(ctas)]
    return stamped(launch.program, launch.bindings, ctas=blocks, ops_max=ops_max, costs=costs)
