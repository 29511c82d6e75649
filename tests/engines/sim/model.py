"""Tensor copies once more, element by element in plain Python: what tma.md's rules say, with nothing shared with the simulator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Geometry:
    """A tiled map; outermost dimension first, `strides` in bytes with the element's own at the end."""

    item: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    span: int
    mask: int
    nan: bool

    @property
    def counts(self) -> tuple[int, ...]:
        return (*(-(-b // s) for b, s in zip(self.box[:-1], self.steps[:-1], strict=True)), self.box[-1])

    @property
    def pitch(self) -> int:
        row = self.box[-1] * self.item
        return self.span or row

    def points(self, coords: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Offset in the unswizzled image, and global index, of each element in order."""
        steps = (*self.steps[:-1], 1)
        for k, j in enumerate(itertools.product(*map(range, self.counts))):
            row, inner = divmod(k, self.counts[-1])
            yield row * self.pitch + inner * self.item, tuple(c + i * s for c, i, s in zip(coords, j, steps, strict=True))

    def swizzled(self, address: int) -> int:
        return address ^ ((address >> 7 & self.mask) << 4)

    def load(self, coords: tuple[int, ...], memory: bytes, address: int) -> dict[int, int]:
        """Shared address -> byte."""
        out = {}
        fill = (b"\xf7\x7f" * 4)[: self.item] if self.nan else bytes(self.item)
        for offset, x in self.points(coords):
            value = fill
            if all(0 <= i < n for i, n in zip(x, self.dims, strict=True)):
                at = sum(i * s for i, s in zip(x, self.strides, strict=True))
                value = memory[at : at + self.item]
            for i, byte in enumerate(value):
                out[self.swizzled(address + offset + i)] = byte
        return out

    def store(self, coords: tuple[int, ...], shared: dict[int, int], address: int) -> dict[int, set[int]]:
        """Global offset -> the bytes that may end there (several where rows overlap)."""
        out: dict[int, set[int]] = {}
        edge = -(-self.dims[-1] * self.item // 16) * 16
        for offset, x in self.points(coords):
            if any(i >= n for i, n in zip(x[:-1], self.dims[:-1], strict=True)) or x[-1] * self.item >= edge:
                continue
            at = sum(i * s for i, s in zip(x, self.strides, strict=True))
            for i in range(self.item):
                out.setdefault(at + i, set()).add(shared[self.swizzled(address + offset + i)])
        return out
