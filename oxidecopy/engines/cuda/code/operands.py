"""Operands as values: shared offsets of barriers and tiles, layouts, coordinates."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

from oxidecopy.engines.cuda.code.elements import code_of
from oxidecopy.engines.cuda.code.swizzles import chunk_mask
from oxidecopy.engines.cuda.code.values import Lin, Values
from oxidecopy.isa.limits import MAX_RANK, MBARRIER_BYTES
from oxidecopy.isa.ops import BarrierRef, TileRef
from oxidecopy.program.program import Program
from oxidecopy.program.tensor_map import TileLayout

_LAYOUT: Final = struct.Struct("<6i4Bi")


class Operands:
    """Turns references into values, for one program and launch."""

    def __init__(self, program: Program, values: Values) -> None:
        self.program = program
        self.values = values

    def barrier(self, ref: BarrierRef) -> Lin:
        """Shared offset of a barrier element."""
        index = self.values.scale(self.values.of(ref.index), MBARRIER_BYTES)
        return (index[0] + self.program.barriers[ref.barrier].offset, index[1])

    def tile(self, ref: TileRef) -> Lin:
        """Shared offset of a tile's stage, or of a part of it."""
        decl = self.program.tiles[ref.tile]
        at = self.values.scale(self.values.of(ref.index), decl.stage_bytes)
        if ref.part is not None:
            layout = decl.layout
            whole = layout.rows * layout.pitch_bytes if len(layout.shape) > 1 else layout.row_bytes
            at = self.values.add(at, self.values.of(ref.part.rank), whole // ref.part.of)
        return (at[0] + decl.offset, at[1])

    def layout(self, ref: TileRef) -> TileLayout:
        """The layout that plain accesses see: the declared one, or a part of it."""
        layout = self.program.tiles[ref.tile].layout
        if ref.part is None:
            return layout
        return replace(layout, shape=(layout.shape[0] // ref.part.of, *layout.shape[1:]))

    def layout_record(self, ref: TileRef, at: int = 0) -> bytes:
        """`abi.LAYOUT` of a tile; `at` is the constant part of an input's offset."""
        layout = self.layout(ref)
        shape = [*layout.shape, *[1] * (MAX_RANK - len(layout.shape))]
        dtype = code_of(self.program.tiles[ref.tile].dtype)
        mask = chunk_mask(layout.swizzle)
        return _LAYOUT.pack(*shape, layout.pitch_bytes, len(layout.shape), layout.element_bytes, mask, dtype, at)
