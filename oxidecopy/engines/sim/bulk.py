"""Plain bulk copies: one run of bytes, without a tensor map.

Nothing is clipped or filled. A size is rounded down to 16 bytes, for what is moved and for what the barrier is told, and both addresses
must be multiples of 16 (fault 716): measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import numpy as np

from oxidecopy.engines.base import BoundArray
from oxidecopy.engines.sim.faults import ILLEGAL_INSTRUCTION, MISALIGNED_ADDRESS, Fault
from oxidecopy.engines.sim.images import TileImage
from oxidecopy.engines.sim.ledger import Region
from oxidecopy.engines.sim.memory import ELEMENT, GRANULE, UNIT, Array, GlobalMemory
from oxidecopy.engines.sim.reduce import combiner
from oxidecopy.isa.bulk import REDUCES_IN_GLOBAL, REDUCES_IN_SHARED
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.tensor_map import TileLayout

ALIGNMENT: Final = GRANULE  # of both addresses


def moved_bytes(asked: int) -> int:
    """What the hardware moves, and tells the barrier, of a copy of `asked` bytes."""
    return asked // GRANULE * GRANULE


def run_layout(nbytes: int) -> TileLayout:
    """A run of bytes, as tiles are described."""
    return TileLayout(shape=(nbytes,), element_bytes=1, swizzle="none")


def check_shared(address: int) -> None:
    """The shared address of a plain copy."""
    _check(address, "shared")


def _check(address: int, space: str) -> None:
    if address % ALIGNMENT:
        raise Fault(
            MISALIGNED_ADDRESS,
            f"a plain bulk copy uses a {space} address that is not a multiple of {ALIGNMENT}",
            got=f"{address:#x}",
            required=f"a multiple of {ALIGNMENT} bytes",
            fix=f"start at multiples of {ALIGNMENT} bytes",
        )


@final
class RunPlan:
    """The global side: a run of `nbytes` bytes of an array, from an element on; places are element coordinates, outermost first."""

    __slots__ = ("_address", "_memory", "_strides", "dtype", "layout", "nbytes")

    def __init__(self, array: BoundArray, memory: GlobalMemory, nbytes: int) -> None:
        self._memory = memory
        self._address = array.buffer.address + array.offset_bytes
        self._strides = array.info.strides_bytes
        self.dtype = array.info.dtype
        self.nbytes = moved_bytes(nbytes)
        self.layout = run_layout(self.nbytes)

    def address(self, place: Sequence[int]) -> int:
        """Where the run starts; it must be aligned even where nothing is moved."""
        at = self._address + sum([c * stride for c, stride in zip(place, self._strides, strict=True)])
        _check(at, "global")
        return at

    def load(self, place: Sequence[int]) -> Array:
        """The run in 16-byte units; a view of memory."""
        return self._memory.view(self.address(place), self.nbytes).view(UNIT)

    def regions(self, place: Sequence[int]) -> list[Region]:
        """The run, in steps of 16 bytes."""
        return [Region(self.address(place), (self.nbytes // GRANULE,), (GRANULE,), GRANULE)] if self.nbytes else []

    def over_elements(self, _place: Sequence[int]) -> int:
        """None: what is copied is what was asked for."""
        return 0

    def store(self, place: Sequence[int], units: Array) -> None:
        self.load(place)[...] = units.reshape(-1)

    def reduce(self, place: Sequence[int], units: Array, op: str) -> None:
        target = self.load(place)
        target[...] = combined(op, self.dtype, target, units.reshape(-1))


@final
class SharedRun:
    """The source of a copy between CTAs: the bytes of an image in shared memory."""

    __slots__ = ("image", "layout", "nbytes")

    def __init__(self, image: TileImage) -> None:
        self.image = image
        self.layout = image.layout
        self.nbytes = image.layout.nbytes

    def load(self, _place: Sequence[int]) -> Array:
        return self.image.gather()

    def regions(self, _place: Sequence[int]) -> list[Region]:
        """None: it is no global memory."""
        return []


def combined(op: str, dtype: str, old: Array, new: Array) -> Array:
    """Units of elements of `dtype`, combined one by one."""
    kind = ELEMENT[DTYPES[dtype].nbytes]
    made = combiner(op, dtype)(np.ascontiguousarray(old).view(kind), np.ascontiguousarray(new).view(kind))
    return made.view(UNIT)


def check_reduce(op: str, dtype: str, *, shared: bool) -> None:
    """Pairs that PTX has no instruction for; an encoder that writes one anyway gives an illegal instruction."""
    legal = (REDUCES_IN_SHARED if shared else REDUCES_IN_GLOBAL).get(dtype, frozenset())
    if op not in legal:
        raise Fault(
            ILLEGAL_INSTRUCTION,
            f"the copy engine has no plain {op} for {dtype} in {'shared' if shared else 'global'} memory",
            got=f"reduce {op} of {dtype}",
            required=f"one of {', '.join(sorted(legal)) or 'nothing: this type cannot be reduced'}",
            fix="use a type that has the operation",
        )
