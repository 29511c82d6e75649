"""What descriptors of every kind have in common: a map and its array on the host, a parameter inside a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self

from typing_extensions import TypeVar

from oxidecopy.errors import ExportError, ShapeError
from oxidecopy.isa import expr, ops
from oxidecopy.isa.im2col import wide_rows
from oxidecopy.isa.ops import MapRef, SlotRef
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import Verdict, validate
from oxidecopy.program.tensor_map import IM2COL_WIDE, TILE
from oxidecopy.typed.cache import hint_of
from oxidecopy.typed.descriptor_checks import armed, fitting, picked, reduction, refuse_captured, stored, widened
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.handles import refuse_unknown
from oxidecopy.typed.leader import check_leader, leader_of
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.symbolic import Idx, SymIdx
from oxidecopy.typed.table_extents import extents_of

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam
    from oxidecopy.program.tensor_map import TensorMap
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])


class Replaced(Protocol):
    """What a descriptor that the device has replaced was acquired from."""

    @property
    def _ref(self) -> SlotRef: ...
    def _extents(self) -> tuple[SymIdx, ...] | None: ...
    def _check(self, what: str, /) -> None: ...


class MapHandle(Generic[DT, C]):
    """A tensor map over an array; its factories are those of `TmaDescriptor`."""

    __slots__ = ("_index", "_param", "_recorder", "_replaced", "_source", "_tensor_map")
    # On the host the last two are set, inside a pipeline the first ones: `_index` of an entry of a table, `_replaced` of one that the
    # device has replaced.
    _index: expr.Expr | None
    _param: MapParam | None
    _recorder: Recorder | None
    _replaced: Replaced | None
    _source: GlobalArray[DT, Any] | None
    _tensor_map: TensorMap | None

    @classmethod
    def _on_host(cls, source: GlobalArray[Any, Any], tensor_map: TensorMap) -> Self:
        made = object.__new__(cls)
        made._source, made._tensor_map = source, tensor_map
        made._index = made._param = made._recorder = made._replaced = None
        return made

    @classmethod
    def _recorded_as(cls, recorder: Recorder, param: MapParam, index: expr.Expr | None, replaced: Replaced | None = None) -> Self:
        made = object.__new__(cls)
        made._source = made._tensor_map = None
        made._index, made._param, made._recorder, made._replaced = index, param, recorder, replaced
        return made

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._param is not None:
            return f"{name}({self._param.name!r})"
        m = self.tensor_map
        box = f"box {m.box_dim}" if m.mode == TILE else f"{m.box_dim[0]} pixels x {m.box_dim[1]} channels, corners {m.lower} {m.upper}"
        return f"{name}({m.dtype}, shape={m.global_dim}, {box}, swizzle {m.swizzle}, device={self.array.device.name!r})"

    def __reduce__(self) -> NoReturn:
        refuse(
            ExportError,
            "OX5039",
            "a descriptor is neither copied nor pickled: it points into the memory of this process",
            got=type(self).__name__,
            required="one descriptor for each use, made where its array is",
            fix="pass it as it is; `desc.parameters` can be pickled",
        )

    @property
    def tensor_map(self) -> TensorMap:
        """The map's parameters, outermost dimension first; on the host only."""
        if self._tensor_map is None:
            refuse_unknown("`tensor_map` of a descriptor")
        return self._tensor_map

    @property
    def array(self) -> GlobalArray[DT, Any]:
        """The array it points to; on the host only."""
        if self._source is None:
            refuse_unknown("`array` of a descriptor")
        return self._source

    @property
    def shape(self) -> C:
        """Extents of the map in elements, outermost first: integers on the host, symbols inside a pipeline."""
        if self._recorder is not None and self._param is not None:
            window = self._replaced and self._replaced._extents()
            if window is not None:
                return window  # type: ignore[return-value]  # C is the rank's tuple
            return extents_of(self._recorder, self._param, self._index)  # type: ignore[return-value]  # C is the rank's tuple
        return self.tensor_map.global_dim  # type: ignore[return-value]  # as above

    @property
    def parameters(self) -> MapParameters:
        """What the driver's call is given; on the host only."""
        return MapParameters.of(self.tensor_map, self.array.buffer.address + self.array.offset_bytes)

    @property
    def verdict(self) -> Verdict:
        """What the validator says of it on the array's device, warnings included; on the host only."""
        return validate(self.parameters, arch=self.array.sm)

    @property
    def _ref(self) -> MapRef:
        """What the ops of a recording call it."""
        if self._param is None:
            refuse_captured("a descriptor")
        slot = self._replaced._ref if self._replaced is not None else None
        return MapRef(self._param.name, self._index, slot)

    def _recorded(self, what: str) -> tuple[Recorder, MapParam, str]:
        """The recording, the parameter, and what a call of method `what` is named in errors."""
        if self._recorder is None or self._param is None:
            refuse_captured(f"`{what}` of a descriptor")
        label = f"`{what}` of {self._param.name!r}" if self._index is None else f"`{what}` of an entry of {self._param.name!r}"
        self._recorder.check_open(label)
        if self._replaced is not None:
            self._replaced._check(label)
        return self._recorder, self._param, label

    # ---- what the copies of tiled and of im2col maps record; `offsets` are those of an im2col load
    def _load(
        self,
        leader: object,
        tile: object,
        coords: object,
        token: object,
        cache_hint: object,
        *,
        offsets: object = (),
        multicast: bool = False,
        cta_mask: Idx = 0,
    ) -> None:
        recorder, param, what = self._recorded("g2s_multicast" if multicast else "g2s")
        if multicast:
            recorder.require_cluster(what)
        issuer, signal = leader_of(leader, what), armed(token, what)
        hint, at, taps = hint_of(cache_hint), recorder.coordinates(coords, param.rank, what), taps_of(recorder, param, offsets, what)
        ref = fitting(recorder, param, tile, what, rows=_rows(param, taps))
        mask = recorder.index(cta_mask, f"the CTA mask of {what}")
        check_leader(issuer, recorder)
        signal._use(what, recorder, copies=True)
        where, bar = self._ref, signal._ref
        if multicast:
            recorder.emit(ops.TensorG2SMulticast(map=where, tile=ref, coords=at, bar=bar, cta_mask=mask, offsets=taps, hint=hint))
        else:
            recorder.emit(ops.TensorG2S(map=where, tile=ref, coords=at, bar=bar, offsets=taps, hint=hint))

    def _store(self, leader: object, tile: object, coords: object, cache_hint: object) -> None:
        recorder, param, what = self._recorded("s2g")
        stored(param.dtype, what)
        issuer, ref, hint = leader_of(leader, what), fitting(recorder, param, tile, what, store=True), hint_of(cache_hint)
        at = recorder.coordinates(coords, param.rank, what)
        check_leader(issuer, recorder)
        recorder.emit(ops.TensorS2G(map=self._ref, tile=ref, coords=at, hint=hint))

    def _reduce(self, op: object, leader: object, tile: object, coords: object, cache_hint: object) -> None:
        recorder, param, what = self._recorded("reduce")
        name, issuer, hint = reduction(op, param.dtype), leader_of(leader, what), hint_of(cache_hint)
        ref, at = fitting(recorder, param, tile, what), recorder.coordinates(coords, param.rank, what)
        check_leader(issuer, recorder)
        recorder.emit(ops.TensorReduce(op=name, map=self._ref, tile=ref, coords=at, hint=hint))

    def _fetch(self, leader: object, coords: object, cache_hint: object, *, offsets: object = ()) -> None:
        recorder, param, what = self._recorded("prefetch")
        issuer, hint = leader_of(leader, what), hint_of(cache_hint)
        at, taps = recorder.coordinates(coords, param.rank, what), taps_of(recorder, param, offsets, what)
        check_leader(issuer, recorder)
        recorder.emit(ops.TensorPrefetch(map=self._ref, coords=at, offsets=taps, hint=hint))


def taps_of(recorder: Recorder, param: MapParam, offsets: object, what: str) -> tuple[expr.Expr, ...]:
    """The offsets of an im2col copy, of a wide one its offset and halo; other maps have none."""
    if param.mode in IM2COL_WIDE:
        return widened(recorder, param, offsets, what)  # type: ignore[arg-type]  # as its methods give them
    if param.mode != TILE:
        return picked(recorder, param, offsets, what)
    if offsets != ():
        fix = "leave `offsets` out, and add them to the coordinates"
        refuse(ShapeError, "OX1164", f"{what}: a tiled map has no offsets", got=described(offsets), required="an im2col map", fix=fix)
    return ()


def _rows(param: MapParam, taps: tuple[expr.Expr, ...]) -> int | None:
    """Pixels of a wide copy, its halo included."""
    if param.mode not in IM2COL_WIDE or not isinstance(taps[-1], expr.Const):
        return None
    return wide_rows(param.mode, param.box_dim[0], taps[-1].value)
