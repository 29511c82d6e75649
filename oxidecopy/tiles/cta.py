"""`Cta` and `ClusterCta` as users see them: level 1 of `typed`, plus roles, rings and schedules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias, final, overload

from typing_extensions import TypeVar, override

from oxidecopy.errors import ArgumentError, Diagnostic, RecordError, ScopeError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.expr import Const
from oxidecopy.isa.ops import BarrierRef, ThreadSet
from oxidecopy.tiles.group import ClusterGroup, Group
from oxidecopy.tiles.mapping import Maps
from oxidecopy.tiles.ring import Ring, unused
from oxidecopy.tiles.roles import Role, Roles
from oxidecopy.tiles.schedule import Linear, Order, Per
from oxidecopy.tiles.sharing import AXES, ClusterAxis, Sharing, told
from oxidecopy.tiles.stage import Landed, Slot, Stages
from oxidecopy.tiles.store_ring import StoreRing
from oxidecopy.tiles.work import Boxes, Loadable, Work, loadable, make_work, parameter
from oxidecopy.typed import cta as level1
from oxidecopy.typed.cta_checks import warp_threads
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import A1024, AnyBox
from oxidecopy.typed.leader import ClusterLeader, HandleBlock, Leader
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.symbolic import Idx, constant

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam
    from oxidecopy.typed.frames import Frame
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
_Lead = TypeVar("_Lead", bound=Leader)
_D1 = TypeVar("_D1", bound=DType)
_D2 = TypeVar("_D2", bound=DType)
_D3 = TypeVar("_D3", bound=DType)
_B1 = TypeVar("_B1", bound=AnyBox)
_B2 = TypeVar("_B2", bound=AnyBox)
_B3 = TypeVar("_B3", bound=AnyBox)
AlongOne: TypeAlias = tuple[ClusterAxis] | None
AlongTwo: TypeAlias = tuple[ClusterAxis, ClusterAxis] | None


class Cta(level1.Cta, Maps):
    """One thread block of the launch."""

    __slots__ = ("_opened", "_roles")

    def __init__(self, recorder: Recorder, roles: Roles | None = None) -> None:
        super().__init__(recorder)
        self._roles = roles
        self._opened: set[Role] = set()
        if roles is not None:
            recorder.registers = roles.hints
            recorder.frames[0].closing.append(self._check_roles)

    @override
    def _executes(self, what: str) -> Recorder:
        self._recorder.check_open(what)
        return self._recorder

    # ---- roles
    def producer(self) -> AbstractContextManager[Leader, None]:
        """The producer's block: one fixed elected lane of its warps."""
        return self._leader("producer", Leader)

    def storer(self) -> AbstractContextManager[Leader, None]:
        """The store role's block: one fixed elected lane of its warps."""
        return self._leader("storer", Leader)

    def consumers(self, number: int = 0, /) -> AbstractContextManager[Group, None]:
        """A consumer group's block, by its number in `ox.roles(consumers=...)`."""
        role = self._role("consumers", number)
        return HandleBlock(self._recorder, "consumers", role.threads, Group)

    @override
    def warps(self, first: int, stop: int, /) -> AbstractContextManager[Group, None]:
        return HandleBlock(self._recorder, "warps", warp_threads(self._recorder, first, stop), Group)

    def _leader(self, name: str, cls: type[_Lead]) -> AbstractContextManager[_Lead, None]:
        first = self._role(name, 0).threads.first
        return HandleBlock(self._recorder, name, ThreadSet(((first, first + 1),)), cls)

    def _role(self, name: str, number: int) -> Role:
        self._recorder.check_open("the cta")
        known = [r for r in self._roles.all if r.name == name] if self._roles is not None else []
        chosen = constant(number)
        if chosen is None or not 0 <= chosen < len(known):
            refuse(
                ScopeError,
                "OX1111",
                f"this pipeline has no role {name}" + (f"({number!r})" if known else ""),
                got=", ".join(map(str, self._roles.all)) if self._roles is not None else "no roles",
                fix="declare it: @ox.pipeline(warps=ox.roles(producer=1, consumers=4))",
            )
        self._opened.add(known[chosen])
        return known[chosen]

    def _check_roles(self, frame: Frame) -> None:
        idle = [r for r in self._roles.all if r not in self._opened] if self._roles is not None else []
        if idle:
            raise RecordError(
                *(
                    Diagnostic(
                        rule="OX1112",
                        what=f"role {r} is declared but has no block: its warps would do nothing",
                        fix=f"open it with `with cta.{r.name}(...)`, or do not declare it",
                        site=frame.site,
                    )
                    for r in idle
                )
            )

    # ---- rings
    @overload
    def ring(
        self, *, stages: int, tiles: tuple[Loadable[_D1, _B1]], consumers: int | None = ...
    ) -> Ring[tuple[Slot[_D1, _B1]], tuple[Landed[_D1, _B1]]]: ...
    @overload
    def ring(
        self,
        *,
        stages: int,
        tiles: tuple[Loadable[_D1, _B1], Loadable[_D2, _B2]],
        consumers: int | None = ...,
    ) -> Ring[tuple[Slot[_D1, _B1], Slot[_D2, _B2]], tuple[Landed[_D1, _B1], Landed[_D2, _B2]]]: ...
    @overload
    def ring(
        self,
        *,
        stages: int,
        tiles: tuple[Loadable[_D1, _B1], Loadable[_D2, _B2], Loadable[_D3, _B3]],
        consumers: int | None = ...,
    ) -> Ring[tuple[Slot[_D1, _B1], Slot[_D2, _B2], Slot[_D3, _B3]], tuple[Landed[_D1, _B1], Landed[_D2, _B2], Landed[_D3, _B3]]]: ...
    def ring(self, *, stages: int, tiles: tuple[Loadable[Any, Any], ...], consumers: int | None = None) -> Ring[Any, Any]:
        """A ring of `stages` stages, each with a tile for every descriptor of `tiles`.

        Args:
            stages: 2 or more for copies that overlap the work; 1 works.
            tiles: one to three descriptors, tiled or im2col; their boxes, element types and swizzles decide the tiles.
            consumers: how many groups consume every stage; all declared ones by default.
        """
        return self._ring(stages, tiles, consumers)

    @property
    def _groups(self) -> int:
        """Consumer groups that are declared."""
        return sum(r.name == "consumers" for r in self._roles.all) if self._roles is not None else 0

    def _ring(
        self, depth: object, tiles: tuple[Loadable[Any, Any], ...], consumers: object, sharing: tuple[Sharing, ...] | None = None
    ) -> Ring[Any, Any]:
        """A ring. `sharing`: of a multicast ring, who shares its first tiles; each CTA loads the others for itself."""
        recorder = self._recorder
        recorder.check_open("the cta")
        recorder.require_once("making a ring")
        stages, groups = constant(depth), max(1, self._groups) if consumers is None else constant(consumers)
        given: object = tiles
        fits = isinstance(given, tuple) and 1 <= len(given) <= 3
        if stages is None or not 1 <= stages <= 64 or not fits or groups is None or groups < 1:
            refuse(
                ArgumentError,
                "OX1113",
                "no such ring",
                got=f"stages={depth!r}, tiles={tiles!r}, consumers={groups if consumers is None else consumers!r}",
                required="1 to 64 stages, a tuple of 1 to 3 descriptors, 1 consumer group or more",
                fix=f"{'multicast_' if sharing is not None else ''}ring(stages=4, tiles=(src,))",
            )
        name = f"ring{sum(1 for b in recorder.barriers if b.name.endswith('_full'))}"
        shared = sharing or ()
        # The slices of a shared tile follow each other in the array, which the pixels of an im2col load need not.
        params = tuple((parameter if i < len(shared) else loadable)(t, "ring")[1] for i, t in enumerate(tiles))
        made = []
        for i, p in enumerate(params):
            outer, *inner = p.layout.shape
            if i < len(shared):
                outer *= self._slices(p, shared[i])
            request = self._request(f"{name}_{p.name}", p.dtype, (outer, *inner), A1024.bytes, stages)
            request.adopt(p.swizzle)
            made.append((self._add(request), request))
        full = recorder.add_barrier("TmaBarrier", stages, f"{name}_full")
        empty = recorder.add_barrier("TmaBarrier", stages, f"{name}_empty")
        self._init(full, 1, empty, groups * max(1, told(shared, recorder.cluster)[1]), stages)
        ring = Stages(name=name, stages=stages, full=full, empty=empty, tiles=tuple(made), params=params, sharing=shared)
        site = caller_site()
        result: Ring[Any, Any] = Ring(recorder, ring, groups)

        def check(_: Frame) -> None:
            if not result.produced:
                raise unused(ring, "produced into", site)
            if result.groups < groups:
                raise unused(ring, f"consumed by {groups - result.groups} of its {groups} groups", site)

        recorder.frames[0].closing.append(check)
        return result

    def _slices(self, p: MapParam, sharing: Sharing) -> int:
        """How many boxes a shared tile has, one behind the other in shared memory."""
        axis = sharing.dimension(p.rank)
        wrong = (
            f"slices along dimension {sharing.axis} of {p.rank}"
            if not 0 <= axis < p.rank
            else f"slices along dimension {axis}, a box of {p.box_dim}"
            if any(n > 1 for n in p.box_dim[:axis])
            else f"a box of {p.layout.nbytes} bytes"
            if p.layout.nbytes % limits.TENSOR_SMEM_ALIGN
            else ""
        )
        if wrong:
            refuse(
                ArgumentError,
                "OX1113",
                f"the slices of a multicast ring do not lie one behind the other, or are not aligned: boxes of {p.name!r}",
                got=wrong,
                required=f"a box of a multiple of {limits.TENSOR_SMEM_ALIGN} bytes, 1 in the dimensions before that of the slices",
                fix="choose a larger box, or `axis=` a dimension before which the box is 1",
            )
        return sharing.parts

    def _init(self, full: int, full_count: int, empty: int, empty_count: int, stages: int) -> None:
        """Thread 0 initialises both arrays, then everybody syncs (in a cluster: the cluster)."""
        recorder = self._recorder
        threads = ThreadSet(((0, 1),))
        frame = recorder.push(ops.Scope(role="thread", threads=threads), threads)
        for i in range(stages):
            recorder.emit(ops.MbarrierInit(bar=BarrierRef(full, Const(i)), count=full_count))
            recorder.emit(ops.MbarrierInit(bar=BarrierRef(empty, Const(i)), count=empty_count))
        if recorder.cluster != (1, 1, 1):
            recorder.emit(ops.FenceMbarrierInit())
        recorder.pop(frame)
        recorder.emit(ops.ClusterSync() if recorder.cluster != (1, 1, 1) else ops.BarSync(number=0, threads=recorder.threads))

    def store_ring(self, dst: TmaDescriptor[DT, C, Any, Bx], /, *, stages: int) -> StoreRing[DT, C, Bx]:
        """`stages` staging tiles for stores to `dst`: one is filled while others are still being read."""
        recorder = self._recorder
        recorder.check_open("the cta")
        recorder.require_once("making a store ring")
        count = constant(stages)
        if count is None or not 1 <= count <= 16:
            refuse(
                ArgumentError,
                "OX1113",
                "no such store ring",
                got=f"stages={stages!r}",
                required="1 to 16 stages (wait_group leaves at most 15 pending)",
                fix="store_ring(dst, stages=2)",
            )
        _, param, _ = parameter(dst, "store_ring")
        request = self._request(f"{param.name}_out", param.dtype, param.layout.shape, A1024.bytes, count)
        request.adopt(param.swizzle)
        return StoreRing(recorder, param, dst._ref, self._add(request), request)

    # ---- schedules
    def tiles(
        self, desc: TmaDescriptor[Any, C, Any, Any], /, *, order: Order | None = None, per: Per = "cta", box: tuple[int, ...] | None = None
    ) -> Iterator[C]:
        """This CTA's share of the boxes that cover `desc`'s array, as element coordinates of their corners (remainder boxes included).

        Args:
            desc: the descriptor whose array is covered.
            order: `ox.order.linear` (persistent, the default), `once`, `grouped(rows)` or `custom(fn, trips)`.
            per: "cluster" gives all CTAs of a cluster the same boxes.
            box: extents of what one visit covers, when it is not the descriptor's box (the full tile of a multicast ring).
        """
        self._recorder.check_open("the cta")
        yield from Work(self, Boxes(desc, box, "tiles"), order or Linear(), per)

    def schedule(
        self, desc: TmaDescriptor[Any, C, Any, Any], /, *, order: Order | None = None, per: Per = "cta", box: tuple[int, ...] | None = None
    ) -> Work[C]:
        """A schedule that the roles share: `for at in work` for the producer, `ring.stages(group, work)` for who consumes what it loads.

        Args:
            desc: whose array is covered by boxes.
            order: as in `cta.tiles`, or `ox.order.counter()`: tiles are given to CTAs while the launch runs, each to one of them.
            per: as in `cta.tiles`; a counter gives tiles to CTAs.
            box: as in `cta.tiles`.
        """
        self._recorder.check_open("the cta")
        return make_work(self, Boxes(desc, box, "schedule"), order or Linear(), per)


@final
class ClusterCta(Cta, level1.ClusterCta):
    """A CTA of a pipeline with a cluster."""

    __slots__ = ()

    @override
    def consumers(self, number: int = 0, /) -> AbstractContextManager[ClusterGroup, None]:
        """A consumer group's block, by its number in `ox.roles(consumers=...)`; its leaders may multicast."""
        return HandleBlock(self._recorder, "consumers", self._role("consumers", number).threads, ClusterGroup)

    @override
    def warps(self, first: int, stop: int, /) -> AbstractContextManager[ClusterGroup, None]:
        """Warps `first` to `stop` - 1 as a role of their own; the last warp may be partial."""
        return HandleBlock(self._recorder, "warps", warp_threads(self._recorder, first, stop), ClusterGroup)

    @override
    def producer(self) -> AbstractContextManager[ClusterLeader, None]:
        """The producer's block: one fixed elected lane of its warps, which may multicast."""
        return self._leader("producer", ClusterLeader)

    @override
    def storer(self) -> AbstractContextManager[ClusterLeader, None]:
        """The store role's block: one fixed elected lane of its warps."""
        return self._leader("storer", ClusterLeader)

    @overload
    def multicast_ring(
        self,
        *,
        stages: int,
        tiles: tuple[TmaDescriptor[_D1, Any, Any, Any]],
        consumers: int | None = ...,
        along: AlongOne = ...,
        axis: int = ...,
    ) -> Ring[tuple[Slot[_D1, Any]], tuple[Landed[_D1, Any]]]: ...
    @overload
    def multicast_ring(
        self,
        *,
        stages: int,
        tiles: tuple[TmaDescriptor[_D1, Any, Any, Any], TmaDescriptor[_D2, Any, Any, Any]],
        consumers: int | None = ...,
        along: AlongTwo = ...,
        axis: int = ...,
    ) -> Ring[tuple[Slot[_D1, Any], Slot[_D2, Any]], tuple[Landed[_D1, Any], Landed[_D2, Any]]]: ...
    @overload
    def multicast_ring(
        self,
        *,
        stages: int,
        tiles: tuple[TmaDescriptor[_D1, Any, Any, Any]],
        own: tuple[Loadable[_D2, _B2]],
        consumers: int | None = ...,
        along: AlongOne = ...,
        axis: int = ...,
    ) -> Ring[tuple[Slot[_D1, Any], Slot[_D2, _B2]], tuple[Landed[_D1, Any], Landed[_D2, _B2]]]: ...
    @overload
    def multicast_ring(
        self,
        *,
        stages: int,
        tiles: tuple[TmaDescriptor[_D1, Any, Any, Any]],
        own: tuple[Loadable[_D2, _B2], Loadable[_D3, _B3]],
        consumers: int | None = ...,
        along: AlongOne = ...,
        axis: int = ...,
    ) -> Ring[tuple[Slot[_D1, Any], Slot[_D2, _B2], Slot[_D3, _B3]], tuple[Landed[_D1, Any], Landed[_D2, _B2], Landed[_D3, _B3]]]: ...
    @overload
    def multicast_ring(
        self,
        *,
        stages: int,
        tiles: tuple[TmaDescriptor[_D1, Any, Any, Any], TmaDescriptor[_D2, Any, Any, Any]],
        own: tuple[Loadable[_D3, _B3]],
        consumers: int | None = ...,
        along: AlongTwo = ...,
        axis: int = ...,
    ) -> Ring[tuple[Slot[_D1, Any], Slot[_D2, Any], Slot[_D3, _B3]], tuple[Landed[_D1, Any], Landed[_D2, Any], Landed[_D3, _B3]]]: ...
    def multicast_ring(
        self,
        *,
        stages: int,
        tiles: tuple[TmaDescriptor[Any, Any, Any, Any], ...],
        own: tuple[Loadable[Any, Any], ...] = (),
        consumers: int | None = None,
        along: tuple[ClusterAxis, ...] | None = None,
        axis: int = 0,
    ) -> Ring[Any, Any]:
        """A ring whose tiles all CTAs of the cluster share: each loads one slice (its descriptor's box) into all of them.

        A tile is as many boxes tall as the CTAs that share it; `slot.load(src, at)` takes the corner of the whole tile. Producers of all
        CTAs must visit the same tiles (`cta.tiles(..., per="cluster", box=...)`).

        Args:
            stages: as in `ring`.
            tiles: descriptors of what the cluster shares.
            own: descriptors of tiles that each CTA loads for itself, as in `ring`; a stage's block gives them behind those of `tiles`.
            consumers: as in `ring`.
            along: for each of `tiles` the axis of the cluster along which CTAs share it, as ("y", "x") for the rows and the columns of a
                product by a cluster of two dimensions: those with other indices along the other axes have tiles of their own.
            axis: the dimension of the arrays in which the slices follow each other, from the end where it is negative: -2 are the rows of
                matrices, whatever lies before them. Before it boxes are 1.
        """
        self._recorder.require_cluster("a multicast ring")
        given: tuple[object, ...] = (tiles, own)
        fits = all(isinstance(each, tuple) for each in given) and len(tiles) > 0 and len(tiles) + len(own) <= 3
        chosen: object = (None,) * len(tiles) if fits and along is None else along
        axes: tuple[Any, ...] = chosen if isinstance(chosen, tuple) else ()
        fits = fits and len(axes) == len(tiles) and all(each in (None, *AXES) for each in axes)
        flat = along is None or self._recorder.cluster[2] == 1
        sliced = constant(axis)
        if not fits or not flat or sliced is None:
            refuse(
                ArgumentError,
                "OX1113",
                "no such ring",
                got=f"tiles={tiles!r}, own={own!r}, along={along!r}, axis={axis!r}",
                required='1 to 3 descriptors, one or more in `tiles`; `along` "x" or "y" for each of those, where z of the cluster is 1',
                fix='cta.multicast_ring(stages=4, tiles=(a, b), along=("y", "x"))',
            )
        sharing = tuple(Sharing(self._recorder.cluster, each, sliced) for each in axes)
        ring = self._ring(stages, (*tiles, *own), consumers, sharing)
        # Peers may still arrive here when this CTA's roles are done: nobody leaves before everybody is.
        self._recorder.frames[0].closing.append(lambda _: self._recorder.emit(ops.ClusterSync()))
        return ring
