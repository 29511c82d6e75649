"""A verified program made ready: its code, and `CudaLaunch`, which is one launch of it with arguments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import final

from oxidecopy.engines.base import Bindings
from oxidecopy.engines.cuda.code.image import Image
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.in_flight import Uses
from oxidecopy.engines.cuda.launch import LaunchShape, ParameterBlock
from oxidecopy.engines.cuda.memory import CudaBuffer, owned_by
from oxidecopy.engines.cuda.module import Kernel
from oxidecopy.engines.cuda.quiet import upload
from oxidecopy.engines.cuda.repeat import Repeatable
from oxidecopy.engines.cuda.report import Facts
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
    """The kernel's parameter, and the memory that it points to."""

    parameter: bytes
    buffers: tuple[CudaBuffer, ...]


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
    own = [each for each in (table, code.records) if each is not None]
    return Packed(parameter=parameter, buffers=tuple(dict.fromkeys([*buffers, *own])))


@final
class CudaLaunch(Repeatable):
    """A launch of a verified program with arguments; it can be repeated.

    Attributes:
        code: what it runs.
        slot: its report and counter.
    """

    __slots__ = ("_ownership", "_watch", "code", "slot")

    def __init__(
        self, context: PrimaryContext, code: Code, shape: LaunchShape, stream: Stream, watch: Watch, slot: Slot, packed: Packed
    ) -> None:
        super().__init__(context, code.kernel, shape, stream, ParameterBlock(packed.parameter), packed.buffers, slot.words)
        self.code, self.slot = code, slot
        self._watch = watch
        self._ownership = context.own(self, partial(_park, context, self.uses, watch, slot))

    def repack(self, packed: Packed) -> None:
        """Other arguments from the next call on; launches in flight keep theirs."""
        self.block.write(packed.parameter)
        self.buffers = packed.buffers
        self._left = -1

    def end(self) -> None:
        """It will not be launched again: its slot goes back once nothing of it is running."""
        self._ownership.end()

    def settle(self) -> None:
        self._watch.check()


def _park(context: PrimaryContext, uses: Uses, watch: Watch, slot: Slot) -> None:
    context.parked.park(uses, lambda: watch.end(slot))
