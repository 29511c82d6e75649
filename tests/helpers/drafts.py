"""What the random pipelines are made of: a draft that collects the launch's arguments, views of arrays in tiles, and what stores do.

Handles are Any here and in the scenes: their static types depend on draws, which only the recorder's own checks can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any, Final, TypeAlias

import numpy as np

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.program import ArrayParam, IdxParam, MapParam
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.typed.recording import ArgumentSpec
from oxidecopy.typed.symbolic import Idx
from tests.helpers.agreement import Data, Global, clip, padded, read_box

Handles: TypeAlias = dict[str, Any]
Shape: TypeAlias = tuple[str, tuple[int, ...], str]  # element type, box, swizzle
DTYPE_NAMES: Final = ("u8", "u16", "i32", "u32", "f32", "u64", "f16", "f64")
LONG: Final = (14, 23, 40)  # trips: enough for the verifier to look for a period


@dataclass(frozen=True, slots=True)
class View:
    """An array as tiles of `box` along its outermost dimension, the last of them cut off, with constant inner coordinates."""

    name: str
    dtype: str
    box: tuple[int, ...]
    inner: tuple[int, ...]
    lead: int = 0  # rows by which all boxes start too early: loads may begin outside

    def at(self, tile: Idx) -> tuple[Any, ...]:
        return (tile * self.box[0] - self.lead, *self.inner)

    @property
    def plain(self) -> str:
        """The parameter by which plain stores reach the same memory."""
        return f"{self.name}_plain"


@dataclass(slots=True)
class Trips:
    """A trip count, as a number and as the recording has it: a constant or an `Idx` parameter."""

    n: int
    name: str

    def of(self, h: Handles) -> Idx:
        found: Idx = h[self.name] if self.name else self.n
        return found


@dataclass(slots=True)
class Guard:
    """Maybe a condition on the block index around a whole scene: blocks below `below` run it."""

    below: int | None

    def runs(self, block: int) -> bool:
        return self.below is None or block < self.below

    def around(self, cta: Any, block: Any) -> AbstractContextManager[None, bool | None]:
        """The block to put the scene into."""
        if self.below is None:
            return nullcontext()
        when: AbstractContextManager[None, bool | None] = cta.when(block < self.below)
        return when


@dataclass(slots=True)
class Draft:
    """A pipeline in the making: its launch, its arguments, and what its stores do."""

    rng: Random
    threads: int
    cluster: tuple[int, int, int]
    grid: tuple[int, int, int]
    memory: dict[str, Global] = field(default_factory=dict)
    maps: dict[str, tuple[str, TensorMap]] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    idx: dict[str, int] = field(default_factory=dict)
    arguments: dict[str, ArgumentSpec] = field(default_factory=dict)
    effects: list[Callable[[dict[str, Data]], None]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return prod(self.cluster)

    @property
    def blocks(self) -> int:
        return prod(self.grid)

    @property
    def warps(self) -> int:
        return -(-self.threads // 32)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    # ---- arguments
    def shape(self) -> Shape:
        """Rows of 16 to 64 bytes, a few hundred bytes in all."""
        rng = self.rng
        dtype = rng.choice(DTYPE_NAMES)
        size = DTYPES[dtype].nbytes
        row = rng.choice((16, 16, 32, 48, 64))
        swizzle = rng.choice([s for s in SWIZZLES if not SWIZZLES[s].span_bytes or row <= SWIZZLES[s].span_bytes])
        outer = rng.choice(((), (2,), (4,), (8,), (3,), (2, 2), (4, 2)))
        return (dtype, (*outer, row // size), swizzle) if outer else (dtype, (rng.choice((128, 256)) // size,), "none")

    def source(self, total: int, shape: Shape) -> View:
        """A map over a fresh array of `total` tiles, to load from."""
        return self._tiled("a", total, shape, 0 if len(shape[1]) == 1 else self.pick(0, 0, 1))

    def target(self, total: int, shape: Shape) -> View:
        """A map over a fresh array of `total` tiles, to store to, and a plain array parameter of the same memory."""
        view = self._tiled("b", total, shape, 0)
        self.arrays[view.plain] = view.name
        self.arguments[view.plain] = ArrayParam(name=view.plain, dtype=view.dtype, rank=len(view.box))
        return view

    def _tiled(self, stem: str, total: int, shape: Shape, lead: int) -> View:
        dtype, box, swizzle = shape
        rng, name, item = self.rng, f"{stem}{len(self.memory)}", DTYPES[dtype].nbytes
        rows = max(1, total * box[0] - (rng.randrange(box[0]) if self.chance(0.4) else 0))
        dims = (rows, *(max(1, b + rng.choice((0, 0, 1, -1))) for b in box[1:]))
        inner = tuple(0 for _ in box[1:])
        if len(box) > 1 and self.chance(0.2):
            inner = (*inner[:-1], 16 // item)
        data = np.asarray(rng.choices(range(100), k=prod(dims)), DTYPES[dtype].numpy).reshape(dims)
        strides, ones = padded(dims, item), (1,) * len(box)
        self.memory[name] = Global(dtype=dtype, data=data, strides=strides)
        tensor = TensorMap(dtype=dtype, global_dim=dims, global_strides=strides, box_dim=box, element_strides=ones, swizzle=swizzle)
        self.maps[name] = (name, tensor)
        self.arguments[name] = MapParam(name=name, dtype=dtype, box_dim=box, element_strides=ones, swizzle=swizzle)
        return View(name, dtype, box, inner, lead)

    def trips(self) -> Trips:
        n = self.rng.choice(LONG) if self.chance(0.12) else self.rng.randrange(10)
        name = f"n{len(self.idx)}" if self.chance(0.3) else ""
        if name:
            self.idx[name] = n
            self.arguments[name] = IdxParam(name=name)
        return Trips(n, name)

    def guard(self) -> Guard:
        return Guard(self.rng.randrange(self.blocks + 1) if self.size == 1 and self.chance(0.25) else None)

    # ---- places
    def block(self, cta: Any) -> Any:
        """This CTA's number in the grid, x fastest."""
        return cta.block_idx.x + self.grid[0] * (cta.block_idx.y + self.grid[1] * cta.block_idx.z)

    def cluster_of(self, x: Any, y: Any, z: Any) -> Any:
        """The number of the cluster that block (x, y, z) is in."""
        cx, cy, cz = self.cluster
        return x // cx + (self.grid[0] // cx) * (y // cy + (self.grid[1] // cy) * (z // cz))

    def clusters(self) -> Iterator[tuple[int, int]]:
        """Number and cluster number of every block."""
        gx, gy, gz = self.grid
        for b in range(gx * gy * gz):
            yield b, self.cluster_of(b % gx, b // gx % gy, b // gx // gy)

    # ---- effects
    def stores(self, dst: View, tile: int, value: Callable[[], Data]) -> None:
        """Tile `tile` of `dst` becomes `value()`, as far as it is inside."""

        def effect(now: dict[str, Data]) -> None:
            to, part = clip(now[dst.name], dst.at(tile), value())
            to[...] = part

        self.effects.append(effect)

    def moves(self, src: View, dst: View, tiles: Iterator[int]) -> None:
        """Each of these tiles of `src` goes to the same place in `dst`."""
        for t in tiles:
            self.stores(dst, t, lambda t=t: read_box(self.memory[src.name].data, src.at(t), src.box))  # type: ignore[misc]  # a default binds t

    def fills(self, dst: View, tiles: Iterator[int], number: int) -> None:
        dtype = self.memory[dst.name].data.dtype
        for t in tiles:
            self.stores(dst, t, lambda: np.full(dst.box, number, dtype))


def send(leader: Any, desc: Any, tile: Any, at: tuple[Any, ...]) -> None:
    """One bulk store in a group of its own."""
    desc.s2g(leader, tile, at)
    leader.commit_group()


def wait_over(bar: Any, k: Idx, *, parity: bool) -> None:
    """Waits for completion `k`, by phase or by parity."""
    if parity:
        bar.wait_parity(k % 2)
    else:
        bar.wait_phase(k)
