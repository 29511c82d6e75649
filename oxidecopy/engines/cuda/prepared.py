"""A verified program made ready: its code, and `CudaLaunch`, which is one launch of it with arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

from oxidecopy.engines.base import Bindings, Buffer
from oxidecopy.engines.cuda.abi import MAP_BYTES
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
    table: Table | None


@final
class Table:
    """Maps in device memory, and what is in them."""

    __slots__ = ("buffer", "data", "words")

    def __init__(self, context: PrimaryContext, data: bytes) -> None:
        self.data = bytearray(data)
        self.words = memoryview(self.data).cast("Q")
        self.buffer = upload(context, data)


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
    table = Table(context, b"".join(maps[name] for name in image.table_maps)) if image.table_maps else None
    parameter = image.parameter(
        maps=maps,
        addresses=addresses,
        scalars=bindings.scalars,
        report=slot.report,
        counter=slot.counter if image.counted else 0,
        code=code.records.address if code.records is not None else 0,
        table=table.buffer.address if table is not None else 0,
        limit_us=code.facts.limit_us,
    )
    own = tuple(each for each in (table.buffer if table is not None else None, code.records) if each is not None)
    return Packed(parameter=parameter, buffers=tuple(dict.fromkeys([*buffers, *own])), own=own, table=table)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What launches of one engine share."""

    context: PrimaryContext
    encoder: MapEncoder
    watch: Watch


# What the memory that a launch points to knows of its stream: nothing; what is noted until somebody waits; that it is used again and again.
_NOT_YET, _ONCE, _FOR_GOOD = "not yet", "once", "for good"


@final
class CudaLaunch(Repeatable):
    """A launch of a verified program with arguments; it can be repeated.

    Attributes:
        code: what it runs.
        waits: a call waits for the end of the launch.
        slot: its report and counter.
        bindings: its arguments.
    """

    __slots__ = (
        "_bare",
        "_is_capturing",
        "_nothing",
        "_own",
        "_ownership",
        "_room",
        "_table",
        "_told",
        "_words_at",
        "bindings",
        "code",
        "slot",
        "waits",
    )

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
        self._told = _NOT_YET
        self._table = packed.table
        self._words_at: Sequence[tuple[memoryview[int], int]] | None = None  # where the addresses are; None until somebody lets go of them
        self._bare = self.bare()
        self._is_capturing = partial(context.driver.cuStreamIsCapturing, context.driver.CUstream(stream.handle))
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
        self.buffers, self.bindings, self._own, self._table = packed.buffers, bindings, packed.own, packed.table
        self._words_at = None
        self._left, self._told = -1, _NOT_YET

    @property
    def capturing(self) -> bool:
        """Its stream is being captured."""
        error, status = self._is_capturing()  # most streams need no current context
        return self.stream.capturing if error else bool(int(status))

    # ---- other memory at each call
    @property
    def packed(self) -> bool:
        """The parameter is."""
        return True

    def release(self) -> None:
        """Lets go of its arguments. What was launched keeps them alive by itself, until it is done."""
        if self._words_at is None:
            self._words_at = self._address_words()
        self.buffers, self.bindings = self._own, self._nothing

    def repeated(self) -> bool:
        """The driver's call alone, where the memory knows of the stream."""
        if self._told is not _FOR_GOOD or self._context.left != self._left or self._words[0]:
            return False
        error, status = self._is_capturing()
        if error or status:
            return False
        result = self._bare()[0]
        if result:
            self._again(result)
        return True

    def point(self, addresses: Sequence[int], scalars: Mapping[str, int | float]) -> bool:
        """Writes them into the parameter, if all addresses have a word of their own in it, or in the table of maps.

        The table is overwritten in the order of the stream, behind the launches that read it.
        """
        places = self._words_at or ()
        if len(places) != len(addresses):
            return False
        for (words, at), address in zip(places, addresses, strict=True):
            words[at] = address
        if self._table is not None:
            table, context = self._table, self._context
            if self._loose:
                self.follow()
            with context:
                answer = context.driver.cuMemcpyHtoDAsync(table.buffer.address, table.data, len(table.data), self.stream.handle)
            check(answer, "cuMemcpyHtoDAsync", f"`{self.code.image.name}`")
        if scalars:
            words = self.block.words
            for at, bits in self.code.image.scalar_words(scalars):
                words[at] = bits
        self._told = _NOT_YET
        return True

    def launch_with(self, buffers: Sequence[Buffer]) -> None:
        """Memory that it is launched with once is told of the stream; if it comes again, it is so once and for all."""
        told, self._told = self._told, _NOT_YET
        self.buffers = tuple([owned_by(self._context, each) for each in buffers]) + self._own
        if told is not _NOT_YET or self.waits or self._loose:
            self._left = -1  # what is kept is told
            self.call()
            self._told = _NOT_YET if self.waits or self._loose else _FOR_GOOD
            return
        if self._context.left != self._left or self._words[0]:
            self._look()
        handle = self.stream.handle
        for uses in (self.uses, *[each.uses for each in self.buffers]):
            uses.note_stable(self.stream, handle)
        result = self._launch(self._config, self._function, self._pointers, 0)[0]
        if result:
            self._again(result)
        self._told = _ONCE

    def on(self, stream: Stream) -> CudaLaunch:
        """The same with a report of its own on another stream; a call does not wait."""
        return CudaLaunch(self._room, self.code, self.bindings, self.shape, stream, waits=False)

    def _address_words(self) -> Sequence[tuple[memoryview[int], int]]:
        """By map and array; nothing where more than the first word of a map depends on its address, or launches overlap on the stream."""
        image, bound = self.code.image, self.bindings
        if self.shape.programmatic:
            return ()
        words = {name: (self.block.words, at) for name, at in image.address_words().items()}
        if self._table is not None:
            words |= {name: (self._table.words, at * MAP_BYTES // 8) for at, name in enumerate(image.table_maps)}
        encoder = self._room.encoder
        with self._context:
            plain = all(encoder.begins_with_address(each.map, each.buffer.address + each.offset_bytes) for each in bound.maps.values())
        return tuple([words[name] for name in (*bound.maps, *bound.arrays) if name in words]) if plain else ()

    def end(self) -> None:
        """It will not be launched again: its slot goes back once nothing of it is running. It never raises."""
        self._ownership.drop()

    def settle(self) -> None:
        self._room.watch.check()


def _park(context: PrimaryContext, uses: Uses, watch: Watch, slot: Slot) -> None:
    context.parked.park(uses, lambda: watch.end(slot))
