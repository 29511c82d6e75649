"""What the random pipelines are made of: a draft that collects the launch's arguments, views of arrays in tiles, and what stores do.

Handles are Any here and in the scenes: their static types depend on draws, which only the recorder's own checks can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any, Final, TypeAlias, final

import numpy as np

from oxidecopy.fuzz.case import Data, Global, clip, padded, read_box
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.program import ArrayParam, IdxParam, MapParam, ScalarParam, entry_name
from oxidecopy.program.tensor_map import TensorMap, tile_shape
from oxidecopy.tiles.roles import Roles
from oxidecopy.typed import cache, dtypes
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.global_array import storage_dtype
from oxidecopy.typed.recording import ArgumentSpec
from oxidecopy.typed.symbolic import Idx

Handles: TypeAlias = dict[str, Any]
Effect: TypeAlias = Callable[[dict[str, Data]], None]
Shape: TypeAlias = tuple[str, tuple[int, ...], str]  # element type, box, swizzle
DTYPE_NAMES: Final = tuple(name for name, info in DTYPES.items() if not info.bits % 8)  # packed ones are not generated
INTEGERS: Final = ("i32", "u32", "u64")  # with reductions whose result does not hang on an order
LONG: Final = (14, 23, 40)  # trips: enough for the verifier to look for a period
POLICIES: Final = (
    cache.evict_first,
    cache.evict_last,
    cache.evict_normal,
    cache.evict_unchanged,
    cache.fractional(cache.evict_last, 0.5, rest=cache.evict_first),
)


@final
@dataclass(frozen=True, slots=True)
class View:
    """An array as tiles of `box` along its outermost dimension, the last of them cut off, with constant inner coordinates."""

    name: str
    dtype: str
    box: tuple[int, ...]
    inner: tuple[int, ...]
    lead: int = 0  # rows by which all boxes start too early: loads may begin outside
    steps: tuple[int, ...] = ()  # element strides of its map; empty for ones

    def at(self, tile: Idx) -> tuple[Any, ...]:
        """Where tile number `tile` begins."""
        return (tile * self.box[0] * (self.steps or (1,))[0] - self.lead, *self.inner)

    @property
    def plain(self) -> str:
        """The parameter by which plain stores reach the same memory."""
        return f"{self.name}_plain"


@final
@dataclass(slots=True)
class Trips:
    """A trip count, as a number and as the recording has it: a constant or an `Idx` parameter."""

    n: int
    name: str

    def of(self, h: Handles) -> Idx:
        """As the recording has it."""
        found: Idx = h[self.name] if self.name else self.n
        return found


@final
@dataclass(slots=True)
class Guard:
    """Maybe a condition on the block's number around a whole scene."""

    kind: str
    a: int = 0
    b: int = 0

    def of(self, block: Any) -> Any:
        """The condition, of a number or of what stands for it in a recording."""
        match self.kind:
            case "below":
                return block < self.a
            case "every":
                return block % self.b == self.a % self.b
            case "between":
                return (block >= self.a) & (block < self.a + self.b)
            case "outside":
                return (block < self.a) | (block >= self.a + self.b)
            case _:
                return True

    def runs(self, block: int) -> bool:
        """Whether that block runs the scene."""
        return bool(self.of(block))

    def around(self, cta: Any, block: Any) -> AbstractContextManager[None, bool | None]:
        """The block to put the scene into."""
        if not self.kind:
            return nullcontext()
        when: AbstractContextManager[None, bool | None] = cta.when(self.of(block))
        return when


@final
@dataclass(slots=True)
class Draft:
    """A pipeline in the making: its launch, its arguments, and what its stores do."""

    rng: Random
    threads: int
    cluster: tuple[int, int, int]
    grid: tuple[int, int, int]
    roles: Roles | None = None
    sm: int = 90
    memory: dict[str, Global] = field(default_factory=dict)
    maps: dict[str, tuple[str, TensorMap]] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    idx: dict[str, int] = field(default_factory=dict)
    scalars: dict[str, int | float] = field(default_factory=dict)
    arguments: dict[str, ArgumentSpec] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)  # arrays whose contents numpy does not foretell

    @property
    def size(self) -> int:
        """CTAs of a cluster."""
        return prod(self.cluster)

    @property
    def blocks(self) -> int:
        """CTAs of the launch."""
        return prod(self.grid)

    @property
    def warps(self) -> int:
        """Of a CTA."""
        return -(-self.threads // 32)

    def chance(self, p: float) -> bool:
        """True with probability `p`."""
        return self.rng.random() < p

    def pick(self, *choices: Any) -> Any:
        """One of them."""
        return self.rng.choice(choices)

    def hint(self) -> dict[str, Any]:
        """Maybe a cache hint, as arguments of a copy."""
        return {"cache_hint": self.rng.choice(POLICIES)} if self.chance(0.15) else {}

    # ---- arguments
    def shape(self, dtypes: tuple[str, ...] = DTYPE_NAMES) -> Shape:
        """Rows of 16 to 64 bytes, a few hundred bytes in all."""
        rng = self.rng
        dtype = rng.choice(dtypes)
        size = DTYPES[dtype].nbytes
        row = rng.choice((16, 16, 32, 48, 64))
        swizzle = rng.choice([s for s in SWIZZLES if not SWIZZLES[s].span_bytes or row <= SWIZZLES[s].span_bytes])
        outer = rng.choice(((), (2,), (4,), (8,), (3,), (2, 2), (4, 2), (2, 1, 2), (2, 1, 1, 2)))
        return (dtype, (*outer, row // size), swizzle) if outer else (dtype, (rng.choice((128, 256)) // size,), "none")

    def source(self, total: int, shape: Shape) -> View:
        """A map over a fresh array of `total` tiles, to load from."""
        rank = len(shape[1])
        steps = (*(self.rng.choice((1, 1, 2, 3)) for _ in range(rank - 1)), 1) if rank > 1 and self.chance(0.12) else ()
        return self._tiled("a", total, shape, 0 if rank == 1 else self.pick(0, 0, 1), steps)

    def target(self, total: int, shape: Shape) -> View:
        """A map over a fresh array of `total` tiles, to store to, and a plain array parameter of the same memory."""
        view = self._tiled("b", total, shape, 0, ())
        self.arrays[view.plain] = view.name
        self.arguments[view.plain] = ArrayParam(name=view.plain, dtype=view.dtype, rank=len(view.box))
        return view

    def twins(self, total: int, shape: Shape) -> tuple[View, View]:
        """Maps over two fresh arrays of the same extents, cut off anywhere, as schedules cover them; the second one plain, too."""
        dtype, box, swizzle = shape
        inner = [max(1, b * self.pick(1, 1, 2) - self.pick(0, 1)) for b in box[1:]]
        dims = (max(1, total * box[0] - self.rng.randrange(box[0])), *inner)
        views = []
        for stem in "ab":
            name = f"{stem}{len(self.memory)}"
            strides, ones = self.fresh(name, dtype, dims), (1,) * len(box)
            tensor = TensorMap(dtype=dtype, global_dim=dims, global_strides=strides, box_dim=box, element_strides=ones, swizzle=swizzle)
            self.bind(name, name, tensor)
            views.append(View(name, dtype, box, (0,) * (len(box) - 1)))
        src, dst = views
        self.arrays[dst.plain] = dst.name
        self.arguments[dst.plain] = ArrayParam(name=dst.plain, dtype=dtype, rank=len(box))
        return src, dst

    def table(self, stem: str, counts: tuple[int, ...], shape: Shape) -> str:
        """A table of maps over fresh arrays of so many tiles each."""
        dtype, box, swizzle = shape
        ones = (1,) * len(box)
        name = f"{stem}{len(self.memory)}"
        for i, total in enumerate(counts):
            entry = entry_name(name, i)
            dims = (max(1, total * box[0] - self.rng.randrange(box[0])), *(max(1, b + self.rng.choice((0, 1, -1))) for b in box[1:]))
            strides = self.fresh(entry, dtype, dims)
            tensor = TensorMap(dtype=dtype, global_dim=dims, global_strides=strides, box_dim=box, element_strides=ones, swizzle=swizzle)
            self.maps[entry] = (entry, tensor)
        self.arguments[name] = MapParam(name=name, dtype=dtype, box_dim=box, element_strides=ones, swizzle=swizzle, entries=len(counts))
        return name

    def array(self, stem: str, dtype: str, dims: tuple[int, ...]) -> str:
        """A fresh array as a plain parameter, its rows a multiple of 16 bytes apart."""
        name = f"{stem}{len(self.memory)}"
        self.fresh(name, dtype, dims)
        self.arrays[name] = name
        self.arguments[name] = ArrayParam(name=name, dtype=dtype, rank=len(dims))
        return name

    def indices(self, values: list[int], dtype: str) -> str:
        """A 1-D array of these numbers, to read indices from."""
        name = f"i{len(self.memory)}"
        self.memory[name] = Global(dtype=dtype, data=np.asarray(values, DTYPES[dtype].numpy), strides=())
        self.arrays[name] = name
        self.arguments[name] = ArrayParam(name=name, dtype=dtype, rank=1)
        return name

    def scalar(self, dtype: str, value: float) -> str:
        """A scalar parameter."""
        name = f"s{len(self.scalars)}"
        self.scalars[name] = value
        self.arguments[name] = ScalarParam(name=name, dtype=dtype)
        return name

    def fresh(self, name: str, dtype: str, dims: tuple[int, ...]) -> tuple[int, ...]:
        """New memory with small whole numbers, exact in every type; its strides but the innermost."""
        storage = storage_dtype(DTYPES[dtype])
        most = 16 if storage.itemsize == 1 and DTYPES[dtype].numpy.startswith("float") else 100
        data = np.asarray(self.rng.choices(range(most), k=prod(dims)), np.int64).astype(storage).reshape(dims)
        strides = padded(dims, storage.itemsize)
        self.memory[name] = Global(dtype=dtype, data=data, strides=strides)
        return strides

    def _tiled(self, stem: str, total: int, shape: Shape, lead: int, steps: tuple[int, ...]) -> View:
        dtype, box, swizzle = shape
        rng, name, item = self.rng, f"{stem}{len(self.memory)}", DTYPES[dtype].nbytes
        around = steps or (1,) * len(box)
        covered = tuple(b * s - rng.randrange(s) for b, s in zip(box, around, strict=True))
        assert tile_shape(covered, around) == box
        rows = max(1, total * box[0] * around[0] - (rng.randrange(box[0]) if self.chance(0.4) else 0))
        dims = (rows, *(max(1, b * s + rng.choice((0, 0, 1, -1))) for b, s in zip(box[1:], around[1:], strict=True)))
        inner = tuple(0 for _ in box[1:])
        if len(box) > 1 and self.chance(0.2):
            inner = (*inner[:-1], 16 // item)
        strides = self.fresh(name, dtype, dims)
        fill = "nan" if stem == "a" and DTYPES[dtype].is_float and self.chance(0.1) else "zero"
        tensor = TensorMap(
            dtype=dtype,
            global_dim=dims,
            global_strides=strides,
            box_dim=covered,
            element_strides=around,
            swizzle=swizzle,
            oob_fill=fill,
            l2_promotion=rng.choice((0, 128, 256)),
        )
        self.bind(name, name, tensor)
        return View(name, dtype, box, inner, lead, steps)

    def bind(self, name: str, memory: str, tensor: TensorMap) -> None:
        """Makes a map a parameter."""
        self.maps[name] = (memory, tensor)
        self.arguments[name] = MapParam(
            name=name,
            dtype=tensor.dtype,
            box_dim=tensor.box_dim,
            element_strides=tensor.element_strides,
            interleave=tensor.interleave,
            swizzle=tensor.swizzle,
            oob_fill=tensor.oob_fill,
            mode=tensor.mode,
        )

    def trips(self, most: int = 10, long: float = 0.12) -> Trips:
        """How often a loop runs."""
        n = self.rng.choice(LONG) if self.chance(long) else self.rng.randrange(most)
        name = f"n{len(self.idx)}" if self.chance(0.3) else ""
        if name:
            self.idx[name] = n
            self.arguments[name] = IdxParam(name=name)
        return Trips(n, name)

    def guard(self) -> Guard:
        """Maybe a condition; none where a cluster's CTAs need each other."""
        if self.size > 1 or not self.chance(0.3):
            return Guard("")
        kind, rng = self.rng.choice(("below", "below", "every", "between", "outside")), self.rng
        return Guard(kind, rng.randrange(self.blocks + 1), rng.randrange(1, 3))

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

    def ranks(self) -> Iterator[tuple[int, int, int]]:
        """Number, cluster number and rank in the cluster of every block."""
        (gx, gy, _), (cx, cy, cz) = self.grid, self.cluster
        for b, cluster in self.clusters():
            x, y, z = b % gx, b // gx % gy, b // gx // gy
            yield b, cluster, x % cx + cx * (y % cy + cy * (z % cz))

    # ---- effects
    def stores(self, dst: View, tile: int, value: Callable[[], Data]) -> None:
        """Tile `tile` of `dst` becomes `value()`, as far as it is inside."""

        def effect(now: dict[str, Data]) -> None:
            to, part = clip(now[dst.name], dst.at(tile), value())
            to[...] = part

        self.effects.append(effect)

    def loaded(self, src: View, tile: int) -> Data:
        """What a load of tile `tile` brings, where it is filled with zeros."""
        return read_box(self.memory[src.name].data, src.at(tile), src.box, src.steps)

    def moves(self, src: View, dst: View, tiles: Iterator[int]) -> None:
        """Each of these tiles of `src` goes to the same place in `dst`."""
        self.foretold(src, dst)
        for t in tiles:
            self.stores(dst, t, lambda t=t: self.loaded(src, t))  # type: ignore[misc]  # a default binds t

    def foretold(self, src: View, dst: View) -> None:
        """Numpy knows no fill but zero."""
        if self.maps[src.name][1].oob_fill != "zero":
            self.unknown.add(dst.name)

    def fills(self, dst: View, tiles: Iterator[int], number: int) -> None:
        """Each of these tiles of `dst` becomes `number`."""
        dtype = self.memory[dst.name].data.dtype
        for t in tiles:
            self.stores(dst, t, lambda: np.full(dst.box, number, dtype))


def element(dtype: str) -> type[DType]:
    """The class that users write for an element type."""
    found: type[DType] = getattr(dtypes, dtype)
    return found


def send(leader: Any, desc: Any, tile: Any, at: tuple[Any, ...], **hint: Any) -> None:
    """One bulk store in a group of its own."""
    desc.s2g(leader, tile, at, **hint)
    leader.commit_group()


def wait_over(bar: Any, k: Idx, *, parity: bool) -> None:
    """Waits for completion `k`, by phase or by parity."""
    if parity:
        bar.wait_parity(k % 2)
    else:
        bar.wait_phase(k)
