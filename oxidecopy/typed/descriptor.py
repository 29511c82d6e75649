"""`TmaDescriptor`: a tensor map on the host, and the handle that issues its copies while a pipeline is recorded.

The type says element type, rank (as the coordinates' tuple type), swizzle and box. The box is invariant with default Any: with covariant
boxes a checker would join those of descriptor and tile and accept any pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, Never, TypeAlias, final, overload

from typing_extensions import TypeVar

from oxidecopy.errors import ScopeError
from oxidecopy.isa import expr, ops
from oxidecopy.program.tensor_map import IM2COL
from oxidecopy.typed.cache import CachePolicy, hint_of
from oxidecopy.typed.descriptor_checks import (
    armed,
    device_array,
    four_rows,
    gathered,
    slices_of,
    source_of,
    stored,
    swizzle_mode,
    wide_mode,
)
from oxidecopy.typed.dtypes import DType, HasStore, u6x16_align16b, u8
from oxidecopy.typed.geometry import (
    A128,
    A256,
    A512,
    A1024,
    D1,
    D2,
    D3,
    D4,
    D5,
    AnyBox,
    AnySwizzle,
    Box1,
    Box2,
    Box3,
    Box4,
    Box5,
    Swizzle32B,
    Swizzle64B,
    SwizzleNone,
    box_extents,
)
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.im2col import Im2colDescriptor, Im2colWideDescriptor
from oxidecopy.typed.leader import ClusterLeader, Leader, check_leader, leader_of
from oxidecopy.typed.map_handle import MapHandle
from oxidecopy.typed.reduce import ReduceOp
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.states import TmaBarrier
from oxidecopy.typed.symbolic import Idx
from oxidecopy.typed.tiled_map import Choices, build_im2col_map, build_tensor_map
from oxidecopy.typed.tokens import TxToken

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
SW_co = TypeVar("SW_co", bound=AnySwizzle, default=AnySwizzle, covariant=True)
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
# A static factory needs type variables of its own: with the class's, pyright and ty answer TmaDescriptor[Unknown, ...].
_ST = TypeVar("_ST", bound=HasStore)
_D1 = TypeVar("_D1", bound=DType)
_C1 = TypeVar("_C1", D3, D4, D5)
_SW = TypeVar("_SW", bound=AnySwizzle, default=SwizzleNone)
_N0 = TypeVar("_N0", bound=int)
_N1 = TypeVar("_N1", bound=int)
_N2 = TypeVar("_N2", bound=int)
_N3 = TypeVar("_N3", bound=int)
_N4 = TypeVar("_N4", bound=int)

Armed: TypeAlias = TxToken[TmaBarrier, Any]  # of any brand
Rows: TypeAlias = tuple[Idx, Idx, Idx, Idx]  # of a gather or scatter
L2Promotion = Literal[0, 64, 128, 256]
OobFill = Literal["zero", "nan"]
WideMode = Literal["w", "w128"]


@final
class TmaDescriptor(MapHandle[DT, C], Generic[DT, C, SW_co, Bx]):
    """A tiled tensor map over an array; `tiled` makes one. The factories of the other kinds are here, too.

    On the host it holds the map's parameters (`tensor_map`) and keeps its array alive. Inside a pipeline it issues copies: coordinates are
    outermost first, in elements (never in boxes); the innermost one times the element size must be a multiple of 16 bytes (measured).
    """

    __slots__ = ()

    def __init__(self, _key: Never) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: object, **__: object) -> None:
            refuse(
                ScopeError,
                "OX1045",
                "a descriptor is not constructed directly",
                required="a factory, which checks its parameters",
                fix="use `ox.TmaDescriptor.tiled(array, box=...)`",
            )

    # ---- host side
    # fmt: off  # ten overloads of one shape: three lines each are easier to compare than ten
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D1],
        *,
        box: type[Box1[_N0]],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D1, _SW, Box1[_N0]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D1],
        *,
        box: tuple[int],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D1, _SW, Box1[Any]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D2],
        *,
        box: type[Box2[_N0, _N1]],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D2, _SW, Box2[_N0, _N1]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D2],
        *,
        box: tuple[int, int],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D2, _SW, Box2[Any, Any]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D3],
        *,
        box: type[Box3[_N0, _N1, _N2]],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D3, _SW, Box3[_N0, _N1, _N2]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D3],
        *,
        box: tuple[int, int, int],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D3, _SW, Box3[Any, Any, Any]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D4],
        *,
        box: type[Box4[_N0, _N1, _N2, _N3]],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D4, _SW, Box4[_N0, _N1, _N2, _N3]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D4],
        *,
        box: tuple[int, int, int, int],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D4, _SW, Box4[Any, Any, Any, Any]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D5],
        *,
        box: type[Box5[_N0, _N1, _N2, _N3, _N4]],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D5, _SW, Box5[_N0, _N1, _N2, _N3, _N4]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D5],
        *,
        box: tuple[int, int, int, int, int],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D5, _SW, Box5[Any, Any, Any, Any, Any]]: ...
    # fmt: on
    @staticmethod
    def tiled(
        a: GlobalArray[Any, Any],
        *,
        box: Any = None,
        swizzle: Any = SwizzleNone,
        element_strides: Any = None,
        l2_promotion: int = 128,
        oob_fill: str = "zero",
    ) -> TmaDescriptor[Any, Any, Any, Any]:
        """A tiled map over `a` (cuTensorMapEncodeTiled).

        Args:
            a: the array; its innermost dimension must be dense, other strides multiples of 16 bytes (`dev.array(x, pad=True)`).
            box: extents of one copy in elements, outermost first: a tuple, or a type such as `Box2[Literal[64], Literal[32]]`.
            swizzle: `SwizzleNone`, `Swizzle32B`, `Swizzle64B` or `Swizzle128B`.
            element_strides: take every s-th element of a dimension, 1 to 8 each, innermost 1.
            l2_promotion: bytes L2 fetches at least (0, 64, 128, 256); speed only.
            oob_fill: what loads put where the box leaves the array: "zero", or "nan" for float types.

        Raises:
            DescriptorError: with every broken rule, its bound and the cheapest fix.
        """
        array = device_array(a)
        choices = _choices(array, swizzle, element_strides, l2_promotion, oob_fill)
        return TmaDescriptor._on_host(array, build_tensor_map(source_of(array), choices, box_extents(box) or box))

    # fmt: off  # as above
    @overload
    @staticmethod
    def interleaved(
        a: GlobalArray[_D1, D4],
        *,
        box: tuple[int, int, int],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D3, _SW, Any]: ...
    @overload
    @staticmethod
    def interleaved(
        a: GlobalArray[_D1, D5],
        *,
        box: tuple[int, int, int, int],
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D4, _SW, Any]: ...
    # fmt: on
    @staticmethod
    def interleaved(
        a: GlobalArray[Any, Any],
        *,
        box: Any = None,
        swizzle: Any = SwizzleNone,
        element_strides: Any = None,
        l2_promotion: int = 128,
        oob_fill: str = "zero",
    ) -> TmaDescriptor[Any, Any, Any, Any]:
        """A tiled map over slices of channels: an array of (batch, slices, [h,] w, channels) whose channels are 16 or 32 bytes together.

        The map has all dimensions but the last: one index of w is a pixel of one slice. A copy moves one slice, whatever the box says, as
        rows of w * channels elements. An ordinary map of one dimension more says the same without this; it is here for completeness.

        Args:
            a: the array, channels innermost and dense: NC/8HWC8 at 2 bytes for 16, NC/16HWC16 for 32.
            box: extents of one copy in (batch, slices, [h,] w), slices 1.
            swizzle: as in `tiled`; a row of the box is a multiple of its span.
            element_strides: as in `tiled`, but that of w counts as well.
            l2_promotion: as in `tiled`.
            oob_fill: as in `tiled`.

        Raises:
            DescriptorError: with every broken rule, its bound and the cheapest fix.
        """
        array = device_array(a)
        choices = _choices(array, swizzle, element_strides, l2_promotion, oob_fill)
        return TmaDescriptor._on_host(array, build_tensor_map(slices_of(array), choices, box))

    # fmt: off  # as above
    @overload
    @staticmethod
    def im2col(
        a: GlobalArray[_D1, D3],
        *,
        lower: tuple[int],
        upper: tuple[int],
        channels: int,
        pixels: int,
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> Im2colDescriptor[_D1, D3, _SW, Box2[Any, Any]]: ...
    @overload
    @staticmethod
    def im2col(
        a: GlobalArray[_D1, D4],
        *,
        lower: tuple[int, int],
        upper: tuple[int, int],
        channels: int,
        pixels: int,
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> Im2colDescriptor[_D1, D4, _SW, Box2[Any, Any]]: ...
    @overload
    @staticmethod
    def im2col(
        a: GlobalArray[_D1, D5],
        *,
        lower: tuple[int, int, int],
        upper: tuple[int, int, int],
        channels: int,
        pixels: int,
        swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int, int] | None = ...,
        l2_promotion: L2Promotion = ...,
        oob_fill: OobFill = ...,
    ) -> Im2colDescriptor[_D1, D5, _SW, Box2[Any, Any]]: ...
    # fmt: on
    @staticmethod
    def im2col(  # as many as the driver's call has
        a: GlobalArray[Any, Any],
        *,
        lower: Any = None,
        upper: Any = None,
        channels: Any = None,
        pixels: Any = None,
        swizzle: Any = SwizzleNone,
        element_strides: Any = None,
        l2_promotion: int = 128,
        oob_fill: str = "zero",
    ) -> Im2colDescriptor[Any, Any, Any, Any]:
        """An im2col map over `a`, an array of (n, w, c), (n, h, w, c) or (n, d, h, w, c) (cuTensorMapEncodeIm2col).

        For a filter of r taps, dilation d and padding p before and after: `lower` is -p and `upper` p - (r - 1) * d, for each dimension;
        the element strides are those of the convolution, and the offset of tap i is i * d.

        Args:
            a: the array, channels innermost and dense.
            lower: where the box of filter bases begins in each spatial dimension, outermost first; negative inside the padding.
            upper: where it ends, counted from the last element of each dimension.
            channels: elements of each pixel that one copy moves, 1 to 256.
            pixels: pixels that one copy moves, 1 to 1024.
            swizzle: as in `tiled`; its span bounds the bytes of `channels`.
            element_strides: steps of the walk, 1 to 8 each, innermost 1; they do not change how many pixels are moved.
            l2_promotion: as in `tiled`.
            oob_fill: as in `tiled`.

        Raises:
            DescriptorError: with every broken rule, its bound and the cheapest fix.
        """
        array = device_array(a)
        choices = _choices(array, swizzle, element_strides, l2_promotion, oob_fill)
        made = build_im2col_map(source_of(array), choices, mode=IM2COL, lower=lower, upper=upper, channels=channels, pixels=pixels)
        return Im2colDescriptor._on_host(array, made)

    @staticmethod
    def im2col_wide(  # noqa: PLR0913  # as many as the driver's call has
        a: GlobalArray[_D1, _C1],
        *,
        lower: int,
        upper: int,
        channels: int,
        pixels: int = 128,
        mode: WideMode = "w",
        swizzle: type[_SW],
        element_strides: tuple[int, ...] | None = None,
        l2_promotion: L2Promotion = 128,
        oob_fill: OobFill = "zero",
    ) -> Im2colWideDescriptor[_D1, _C1, _SW, Box2[Any, Any]]:
        """A map of wide im2col copies, which walk along w alone (cuTensorMapEncodeIm2colWide; compute capability 10.0 and newer).

        Args:
            a: as in `im2col`.
            lower: where the filter bases begin along w.
            upper: where they end, counted from the last element.
            channels: as in `im2col`.
            pixels: as in `im2col`; in mode "w128" always 128.
            mode: "w", or "w128" for rows of 128 pixels (PTX .im2col::w and .im2col::w::128).
            swizzle: `Swizzle64B`, `Swizzle128B` or `Swizzle128BAtom32B`.
            element_strides: as in `im2col`; only that of w counts.
            l2_promotion: as in `tiled`.
            oob_fill: as in `tiled`.

        Raises:
            DescriptorError: with every broken rule, its bound and the cheapest fix.
        """
        array = device_array(a)
        choices = _choices(array, swizzle, element_strides, l2_promotion, oob_fill)
        made = build_im2col_map(
            source_of(array), choices, mode=wide_mode(mode), lower=(lower,), upper=(upper,), channels=channels, pixels=pixels
        )
        return Im2colWideDescriptor._on_host(array, made)

    # ---- copies
    # fmt: off
    @overload
    def g2s(
        self: TmaDescriptor[DT, C, SwizzleNone, Bx], leader: Leader, tile: SharedArray[DT, Bx, A128], coords: C, token: Armed, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s(
        self: TmaDescriptor[DT, C, Swizzle32B, Bx], leader: Leader, tile: SharedArray[DT, Bx, A256], coords: C, token: Armed, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s(
        self: TmaDescriptor[DT, C, Swizzle64B, Bx], leader: Leader, tile: SharedArray[DT, Bx, A512], coords: C, token: Armed, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s(
        self, leader: Leader, tile: SharedArray[DT, Bx, A1024], coords: C, token: Armed, *, cache_hint: CachePolicy | None = ...
    ) -> None: ...
    # fmt: on
    def g2s(
        self, leader: Leader, tile: SharedArray[DT, Bx, Any], coords: C, token: Armed, *, cache_hint: CachePolicy | None = None
    ) -> None:
        """Loads the box at `coords` into `tile`; its bytes are reported to the token's barrier (PTX cp.async.bulk.tensor).

        `cache_hint` is one of `ox.cache`: how long L2 keeps what it reads.
        """
        self._load(leader, tile, coords, token, cache_hint)

    # fmt: off
    @overload
    def g2s_multicast(
        self: TmaDescriptor[DT, C, SwizzleNone, Bx], leader: ClusterLeader, tile: SharedArray[DT, Bx, A128], coords: C, token: Armed, *,
        cta_mask: Idx, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s_multicast(
        self: TmaDescriptor[DT, C, Swizzle32B, Bx], leader: ClusterLeader, tile: SharedArray[DT, Bx, A256], coords: C, token: Armed, *,
        cta_mask: Idx, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s_multicast(
        self: TmaDescriptor[DT, C, Swizzle64B, Bx], leader: ClusterLeader, tile: SharedArray[DT, Bx, A512], coords: C, token: Armed, *,
        cta_mask: Idx, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def g2s_multicast(
        self, leader: ClusterLeader, tile: SharedArray[DT, Bx, A1024], coords: C, token: Armed, *,
        cta_mask: Idx, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    # fmt: on
    def g2s_multicast(
        self,
        leader: ClusterLeader,
        tile: SharedArray[DT, Bx, Any],
        coords: C,
        token: Armed,
        *,
        cta_mask: Idx,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """As `g2s`, into the same tile of every CTA whose bit (its cluster rank) is set in `cta_mask`; each is told the full bytes."""
        self._load(leader, tile, coords, token, cache_hint, multicast=True, cta_mask=cta_mask)

    # fmt: off
    @overload
    def s2g(
        self: TmaDescriptor[_ST, C, SwizzleNone, Bx], leader: Leader, tile: SharedArray[_ST, Bx, A128], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def s2g(
        self: TmaDescriptor[_ST, C, Swizzle32B, Bx], leader: Leader, tile: SharedArray[_ST, Bx, A256], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def s2g(
        self: TmaDescriptor[_ST, C, Swizzle64B, Bx], leader: Leader, tile: SharedArray[_ST, Bx, A512], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def s2g(
        self: TmaDescriptor[_ST, C, Any, Bx], leader: Leader, tile: SharedArray[_ST, Bx, A1024], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def s2g(
        self: TmaDescriptor[u6x16_align16b, C, Any, Bx], leader: Leader, tile: SharedArray[u8, Bx, A1024], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    # fmt: on
    def s2g(
        self: TmaDescriptor[Any, C, Any, Bx],
        leader: Leader,
        tile: SharedArray[Any, Bx, Any],
        coords: C,
        *,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """Stores `tile` to the box at `coords` (none negative), in the leader's open bulk group.

        Through a descriptor of `ox.u6x16_align16b` the tile is one of bytes, with one value of 6 bits in each.
        """
        self._store(leader, tile, coords, cache_hint)

    # fmt: off
    @overload
    def reduce(
        self: TmaDescriptor[DT, C, SwizzleNone, Bx], op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, A128], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def reduce(
        self: TmaDescriptor[DT, C, Swizzle32B, Bx], op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, A256], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def reduce(
        self: TmaDescriptor[DT, C, Swizzle64B, Bx], op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, A512], coords: C, *,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def reduce(
        self, op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, A1024], coords: C, *, cache_hint: CachePolicy | None = ...
    ) -> None: ...
    # fmt: on
    def reduce(
        self, op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, Any], coords: C, *, cache_hint: CachePolicy | None = None
    ) -> None:
        """Combines `tile` into the box at `coords` with `op`, element by element, in the leader's open bulk group."""
        self._reduce(op, leader, tile, coords, cache_hint)

    def prefetch(self, leader: Leader, coords: C, *, cache_hint: CachePolicy | None = None) -> None:
        """Brings the box at `coords` into L2, for a load that comes later; nothing tells when it is there."""
        self._fetch(leader, coords, cache_hint)

    # ---- four rows at once (compute capability 10.0 and newer)
    def gather4(
        self: TmaDescriptor[DT, D2, SW_co, Box2[Literal[1], _N1]],
        leader: Leader,
        tile: SharedArray[DT, Box2[Literal[4], _N1], A1024],
        rows: Rows,
        column: Idx,
        token: Armed,
        *,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """Loads four rows, each from `column` on and one box wide, one below the other into a tile of four rows."""
        recorder, param, what = self._recorded("gather4")
        issuer, signal, ref = leader_of(leader, what), armed(token, what), four_rows(recorder, param, tile, what)
        at, hint = gathered(recorder, rows, column, what), hint_of(cache_hint)
        check_leader(issuer, recorder)
        signal._use(what, recorder, copies=True)
        recorder.emit(ops.TensorGather4(map=self._ref, tile=ref, coords=at, bar=signal._ref, hint=hint))

    # fmt: off
    @overload
    def scatter4(
        self: TmaDescriptor[_ST, D2, Any, Box2[Literal[1], _N1]], leader: Leader, tile: SharedArray[_ST, Box2[Literal[4], _N1], A1024],
        rows: Rows, column: Idx, *, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def scatter4(
        self: TmaDescriptor[u6x16_align16b, D2, Any, Box2[Literal[1], _N1]], leader: Leader,
        tile: SharedArray[u8, Box2[Literal[4], _N1], A1024], rows: Rows, column: Idx, *, cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    # fmt: on
    def scatter4(
        self: TmaDescriptor[Any, D2, Any, Box2[Literal[1], _N1]],
        leader: Leader,
        tile: SharedArray[Any, Box2[Literal[4], _N1], A1024],
        rows: Rows,
        column: Idx,
        *,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """Stores a tile of four rows to four rows (none negative), each from `column` on, in the leader's open bulk group."""
        recorder, param, what = self._recorded("scatter4")
        stored(param.dtype, what)
        issuer, ref = leader_of(leader, what), four_rows(recorder, param, tile, what, store=True)
        at, hint = gathered(recorder, rows, column, what), hint_of(cache_hint)
        check_leader(issuer, recorder)
        recorder.emit(ops.TensorScatter4(map=self._ref, tile=ref, coords=at, hint=hint))


def _choices(array: GlobalArray[Any, Any], swizzle: object, element_strides: object, l2_promotion: object, oob_fill: object) -> Choices:
    return Choices(
        element_strides=element_strides, swizzle=swizzle_mode(swizzle).info, l2_promotion=l2_promotion, oob_fill=oob_fill, sm=array.sm
    )


def recorded_descriptor(recorder: Recorder, param: MapParam, index: expr.Expr | None = None) -> TmaDescriptor[Any, Any, Any, Any]:
    """The handle that a pipeline function receives while it is recorded, or one of an entry of a table that it received."""
    return TmaDescriptor._recorded_as(recorder, param, index)
