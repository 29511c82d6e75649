"""What an engine is: it owns memory, takes a `VerifiedProgram` with its buffers, and says what happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol, final, runtime_checkable

from oxidecopy.engines.views import View, shared_views, view
from oxidecopy.errors import Diagnostic
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import STORE_EDGE_BYTES
from oxidecopy.program.program import ArrayInfo, Edge, Launch
from oxidecopy.program.tensor_map import SLICE_BYTES, TensorMap
from oxidecopy.program.verified import VerifiedProgram


class Buffer(Protocol):
    """Device memory owned by an engine: `nbytes` bytes at `address`."""

    @property
    def address(self) -> int:
        """First byte, in the device's address space."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundMap:
    """A tensor map with the memory it points to; element 0 lies `offset_bytes` into the buffer.

    `edge` is what lies behind its rows, up to the next multiple of 16 bytes from their start, where stores may write.
    """

    map: TensorMap
    buffer: Buffer
    offset_bytes: int = 0
    edge: Edge = "unknown"

    @property
    def view(self) -> View:
        """The memory that it stands for."""
        row = self.map.dtype_info
        *outer, inner = self.map.global_dim
        if row.packed and self.map.interleave == "none":
            element, inner = 1, row.row_bytes(inner)
        else:
            element = SLICE_BYTES[self.map.interleave] or row.nbytes
        start, end = self.buffer.address, self.buffer.address + self.buffer.nbytes
        return view(start + self.offset_bytes, (*outer, inner), (*self.map.global_strides, element), element, end)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundArray:
    """A global array with its memory; element 0 lies `offset_bytes` into the buffer."""

    info: ArrayInfo
    buffer: Buffer
    offset_bytes: int = 0

    @property
    def view(self) -> View:
        """The memory that it stands for."""
        start, end = self.buffer.address, self.buffer.address + self.buffer.nbytes
        return view(start + self.offset_bytes, self.info.shape, self.info.strides_bytes, DTYPES[self.info.dtype].nbytes, end)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """The actual arguments of a launch, by parameter name."""

    grid: tuple[int, int, int]
    maps: Mapping[str, BoundMap]
    arrays: Mapping[str, BoundArray]
    idx: Mapping[str, int]
    scalars: Mapping[str, int | float]

    def launch(self, sm: int) -> Launch:
        """What a proof needs to know of the arguments, for a device of compute capability `sm`."""
        same, overlapping = self._shared()
        return Launch(
            grid=self.grid,
            maps=tuple(sorted((name, bound.map) for name, bound in self.maps.items())),
            arrays=tuple(sorted((name, bound.info) for name, bound in self.arrays.items())),
            idx=tuple(sorted(self.idx.items())),
            same=same,
            overlapping=overlapping,
            edges=tuple(sorted((name, bound.edge) for name, bound in self.maps.items() if bound.map.row_bytes % STORE_EDGE_BYTES)),
            sm=sm,
        )

    def _shared(self) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, str], ...]]:
        """Names with one view, and pairs with memory in common; nothing, and quickly, where all are in buffers of their own."""
        bound: list[tuple[str, BoundMap | BoundArray]] = [*self.maps.items(), *self.arrays.items()]
        spans = sorted([(each.buffer.address, each.buffer.nbytes) for _, each in bound])
        if all(start + nbytes <= after for (start, nbytes), (after, _) in pairwise(spans)):
            return (), ()
        return shared_views((name, each.view) for name, each in bound)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a finished launch went; `findings` are races, missing fences and other luck (empty when none were looked for)."""

    findings: tuple[Diagnostic, ...] = ()


class Engine(Protocol):
    """Runs verified programs. Memory passes as raw bytes; shapes and types are the host side's business."""

    @property
    def name(self) -> str:
        """As `Device.open` takes it."""

    @property
    def sm(self) -> int:
        """Compute capability, 90 for 9.0."""

    def room_bytes(self) -> int:
        """Bytes that are free now, of whatever arrays live in."""

    def allocate(self, nbytes: int) -> Buffer:
        """New memory, contents undefined, aligned to 256 bytes at least; raises MemoryError when there is not enough."""

    def fill(self, buffer: Buffer, offset: int, nbytes: int, value: int) -> None:
        """Sets bytes to `value`, 0 to 255."""

    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        """Copies bytes to the device, `offset` bytes into the buffer."""

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> bytes:
        """Copies bytes back."""

    def run(self, verified: VerifiedProgram, bindings: Bindings) -> Outcome:
        """Discharges the proof's assumptions on these buffers, then runs to the end; raises ExecutionError for what went wrong."""


# Rules of memory that every engine holds: it is live, and this device's.
FREED: Final = "OX5310"
OTHER_DEVICE: Final = "OX5311"


@runtime_checkable
class SupportsSharing(Protocol):
    """What an engine has that shares memory with other libraries of the process."""

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """Type and number of the device, as DLPack counts: (1, 0) for host memory, (2, n) for GPU n."""

    def free(self, buffer: Buffer) -> None:
        """Gives memory back now, after the launches that use it; using it afterwards is an error."""

    def borrow(self, address: int, nbytes: int, *, keep: object, readonly: bool) -> tuple[Buffer, int]:
        """Memory that `keep` owns, which is kept alive until the buffer is dropped and the launches that use it are done.

        The buffer may begin before `address`, which is so many bytes into it.
        """

    def reach(self, buffer: Buffer) -> tuple[Buffer, int]:
        """Memory of another engine of the same kind as memory that this one's launches use in place; where it begins in the buffer.

        Waits for the launches that use it now; keeps it alive.
        """

    def lend(self, buffer: Buffer, stream: int | None) -> tuple[int, object]:
        """The address by which other libraries know the memory, and what they have to hold for as long as they use it.

        What they give to `stream` comes after all that uses the memory now; None where they see to that themselves.
        """

    def order(self, after: int, before: object) -> None:
        """What is given to the stream `before` (None: the default one) starts after what stream `after` was given."""


class Prepared(Protocol):
    """A launch with everything packed, which can be repeated."""

    @property
    def call(self) -> Callable[[], None]:
        """What a repetition is.

        On the default stream it waits for the end of the launch and raises what it has to say; on others it does not wait: then a later
        launch, a wait or a read raises.
        """

    def update(self, bindings: Bindings) -> None:
        """Other arguments, for which the same proof holds, from the next call on; raises ExecutionError for those it does not hold for."""

    @property
    def capturing(self) -> bool:
        """What it launches now becomes part of a graph, which may run it again at any time."""

    def release(self) -> None:
        """Lets go of its arguments, so that it keeps no memory alive. What is packed stays so, where the engine packs."""

    @property
    def packed(self) -> bool:
        """Its arguments are packed: once released it can be launched again by `repeated` and `launch_with`. Else `update` comes first."""

    def repeated(self) -> bool:
        """Launches with what is packed, where the launch before used the same memory and nothing was let go since; else False."""

    def point(self, addresses: Sequence[int], scalars: Mapping[str, int | float]) -> bool:
        """Other addresses of first elements, of the maps first, then of the arrays, and other scalars, from the next call on.

        Nothing is looked at: the caller knows that the proof holds. False where only `update` can do it.
        """

    def launch_with(self, buffers: Sequence[Buffer]) -> None:
        """Launches as `call` does, with what is packed; `buffers` are the memory that it points to, in the order of `point`."""


@runtime_checkable
class SupportsStreams(Protocol):
    """What an engine has that launches on streams; without it a launch is run at once, whatever the stream."""

    def prepare(self, verified: VerifiedProgram, bindings: Bindings, *, stream: object, cooperative: bool, programmatic: bool) -> Prepared:
        """Packs a launch for `stream` (an object with `__cuda_stream__`, a handle, or None for the default one).

        Args:
            verified: the program.
            bindings: its arguments.
            stream: where.
            cooperative: refuse the launch unless all its CTAs can be on the device at once.
            programmatic: let it begin while the launch before it on the stream is still ending.
        """

    def synchronize(self) -> None:
        """Waits for all that was started, and raises what launches have to say."""


class EngineGraph(Protocol):
    """Launches of one engine that are recorded once and replayed."""

    def begin(self, stream: object) -> object:
        """What is given to `stream` (None: one of its own) becomes part of the graph, until `finish`; the stream."""

    def add(self, launch: Prepared) -> int:
        """Records a launch, which keeps what it uses alive; its number is what `update` takes."""

    def finish(self) -> None:
        """The recording is over; the graph can be replayed."""

    def abandon(self) -> None:
        """The recording failed; nothing is left of it."""

    def replay(self, stream: object) -> None:
        """Runs all of it on `stream`; on the default one (None) to its end."""

    def update(self, number: int, bindings: Bindings) -> None:
        """Other arguments for a launch, for which the same proof holds, from the next replay on."""


@runtime_checkable
class SupportsGraphs(Protocol):
    """What an engine has that replays launches without being asked for each."""

    def graph(self) -> EngineGraph:
        """A graph without launches."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RawParameter:
    """One parameter of a kernel that the user compiled: `nbytes` bytes at `offset`, where the kernel's own table has it.

    A map is passed by value (the 128 bytes that the driver encodes), several as the address of a table of them in device memory, an array
    as the address of its element 0, anything else as it is.
    """

    name: str
    offset: int
    nbytes: int
    value: BoundMap | tuple[BoundMap, ...] | BoundArray | bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class RawLaunch:
    """A launch of a kernel that the user compiled. It equals only itself, so an engine can keep by it what it has made ready.

    Attributes:
        image: the cubin's bytes.
        kernel: the kernel's symbol.
        grid: CTAs in x, y and z.
        threads: of a CTA in x, y and z.
        cluster: CTAs of a cluster, or None to leave it to what was compiled in.
        compiled_cluster: the cluster that was compiled in, if any.
        cooperative: all CTAs are to be on the device at once.
        programmatic: it may begin while the kernel before it on its stream is still ending; the kernel itself waits for that one.
        shared_bytes: dynamic shared memory.
        parameters: all of them, in the kernel's order.
        parameter_bytes: the size of the kernel's parameter space.
    """

    image: bytes
    kernel: str
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    shared_bytes: int
    parameters: tuple[RawParameter, ...]
    parameter_bytes: int
    compiled_cluster: tuple[int, int, int] | None = None
    cooperative: bool = False
    programmatic: bool = False


@runtime_checkable
class SupportsCubins(Protocol):
    """What an engine has that runs machine code of the user's beside verified programs."""

    def launch_raw(self, launch: RawLaunch, stream: object) -> None:
        """Launches, ordered on `stream` (an object with `__cuda_stream__`, a handle, or None for the default one).

        What the launch points to is kept alive until it is done. Raises ExecutionError for what the device says went wrong.
        """
