"""Descriptors that the device replaces: a window of another array, or of another part of one, known only while the pipeline runs.

The order of PTX is in the types: a slot gives a draft in shared memory, which is edited and has no copies; a warp releases it to global
memory, and what that gives has none either; who acquires that holds a descriptor. Names follow PTX (9.7.9.28, 9.7.13.16).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, final

from typing_extensions import TypeVar

from oxidecopy.errors import Cause, DTypeError, MovedError, RecordError, ScopeError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Expr, sub
from oxidecopy.isa.ops import ArrayRef, SlotRef, TileRef
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.replaced import SLOT_BYTES, SLOT_DTYPE, SLOT_RANK, SLOTS_MAX
from oxidecopy.program.tensor_map import TILE
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.descriptor_checks import array_of, same_type
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.frames import fresh
from oxidecopy.typed.geometry import AnyBox, AnySwizzle
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.layout import TileRequest
from oxidecopy.typed.leader import Group, Leader, check_leader, leader_of
from oxidecopy.typed.refusal import described, refuse, require
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.states import Owned
from oxidecopy.typed.symbolic import Idx, SymIdx

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
SW_co = TypeVar("SW_co", bound=AnySwizzle, default=AnySwizzle, covariant=True)
Bx = TypeVar("Bx", bound=AnyBox, default=Any)


@final
class TensorMapSlot(Generic[DT, C, SW_co, Bx]):
    """A place for a descriptor that this CTA replaces: 128 bytes of shared memory to edit it in, 128 of global memory to use it from.

    `cta.tensormap` sets it aside. It may be used again and again: what was made of it before ends with the next release.
    """

    __slots__ = ("_draft", "_param", "_recorder", "_released", "_slot", "_tile")

    def __init__(self, recorder: Recorder, param: MapParam, slot: SlotRef, tile: int) -> None:
        self._recorder = recorder
        self._param = param
        self._slot = slot
        self._tile = TileRef(tile, ZERO)
        self._draft: TensorMapDraft[Any, Any, Any, Any] | None = None
        self._released: ReleasedTensorMap[Any, Any, Any, Any] | None = None

    def edit(self, leader: Leader) -> TensorMapDraft[DT, C, SW_co, Bx]:
        """Copies the descriptor that the slot was made for into shared memory, where it can be edited."""
        issuer = leader_of(leader, "`edit`")
        check_leader(issuer, self._recorder)
        if self._draft is not None:
            self._draft._taken = self._draft._taken or Cause("`edit` began anew here", caller_site())
        self._recorder.emit(ops.TensormapCopy(map=ops.MapRef(self._param.name), tile=self._tile))
        self._draft = made = TensorMapDraft[Any, Any, Any, Any](self)
        return made


@final
class TensorMapDraft(Generic[DT, C, SW_co, Bx]):
    """A descriptor under edit, in shared memory: no copy goes through it."""

    __slots__ = ("_shape", "_slot", "_taken")

    def __init__(self, slot: TensorMapSlot[DT, C, SW_co, Bx]) -> None:
        self._slot = slot
        self._shape: tuple[Expr, ...] | None = None  # of the window, where there is one
        self._taken: Cause | None = None

    def replace(self, leader: Leader, array: GlobalArray[DT, C], first: C, stop: C) -> None:
        """Points it at elements `first` to `stop` - 1 of `array`: address, extents and strides (PTX tensormap.replace).

        Args:
            leader: the thread that edits.
            array: a parameter of the pipeline, of the descriptor's element type and rank.
            first: outermost first, a multiple of 16 bytes from the array's start. May be read from memory (`cta.load_index`).
            stop: behind the last element, at most the array's extents. Where it is not above `first`, the launch ends with an error: a
                descriptor cannot be empty.
        """
        self._live("replace")
        slot, what = self._slot, "`replace` of a descriptor"
        recorder, issuer = slot._recorder, leader_of(leader, what)
        param = array_of(recorder, array, what)
        same_type(f"{what}: the array", param.dtype, slot._param.dtype)
        low, high = (recorder.coordinates(at, slot._param.rank, what) for at in (first, stop))
        if param.rank != slot._param.rank:
            fix = "pass an array of as many dimensions"
            refuse(DTypeError, "OX1173", f"{what} takes an array of its rank", got=f"rank {param.rank}", required=str(len(low)), fix=fix)
        check_leader(issuer, recorder)
        recorder.emit(ops.TensormapReplaceArray(array=ArrayRef(param.name), first=low, stop=high, tile=slot._tile))
        self._shape = tuple([sub(b, a) for a, b in zip(low, high, strict=True)])

    def cp_fenceproxy(self: Owned[TensorMapDraft[DT, C, SW_co, Bx]], group: Group) -> ReleasedTensorMap[DT, C, SW_co, Bx]:
        """Copies it to global memory and releases it there (PTX tensormap.cp_fenceproxy). Consumes the draft.

        Copies through what was there before must be over: their phases waited for, their bulk groups by `wait_group_read`.

        Args:
            group: one whole warp: `with cta.warps(0, 1) as warp`.
        """
        self._live("cp_fenceproxy")
        slot, what = self._slot, "`cp_fenceproxy`"
        warp = require(group, Group, what, "with cta.warps(0, 1) as warp: ... draft.cp_fenceproxy(warp)")
        warp._check(what)
        threads = warp._frame.threads
        whole = len(threads.ranges) == 1 and len(threads) == limits.WARP and threads.first % limits.WARP == 0
        if not whole or slot._recorder.scope != threads:
            refuse(
                ScopeError,
                "OX1172",
                f"{what} is one instruction of a whole warp",
                got=f"threads {slot._recorder.scope.ranges}",
                required="all 32 threads of one warp, and nobody else",
                fix="call it inside `with cta.warps(0, 1) as warp:`, outside `warp.elect()`",
            )
        slot._recorder.emit(ops.TensormapCpFenceproxy(slot=slot._slot, tile=slot._tile))
        here = caller_site()
        self._taken = Cause("`cp_fenceproxy` took it here", here)
        if slot._released is not None:
            slot._released._taken = Cause("another one was released here", here)
        slot._released = made = ReleasedTensorMap[Any, Any, Any, Any](slot, self._shape)
        return made

    def _live(self, what: str) -> None:
        self._slot._recorder.check_open("a descriptor under edit")
        if self._taken is not None:
            refuse(
                MovedError,
                "OX1170",
                f"`{what}` on a descriptor under edit that is no more",
                got="the old draft",
                required="the draft of the latest `edit`, until it is released",
                fix="begin anew: `draft = slot.edit(leader)`",
                causes=(self._taken,),
            )


@final
class ReleasedTensorMap(Generic[DT, C, SW_co, Bx]):
    """A replaced descriptor in global memory that nobody has acquired yet: no copy goes through it."""

    __slots__ = ("_shape", "_slot", "_taken")

    def __init__(self, slot: TensorMapSlot[DT, C, SW_co, Bx], shape: tuple[Expr, ...] | None) -> None:
        self._slot = slot
        self._shape = shape
        self._taken: Cause | None = None

    def acquire(self, leader: Leader) -> TmaDescriptor[DT, C, SW_co, Bx]:
        """The descriptor, for the copies of this CTA (PTX fence.proxy.tensormap::generic.acquire).

        The leader must come after the release: it is of the warp that released, or there was a sync. Other threads may use what it
        acquired after another sync, or acquire it themselves. Coordinates count from the window's first element.
        """
        slot, what = self._slot, "`acquire` of a descriptor"
        issuer = leader_of(leader, what)
        check_leader(issuer, slot._recorder)
        self._check(what)
        slot._recorder.emit(ops.FenceProxyTensormap(slot=slot._slot))
        return TmaDescriptor._recorded_as(slot._recorder, slot._param, None, self)

    @property
    def _ref(self) -> SlotRef:
        return self._slot._slot

    def _extents(self) -> tuple[SymIdx, ...] | None:
        """Of the window; None where the descriptor is still what it was copied from."""
        return None if self._shape is None else tuple([SymIdx(e, self._slot._recorder) for e in self._shape])

    def _check(self, what: str) -> None:
        if self._taken is not None:
            refuse(
                MovedError,
                "OX1174",
                f"{what}: it was replaced since",
                got="what was released before",
                required="what the latest `cp_fenceproxy` gave, acquired anew",
                fix="desc = released.acquire(leader)",
                causes=(self._taken,),
            )


def slot_for(recorder: Recorder, like: object, slots: object) -> TensorMapSlot[Any, Any, Any, Any]:
    """What `cta.tensormap` makes."""
    what = "`tensormap`"
    recorder.require_no_loop("a slot for a descriptor")
    desc = require(like, TmaDescriptor, what, "pass a descriptor that is a parameter of the pipeline")
    owner, param, _ = desc._recorded("tensormap")
    recorder.check_open("a descriptor", owner)
    plain = desc._index is None and desc._replaced is None
    packed = DTYPES[param.dtype].packed
    if not plain or packed or (param.mode, param.interleave) != (TILE, "none") or param.swizzle not in SWIZZLES:
        kind = f"packed {param.dtype}" if packed else f"interleave {param.interleave}, swizzle {param.swizzle}"
        refuse(
            RecordError,
            "OX1171",
            f"{what} takes a descriptor that can be replaced",
            got=kind if plain else "an entry of a table, or one that was replaced",
            required="a tiled one that is a parameter by itself, of whole bytes, without interleave, its swizzle none, 32B, 64B or 128B",
            fix="make it with `ox.TmaDescriptor.tiled`, and pass it as a parameter of its own",
        )
    array = array_of(recorder, slots, what)
    number = recorder.slots.get(array.name, 0)
    if (array.dtype, array.rank) != (SLOT_DTYPE, SLOT_RANK) or number >= SLOTS_MAX:
        refuse(
            RecordError,
            "OX1171",
            f"{what} lays descriptors into an array of bytes",
            got=described(slots) if number < SLOTS_MAX else f"{number + 1} slots in {array.name!r}",
            required=f"GlobalArray[u8, D2] of ({SLOT_BYTES} bytes) rows, at most {SLOTS_MAX} slots of a block in it",
            fix="dev.empty((blocks, 128), ox.u8): a row for each block, times the slots of a block",
        )
    recorder.slots[array.name] = number + 1
    name = fresh(f"{param.name}_map", {t.name for t in recorder.tiles})
    request = TileRequest(name=name, dtype=SLOT_DTYPE, shape=(SLOT_BYTES,), align=SLOT_BYTES, stages=1, site=caller_site())
    request.adopt("none")
    recorder.tiles.append(request)
    return TensorMapSlot(recorder, param, SlotRef(array.name, number), len(recorder.tiles) - 1)
