"""What products on tensor cores take: element types, and how the operands lie in their tiles (PTX 9.7.16.5, wgmma)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

from oxidecopy.isa.dtypes import DTYPES

SM: Final = 90  # the only family with this instruction: sm_90a
WARPGROUP: Final = 128  # threads
ROWS: Final = 64  # of the sums that one instruction computes
COLUMNS_STEP: Final = 8
COLUMNS_MAX: Final = 256
ROWS_MAX: Final = 128  # ours: the sums of a warpgroup are 128 x 128 or 64 x 256 at most, 128 registers of each thread
SUMS_MAX: Final = 128 * 128
INSTRUCTION_BYTES: Final = 32  # of K, that one instruction multiplies
DEPTH_BYTES: Final = 128  # ours: K of a stage fills one row of the swizzle
SWIZZLE: Final = "128B"
SUM_DTYPE: Final = "f32"
FP8: Final = frozenset({"e4m3", "e5m2"})
TRANSPOSABLE: Final = frozenset({"f16", "bf16"})  # the others are read K-major only
RESULTS: Final = frozenset({"f32", "f16", "bf16"})
OPERANDS: Final = frozenset({"f16", "bf16", "tf32"}) | FP8


def pair_problem(a: str, b: str) -> str:
    """Why no tensor core multiplies these element types; "" when it does."""
    for name in (a, b):
        if name not in OPERANDS:
            return f"{name} is no type of operands"
    return "" if a == b or {a, b} <= FP8 else f"{a} and {b} are not multiplied with each other"


def depth_of(dtype: str) -> int:
    """Elements of K in one stage."""
    return DEPTH_BYTES // DTYPES[dtype].nbytes


def operand_shape(shape: Sequence[int], major: str, depth: int) -> tuple[int, int] | None:
    """Rows (M or N) and depth (K) of an operand in a tile of `shape`; None where it holds no such operand.

    Outer dimensions of a K-major tile count as rows. An MN-major one holds blocks of `depth` rows, each of as many columns as it has.
    """
    if len(shape) < 2:
        return None
    rows, inner = prod(shape[:-1]), shape[-1]
    if major == "k":
        return (rows, inner) if inner == depth else None
    return (rows // depth * inner, depth) if rows % depth == 0 else None


def tile_problems(name: str, dtype: str, shape: Sequence[int], swizzle: str, major: str, rows: int) -> Iterator[str]:
    """What is wrong with the tile of one operand, which holds so many rows of it (0: none)."""
    size = shape[-1] * DTYPES[dtype].nbytes
    if swizzle != SWIZZLE or size != DEPTH_BYTES:
        yield f"{name!r} has rows of {size} bytes, swizzle {swizzle}"
    if major != "k" and dtype not in TRANSPOSABLE:
        yield f"{name!r}: {dtype} is read K-major only"
    elif not rows:
        yield f"{name!r} of shape {tuple(shape)} holds no {major.upper()}-major operand"


def extents(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of a tile of results; outer dimensions count as rows."""
    return prod(shape[:-1]), shape[-1]


def shape_problem(m: int, n: int) -> str:
    """Why a warpgroup cannot hold sums of `m` rows and `n` columns; "" when it can."""
    if m % ROWS or not 0 < m <= ROWS_MAX:
        return f"{m} rows are not {' or '.join(str(i) for i in range(ROWS, ROWS_MAX + 1, ROWS))}"
    if n % COLUMNS_STEP or not 0 < n <= COLUMNS_MAX:
        return f"{n} columns are no multiple of {COLUMNS_STEP} up to {COLUMNS_MAX}"
    return "" if m * n <= SUMS_MAX else f"{m} x {n} sums are more than the {SUMS_MAX} that a warpgroup has registers for"


def error_bound(dtype: str, depth: int, magnitude: float) -> float:
    """How far a sum on tensor cores may be from the exact one: `depth` products whose absolute values sum up to `magnitude`.

    A tensor core adds a few products at once, to f32 with truncation: each of the additions may lose one unit of the last place of what
    was added so far, which is no larger than the sum of the absolute values. Of fp8 it keeps 13 binary digits behind the first while it
    adds those of one instruction, 32 deep, to the others of a stage; stages are added to each other in f32.
    """
    f32 = depth * 2.0**-23
    return (f32 + DEPTH_BYTES // INSTRUCTION_BYTES * 2.0**-13 if dtype in FP8 else f32) * magnitude
