"""A verified program made ready: its code, and `CudaLaunch`, which is one launch of it with arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

from oxidecopy.engines.base import Bindings, Buffer
from oxidecopy.engines.cuda.code.image import Image
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.discharge import discharge
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.in_flight import Uses
from oxidecopy.engines.cuda.launch import LaunchShape, ParameterBlock
from oxidecopy.engines.cuda.memory import CudaBuffer, owned_by
from oxidecopy.engines.cuda.module import Kernel
from oxidecopy.engines.cuda.quiet import upload
from oxidecopy.engines.cuda.repeat import Repeatable
from oxidecopy.engines.cuda.report import Facts
from oxidecopy.engines.cuda.residency import require_room
from oxidecopy.engines.cuda.slots import Slot, Watch
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.engines.cuda.tensor_map import MapEncoder
from oxidecopy.program.verified import VerifiedProgram


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A program made ready for one launch shape: shared by all launches of it.

    Attributes:
        verified: the program and what its proof took for granted.
        image: its device code.
        kernel: the interpreter that runs it.
        records: the code in device memory, where it does not fit into the parameter.
        facts: what a report of it is put into words with.
    """

    verified: VerifiedProgram
    image: Image
    kernel: Kernel
    records: CudaBuffer | None
    facts: Facts


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The kernel's parameter, and the memory that it points to: `own` of it is not the arguments'."""

    parameter: bytes
    buffers: tuple[CudaBuffer, ...]
    own: tuple[CudaBuffer, ...]


def pack(context: PrimaryContext, encoder: MapEncoder, code: Code, bindings: Bindings, slot: Slot) -> Packed:
    """Puts addresses, tensor maps and scalars into the parameter. The context is current.

    Maps that do not fit into it go to device memory: each packing to new memory, as launches in flight may still read the old one. They
    need no fence: a kernel sees the copies that were made before it was launched (measured for maps, with and without a fence).
    """
    image = code.image
    maps: dict[str, bytes] = {}
    addresses: dict[str, int] = {}
    buffers: list[CudaBuffer] = []
    for name in image.maps:
        at = bindings.maps[name]
        buffers.append(owned_by(context, at.buffer))
        maps[name] = encoder.encode(at.map, buffers[-1].address + at.offset_bytes)
    for name in image.arrays:
        array = bindings.arrays[name]
        buffers.append(owned_by(context, array.buffer))
        addresses[name] = buffers[-1].address + array.offset_bytes
    table = upload(context, b"".join(maps[name] for name in image.table_maps)) if image.table_maps else None
    parameter = image.parameter(
        maps=maps,
        addresses=addresses,
        scalars=bindings.scalars,
        report=slot.report,
        counter=slot.counter if image.counted else 0,
        code=code.records.address if code.records is not None else 0,
        table=table.address if table is not None else 0,
        limit_us=code.facts.limit_us,
    )
    own = tuple(each for each in (table, code.records) if each is not None)
    return Packed(parameter=parameter, buffers=tuple(dict.fromkeys([*buffers, *own])), own=own)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What launches of one engine share."""

    context: PrimaryContext
    encoder: MapEncoder
    watch: Watch


@final
class CudaLaunch(Repeatable):
    """A launch of a verified program with arguments; it can be repeated.

    Attributes:
        code: what it runs.
        waits: a call waits for the end of the launch.
        slot: its report and counter.
        bindings: its arguments.
    """

    __slots__ = ("_nothing", "_own", "_ownership", "_room", "_were", "bindings", "code", "slot", "waits")

    def __init__(self, room: Room, code: Code, bindings: Bindings, shape: LaunchShape, stream: Stream, *, waits: bool) -> None:
        context, watch = room.context, room.watch
        discharge(context, code.verified, bindings)
        require_room(context, code.kernel, shape, code.image.name, code.facts.site)
        slot = watch.begin(code.facts)
        try:
            with context:
                packed = pack(context, room.encoder, code, bindings, slot)
            super().__init__(context, code.kernel, shape, stream, ParameterBlock(packed.parameter), packed.buffers, slot.words)
        except BaseException:
            watch.end(slot)
            raise
        self.code, self.slot, self.bindings, self.waits = code, slot, bindings, waits
        self._room = room
        self._own = packed.own
        self._nothing = Bindings(grid=bindings.grid, maps={}, arrays={}, idx={}, scalars={})
        self._were: tuple[int, ...] = ()  # buffers that it was resumed with last
        self._ownership = context.own(self, partial(_park, context, self.uses, watch, slot))

    @property
    def call(self) -> Callable[[], None]:
        """What a repetition is: with as little as possible on the way to the driver."""
        return self.run if self.waits else self

    def run(self) -> None:
        """Launches and waits, after whatever uses its memory on other streams; raises what it has to say.

        In a stream that is being captured it only launches.

        Raises:
            DeadlockError: a wait did not end within the limit.
            EarlierFaultError: the context was lost before; nothing was started.
            DeviceFaultError: a kernel faulted.
        """
        context = self._room.context
        context.health()
        if self.stream.capturing:
            self()
            return
        for buffer in self.buffers:
            buffer.wait()
        watch = self._room.watch
        with watch.awaiting(self.slot):
            with context:
                self()
                check(context.driver.cuStreamSynchronize(self.stream.handle), "cuStreamSynchronize", f"`{self.code.image.name}`")
            watch.check(self.slot)

    def update(self, bindings: Bindings) -> None:
        """Other arguments, for which the same proof holds, from the next call on; launches in flight keep theirs.

        Raises:
            ExecutionError: the proof was made for other extents, strides, grid or index values.
        """
        room = self._room
        discharge(room.context, self.code.verified, bindings)
        with room.context:
            packed = pack(room.context, room.encoder, self.code, bindings, self.slot)
        self.block.write(packed.parameter)
        self.buffers, self.bindings, self._own = packed.buffers, bindings, packed.own
        self._left, self._were = -1, ()

    @property
    def capturing(self) -> bool:
        """Its stream is being captured."""
        error, status = self._context.driver.cuStreamIsCapturing(self.stream.handle)  # most streams need no current context
        return self.stream.capturing if error else bool(int(status))

    def release(self) -> None:
        """Lets go of its arguments. What was launched keeps them alive by itself, until it is done."""
        self.buffers, self.bindings = self._own, self._nothing

    def resume(self, bindings: Callable[[], Bindings], buffers: Sequence[Buffer]) -> None:
        """The same memory again. The parameter still points to it; other handles of it are told that the stream uses them."""
        del bindings
        ids = tuple(map(id, buffers))
        if ids != self._were:  # an equal one of another object comes after that was let go of, which `left` counts
            for each in buffers:
                owned_by(self._context, each)
            self._left, self._were = -1, ids
        self.buffers = (*buffers, *self._own)  # type: ignore[arg-type]  # those, or such as `owned_by` has seen

    def on(self, stream: Stream) -> CudaLaunch:
        """The same with a report of its own on another stream; a call does not wait."""
        return CudaLaunch(self._room, self.code, self.bindings, self.shape, stream, waits=False)

    def end(self) -> None:
        """It will not be launched again: its slot goes back once nothing of it is running. It never raises."""
        self._ownership.drop()

    def settle(self) -> None:
        self._room.watch.check()


def _park(context: PrimaryContext, uses: Uses, watch: Watch, slot: Slot) -> None:
    context.parked.park(uses, lambda: watch.end(slot))
