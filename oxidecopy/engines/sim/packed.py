"""Maps of packed 4- and 6-bit elements: the same copies of bytes, with what lies between them in shared memory put in and taken out.

Global memory holds a dense stream of bits. In shared memory 16 elements are 8 bytes (`u4x16_align8b`), 8 bytes and 8 of a gap
(`u4x16_align16b`), or 12 bytes and 4 of a gap (`u6x16_align16b`). A store through the last takes one value from each byte instead, the
lowest 6 bits. All of it is from the documentation (PTX 5.5.1.1 and the restrictions on tensor copies): no GPU with it was there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, final

import numpy as np

from oxidecopy.engines.sim.faults import ILLEGAL_INSTRUCTION, INVALID_VALUE, Fault, Refused
from oxidecopy.engines.sim.ledger import Region
from oxidecopy.engines.sim.memory import UNIT, Array, GlobalMemory
from oxidecopy.engines.sim.pixels import PixelPlan, plan_of
from oxidecopy.engines.sim.tma import TensorPlan
from oxidecopy.program.tensor_map import TensorMap

GAP: Final = 0xFF  # what loads leave in gaps is undefined: this shows
_PADDED_ROW: Final = 128  # elements: the rows and the grid of padded types


def any_plan(tensor: TensorMap, address: int, memory: GlobalMemory, mode: str) -> TensorPlan | PixelPlan | PackedPlan:
    """The plan of any map; `mode` is the form of the copies that go through it."""
    return PackedPlan(tensor, address, memory, mode) if tensor.dtype_info.packed else plan_of(tensor, address, memory, mode)


def _in_bytes(tensor: TensorMap) -> TensorMap:
    """The map of the bytes that the elements are: every innermost figure in bytes."""
    info = tensor.dtype_info
    *outer, extent = tensor.global_dim
    *others, inner = tensor.box_dim
    if extent * info.bits % 8 or inner * info.bits % 8 or tensor.interleave != "none":
        raise Refused(
            INVALID_VALUE, "the driver cannot encode this tensor map", got=repr(tensor), required="whole groups of packed elements"
        )
    dims, box = (*outer, extent * info.bits // 8), (*others, inner * info.bits // 8)
    return replace(tensor, dtype="u8", global_dim=dims, box_dim=box, swizzle="none" if info.padded else tensor.swizzle)


@final
class PackedPlan:
    """A map of packed elements with its address: a plan of their bytes, used with coordinates in elements."""

    __slots__ = ("_bits", "_bytes", "_grid", "_offsets", "layout", "map", "nbytes")

    def __init__(self, tensor: TensorMap, address: int, memory: GlobalMemory, mode: str) -> None:
        self.map = tensor
        self._bytes = plan_of(_in_bytes(tensor), address, memory, mode)
        self._bits = tensor.dtype_info.bits
        self._grid = _PADDED_ROW if tensor.dtype_info.padded else 128 // self._bits
        self.layout = tensor.layout
        self.nbytes = self.layout.nbytes

    @property
    def over(self) -> int:
        """As of the plan of bytes."""
        return self._bytes.over

    @over.setter
    def over(self, nbytes: int) -> None:
        self._bytes.over = nbytes

    # ---- places
    def _place(self, place: Sequence[int]) -> list[int]:
        """Coordinates in bytes, for a place on the grid; the offsets of an im2col load behind them."""
        at = self.map.rank - 1
        if len(place) > at:
            c = place[at]
            if c % self._grid:
                raise Fault(
                    ILLEGAL_INSTRUCTION,
                    "the innermost coordinate is off the grid of packed elements",
                    got=f"{c}",
                    required=f"a multiple of {self._grid} elements",
                    fix=f"start boxes at multiples of {self._grid} elements",
                )
            return [*place[:at], c * self._bits // 8, *place[at + 1 :]]
        return list(place)

    def check(self, place: Sequence[int]) -> None:
        self._bytes.check(self._place(place))

    def check_store(self, place: Sequence[int]) -> None:
        if not self.map.dtype_info.stored:
            raise Fault(
                ILLEGAL_INSTRUCTION,
                f"tensor copies do not store {self.map.dtype}",
                got=f"a store through a map of {self.map.dtype}",
                required="a type without gaps in shared memory, or u6x16_align16b",
                fix="store through a map of u4x16_align8b",
            )
        self._bytes.check_store(self._place(place))

    # ---- copies
    def load(self, place: Sequence[int]) -> Array:
        """The box as 16-byte units of shared memory."""
        units = self._bytes.load(self._place(place))
        if not self.map.dtype_info.padded:
            return units
        data = np.ascontiguousarray(units).view(np.uint8).reshape(-1, _PADDED_ROW // 16, 2 * self._bits)  # bytes of 16 elements
        out = np.full((*data.shape[:-1], 16), GAP, np.uint8)
        out[..., : 2 * self._bits] = data
        return out.view(UNIT).reshape(*units.shape[:-1], -1)

    def regions(self, place: Sequence[int]) -> list[Region]:
        return self._bytes.regions(self._place(place))

    def over_elements(self, place: Sequence[int]) -> int:
        """As of the plan of bytes."""
        return self._bytes.over_elements(self._place(place))

    def store(self, place: Sequence[int], units: Array) -> None:
        """Writes the box, clipped; through a map of 6-bit elements one value of each byte."""
        if self.map.dtype_info.padded:
            values = np.ascontiguousarray(units).view(np.uint8).reshape(*self.layout.shape[:-1], -1)
            bits = np.unpackbits(values[..., None], axis=-1, count=self._bits, bitorder="little")
            units = np.packbits(bits.reshape(*values.shape[:-1], -1), axis=-1, bitorder="little").view(UNIT)
        self._bytes.store(self._place(place), units)

    def reduce(self, place: Sequence[int], units: Array, op: str) -> None:
        """No packed type has a reduction: whoever asks has been refused."""
        raise NotImplementedError(op)
