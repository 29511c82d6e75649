"""Plans made ready: recorded, verified and packed once, then launched with whatever operands are given. They keep no operand alive."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, Final, NamedTuple, final

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap, Buffer, Prepared
from oxidecopy.errors import LifetimeError
from oxidecopy.host.pipeline import Launchable, SupportsCudaStream
from oxidecopy.host.ranges import in_range
from oxidecopy.oneliners.steps import Given, MapOf, Operands, Part, Plan, Step, Temporary, allocated
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.sites import at_the_users_line, give_line

KEPT_MAX: Final = 256  # plans kept ready for a device
Number = int | float
AnyStream = SupportsCudaStream | int | None


class _Place(NamedTuple):
    """Where a map or an array of a launch gets its memory from."""

    name: str
    part: Part
    bound: BoundMap | BoundArray  # with other memory


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
        self._call = in_range(made.program.name, made.prepared.call)
        self._grid = made.bindings.grid
        bound: dict[str, BoundMap | BoundArray] = {**made.bindings.maps, **made.bindings.arrays}
        parts = {name: a.part if isinstance(a, MapOf) else a for name, a in step.arguments.items() if not isinstance(a, Given)}
        self._places = [_Place(name, parts[name], _without(each)) for name, each in bound.items()]
        self._operands = [place.part.operand for place in self._places]
        self._given = [(name, a.number) for name, a in step.arguments.items() if isinstance(a, Given)]
        self._last: tuple[object, ...] = ()  # where the operands were and the numbers, as they are packed
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

    def __call__(self, operands: Operands, places: Sequence[int], numbers: Sequence[Number]) -> None:
        # -0.0 and 0.0 are equal, and not the same.
        now = (*places, *[str(numbers[n]) for _, n in self._given]) if self._given else places
        try:
            if now == self._last:
                buffers = [operands[n].buffer for n in self._operands]
                self._prepared.resume(lambda: self._bindings(operands, numbers), buffers)
            else:
                self._last = ()
                self._prepared.update(self._bindings(operands, numbers))
                self._last = tuple(now)
            self._call()
        finally:
            self._prepared.release()

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
        return Bindings(grid=self._grid, maps=maps, arrays=arrays, idx={}, scalars={name: numbers[n] for name, n in self._given})


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
        self.steps: tuple[Step, ...] = tuple(plan.steps)
        self.why: tuple[str, ...] = tuple(plan.why)
        self.temporaries: tuple[Temporary, ...] = tuple(plan.temporaries)
        self._launches = [_Launch(step, plan.operands, numbers, stream) for step in plan.steps]
        self._lock = RLock()
        self.captured = any(launch.captured for launch in self._launches)

    @property
    def capturing(self) -> bool:
        """A call now would become part of a graph, which keeps what it was given: another plan is made for it."""
        return any(launch.capturing for launch in self._launches[:1])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the proofs of its launches warn of."""
        return tuple(str(w) for launch in self._launches for w in launch.verified.warnings)

    def run(self, operands: Sequence[GlobalArray[Any, Any]], numbers: Sequence[Number], places: Sequence[int]) -> None:
        """Launches all of it; on a stream it does not wait for the end. `places` are the operands' addresses."""
        try:
            if self.captured:
                for launch in self._launches:
                    launch.once()
                return
            if self.temporaries:
                own = [allocated(operands[0], wanted) for wanted in self.temporaries]
                operands, places = [*operands, *own], (*places, *[a.buffer.address for a in own])
            with self._lock:
                for launch in self._launches:
                    launch(operands, places, numbers)
        except LifetimeError as error:
            give_line(error)
            raise


@final
class Kept:
    """Plans that are ready for a device, the ones used last."""

    def __init__(self) -> None:
        self._ready: OrderedDict[object, Ready] = OrderedDict()
        self._lock = RLock()

    def get(self, key: object) -> Ready | None:
        """What is ready for `key`."""
        found = self._ready.get(key)
        if found is not None:
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

    def clear(self) -> None:
        """Lets go of all."""
        with self._lock:
            self._ready.clear()


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
