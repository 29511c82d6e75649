"""The shared side of a tile: where each of its bytes lies in the window of a CTA, swizzle and row pitch included.

A tile moves as 16-byte units (or bytes, where its rows are not made of whole units). Without a swizzle the units are a strided view of
shared memory; with one they are reached through an index that is worked out once per (layout, address).
"""

from __future__ import annotations

from functools import lru_cache
from typing import final

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.sim.faults import ILLEGAL_ADDRESS, ILLEGAL_INSTRUCTION, MISALIGNED_ADDRESS, Fault
from oxidecopy.engines.sim.memory import BYTE, ELEMENT, GRANULE, UNIT, Array, SharedMemory
from oxidecopy.isa.limits import CTA_WINDOW_BYTES, TENSOR_SMEM_ALIGN
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.program.tensor_map import TileLayout

Index = npt.NDArray[np.int64]


@lru_cache(maxsize=512)
def unit_index(layout: TileLayout, phase: int, unit: int) -> Index:
    """Where unit (row.., u) of a tile lies, in units from the multiple of 1,024 below its address; `phase` is address mod 1,024.

    Every swizzle keeps address bits 7 and up and depends on bits 7 to 9 alone, so the pattern repeats every 1,024 bytes.
    """
    rows = np.arange(layout.rows, dtype=np.int64) * layout.pitch_bytes
    inner = np.arange(0, layout.row_bytes, unit, dtype=np.int64)
    address = phase + rows[:, None] + inner[None, :]
    mode = EVERY_SWIZZLE[layout.swizzle]
    address ^= ((address >> 7) & mode.mask) << mode.shift
    if mode.flip_8b and unit < GRANULE:  # whole granules stay where they are: `TileImage` turns their halves
        address ^= ((address >> 7) & 1) << 3
    return (address // unit).reshape(*layout.shape[:-1], -1)


@final
class TileImage:
    """One tile at one shared address (bytes from the start of the CTA's window)."""

    __slots__ = (
        "_elements",
        "_flags",
        "_index",
        "_item",
        "_memory",
        "_source",
        "_unit_view",
        "address",
        "end",
        "layout",
        "row_units",
        "unit",
    )

    def __init__(self, memory: SharedMemory, layout: TileLayout, address: int) -> None:
        self.layout = layout
        self.address = address
        self.end = address + layout.footprint_bytes
        check_window(memory, address, layout.pitch_bytes * (layout.rows - 1) + layout.row_bytes)
        self.unit = GRANULE if not (address | layout.row_bytes | layout.pitch_bytes) % GRANULE else 1
        self.row_units = layout.row_bytes // self.unit
        self._memory = memory
        self._item = layout.element_bytes
        self._source = memory.units if self.unit == GRANULE else memory.data
        outer = _outer_strides(layout)
        self._unit_view: Array | None = None
        self._elements: Array | None = None
        self._index: Index | None = None
        self._flags: slice | Index | None = None
        if layout.swizzle == "none":
            shape = (*layout.shape[:-1], self.row_units)
            dtype = UNIT if self.unit == GRANULE else BYTE
            self._unit_view = np.ndarray(shape, dtype, memory.data, address, (*outer, self.unit))
            self._elements = np.ndarray(layout.shape, ELEMENT[self._item], memory.data, address, (*outer, self._item))

    @property
    def index(self) -> Index:
        """Positions of the tile's units in the window, shape (rows.., units per row)."""
        if self._index is None:
            base = address_base(self.address)
            self._index = unit_index(self.layout, self.address - base, self.unit) + base // self.unit
        return self._index

    def gather(self) -> Array:
        """The tile's units in order; a view where there is no swizzle."""
        return self._unit_view if self._unit_view is not None else self._turned(self._source.take(self.index), self.index)

    def scatter(self, units: Array) -> None:
        if self._unit_view is not None:
            self._unit_view[...] = units
        else:
            self._source[self.index] = self._turned(units, self.index)

    def scatter_part(self, units: Array, start: int, stop: int) -> None:
        """Only units start .. stop-1 in row-major order; `units` is the whole tile."""
        where = self.index.reshape(-1)[start:stop]
        self._source[where] = self._turned(np.ascontiguousarray(units).reshape(-1)[start:stop], where)

    def gather_part(self, into: Array, start: int, stop: int) -> None:
        """Fills units start .. stop-1 of the flat array `into`."""
        where = self.index.reshape(-1)[start:stop]
        into[start:stop] = self._turned(self._source[where], where)

    def _turned(self, units: Array, where: Index) -> Array:
        """The units with their 8-byte halves swapped in every other 128-byte line, where the swizzle does that; `where` they lie."""
        if not EVERY_SWIZZLE[self.layout.swizzle].flip_8b or self.unit != GRANULE:
            return units
        halves = np.array(np.broadcast_to(units, where.shape)).view(np.uint64).reshape(-1, 2)
        odd = (where.reshape(-1) * GRANULE >> 7 & 1).astype(bool)
        halves[odd] = halves[odd][:, ::-1]
        return halves.reshape(-1).view(units.dtype).reshape(where.shape)

    def mark(self, mask: npt.NDArray[np.bool_]) -> None:
        """Notes in `mask` (one flag per 16 bytes of the window) that the tile's bytes are written."""
        mask[self._covered()] = True

    def is_marked(self, mask: npt.NDArray[np.bool_]) -> bool:
        """True when all bytes of the tile have been written."""
        return bool(mask[self._covered()].all())

    def _covered(self) -> slice | Index:
        """The 16-byte pieces of the window that the tile has bytes in: one run unless rows have gaps or lines are not full."""
        if self._flags is None:
            if self.end - self.address == self.layout.nbytes:
                self._flags = slice(self.address // GRANULE, -(-self.end // GRANULE))
            else:
                self._flags = self.index if self.unit == GRANULE else self.index // GRANULE
        return self._flags

    def elements(self) -> Array:
        """The tile's elements, unswizzled, as unsigned integers of the element's size."""
        if self._elements is not None:
            return self._elements
        return self.gather().view(ELEMENT[self._item]).reshape(self.layout.shape)

    def put_elements(self, values: Array, start: int, stop: int) -> None:
        """Writes rows start .. stop-1 (innermost rows, row major) of `values`, which has the tile's shape."""
        rows = self.layout.rows
        flat = np.ascontiguousarray(np.broadcast_to(values, self.layout.shape))
        if (start, stop) == (0, rows) and self._elements is not None:
            self._elements[...] = flat
        else:
            bits = flat.view(self._source.dtype)
            self.scatter_part(bits, start * self.row_units, stop * self.row_units)


def address_base(address: int) -> int:
    return address & -1024


def _outer_strides(layout: TileLayout) -> tuple[int, ...]:
    strides: list[int] = []
    step = layout.pitch_bytes
    for n in reversed(layout.shape[:-1]):
        strides.insert(0, step)
        step *= n
    return tuple(strides)


def check_window(memory: SharedMemory, address: int, nbytes: int) -> None:
    """Faults where the hardware does: 715 far above the window, 700 past the allocation. The reserved first KiB is not protected."""
    if address >= 0 and address + nbytes <= memory.size:
        return
    code = ILLEGAL_INSTRUCTION if address >= CTA_WINDOW_BYTES else ILLEGAL_ADDRESS
    raise Fault(
        code,
        "shared memory past the CTA's allocation is touched",
        got=f"bytes {address:#x} to {address + nbytes:#x}",
        required=f"at most {memory.size:#x}",
        fix="declare the whole footprint of the tile: short swizzled rows lie one span apart",
    )


def check_aligned(address: int) -> None:
    """Tensor copies need 128-byte shared addresses, swizzled or not."""
    if address % TENSOR_SMEM_ALIGN:
        raise Fault(
            MISALIGNED_ADDRESS,
            "a tensor copy uses a shared address that is not a multiple of 128",
            got=f"{address:#x}",
            required="a multiple of 128 bytes",
            fix="align the tile to 128 bytes or more",
        )
