"""The global side of copies that move pixels: im2col maps, and interleaved ones, tiled or im2col.

A copy is a list of pixels, each a run of `width` bytes: the channels of an im2col pixel, or the 16 or 32 bytes of a slice pixel. An im2col
copy starts at a filter base and walks over the box of bases between the corners, w first, to the next row, depth and image; its offsets
are added to each base. An interleaved map counts dimension 0 (w) in slice pixels, and one copy moves one slice whatever its box says. All
rules were measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, final

import numpy as np

from oxidecopy.engines.sim.faults import ILLEGAL_INSTRUCTION, INVALID_VALUE, Fault, Refused
from oxidecopy.engines.sim.ledger import Region
from oxidecopy.engines.sim.memory import ELEMENT, GRANULE, UNIT, Array, GlobalMemory, unmapped
from oxidecopy.engines.sim.reduce import combiner
from oxidecopy.engines.sim.tma import OOB_NAN, TF32_TYPES, TensorPlan, check_no_flip, extent_fault, mode_fault, rank_fault, round_tf32
from oxidecopy.isa.im2col import OFFSET_BITS, WIDE_GROUP, WIDE_PIXELS
from oxidecopy.isa.limits import GLOBAL_ADDRESS_ALIGN, GLOBAL_STRIDE_ALIGN, MAX_RANK, STORE_EDGE_BYTES
from oxidecopy.program.tensor_map import IM2COL_WIDE, SLICE_BYTES, TILE, TensorMap

_WIDE_OPERANDS: Final = 2  # offset and halo
_SPATIAL_MIN: Final = 3  # rank of the smallest im2col or interleaved map


@final
class PixelPlan:
    """One such map with its address. Places are coordinates, outermost first, then the offsets of an im2col load, outermost first."""

    def __init__(self, tensor: TensorMap, address: int, memory: GlobalMemory, mode: str) -> None:
        _check_encodable(tensor, address)
        self.map = tensor
        self.address = address
        self.memory = memory
        self.item = tensor.dtype_info.nbytes
        self.layout = tensor.layout
        self.nbytes = self.layout.nbytes
        self.slice = SLICE_BYTES[tensor.interleave]
        self.width = self.slice or tensor.box_dim[-1] * self.item
        self.wide = tensor.mode in IM2COL_WIDE
        self.spatial = 1 if self.wide else tensor.rank - 2  # dimensions of the walk
        # From here on innermost dimension first, as the walk goes.
        self._dims = tuple(reversed(tensor.global_dim))
        self._strides = (self.slice or self.item, *reversed(tensor.global_strides))
        self._steps = tuple(reversed(tensor.element_strides))
        self._lower, self._upper = tuple(reversed(tensor.lower)), tuple(reversed(tensor.upper))
        self._first = 0 if self.slice else 1  # the dimension of w
        self.fault = mode_fault(mode, tensor.mode) or extent_fault(tensor)
        self.over = 0  # as a `TensorPlan` has it

    # ---- rules on places
    def check(self, place: Sequence[int]) -> None:
        """The rules of loads and prefetches: rank, extents, the 16-byte grid of the channel, a start inside the box of filter bases."""
        self._check(place, 0 if self.map.mode == TILE else _WIDE_OPERANDS if self.wide else self.spatial)

    def _check(self, place: Sequence[int], offsets: int) -> None:
        if self.fault is not None:
            raise self.fault
        if len(place) != self.map.rank + offsets:
            raise rank_fault(len(place) - offsets, self.map.rank)
        coords = self._coords(place)
        if not self.slice and coords[0] * self.item % GRANULE:
            raise Fault(
                ILLEGAL_INSTRUCTION,
                "the innermost coordinate is off the 16-byte grid",
                got=f"{coords[0]} ({coords[0] * self.item} bytes)",
                required=f"a multiple of {GRANULE // self.item} elements (16 bytes)",
                fix="start at a channel that is one",
            )
        for i, (low, up) in enumerate(zip(self._lower, self._upper, strict=True)):
            at, end = coords[self._first + i], self._dims[self._first + i] - 1 + up
            if not (self.wide or low <= at) or at > end:  # a wide copy may start before the box
                raise Fault(
                    ILLEGAL_INSTRUCTION,
                    "an im2col copy starts outside the box of filter bases",
                    got=f"{'whd'[i]} = {at}",
                    required=f"{low} to {end}",
                    fix="start at a base between the corners",
                )

    def check_store(self, place: Sequence[int]) -> None:
        self._check(place, 0)
        check_no_flip(self.map)
        if self.wide:
            raise Fault(
                ILLEGAL_INSTRUCTION,
                "there are no stores through wide im2col maps",
                got=f"a store through a map of mode {self.map.mode}",
                required="a tiled or an im2col map",
                fix="store through a map of its own",
            )
        if min(place) < 0:
            raise Fault(
                ILLEGAL_INSTRUCTION,
                "a store starts at a negative coordinate",
                got=str(tuple(place)),
                required="0 or more in every dimension",
                fix="start inside the array; only loads may begin before it",
            )
        if min(self._lower, default=0) < 0 or max(self._upper, default=0) > 0:
            raise Fault(
                ILLEGAL_INSTRUCTION,
                "a store goes through an im2col map whose box of bases leaves the tensor",
                got=f"corners {self._lower} and {self._upper} (w first)",
                required="lower corners of 0 or more, upper ones of 0 or less",
                fix="store through a map of its own",
            )

    def _coords(self, place: Sequence[int]) -> list[int]:
        """Coordinates, innermost first."""
        return list(reversed(place[: self.map.rank]))

    def _offsets(self, place: Sequence[int]) -> list[int]:
        """Offsets as the hardware takes them, w first; of a tiled copy, or a store, none."""
        given = list(reversed(place[self.map.rank :])) or [0] * self.spatial
        bits = OFFSET_BITS[self.spatial]
        packed = 0
        for i, offset in enumerate(given):  # that of w is not cut: its high bits spill into the next field
            packed |= (offset & 0xFFFF if i == 0 and self.spatial == len(OFFSET_BITS) else offset & (1 << bits) - 1) << bits * i
        return [packed >> bits * i & (1 << bits) - 1 for i in range(self.spatial)]

    # ---- the walk
    def _indices(self, place: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The index of each pixel in order, innermost first; of an im2col pixel that of its first channel."""
        coords = self._coords(place)
        if self.map.mode == TILE:
            yield from self._box(coords)
            return
        if self.wide:
            yield from self._row(coords, *(place[self.map.rank :] or (0, 0)))
            return
        offsets, first = self._offsets(place), self._first
        at, image = coords[first : first + self.spatial], coords[-1]
        between = coords[first + self.spatial : -1]  # the slice
        for _ in range(self.map.box_dim[0]):
            yield (*coords[:first], *[a + o for a, o in zip(at, offsets, strict=True)], *between, image)
            for i in range(self.spatial):
                at[i] += self._steps[first + i]
                if at[i] <= self._dims[first + i] - 1 + self._upper[i]:
                    break
                at[i] = self._lower[i]
            else:
                image += self._steps[-1]

    def _row(self, coords: list[int], offset: int, halo: int) -> list[tuple[int, ...]]:
        """Pixels of a wide copy: along w, from image to image; the halo is what would come next."""
        channel, w, *far, image = coords
        end, walk = self._dims[1] - 1 + self._upper[0], []
        for _ in range(self.map.box_dim[0] + halo):
            walk.append((channel, w + offset, *far, image))
            w += self._steps[1]
            if w > end:
                w, image = self._lower[0], image + 1
        if self.map.mode == IM2COL_WIDE[0]:
            return walk
        return [pixel for at in range(0, WIDE_PIXELS, WIDE_GROUP) for pixel in walk[at : at + WIDE_GROUP + halo]]

    def _box(self, coords: list[int]) -> Iterator[tuple[int, ...]]:
        """Slice pixels of a tiled copy: one slice (the dimension before the batch) whatever the box asks for."""
        box = reversed(self.map.box_dim)
        counts = [-(-b // s) for b, s in zip(box, self._steps, strict=True)]
        counts[-2] = 1
        for far in product(*[range(n) for n in reversed(counts)]):
            yield tuple([c + j * s for c, j, s in zip(coords, reversed(far), self._steps, strict=True)])

    def _pixels(self, place: Sequence[int], edge: int) -> tuple[list[int | None], int, int]:
        """The address of each pixel's byte 0 (None outside), and which of its bytes are inside, for an inner extent of `edge` bytes."""
        channel = 0 if self.slice else self._coords(place)[0] * self.item
        low, high = (0, self.width) if self.slice else (max(0, -channel), min(self.width, edge - channel))
        start = 0 if self.slice else 1
        found: list[int | None] = []
        for index in self._indices(place):
            inside = low < high and all(0 <= x < n for x, n in zip(index[start:], self._dims[start:], strict=True))
            found.append(self.address + sum([x * s for x, s in zip(index, self._strides, strict=True)]) if inside else None)
        return found, low, high

    # ---- copies
    def load(self, place: Sequence[int]) -> Array:
        """The pixels in order, as 16-byte units."""
        pixels, low, high = self._pixels(place, self._dims[0] * self.item)
        outside = all(at is None for at in pixels) or min(self._coords(place)) < 0
        if outside and self.memory.find(self.address) is None:
            raise unmapped(self.address, self.item)  # as for tiles: such a copy touches the base address itself
        out = np.zeros((len(pixels), self.width), np.uint8)
        if self.map.oob_fill == "nan":
            out.view(np.uint16)[...] = OOB_NAN
        for row, at in zip(out, pixels, strict=True):
            if at is not None:
                part = self.memory.view(at + low, high - low)
                if self.map.dtype in TF32_TYPES:
                    part = part.copy()
                    round_tf32(part.view(np.uint32))
                row[low:high] = part
        return out.view(UNIT).reshape(*(self.layout.shape[:-1] if self.slice else (len(pixels),)), -1)

    def regions(self, place: Sequence[int]) -> list[Region]:
        """The bytes of each pixel that a store writes, in steps of 16. A load reads no more than these."""
        pixels, low, high = self._pixels(place, self._edge)
        low, high = low // GRANULE * GRANULE, -(-high // GRANULE) * GRANULE
        return [Region(at + low, ((high - low) // GRANULE,), (GRANULE,), GRANULE) for at in pixels if at is not None]

    def over_elements(self, place: Sequence[int]) -> int:
        """As of tiles; slices are whole."""
        reaches = not self.slice and self._coords(place)[0] < self._dims[0] < self._coords(place)[0] + self.map.box_dim[-1]
        return self.over if reaches else 0

    def store(self, place: Sequence[int], units: Array) -> None:
        """Pixels in order; outside ones are skipped, channels in steps of 16 bytes."""
        pixels, low, high = self._pixels(place, self._edge)
        for row, at in zip(np.ascontiguousarray(units).view(np.uint8).reshape(len(pixels), -1), pixels, strict=True):
            if at is not None:
                self.memory.view(at + low, high - low)[...] = row[low:high]

    def reduce(self, place: Sequence[int], units: Array, op: str) -> None:
        """As `store`, each element combined with what is there."""
        pixels, low, high = self._pixels(place, self._edge)
        combine, kind = combiner(op, self.map.dtype), ELEMENT[self.item]
        for row, at in zip(np.ascontiguousarray(units).view(np.uint8).reshape(len(pixels), -1), pixels, strict=True):
            if at is not None:
                target = self.memory.view(at + low, high - low).view(kind)
                target[...] = combine(target.copy(), row[low:high].copy().view(kind))

    @property
    def _edge(self) -> int:
        """Bytes of the inner extent as stores see it: rounded up to 16."""
        return -(-self._dims[0] * self.item // STORE_EDGE_BYTES) * STORE_EDGE_BYTES


def plan_of(tensor: TensorMap, address: int, memory: GlobalMemory, mode: str) -> TensorPlan | PixelPlan:
    """The plan of a map; `mode` is the form of the copies that go through it."""
    if tensor.mode == TILE and tensor.interleave == "none":
        return TensorPlan(tensor, address, memory, mode)
    return PixelPlan(tensor, address, memory, mode)


def _check_encodable(tensor: TensorMap, address: int) -> None:
    """What the driver refuses and the class above cannot represent; the full list of its rules is the validator's."""
    rank, corners = tensor.rank, 0 if tensor.mode == TILE else 1 if tensor.mode in IM2COL_WIDE else tensor.rank - 2
    fits = _SPATIAL_MIN <= rank <= MAX_RANK and len(tensor.global_strides) == rank - 1 and len(tensor.element_strides) == rank
    fits = fits and len(tensor.box_dim) == (rank if tensor.mode == TILE else 2) and len(tensor.lower) == len(tensor.upper) == corners
    fits = fits and min(*tensor.global_dim, *tensor.box_dim, *tensor.element_strides, 1) == 1
    fits = fits and not address % GLOBAL_ADDRESS_ALIGN and all(s >= 0 and s % GLOBAL_STRIDE_ALIGN == 0 for s in tensor.global_strides)
    if fits and corners:
        dims = tensor.global_dim[2:] if tensor.interleave != "none" else tensor.global_dim[1:-1]
        fits = all(low <= n - 1 + up for low, n, up in zip(tensor.lower, dims[-corners:], tensor.upper, strict=True))
        fits = fits and not tensor.box_dim[-1] * tensor.dtype_info.nbytes % GRANULE
    if not fits:
        raise Refused(INVALID_VALUE, "the driver cannot encode this tensor map", got=repr(tensor), required="the rules of its kind of maps")
