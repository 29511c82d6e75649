"""What the blocks of a ring's stages give: slots to load, tiles that have landed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, final, overload

from typing_extensions import TypeVar, override

from oxidecopy.errors import Cause, ClusterError, RecordError, ScopeError, ShapeError
from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Const, Expr
from oxidecopy.isa.ops import BarrierRef, Part, TileRef
from oxidecopy.program.expansion import ALWAYS
from oxidecopy.tiles.sharing import Sharing, told
from oxidecopy.tiles.work import Loadable, loadable, parameter
from oxidecopy.typed.cache import CachePolicy, hint_of
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import A1024, D3, D4, D5, AnyBox
from oxidecopy.typed.im2col import O1, O2, O3, Im2colDescriptor
from oxidecopy.typed.leader import Leader, check_leader
from oxidecopy.typed.map_handle import taps_of
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.symbolic import Idx, constant

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam
    from oxidecopy.typed.frames import Frame
    from oxidecopy.typed.layout import TileRequest
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
Bx = TypeVar("Bx", bound=AnyBox, default=Any)


@final
@dataclass(slots=True)
class Block:
    """Whether a stage's with-block is open, and whether plain stores write into its tiles."""

    open: bool = True
    written: bool = False


class BlockTile(SharedArray[DT, Bx, A1024]):
    """A tile that may be used inside one with-block only."""

    __slots__ = ("_block",)
    _block: Block

    @override
    def _ref(self, recorder: Recorder) -> TileRef:
        if not self._block.open:
            refuse(
                ScopeError,
                "OX1102",
                f"a stage of {self._request.name!r} is used outside its block",
                required="use inside the with-block that gave it: its memory is refilled after",
                fix="move the call into the block",
            )
        return super()._ref(recorder)

    @override
    def _target(self, recorder: Recorder) -> TileRef:
        self._block.written = True
        return super()._target(recorder)

    @override
    def part(self, rank: Idx, *, of: int) -> BlockTile[DT, Any]:
        """Slice `rank` of `of` equal ones along the outermost dimension; it may be used in the same block."""
        made: BlockTile[DT, Any] = BlockTile(self._recorder, self._tile, self._request, self._index, super().part(rank, of=of)._part)
        made._block = self._block
        return made


@final
class Landed(BlockTile[DT, Bx]):
    """A tile that has landed: readable until its `consume` block ends."""

    __slots__ = ("_behind", "_number", "_ring")
    _behind: int  # stages behind the newest one
    _number: Expr
    _ring: Stages

    def back(self, n: int, /) -> Landed[DT, Bx]:
        """The same tile of the stage `n` before, for `consume(group, keep=n)`. It exists from stage `n` on: guard the first ones."""
        keep, behind = self._ring.kept, self._behind
        back = constant(n)
        if back is None or not 1 <= back <= keep - behind:
            refuse(
                ScopeError,
                "OX1108",
                f"stage {n!r} back is not held" + (f", counted from one that is {behind} back" if behind else ""),
                got=f"keep={keep}",
                required=f"1 to {keep - behind}" if keep > behind else "a consume block with a larger `keep`",
                fix=f"consume(group, keep={behind + back})" if back is not None and back > 0 else "name a number of stages",
            )
        number = expr.sub(self._number, Const(back))
        return landed(self._ring, self._recorder, self._tile, self._request, number, self._block, behind + back)


def landed(
    ring: Stages, recorder: Recorder, tile: int, request: TileRequest, number: Expr, block: Block, behind: int = 0
) -> Landed[Any, Any]:
    """The tile of stage `number`."""
    made: Landed[Any, Any] = Landed(recorder, tile, request, expr.mod(number, Const(ring.stages)))
    made._block, made._number, made._ring, made._behind = block, number, ring, behind
    return made


@final
class StageTuple(tuple[Any, ...]):
    """What a stage's block gives, one for each tile of the ring: `as (a, b)`."""

    __slots__ = ()
    shown_as: ClassVar = "all tiles of a stage"

    def __getattr__(self, name: str) -> object:
        """Says how to get at what is inside, to whom it was not clear."""
        names = ", ".join("abc"[: len(self)])
        raise AttributeError(f"a stage is a StageTuple, without {name!r}: name each of its tiles, `as ({names}{',' * (len(self) == 1)})`")


@final
@dataclass(slots=True, kw_only=True)
class Stages:
    """What a ring is made of: tiles by number, barrier arrays by number."""

    name: str
    stages: int
    full: int
    empty: int
    tiles: tuple[tuple[int, TileRequest], ...]
    params: tuple[MapParam, ...]
    sharing: tuple[Sharing, ...] = ()  # of the first ones, which CTAs of the cluster load together
    kept: int = 0

    @property
    def shared(self) -> int:
        """How many tiles are loaded together."""
        return len(self.sharing)

    @property
    def multicast(self) -> bool:
        """Its stages are released by the consumers of all CTAs of the cluster."""
        return self.shared > 0

    def told(self, cluster: tuple[int, int, int]) -> tuple[str, int]:
        """Who is told that a stage is free, and how many CTAs that is; 0: its own producer alone."""
        return told(self.sharing, cluster)

    @property
    def nbytes(self) -> int:
        """Bytes that one stage brings into one CTA."""
        return sum(request.nbytes for _, request in self.tiles)

    def bar(self, barrier: int, number: Expr) -> BarrierRef:
        """The barrier of stage `number`."""
        return BarrierRef(barrier, expr.mod(number, Const(self.stages)))

    def turn(self, number: Expr) -> Expr:
        """How often its slot was used before."""
        return expr.floordiv(number, Const(self.stages))


@final
class Slot(Generic[DT, Bx]):
    """One tile of a stage being produced: it is loaded exactly once, or under several conditions of which one holds, or part by part."""

    __slots__ = ("_block", "_frame", "_in_parts", "_index", "_leader", "_loads", "_number", "_recorder", "_ring")

    def __init__(self, recorder: Recorder, ring: Stages, index: int, number: Expr, leader: Leader, block: Block, frame: Frame) -> None:
        self._recorder = recorder
        self._ring = ring
        self._index = index
        self._number = number
        self._leader = leader
        self._block = block
        self._frame = frame
        self._loads: list[Frame | None] = []  # for each load the condition around it
        self._in_parts = False

    @property
    def missing(self) -> str:
        """Why the stage's bytes may not come; empty when they do."""
        if self._in_parts:
            return ""  # whether all of them come is a matter of loops and bytes: the verifier's
        if not self._loads:
            return "no load"
        return "" if self._loads[0] is None or len(self._loads) > 1 else "a load under a condition, and none where it does not hold"

    # fmt: off
    @overload
    def load(self, src: TmaDescriptor[DT, C, Any, Bx], at: C, /, *, cache_hint: CachePolicy | None = ...) -> None: ...
    @overload
    def load(self, src: Im2colDescriptor[DT, D3, Any, Bx], at: D3, /, *, offsets: O1, cache_hint: CachePolicy | None = ...) -> None: ...
    @overload
    def load(self, src: Im2colDescriptor[DT, D4, Any, Bx], at: D4, /, *, offsets: O2, cache_hint: CachePolicy | None = ...) -> None: ...
    @overload
    def load(self, src: Im2colDescriptor[DT, D5, Any, Bx], at: D5, /, *, offsets: O3, cache_hint: CachePolicy | None = ...) -> None: ...
    # fmt: on
    def load(self, src: Loadable[DT, Bx], at: Any, /, *, offsets: Any = (), cache_hint: CachePolicy | None = None) -> None:
        """Loads the box of `src` at `at` (in a multicast ring: this CTA's slice of the tile whose corner is `at`, into all that share it).

        Through an im2col descriptor: its pixels from the base `at` on, each at `offsets` from its base.
        """
        ring, recorder = self._ring, self._recorder
        self._check_open()
        condition = self._condition()
        if self._in_parts or (self._loads and (condition is None or None in self._loads)):
            self._refuse_twice()
        (_, param, what), wanted = loadable(src, "load"), ring.params[self._index]
        same = _kind(param) == _kind(wanted)
        if not same:
            refuse(
                ShapeError,
                "OX1103",
                f"{param.name!r} does not fit this slot of {ring.name}",
                got=f"{param.tile_dtype}, {param.layout.shape}, swizzle {param.swizzle}",
                required=f"{wanted.tile_dtype}, {wanted.layout.shape}, swizzle {wanted.swizzle} (as {wanted.name!r})",
                fix="name this descriptor in `cta.ring(tiles=...)`",
            )
        corner, hint = recorder.coordinates(at, param.rank, what), hint_of(cache_hint)
        taps = taps_of(recorder, param, offsets, what)
        tile, _ = ring.tiles[self._index]
        slot = expr.mod(self._number, Const(ring.stages))
        bar = ring.bar(ring.full, self._number)
        self._loads.append(condition)
        if self._index >= ring.shared:
            recorder.emit(ops.TensorG2S(map=src._ref, tile=TileRef(tile, slot), coords=corner, bar=bar, offsets=taps, hint=hint))
            return
        reads = {s.op.name: s.op.index for f in recorder.frames for s in f.steps if isinstance(s.op, ops.LoadIndex)}
        chosen, sharing = () if src._index is None else (src._index,), ring.sharing[self._index]
        if any(sharing.uneven(c, reads) for c in (*corner, *chosen)):
            refuse(
                ClusterError,
                "OX1147",
                f"the CTAs of a cluster would load slices of different tiles into one stage of {ring.name}",
                got="a corner that is not the same for all CTAs that share the tile",
                required="the corner of the whole tile, of which each CTA loads its slice",
                fix='`cta.tiles(src, per="cluster", box=...)` in all roles; the offset of the slice is added for you',
            )
        at_slice = list(corner)
        axis = sharing.dimension(param.rank)
        at_slice[axis] = expr.add(corner[axis], expr.mul(sharing.part, Const(param.box_dim[axis])))
        recorder.emit(
            ops.TensorG2SMulticast(
                map=src._ref,
                tile=TileRef(tile, slot, Part(sharing.part, sharing.parts) if sharing.parts > 1 else None),
                coords=tuple(at_slice),
                bar=bar,
                cta_mask=sharing.mask,
                hint=hint,
            )
        )

    def load_part(
        self, src: TmaDescriptor[DT, C, Any, Any], at: C, rank: Idx, /, *, of: int, cache_hint: CachePolicy | None = None
    ) -> None:
        """Loads the box of `src` at `at` into part `rank` of `of` equal ones along the tile's outermost dimension: rows that lie apart.

        All parts are to be loaded, each once, and a loop may do it; what the stage announces is the bytes of all.
        """
        ring, recorder = self._ring, self._recorder
        self._check_open()
        if self._loads:
            self._refuse_twice()
        (_, param, what), wanted = parameter(src, "load_part"), ring.params[self._index]
        (outer, *inner), parts = wanted.layout.shape, whole(of)
        fits = parts is not None and parts > 0 and (param.layout.shape[0] * parts, *param.layout.shape[1:]) == (outer, *inner)
        if not fits or self._index < ring.shared or (param.dtype, param.swizzle) != (wanted.dtype, wanted.swizzle):
            refuse(
                ShapeError,
                "OX1103",
                f"{param.name!r} does not bring parts of this slot of {ring.name}",
                got=f"{param.dtype}, {param.layout.shape}, swizzle {param.swizzle}, of={described(of)}",
                required=f"{wanted.dtype}, `of` boxes that make {wanted.layout.shape}, swizzle {wanted.swizzle}; a tile of this CTA alone",
                fix="a box of one row: `box=(1, columns)`, of= the rows of the tile",
            )
        self._in_parts = True
        index = recorder.below(rank, parts or 1, f"the rank of a part of {ring.name}", ShapeError, "OX1042", f"use `r % {of}`")
        tile = TileRef(ring.tiles[self._index][0], expr.mod(self._number, Const(ring.stages)), Part(index, parts or 1))
        corner, hint = recorder.coordinates(at, param.rank, what), hint_of(cache_hint)
        recorder.emit(ops.TensorG2S(map=src._ref, tile=tile, coords=corner, bar=ring.bar(ring.full, self._number), hint=hint))

    def _check_open(self) -> None:
        if not self._block.open:
            refuse(
                ScopeError,
                "OX1102",
                f"a slot of {self._ring.name} is loaded outside its block",
                fix="move the load into the block",
            )
        check_leader(self._leader, self._recorder)

    def _refuse_twice(self) -> NoReturn:
        refuse(
            RecordError,
            "OX1107",
            f"a slot of {self._ring.name} is loaded twice",
            required="one load for each slot of the stage, or parts of it",
            fix="use the stage's other slot",
        )

    def _condition(self) -> Frame | None:
        """The innermost condition around a load in the stage's block; a loop there would load again."""
        frames = self._recorder.frames
        start = next(i for i, f in enumerate(frames) if f is self._frame)
        for frame in frames[start + 1 :]:
            if frame.is_loop:
                refuse(
                    RecordError,
                    "OX1107",
                    f"a slot of {self._ring.name} is loaded in a loop inside the stage's block",
                    required="one load for each slot of the stage",
                    fix="put the loop around the block: one stage for each load; or load parts: `slot.load_part(src, at, i, of=n)`",
                    causes=(Cause("the loop", frame.site),),
                )
        return next((f for f in frames[start + 1 :] if isinstance(f.op, ops.When) and f.op.cond != ALWAYS), None)


def _kind(param: MapParam) -> tuple[str, tuple[int, ...], str]:
    """What a tile for copies through a map depends on."""
    return param.dtype, param.layout.shape, param.swizzle
