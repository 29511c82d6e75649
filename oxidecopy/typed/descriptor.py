"""`TmaDescriptor`: a tensor map on the host, and the handle that issues its copies while a pipeline is recorded.

The type says element type, rank (as the coordinates' tuple type), swizzle and box. The box is invariant with default Any: with covariant
boxes a checker would join those of descriptor and tile and accept any pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, final, overload

from typing_extensions import TypeVar

from oxidecopy.errors import AlignmentError, Diagnostic, DTypeError, ScopeError, ShapeError, TokenError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.ops import MapRef, TileRef
from oxidecopy.typed.barrier import TxToken
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import (
    A128, A256, A512, A1024, D1, D2, D3, D4, D5, AnyBox, AnySwizzle, Box1, Box2, Box3, Box4, Box5, Swizzle32B, Swizzle64B, SwizzleNone,
    box_extents,
)  # fmt: skip
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.leader import ClusterLeader, Leader, require_leader
from oxidecopy.typed.reduce import ReduceOp
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.states import TmaBarrier
from oxidecopy.typed.symbolic import Idx, SymIdx, refuse, to_expr
from oxidecopy.typed.tiled_map import build_tensor_map

if TYPE_CHECKING:
    from oxidecopy.isa.expr import Expr
    from oxidecopy.program.program import MapParam
    from oxidecopy.program.tensor_map import TensorMap
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
SW_co = TypeVar("SW_co", bound=AnySwizzle, default=AnySwizzle, covariant=True)
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
# A static factory needs type variables of its own: with the class's, pyright and ty answer TmaDescriptor[Unknown, ...].
_D1 = TypeVar("_D1", bound=DType)
_SW = TypeVar("_SW", bound=AnySwizzle, default=SwizzleNone)
_N0 = TypeVar("_N0", bound=int)
_N1 = TypeVar("_N1", bound=int)
_N2 = TypeVar("_N2", bound=int)
_N3 = TypeVar("_N3", bound=int)
_N4 = TypeVar("_N4", bound=int)

L2Promotion = Literal[0, 64, 128, 256]
OobFill = Literal["zero", "nan"]


@final
class TmaDescriptor(Generic[DT, C, SW_co, Bx]):
    """A tensor map over an array; `tiled` makes one.

    On the host it holds the map's parameters (`tensor_map`) and keeps its array alive. Inside a pipeline it issues copies: coordinates are
    outermost first, in elements (never in boxes); the innermost one times the element size must be a multiple of 16 bytes (measured).
    """

    __slots__ = ("_param", "_recorder", "_source", "_tensor_map")
    # On the host the last two are set, inside a pipeline the first two.
    _param: MapParam | None
    _recorder: Recorder | None
    _source: GlobalArray[DT, Any] | None
    _tensor_map: TensorMap | None

    def __init__(self, _key: NoReturn) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: object, **__: object) -> None:
            raise ScopeError(
                Diagnostic(
                    rule="OX1045", what="a descriptor is not constructed directly", fix="use `ox.TmaDescriptor.tiled(array, box=...)`", site=caller_site()
                )
            )

    # ---- host side
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D1], *, box: type[Box1[_N0]], swizzle: type[_SW] = ..., element_strides: tuple[int] | None = ...,
        l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D1, _SW, Box1[_N0]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D1], *, box: tuple[int], swizzle: type[_SW] = ..., element_strides: tuple[int] | None = ...,
        l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D1, _SW, Box1[Any]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D2], *, box: type[Box2[_N0, _N1]], swizzle: type[_SW] = ..., element_strides: tuple[int, int] | None = ...,
        l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D2, _SW, Box2[_N0, _N1]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D2], *, box: tuple[int, int], swizzle: type[_SW] = ..., element_strides: tuple[int, int] | None = ...,
        l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D2, _SW, Box2[Any, Any]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D3], *, box: type[Box3[_N0, _N1, _N2]], swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int] | None = ..., l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D3, _SW, Box3[_N0, _N1, _N2]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D3], *, box: tuple[int, int, int], swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int] | None = ..., l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D3, _SW, Box3[Any, Any, Any]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D4], *, box: type[Box4[_N0, _N1, _N2, _N3]], swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int] | None = ..., l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D4, _SW, Box4[_N0, _N1, _N2, _N3]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D4], *, box: tuple[int, int, int, int], swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int] | None = ..., l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D4, _SW, Box4[Any, Any, Any, Any]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D5], *, box: type[Box5[_N0, _N1, _N2, _N3, _N4]], swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int, int] | None = ..., l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D5, _SW, Box5[_N0, _N1, _N2, _N3, _N4]]: ...
    @overload
    @staticmethod
    def tiled(
        a: GlobalArray[_D1, D5], *, box: tuple[int, int, int, int, int], swizzle: type[_SW] = ...,
        element_strides: tuple[int, int, int, int, int] | None = ..., l2_promotion: L2Promotion = ..., oob_fill: OobFill = ...,
    ) -> TmaDescriptor[_D1, D5, _SW, Box5[Any, Any, Any, Any, Any]]: ...
    @staticmethod
    def tiled(
        a: GlobalArray[Any, Any], *, box: Any, swizzle: Any = SwizzleNone, element_strides: Any = None, l2_promotion: int = 128,
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
        if not isinstance(a, GlobalArray):
            refuse("OX1046", "a descriptor is made of a device array", got=type(a).__name__, required="a GlobalArray", fix="use `dev.array(x)`", error=DTypeError)
        if not (isinstance(swizzle, type) and issubclass(swizzle, AnySwizzle) and "info" in swizzle.__dict__):
            name = getattr(swizzle, "__name__", repr(swizzle))
            refuse("OX1047", "`swizzle` is no swizzle mode", got=name, required="SwizzleNone, Swizzle32B, Swizzle64B or Swizzle128B", error=DTypeError)
        made: TmaDescriptor[Any, Any, Any, Any] = object.__new__(TmaDescriptor)
        made._source = a
        made._param = None
        made._recorder = None
        made._tensor_map = build_tensor_map(
            dtype=a.dtype.info, shape=a.shape, strides_bytes=a.strides_bytes, address=a.buffer.address + a.offset_bytes,
            box=box_extents(box) or box, element_strides=element_strides, swizzle=swizzle.info, l2_promotion=l2_promotion,
            oob_fill=oob_fill, sm=a.sm,
        )  # fmt: skip
        return made

    @property
    def tensor_map(self) -> TensorMap:
        """The map's parameters, outermost dimension first; on the host only."""
        if self._tensor_map is None:
            refuse("OX1019", "a recorded descriptor has no parameters yet: extents and strides are known at launch", error=ScopeError, fix="use `desc.shape`")
        return self._tensor_map

    @property
    def array(self) -> GlobalArray[DT, Any]:
        """The array it points to; on the host only."""
        if self._source is None:
            refuse("OX1019", "a recorded descriptor has no array yet", error=ScopeError)
        return self._source

    @property
    def shape(self) -> C:
        """Extents of the array in elements, outermost first: integers on the host, symbols inside a pipeline."""
        if self._recorder is not None and self._param is not None:
            return extents(self._recorder, self._param.name, self._param.rank)  # type: ignore[return-value]  # C is the rank's tuple
        return self.tensor_map.global_dim  # type: ignore[return-value]  # as above

    # ---- copies
    @overload
    def g2s(self: TmaDescriptor[DT, C, SwizzleNone, Bx], leader: Leader, tile: SharedArray[DT, Bx, A128], coords: C, token: TxToken[TmaBarrier, Any]) -> None: ...
    @overload
    def g2s(self: TmaDescriptor[DT, C, Swizzle32B, Bx], leader: Leader, tile: SharedArray[DT, Bx, A256], coords: C, token: TxToken[TmaBarrier, Any]) -> None: ...
    @overload
    def g2s(self: TmaDescriptor[DT, C, Swizzle64B, Bx], leader: Leader, tile: SharedArray[DT, Bx, A512], coords: C, token: TxToken[TmaBarrier, Any]) -> None: ...
    @overload
    def g2s(self, leader: Leader, tile: SharedArray[DT, Bx, A1024], coords: C, token: TxToken[TmaBarrier, Any]) -> None: ...
    def g2s(self, leader: Leader, tile: SharedArray[DT, Bx, Any], coords: C, token: TxToken[TmaBarrier, Any]) -> None:
        """Loads the box at `coords` into `tile`; its bytes are reported to the token's barrier (PTX cp.async.bulk.tensor)."""
        self._issue(leader, "g2s")
        bar = self._armed(token, "g2s")
        self._emit(ops.TensorG2S(map=self._map(), tile=self._fit(tile, "g2s"), coords=self._coords(coords, "g2s"), bar=bar))

    def g2s_multicast(
        self, leader: ClusterLeader, tile: SharedArray[DT, Bx, A1024], coords: C, token: TxToken[TmaBarrier, Any], *, cta_mask: Idx
    ) -> None:
        """As `g2s`, into the same tile of every CTA whose bit (its cluster rank) is set in `cta_mask`; each is told the full bytes."""
        recorder = self._issue(leader, "g2s_multicast")
        recorder.require_cluster("a multicast")
        bar = self._armed(token, "g2s_multicast")
        ref, at = self._fit(tile, "g2s_multicast"), self._coords(coords, "g2s_multicast")
        self._emit(ops.TensorG2SMulticast(map=self._map(), tile=ref, coords=at, bar=bar, cta_mask=to_expr(cta_mask, "a CTA mask")))

    @overload
    def s2g(self: TmaDescriptor[DT, C, SwizzleNone, Bx], leader: Leader, tile: SharedArray[DT, Bx, A128], coords: C) -> None: ...
    @overload
    def s2g(self: TmaDescriptor[DT, C, Swizzle32B, Bx], leader: Leader, tile: SharedArray[DT, Bx, A256], coords: C) -> None: ...
    @overload
    def s2g(self: TmaDescriptor[DT, C, Swizzle64B, Bx], leader: Leader, tile: SharedArray[DT, Bx, A512], coords: C) -> None: ...
    @overload
    def s2g(self, leader: Leader, tile: SharedArray[DT, Bx, A1024], coords: C) -> None: ...
    def s2g(self, leader: Leader, tile: SharedArray[DT, Bx, Any], coords: C) -> None:
        """Stores `tile` to the box at `coords` (none negative), in the leader's open bulk group."""
        self._issue(leader, "s2g")
        self._emit(ops.TensorS2G(map=self._map(), tile=self._fit(tile, "s2g"), coords=self._coords(coords, "s2g")))

    @overload
    def reduce(self: TmaDescriptor[DT, C, SwizzleNone, Bx], op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, A128], coords: C) -> None: ...
    @overload
    def reduce(self: TmaDescriptor[DT, C, Swizzle32B, Bx], op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, A256], coords: C) -> None: ...
    @overload
    def reduce(self: TmaDescriptor[DT, C, Swizzle64B, Bx], op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, A512], coords: C) -> None: ...
    @overload
    def reduce(self, op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, A1024], coords: C) -> None: ...
    def reduce(self, op: ReduceOp[DT], leader: Leader, tile: SharedArray[DT, Bx, Any], coords: C) -> None:
        """Combines `tile` into the box at `coords` with `op`, element by element, in the leader's open bulk group."""
        self._issue(leader, "reduce")
        param = self._recorded("reduce")
        if not isinstance(op, ReduceOp) or op.name not in _reductions(param.dtype):
            legal = ", ".join(f"ox.reduce.{n}" for n in sorted(_reductions(param.dtype))) or "none"
            refuse(
                "OX1016", f"{param.dtype} has no such reduction", got=getattr(op, "name", repr(op)),
                required=legal, fix="use a dtype with this operation (PTX cp.reduce.async.bulk.tensor)", error=DTypeError,
            )  # fmt: skip
        self._emit(ops.TensorReduce(op=op.name, map=self._map(), tile=self._fit(tile, "reduce"), coords=self._coords(coords, "reduce")))

    # ---- the checks behind them: the run-time twins of the signatures above
    def _recorded(self, what: str) -> MapParam:
        if self._recorder is None or self._param is None:
            refuse("OX1019", f"`{what}` outside a pipeline: copies are issued by a recorded function", fix="call it inside `@ox.pipeline`", error=ScopeError)
        return self._param

    def _issue(self, leader: object, what: str) -> Recorder:
        param = self._recorded(what)
        assert self._recorder is not None  # _recorded checks it
        require_leader(leader, self._recorder, f"`{what}` of {param.name!r}")
        return self._recorder

    def _emit(self, op: ops.Instr) -> None:
        assert self._recorder is not None  # _issue checked it
        self._recorder.emit(op)

    def _map(self) -> MapRef:
        return MapRef(self._recorded("a copy").name)

    def _armed(self, token: object, what: str) -> ops.BarrierRef:
        if not isinstance(token, TxToken):
            raise TokenError(
                Diagnostic(
                    rule="OX1006",
                    what=f"`{what}` needs a token whose arrival announced bytes",
                    got=type(token).__name__,
                    required="the TxToken that `arrive_expect_tx` returned",
                    fix="token = full.arrive_expect_tx(leader, tile.nbytes)",
                    site=caller_site(),
                )
            )
        token._use(f"`{what}`")
        return token._ref

    def _coords(self, coords: object, what: str) -> tuple[Expr, ...]:
        param = self._recorded(what)
        return coordinates(coords, param.rank, f"`{what}` of {param.name!r}")

    def _fit(self, tile: object, what: str) -> TileRef:
        """The tile must have the map's element type, box and alignment."""
        param = self._recorded(what)
        label = f"`{what}` of {param.name!r}"
        if not isinstance(tile, SharedArray):
            refuse("OX1012", f"{label} needs a shared tile", got=type(tile).__name__, fix=f"tile = cta.shared({param.name})", error=ShapeError)
        request = tile._request
        if request.dtype != param.dtype:
            refuse("OX1011", f"{label} and its tile have different element types", got=request.dtype, required=param.dtype, fix=f"use cta.shared({param.name})", error=DTypeError)
        if tile.shape != param.layout.shape:
            refuse("OX1012", f"{label} and its tile have different boxes", got=str(tile.shape), required=str(param.layout.shape), fix=f"use cta.shared({param.name})", error=ShapeError)
        need = max(limits.TENSOR_SMEM_ALIGN, _repeat(param.swizzle))
        if request.align < need:
            refuse(
                "OX1010", f"{label}: the tile is aligned too weakly", got=f"{request.align} bytes",
                required=f"{need} bytes for swizzle {param.swizzle} (PTX 5.5.7; measured)", fix=f"align=ox.A{need}", error=AlignmentError,
            )  # fmt: skip
        request.adopt(param.swizzle)
        return tile._ref()


def recorded_descriptor(recorder: Recorder, param: MapParam) -> TmaDescriptor[Any, Any, Any, Any]:
    """The handle that a pipeline function receives while it is recorded."""
    made: TmaDescriptor[Any, Any, Any, Any] = object.__new__(TmaDescriptor)
    made._source = None
    made._tensor_map = None
    made._param = param
    made._recorder = recorder
    return made


def extents(recorder: Recorder, name: str, rank: int) -> tuple[SymIdx, ...]:
    """A parameter's extents as symbols, outermost first."""
    from oxidecopy.isa.expr import Sym, SymKind
    from oxidecopy.program.program import extent_name

    return tuple(SymIdx(Sym(extent_name(name, i), SymKind.EXTENT), recorder) for i in range(rank))


def coordinates(coords: object, rank: int, what: str) -> tuple[Expr, ...]:
    """Coordinates as expressions; the rank must be right."""
    if not isinstance(coords, tuple) or len(coords) != rank:
        got = f"{len(coords)} coordinates" if isinstance(coords, tuple) else type(coords).__name__
        refuse("OX1013", f"{what} has rank {rank}", got=got, required=f"a tuple of {rank}, outermost first, in elements", error=ShapeError)
    return tuple(to_expr(c, f"a coordinate of {what}") for c in coords)


def _reductions(dtype: str) -> frozenset[str]:
    from oxidecopy.isa.dtypes import DTYPES

    return DTYPES[dtype].reduce


def _repeat(swizzle: str) -> int:
    from oxidecopy.isa.swizzle import SWIZZLES

    return SWIZZLES[swizzle].repeat_bytes
