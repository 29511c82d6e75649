"""What is measured beside plain copies: maps, casts, permutes and reductions, each with its pipeline and what numpy makes of the same data.

Sizes are free: the same pipelines run on the simulator on arrays of a few tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt

import oxidecopy as ox
from oxidecopy.bench import tiled
from oxidecopy.bench.copies import one_shot
from oxidecopy.bench.tiled import Tiles
from oxidecopy.typed.global_array import storage_dtype

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.stream import Stream
    from oxidecopy.host.bound import BoundLaunch

Array = ox.GlobalArray[Any, Any]
Values = npt.NDArray[Any]

SCALE_A, SCALE_B, BIAS = 0.75, -1.25, 0.125
TAPS: Final = {(-1, 0): 0.125, (0, -1): 0.125, (0, 0): 0.5, (0, 1): 0.125, (1, 0): 0.125}  # in reading order: the fastest
HEADS: Final = 32
_STRIP: Final = 4096  # rows that are added up at a time
DEPTH: Final = 128
COLUMNS: Final = 16_384

# Ways to cut the arrays up, of which the fastest counts: a GPU with more or other multiprocessors may like another one.
# With the elements of a row, where the array is seen in other rows than it comes in: those of a box lie closer to each other then.
FUSED: Final = (
    (Tiles(box=(64, 64), stages=2, stored=2, warps=8, per_sm=2), 0),
    (Tiles(box=(16, 256), stages=2, stored=2, warps=8, per_sm=2), 256),
    (Tiles(box=(24, 256), stages=2, stored=2, warps=12, per_sm=1), 256),
)
CAST: Final = (
    (Tiles(box=(64, 128), stages=2, stored=2, warps=8, per_sm=2), 0),
    (Tiles(box=(24, 256), stages=3, stored=2, warps=12, per_sm=1), 256),
)
PERMUTED: Final = (Tiles(box=(1, 16, 4, DEPTH), per_sm=4),)  # of BSHD, which both directions walk through
# With the columns of a strip, which tiles walk down: so they lie close to each other in both arrays.
TRANSPOSED: Final[Mapping[type[ox.DType], tuple[tuple[Tiles, int], ...]]] = {
    ox.f32: ((Tiles(box=(128, 128), stages=2, stored=1, warps=8, per_sm=1), 256),),
    ox.bf16: ((Tiles(box=(128, 256), stages=2, stored=1, warps=8, per_sm=1), 256),),
    ox.u8: ((Tiles(box=(256, 256), stages=2, stored=1, warps=8, per_sm=1), 512),),
    ox.f64: ((Tiles(box=(64, 128), stages=2, stored=1, warps=8, per_sm=1), 128),),
}
AROUND: Final = (
    Tiles(box=(64, 128), stages=2, stored=1, warps=8, per_sm=2),
    Tiles(box=(32, 248), stages=2, stored=1, warps=8, per_sm=2),
    Tiles(box=(32, 128), stages=2, stored=2, warps=4, per_sm=3),
)
SUMMED: Final[Mapping[type[ox.DType], tuple[Tiles, ...]]] = {
    ox.f32: (Tiles(box=(128, 128), stages=3, stored=1, warps=16, per_sm=1), Tiles(box=(64, 128), stages=3, stored=1, warps=8, per_sm=2)),
    ox.bf16: (Tiles(box=(128, 256), stages=3, stored=1, warps=16, per_sm=1), Tiles(box=(64, 256), stages=3, stored=1, warps=8, per_sm=2)),
}
SUMMED_DOWN: Final[Mapping[type[ox.DType], Tiles]] = {
    ox.f32: Tiles(box=(64, 128), stages=3, stored=1, warps=8, per_sm=2),
    ox.bf16: Tiles(box=(64, 256), stages=3, stored=1, warps=4, per_sm=2),
}
_DOWN: Final = 128  # boxes one below the other that a CTA sums, at most
ADDED: Final = (Tiles(box=(64, 256), per_sm=2),)

OF_COPY_MAP: Final = 0.95
OF_COPY: Final = 0.90
OF_CONTIGUOUS: Final = 1.2
OF_PEER: Final = 1.0


@final
@dataclass(frozen=True, slots=True)
class Spec:
    """An array that is read or written."""

    dtype: type[ox.DType]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.info.nbytes


@final
@dataclass(frozen=True, slots=True)
class Pattern:
    """The elements of an array whose memory repeats itself, so that large ones are known without being kept here."""

    values: Values

    def __getitem__(self, at: npt.NDArray[np.int64]) -> Values:
        """Those at flat indices."""
        found: Values = self.values[at % len(self.values)]
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One thing to measure.

    Attributes:
        name: what peers know it by.
        words: what it is.
        how: tiles and blocks in words.
        inputs: arrays that are read.
        output: the array that is written.
        bind: the launch, given inputs, output and the number of multiprocessors.
        call: what else is called in place of a launch, given inputs, output and a stream.
        expected: rows of the output, as `rows` counts them, from one on and up to another.
        target: of the bandwidth of a copy that moves as many bytes.
        peers: by name, with how much faster this has to be.
        tolerance: how far elements may be from `expected`; 0 compares bytes.
        adds: the output is added to, so it has to be zeros before.
    """

    name: str
    words: str
    how: str
    inputs: tuple[Spec, ...]
    output: Spec
    expected: Callable[[Sequence[Pattern], int, int], Values]
    target: float | None
    bind: Callable[[Sequence[Array], Array, int], BoundLaunch] | None = None
    call: Callable[[Sequence[Array], Array, Stream], Callable[[], object]] | None = None
    peers: tuple[tuple[str, float], ...] = ()
    tolerance: float = 0.0
    adds: bool = False

    @property
    def rows(self) -> tuple[int, int]:
        """Of the output, and how many elements each has: its last dimension, or one where that is the only one."""
        *outer, last = self.output.shape
        return (prod(outer), last) if outer else (last, 1)

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return sum(spec.nbytes for spec in (*self.inputs, self.output))


def works(elements: int, columns: int = COLUMNS) -> Iterator[tuple[Work, ...]]:
    """All of them, each in several ways, on `elements` f32 numbers or twice as many bf16 ones, `columns` in a row."""
    shape = (elements // columns, columns)
    sequence = sequence_of(elements)
    bshd = (2 * elements // (HEADS * DEPTH * sequence), sequence, HEADS, DEPTH)
    yield tuple([fused((elements // row, row), tiles) for tiles, wide in FUSED for row in (wide or columns,)])
    yield tuple([cast((elements // row, row), tiles) for tiles, wide in CAST for row in (wide or columns,)])
    yield tuple([permuted(bshd, tiles, back=False) for tiles in PERMUTED])
    yield tuple([permuted(bshd, tiles, back=True) for tiles in PERMUTED])
    for dtype, cuts in TRANSPOSED.items():
        yield tuple([transposed(_rows_of(shape, dtype), dtype, *cut) for cut in cuts])
    yield tuple([stencil(shape, tiles) for tiles in AROUND])
    for dtype, ways in SUMMED.items():
        yield tuple([row_sums(_rows_of(shape, dtype), dtype, tiles) for tiles in ways])
    for dtype, tiles in SUMMED_DOWN.items():
        yield (column_sums(_rows_of(shape, dtype), dtype, tiles),)
    yield tuple([added(shape, tiles) for tiles in ADDED])


def _rows_of(shape: tuple[int, int], dtype: type[ox.DType]) -> tuple[int, int]:
    """The shape of as many bytes, with as many columns."""
    return shape[0] * ox.f32.info.nbytes // dtype.info.nbytes, shape[1]


def sequence_of(elements: int) -> int:
    """Of the permutes: 4,096 where that many fit."""
    return min(4096, 2 * elements // (HEADS * DEPTH))


# ---- element by element
def fused(shape: tuple[int, int], tiles: Tiles) -> Work:
    """Five operations on two f32 arrays, the result as bf16."""

    def expected(given: Sequence[Pattern], first: int, stop: int) -> Values:
        at = places(shape, first, stop)
        a, b = (p[at] for p in given)
        made: Values = np.maximum(a * np.float32(SCALE_A) + b * np.float32(SCALE_B) - np.float32(BIAS), np.float32(0))
        return made.astype(storage_dtype(ox.bf16.info))

    def bind(given: Sequence[Array], out: Array, multiprocessors: int) -> BoundLaunch:
        maps = [_map(a, tiles.box) for a in (*given, out)]
        return tiled.fused(tiles)[tiles.per_sm * multiprocessors].bind(*maps, SCALE_A, SCALE_B, BIAS)

    return Work(
        name="fused", words="map of two f32 to bf16, five operations", how=f"{tiles.words}, rows of {shape[1]:,}",
        inputs=(Spec(ox.f32, shape), Spec(ox.f32, shape)), output=Spec(ox.bf16, shape), bind=bind, expected=expected,
        target=OF_COPY_MAP, peers=(("Triton", OF_PEER), ("CuPy", OF_PEER)),
    )  # fmt: skip


def cast(shape: tuple[int, int], tiles: Tiles) -> Work:
    """A copy that changes the type on the way."""

    def bind(given: Sequence[Array], out: Array, multiprocessors: int) -> BoundLaunch:
        return tiled.cast(tiles)[tiles.per_sm * multiprocessors].bind(_map(given[0], tiles.box), _map(out, tiles.box))

    return Work(
        name="cast", words="copy with a cast from f32 to bf16", how=f"{tiles.words}, rows of {shape[1]:,}", inputs=(Spec(ox.f32, shape),),
        output=Spec(ox.bf16, shape), bind=bind, target=OF_COPY_MAP, peers=(("torch", OF_PEER),),
        expected=lambda given, first, stop: given[0][places(shape, first, stop)].astype(storage_dtype(ox.bf16.info)),
    )  # fmt: skip


# ---- dimensions in another order
def permuted(shape: tuple[int, int, int, int], tiles: Tiles, *, back: bool) -> Work:
    """BSHD, of `shape`, to BHSD or back: a copy between two views, as the copy engine takes any order of dimensions but the innermost."""
    batch, sequence, heads, depth = shape
    other = batch, heads, sequence, depth
    name, given, made = ("BHSD to BSHD", other, shape) if back else ("BSHD to BHSD", shape, other)

    def bind(arrays: Sequence[Array], out: Array, _: int) -> BoundLaunch:
        grid = prod(n // b for n, b in zip(shape, tiles.box, strict=True))
        views = (arrays[0].permute(0, 2, 1, 3), out) if back else (arrays[0], out.permute(0, 2, 1, 3))
        maps = [_map(view, tiles.box) for view in views]
        return one_shot(tiles.beside(ox.bf16))[grid].bind(*maps)

    def expected(patterns: Sequence[Pattern], first: int, stop: int) -> Values:
        rows, row = divmod(np.arange(first, stop), made[2])
        outer, middle = divmod(rows, made[1])
        flat = ((outer * given[1] + row) * given[2] + middle) * given[3]
        return patterns[0][flat[:, None] + np.arange(made[3])]

    return Work(
        name="permute", words=f"permute, {name}", how=tiles.words, inputs=(Spec(ox.bf16, given),), output=Spec(ox.bf16, made), bind=bind,
        expected=expected, target=OF_COPY, peers=(("torch", OF_CONTIGUOUS),),
    )  # fmt: skip


def transposed(shape: tuple[int, int], dtype: type[ox.DType], tiles: Tiles, strip: int) -> Work:
    """Rows and columns change places: by threads, as the copy engine keeps the innermost dimension.

    A strip of columns is walked from top to bottom, before those beside it: strips are a dimension of both maps.
    """
    rows, columns = shape
    size = dtype.info.nbytes

    def bind(given: Sequence[Array], out: Array, multiprocessors: int) -> BoundLaunch:
        source = given[0].as_strided((columns // strip, rows, strip), (size * strip, size * columns, size))
        target = out.as_strided((columns // strip, strip, rows), (size * strip * rows, size * rows, size))
        maps = _map(source, (1, *tiles.box)), _map(target, (1, *tiles.box[::-1]))
        return tiled.transposed(tiles)[tiles.per_sm * multiprocessors].bind(*maps)

    return Work(
        name="transpose", words=f"transpose of {dtype.__name__}", how=f"{tiles.words}, strips of {strip} columns",
        inputs=(Spec(dtype, shape),), output=Spec(dtype, shape[::-1]), bind=bind, target=OF_COPY, peers=(("torch", OF_CONTIGUOUS),),
        expected=lambda given, first, stop: given[0][np.arange(rows) * columns + np.arange(first, stop)[:, None]],
    )  # fmt: skip


# ---- from neighbours
def stencil(shape: tuple[int, int], tiles: Tiles) -> Work:
    """The five-point stencil of diffusion."""

    def bind(given: Sequence[Array], out: Array, multiprocessors: int) -> BoundLaunch:
        halo = tuple([n + 2 * more for n, more in zip(tiles.box, tiled.HALO, strict=True)])
        return tiled.around(tiles, TAPS)[tiles.per_sm * multiprocessors].bind(_map(given[0], halo), _map(out, tiles.box))

    def expected(given: Sequence[Pattern], first: int, stop: int) -> Values:
        total: Values | None = None
        for (row, column), weight in TAPS.items():
            rows, columns = np.arange(first, stop)[:, None] + row, np.arange(shape[1])[None, :] + column
            inside = (rows >= 0) & (rows < shape[0]) & (columns >= 0) & (columns < shape[1])
            found = np.where(inside, given[0][np.where(inside, rows * shape[1] + columns, 0)], np.float32(0)) * np.float32(weight)
            total = found if total is None else total + found
        assert total is not None  # there are taps
        return total

    return Work(
        name="stencil", words="five-point stencil of f32", how=tiles.words, inputs=(Spec(ox.f32, shape),), output=Spec(ox.f32, shape),
        bind=bind, expected=expected, target=OF_COPY,
    )  # fmt: skip


# ---- fewer elements than before
def row_sums(shape: tuple[int, int], dtype: type[ox.DType], tiles: Tiles) -> Work:
    """The sum of each row: a CTA for as many rows as a box has."""

    def bind(given: Sequence[Array], out: Array, _: int) -> BoundLaunch:
        maps = _map(given[0], tiles.box), _map(out, tiles.box[:1])
        return tiled.row_sums(tiles)[-(-shape[0] // tiles.box[0])].bind(*maps)

    def expected(given: Sequence[Pattern], first: int, stop: int) -> Values:
        made: Values = given[0][places(shape, first, stop)].sum(1, dtype=np.float64, keepdims=True)
        return made.astype(np.float32)

    return Work(
        name="sums", words=f"sums of {dtype.__name__} rows", how=tiles.words, inputs=(Spec(dtype, shape),),
        output=Spec(ox.f32, shape[:1]), bind=bind, expected=expected, target=OF_COPY, peers=(("torch", OF_PEER),), tolerance=1e-3,
    )  # fmt: skip


def column_sums(shape: tuple[int, int], dtype: type[ox.DType], tiles: Tiles) -> Work:
    """The sum of each column: a CTA for many boxes one below the other."""
    boxes = min(_DOWN, shape[0] // tiles.box[0])

    def bind(given: Sequence[Array], out: Array, _: int) -> BoundLaunch:
        maps = _map(given[0], tiles.box), _map(out, tiles.box[1:])
        grid = prod(n // b for n, b in zip(shape, tiles.box, strict=True)) // boxes
        return tiled.column_sums(tiles, boxes)[grid].bind(*maps)

    def expected(given: Sequence[Pattern], first: int, stop: int) -> Values:
        total = np.zeros(stop - first)
        for row in range(0, shape[0], _STRIP):
            rows = np.arange(row, min(row + _STRIP, shape[0]))[:, None]
            total += given[0][rows * shape[1] + np.arange(first, stop)].sum(0, dtype=np.float64)
        return total[:, None].astype(np.float32)

    return Work(
        name="column sums", words=f"sums of {dtype.__name__} columns", how=f"{tiles.words}, {boxes} tiles to a CTA",
        inputs=(Spec(dtype, shape),), output=Spec(ox.f32, shape[1:]), bind=bind, expected=expected, target=OF_COPY,
        peers=(("torch", OF_PEER),), tolerance=1e-2, adds=True,
    )  # fmt: skip


def added(shape: tuple[int, int], tiles: Tiles) -> Work:
    """All boxes added into one: by stores that add, in the memory system."""

    def bind(given: Sequence[Array], out: Array, _: int) -> BoundLaunch:
        grid = prod(n // b for n, b in zip(shape, tiles.box, strict=True))
        return tiled.add_once(tiles.beside(ox.f32))[grid].bind(_map(given[0], tiles.box), _map(out, tiles.box))

    def expected(given: Sequence[Pattern], first: int, stop: int) -> Values:
        rows, columns = tiles.box
        total = np.zeros((stop - first, columns))
        for row in range(0, shape[0], rows):
            strip = given[0][places(shape, row + first, row + stop)]
            total += strip.reshape(stop - first, -1, columns).sum(1, dtype=np.float64)
        return total.astype(np.float32)

    return Work(
        name="added", words="store-reduce add of all boxes into one", how=tiles.words, inputs=(Spec(ox.f32, shape),),
        output=Spec(ox.f32, tiles.box), bind=bind, expected=expected, target=None,
        peers=(("CUDA C++", OF_PEER),), tolerance=1e-3, adds=True,
    )  # fmt: skip


# ---- arrays
def places(shape: tuple[int, int], first: int, stop: int) -> npt.NDArray[np.int64]:
    """Flat indices of rows `first` up to `stop`."""
    return np.arange(first * shape[1], stop * shape[1]).reshape(stop - first, shape[1])


def _map(a: Array, box: tuple[int, ...]) -> Any:
    maps: Any = ox.TmaDescriptor.tiled
    return maps(a, box=box)
