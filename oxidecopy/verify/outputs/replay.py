"""Two stores of one CTA to one place: the second comes behind the first, or either may be the last.

A bulk store is not ordered before later ones of its thread until `wait_group` (not `wait_group_read`) has waited for its group
(PTX, asynchronous operations). Plain stores of several threads are ordered by a sync of all of them. The thread's ops are gone through one
by one, for one CTA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, final

from oxidecopy.isa import ops
from oxidecopy.isa.expr import evaluate, holds
from oxidecopy.program.program import Step
from oxidecopy.verify.code import answers

if TYPE_CHECKING:
    from oxidecopy.verify.outputs.places import Place

EVENTS_MAX: Final = 1 << 14  # of one thread: some 50 ms
Key: TypeAlias = tuple[int, tuple[int, ...]]  # id of a step, coordinates


class TooLongError(Exception):
    """The thread runs more ops than are gone through."""


def unordered(
    steps: tuple[Step, ...],
    folded: Mapping[int, ops.Instr],
    thread: int,
    env: Mapping[str, int],
    stores: Mapping[int, Place],
    cells: Mapping[Key, tuple[int, ...]],
) -> tuple[Step, Step] | None:
    """The first store that may land before or after an earlier one to the same cell, with that one; None when all are in order.

    Args:
        steps: the program.
        folded: its ops by the id of their step.
        thread: whose ops.
        env: block indices of the CTA.
        stores: the stores that are looked at, by the id of their step.
        cells: which cells they write, by step and coordinates.

    Raises:
        TooLongError: after `EVENTS_MAX` ops.
    """
    groups = _Groups()
    last: dict[int, tuple[int, Step]] = {}  # of each cell: number of its latest store
    for step, here in _Thread(folded, thread).run(steps, dict(env)):
        op = folded[id(step)]
        if isinstance(op, ops.CommitGroup):
            groups.commit()
        elif isinstance(op, ops.WaitGroup):
            groups.wait(op.pending)
        elif id(step) in stores:
            number = groups.store()
            place = stores[id(step)]
            for cell in cells.get((id(step), tuple(evaluate(e, here) for e in place.coords)), ()):
                earlier = last.get(cell)
                if earlier is not None and earlier[0] not in groups.written:
                    return step, earlier[1]
                last[cell] = (number, step)
    return None


def all_synced(
    steps: tuple[Step, ...],
    folded: Mapping[int, ops.Instr],
    threads: ops.ThreadSet,
    env: Mapping[str, int],
    stores: Mapping[int, Place],
    cells: Mapping[Key, tuple[int, ...]],
) -> bool:
    """True when these threads meet between any two plain stores of theirs to one cell, but for stores to one box.

    Each thread stores the elements of a box that it stored before, so it is ordered with itself. Between threads a sync of all of them
    orders what was written before it with what is written behind it (PTX, causality order).

    Raises:
        TooLongError: after `EVENTS_MAX` ops.
    """
    meetings = set(_meetings(steps, folded, threads, None))
    last: dict[int, object] = {}  # of each cell: the box that was stored there since the last sync
    for step, here in _Thread(folded, threads.first).run(steps, dict(env)):
        if id(step) in meetings:
            last.clear()
        elif id(step) in stores:
            place = stores[id(step)]
            at = tuple(evaluate(e, here) for e in place.coords)
            for cell in cells.get((id(step), at), ()):
                if last.setdefault(cell, (place.extents, at)) != (place.extents, at):
                    return False
    return True


def _meetings(
    steps: tuple[Step, ...], folded: Mapping[int, ops.Instr], threads: ops.ThreadSet, around: ops.ThreadSet | None
) -> Iterator[int]:
    """The syncs (ids of their steps) that all of these threads come to together; `around`: who runs the steps, None for the whole CTA."""
    for step in steps:
        op = folded[id(step)]
        whole = isinstance(op, ops.ClusterSync) and around is None
        if whole or (isinstance(op, ops.BarSync) and (around is None or op.threads == len(around))):
            yield id(step)
        elif not isinstance(op, ops.Scope):
            yield from _meetings(step.body, folded, threads, around)
        elif all(any(low <= first and last <= high for low, high in op.threads.ranges) for first, last in threads.ranges):
            yield from _meetings(step.body, folded, threads, op.threads)


def out_of_order(
    steps: tuple[Step, ...],
    folded: Mapping[int, ops.Instr],
    thread: int,
    env: Mapping[str, int],
    accesses: Mapping[int, Place],
    cells: Callable[[int, tuple[int, ...]], Iterable[object]],
) -> tuple[Step, Step] | None:
    """The first load of what may not be written yet, or store to what may still be loaded, with the access before it; None without one.

    A store is written once a `wait_group` has seen it through, a load has landed once its barrier is waited for; plain stores are never
    seen by loads, which go through the async proxy. `cells` says which cells an access (the id of its step, its coordinates) touches.

    Raises:
        TooLongError: after `EVENTS_MAX` ops.
    """
    groups = _Groups()
    stored: dict[object, tuple[int, Step]] = {}  # of each cell: number of its latest store
    loading: dict[object, tuple[tuple[int, int], Step]] = {}  # of each cell: barrier of its latest load
    for step, here in _Thread(folded, thread).run(steps, dict(env)):
        op = folded[id(step)]
        if isinstance(op, ops.CommitGroup):
            groups.commit()
        elif isinstance(op, ops.WaitGroup):
            groups.wait(op.pending)
        elif isinstance(op, ops.MbarrierWait | ops.MbarrierWaitPhase | ops.MbarrierWaitParity):
            over = (op.bar.barrier, evaluate(op.bar.index, here))
            loading = {cell: load for cell, load in loading.items() if load[0] != over}
        elif id(step) in accesses:
            touched = list(cells(id(step), tuple(evaluate(e, here) for e in accesses[id(step)].coords)))
            if isinstance(op, ops.Landing):
                early = next((stored[cell] for cell in touched if cell in stored and stored[cell][0] not in groups.written), None)
                loading.update((cell, ((op.bar.barrier, evaluate(op.bar.index, here)), step)) for cell in touched)
            else:
                early = next(((0, loading[cell][1]) for cell in touched if cell in loading), None)
                number = groups.store() if isinstance(op, ops.Grouped) else -1
                stored.update((cell, (number, step)) for cell in touched)
            if early is not None:
                return step, early[1]
    return None


@final
class _Groups:
    """Bulk groups of one thread; `written` are the stores that a `wait_group` has seen through."""

    def __init__(self) -> None:
        self.written: set[int] = set()
        self._open: list[int] = []
        self._committed: list[list[int]] = []
        self._stores = 0

    def store(self) -> int:
        self._stores += 1
        self._open.append(self._stores)
        return self._stores

    def commit(self) -> None:
        self._committed.append(self._open)
        self._open = []

    def wait(self, pending: int) -> None:
        done = self._committed[: max(len(self._committed) - pending, 0)]
        del self._committed[: len(done)]
        for group in done:
            self.written.update(group)


@final
class _Thread:
    """The ops of one thread in order, each with the values of the symbols there."""

    def __init__(self, folded: Mapping[int, ops.Instr], thread: int) -> None:
        self._folded = folded
        self._thread = thread
        self._events = 0

    def run(self, steps: tuple[Step, ...], env: dict[str, int]) -> Iterator[tuple[Step, dict[str, int]]]:  # noqa: C901  one case per block
        for step in steps:
            self._events += 1
            if self._events > EVENTS_MAX:
                raise TooLongError
            op = self._folded[id(step)]
            match op:
                case ops.Scope():
                    if self._thread in op.threads:
                        yield from self.run(step.body, env)
                case ops.When():
                    if not answers(op.cond) and holds(op.cond, env, {}):  # answers guard neither stores nor groups
                        yield from self.run(step.body, env)
                case ops.Loop():
                    for i in range(evaluate(op.start, env), evaluate(op.stop, env), op.step):
                        yield from self.run(step.body, {**env, op.counter: i})
                case _:
                    yield step, env
