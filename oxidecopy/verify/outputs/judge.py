"""What is said of the accesses to each tensor: stores that meet, loads of what other CTAs store, elements that nothing stores.

Three ways, the cheapest that decides: a proof that all instances of the one store are apart (`distinct`), all boxes of the launch as cells
(`instances`, `cells`), and for the stores of one CTA its thread's ops one by one (`replay`). What none decides is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, final

import numpy as np

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Expr, Sym, SymKind, divides_by_zero, evaluate, substitute
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, Launch, MapParam, Program, Step
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.coords import counter_range, everywhere
from oxidecopy.verify.outputs.around import Around
from oxidecopy.verify.outputs.cells import Cells, cells, different
from oxidecopy.verify.outputs.crossing import alike, may_be_ordered
from oxidecopy.verify.outputs.distinct import proves_distinct
from oxidecopy.verify.outputs.instances import Instances, instances
from oxidecopy.verify.outputs.places import Place, Way, places, rank_of, tensors
from oxidecopy.verify.outputs.replay import TooLongError, all_synced, out_of_order, unordered

if TYPE_CHECKING:
    from oxidecopy.verify.opaque import Opaque
    from oxidecopy.verify.outputs.around import Column
    from oxidecopy.verify.outputs.instances import Mask
    from oxidecopy.verify.report import Collector

COVER_MAX: Final = 1 << 20  # cells of a tensor among which missing ones are looked for: some 10 ms
_BLOCKS: Final[tuple[Expr, ...]] = tuple(Sym(name, SymKind.BLOCK) for name in BLOCK_SYMBOLS)
_CLUSTER: Final = "CTAs of one cluster do it, and whether what they tell each other orders them is not looked at"
_NO_BOXES: Final = "some are not boxes of its elements (im2col, interleaved, gather, scatter, replaced maps or runs across rows)"
_SIDES: Final[tuple[Literal["left", "right"], ...]] = ("left", "right")
CTAS_MAX: Final = 32  # of those that store to one place twice, how many are gone through op by op


def check_outputs(
    program: Program, launch: Launch, folded: Mapping[int, ops.Instr], opaque: Opaque, ran: Mapping[int, int], out: Collector
) -> None:
    """Reports on all tensors that the program stores to; `ran` numbers the steps in the order in which they came on a legal schedule."""
    every = places(program, launch, folded)
    found = sorted(every.placed, key=lambda place: place.tensor)
    found = [place for place in found if id(place.step) in ran or not _nowhere(place)]
    judge = _Judge(program, launch, folded, opaque, tuple(op for op in folded.values() if isinstance(op, ops.NextTile)), ran, out, {})
    for name, group in groupby(found, key=lambda place: place.tensor):
        accesses = list(group)
        if any(place.way is not Way.LOAD for place in accesses):
            judge.tensor(name, accesses)
    for name, step in every.stored.items():
        judge.undecided(name, step, _NO_BOXES)
    written = dict(every.stored) | {place.tensor: place.step for place in found if place.way is not Way.LOAD}
    _overlaps(program, launch, written, out)


def _overlaps(program: Program, launch: Launch, written: Mapping[str, Step], out: Collector) -> None:
    """Memory that is shared, but not by parameters with the same view: there elements are not compared."""
    maps = [p for p in program.params if isinstance(p, MapParam)]
    owners = {name: p.name for p in maps for name in p.bound_names}
    tables = {p.name for p in maps if p.entries is not None}
    stands_for = tensors(program, launch)
    at = {name: (stands_for.get(p.name), n) for p in maps for n, name in enumerate(p.bound_names)}  # its tensor, and which entry of it
    of_tables = [pair for group in launch.same for pair in pairwise(group) if any(owners.get(name) in tables for name in pair)]
    for pair in [*launch.overlapping, *(pair for pair in of_tables if at.get(pair[0]) != at.get(pair[1]))]:
        stored = [stands_for.get(owner, owner) for name in pair for owner in [owners.get(name, name)]]
        step = next((written[tensor] for tensor in stored if tensor in written), None)
        if step is not None:
            a, b = pair
            out.add(
                ids.OVERLAPPING_VIEWS,
                f"{a!r} and {b!r} share memory, though they are different views or entries, and one of them is stored to",
                step=step,
                got=", ".join(_seen(launch, name) for name in pair),
                required="outputs that share no memory with other parameters, or are the very same view",
                fix="store to an array of its own, or bind the same view to both",
                key=pair,
            )


def _seen(launch: Launch, name: str) -> str:
    """A parameter's name and the view that it is bound to."""
    for known, map_ in launch.maps:
        if known == name:
            return f"{name}: {map_.global_dim} elements, strides of {map_.global_strides} bytes"
    for known, array in launch.arrays:
        if known == name:
            return f"{name}: {array.shape} elements, strides of {array.strides_bytes} bytes"
    return name


class _Met(NamedTuple):
    """Rows of two accesses to one cell."""

    first: int
    second: int


@final
@dataclass(frozen=True, slots=True)
class _Judge:
    program: Program
    launch: Launch
    folded: Mapping[int, ops.Instr]
    opaque: Opaque
    dealt: tuple[ops.NextTile, ...]  # the ops that ask a counter for a tile
    ran: Mapping[int, int]
    out: Collector
    nests: dict[int, Around]  # by id of the loops, which places keep

    def tensor(self, name: str, accesses: list[Place]) -> None:
        writes = [place for place in accesses if place.way is not Way.LOAD]
        loads = [place for place in accesses if place.way is Way.LOAD]
        apart = self._apart(writes)
        if len({place.dims for place in accesses}) > 1:
            return  # a table beside one of its entries cannot be bound; kept for hand-written programs
        located = [self._located(place) for place in writes]
        known = [(place, each) for place, each in zip(writes, located, strict=True) if each is not None]
        cut = cells(known, writes[0].dims) if len(known) == len(writes) else None
        if cut is None:
            if not apart:
                self.undecided(name, writes[0].step, "its stores depend on values of the run, or are too many to compare")
        else:
            if not apart:
                self._stores(name, known, cut)
            self._cover(name, known, cut)
        if loads and self._own_boxes(loads, writes):
            self._reloads(name, [*loads, *writes], {0: lambda _, at: (at,)})
        elif loads:
            self._loads(name, loads, known if len(known) == len(writes) else None)

    # ---- the proof without counting
    def _apart(self, writes: list[Place]) -> bool:
        if len({place.op for place in writes}) == 1 and writes[0].op:
            return True  # reductions of one operation may meet
        if len(writes) > 1:
            return False
        (place,) = writes
        if any(step > 1 for step, n in zip(place.steps, place.extents, strict=True) if n > 1):
            return False
        free = [*BLOCK_SYMBOLS, *(loop.counter for loop in place.loops)]
        return proves_distinct(place.coords, place.extents, self._around(place.loops).ranges, free, self._told())

    def _own_boxes(self, loads: list[Place], writes: list[Place]) -> bool:
        """True when each CTA loads boxes that it alone stores, by the same coordinates: work in place."""
        if any(isinstance(place.step.op, ops.Multicast) for place in loads):
            return False
        return not any(place.op for place in writes) and self._apart(writes) and all(_box(place) == _box(writes[0]) for place in loads)

    def _around(self, loops: tuple[ops.Loop, ...]) -> Around:
        found = self.nests.get(id(loops))
        if found is None:
            env = everywhere(self.program, self.launch, self.opaque)
            for loop in loops:
                env[loop.counter] = counter_range(loop, env)
            found = self.nests[id(loops)] = Around(loops, env, self.launch.grid)
        return found

    def _told(self) -> dict[str, tuple[Expr, ...]]:
        """What the number of a counter's tile tells: the CTA and the iteration that got it."""
        return {op.name: (*_BLOCKS, op.index) for op in self.dealt}

    # ---- by cells
    def _located(self, place: Place) -> Instances | None:
        around, bounds = self._around(place.loops), [e for loop in place.loops for e in (loop.start, loop.stop)]
        if not all(around.fits(e) for e in (*place.coords, *bounds)):
            return None
        return instances(place, around, {op.name: self.opaque.tiles for op in self.dealt}, alone=self.launch.grid == (1, 1, 1))

    def _stores(self, name: str, known: list[tuple[Place, Instances]], cut: Cells) -> None:
        order = np.lexsort((cut.cta, cut.cell))
        kinds = _kinds(known)[cut.place[order]]
        cell, cta = cut.cell[order], cut.cta[order]
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        least, most = np.minimum.reduceat(cta, starts), np.maximum.reduceat(cta, starts)
        clash = _clash(kinds, starts)
        clusters = self._cluster(cta)
        apart = np.minimum.reduceat(clusters, starts) != np.maximum.reduceat(clusters, starts) if len(starts) else clash
        for meeting, whose in ((clash & apart, clusters), (clash & (least != most), cta)):
            if meeting.any():
                met = _pair(kinds, whose, *_group(starts, len(cell), int(np.flatnonzero(meeting)[0])))
                self._meet(name, known, cut, order, met)
                return
        own = np.flatnonzero((np.diff(cell) == 0) & ~((kinds[1:] == kinds[:-1]) & (kinds[1:] > 0))) if len(cell) else starts
        if len(own):
            self._ordered(name, known, cut, order[own], order[own + 1])

    def _meet(self, name: str, known: list[tuple[Place, Instances]], cut: Cells, order: Column, met: _Met) -> None:
        a, b = int(order[met.first]), int(order[met.second])
        places_ = [known[int(cut.place[row])] for row in (a, b)]
        step, other = places_[1][0].step, places_[0][0].step
        if not all(each.certain for _, each in places_):
            self.undecided(name, places_[1][0].step, "stores that meet are under the answer of a test")
            return
        if self._tell_each_other(step, other, cut, known, a, b):
            self.undecided(name, places_[1][0].step, _CLUSTER)
            return
        self.out.add(
            ids.STORES_MEET,
            _meeting(name, places_[0][0].op, places_[1][0].op),
            step=step,
            got=f"elements {_words(cut.box_of(cut.cell[[b]])[0])}, by blocks {self._block(cut.cta[a])} and {self._block(cut.cta[b])}",
            required="each element stored by one CTA",
            fix="let the coordinates tell the blocks apart (in elements), launch as many blocks as there are boxes, or reduce instead",
            causes=[("stored here too", other)] if other is not step else [],
        )

    def _tell_each_other(self, step: Step, other: Step, cut: Cells, known: list[tuple[Place, Instances]], a: int, b: int) -> bool:
        """True when the stores of rows `a` and `b` are of one cluster, and what its CTAs tell each other may order them."""
        one, two = int(cut.cta[a]), int(cut.cta[b])
        if self._cluster(one) != self._cluster(two) or not may_be_ordered(self.program.steps, self.folded, step, other):
            return False
        if step is not other:
            return True
        # The same store in the same turn: CTAs that do the same ops are there together.
        _, each = known[int(cut.place[a])]
        turns = [int(cut.instance[row]) - int(np.searchsorted(each.cta, cut.cta[row])) for row in (a, b)]
        return turns[0] != turns[1] or not alike(self.program.steps, self.folded, self._own(one), self._own(two))

    def _ordered(self, name: str, known: list[tuple[Place, Instances]], cut: Cells, first: Column, second: Column) -> None:
        """Stores of one CTA to one cell."""
        involved = [known[n][0] for n in sorted({*cut.place[first].tolist(), *cut.place[second].tolist()})]
        threads = {place.threads for place in involved}
        if all(place.way is Way.PLAIN for place in involved) and len(threads) == 1 and _equal_boxes(known, cut, first, second):
            return  # each thread stores the same elements again, in the order of its ops
        if all(place.way is Way.PLAIN for place in involved) and len(threads) == 1 and self._synced(involved, known, cut, first):
            return
        if any(place.way is Way.PLAIN for place in involved) or len(threads) > 1 or len(involved[0].threads) > 1:
            why = "one place is stored to by several threads, and no sync of all of them is seen in between"
            self.undecided(name, involved[-1].step, why)
            return
        if self.opaque.trips or self.opaque.ranges:
            self.undecided(name, involved[-1].step, "one place is stored to more than once, in loops that only the running program knows")
            return
        stores = {id(place.step): place for place in involved}
        try:
            for cta in different(cut.cta[first])[:CTAS_MAX]:
                wrong = unordered(
                    self.program.steps,
                    self.folded,
                    involved[0].threads.first,
                    self._own(cta),
                    stores,
                    _cells_of(known, cut, int(cta)),
                )
                if wrong is not None:
                    self._unordered(name, cta, *wrong)
                    return
        except TooLongError:
            self.undecided(name, involved[-1].step, "one place is stored to more than once, by a thread with too many ops to go through")

    def _synced(self, stores: list[Place], known: list[tuple[Place, Instances]], cut: Cells, first: Column) -> bool:
        """Plain stores of one set of threads are kept apart by syncs of these threads, in every CTA that stores to one place twice."""
        ctas = different(cut.cta[first])
        if self.opaque.trips or self.opaque.ranges or len(ctas) > CTAS_MAX:
            return False
        of = {id(place.step): place for place in stores}
        try:
            return all(
                all_synced(self.program.steps, self.folded, stores[0].threads, self._own(cta), of, _cells_of(known, cut, int(cta)))
                for cta in ctas
            )
        except TooLongError:
            return False

    def _unordered(self, name: str, cta: Column, later: Step, earlier: Step) -> None:
        self.out.add(
            ids.STORES_UNORDERED,
            f"one thread stores twice to the same elements of {name!r}, and either store may be the last to land",
            step=later,
            got=f"no `wait_group` between them, in block {self._block(cta)}",
            required="`commit_group` and `wait_group` (not `wait_group_read`) behind the first one",
            fix="wait until the first store is written: `leader.wait_group(0)`, or store each element once",
            causes=[("the first store", earlier)],
        )

    def _cover(self, name: str, known: list[tuple[Place, Instances]], cut: Cells) -> None:
        """An output of plain stores and copies has all its elements stored; sums may go anywhere."""
        if any(place.op or place.table for place, _ in known) or not all(each.certain for _, each in known):
            return
        reached = different(cut.cell)
        if len(reached) == cut.cover:
            return
        if cut.cover <= COVER_MAX:
            missing = np.ones(cut.cover, bool)
            missing[reached] = False
            box, whole = cut.box_of(np.flatnonzero(missing))
        else:
            box, whole = tuple((0, axis.dim) for axis in cut.axes), not len(reached)
        self.out.add(
            ids.NOT_COVERED,
            f"no store reaches some elements of {name!r}: they keep what they held before",
            step=known[0][0].step,
            got=f"nothing for {'' if whole else 'some of '}elements {_words(box)}",
            required="every element of an output stored",
            fix="launch enough blocks (a ceiling division) and let the loops go to the end; ignore this if a part is meant",
            key=name,
        )

    # ---- loads of what is stored
    def _loads(self, name: str, loads: list[Place], writes: list[tuple[Place, Instances]] | None) -> None:
        located = [(place, each) for place in loads for each in [self._located(place)] if each is not None]
        cut = cells([*writes, *located], loads[0].dims) if writes is not None and len(located) == len(loads) else None
        if writes is None or cut is None:
            self.undecided(name, loads[0].step, "it is loaded and stored, by accesses that cannot be compared")
            return
        stored = np.flatnonzero(cut.place < len(writes))
        loaded = np.flatnonzero(cut.place >= len(writes))
        if not len(stored):
            return
        clusters = self._cluster(cut.cta)
        stored = stored[np.lexsort((cut.cta[stored], clusters[stored], cut.cell[stored]))]
        begin, end = (np.searchsorted(cut.cell[stored], cut.cell[loaded], side) for side in _SIDES)
        loaded, begin, end = (column[begin < end] for column in (loaded, begin, end))
        ends = [(loaded, stored[begin]), (loaded, stored[end - 1])]  # of those that store to the cell the first one and the last
        # A multicast loads for the other CTAs of its cluster, too: its own CTA may have its tile, and store, while they wait for theirs.
        spread = np.array([isinstance(place.step.op, ops.Multicast) for place, _ in (*writes, *located)])[cut.place]
        across = [clusters[mine] != clusters[theirs] for mine, theirs in ends]
        inside = [(cut.cta[mine] != cut.cta[theirs]) | spread[mine] for mine, theirs in ends]
        beyond = any(found.any() for found in across)
        meeting = next(((pair, found) for pair, found in zip(ends, across if beyond else inside, strict=True) if found.any()), None)
        if meeting is None:
            self._own_cells(name, [*writes, *located], cut, loaded, stored[begin], stored[end - 1])
            return
        (mine, theirs), found = meeting
        first = int(np.flatnonzero(found)[0])
        row, writer = int(mine[first]), int(theirs[first])
        load, store = (([*writes, *located])[int(cut.place[at_])][0] for at_ in (row, writer))
        if not beyond and may_be_ordered(self.program.steps, self.folded, load.step, store.step):
            self.undecided(name, load.step, _CLUSTER)
            return
        self.out.add(
            ids.LOAD_OF_STORED,
            f"a CTA loads elements of {name!r} that another CTA of the same launch stores: it may get old or new ones",
            step=load.step,
            got=f"elements {_words(cut.box_of(cut.cell[[row]])[0])}: block {self._block(cut.cta[row])} loads what block "
            f"{self._block(cut.cta[writer])} stores",
            required="each CTA loads what no other one stores",
            fix="store to another array, or split the work into two launches",
            causes=[("stored here", store.step)],
        )

    # ---- loads of what the CTA itself stores
    def _own_cells(self, name: str, every: list[tuple[Place, Instances]], cut: Cells, loaded: Column, *stored: Column) -> None:
        """What is loaded and stored by one CTA, whichever comes first."""
        if not len(loaded):
            return
        if self.opaque.trips or self.opaque.ranges:
            self.undecided(name, every[-1][0].step, "a CTA loads and stores it, in loops that only the running program knows")
            return
        involved = sorted({int(n) for rows in (loaded, *stored) for n in cut.place[rows]})
        ctas = [int(cta) for cta in different(cut.cta[loaded])[:CTAS_MAX]]

        def touched(cta: int) -> Callable[[int, tuple[int, ...]], Iterable[object]]:
            found = _cells_of(every, cut, cta)
            return lambda step, at: found.get((step, at), ())

        self._reloads(name, [every[n][0] for n in involved], {cta: touched(cta) for cta in ctas}, sure=False)

    def _reloads(
        self,
        name: str,
        involved: list[Place],
        cells: Mapping[int, Callable[[int, tuple[int, ...]], Iterable[object]]],
        *,
        sure: bool = True,
    ) -> None:
        """One thread's own loads and stores in order; `sure`: each box is loaded and stored once, and rings of threads keep them apart."""
        threads = {place.threads for place in involved}
        if len(threads) > 1 or len(involved[0].threads) > 1:
            if not sure or self._stored_first(involved):
                self.undecided(name, involved[0].step, "a CTA loads and stores it by several threads, whose order is not looked at")
            return
        if self.opaque.trips or self.opaque.ranges:
            return
        accesses = {id(place.step): place for place in involved}
        try:
            for cta, of in cells.items():
                found = out_of_order(self.program.steps, self.folded, involved[0].threads.first, self._own(cta), accesses, of)
                if found is not None:
                    self._out_of_order(name, *found)
                    return
        except TooLongError:
            if not sure:
                self.undecided(name, involved[0].step, "a CTA loads and stores it, by a thread with too many ops to go through")

    def _stored_first(self, involved: list[Place]) -> bool:
        """True when, on the schedule that was run, something is loaded that was stored before: it has to be waited for."""
        first = {loads: [self.ran.get(id(p.step), 0) for p in involved if (p.way is Way.LOAD) is loads] for loads in (False, True)}
        return min(first[False]) < max(first[True])

    def _out_of_order(self, name: str, later: Step, earlier: Step) -> None:
        loads = isinstance(self.folded[id(later)], ops.Landing)
        self.out.add(
            ids.LOAD_OF_STORED if loads else ids.STORE_OF_LOADED,
            f"a CTA loads elements of {name!r} that it has stored, and the store may not be written yet"
            if loads
            else f"a CTA stores to elements of {name!r} that it loads, and the load may not have landed yet",
            step=later,
            required="`commit_group` and `wait_group` (not `wait_group_read`) behind a bulk store, which plain stores do not have"
            if loads
            else "a wait for the load's phase before the store",
            fix="wait until the store is written: `leader.wait_group(0)`" if loads else "wait for the load first",
            causes=[("stored here" if loads else "loaded here", earlier)],
        )

    # ---- words
    def undecided(self, name: str, step: Step, why: str) -> None:
        self.out.add(
            ids.MEETING_UNDECIDED,
            f"whether accesses to {name!r} meet is not decided: {why}",
            step=step,
            required="coordinates from block indices and loop counters, each box stored once",
            fix="make sure that no two stores meet, and that nothing is loaded that another CTA stores",
            key=(name, why),
        )

    def _block(self, cta: Column | int) -> tuple[int, int, int]:
        x, y, _ = self.launch.grid
        number = int(cta)
        return number % x, number // x % y, number // (x * y)

    def _own(self, cta: Column | int) -> dict[str, int]:
        """The symbols that tell a CTA."""
        block = dict(zip(BLOCK_SYMBOLS, self._block(cta), strict=True))
        return {**block, RANK_SYMBOL: evaluate(rank_of(self.program.cluster), block)}

    def _cluster(self, cta: Column | int) -> Column:
        """The number of the cluster that a CTA is in; of one tile of a counter it is the tile, as there are no clusters then."""
        x, y, _ = self.launch.grid
        number = np.asarray(cta, np.int64)
        a, b, c = self.program.cluster
        at: Column = number % x // a + x // a * (number // x % y // b + y // b * (number // (x * y) // c))
        return at


def _nowhere(place: Place) -> bool:
    """True for a place that divides by zero: a step that never runs in this launch may have one."""
    return any(map(divides_by_zero, (*place.coords, *(bound for loop in place.loops for bound in (loop.start, loop.stop)))))


def _box(place: Place) -> tuple[object, ...]:
    """Which boxes an access goes to, whatever its loop counters are called."""
    names: dict[str, Expr] = {}
    bounds: list[tuple[Expr, Expr, int]] = []
    for depth, loop in enumerate(place.loops):
        bounds.append((substitute(loop.start, names), substitute(loop.stop, names), loop.step))
        names[loop.counter] = Sym(f"loop {depth}", SymKind.LOOP)
    return tuple(substitute(e, names) for e in place.coords), tuple(bounds), place.extents, place.steps, place.dims


def _kinds(known: list[tuple[Place, Instances]]) -> Column:
    """0 for a store, a number of its own for each operation of reductions."""
    numbers = {name: n for n, name in enumerate(sorted({place.op for place, _ in known if place.op}), 1)}
    return np.array([numbers.get(place.op, 0) for place, _ in known], np.int64)


def _meeting(name: str, first: str, second: str) -> str:
    """What two CTAs do to the same elements; the operations of those that reduce, and "" for stores."""
    if first and second:
        return f"two CTAs reduce into the same elements of {name!r} by {first} and {second}: which one is last is left to chance"
    if first or second:
        return f"one CTA stores to elements of {name!r} that another one reduces into: which one is last is left to chance"
    return f"two CTAs store to the same elements of {name!r}: which one is last is left to chance"


def _clash(kinds: Column, starts: Column) -> Mask:
    """For each group of rows from `starts` on: it has more than one row, and not only reductions of one operation."""
    if not len(starts):
        return np.zeros(0, bool)
    least, most = np.minimum.reduceat(kinds, starts), np.maximum.reduceat(kinds, starts)
    clash: Mask = (np.diff(starts, append=len(kinds)) > 1) & ((least == 0) | (least != most))
    return clash


def _group(starts: Column, count: int, number: int) -> tuple[int, int]:
    return int(starts[number]), int(starts[number + 1]) if number + 1 < len(starts) else count


def _pair(kinds: Column, cta: Column, first: int, stop: int) -> _Met:
    """Two rows of a group that clash, on two CTAs."""
    for a in range(first, stop):
        for b in range(stop - 1, a, -1):
            if cta[a] != cta[b] and (kinds[a] == 0 or kinds[a] != kinds[b]):
                return _Met(a, b)
    return _Met(first, stop - 1)


def _equal_boxes(known: list[tuple[Place, Instances]], cut: Cells, first: Column, second: Column) -> bool:
    """True when the accesses of each pair of rows go to the same box."""
    if len({place.extents for place, _ in known}) > 1:
        return False
    for d in range(len(cut.axes)):
        starts = np.concatenate([each.coords[d] for _, each in known])
        before = np.cumsum([0] + [len(each.cta) for _, each in known[:-1]])
        at = before[cut.place] + cut.instance
        if (starts[at[first]] != starts[at[second]]).any():
            return False
    return True


def _cells_of(known: list[tuple[Place, Instances]], cut: Cells, cta: int) -> dict[tuple[int, tuple[int, ...]], tuple[int, ...]]:
    """The cells of each store of a CTA, by its step and coordinates."""
    found: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for row in np.flatnonzero(cut.cta == cta):
        place, each = known[int(cut.place[row])]
        at = tuple(int(c[cut.instance[row]]) for c in each.coords)
        found.setdefault((id(place.step), at), []).append(int(cut.cell[row]))
    return {key: tuple(dict.fromkeys(rows)) for key, rows in found.items()}


def _words(box: tuple[tuple[int, int], ...]) -> str:
    return "[" + ", ".join(f"{lo}:{hi}" for lo, hi in box) + "]"
