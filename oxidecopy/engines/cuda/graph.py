"""`CudaGraph`: launches captured from a stream into a CUDA graph, replayed by one call, with arguments that can be changed.

A launch that is added gets a report and counter of its own, so that replays do not share them with launches outside; by the report's
address in its parameter its node is found again once the capture is over. The graph keeps what its launches use.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final, final

from oxidecopy.engines.base import Bindings, Prepared
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.prepared import CudaLaunch
from oxidecopy.engines.cuda.slots import Watch
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda.bindings.driver import CUDA_KERNEL_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphNode

GRAPH_MISUSED: Final = "OX5339"


@final
class _Captured:
    """A graph with what can replay it; destroyed when it is dropped and nothing of it is running."""

    def __init__(self, context: PrimaryContext, graph: CUgraph) -> None:
        self.graph = graph
        answer = context.driver.cuGraphInstantiate(graph, 0)
        if answer[0]:
            context.driver.cuGraphDestroy(graph)
        self.executable: CUgraphExec = check(answer, "cuGraphInstantiate")


@final
class CudaGraph:
    """Use `begin`, `add`, `finish`, then `replay` and `update`."""

    def __init__(self, context: PrimaryContext, watch: Watch) -> None:
        self._context = context
        self._watch = watch
        self._stream: Stream | None = None
        self._launches: list[CudaLaunch] = []
        self._nodes: list[CUgraphNode] = []
        self._captured: _Captured | None = None

    def begin(self, stream: object) -> Stream:
        if self._stream is not None or self._captured is not None:
            raise _misused("a graph is captured once", "a second capture", "a graph that was not captured yet")
        context = self._context
        on = Stream.create(context) if stream is None else Stream.given(context, stream)
        context.health("this capture")
        mode = context.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        with context:
            check(context.driver.cuStreamBeginCapture(on.handle, mode), "cuStreamBeginCapture", str(on))
        self._stream = on
        return on

    def add(self, launch: Prepared) -> int:
        if self._stream is None:
            raise _misused("launches are added while a graph is captured", "no capture", "inside `with graph.capture()`")
        if not isinstance(launch, CudaLaunch) or launch.stream.context is not self._context:
            raise _misused("the launch is another device's", type(launch).__name__, f"a launch of this {self._context}")
        own = launch.on(self._stream)
        own()
        self._launches.append(own)
        return len(self._launches) - 1

    def finish(self) -> None:
        context, stream = self._context, self._ended()
        launches, self._launches = self._launches, []  # of a capture that fails nothing is left
        with context:
            graph = check(context.driver.cuStreamEndCapture(stream.handle), "cuStreamEndCapture", str(stream))
            captured = _Captured(context, graph)
            ownership = context.own(self, _destroyer(context, captured, launches))
            try:
                self._nodes = self._find_nodes(graph, launches)
            except BaseException:
                ownership.drop()
                raise
        self._captured, self._launches = captured, launches

    def abandon(self) -> None:
        context, stream = self._context, self._ended()
        with context:
            answer = context.driver.cuStreamEndCapture(stream.handle)  # it may have been invalidated: then there is no graph
            if not answer[0]:
                context.driver.cuGraphDestroy(answer[1])
        self._launches.clear()

    def replay(self, stream: object) -> None:
        if self._captured is None:
            raise _misused("a graph is replayed after its capture", "no capture", "`with graph.capture()` before")
        context = self._context
        self._watch.check()
        on = Stream.given(context, stream)
        for launch in self._launches:
            for buffer in launch.buffers:
                buffer.address  # noqa: B018  # raises when it was freed
        with context:
            answer = context.driver.cuGraphLaunch(self._captured.executable, on.handle)
            context.not_lost(answer[0], "this replay")
            check(answer, "cuGraphLaunch", str(on))
            if not on.capturing:
                for launch in self._launches:
                    launch.used_on(on)
        if stream is None:
            on.synchronize()

    def update(self, number: int, bindings: Bindings) -> None:
        if self._captured is None:
            raise _misused("arguments are changed after the capture", "no capture", "`with graph.capture()` before")
        launch, context = self._launches[number], self._context
        launch.update(bindings)
        with context:
            answer = context.driver.cuGraphExecKernelNodeSetParams(self._captured.executable, self._nodes[number], self._parameters(launch))
            check(answer, "cuGraphExecKernelNodeSetParams", f"`{launch.code.image.name}`")

    # ---- inside
    def _ended(self) -> Stream:
        stream, self._stream = self._stream, None
        if stream is None:
            raise _misused("a capture is ended once", "no capture", "a capture that is going on")
        return stream

    def _find_nodes(self, graph: CUgraph, launches: list[CudaLaunch]) -> list[CUgraphNode]:
        """The node of each launch, by the report's address: no two launches have the same."""
        driver = self._context.driver
        _, count = check(driver.cuGraphGetNodes(graph), "cuGraphGetNodes")
        nodes, _ = check(driver.cuGraphGetNodes(graph, count), "cuGraphGetNodes")
        kernels = [
            node
            for node in nodes
            if check(driver.cuGraphNodeGetType(node), "cuGraphNodeGetType") == driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
        ]
        parameters = [check(driver.cuGraphKernelNodeGetParams(node), "cuGraphKernelNodeGetParams") for node in kernels]
        found = []
        for launch in launches:
            mine = [node for node, of in zip(kernels, parameters, strict=True) if _is_of(of, launch)]
            if len(mine) != 1:
                raise _misused("a launch is not in the graph that was captured", f"{len(mine)} nodes of it", "one node")
            found += mine
        return found

    def _parameters(self, launch: CudaLaunch) -> CUDA_KERNEL_NODE_PARAMS:
        made, shape = self._context.driver.CUDA_KERNEL_NODE_PARAMS(), launch.shape
        made.func = launch.kernel.function
        made.gridDimX, made.gridDimY, made.gridDimZ = shape.grid
        made.blockDimX, made.blockDimY, made.blockDimZ = shape.block
        made.sharedMemBytes = shape.shared_bytes
        made.kernelParams = launch.block.pointers
        return made


def _is_of(parameters: CUDA_KERNEL_NODE_PARAMS, launch: CudaLaunch) -> bool:
    """The node runs the kernel of `launch` with its very parameter."""
    if int(parameters.func) != int(launch.kernel.function) or not parameters.kernelParams:
        return False
    first = ctypes.c_void_p.from_address(int(parameters.kernelParams)).value
    return first is not None and ctypes.string_at(first, launch.block.nbytes) == launch.block.data


def _destroyer(context: PrimaryContext, captured: _Captured, launches: list[CudaLaunch]) -> Callable[[], None]:
    """What is called when the graph is dropped; until nothing of it is running, its launches live in it."""

    def destroy() -> None:
        driver = context.driver
        check(driver.cuGraphExecDestroy(captured.executable), "cuGraphExecDestroy")
        check(driver.cuGraphDestroy(captured.graph), "cuGraphDestroy")
        launches.clear()

    return destroy


def _misused(what: str, got: str, required: str) -> UsageError:
    return UsageError(
        Diagnostic(
            rule=GRAPH_MISUSED, what=what, got=got, required=required, fix="capture, then replay: `with graph.capture() as stream: ...`"
        )
    )
