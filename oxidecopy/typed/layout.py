"""Lays out a CTA's shared memory: tiles first, each at the alignment its user and its swizzle ask for, barriers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from oxidecopy.errors import Cause, RecordError, Site
from oxidecopy.isa import limits
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.program.program import BarrierDecl, TileDecl
from oxidecopy.program.tensor_map import TileLayout
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.sites import caller_site


@final
@dataclass(slots=True, kw_only=True)
class TileRequest:
    """A tile asked for. The first tensor copy decides its swizzle; a copy with another one is refused.

    A tile of packed elements is one of bytes: `dtype` and `shape` are theirs, `packed` names the type.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    align: int
    stages: int
    site: Site | None
    packed: str = ""
    swizzle: str | None = None
    swizzle_site: Site | None = None

    @property
    def elements(self) -> tuple[int, ...]:
        """Extents in elements, packed ones too."""
        return (*self.shape[:-1], self.shape[-1] * 16 // DTYPES[self.packed].group_bytes) if self.packed else self.shape

    @property
    def nbytes(self) -> int:
        """Dense bytes of one stage."""
        return TileLayout(shape=self.shape, element_bytes=DTYPES[self.dtype].nbytes, swizzle="none").nbytes

    def adopt(self, swizzle: str) -> None:
        """Fixes the swizzle that plain accesses of this tile must undo."""
        if self.swizzle is None:
            self.swizzle, self.swizzle_site = swizzle, caller_site()
        elif self.swizzle != swizzle:
            refuse(
                RecordError,
                "OX1037",
                f"tile {self.name!r} is copied with two swizzle modes",
                got=f"{swizzle} after {self.swizzle}",
                required="one mode per tile: the bytes of one would be read in the order of the other",
                fix="use a tile of its own for each descriptor, or descriptors of one swizzle",
                causes=(Cause(f"first copied with {self.swizzle} here", self.swizzle_site),),
            )


def _up(n: int, to: int) -> int:
    return -(-n // to) * to


def place(tiles: Sequence[TileRequest], barriers: Sequence[BarrierDecl]) -> tuple[tuple[TileDecl, ...], tuple[BarrierDecl, ...], int]:
    """Offsets for all tiles and barriers, and the total in bytes."""
    at = 0
    placed: list[TileDecl] = []
    for t in tiles:
        swizzle = t.swizzle or "none"
        align = max(t.align, EVERY_SWIZZLE[swizzle].repeat_bytes if t.swizzle else 1)
        layout = TileLayout(shape=t.shape, element_bytes=DTYPES[t.dtype].nbytes, swizzle=swizzle)
        stage_bytes = _up(layout.footprint_bytes, align)
        at = _up(at, align)
        placed.append(
            TileDecl(
                name=t.name, dtype=t.dtype, shape=t.shape, align=align, swizzle=swizzle,
                stages=t.stages, offset=at, stage_bytes=stage_bytes, site=t.site,
            )
        )  # fmt: skip
        at += (t.stages - 1) * stage_bytes + layout.footprint_bytes
    at = _up(at, limits.MBARRIER_BYTES)
    located: list[BarrierDecl] = []
    for b in barriers:
        located.append(replace(b, offset=at))
        at += b.stages * limits.MBARRIER_BYTES
    return tuple(placed), tuple(located), at
