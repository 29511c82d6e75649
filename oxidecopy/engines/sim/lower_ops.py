"""Which module lowers which op. Total over the op table: a new op does not type-check until it has a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, assert_never

from oxidecopy.engines.sim import (
    lower_access,
    lower_barriers,
    lower_bulk,
    lower_copies,
    lower_map,
    lower_maps,
    lower_mma,
    lower_reshape,
    shares,
)
from oxidecopy.engines.sim.agents import Op
from oxidecopy.isa import ops

if TYPE_CHECKING:
    from oxidecopy.engines.sim.lowering import Lowering

Make: TypeAlias = Callable[[int], Op]  # position of the next op -> the closure
Plain: TypeAlias = (
    ops.MbarrierInit
    | ops.MbarrierInval
    | ops.MbarrierArrive
    | ops.MbarrierArriveExpectTx
    | ops.MbarrierExpectTx
    | ops.MbarrierCompleteTx
    | ops.MbarrierArriveDrop
    | ops.MbarrierArriveRemote
    | ops.MbarrierArriveExpectTxRemote
    | ops.MbarrierWait
    | ops.MbarrierWaitPhase
    | ops.MbarrierWaitParity
    | ops.MbarrierTestToken
    | ops.MbarrierTestParity
    | ops.TensorG2S
    | ops.TensorG2SMulticast
    | ops.TensorS2G
    | ops.TensorReduce
    | ops.TensorPrefetch
    | ops.TensorGather4
    | ops.TensorScatter4
    | ops.BulkG2S
    | ops.BulkG2SMulticast
    | ops.BulkS2G
    | ops.BulkReduce
    | ops.BulkPrefetch
    | ops.BulkS2S
    | ops.BulkReduceS2S
    | ops.TensormapCopy
    | ops.TensormapReplace
    | ops.TensormapReplaceArray
    | ops.TensormapCpFenceproxy
    | ops.FenceProxyTensormap
    | ops.CommitGroup
    | ops.WaitGroup
    | ops.WaitGroupRead
    | ops.FenceProxyAsync
    | ops.FenceMbarrierInit
    | ops.BarSync
    | ops.ClusterSync
    | ops.StoreGlobal
    | ops.Fill
    | ops.Iota
    | ops.LoadIndex
    | ops.ShareTiles
    | ops.NextTile
    | ops.MapTiles
    | ops.Mma
    | ops.TransposeTile
    | ops.ReduceTile
    | ops.StencilTile
)


def lower_op(low: Lowering, op: Plain) -> list[Make]:  # noqa: C901 - one line per op of the table
    """The closures of one op, in order; none where the op has no effect on this path."""
    match op:
        case ops.MbarrierInit():
            return [lower_barriers.init(low, op)]
        case ops.MbarrierInval():
            return [lower_barriers.inval(low, op)]
        case ops.MbarrierArrive() | ops.MbarrierArriveExpectTx() | ops.MbarrierArriveDrop():
            return [lower_barriers.arrive(low, op)]
        case ops.MbarrierExpectTx() | ops.MbarrierCompleteTx():
            return [lower_barriers.move_tx(low, op)]
        case ops.MbarrierArriveRemote() | ops.MbarrierArriveExpectTxRemote():
            return [lower_barriers.arrive_remote(low, op)]
        case ops.MbarrierWait():
            return [lower_barriers.wait(low, op)]
        case ops.MbarrierWaitPhase():
            return [lower_barriers.wait_phase(low, op)]
        case ops.MbarrierWaitParity():
            return [lower_barriers.wait_parity(low, op)]
        case ops.MbarrierTestToken():
            return [lower_barriers.test_token(low, op)]
        case ops.MbarrierTestParity():
            return [lower_barriers.test_parity(low, op)]
        case ops.TensorG2S() | ops.TensorG2SMulticast() | ops.TensorGather4():
            return [lower_copies.load(low, op)]
        case ops.TensorS2G() | ops.TensorReduce() | ops.TensorScatter4():
            return [lower_copies.store(low, op)]
        case ops.TensorPrefetch():
            return [lower_copies.prefetch(low, op)]
        case ops.BulkG2S() | ops.BulkG2SMulticast():
            return [lower_bulk.load(low, op)]
        case ops.BulkS2G() | ops.BulkReduce():
            return [lower_bulk.store(low, op)]
        case ops.BulkPrefetch():
            return [lower_bulk.prefetch(low, op)]
        case ops.BulkS2S() | ops.BulkReduceS2S():
            return [lower_bulk.send(low, op)]
        case ops.TensormapCopy() | ops.TensormapReplace() | ops.TensormapReplaceArray():
            return [lower_maps.edit(low, op)]
        case ops.TensormapCpFenceproxy():
            return lower_maps.release(low, op)
        case ops.FenceProxyTensormap():
            return [lower_maps.acquire(low, op)]
        case ops.CommitGroup():
            return lower_copies.commit(low)
        case ops.WaitGroup() | ops.WaitGroupRead():
            return lower_copies.wait_group(low, op)
        case ops.FenceProxyAsync() | ops.FenceMbarrierInit():
            return lower_access.fence(low, op)
        case ops.BarSync():
            return lower_access.bar_sync(low, op)
        case ops.ClusterSync():
            return lower_access.cluster_sync(low)
        case ops.StoreGlobal():
            return lower_access.store_global(low, op)
        case ops.Fill() | ops.Iota():
            return lower_access.write_tile(low, op)
        case ops.LoadIndex():
            return [shares.load_index(low, op)]
        case ops.ShareTiles():
            return [shares.share(low, op)]
        case ops.NextTile():
            return [shares.next_tile(low, op)]
        case ops.MapTiles():
            return lower_map.map_tiles(low, op)
        case ops.MmaZero():
            return [lower_mma.zero()]
        case ops.MmaStep():
            return [lower_mma.step(low, op)]
        case ops.MmaOut():
            return lower_mma.out(low, op)
        case ops.TransposeTile():
            return lower_reshape.transpose_tile(low, op)
        case ops.ReduceTile():
            return lower_reshape.reduce_tile(low, op)
        case ops.StencilTile():
            return lower_reshape.stencil_tile(low, op)
        case _:
            assert_never(op)
