"""Reductions of a tile into global memory, bit for bit.

Integers wrap around. Float sums round once, to nearest even, and keep subnormals (the _ftz types flush operands and result to a zero of
the same sign). NaN results are all ones without the sign (0x7FFF, 0x7FFFFFFF); f64 passes a NaN operand on (the tile's when both are),
and infinity minus infinity is 0xFFF8000000000000. For f16 and bf16 min and max, -0 is below +0 and a NaN loses to a number. All measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from oxidecopy.engines.sim.memory import ELEMENT, UNIT, Array

if TYPE_CHECKING:
    from oxidecopy.engines.sim.tma import TensorPlan

Bits: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]  # of 16, 32 or 64 bits
Signed: TypeAlias = np.dtype[np.signedinteger[Any]]
Combine: TypeAlias = Callable[[Bits, Bits], Bits]  # (old value in memory, value of the tile) -> new value

SIGNED: Final[dict[str, Signed]] = {"i32": np.dtype("<i4"), "i64": np.dtype("<i8")}
F64_INVALID: Final = 0xFFF8000000000000


def combiner(op: str, dtype: str) -> Combine:
    """The function of a legal (operation, element type) pair."""
    if op in _BITWISE:
        return _BITWISE[op]
    if dtype in ("f16", "bf16"):
        return _half_sum(dtype) if op == "add" else _half_pick(op, dtype)
    if op == "add":
        return _SUMS.get(dtype, _wrapping_sum)
    return _integer_pick(op, SIGNED[dtype]) if dtype in SIGNED else _UNSIGNED[op]


# ---- integers
def _wrapping_sum(old: Bits, src: Bits) -> Bits:
    return old + src


def _inc(old: Bits, src: Bits) -> Bits:
    return np.where(old >= src, 0, old + 1).astype(old.dtype)


def _dec(old: Bits, src: Bits) -> Bits:
    return np.where((old == 0) | (old > src), src, old - 1).astype(old.dtype)


def _integer_pick(op: str, signed: Signed) -> Combine:
    pick = np.minimum if op == "min" else np.maximum
    return lambda old, src: pick(old.view(signed), src.view(signed)).view(old.dtype)


_BITWISE: Final[dict[str, Combine]] = {
    "bit_and": lambda old, src: old & src,
    "bit_or": lambda old, src: old | src,
    "bit_xor": lambda old, src: old ^ src,
}
_UNSIGNED: Final[dict[str, Combine]] = {"min": np.minimum, "max": np.maximum, "inc": _inc, "dec": _dec}


# ---- floats
def _half_sum(dtype: str) -> Combine:
    kind = np.dtype(np.float16 if dtype == "f16" else ml_dtypes.bfloat16)

    def total(old: Bits, src: Bits) -> Bits:
        # f32 has more than twice the digits of either type plus two, so rounding the f32 sum rounds the exact sum.
        with np.errstate(over="ignore", invalid="ignore"):
            exact = old.view(kind).astype(np.float32) + src.view(kind).astype(np.float32)
            bits = exact.astype(kind).view(old.dtype)
        bits[np.isnan(exact)] = 0x7FFF
        return bits

    return total


def _half_pick(op: str, dtype: str) -> Combine:
    infinity = 0x7C00 if dtype == "f16" else 0x7F80
    pick = np.less if op == "min" else np.greater

    def choose(old: Bits, src: Bits) -> Bits:
        out = np.where(pick(_ordered(src), _ordered(old)), src, old)
        old_nan, src_nan = (old & 0x7FFF) > infinity, (src & 0x7FFF) > infinity
        out = np.where(old_nan, src, np.where(src_nan, old, out))
        out[old_nan & src_nan] = 0x7FFF
        return out.astype(old.dtype)

    return choose


def _ordered(bits: Bits) -> Bits:
    """16-bit float patterns as integers in the order of their values, -0 below +0."""
    return np.where(bits & 0x8000, 0xFFFF - bits, bits | 0x8000)


def _f32_sum(old: Bits, src: Bits) -> Bits:
    with np.errstate(over="ignore", invalid="ignore"):
        total = old.view(np.float32) + src.view(np.float32)
    bits = total.view(np.uint32)
    bits[np.isnan(total)] = 0x7FFFFFFF
    return bits


def _f32_ftz_sum(old: Bits, src: Bits) -> Bits:
    return _flush(_f32_sum(_flush(old), _flush(src)))


def _flush(bits: Bits) -> Bits:
    return np.where(bits & 0x7F800000, bits, bits & 0x80000000).astype(bits.dtype)


def _f64_sum(old: Bits, src: Bits) -> Bits:
    a, b = old.view(np.float64), src.view(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = a + b
    bits = total.view(np.uint64)
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    bits[np.isnan(total) & ~a_nan & ~b_nan] = F64_INVALID
    bits[a_nan] = old[a_nan]  # as it is: not even a signalling one becomes quiet
    bits[b_nan] = src[b_nan]
    return bits


_SUMS: Final[dict[str, Combine]] = {
    "f32": _f32_sum,
    "tf32": _f32_sum,
    "f32_ftz": _f32_ftz_sum,
    "tf32_ftz": _f32_ftz_sum,
    "f64": _f64_sum,
}


# ---- boxes
def reduce_box(plan: TensorPlan, coords: Sequence[int], units: Array, op: str) -> None:
    """Combines a tile (as 16-byte units) into the map's box at `coords`, clipped as a store is."""
    combine = combiner(op, plan.map.dtype)
    kind = ELEMENT[plan.item]
    if not plan.overlaps and plan.is_inside(coords):
        target = plan.whole(coords)
        if target is not None:
            tile = np.ascontiguousarray(units).view(kind)
            target[...] = combine(np.ascontiguousarray(target).view(kind), tile).view(UNIT)
            return
    clip, outer, rows = plan.store_rows(coords)
    if not rows:
        return
    tile = np.ascontiguousarray(units).view(kind)[tuple(slice(lo, hi) for lo, hi in clip)]
    for index, address in zip(np.ndindex(*outer), rows, strict=True):
        row = plan.memory.view(address, tile.shape[-1] * plan.item).view(kind)
        row[...] = combine(row.copy(), np.ascontiguousarray(tile[index]))
