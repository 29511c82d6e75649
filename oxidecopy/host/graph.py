"""`Graph`: launches captured once and replayed by one call, with arguments that can be changed.

On a GPU it is a CUDA graph; whatever other libraries give to the stream during the capture is part of it. The simulator replays what was
added, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, ParamSpec, final

from oxidecopy.engines.base import EngineGraph, SupportsGraphs
from oxidecopy.errors import UsageError
from oxidecopy.host.bound import PreparedLaunch
from oxidecopy.host.device import Device
from oxidecopy.host.ranges import in_range
from oxidecopy.runtime import InOrder
from oxidecopy.typed.refusal import described, refuse

if TYPE_CHECKING:
    from oxidecopy.host.pipeline import SupportsCudaStream

P = ParamSpec("P")


@final
class GraphLaunch(Generic[P]):
    """One launch of a graph; `Graph.add` makes it."""

    def __init__(self, graph: EngineGraph, number: int, prepared: PreparedLaunch[P]) -> None:
        self._graph = graph
        self._number = number
        self._prepared = prepared

    def update(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Other arguments of the same types and shapes from the next replay on; replays in flight keep theirs."""
        self._graph.update(self._number, self._prepared.rebind(*args, **kwargs))


@final
class Graph:
    """Launches that are captured once and replayed.

    graph = ox.Graph(dev)
    with graph.capture():
        copy = graph.add(pipe[4, 2].prepare(src, out))
    graph.replay()
    copy.update(src, other)
    graph.replay()
    """

    def __init__(self, dev: Device) -> None:
        known: object = dev
        if not isinstance(known, Device):
            required, fix = "an ox.Device", "ox.Graph(ox.Device.open())"
            refuse(UsageError, "OX5339", "a graph is made on a device", got=described(known), required=required, fix=fix)
        engine = dev.engine
        self._device = dev
        self._graph: EngineGraph = engine.graph() if isinstance(engine, SupportsGraphs) else InOrder()
        self._capturing = False
        self._names: list[str] = []

    @contextmanager
    def capture(self, stream: SupportsCudaStream | int | None = None) -> Iterator[object]:
        """Captures what is added and what else is given to `stream` until the end of the block; without one, to a stream of its own.

        Nothing runs meanwhile. The block is given the stream. A graph is captured once.
        """
        given = self._graph.begin(stream)
        self._capturing = True
        try:
            yield given
        except BaseException:
            self._graph.abandon()
            raise
        finally:
            self._capturing = False
        self._graph.finish()

    def add(self, prepared: PreparedLaunch[P], /) -> GraphLaunch[P]:
        """Adds a launch, with its arguments as they are now. The graph keeps them alive; the prepared launch itself is not changed."""
        known: object = prepared
        if not isinstance(known, PreparedLaunch) or not self._capturing:
            refuse(
                UsageError,
                "OX5339",
                "a prepared launch is added to a graph while it is captured",
                got="no capture" if isinstance(known, PreparedLaunch) else described(known),
                required="`pipe[grid].prepare(...)`, inside `with graph.capture():`",
                fix="with graph.capture(): node = graph.add(prepared)",
            )
        number = self._graph.add(prepared.prepared)
        self._names.append(prepared.program.name)
        return GraphLaunch(self._graph, number, prepared)

    def replay(self, stream: SupportsCudaStream | int | None = None) -> None:
        """Runs all of it: on `stream` without waiting, else to its end. For profilers it is a range with the pipelines' names."""
        name = ", ".join(dict.fromkeys(self._names)) or "graph"
        in_range(name, lambda: self._graph.replay(stream))()
