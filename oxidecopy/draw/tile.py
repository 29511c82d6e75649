"""Where each element of a tile lies in shared memory: row pitch, packed groups, swizzle, all by absolute address.

It knows neither the simulator nor the driver: the tests hold it against the simulator's own layout, and the modes that has not against the
tables of the PTX ISA.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

from oxidecopy.isa.dtypes import DTYPES, DTypeInfo
from oxidecopy.isa.swizzle import EVERY_SWIZZLE, SwizzleInfo

LINE_BYTES: Final = 128  # what all 32 banks hold side by side; no swizzle moves anything out of its line
_GROUP: Final = 16  # elements of a packed type that lie together


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Neighbours of one row that stay neighbours in shared memory.

    Attributes:
        row: which innermost row of the tile, counted through all outer dimensions.
        first: innermost index of the first element.
        count: elements.
        address: of the first one, bytes.
        nbytes: with the gap behind a packed group.
    """

    row: int
    first: int
    count: int
    address: int
    nbytes: int


@final
@dataclass(frozen=True, kw_only=True)
class PlacedTile:
    """A tile of `shape` elements, outermost dimension first, that starts at shared address `address`.

    `stored` picks, for the 6-bit type, the form that stores read (a byte for each element) in place of the one that loads write.
    `dense` rows (of interleaved maps) are not padded to the swizzle's span.
    """

    shape: tuple[int, ...]
    dtype: str
    swizzle: str
    address: int
    stored: bool = False
    dense: bool = False

    @property
    def info(self) -> DTypeInfo:
        """The element type's row."""
        return DTYPES[self.dtype]

    @property
    def mode(self) -> SwizzleInfo:
        """The swizzle's row."""
        return EVERY_SWIZZLE[self.swizzle]

    @property
    def element_bits(self) -> int:
        """From one element of a group to the next, in shared memory."""
        return 8 if self.stored and self.info.bits == 6 else self.info.bits

    @property
    def group(self) -> tuple[int, int]:
        """Elements that are placed together, and the bytes they take: one element, or sixteen packed ones."""
        return (_GROUP, self.info.group_bytes) if self.info.group_bytes else (1, self.info.nbytes)

    @property
    def row_bytes(self) -> int:
        """Bytes of one innermost row in shared memory."""
        elements, nbytes = self.group
        return -(-self.shape[-1] // elements) * nbytes

    @property
    def pitch_bytes(self) -> int:
        """From one row to the next: a swizzled row starts a whole span after the one before, however short it is (measured)."""
        span = self.mode.span_bytes
        return -(-self.row_bytes // span) * span if span and not self.dense else self.row_bytes

    @cached_property
    def rows(self) -> int:
        """Innermost rows."""
        rows = 1
        for extent in self.shape[:-1]:
            rows *= extent
        return rows

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, without what a swizzle leaves between them."""
        return self.rows * self.row_bytes

    @property
    def footprint_bytes(self) -> int:
        """From the first byte to the end of the last row; whole 128-byte lines when swizzled."""
        used = self.pitch_bytes * (self.rows - 1) + self.row_bytes
        return -(-used // LINE_BYTES) * LINE_BYTES if self.mode.span_bytes else used

    @property
    def aligned(self) -> bool:
        """The tile starts where the swizzle's pattern does."""
        return self.address % self.mode.repeat_bytes == 0

    def linear(self, row: int, index: int) -> tuple[int, int]:
        """Byte address and bit of an element before the swizzle."""
        elements, nbytes = self.group
        bits = index % elements * self.element_bits
        return self.address + row * self.pitch_bytes + index // elements * nbytes + bits // 8, bits % 8

    def position(self, row: int, index: int) -> tuple[int, int]:
        """Byte address and bit of element `index` of a row."""
        address, bit = self.linear(row, index)
        return self.mode.permute(address), bit

    def coordinates(self, row: int) -> tuple[int, ...]:
        """The outer indices of a row."""
        found: list[int] = []
        for extent in reversed(self.shape[:-1]):
            row, index = divmod(row, extent)
            found.insert(0, index)
        return tuple(found)

    def pieces(self, row: int) -> Iterator[Piece]:
        """The row, cut where the swizzle may part neighbours."""
        grain, start = self.mode.grain_bytes, self.address + row * self.pitch_bytes
        elements, nbytes = self.group
        index, at, end = 0, start, start + self.row_bytes
        while at < end:
            stop = min(at // grain * grain + grain, end)
            count = (stop - at) // nbytes * elements
            yield Piece(row=row, first=index, count=min(count, self.shape[-1] - index), address=self.mode.permute(at), nbytes=stop - at)
            index, at = index + count, stop
