"""A schedule that several roles follow: the tiles of a CTA, in one order, the same for whoever loads them and whoever uses them.

With a static order every role computes its tiles. With `ox.order.counter()` a counter of the launch gives a CTA its tiles while it runs:
one role asks for them, and the others are told with the stages that it fills. How many a CTA gets is unknown, even none; so is which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, final

from typing_extensions import TypeVar

from oxidecopy.errors import Cause, RecordError, ScopeError, ShapeError
from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Const, Expr, Sym, SymKind
from oxidecopy.program.expansion import ALWAYS
from oxidecopy.tiles.schedule import Order, Per, checked_order, product, unravel, worker_of
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.frames import Frame, fresh
from oxidecopy.typed.geometry import AnyBox
from oxidecopy.typed.im2col import Im2colDescriptor, Im2colWideDescriptor
from oxidecopy.typed.refusal import refuse, require
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.symbolic import Idx, SymIdx, constant, to_expr

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam
    from oxidecopy.tiles.cta import Cta
    from oxidecopy.typed.recorder import Recorder

C = TypeVar("C", bound=tuple[Idx, ...])
C_co = TypeVar("C_co", bound=tuple[Idx, ...], covariant=True)
Tiles_co = TypeVar("Tiles_co", bound=tuple[Any, ...], covariant=True)
DT = TypeVar("DT", bound=DType)
Bx = TypeVar("Bx", bound=AnyBox, default=Any)

# What the slots of a ring are loaded through.
Loadable: TypeAlias = TmaDescriptor[DT, Any, Any, Bx] | Im2colDescriptor[DT, Any, Any, Bx]


@final
@dataclass(frozen=True, slots=True)
class Counter:
    """The next tile that nobody has taken yet, by a counter of the launch: evens out tiles that take unequal time."""

    def visit(self, cta: object, counts: tuple[Expr, ...], worker: Expr, workers: Expr) -> NoReturn:
        """Each call of `cta.tiles` would ask for tiles of its own."""
        del cta, counts, worker, workers
        refuse(
            ScopeError,
            "OX1141",
            "tiles by a counter are one share of the CTA, not of each role",
            got="cta.tiles(..., order=ox.order.counter())",
            required="a schedule that the roles share",
            fix="work = cta.schedule(desc, order=ox.order.counter()), then `for at in work` and `ring.stages(group, work)`",
        )


@final
@dataclass(frozen=True, slots=True)
class StageAt(Generic[Tiles_co, C_co]):
    """A landed stage with the coordinates of what landed."""

    tiles: Tiles_co
    at: C_co


def parameter(desc: object, method: str) -> tuple[Recorder, MapParam, str]:
    """The recording and the parameter of a descriptor, and what a call of `method` is named in errors."""
    known: TmaDescriptor[Any, Any, Any, Any] = require(desc, TmaDescriptor, f"`{method}`", "pass a descriptor, a parameter of the pipeline")
    return known._recorded(method)


def loadable(desc: object, method: str) -> tuple[Recorder, MapParam, str]:
    """As `parameter`, of a descriptor that a ring's slots are loaded through: an im2col one will do as well."""
    if isinstance(desc, Im2colDescriptor):
        return desc._recorded(method)
    if isinstance(desc, Im2colWideDescriptor):
        refuse(
            RecordError,
            "OX1009",
            f"`{method}` takes no wide im2col descriptor",
            got="Im2colWideDescriptor",
            required="TmaDescriptor or Im2colDescriptor",
            fix="load by hand, with a barrier: `src.g2s(leader, tile, coords, token, halo=...)`",
        )
    return parameter(desc, method)


@final
class Boxes(Generic[C]):
    """The boxes that cover a descriptor's array, counted per dimension."""

    def __init__(self, desc: TmaDescriptor[Any, C, Any, Any], box: tuple[int, ...] | None, method: str) -> None:
        recorder, param, what = parameter(desc, method)
        given: object = box if box is not None else param.box_dim
        steps = tuple(constant(n) or 0 for n in given) if isinstance(given, tuple) else ()
        if len(steps) != param.rank or not all(n > 0 for n in steps):
            refuse(
                ShapeError,
                "OX1012",
                f"{what}: `box` does not fit the descriptor",
                got=repr(box),
                required=f"{param.rank} positive ints",
                fix="name one extent per dimension",
            )
        if box is None and any(n % stride for n, stride in zip(param.box_dim, param.element_strides, strict=True)):
            refuse(
                ShapeError,
                "OX1012",
                f"{what}: boxes side by side would not go on where the element stride leaves off",
                got=f"box {param.box_dim}, element strides {param.element_strides}",
                required="a box of a multiple of the stride in each dimension",
                fix="choose such a box for the descriptor, or say with `box=` how far the visits are apart",
            )
        extents = [to_expr(extent) for extent in desc.shape]
        if not all(expr.is_launch_constant(extent) for extent in extents):
            refuse(
                ScopeError,
                "OX1151",
                f"{what}: how many boxes there are would differ from CTA to CTA, or from iteration to iteration",
                got="an entry of a table that is chosen while the pipeline runs",
                required="a descriptor, or an entry by a plain int or an `Idx` parameter",
                fix="loop over `desc.shape` with `cta.range`, or read the work from a list with `cta.load_index`",
            )
        self._recorder = recorder
        self._steps = steps
        self.counts = tuple(expr.floordiv(expr.add(extent, Const(n - 1)), Const(n)) for extent, n in zip(extents, steps, strict=True))

    def corner(self, index: tuple[Expr, ...]) -> C:
        """Element coordinates of a box."""
        corner = (expr.mul(i, Const(n)) for i, n in zip(index, self._steps, strict=True))
        return tuple(SymIdx(c, self._recorder) for c in corner)  # type: ignore[return-value]  # C is the rank's tuple


class Work(Generic[C]):
    """Made by `cta.schedule`. `for at in work` visits the tiles; `ring.stages(group, work)` and `ring.visits(leader, work)` follow."""

    __slots__ = ("_boxes", "_cta", "_order", "_recorder", "_worker")

    def __init__(self, cta: Cta, boxes: Boxes[C], order: Order, per: Per) -> None:
        self._cta = cta
        self._recorder: Recorder = cta._recorder
        self._boxes = boxes
        self._order = checked_order(order)
        self._worker = worker_of(cta, per)

    def __iter__(self) -> Iterator[C]:
        self._recorder.check_open("a schedule")
        for index in self._order.visit(self._cta, self._boxes.counts, *self._worker):
            yield self._boxes.corner(index)

    def _followed(self, fills: list[Frame | None], name: str) -> Iterator[C]:
        """As whoever is told of the tiles by the stages of a ring; `fills` are the loops in which its stages are produced."""
        del fills, name
        return iter(self)


@final
class CounterWork(Work[C]):
    """A schedule by a counter: one role claims the tiles, once."""

    __slots__ = ("_claim", "_trips")

    def __init__(self, cta: Cta, boxes: Boxes[C], order: Order, per: Per) -> None:
        super().__init__(cta, boxes, order, per)
        recorder = self._recorder
        recorder.require_once("making a schedule by a counter")
        others = sum(1 for s in recorder.frames[0].steps if isinstance(s.op, ops.ShareTiles))
        if others or recorder.cluster != (1, 1, 1):
            refuse(
                ScopeError,
                "OX1143",
                "this pipeline cannot have a counter-driven schedule" + (" more" if others else ""),
                got="a second one" if others else f"a cluster of {recorder.cluster}",
                required="at most one, in a pipeline without a cluster",
                fix="use a static order: `ox.order.linear`, `ox.order.grouped(rows)`",
            )
        self._claim: Frame | None = None
        self._trips = Sym(fresh("tiles_given", {p.name for p in recorder.params}), SymKind.TRIPS)
        recorder.emit(ops.ShareTiles(name=self._trips.name, tiles=product(boxes.counts)))

    def __iter__(self) -> Iterator[C]:
        self._recorder.check_open("a schedule")
        if self._claim is not None:
            refuse(
                ScopeError,
                "OX1144",
                "the tiles of a counter are claimed twice",
                required="one `for at in work`; other roles are told by the stages that it fills",
                fix="for stage in ring.stages(group, work): ... stage.tiles, stage.at",
                causes=(Cause("claimed here", self._claim.site),),
            )
        for at, frame in self._given():
            self._claim = frame
            yield at

    def _followed(self, fills: list[Frame | None], name: str) -> Iterator[C]:
        site = caller_site()

        def check(_: Frame) -> None:
            if self._claim is None or fills.count(self._claim) != 1:
                refuse(
                    RecordError,
                    "OX1145",
                    f"the stages of {name} do not tell which tiles of the counter they bring",
                    got=f"{fills.count(self._claim)} produce blocks in the loop over them" if self._claim else "nobody claims the tiles",
                    required="one produce block of the ring directly inside `for at in work`",
                    fix="for at in work: with ring.produce(leader) as (slot,): slot.load(src, at)",
                    site=site,
                )

        self._recorder.frames[0].closing.append(check)
        for at, _ in self._given():
            yield at

    def _given(self) -> Iterator[tuple[C, Frame]]:
        """A loop over the share."""
        recorder = self._recorder
        around = next((f for f in recorder.frames if f.is_loop), None)
        condition = next((f for f in recorder.frames if isinstance(f.op, ops.When) and f.op.cond != ALWAYS), None)
        if condition is not None:
            refuse(
                ScopeError,
                "OX1144",
                "the tiles of a counter are visited under a condition: where it does not hold, those that were given would be left out",
                required="no condition around",
                fix="visit them in every CTA; launch fewer CTAs to have fewer at work",
                causes=(Cause("the condition around", condition.site),),
            )
        if around is not None:
            refuse(
                ScopeError,
                "OX1144",
                "the tiles of a counter are visited inside another loop: they are given once",
                required="no loop around",
                fix="make it the outermost loop of the role",
                causes=(Cause("the loop around", around.site),),
            )
        for i in self._cta.range(SymIdx(self._trips, recorder)):
            tile, frame = recorder.read(), recorder.frames[-1]
            recorder.emit(ops.NextTile(name=tile.name, trips=self._trips, index=i.expr))
            yield self._boxes.corner(unravel(tile, self._boxes.counts)), frame


def make_work(cta: Cta, boxes: Boxes[C], order: Order, per: Per) -> Work[C]:
    """The schedule for an order."""
    return CounterWork(cta, boxes, order, per) if isinstance(order, Counter) else Work(cta, boxes, order, per)
