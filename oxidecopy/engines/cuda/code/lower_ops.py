"""What each op of a program becomes, for one agent. Total over the op table: a new op does not type-check until it has a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.contract import contract, drain
from oxidecopy.engines.cuda.code.elements import code_of
from oxidecopy.engines.cuda.code.extra import KINDS, coordinates, extra, is_extra
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.maps import acquire, edit, release
from oxidecopy.engines.cuda.code.nodes import Node, Op
from oxidecopy.engines.cuda.code.reshape import reshape_records
from oxidecopy.engines.cuda.code.tile_maps import map_records, share_of
from oxidecopy.engines.cuda.code.values import Lin, Test
from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import REDUCE_OPS

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.lower import AgentLowering

Local: TypeAlias = ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop | ops.MbarrierExpectTx | ops.MbarrierCompleteTx
Copy: TypeAlias = ops.TensorG2S | ops.TensorG2SMulticast | ops.TensorS2G | ops.TensorReduce
Extra: TypeAlias = ops.TensorPrefetch | ops.TensorGather4 | ops.TensorScatter4 | ops.BulkCopy | ops.BulkPrefetch | ops.Send
Wait: TypeAlias = ops.MbarrierWait | ops.MbarrierWaitPhase | ops.MbarrierWaitParity
Ask: TypeAlias = ops.MbarrierTestToken | ops.MbarrierTestParity
Group: TypeAlias = ops.CommitGroup | ops.WaitGroup | ops.WaitGroupRead
Plain: TypeAlias = (
    ops.MbarrierInit
    | ops.MbarrierInval
    | Local
    | ops.MbarrierArriveRemote
    | ops.MbarrierArriveExpectTxRemote
    | Wait
    | Ask
    | Copy
    | Extra
    | ops.Edit
    | ops.TensormapCpFenceproxy
    | ops.FenceProxyTensormap
    | Group
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
    | ops.Contract
    | ops.ContractDrain
)


def lower_op(low: AgentLowering, op: Plain, where: Where) -> list[Node]:  # noqa: C901 - one line per op of the table
    """The records of one op; none where it has no effect for this agent."""
    match op:
        case ops.MbarrierInit():
            return [Op(op=DeviceOp.MBARRIER_INIT, where=where, operands=((0, low.barrier(op.bar)),), imms=((1, op.count), (2, 1)))]
        case ops.MbarrierInval():
            return [Op(op=DeviceOp.MBARRIER_INVAL, where=where, operands=((0, low.barrier(op.bar)),))]
        case (
            ops.MbarrierArrive()
            | ops.MbarrierArriveDrop()
            | ops.MbarrierArriveExpectTx()
            | ops.MbarrierExpectTx()
            | ops.MbarrierCompleteTx()
        ):
            return [_local(low, op, where)]
        case ops.MbarrierArriveRemote() | ops.MbarrierArriveExpectTxRemote():
            return [_remote(low, op, where)]
        case ops.MbarrierWait() | ops.MbarrierWaitPhase() | ops.MbarrierWaitParity():
            return _wait(low, op, where)
        case ops.MbarrierTestToken() | ops.MbarrierTestParity():
            return [_ask(low, op, where)]
        case ops.TensorG2S() | ops.TensorG2SMulticast() | ops.TensorS2G() | ops.TensorReduce():
            return [extra(low, op, where) if is_extra(low, op) else _copy(low, op, where)]
        case (
            ops.TensorPrefetch()
            | ops.TensorGather4()
            | ops.TensorScatter4()
            | ops.BulkG2S()
            | ops.BulkG2SMulticast()
            | ops.BulkS2G()
            | ops.BulkReduce()
            | ops.BulkPrefetch()
            | ops.BulkS2S()
            | ops.BulkReduceS2S()
        ):
            return [extra(low, op, where)]
        case ops.TensormapCopy() | ops.TensormapReplace() | ops.TensormapReplaceArray():
            return edit(low, op, where)
        case ops.TensormapCpFenceproxy():
            return release(low, op, where)
        case ops.FenceProxyTensormap():
            return [acquire(low, op, where)]
        case ops.CommitGroup() | ops.WaitGroup() | ops.WaitGroupRead():
            return _group(low, op, where)
        case ops.FenceProxyAsync():
            return [Op(op=DeviceOp.FENCE_PROXY_ASYNC, where=where)]
        case ops.FenceMbarrierInit():
            return [Op(op=DeviceOp.FENCE_MBARRIER_INIT, where=where)]
        case ops.BarSync():
            return _bar_sync(low, op, where)
        case ops.ClusterSync():
            return [Op(op=DeviceOp.CLUSTER_SYNC, where=where)]
        case ops.StoreGlobal():
            return [_store_global(low, op, where)]
        case ops.Fill() | ops.Iota():
            return [_write(low, op, where)]
        case ops.MapTiles():
            return list(map_records(low, op, where))
        case ops.TransposeTile() | ops.ReduceTile() | ops.StencilTile():
            return list(reshape_records(low, op, where))
        case ops.LoadIndex():
            return [_load_index(low, op, where)]
        case ops.ShareTiles():
            low.share_tiles(op)
            return []
        case ops.NextTile():
            low.next_tile(op)
            return []
        case ops.Contract():
            return [contract(low, op, where)]
        case ops.ContractDrain():
            return [drain(low, op, where)]
        case ops.MmaZero() | ops.MmaStep() | ops.MmaOut():
            low.refused.append(refusals.contraction(where, f"`{op.mnemonic}` stands by itself"))
            return []
        case _:
            assert_never(op)


# ---- mbarriers
_LOCAL: Final[dict[type[Local], DeviceOp]] = {
    ops.MbarrierArrive: DeviceOp.MBARRIER_ARRIVE,
    ops.MbarrierArriveDrop: DeviceOp.MBARRIER_ARRIVE_DROP,
    ops.MbarrierArriveExpectTx: DeviceOp.MBARRIER_ARRIVE_EXPECT_TX,
    ops.MbarrierExpectTx: DeviceOp.MBARRIER_EXPECT_TX,
    ops.MbarrierCompleteTx: DeviceOp.MBARRIER_COMPLETE_TX,
}


def _local(low: AgentLowering, op: Local, where: Where) -> Op:
    made = Op(op=_LOCAL[type(op)], where=where, operands=((0, low.barrier(op.bar)),))
    if isinstance(op, ops.MbarrierArriveExpectTx | ops.MbarrierExpectTx | ops.MbarrierCompleteTx):
        made.imms = ((1, op.nbytes),)
    if isinstance(op, ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop):
        _carry(low, made, op.token, makes=True)
    return made


def _carry(low: AgentLowering, made: Op, token: int, *, makes: bool) -> Op:
    """Says where the state of a token is put or found, when nothing else tells its phase."""
    tokens = low.shared.tokens
    if tokens is None or token not in tokens.unknown:
        return made
    made.flags, made.kept, where = tokens.places(token, low.me, makes=makes)
    if made.flags:
        made.imms = (*made.imms, *where)
        made.exact = ((STAMP, low.stamp),)
        low.answers.update(made.kept)
    return made


def _remote(low: AgentLowering, op: ops.MbarrierArriveRemote | ops.MbarrierArriveExpectTxRemote, where: Where) -> Op:
    operands = ((0, low.barrier(op.bar)), (1, low.value(op.rank)))
    if isinstance(op, ops.MbarrierArriveRemote):
        return Op(op=DeviceOp.MBARRIER_ARRIVE_REMOTE, where=where, operands=operands)
    return Op(op=DeviceOp.MBARRIER_ARRIVE_EXPECT_TX_REMOTE, where=where, operands=operands, imms=((2, op.nbytes),))


def _wait(low: AgentLowering, op: Wait, where: Where) -> list[Node]:
    at = low.barrier(op.bar)
    match op:
        case ops.MbarrierWait(tokens=tokens):  # tokens of one phase are one wait
            carried = [token for token in tokens if low.carries(token)]
            phases = list(dict.fromkeys([low.phase(token) for token in tokens if token not in carried]))
            waits = [Op(op=DeviceOp.MBARRIER_WAIT_PHASE, where=where, operands=((0, at), (1, phase))) for phase in phases]
            return [*waits, *[_wait_token(low, at, token, where) for token in carried]]
        case ops.MbarrierWaitPhase(phase=phase_of):
            phase = low.value(phase_of)
            passes = low.values.interval(phase)[1] < 0
            return [] if passes else [Op(op=DeviceOp.MBARRIER_WAIT_PHASE, where=where, operands=((0, at), (1, phase)))]
        case ops.MbarrierWaitParity(parity=parity):
            return [Op(op=DeviceOp.MBARRIER_WAIT_PARITY, where=where, operands=((0, at), (1, low.parity(parity))))]
        case _:
            assert_never(op)


def _wait_token(low: AgentLowering, at: Lin, token: int, where: Where) -> Op:
    return _carry(low, Op(op=DeviceOp.MBARRIER_WAIT_TOKEN, where=where, operands=((0, at),)), token, makes=False)


def _ask(low: AgentLowering, op: Ask, where: Where) -> Op:
    if isinstance(op, ops.MbarrierTestToken) and low.carries(op.token):
        answer = Test("answer", register=op.pred)
        low.answers.add(answer)
        aux, at = int(op.form == "test_wait"), low.barrier(op.bar)
        made = Op(op=DeviceOp.MBARRIER_TEST_TOKEN, where=where, aux=aux, operands=((0, at),), result=answer)
        return _carry(low, made, op.token, makes=False)
    parity = low.phase(op.token) if isinstance(op, ops.MbarrierTestToken) else low.parity(op.parity)
    operands = ((0, low.barrier(op.bar)), (1, parity))
    answer = Test("answer", register=op.pred)
    low.answers.add(answer)
    return Op(op=DeviceOp.MBARRIER_TEST_PARITY, where=where, aux=int(op.form == "test_wait"), operands=operands, result=answer)


# ---- tensor copies
STAMP: Final = 7


def _copy(low: AgentLowering, op: Copy, where: Where) -> Op:
    if low.threads > 1:
        low.refused.append(refusals.together(where, str(low.kind)))
    operands: list[tuple[int, Lin]] = [(0, low.tile(op.tile))]
    flags = 0
    match op:
        case ops.TensorG2S():
            operands.append((1, low.barrier(op.bar)))
        case ops.TensorG2SMulticast():
            operands += [(1, low.barrier(op.bar)), (2, low.value(op.cta_mask))]
        case ops.TensorReduce():
            flags = REDUCE_OPS.index(op.op)
        case ops.TensorS2G():
            pass
    return Op(
        op=KINDS[type(op)],
        where=where,
        aux=len(op.coords),
        slot=low.map(op.map),
        flags=flags,
        operands=tuple(operands),
        exact=coordinates(low, op.coords),
    )


def _group(low: AgentLowering, op: Group, where: Where) -> list[Node]:
    if low.threads > 1:
        return []  # only single threads copy, so its groups are empty
    match op:
        case ops.CommitGroup():
            return [Op(op=DeviceOp.COMMIT_GROUP, where=where)]
        case ops.WaitGroup():
            return [Op(op=DeviceOp.WAIT_GROUP, where=where, imms=((0, op.pending),))]
        case ops.WaitGroupRead():
            return [Op(op=DeviceOp.WAIT_GROUP_READ, where=where, imms=((0, op.pending),))]
        case _:
            assert_never(op)


def _bar_sync(low: AgentLowering, op: ops.BarSync, where: Where) -> list[Node]:
    lanes = low.lanes_at(op)
    if lanes == limits.WARP:  # one thread has nobody to wait for
        return [Op(op=DeviceOp.WARP_SYNC, where=where)] if low.threads > 1 else []
    return [Op(op=DeviceOp.BAR_SYNC, where=where, imms=((0, low.shared.cast.numbers[op.number]), (1, lanes)))]


# ---- plain accesses
def _store_global(low: AgentLowering, op: ops.StoreGlobal, where: Where) -> Op:
    return Op(
        op=DeviceOp.STORE_GLOBAL,
        where=where,
        aux=len(op.coords),
        map=low.array(op.array.name),
        operands=((0, low.tile(op.tile)),),
        exact=coordinates(low, op.coords),
        imms=share_of(low.share),
        tail=low.layout_record(op.tile),
    )


def _write(low: AgentLowering, op: ops.Fill | ops.Iota, where: Where) -> Op:
    dtype = low.program.tiles[op.tile.tile].dtype
    tile, tail = ((0, low.tile(op.tile)),), low.layout_record(op.tile)
    if isinstance(op, ops.Iota):
        return Op(op=DeviceOp.IOTA, where=where, operands=tile, imms=((1, op.axis), *share_of(low.share)), tail=tail)
    words = low.words
    if isinstance(op.value, ops.ScalarRef):
        word = words.scalar(op.value.name, dtype, cast=False)
    else:
        word = words.number(op.value, dtype, cast=False)
    return Op(op=DeviceOp.FILL, where=where, operands=tile, imms=((1, word), *share_of(low.share)), tail=tail)


def _load_index(low: AgentLowering, op: ops.LoadIndex, where: Where) -> Op:
    operands = ((0, low.value(op.index)), (1, low.value(op.below)))
    dtype = low.program.arrays[op.array.name].dtype
    return Op(
        op=DeviceOp.LOAD_INDEX, where=where, aux=code_of(dtype), map=low.array(op.array.name), operands=operands, result=low.index_of(op)
    )
