"""Descriptors of im2col maps: what `TmaDescriptor.im2col` and `TmaDescriptor.im2col_wide` make.

A class of their own each: the hardware faults when a copy of one kind goes through a map of another, so checkers must tell them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Never, TypeAlias, final, overload

from typing_extensions import TypeVar

from oxidecopy.errors import ScopeError
from oxidecopy.typed.cache import CachePolicy
from oxidecopy.typed.dtypes import DType, HasStore, u6x16_align16b, u8
from oxidecopy.typed.geometry import A1024, D3, D4, D5, AnyBox, AnySwizzle
from oxidecopy.typed.leader import ClusterLeader, Leader
from oxidecopy.typed.map_handle import MapHandle
from oxidecopy.typed.reduce import ReduceOp
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.states import TmaBarrier
from oxidecopy.typed.symbolic import Idx
from oxidecopy.typed.tokens import TxToken

DT = TypeVar("DT", bound=DType)
_ST = TypeVar("_ST", bound=HasStore)
C = TypeVar("C", bound=tuple[Idx, ...])
SW_co = TypeVar("SW_co", bound=AnySwizzle, default=AnySwizzle, covariant=True)
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
Armed: TypeAlias = TxToken[TmaBarrier, Any]  # of any brand
# Offsets of a load by the map's rank, outermost first: of w; of h and w; of d, h and w.
O1: TypeAlias = tuple[Idx]
O2: TypeAlias = tuple[Idx, Idx]
O3: TypeAlias = tuple[Idx, Idx, Idx]


@final
class Im2colDescriptor(MapHandle[DT, C], Generic[DT, C, SW_co, Bx]):
    """An im2col map over an array of (n, [[d,] h,] w, c); `Bx` is `Box2[pixels, channels]`, what one copy moves.

    A copy starts at a filter base and walks on, pixel by pixel, over the box of bases between the corners, from image to image. Coordinates
    are (n, [[d,] h,] w, c), in elements; a start outside the box faults. A load adds `offsets`, those of a filter tap, to each base.
    """

    __slots__ = ()

    def __init__(self, _key: Never) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: object, **__: object) -> None:
            _refuse_constructor("im2col")

    # fmt: off
    @overload
    def g2s(
        self: Im2colDescriptor[DT, D3, SW_co, Bx], leader: Leader, tile: SharedArray[DT, Bx, A1024], coords: D3, token: Armed, *,
        offsets: O1, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s(
        self: Im2colDescriptor[DT, D4, SW_co, Bx], leader: Leader, tile: SharedArray[DT, Bx, A1024], coords: D4, token: Armed, *,
        offsets: O2, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s(
        self: Im2colDescriptor[DT, D5, SW_co, Bx], leader: Leader, tile: SharedArray[DT, Bx, A1024], coords: D5, token: Armed, *,
        offsets: O3, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    # fmt: on
    def g2s(
        self: Im2colDescriptor[DT, Any, Any, Bx],
        leader: Leader,
        tile: SharedArray[DT, Bx, A1024],
        coords: Any,
        token: Armed,
        *,
        offsets: Any,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """Loads the map's pixels from the base at `coords` on, each at `offsets` from its base; their bytes go to the token's barrier."""
        self._load(leader, tile, coords, token, cache_hint, offsets=offsets)

    # fmt: off
    @overload
    def g2s_multicast(
        self: Im2colDescriptor[DT, D3, SW_co, Bx], leader: ClusterLeader, tile: SharedArray[DT, Bx, A1024], coords: D3, token: Armed, *,
        offsets: O1, cta_mask: Idx, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s_multicast(
        self: Im2colDescriptor[DT, D4, SW_co, Bx], leader: ClusterLeader, tile: SharedArray[DT, Bx, A1024], coords: D4, token: Armed, *,
        offsets: O2, cta_mask: Idx, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s_multicast(
        self: Im2colDescriptor[DT, D5, SW_co, Bx], leader: ClusterLeader, tile: SharedArray[DT, Bx, A1024], coords: D5, token: Armed, *,
        offsets: O3, cta_mask: Idx, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    # fmt: on
    def g2s_multicast(
        self: Im2colDescriptor[DT, Any, Any, Bx],
        leader: ClusterLeader,
        tile: SharedArray[DT, Bx, A1024],
        coords: Any,
        token: Armed,
        *,
        offsets: Any,
        cta_mask: Idx,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """As `g2s`, into the same tile of every CTA whose bit (its cluster rank) is set in `cta_mask`; each is told the full bytes."""
        self._load(leader, tile, coords, token, cache_hint, offsets=offsets, multicast=True, cta_mask=cta_mask)

    # fmt: off
    @overload
    def s2g(
        self: Im2colDescriptor[_ST, C, Any, Bx], leader: Leader, tile: SharedArray[_ST, Bx, A1024], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def s2g(
        self: Im2colDescriptor[u6x16_align16b, C, Any, Bx], leader: Leader, tile: SharedArray[u8, Bx, A1024], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    # fmt: on
    def s2g(
        self: Im2colDescriptor[Any, C, Any, Bx],
        leader: Leader,
        tile: SharedArray[Any, Bx, A1024],
        coords: C,
        *,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """Stores `tile` to the map's pixels from the base at `coords` on, without offsets; the corners must lie inside the tensor."""
        self._store(leader, tile, coords, cache_hint)

    def reduce(
        self, op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, A1024], coords: C, *, cache_hint: CachePolicy | None = None
    ) -> None:
        """As `s2g`, combining `tile` with what is there by `op`, element by element."""
        self._reduce(op, leader, tile, coords, cache_hint)

    # fmt: off
    @overload
    def prefetch(
        self: Im2colDescriptor[DT, D3, SW_co, Bx], leader: Leader, coords: D3, *, offsets: O1, cache_hint: CachePolicy | None = ...
    ) -> None: ...
    @overload
    def prefetch(
        self: Im2colDescriptor[DT, D4, SW_co, Bx], leader: Leader, coords: D4, *, offsets: O2, cache_hint: CachePolicy | None = ...
    ) -> None: ...
    @overload
    def prefetch(
        self: Im2colDescriptor[DT, D5, SW_co, Bx], leader: Leader, coords: D5, *, offsets: O3, cache_hint: CachePolicy | None = ...
    ) -> None: ...
    # fmt: on
    def prefetch(
        self: Im2colDescriptor[DT, Any, Any, Bx], leader: Leader, coords: Any, *, offsets: Any, cache_hint: CachePolicy | None = None
    ) -> None:
        """Brings what a load at `coords` with these `offsets` would read into L2; nothing tells when it is there."""
        self._fetch(leader, coords, cache_hint, offsets=offsets)


@final
class Im2colWideDescriptor(MapHandle[DT, C], Generic[DT, C, SW_co, Bx]):
    """A map of wide im2col copies, which walk along w alone (compute capability 10.0 and newer); `Bx` is `Box2[pixels, channels]`.

    A copy starts at a filter base of one row, before the box of bases too, and walks on from image to image. `halo` pixels more come behind
    the last one, in mode "w128" behind each 32 of its 128: a plain number, 0 to 511 or 0 to 31. `offset`, 0 to 31, is that of a filter tap
    along w. There are loads and prefetches only.
    """

    __slots__ = ()

    def __init__(self, _key: Never) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: object, **__: object) -> None:
            _refuse_constructor("im2col_wide")

    def g2s(
        self,
        leader: Leader,
        tile: SharedArray[DT, Any, A1024],
        coords: C,
        token: Armed,
        *,
        halo: int = 0,
        offset: Idx = 0,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """Loads the map's pixels and the halo from the base at `coords` on; their bytes go to the token's barrier."""
        self._load(leader, tile, coords, token, cache_hint, offsets=(offset, halo))

    def g2s_multicast(
        self,
        leader: ClusterLeader,
        tile: SharedArray[DT, Any, A1024],
        coords: C,
        token: Armed,
        *,
        cta_mask: Idx,
        halo: int = 0,
        offset: Idx = 0,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """As `g2s`, into the same tile of every CTA whose bit (its cluster rank) is set in `cta_mask`; each is told the full bytes."""
        self._load(leader, tile, coords, token, cache_hint, offsets=(offset, halo), multicast=True, cta_mask=cta_mask)

    def prefetch(self, leader: Leader, coords: C, *, halo: int = 0, offset: Idx = 0, cache_hint: CachePolicy | None = None) -> None:
        """Brings what such a load at `coords` would read into L2; nothing tells when it is there."""
        self._fetch(leader, coords, cache_hint, offsets=(offset, halo))


def _refuse_constructor(factory: str) -> Never:
    refuse(
        ScopeError,
        "OX1045",
        "a descriptor is not constructed directly",
        required="a factory, which checks its parameters",
        fix=f"use `ox.TmaDescriptor.{factory}(array, ...)`",
    )
