"""Plain bulk copies: one run of bytes between an array and a tile, or from a tile to one of another CTA, without a descriptor.

Addresses and sizes are multiples of 16 bytes (measured). Nothing is clipped, filled or swizzled: what lies outside the array may not be
named, and the bytes of a tile stay in their order. A tile of any alignment will do. A run follows the innermost dimension; in an array
without gaps it goes on into the next row.
"""

from __future__ import annotations

from typing import Any, overload

from typing_extensions import TypeVar

from oxidecopy.errors import RecordError
from oxidecopy.isa import ops
from oxidecopy.isa.bulk import ALIGN, REDUCES_IN_GLOBAL, REDUCES_IN_SHARED
from oxidecopy.isa.expr import Expr
from oxidecopy.isa.ops import ArrayRef, TileRef
from oxidecopy.program.program import ArrayParam
from oxidecopy.typed.barrier import ManagedBarrier
from oxidecopy.typed.cache import CachePolicy, hint_of
from oxidecopy.typed.descriptor import Armed
from oxidecopy.typed.descriptor_checks import armed, array_of, reduction, same_type, tile_of
from oxidecopy.typed.dtypes import DType, HasAdd, i32, u32, u64
from oxidecopy.typed.geometry import D1, D2, D3, D4, D5, AnyBox
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.leader import ClusterLeader, Leader, check_leader, leader_of
from oxidecopy.typed.recorder import Recorder
from oxidecopy.typed.reduce import ReduceOp
from oxidecopy.typed.refusal import described, refuse, require, whole
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.states import Ready, TmaBarrier
from oxidecopy.typed.symbolic import Idx

DT = TypeVar("DT", bound=DType)
Bx = TypeVar("Bx", bound=AnyBox)
_CS = TypeVar("_CS", D1, D2, D3, D4, D5)
_REDUCE = "cp.reduce.async.bulk"


# ---- between an array and a tile
def bulk_g2s(
    leader: Leader,
    tile: SharedArray[DT, Any, Any],
    src: GlobalArray[DT, _CS],
    at: _CS,
    token: Armed,
    *,
    nbytes: int | None = None,
    cache_hint: CachePolicy | None = None,
) -> None:
    """Copies from element `at` of `src` on into `tile`; the bytes are reported to the token's barrier (PTX cp.async.bulk).

    Args:
        leader: who issues it.
        tile: filled from its start on.
        src: a parameter of the pipeline.
        at: element coordinates, outermost first, of the run's first element: a multiple of 16 bytes.
        token: of the arrival that announced the bytes.
        nbytes: how many, a multiple of 16; by default the whole tile.
        cache_hint: one of `ox.cache`.
    """
    what = "`bulk_g2s`"
    issuer, signal, hint = leader_of(leader, what), armed(token, what), hint_of(cache_hint)
    recorder = issuer._recorder
    param, coords, ref, size = _run(recorder, src, at, tile, nbytes, what)
    check_leader(issuer, recorder)
    signal._use(what, recorder, copies=True)
    recorder.emit(ops.BulkG2S(array=ArrayRef(param.name), coords=coords, tile=ref, nbytes=size, bar=signal._ref, hint=hint))


def bulk_g2s_multicast(
    leader: ClusterLeader,
    tile: SharedArray[DT, Any, Any],
    src: GlobalArray[DT, _CS],
    at: _CS,
    token: Armed,
    *,
    cta_mask: Idx,
    nbytes: int | None = None,
    cache_hint: CachePolicy | None = None,
) -> None:
    """As `bulk_g2s`, into the same tile of every CTA whose bit (its cluster rank) is set in `cta_mask`; each is told all bytes."""
    what = "`bulk_g2s_multicast`"
    issuer, signal, hint = leader_of(leader, what), armed(token, what), hint_of(cache_hint)
    recorder = issuer._recorder
    recorder.require_cluster(what)
    param, coords, ref, size = _run(recorder, src, at, tile, nbytes, what)
    mask = recorder.index(cta_mask, f"the CTA mask of {what}")
    check_leader(issuer, recorder)
    signal._use(what, recorder, copies=True)
    array = ArrayRef(param.name)
    recorder.emit(ops.BulkG2SMulticast(array=array, coords=coords, tile=ref, nbytes=size, bar=signal._ref, cta_mask=mask, hint=hint))


def bulk_s2g(
    leader: Leader,
    tile: SharedArray[DT, Any, Any],
    dst: GlobalArray[DT, _CS],
    at: _CS,
    *,
    nbytes: int | None = None,
    cache_hint: CachePolicy | None = None,
) -> None:
    """Copies `tile` to element `at` of `dst` and on, in the leader's open bulk group."""
    what = "`bulk_s2g`"
    issuer, hint = leader_of(leader, what), hint_of(cache_hint)
    recorder = issuer._recorder
    param, coords, ref, size = _run(recorder, dst, at, tile, nbytes, what)
    check_leader(issuer, recorder)
    recorder.emit(ops.BulkS2G(array=ArrayRef(param.name), coords=coords, tile=ref, nbytes=size, hint=hint))


def bulk_reduce(
    op: ReduceOp[DT],
    leader: Leader,
    tile: SharedArray[DT, Any, Any],
    dst: GlobalArray[DT, _CS],
    at: _CS,
    *,
    nbytes: int | None = None,
    cache_hint: CachePolicy | None = None,
) -> None:
    """Combines `tile` into `dst` from element `at` on with `op`, element by element, in the leader's open bulk group."""
    what = "`bulk_reduce`"
    issuer, hint = leader_of(leader, what), hint_of(cache_hint)
    recorder = issuer._recorder
    param, coords, ref, size = _run(recorder, dst, at, tile, nbytes, what)
    name = reduction(op, param.dtype, REDUCES_IN_GLOBAL.get(param.dtype, frozenset()), _REDUCE)
    check_leader(issuer, recorder)
    recorder.emit(ops.BulkReduce(op=name, array=ArrayRef(param.name), coords=coords, tile=ref, nbytes=size, hint=hint))


def bulk_prefetch(leader: Leader, src: GlobalArray[Any, _CS], at: _CS, *, nbytes: int, cache_hint: CachePolicy | None = None) -> None:
    """Brings `nbytes` bytes from element `at` of `src` on into L2, for a copy that comes later; nothing tells when they are there."""
    what = "`bulk_prefetch`"
    issuer, hint = leader_of(leader, what), hint_of(cache_hint)
    recorder = issuer._recorder
    param = array_of(recorder, src, what)
    coords = recorder.coordinates(at, param.rank, what)
    size = _size(nbytes, None, what)
    check_leader(issuer, recorder)
    recorder.emit(ops.BulkPrefetch(array=ArrayRef(param.name), coords=coords, nbytes=size, hint=hint))


# ---- from a tile to one of another CTA of the cluster
def bulk_s2s(
    leader: ClusterLeader,
    tile: SharedArray[DT, Bx, Any],
    into: SharedArray[DT, Bx, Any],
    bar: ManagedBarrier[Ready, TmaBarrier, Any],
    *,
    cta_rank: Idx,
    nbytes: int | None = None,
) -> None:
    """Copies `tile` to the tile `into` of cluster CTA `cta_rank`, whose barrier `bar` is told the bytes (distributed shared memory).

    Both are named as this CTA names its own: the same tile and barrier of the other CTA are meant, which it must have initialised (a
    cluster sync before). That CTA announces the bytes and waits for them, or this one announces by `bar.arrive_expect_tx_remote`. Nobody
    here is told when `tile` has been read: a cluster sync behind the other CTA's wait, or an arrival from there, says so.
    """
    what = "`bulk_s2s`"
    issuer, source, target, rank, size = _between(leader, tile, into, bar, cta_rank, nbytes, what)
    issuer._recorder.emit(ops.BulkS2S(tile=source, into=target, rank=rank, nbytes=size, bar=bar._ref()))


@overload
def bulk_reduce_s2s(
    op: ReduceOp[u32], leader: ClusterLeader, tile: SharedArray[u32, Bx, Any], into: SharedArray[u32, Bx, Any],
    bar: ManagedBarrier[Ready, TmaBarrier, Any], *, cta_rank: Idx, nbytes: int | None = ...,
) -> None: ...  # fmt: skip
@overload
def bulk_reduce_s2s(
    op: ReduceOp[i32], leader: ClusterLeader, tile: SharedArray[i32, Bx, Any], into: SharedArray[i32, Bx, Any],
    bar: ManagedBarrier[Ready, TmaBarrier, Any], *, cta_rank: Idx, nbytes: int | None = ...,
) -> None: ...  # fmt: skip
@overload
def bulk_reduce_s2s(
    op: ReduceOp[HasAdd], leader: ClusterLeader, tile: SharedArray[u64, Bx, Any], into: SharedArray[u64, Bx, Any],
    bar: ManagedBarrier[Ready, TmaBarrier, Any], *, cta_rank: Idx, nbytes: int | None = ...,
) -> None: ...  # fmt: skip
def bulk_reduce_s2s(
    op: ReduceOp[Any],
    leader: ClusterLeader,
    tile: SharedArray[Any, Any, Any],
    into: SharedArray[Any, Any, Any],
    bar: ManagedBarrier[Ready, TmaBarrier, Any],
    *,
    cta_rank: Idx,
    nbytes: int | None = None,
) -> None:
    """As `bulk_s2s`, combining `tile` into what is in the other CTA's tile, element by element (u32 and i32; u64 by `add` only)."""
    what = "`bulk_reduce_s2s`"
    issuer, source, target, rank, size = _between(leader, tile, into, bar, cta_rank, nbytes, what)
    dtype = tile._request.dtype
    name = reduction(op, dtype, REDUCES_IN_SHARED.get(dtype, frozenset()), f"{_REDUCE}, to shared memory")
    issuer._recorder.emit(ops.BulkReduceS2S(op=name, tile=source, into=target, rank=rank, nbytes=size, bar=bar._ref()))


# ---- what they check
def _run(
    recorder: Recorder, array: object, at: object, tile: object, nbytes: object, what: str
) -> tuple[ArrayParam, tuple[Expr, ...], TileRef, int]:
    """Array, place, tile and size of a copy."""
    param, made = array_of(recorder, array, what), tile_of(tile, what)
    ref, coords = made._ref(recorder), recorder.coordinates(at, param.rank, what)
    same_type(f"{what}: the tile", made._request.dtype, param.dtype)
    size = _size(nbytes, made, what)
    made._request.adopt("none")
    return param, coords, ref, size


def _between(
    leader: object, tile: object, into: object, bar: object, cta_rank: Idx, nbytes: object, what: str
) -> tuple[Leader, TileRef, TileRef, Expr, int]:
    """Who issues a copy between CTAs, its two tiles, the other's rank and the size."""
    issuer = leader_of(leader, what)
    recorder = issuer._recorder
    recorder.require_cluster(what)
    source, target = tile_of(tile, what), tile_of(into, what)
    refs = (source._ref(recorder), target._ref(recorder))
    same_type(f"{what}: the tile it goes to", target._request.dtype, source._request.dtype)
    size = min(_size(nbytes, source, what), _size(nbytes, target, what))
    rank = recorder.index(cta_rank, f"the cluster rank of {what}")
    signal = require(bar, ManagedBarrier, what, "pass the barrier that the other CTA waits on, as this CTA names its own")
    signal._require_bytes(what.strip("`"))
    check_leader(issuer, recorder)
    return issuer, *refs, rank, size


def _size(nbytes: object, tile: SharedArray[Any, Any, Any] | None, what: str) -> int:
    """Bytes of a copy: as asked for, or all of the tile."""
    most = ops.BULK_BYTES.high if tile is None else tile.nbytes
    asked = most if nbytes is None else whole(nbytes)
    if asked is None or asked % ALIGN or not 0 < asked <= most:
        refuse(
            RecordError,
            "OX1163",
            f"{what} moves whole units of 16 bytes",
            got=described(nbytes) if nbytes is not None else f"a tile of {most} bytes",
            required=f"a plain int, a multiple of {ALIGN} from {ALIGN} to {most // ALIGN * ALIGN}",
            fix="copy whole units, and the rest by plain accesses",
        )
    return asked
