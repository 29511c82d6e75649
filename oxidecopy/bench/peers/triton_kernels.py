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
