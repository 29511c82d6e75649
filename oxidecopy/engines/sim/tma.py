"""The global side of a tensor copy: which bytes a box touches, what is filled, where the hardware faults.

A `TensorPlan` is one tensor map with its address. Everything here is outermost dimension first; the last entry of `strides` is the
element itself. Element j of dimension i is global index x = c + j * s, in bounds when 0 <= x < dim; a load clips exactly, a store in
steps of 16 bytes in the innermost dimension. Indices are Python integers, so no extent can overflow. All rules were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final, final

import numpy as np

from oxidecopy.engines.sim.faults import ILLEGAL_INSTRUCTION, INVALID_VALUE, Fault, Refused
from oxidecopy.engines.sim.ledger import Region
from oxidecopy.engines.sim.memory import ELEMENT, GRANULE, UNIT, Array, GlobalMemory, unmapped
from oxidecopy.engines.sim.reduce import reduce_box
from oxidecopy.isa.limits import (
    BOX_INNER_ALIGN,
    COORD_MAX,
    COORD_MIN,
    GLOBAL_ADDRESS_ALIGN,
    GLOBAL_DIM_USABLE_SM90,
    GLOBAL_STRIDE_ALIGN,
    MAX_RANK,
    STORE_EDGE_BYTES,
)
from oxidecopy.program.tensor_map import TensorMap, TileLayout

TILE_MODE: Final = "tile"
OOB_NAN: Final = 0x7FF7  # repeated in every 16-bit half
TF32_TYPES: Final = frozenset({"tf32", "tf32_ftz"})
Clip = tuple[tuple[int, int], ...]  # per dimension: first and last+1 tile index that is in bounds


def round_tf32(values: np.ndarray[tuple[int, ...], np.dtype[np.uint32]]) -> None:
    """Rounds f32 bit patterns to tf32 in place: nearest even at bit 13; infinities stay, every NaN becomes 0x7FFFE000."""
    special = (values & 0x7F800000) == 0x7F800000
    nan = special & ((values & 0x7FFFFF) != 0)
    rounded = (values + (0xFFF + ((values >> 13) & 1))) & 0xFFFFE000
    np.copyto(values, rounded, where=~special)
    values[nan] = 0x7FFFE000


def wrap32(c: int) -> int:
    """A coordinate as the 32-bit register holds it."""
    return c if COORD_MIN <= c <= COORD_MAX else (c - COORD_MIN) % (1 << 32) + COORD_MIN


def check_encodable(tensor: TensorMap, address: int) -> None:
    """What cuTensorMapEncodeTiled refuses and the classes below cannot represent; the full list of its rules is the validator's."""
    rank = tensor.rank
    fits = 1 <= rank <= MAX_RANK and len(tensor.global_strides) == rank - 1 and rank == len(tensor.box_dim) == len(tensor.element_strides)
    if fits:
        span = tensor.swizzle_info.span_bytes
        row = tensor.box_dim[-1] * tensor.dtype_info.nbytes
        fits = min(*tensor.global_dim, *tensor.box_dim, *tensor.element_strides, 1) == 1
        fits = fits and not row % BOX_INNER_ALIGN and (not span or row <= span) and tensor.interleave == "none" and tensor.mode == TILE_MODE
        fits = fits and not address % GLOBAL_ADDRESS_ALIGN and all(s >= 0 and s % GLOBAL_STRIDE_ALIGN == 0 for s in tensor.global_strides)
    if not fits:
        raise Refused(INVALID_VALUE, "the driver cannot encode this tensor map", got=repr(tensor), required="the rules of tiled maps")


def mode_fault(mode: str, required: str) -> Fault | None:
    """A copy of another form than the map's."""
    if mode == required:
        return None
    return Fault(ILLEGAL_INSTRUCTION, "the copy's mode is not that of the tensor map", got=mode, required=required)


def extent_fault(tensor: TensorMap) -> Fault | None:
    """Extents beyond 2^31."""
    big = max(tensor.global_dim)
    if big <= GLOBAL_DIM_USABLE_SM90:
        return None
    return Fault(
        ILLEGAL_INSTRUCTION,
        "an extent of the tensor map is more than the copy engine can count",
        got=f"{big} elements",
        required=f"at most {GLOBAL_DIM_USABLE_SM90}",
        fix="split the array, or fold a dimension into another",
    )


def check_no_flip(tensor: TensorMap) -> None:
    """Stores and reductions through a map whose swizzle flips 8 bytes (PTX 5.5.7; not measured)."""
    if tensor.swizzle_info.flip_8b:
        raise Fault(
            ILLEGAL_INSTRUCTION,
            "only loads have the swizzle that flips 8 bytes",
            got=f"a store through a map of swizzle {tensor.swizzle}",
            required="a swizzle without the flip",
            fix="store through a map of its own, with swizzle 128B_ATOM_32B",
        )


def rank_fault(got: int, required: int) -> Fault:
    """A copy of another rank than the map's."""
    return Fault(ILLEGAL_INSTRUCTION, "the copy's rank is not that of the tensor map", got=f"{got} coordinates", required=str(required))


@final
class TensorPlan:
    """A tensor map bound to an address, with all that does not depend on coordinates worked out."""

    def __init__(self, tensor: TensorMap, address: int, memory: GlobalMemory, mode: str = TILE_MODE) -> None:
        check_encodable(tensor, address)
        self.map = tensor
        self.address = address
        self.memory = memory
        self.shape = tensor.tile_shape
        self.item = tensor.dtype_info.nbytes
        self.layout = TileLayout(shape=self.shape, element_bytes=self.item, swizzle=tensor.swizzle)
        self.nbytes = self.layout.nbytes
        self.steps = (*tensor.element_strides[:-1], 1)  # the innermost one is ignored (measured)
        self.strides = (*tensor.global_strides, self.item)
        self.moves = tuple(s * e for s, e in zip(self.strides, self.steps, strict=True))
        self.rounds = tensor.dtype in TF32_TYPES
        inner = tensor.global_dim[-1] * self.item
        edge = -(-inner // STORE_EDGE_BYTES) * STORE_EDGE_BYTES // self.item
        self._load_dims = tensor.global_dim
        self._store_dims = (*tensor.global_dim[:-1], edge)
        self._last = tuple((n - 1) * e for n, e in zip(self.shape, self.steps, strict=True))
        self._axes = tuple(zip(self._last, self._load_dims, self.strides, strict=True))
        # Whole boxes move as 16-byte units: box rows, strides and starts are multiples of 16 bytes.
        self._unit_shape = (*self.shape[:-1], self.layout.row_bytes // GRANULE)
        self._unit_moves = (*self.moves[:-1], GRANULE)
        self._unit_span = sum((n - 1) * m for n, m in zip(self._unit_shape, self._unit_moves, strict=True)) + GRANULE
        self._home = memory.find(address)
        self.over = 0  # bytes behind each row that a store writes and that are elements of a wider array
        # The fault of every copy through this map, whatever its coordinates.
        self.fault = mode_fault(mode, TILE_MODE) or extent_fault(tensor)

    # ---- rules on coordinates
    def check(self, coords: Sequence[int]) -> None:
        """The rules that every tile-mode copy obeys: rank, extents, the 16-byte grid of the inner coordinate."""
        if len(coords) != len(self.shape):
            raise rank_fault(len(coords), len(self.shape))
        if self.fault is not None:
            raise self.fault
        if coords[-1] * self.item % GRANULE:
            step = GRANULE // self.item
            raise Fault(
                ILLEGAL_INSTRUCTION,
                "the innermost coordinate is off the 16-byte grid",
                got=f"{coords[-1]} ({coords[-1] * self.item} bytes)",
                required=f"a multiple of {step} elements (16 bytes)",
                fix=f"start boxes at multiples of {step} elements",
            )

    def check_store(self, coords: Sequence[int]) -> None:
        self.check(coords)
        check_no_flip(self.map)
        if min(coords) < 0:
            raise Fault(
                ILLEGAL_INSTRUCTION,
                "a store starts at a negative coordinate",
                got=str(tuple(coords)),
                required="0 or more in every dimension",
                fix="start inside the array; only loads may begin before it",
            )

    # ---- boxes
    def load(self, coords: Sequence[int]) -> Array:
        """The box as 16-byte units, shape (rows.., units per row). It may be a view of global memory: copy before anything changes."""
        offset = 0
        for c, (last, dim, stride) in zip(coords, self._axes, strict=True):
            if c < 0 or c + last >= dim:
                return self._load_clipped(coords)
            offset += c * stride
        view = self._whole(offset)
        if view is None:
            return self._load_clipped(coords)
        if not self.rounds:
            return view
        bits = np.ascontiguousarray(view).view(np.uint32).copy()
        round_tf32(bits)
        return bits.view(UNIT)

    def whole(self, coords: Sequence[int]) -> Array | None:
        """A box that is in bounds everywhere, as a view of global memory when one buffer holds it."""
        return self._whole(sum(c * stride for c, stride in zip(coords, self.strides, strict=True)))

    def _whole(self, offset: int) -> Array | None:
        home = self._home
        if home is not None:
            start = self.address + offset - home.address
            if start >= 0 and start + self._unit_span <= len(home.data) and home.alive:
                return np.ndarray(self._unit_shape, UNIT, home.data, start, self._unit_moves)
        return self.memory.box(self.address + offset, self._unit_shape, self._unit_moves, GRANULE)

    def _load_clipped(self, coords: Sequence[int]) -> Array:
        clip = self._clip(coords, self._load_dims)
        outside = any(lo >= hi for lo, hi in clip)
        if (outside or min(coords) < 0) and self.memory.find(self.address) is None:
            raise unmapped(self.address, self.item)  # measured: such a box touches the base address itself
        box = np.zeros(self.shape, ELEMENT[self.item])
        if self.map.oob_fill == "nan":
            box.view(np.uint16)[...] = OOB_NAN
        if not outside:
            part = box[tuple(slice(lo, hi) for lo, hi in clip)]
            self._each(coords, clip, self.item, part, write=False)
            if self.rounds:
                bits = np.ascontiguousarray(part).view(np.uint32)
                round_tf32(bits)
                part[...] = bits
        return box.view(UNIT)

    def store(self, coords: Sequence[int], units: Array) -> None:
        """Writes the box (as `load` returns it), clipped."""
        target = self.whole(coords) if self.is_inside(coords) else None
        if target is not None:
            target[...] = units
            return
        clip = self._clip_units(coords)
        if all(lo < hi for lo, hi in clip):
            self._each(coords, clip, GRANULE, units[tuple(slice(lo, hi) for lo, hi in clip)], write=True)

    def reduce(self, coords: Sequence[int], units: Array, op: str) -> None:
        """Combines the box with what is there, clipped as a store is."""
        reduce_box(self, coords, units, op)

    def is_inside(self, coords: Sequence[int]) -> bool:
        """True when a store's box is not clipped (coordinates are not negative)."""
        return all(c + last < dim for c, last, dim in zip(coords, self._last, self._store_dims, strict=True))

    def _clip(self, coords: Sequence[int], dims: Sequence[int]) -> Clip:
        return tuple(
            (max(0, -(c // s)), min(n, -((c - dim) // s))) for c, n, s, dim in zip(coords, self.shape, self.steps, dims, strict=True)
        )

    def _clip_units(self, coords: Sequence[int]) -> Clip:
        *outer, (lo, hi) = self._clip(coords, self._store_dims)
        return (*outer, (lo * self.item // GRANULE, hi * self.item // GRANULE))

    def regions(self, coords: Sequence[int]) -> list[Region]:
        """The bytes of a box that a store writes, in steps of 16; none when it lies outside. A load reads no more than these."""
        clip = self._clip_units(coords)
        if any(lo >= hi for lo, hi in clip):
            return []
        shape = tuple(hi - lo for lo, hi in clip)
        return [Region(self._first_address(coords, clip, GRANULE), shape, (*self.moves[:-1], GRANULE), GRANULE)]

    def over_elements(self, coords: Sequence[int]) -> int:
        """How many bytes that are somebody else's elements a store of this box writes behind each row."""
        reaches = coords[-1] < self.map.global_dim[-1] < coords[-1] + self.shape[-1]
        return self.over if self.over and reaches and self.regions(coords) else 0

    def store_rows(self, coords: Sequence[int]) -> tuple[Clip, tuple[int, ...], list[int]]:
        """For reductions: the clip in elements, the shape of its outer part, and the global address of each clipped row in order."""
        clip = self._clip(coords, self._store_dims)
        if any(lo >= hi for lo, hi in clip):
            return clip, (), []
        return clip, tuple(hi - lo for lo, hi in clip[:-1]), self._row_addresses(coords, clip, self.item)

    def _first_address(self, coords: Sequence[int], clip: Clip, item: int) -> int:
        """Where the first element in bounds lies; the innermost entry of `clip` counts in `item` bytes."""
        outer = zip(coords[:-1], clip[:-1], self.steps[:-1], self.strides[:-1], strict=True)
        offset = sum((c + lo * step) * stride for c, (lo, _), step, stride in outer)
        return self.address + offset + coords[-1] * self.item + clip[-1][0] * item

    def _row_addresses(self, coords: Sequence[int], clip: Clip, item: int) -> list[int]:
        first = self._first_address(coords, clip, item)
        offsets = [[i * move for i in range(hi - lo)] for (lo, hi), move in zip(clip[:-1], self.moves[:-1], strict=True)]
        return [first + sum(parts) for parts in product(*offsets)]

    def _each(self, coords: Sequence[int], clip: Clip, item: int, part: Array, *, write: bool) -> None:
        """Moves a clipped, not empty part between global memory and `part`, as one strided view or row by row."""
        shape = tuple(hi - lo for lo, hi in clip)
        view = self.memory.box(self._first_address(coords, clip, item), shape, (*self.moves[:-1], item), item)
        if view is not None:
            if write:
                view[...] = part
            else:
                part[...] = view
            return
        rows = [self.memory.view(a, shape[-1] * item).view(ELEMENT[item]) for a in self._row_addresses(coords, clip, item)]
        for index, row in zip(np.ndindex(*shape[:-1]), rows, strict=True):
            if write:
                row[...] = part[index]
            else:
                part[index] = row

    @property
    def overlaps(self) -> bool:
        """True when two rows of one box may share bytes (zero or interleaved strides): element order then matters."""
        reach = self.shape[-1] * self.item
        for move, n in sorted((m, n) for m, n in zip(self.moves[:-1], self.shape[:-1], strict=True) if n > 1):
            if move < reach:
                return True
            reach = move * (n - 1) + reach
        return False
