"""Plans made ready: recorded, verified and packed once, then launched with whatever operands are given. They keep no operand alive."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import RLock, Thread, current_thread
from typing import Any, Final, NamedTuple, final

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap, Buffer, Prepared
from oxidecopy.errors import ExecutionError, OxidecopyError, Site
from oxidecopy.host.pipeline import Launchable, SupportsCudaStream
from oxidecopy.host.ranges import in_range
from oxidecopy.host.stream import is_per_thread
from oxidecopy.oneliners.operands import Mark, mark_of
from oxidecopy.oneliners.steps import Given, MapOf, Operands, Part, Plan, Step, Temporary, allocated
from oxidecopy.program.verified import VerifiedProgram
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.sites import LINELESS, at_the_users_line, caller_site, give_line, move

KEPT_MAX: Final = 256  # plans kept ready for a device
_AGAIN_MAX: Final = 1_024  # sets of operands that are known by what they are
Number = int | float
AnyStream = SupportsCudaStream | int | None


class _Place(NamedTuple):
    """Where a map or an array of a launch gets its memory from."""

    name: str
    part: Part
    bound: BoundMap | BoundArray  # with other memory


@final
class Known:
    """Operands that a plan of one launch was launched with: what is known of them, and the addresses that go into its parameter."""

    __slots__ = ("addresses", "marks")

    def __init__(self, marks: tuple[Mark, ...], addresses: list[int]) -> None:
        self.marks = marks
        self.addresses = addresses


_NOTHING: Final[list[str]] = []
_NO_SCALARS: Final[dict[str, Number]] = {}


@final
class _Launch:
    """One launch of a plan."""

    def __init__(self, step: Step, operands: Operands, numbers: Sequence[Number], stream: AnyStream) -> None:
        launchable: Launchable[...] = step.pipeline[step.grid]
        if stream is not None:
            launchable = launchable.on(stream)
        made = launchable.prepare(**{name: _argument(a, operands, numbers) for name, a in step.arguments.items()})
        self.verified = made.verify()
        self._prepared: Prepared = made.prepared
        self.repeated = made.prepared.repeated
        self._call = in_range(made.program.name, made.prepared.call)
        self._grid = made.bindings.grid
        bound: dict[str, BoundMap | BoundArray] = {**made.bindings.maps, **made.bindings.arrays}
        parts = {name: a.part if isinstance(a, MapOf) else a for name, a in step.arguments.items() if not isinstance(a, Given)}
        self._places = [_Place(name, parts[name], _without(each)) for name, each in bound.items()]
        self._pointed = [(p.part.operand, p.part.offset_bytes) for p in self._places]
        self._reach = _reach(self._places, list(bound.values()), operands)
        self.given = [(name, a.number) for name, a in step.arguments.items() if isinstance(a, Given)]
        self._streamed = stream is not None
        self.last: tuple[Mark, ...] = ()  # what is known of the operands that are packed
        self._said: list[str] = []  # the numbers that are packed
        self.captured = stream is not None and self._prepared.capturing
        if not self.captured:  # else a graph may run it for as long as it likes, with these operands
            self._prepared.release()

    @property
    def capturing(self) -> bool:
        """A call now would become part of a graph."""
        return self._prepared.capturing

    def once(self) -> None:
        """The call that becomes part of a graph."""
        self._call()

    def again(self, known: Known, operands: Operands, numbers: Sequence[Number]) -> bool:
        """With operands that it was launched with before; False where nothing was launched, as there is more to look at."""
        prepared, given = self._prepared, self.given
        # -0.0 and 0.0 are equal, and not the same.
        said = [str(numbers[n]) for _, n in given] if given else _NOTHING
        same = self.last is known.marks and said == self._said
        if same and prepared.repeated():
            return True
        if self._streamed and prepared.capturing:
            return False
        try:
            if not same:
                self.last = ()
                if not prepared.point(known.addresses, {name: numbers[n] for name, n in self.given}):
                    return False
                self.last, self._said = known.marks, said
            prepared.launch_with([operands[n].buffer for n, _ in self._pointed])
        finally:
            prepared.release()
        return True

    def known(self, marks: tuple[Mark, ...]) -> Known | None:
        """What `again` takes, where it was just launched with these; None where each launch looks at more."""
        return Known(marks, self._addresses(marks)) if self._prepared.packed and self.last is marks else None

    def __call__(self, operands: Operands, marks: tuple[Mark, ...], numbers: Sequence[Number]) -> None:
        prepared, said = self._prepared, [str(numbers[n]) for _, n in self.given] if self.given else _NOTHING
        same = marks == self.last and said == self._said
        try:
            if not same or not prepared.packed:
                self.last = ()
                self._point(operands, marks, numbers)
            self.last, self._said = marks, said
            if not (same and prepared.repeated()):
                prepared.launch_with([operands[n].buffer for n, _ in self._pointed])
        finally:
            prepared.release()

    def _addresses(self, marks: Sequence[Mark]) -> list[int]:
        return [marks[n].place + offset for n, offset in self._pointed]

    def _point(self, operands: Operands, marks: tuple[Mark, ...], numbers: Sequence[Number]) -> None:
        """The proof holds for operands of these kinds, wherever they lie; that they reach so far is looked at each time."""
        scalars = {name: numbers[n] for name, n in self.given} if self.given else _NO_SCALARS
        for mark, (low, high) in zip(marks, self._reach, strict=True):
            if mark.place + low < mark.start or mark.place + high > mark.end:
                break
        else:
            if self._prepared.point(self._addresses(marks), scalars):
                return
        self._prepared.update(self._bindings(operands, numbers))

    def _bindings(self, operands: Operands, numbers: Sequence[Number]) -> Bindings:
        maps: dict[str, BoundMap] = {}
        arrays: dict[str, BoundArray] = {}
        for name, part, like in self._places:
            whole = operands[part.operand]
            at, buffer = whole.offset_bytes + part.offset_bytes, whole.buffer
            if isinstance(like, BoundMap):
                maps[name] = BoundMap(map=like.map, buffer=buffer, offset_bytes=at, edge=like.edge)
            else:
                arrays[name] = BoundArray(info=like.info, buffer=buffer, offset_bytes=at)
        return Bindings(grid=self._grid, maps=maps, arrays=arrays, idx={}, scalars={name: numbers[n] for name, n in self.given})


def _reach(places: Sequence[_Place], bound: Sequence[BoundMap | BoundArray], operands: Operands) -> list[tuple[int, int]]:
    """For each operand, where what a launch uses of it begins and ends: bytes from its first element."""
    found = [(0, 0)] * len(operands)
    for place, each in zip(places, bound, strict=True):
        number, offset = place.part.operand, place.part.offset_bytes
        low, high = found[number]
        view = each.view
        found[number] = (min(low, offset), max(high, offset + view.reach - view.address))
    return found


def _argument(argument: object, operands: Operands, numbers: Sequence[Number]) -> object:
    match argument:
        case MapOf() | Part():
            return argument.of(operands)
        case Given():
            return numbers[argument.number]
        case _:
            return argument


@final
class _Nowhere:
    """No memory."""

    address = 0
    nbytes = 0


_NOWHERE: Final[Buffer] = _Nowhere()


def _without(bound: BoundMap | BoundArray) -> BoundMap | BoundArray:
    """The same without its memory."""
    if isinstance(bound, BoundMap):
        return BoundMap(map=bound.map, buffer=_NOWHERE, edge=bound.edge)
    return BoundArray(info=bound.info, buffer=_NOWHERE)


@final
class Ready:
    """A plan that can be launched again and again, by one thread at a time."""

    def __init__(self, plan: Plan, numbers: Sequence[Number], stream: AnyStream) -> None:
        # Not the steps: their pipelines have functions of the user's, and these whatever they close over.
        self.launches: tuple[str, ...] = tuple([step.words for step in plan.steps])
        self.why: tuple[str, ...] = tuple(plan.why)
        self.temporaries: tuple[Temporary, ...] = tuple(plan.temporaries)
        self._launches = [_Launch(step, plan.operands, numbers, stream) for step in plan.steps]
        self._lock = RLock()
        # The per-thread default stream is another one in each thread: launches of two would share a counter, a report and a table of maps.
        self._thread: Thread | None = current_thread() if stream is not None and is_per_thread(stream) else None
        self.captured = any(launch.captured for launch in self._launches)
        # Of a launch on a stream nobody knows which call it was that an error is of.
        self._line: Site | None = caller_site() if stream is None else None

    @property
    def verified(self) -> list[VerifiedProgram]:
        """The proofs of its launches."""
        return [launch.verified for launch in self._launches]

    @property
    def elsewhere(self) -> bool:
        """It is for the stream of another thread."""
        return self._thread is not None and self._thread is not current_thread()

    @property
    def capturing(self) -> bool:
        """A call now would become part of a graph, which keeps what it was given: another plan is made for it."""
        launches = self._launches
        return launches[0].capturing if launches else False

    def _tell(self, error: OxidecopyError) -> None:
        """The line of the call that it is of: in place of none, or of the one that the plan was made at."""
        if isinstance(error, LINELESS):
            give_line(error)
        else:
            move(error, self._line)

    def again(self, known: Known, operands: Operands, numbers: Sequence[Number]) -> bool:
        """Launches with operands that it was launched with before; False where it has to be looked at again, and nothing was launched."""
        if self._thread is not None and self.elsewhere:
            return False
        lock, first = self._lock, self._launches[0]
        lock.acquire()  # `with` takes twice as long, of a microsecond in all
        try:
            if first.last is known.marks and not first.given and first.repeated():  # what most calls are, by the shortest way
                return True
            return first.again(known, operands, numbers)
        except (*LINELESS, ExecutionError) as error:
            self._tell(error)
            raise
        finally:
            lock.release()

    def known(self, marks: tuple[Mark, ...]) -> Known | None:
        """What `again` takes, after a launch with these operands; None where that is not all there is to look at."""
        return self._launches[0].known(marks) if len(self._launches) == 1 and not self.temporaries else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the proofs of its launches warn of."""
        return tuple(str(w) for launch in self._launches for w in launch.verified.warnings)

    def run(self, operands: Sequence[GlobalArray[Any, Any]], numbers: Sequence[Number], marks: tuple[Mark, ...]) -> None:
        """Launches all of it; on a stream it does not wait for the end. `marks` are those of the operands."""
        try:
            if self.captured:
                for launch in self._launches:
                    launch.once()
                return
            if self.temporaries:
                own = [allocated(operands[0], wanted) for wanted in self.temporaries]
                operands, marks = [*operands, *own], (*marks, *[mark_of(a) for a in own])
            with self._lock:
                for launch in self._launches:
                    launch(operands, marks, numbers)
        except (*LINELESS, ExecutionError) as error:
            self._tell(error)
            raise


@final
class Kept:
    """Plans that are ready for a device, the ones used last."""

    def __init__(self) -> None:
        self.again: dict[object, tuple[Ready, Known]] = {}  # by kind, stream and marks
        self._ready: OrderedDict[object, Ready] = OrderedDict()
        self._lock = RLock()

    def remember(self, key: object, ready: Ready, marks: tuple[Mark, ...]) -> None:
        """A plan was launched with these operands."""
        known = ready.known(marks)
        if known is not None:
            if len(self.again) >= _AGAIN_MAX:
                self.again.clear()
            self.again[key] = (ready, known)

    def get(self, key: object) -> Ready | None:
        """What is ready for `key`, in this thread."""
        found = self._ready.get(key)
        if found is not None:
            if found.elsewhere:
                return None
            try:
                self._ready.move_to_end(key)
            except KeyError:  # another thread let go of it
                return found
        return found

    def put(self, key: object, ready: Ready) -> None:
        """Keeps it, and lets go of the one that was not used for longest."""
        with self._lock:
            self._ready[key] = ready
            while len(self._ready) > KEPT_MAX:
                self._ready.popitem(last=False)
                self.again.clear()  # it may be one of those

    def prefer(self, key: object, ready: Ready) -> None:
        """Calls that ask for nothing take this plan from now on: it was measured to be the fastest."""
        if self._ready.get(key) is not ready:
            self.put(key, ready)
            self.again.clear()  # some may be of the plan before

    def clear(self) -> None:
        """Lets go of all."""
        with self._lock:
            self._ready.clear()
            self.again.clear()


def kept_by(device: Any) -> Kept:
    """The plans of a device."""
    found: Kept | None = device.kept.get("oneliners")
    return found if found is not None else device.kept.setdefault("oneliners", Kept())


def made_ready(key: object, device: Any, numbers: Sequence[Number], stream: AnyStream, planned: Callable[[], Plan]) -> Ready:
    """A new plan, made ready and kept."""
    with at_the_users_line():
        ready = Ready(planned(), numbers, stream)
    if not ready.captured:
        kept_by(device).put(key, ready)
    return ready
