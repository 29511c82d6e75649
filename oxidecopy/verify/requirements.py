"""What an op needs of the state before it may run, as a table over the ops.

`check` says what each need means; nothing here looks at a state.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from oxidecopy.isa import ops
from oxidecopy.isa.ops import Instr


class Need(Enum):
    """One requirement of one op instance."""

    # the barrier object
    FRESH = "not live, and initialised by one thread"
    LIVE = "live, and its init ordered before this op"
    REMOTE_LIVE = "as LIVE, in another CTA of the cluster"
    IDLE = "nobody uses the barrier or still may"
    # the phase an op counts in
    PHASE = "one phase only in which this op can count"
    ROOM = "at least as many pending arrivals as this op makes"
    STAYS = "a positive count after the drop"
    TX = "announced and delivered bytes in range"
    TURN = "a phase that parity names without doubt, at most one behind"
    # shared memory
    READ = "written, landed, and ordered for a generic read"
    WRITE = "free for a generic write"
    READ_ASYNC = "written, landed, fenced and ordered for the async proxy"
    WRITE_ASYNC = "free for a load"
    COVERED = "written before, as what is there is combined with what comes"
    COORDS = "coordinates that the hardware takes"
    ACQUIRED = "through a map that was released and acquired"
    UNREAD = "no copy may still go through the map that is replaced"
    # who runs it
    COMMITTED = "this thread commits groups somewhere"
    UNGUARDED = "not under the answer of a test"


def needs_of(op: Instr, *, guarded: bool) -> tuple[Need, ...]:
    """The needs of `op`, in the order they are checked; `guarded`: inside a body under the answer of a test."""
    needs = _needs(op)
    if isinstance(op, ops.Through) and op.map.slot is not None:
        needs = (*needs, Need.ACQUIRED)
    return (Need.UNGUARDED, *needs) if guarded and not _harmless(op) else needs


def _needs(op: Instr) -> tuple[Need, ...]:  # noqa: C901  one case per op
    match op:
        case ops.Scope() | ops.When() | ops.Loop() | ops.ProduceStage() | ops.ConsumeStage() | ops.LoadStoreStage():
            return ()
        case ops.Contract() | ops.ContractDrain() | ops.MmaZero():
            return ()
        case ops.MmaStep():
            return (Need.READ_ASYNC,)
        case ops.MmaOut():
            return (Need.WRITE,)
        case ops.MbarrierInit():
            return (Need.FRESH,)
        case ops.MbarrierInval():
            return (Need.LIVE, Need.IDLE)
        case ops.MbarrierArrive():
            return (Need.LIVE, Need.PHASE, Need.ROOM)
        case ops.MbarrierArriveExpectTx():
            return (Need.LIVE, Need.PHASE, Need.ROOM, Need.TX)
        case ops.MbarrierExpectTx() | ops.MbarrierCompleteTx():
            return (Need.LIVE, Need.PHASE, Need.TX)
        case ops.MbarrierArriveDrop():
            return (Need.LIVE, Need.PHASE, Need.ROOM, Need.STAYS)
        case ops.MbarrierArriveRemote():
            return (Need.REMOTE_LIVE, Need.PHASE, Need.ROOM)
        case ops.MbarrierArriveExpectTxRemote():
            return (Need.REMOTE_LIVE, Need.PHASE, Need.ROOM, Need.TX)
        case ops.MbarrierWait() | ops.MbarrierWaitPhase() | ops.MbarrierWaitParity():
            return (Need.LIVE, Need.TURN)
        case ops.MbarrierTestToken() | ops.MbarrierTestParity():
            return (Need.LIVE,)
        case ops.TensorG2S() | ops.TensorGather4() | ops.BulkG2S():
            return (Need.LIVE, Need.PHASE, Need.TX, Need.COORDS, Need.WRITE_ASYNC)
        case ops.TensorG2SMulticast() | ops.BulkG2SMulticast():
            return (Need.REMOTE_LIVE, Need.PHASE, Need.TX, Need.COORDS, Need.WRITE_ASYNC)
        case ops.BulkS2S():
            return (Need.REMOTE_LIVE, Need.PHASE, Need.TX, Need.READ_ASYNC, Need.WRITE_ASYNC)
        case ops.BulkReduceS2S():
            return (Need.REMOTE_LIVE, Need.PHASE, Need.TX, Need.READ_ASYNC, Need.WRITE_ASYNC, Need.COVERED)
        case ops.TensorS2G() | ops.TensorReduce() | ops.TensorScatter4() | ops.BulkS2G() | ops.BulkReduce():
            return (Need.COORDS, Need.READ_ASYNC)
        case ops.TensorPrefetch() | ops.BulkPrefetch():
            return (Need.COORDS,)
        case ops.TensormapCopy():
            return (Need.WRITE,)
        case ops.TensormapReplace():
            return (Need.READ, Need.WRITE)
        case ops.TensormapReplaceArray():
            return (Need.COORDS, Need.READ, Need.WRITE)
        case ops.TensormapCpFenceproxy():
            return (Need.READ, Need.UNREAD)
        case ops.FenceProxyTensormap():
            return ()
        case ops.WaitGroup() | ops.WaitGroupRead():
            return (Need.COMMITTED,)
        case ops.CommitGroup() | ops.FenceProxyAsync() | ops.FenceMbarrierInit() | ops.BarSync() | ops.ClusterSync():
            return ()
        case ops.StoreGlobal():
            return (Need.READ,)
        case ops.LoadIndex():
            return (Need.COORDS,)
        case ops.ShareTiles() | ops.NextTile():
            return ()
        case ops.Fill() | ops.Iota():
            return (Need.WRITE,)
        case ops.MapTiles() | ops.TransposeTile() | ops.ReduceTile() | ops.StencilTile():
            return (Need.READ, Need.WRITE)
        case _:
            assert_never(op)


def _harmless(op: Instr) -> bool:  # noqa: C901  one case per op
    """True for ops that may run or not without changing what any thread waits for (design: control flow must not depend on answers)."""
    match op:
        case ops.StoreGlobal() | ops.Fill() | ops.Iota() | ops.FenceProxyAsync():
            return True
        case ops.MapTiles() | ops.TransposeTile() | ops.ReduceTile() | ops.StencilTile():
            return True
        case ops.LoadIndex() | ops.NextTile() | ops.ShareTiles():
            return True
        case ops.MbarrierTestToken() | ops.MbarrierTestParity():
            return True
        case ops.MbarrierWait() | ops.MbarrierWaitPhase() | ops.MbarrierWaitParity():
            return True
        case ops.Scope() | ops.When() | ops.Loop() | ops.ProduceStage() | ops.ConsumeStage() | ops.LoadStoreStage():
            return True
        case ops.MbarrierInit() | ops.MbarrierInval() | ops.MbarrierArrive() | ops.MbarrierArriveExpectTx() | ops.MbarrierExpectTx():
            return False
        case ops.MbarrierCompleteTx() | ops.MbarrierArriveDrop() | ops.MbarrierArriveRemote() | ops.MbarrierArriveExpectTxRemote():
            return False
        case ops.TensorPrefetch() | ops.BulkPrefetch():
            return True
        case ops.TensorG2S() | ops.TensorG2SMulticast() | ops.TensorS2G() | ops.TensorReduce() | ops.CommitGroup():
            return False
        case ops.TensorGather4() | ops.TensorScatter4() | ops.BulkG2S() | ops.BulkG2SMulticast() | ops.BulkS2G() | ops.BulkReduce():
            return False
        case ops.BulkS2S() | ops.BulkReduceS2S():
            return False
        case ops.TensormapCopy() | ops.TensormapReplace() | ops.TensormapReplaceArray():
            return False
        case ops.TensormapCpFenceproxy() | ops.FenceProxyTensormap():
            return False
        case ops.WaitGroup() | ops.WaitGroupRead() | ops.FenceMbarrierInit() | ops.BarSync() | ops.ClusterSync():
            return False
        case ops.Contract() | ops.ContractDrain() | ops.MmaZero() | ops.MmaStep() | ops.MmaOut():
            return False
        case _:
            assert_never(op)
