"""What checkers infer: a line whose type is another one gets an error, and none of these lines does."""

from __future__ import annotations

from typing import Any, Literal as L

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import oxidecopy as ox


class Full: ...


Box = ox.Box2[L[64], L[32]]


def host(dev: ox.Device, x: npt.NDArray[np.float32], any_: npt.NDArray[Any], a: ox.GlobalArray[ox.f16, ox.D2]) -> None:
    assert_type(dev.array(any_, ox.bf16), ox.GlobalArray[ox.bf16, tuple[Any, ...]])
    assert_type(ox.TmaDescriptor.tiled(a, box=(64, 32)), ox.TmaDescriptor[ox.f16, ox.D2, ox.SwizzleNone, ox.Box2[Any, Any]])
    assert_type(ox.TmaDescriptor.tiled(a, box=Box, swizzle=ox.Swizzle64B), ox.TmaDescriptor[ox.f16, ox.D2, ox.Swizzle64B, Box])
    assert_type(ox.TmaDescriptor.tiled(dev.array(x), box=(1, 8, 8)).shape, ox.D3)


def handles(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B, Box], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    assert_type(cta.shared(src), ox.SharedArray[ox.f32, Box, ox.A1024])
    assert_type(cta.shared(src, name="tile"), ox.SharedArray[ox.f32, Box, ox.A1024])
    assert_type(cta.barriers(2, name="full"), ox.ManagedBarriers[ox.Uninit, ox.TmaBarrier, ox.AnyId])
    assert_type(cta.shared(src, stages=2), ox.SharedArrays[ox.f32, Box, ox.A1024])
    assert_type(cta.shared(src, stages=2)[0], ox.SharedArray[ox.f32, Box, ox.A1024])
    assert_type(cta.shared(ox.u8, (4, 4, 4), align=ox.A16), ox.SharedArray[ox.u8, ox.Box3[Any, Any, Any], ox.A16])
    assert_type(cta.shared(ox.u8, Box, align=ox.A256), ox.SharedArray[ox.u8, Box, ox.A256])
    assert_type(out.shape, ox.D2)
    assert_type(src.shape, ox.D2)


def barriers(cta: ox.Cta, leader: ox.Leader) -> None:
    assert_type(cta.barrier(), ox.ManagedBarrier[ox.Uninit, ox.TmaBarrier, ox.AnyId])
    assert_type(cta.barrier(kind=ox.MmaBarrier), ox.ManagedBarrier[ox.Uninit, ox.MmaBarrier, ox.AnyId])
    full = cta.barrier(brand=Full).init(1)
    assert_type(full, ox.ManagedBarrier[ox.Ready, ox.TmaBarrier, Full])
    assert_type(full.arrive(), ox.BarrierToken[ox.TmaBarrier, Full])
    assert_type(full.arrive_expect_tx(leader, 16), ox.TxToken[ox.TmaBarrier, Full])
    assert_type(full.inval(), ox.ManagedBarrier[ox.Invalidated, ox.TmaBarrier, Full])
    bars = cta.barriers(4, kind=ox.GeneralBarrier, brand=Full).init(1)
    assert_type(bars, ox.ManagedBarriers[ox.Ready, ox.GeneralBarrier, Full])
    assert_type(bars[cta.block_idx.x], ox.ManagedBarrier[ox.Ready, ox.GeneralBarrier, Full])


def blocks(cta: ox.Cta, cluster: ox.ClusterCta, n: ox.Idx) -> None:
    with cta.elect() as leader, cta.warps(0, 1) as group, group.elect() as lane:
        assert_type(leader, ox.Leader)
        assert_type(group, ox.Group)
        assert_type(lane, ox.Leader)
    with cluster.elect() as leading, cluster.warps(0, 1) as warps, warps.elect() as other:
        assert_type(leading, ox.ClusterLeader)
        assert_type(warps, ox.ClusterGroup)
        assert_type(other, ox.ClusterLeader)
    for i in cta.range(n):
        assert_type(i, ox.SymIdx)
        assert_type((i * 2 + n) // 3 % 4, ox.SymIdx)
        assert_type((i == 0) & (i < n), ox.Pred)
        assert_type(ox.minimum(1, 2), ox.SymIdx)


@ox.pipeline(threads=128)
def pipe(cta: ox.Cta, n: ox.Idx, flag: bool = False) -> None: ...


def launches() -> None:
    assert_type(pipe[4, 2].bind(3), ox.BoundLaunch)
    assert_type(pipe[ox.Grid(x=4)](n=3, flag=True), None)
