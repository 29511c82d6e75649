"""Copies whose results a GPU once told: what each is, and the generator of the recorded set.

A case is one map, one operation and a few blocks, each at coordinates of its own. It says everything that its result depends on, so that a
recorded result stays one when the generator changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import product
from math import prod
from random import Random
from typing import Any, Final, final

from oxidecopy.isa.dtypes import DTYPES, REDUCE_OPS
from oxidecopy.isa.swizzle import SWIZZLES

SEED: Final = 1
_TYPES: Final = tuple(name for name, row in DTYPES.items() if row.min_sm == 90)
_BLOCKS: Final = 2
_BYTES_MAX: Final = 128  # of one box, about
_UNIT: Final = 16  # bytes: the grid of the innermost coordinate


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OracleCase:
    """Copies through one map. All tuples are outermost dimension first.

    Attributes:
        op: "load", "store", or a reduction: "add" and so on.
        kind: "tiled", "im2col" or "interleaved".
        dtype: name of the element type.
        shape: of the array, elements; of an interleaved map with the channels of a slice as the last dimension.
        strides_bytes: of the array, for all dimensions but the innermost; any order, 0 and overlapping ones for loads.
        box: as the factory takes it; of an im2col map (pixels, channels).
        steps: element strides of the map.
        swizzle: name of the mode.
        fill: "zero" or "nan".
        at: coordinates of block 0.
        move: what each block adds to those of the one before.
        blocks: how many there are: so many copies.
        lower: of an im2col map.
        upper: of an im2col map.
        offsets: of an im2col load.
    """

    op: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: str
    fill: str
    at: tuple[int, ...]
    move: tuple[int, ...]
    blocks: int
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Of the array's memory, from its first byte to behind its last row, in whole units of 16."""
        row = self.shape[-1] * DTYPES[self.dtype].nbytes
        outer = sum((n - 1) * stride for n, stride in zip(self.shape[:-1], self.strides_bytes, strict=True))
        return -(-(outer + row) // _UNIT) * _UNIT

    def __str__(self) -> str:
        what = f"{self.op} {self.kind} {self.dtype} {self.shape} strides {self.strides_bytes} box {self.box}"
        where = f"at {self.at} + {self.move} x {self.blocks}" + (f", offsets {self.offsets}" if self.offsets else "")
        corners = f" corners {self.lower} {self.upper}" if self.lower else ""
        return f"{what} steps {self.steps} swizzle {self.swizzle} fill {self.fill}{corners} {where}"

    def as_data(self) -> dict[str, Any]:
        """Its fields that are not empty."""
        return {name: value for name, value in asdict(self).items() if value != ()}

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> OracleCase:
        """What `as_data` wrote, read back."""
        known = {field.name for field in fields(OracleCase)}
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in known}
        return OracleCase(**({"strides_bytes": ()} | given))


def cases(seed: int = SEED) -> list[OracleCase]:
    """The set to be recorded: every type with every rank, and beside that swizzles, fills, strides, views and places by chance."""
    random = Random(seed)
    return [
        *_loads(random),
        *_stores(random),
        *_reductions(random),
        *_im2col(random),
        *_interleaved(random),
    ]


# ---- tiled
def _loads(random: Random) -> Iterator[OracleCase]:
    for (dtype, rank), again in product(product(_TYPES, range(1, 6)), range(6)):
        swizzle = random.choice(list(SWIZZLES))
        box, steps = _box(random, dtype, rank, swizzle), _steps(random, rank)
        shape = tuple(random.choice((1, 2, 3, 5, n, n + 1, 2 * n + 3)) for n in box)
        strides = _strides(random, dtype, shape, loads=again % 2 == 1)
        unit = _unit(dtype)
        low = [-n * s for n, s in zip(box, steps, strict=True)]
        at = [random.randint(lo, extent + 2) for lo, extent in zip(low, shape, strict=True)]
        move = [random.randint(0, n) for n in box]
        at[-1], move[-1] = at[-1] // unit * unit, move[-1] // unit * unit
        if not any(move):
            move[-1] = unit
        fill = "nan" if DTYPES[dtype].is_float and random.random() < 0.4 else "zero"
        yield OracleCase(
            op="load", kind="tiled", dtype=dtype, shape=shape, strides_bytes=strides, box=_reach(box, steps), steps=steps,
            swizzle=swizzle, fill=fill, at=tuple(at), move=tuple(move), blocks=_BLOCKS,
        )  # fmt: skip


def _stores(random: Random) -> Iterator[OracleCase]:
    for dtype, rank, _ in product(_TYPES, range(1, 6), range(2)):
        yield _stored(random, "store", dtype, rank)


def _reductions(random: Random) -> Iterator[OracleCase]:
    for op, dtype in product(REDUCE_OPS, _TYPES):
        if op in DTYPES[dtype].reduce:
            yield from (_stored(random, op, dtype, rank) for rank in random.sample(range(1, 6), 4))


def _stored(random: Random, op: str, dtype: str, rank: int) -> OracleCase:
    """Blocks write to places of their own: one box apart along one dimension."""
    swizzle = random.choice(list(SWIZZLES))
    box, steps = _box(random, dtype, rank, swizzle), _steps(random, rank)
    reach, axis = _reach(box, steps), random.randrange(rank)
    shape = tuple(random.randint(2 * n, 2 * n + 2) if i == axis else random.randint(1, n + 2) for i, n in enumerate(reach))
    unit = _unit(dtype)
    at = [random.randint(0, extent) for extent in shape]
    at[axis] = random.randint(0, min(reach[axis], shape[axis] - 1))
    at[-1] = at[-1] // unit * unit
    return OracleCase(
        op=op, kind="tiled", dtype=dtype, shape=shape, strides_bytes=_strides(random, dtype, shape, loads=False), box=reach, steps=steps,
        swizzle=swizzle, fill="zero", at=tuple(at), move=tuple(n * (i == axis) for i, n in enumerate(reach)), blocks=_BLOCKS,
    )  # fmt: skip


def _unit(dtype: str) -> int:
    """Elements of 16 bytes."""
    return _UNIT // DTYPES[dtype].nbytes


def _row(random: Random, dtype: str, swizzle: str) -> int:
    """Elements of a row: whole units, no wider than the swizzle's span, and often narrower."""
    most = SWIZZLES[swizzle].span_bytes or 128
    return random.choice([n for n in (16, 32, 48, 64, 96, 128) if n <= most]) // DTYPES[dtype].nbytes


def _box(random: Random, dtype: str, rank: int, swizzle: str) -> tuple[int, ...]:
    """Extents of what lands: rows of few dimensions, of about `_BYTES_MAX` bytes together."""
    inner = _row(random, dtype, swizzle)
    rows = max(_BYTES_MAX // (inner * DTYPES[dtype].nbytes), 1)
    outer: list[int] = []
    for _ in range(rank - 1):
        outer.append(random.randint(1, min(rows, 5)))
        rows = max(rows // outer[-1], 1)
    random.shuffle(outer)
    return (*outer, inner)


def _steps(random: Random, rank: int) -> tuple[int, ...]:
    return (*(random.choice((1, 1, 1, 2, 3)) for _ in range(rank - 1)), 1)


def _reach(box: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, ...]:
    """The box that the driver is given for one of `box` elements: the last stride need not be whole."""
    return tuple((n - 1) * s + 1 for n, s in zip(box, steps, strict=True))


def _strides(random: Random, dtype: str, shape: tuple[int, ...], *, loads: bool) -> tuple[int, ...]:
    """Padded rows, dimensions in any order; what is only loaded from may also repeat and overlap."""
    pitch = -(-shape[-1] * DTYPES[dtype].nbytes // _UNIT) * _UNIT + _UNIT * random.choice((0, 0, 1, 4))
    order = list(range(len(shape) - 1))
    if random.random() < 0.3:
        random.shuffle(order)
    strides = [0] * len(order)
    for axis in reversed(order):
        strides[axis] = pitch
        pitch *= shape[axis]
    if loads and strides and random.random() < 0.4:
        strides[random.randrange(len(strides))] = random.choice((0, _UNIT, 3 * _UNIT))
    return tuple(strides)


# ---- im2col
def _im2col(random: Random) -> Iterator[OracleCase]:
    for dtype, rank, _ in product(_TYPES, range(3, 6), range(4)):
        yield _pixels(random, "load", dtype, rank)
    for dtype, rank in product(("u8", "f16", "f32", "u64"), range(3, 6)):
        yield _pixels(random, "store", dtype, rank)
        if "add" in DTYPES[dtype].reduce:
            yield _pixels(random, "add", dtype, rank)


def _pixels(random: Random, op: str, dtype: str, rank: int) -> OracleCase:
    """Loads walk over borders and images from any base, at any tap; stores stay inside the tensor, and so in one block."""
    swizzle, unit, loads = random.choice(list(SWIZZLES)), _unit(dtype), op == "load"
    channels, spatial = _row(random, dtype, swizzle), rank - 2
    extents = tuple(random.randint(3, 7 if rank < 5 else 4) for _ in range(spatial))
    lower = tuple(random.randint(-2 if loads else 0, 1) for _ in extents)
    upper = tuple(random.randint(-1, 2 if loads else 0) for _ in extents)
    shape = (random.randint(1, 3), *extents, random.choice((channels, channels + 3, 2 * channels)))
    bases = [random.randint(low, n - 1 + up) for low, n, up in zip(lower, extents, upper, strict=True)]
    top = {1: 300, 2: 9, 3: 5}[spatial]
    return OracleCase(
        op=op, kind="im2col", dtype=dtype, shape=shape, strides_bytes=_strides(random, dtype, shape, loads=False),
        box=(random.randint(2, max(_BYTES_MAX // (channels * DTYPES[dtype].nbytes), 3)), channels),
        steps=(random.choice((1, 1, 2)), *(random.choice((1, 1, 2, 3)) for _ in extents), 1), swizzle=swizzle,
        fill="nan" if loads and DTYPES[dtype].is_float and random.random() < 0.4 else "zero",
        at=(random.randint(-1, shape[0]) if loads else 0, *bases, unit * random.choice((0, 0, 1, -1)) if loads else 0),
        move=(1, *(0 for _ in extents), 0), blocks=_BLOCKS if loads else 1, lower=lower, upper=upper,
        offsets=tuple(random.choice((0, 1, 2, random.randrange(top))) for _ in extents) if loads else (),
    )  # fmt: skip


# ---- interleaved
def _interleaved(random: Random) -> Iterator[OracleCase]:
    for dtype, width, rank in product(("u8", "f16", "f32", "f64"), (16, 32), (4, 5)):
        swizzle = random.choice(("none", "32B", "64B", "128B"))
        channels = width // DTYPES[dtype].nbytes
        grain = max(SWIZZLES[swizzle].span_bytes // width, _unit(dtype))  # the driver counts a pixel as one element
        box = (1, 1, *(random.randint(1, 2) for _ in range(rank - 4)), grain)
        shape = (2, 3, *(random.randint(2, 4) for _ in range(rank - 4)), random.randint(3, 2 * box[-1] + 1), channels)
        strides = [channels * DTYPES[dtype].nbytes]
        for extent in reversed(shape[1:-1]):
            strides.append(strides[-1] * extent)
        yield OracleCase(
            op="load", kind="interleaved", dtype=dtype, shape=shape, strides_bytes=tuple(reversed(strides)), box=box,
            steps=(1,) * (rank - 1), swizzle=swizzle, fill="zero", at=(0, 0, *(0 for _ in range(rank - 4)), -random.randint(0, 3)),
            move=(random.randint(0, 1), 1, *(1 for _ in range(rank - 4)), random.randint(0, 2)), blocks=_BLOCKS,
        )  # fmt: skip


def copies(of: list[OracleCase]) -> int:
    """How many copies a set makes."""
    return sum(case.blocks for case in of)


def landed(case: OracleCase) -> tuple[int, ...]:
    """Elements of what one copy moves, as its tile has them."""
    if case.kind == "im2col":
        return case.box
    counts = tuple(-(-n // s) for n, s in zip(case.box, case.steps, strict=True))
    if case.kind == "interleaved":
        return (counts[0], 1, *counts[2:-1], counts[-1] * case.shape[-1])
    return counts


def result_bytes(case: OracleCase) -> int:
    """Of what a run gives: what all blocks loaded, or the array that was stored to."""
    return prod(landed(case)) * DTYPES[case.dtype].nbytes * case.blocks if case.op == "load" else case.nbytes
