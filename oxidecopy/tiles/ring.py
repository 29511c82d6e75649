"""Rings: stages of tiles that a producer fills and consumer groups drain, with barriers, phases and byte counts kept here.

Stage number k (0, 1, 2, ... over the whole pipeline) uses slot k % stages for the (k // stages)-th time:

    producer    empty[slot].wait_phase(k // stages - 1)      the consumers are done with what was there
                full[slot].arrive_expect_tx(bytes)           then the loads
    consumers   full[slot].wait_phase(k // stages)           the loads have landed
                sync of the group, then one arrival on empty[slot]

Each is recorded as one stage op of the op table; verifier and simulator see the primitive ops above, its expansion. In a multicast ring
every CTA of the cluster loads one slice of each tile into all CTAs (or into those of its row or its column), so a slot is free only when
the consumers of all of them have released it: they arrive on the empty barrier of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, final

from typing_extensions import TypeVar, override

from oxidecopy.errors import Cause, Diagnostic, RecordError, ScopeError, ShapeError
from oxidecopy.isa import expr, limits, ops
from oxidecopy.isa.expr import ZERO, Const
from oxidecopy.isa.ops import TileRef
from oxidecopy.program.expansion import ALWAYS
from oxidecopy.tiles.cursor import Conditions, Cursor
from oxidecopy.tiles.group import whole_group
from oxidecopy.tiles.stage import Block, Landed, Slot, Stages, StageTuple, landed
from oxidecopy.tiles.work import StageAt, Work, parameter
from oxidecopy.typed.cache import CachePolicy, hint_of
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import AnyBox
from oxidecopy.typed.leader import Group as AnyGroup
from oxidecopy.typed.leader import Leader, check_leader, leader_of
from oxidecopy.typed.refusal import refuse, require
from oxidecopy.typed.symbolic import Idx, constant

if TYPE_CHECKING:
    from oxidecopy.typed.frames import Frame
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
Slots_co = TypeVar("Slots_co", bound=tuple[Any, ...], covariant=True)
Tiles_co = TypeVar("Tiles_co", bound=tuple[Any, ...], covariant=True)


@final
class Ring(Generic[Slots_co, Tiles_co]):
    """Made by `cta.ring`. Its producer is one leader; each consumer group releases every stage."""

    __slots__ = ("_conditions", "_consumers", "_cursors", "_fills", "_producer", "_recorder", "_stages")

    def __init__(self, recorder: Recorder, stages: Stages, consumers: int) -> None:
        self._recorder = recorder
        self._stages = stages
        self._consumers = consumers
        self._conditions = Conditions()
        self._producer = Cursor(recorder, f"{stages.name}.produce", self._conditions)
        self._fills: list[Frame | None] = []  # the innermost loop around each produce block
        self._cursors: dict[ops.ThreadSet, tuple[Cursor, int]] = {}

    def produce(self, leader: Leader, /) -> AbstractContextManager[Slots_co, None]:
        """The next stage, to be filled: waits until it is free and announces its bytes; every slot must be loaded in the block."""
        self._fills.append(next((f for f in reversed(self._recorder.frames) if f.is_loop), None))
        return _Produce(self._recorder, self._stages, self._producer, leader)

    def stages(self, group: AnyGroup, work: Work[C], /, *, keep: int = 0) -> Iterator[StageAt[Tiles_co, C]]:
        """The stages that `for at in work` fills, one for each tile: `stage.tiles` are what has landed, `stage.at` from where.

        As `consume` in a loop, and the only form for a schedule by a counter: how many tiles come is not known here.
        """
        for at in self._follow(work):
            with self.consume(group, keep=keep) as tiles:
                yield StageAt(tiles, at)

    def visits(self, leader: Leader, work: Work[C], /) -> Iterator[C]:
        """As `stages`, for a leader that forwards the stages: `for at in ring.visits(leader, work): ring.forward(leader, dst, at)`."""
        check_leader(leader_of(leader, f"forwarding from {self._stages.name}"), self._recorder)
        yield from self._follow(work)

    def _follow(self, work: Work[C]) -> Iterator[C]:
        known: Work[C] = require(work, Work, f"what follows {self._stages.name}", "work = cta.schedule(src)")
        return known._followed(self._fills, self._stages.name)

    def consume(self, group: AnyGroup, /, *, keep: int = 0) -> AbstractContextManager[Tiles_co, None]:
        """The next stage, landed: released at the end of the block, or `keep` stages later (`tile.back(n)` gives the held ones)."""
        self._recorder.check_open(f"ring {self._stages.name}")
        if not isinstance(group, AnyGroup):
            refuse(
                ScopeError,
                "OX1104",
                f"{self._stages.name} is consumed by a group",
                got=type(group).__name__,
                required="what `cta.consumers()` gives",
                fix="with cta.consumers() as group:",
            )
        held = constant(keep)
        if held is None or not 0 <= held < self._stages.stages:
            refuse(
                ScopeError,
                "OX1108",
                f"{self._stages.name} cannot hold that many stages",
                got=f"keep={keep!r}",
                required=f"0 to {self._stages.stages - 1}: one must be free for the producer",
                fix="raise `stages`",
            )
        cursor = self._counted(group._frame.threads, held)
        return _Consume(self._recorder, self._stages, cursor, group, held)

    def forward(
        self, leader: Leader, dst: TmaDescriptor[DT, C, Any, Bx], at: C, /, *, pending: int = 1, cache_hint: CachePolicy | None = None
    ) -> None:
        """The next stage, landed, is stored to `dst` at `at` by one thread: no plain access, so no fence and no sync.

        For a ring of one tile, in the store role. The stage is released once its store has been read; `pending` newer stores (0 to
        stages - 1) may still be under way then. Drained when the role's block ends.
        """
        recorder, ring = self._recorder, self._stages
        check_leader(leader_of(leader, f"forwarding from {ring.name}"), recorder)
        (_, param, what), (tile, request) = parameter(dst, "forward"), ring.tiles[0]
        if len(ring.tiles) != 1 or ring.multicast:
            refuse(
                ShapeError,
                "OX1103",
                f"stages of {ring.name} cannot be forwarded",
                got=f"tiles that the cluster shares, {len(ring.tiles)} in a stage"
                if ring.multicast
                else f"{len(ring.tiles)} tiles in a stage",
                required="one tile in a stage, which this CTA alone loads (`cta.ring`)",
                fix="consume the stage, and store through a store ring: `outs.put(group, at)`",
            )
        if (param.tile_dtype, param.layout.shape, param.swizzle) != (request.dtype, request.shape, request.swizzle):
            refuse(
                ShapeError,
                "OX1103",
                f"{param.name!r} cannot take what {ring.name} brings",
                got=f"{param.tile_dtype}, {param.layout.shape}, swizzle {param.swizzle}",
                required=f"{request.dtype}, {request.shape}, swizzle {request.swizzle}",
                fix="give both descriptors the same element type, box and swizzle",
            )
        most = min(ring.stages - 1, limits.WAIT_GROUP_MAX)
        newer = constant(pending)
        if newer is None or not 0 <= newer <= most:
            refuse(
                ScopeError,
                "OX1108",
                f"{ring.name} cannot leave that many stores pending",
                got=repr(pending),
                required=f"0 to {most}: one stage must be free, and wait_group_read counts to {limits.WAIT_GROUP_MAX}",
                fix="raise `stages`, or lower `pending`",
            )
        hint = hint_of(cache_hint)
        cursor = self._counted(leader._frame.threads, newer)
        number = cursor.take()
        released = expr.sub(number, Const(newer))
        leader._frame.at_close(self._drain)
        recorder.emit(
            ops.LoadStoreStage(
                full=ring.bar(ring.full, number),
                landed=ring.turn(number),
                map=dst._ref,
                tile=TileRef(tile, expr.mod(number, Const(ring.stages))),
                coords=recorder.coordinates(at, param.rank, what),
                pending=newer,
                empty=ring.bar(ring.empty, released),
                release=expr.Cmp(expr.CmpOp.LE, ZERO, released) if newer else ALWAYS,
                token=recorder.next_token(),
                hint=hint,
            )
        )

    def _drain(self, frame: Frame) -> None:
        del frame
        self._recorder.emit(ops.WaitGroupRead(pending=0))

    @property
    def produced(self) -> bool:
        """Whether any stage is filled."""
        return self._producer.taken

    @property
    def groups(self) -> int:
        """How many groups consume it."""
        return len(self._cursors)

    def _counted(self, threads: ops.ThreadSet, keep: int) -> Cursor:
        """The consumer's own count of stages; it is one of those the ring was made for, and always holds as many."""
        known = self._cursors.get(threads)
        if known is None:
            if len(self._cursors) == self._consumers:
                refuse(
                    ScopeError,
                    "OX1104",
                    f"{self._stages.name} is consumed by more groups than it counts",
                    got=str(len(self._cursors) + 1),
                    required=str(self._consumers),
                    fix="declare the groups in `ox.roles(consumers=(4, 4))`, or pass consumers= to `cta.ring`",
                )
            cursor = Cursor(self._recorder, f"{self._stages.name}.consume{len(self._cursors)}", self._conditions)
            known = self._cursors[threads] = (cursor, keep)
        if known[1] != keep:
            refuse(
                ScopeError,
                "OX1108",
                f"a group holds {self._stages.name} differently in two places",
                got=f"keep={keep}",
                required=f"keep={known[1]}, as before",
                fix=f"pass keep={known[1]} here too",
            )
        return known[0]


@final
class _Produce(AbstractContextManager[Any, None]):
    """The block of a stage being filled."""

    def __init__(self, recorder: Recorder, ring: Stages, cursor: Cursor, leader: Leader) -> None:
        self._recorder = recorder
        self._ring = ring
        self._cursor = cursor
        self._leader = leader
        self._block = Block()
        self._slots: tuple[Slot[Any, Any], ...] = ()

    @override
    def __enter__(self) -> tuple[Slot[Any, Any], ...]:
        recorder, ring = self._recorder, self._ring
        check_leader(leader_of(self._leader, f"producing into {ring.name}"), recorder)
        number = self._cursor.take()
        stage = ops.ProduceStage(
            empty=ring.bar(ring.empty, number),
            free=expr.sub(ring.turn(number), expr.ONE),
            full=ring.bar(ring.full, number),
            nbytes=ring.nbytes,
            token=recorder.next_token(),
        )
        self._frame = recorder.push(stage, recorder.scope)
        self._slots = StageTuple(Slot(recorder, ring, i, number, self._leader, self._block, self._frame) for i in range(len(ring.tiles)))
        return self._slots

    @override
    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /) -> None:
        self._block.open = False
        self._recorder.pop(self._frame, failed=exc is not None)
        missing = [f"{s.missing} for {p.name}" for s, p in zip(self._slots, self._ring.params, strict=True) if s.missing]
        if missing and exc_type is None:
            refuse(
                RecordError,
                "OX1107",
                f"a stage of {self._ring.name} is announced but not loaded: its consumers would wait for ever",
                got="; ".join(missing),
                required="one load for each slot of the stage",
                fix="call `slot.load(desc, at)` for every slot, outside any condition or under conditions that cover all cases",
            )


@final
class _Consume(AbstractContextManager[Any, None]):
    """The block of a landed stage."""

    def __init__(self, recorder: Recorder, ring: Stages, cursor: Cursor, group: AnyGroup, keep: int) -> None:
        self._recorder = recorder
        self._ring = ring
        self._cursor = cursor
        self._group = group
        self._keep = keep
        self._block = Block()

    @override
    def __enter__(self) -> tuple[Landed[Any, Any], ...]:
        recorder, ring = self._recorder, self._ring
        whole_group(self._group, f"consuming from {ring.name}")
        number = self._cursor.take()
        ring.kept = self._keep
        released = expr.sub(number, Const(self._keep))
        threads = self._group._frame.threads
        told, peers = ring.told(recorder.cluster)
        stage = ops.ConsumeStage(
            full=ring.bar(ring.full, number),
            landed=ring.turn(number),
            empty=ring.bar(ring.empty, released),
            release=expr.Cmp(expr.CmpOp.LE, ZERO, released) if self._keep else ALWAYS,
            peers=peers,
            told=told,
            number=recorder.barrier_number(threads),
            threads=len(threads),
            lane=threads.first,
            token=recorder.next_token(),
        )
        self._frame = recorder.push(stage, recorder.scope)
        return StageTuple(landed(ring, recorder, tile, request, number, self._block) for tile, request in ring.tiles)

    @override
    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /) -> None:
        self._block.open = False
        if self._block.written and exc_type is None:
            self._recorder.emit(ops.FenceProxyAsync())  # what is loaded over it comes through the async proxy
        self._recorder.pop(self._frame, failed=exc is not None)


def unused(ring: Stages, what: str, site: Any) -> RecordError:
    """A ring that nobody produces or consumes hangs whoever does the other."""
    return RecordError(
        Diagnostic(
            rule="OX1109",
            what=f"{ring.name} is never {what}",
            required="a producer and all its consumer groups",
            fix="use it in both roles, or drop it",
            site=site,
            causes=(Cause("made here", site),),
        )
    )
