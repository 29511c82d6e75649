"""Record -> verify -> run: the one path from a program to its results. Verification is cached by program and launch shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, final

from oxidecopy.engines.base import Bindings, SupportsStreams
from oxidecopy.errors import Diagnostic, HazardError, UsageError
from oxidecopy.program.program import Launch, Program

if TYPE_CHECKING:
    from oxidecopy.engines.base import Buffer, Engine, Prepared
    from oxidecopy.program.verified import VerifiedProgram


class Options(NamedTuple):
    """How a launch is launched: on which stream (None: the default one), and what else the driver is told."""

    stream: object = None
    cooperative: bool = False
    programmatic: bool = False


@lru_cache(maxsize=256)
def verified(program: Program, launch: Launch) -> VerifiedProgram:
    """The proof for this launch; raises VerificationError with every violation."""
    from oxidecopy.verify import verify  # counts with numpy, which defining a pipeline does without

    return verify(program, launch)


def execute(engine: Engine, program: Program, bindings: Bindings) -> None:
    """Runs `program`, verified first.

    Raises:
        VerificationError: before anything runs.
        ExecutionError: what went wrong while it ran; HazardError when it finished on luck.
    """
    _run(engine, verified(program, bindings.launch(engine.sm)), bindings)


def prepare(engine: Engine, program: Program, bindings: Bindings, options: Options) -> Prepared:
    """Verifies `program` and packs it where the engine does that; elsewhere a call runs it at once, whatever the stream."""
    proof = verified(program, bindings.launch(engine.sm))
    if isinstance(engine, SupportsStreams):
        return engine.prepare(proof, bindings, **options._asdict())
    return AtOnce(engine, proof, bindings)


@final
class AtOnce:
    """A prepared launch of an engine without streams."""

    def __init__(self, engine: Engine, proof: VerifiedProgram, bindings: Bindings) -> None:
        self._engine = engine
        self._proof = proof
        self._bindings = bindings

    @property
    def call(self) -> Callable[[], None]:
        """Runs it to its end."""
        return self.run

    def run(self) -> None:
        """Runs it; raises what went wrong."""
        _run(self._engine, self._proof, self._bindings)

    def update(self, bindings: Bindings) -> None:
        """Other arguments from the next call on, for which the same proof holds."""
        self._bindings = bindings

    @property
    def capturing(self) -> bool:
        """It runs at once."""
        return False

    def release(self) -> None:
        """Lets go of its arguments."""
        self._bindings = Bindings(grid=self._bindings.grid, maps={}, arrays={}, idx={}, scalars={})

    @property
    def packed(self) -> bool:
        """Nothing is."""
        return False

    def repeated(self) -> bool:
        """Never: it has nothing left."""
        return False

    def point(self, addresses: Sequence[int], scalars: Mapping[str, int | float]) -> bool:
        """Never: it has no addresses."""
        del addresses, scalars
        return False

    def launch_with(self, buffers: Sequence[Buffer]) -> None:
        """Runs it."""
        del buffers
        self.run()


@final
class InOrder:
    """A graph of an engine without streams: launches, one after the other."""

    def __init__(self) -> None:
        self._launches: list[AtOnce] = []
        self._ended = False

    def begin(self, stream: object) -> object:
        """Captures, once."""
        if self._ended:
            raise UsageError(graph_misused("a graph is captured once", "a second capture"))
        return stream

    def add(self, launch: Prepared) -> int:
        """Adds a copy of the launch."""
        if not isinstance(launch, AtOnce):
            raise UsageError(graph_misused("the launch is another device's", type(launch).__name__))
        self._launches.append(copy(launch))
        return len(self._launches) - 1

    def finish(self) -> None:
        """The capture is over."""
        self._ended = True

    def abandon(self) -> None:
        """The capture failed."""
        self._launches.clear()

    def replay(self, stream: object) -> None:
        """Runs all of it, whatever the stream."""
        if not self._ended:
            raise UsageError(graph_misused("a graph is replayed after its capture", "no capture"))
        for launch in self._launches:
            launch.run()

    def update(self, number: int, bindings: Bindings) -> None:
        """Other arguments from the next replay on."""
        self._launches[number].update(bindings)


def graph_misused(what: str, got: str) -> Diagnostic:
    """For calls of a graph in the wrong order."""
    return Diagnostic(
        rule="OX5339", what=what, got=got, required="one capture, then any number of replays", fix="with graph.capture(): graph.add(...)"
    )


def _run(engine: Engine, proof: VerifiedProgram, bindings: Bindings) -> None:
    outcome = engine.run(proof, bindings)
    if outcome.findings:
        raise HazardError(*outcome.findings)
