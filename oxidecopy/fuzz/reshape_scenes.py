"""Scenes of tiles that are made from tiles of another shape: transposes, sums and maxima, and sums of neighbours."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxidecopy.fuzz.case import Data
from oxidecopy.fuzz.drafts import Draft, Handles
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES

_TYPES: Final = ("u8", "u16", "u32", "u64", "i32", "i64", "f16", "bf16", "f32", "f64")
_HALO: Final = (1, 2)  # rows and columns around the output of a stencil
_SPANS: Final = (("32B", 32), ("64B", 64), ("128B", 128))


class Turned:
    """All threads transpose each landed tile into another, put its rows, columns or neighbours together, and store what they made."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips(4, 0.05)
        total, self.use = d.blocks * self.trips.n, d.pick("transpose", "transpose", "sum", "max", "stencil")
        dtype = d.pick(*(_TYPES if self.use == "transpose" else ops.FOLDABLE if self.use in ops.FOLDS else ("f32",)))
        size = DTYPES[dtype].nbytes
        rows, columns = (16 // size * d.pick(1, 1, 2, 3) + (4 if self.use == "stencil" else 0) for _ in range(2))
        outer = d.pick((), (), (2,)) if self.use == "transpose" else ()
        self.axis, self.onto = d.pick(0, 1), d.chance(0.3)
        made = (*outer, columns, rows) if self.use == "transpose" else (rows if self.axis else columns,)
        if self.use == "stencil":
            made = (rows - 2 * _HALO[0], columns - 2 * _HALO[1])
        places = [tuple([d.pick(*range(-n, n + 1)) for n in _HALO]) for _ in range(d.pick(1, 2, 5, 6, ops.TAPS_MAX))]
        self.taps = {place: d.pick(-2, -1, 1, 3) for place in places}
        self.src = d.source(total, (dtype, (*outer, rows, columns), self._swizzle(columns * size)))
        into = dtype if self.use == "transpose" else "f32"
        self.dst = d.target(total, (into, made, self._swizzle(rows * size) if self.use == "transpose" else "none"))
        d.foretold(self.src, self.dst)
        for t in range(total):
            d.stores(self.dst, t, lambda t=t: self.made(t))  # type: ignore[misc]  # a default binds t

    def _swizzle(self, row: int) -> str:
        """Any that rows of so many bytes may have."""
        found: str = self.d.pick("none", *(name for name, span in _SPANS if row <= span))
        return found

    def made(self, t: int) -> Data:
        """What numpy makes of tile `t`: small whole numbers, whose sums are exact in any order."""
        tile = self.d.loaded(self.src, t)
        if self.use == "transpose":
            return np.swapaxes(tile, -1, -2)
        if self.use == "stencil":
            rows, columns = (n - 2 * more for n, more in zip(tile.shape, _HALO, strict=True))
            corners = [(_HALO[0] + row, _HALO[1] + column) for row, column in self.taps]
            given: Any = tile
            parts = [given[y : y + rows, x : x + columns] * np.float32(w) for (y, x), w in zip(corners, self.taps.values(), strict=True)]
            total: Data = np.add.reduce(parts)
            return total
        whole: Data = np.add.reduce(tile.astype(np.float32), self.axis) if self.use == "sum" else np.maximum.reduce(tile, self.axis)
        if self.onto:
            return np.add(whole, 1) if self.use == "sum" else np.maximum(whole, 1)
        return whole

    def __call__(self, cta: Any, h: Handles) -> None:
        d = self.d
        tile, made = cta.shared(h[self.src.name]), cta.shared(h[self.dst.name])
        full = cta.barrier().init(1)
        for i in cta.range(self.trips.of(h)):
            t = d.block(cta) * self.trips.n + i
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile)
                h[self.src.name].g2s(leader, tile, self.src.at(t), token)
            full.wait(token)
            if self.use == "transpose":
                cta.transpose(tile, out=made)
            elif self.use == "stencil":
                cta.stencil(tile, taps=self.taps, out=made)
            else:
                if self.onto:
                    cta.fill(made, 1)
                    cta.sync()
                fold = cta.sum if self.use == "sum" else cta.max
                fold(tile, axis=self.axis, out=made, accumulate=self.onto)
            cta.fence_proxy_async()
            cta.sync()
            with cta.elect() as leader:
                h[self.dst.name].s2g(leader, made, self.dst.at(t))
                leader.commit_group()
                leader.wait_group_read(0)
            cta.sync()
