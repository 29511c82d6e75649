"""Kernels in Triton's language; imported where Triton is."""

# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def fused(a, b, out, x, y, z, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201, N803  # its compiler reads this, not Python
    """Five operations on two f32 arrays, the result as bf16; their sizes are multiples of the block."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    made = tl.maximum(tl.load(a + at) * x + tl.load(b + at) * y - z, 0.0)
    tl.store(out + at, made.to(tl.bfloat16))


@triton.jit
def rows(table, numbers, out, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # noqa: ANN001, ANN201, N803
    """Rows by their numbers, a tile of so many rows and columns for each program; sizes are multiples of it."""
    across = width // COLUMNS
    row = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    source = tl.load(numbers + row).to(tl.int64)
    values = tl.load(table + source[:, None] * width + column[None, :])
    tl.store(out + row[:, None].to(tl.int64) * width + column[None, :], values)


@triton.jit
def product(a, b, out, m, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):  # noqa: ANN001, ANN201, N803, PLR0913, PLR0917
    """A times B transposed, dense rows, f32 sums. Blocks that run together share rows and columns: GROUP rows, column by column."""
    down, across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    number = tl.program_id(0)
    group = number // (GROUP * across)
    tall = min(down - group * GROUP, GROUP)
    inside = number % (GROUP * across)
    row = (group * GROUP + inside % tall) * ROWS + tl.arange(0, ROWS)
    column = inside // tall * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    left = a + (row % m)[:, None].to(tl.int64) * k + depth[None, :]
    right = b + (column % n)[None, :].to(tl.int64) * k + depth[:, None]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for at in range(0, k, DEPTH):
        x = tl.load(left + at, mask=depth[None, :] < k - at, other=0.0)
        y = tl.load(right + at, mask=depth[:, None] < k - at, other=0.0)
        total = tl.dot(x, y, total)
    here = (row < m)[:, None] & (column < n)[None, :]
    tl.store(out + row[:, None].to(tl.int64) * n + column[None, :], total.to(tl.bfloat16), mask=here)


@triton.jit
def biased(x, bias, n, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201, N803
    """gelu(x + bias) in place, a row of n columns after the other."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.load(x + at).to(tl.float32) + tl.load(bias + at % n)
    made = 0.5 * sums * (1.0 + tl.erf(sums * 0.7071067811865476))
    tl.store(x + at, made.to(tl.bfloat16))
