"""Numbers as bits of an element type, rounded on the host once for a whole launch, to what every engine must give.

Plain fills round as a store of the number would: narrow floats by way of f32, and out of range is infinity (e4m3, which has none: NaN).
Constants of element expressions round as its casts do: once, fp8 saturates, `_ftz` types have no subnormals. `isa.elem` states the rules.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import FP8_MAX, INTEGERS

# Packed by Python, with what stands for a number out of range (infinity) and for NaN in a fill and in an element expression.
_PACKED: Final = {
    "f16": (struct.Struct("<e"), 0x7C00, 0x7E00, 0x7FFF),
    "f32": (struct.Struct("<f"), 0x7F800000, 0x7FC00000, 0x7FFFFFFF),
    "f32_ftz": (struct.Struct("<f"), 0x7F800000, 0x7FC00000, 0x7FFFFFFF),
    "f64": (struct.Struct("<d"), 0x7FF << 52, 0x7FF8 << 48, (1 << 63) - 1),
}
# Digits after the point, the lowest exponent of a normal number, its bias, and infinity and NaN as stored; tf32 lies in the upper 19 bits.
_NARROW: Final = {
    "bf16": (7, 127, 0x7F80, 0x7FC0, 0x7FFF),
    "tf32": (10, 127, 0x3FC00, 0x3FFFF, 0x3FFFF),
    "tf32_ftz": (10, 127, 0x3FC00, 0x3FFFF, 0x3FFFF),
    "e4m3": (3, 7, 0x7F, 0x7F, 0x7F),
    "e5m2": (2, 15, 0x7C, 0x7E, 0x7F),
}
_LARGEST: Final = {"e4m3": 0x7E, "e5m2": 0x7B, "bf16": 0x7F7F, "tf32": 0x3FBFF, "tf32_ftz": 0x3FBFF}
_SHIFT: Final = {"tf32": 13, "tf32_ftz": 13}
_FTZ: Final = frozenset({"f32_ftz", "tf32_ftz"})


def bits_of(value: float, dtype: str, *, cast: bool) -> int:
    """The bits of `value`, an int or float, as an element of `dtype`; `cast` as element expressions round, else as fills do."""
    if dtype in INTEGERS:
        return int(value) & ((1 << DTYPES[dtype].bits) - 1)
    packed = _PACKED.get(dtype)
    bits = _narrow(float(value), dtype, cast=cast) if packed is None else _pack(float(value), dtype, cast=cast)
    return _flushed(bits) if cast and dtype in _FTZ else bits


def _pack(value: float, dtype: str, *, cast: bool) -> int:
    form, infinity, plain_nan, one_nan = _PACKED[dtype]
    if value != value:  # noqa: PLR0124 - NaN
        sign = 1 << (8 * form.size - 1) if math.copysign(1.0, value) < 0 else 0
        return one_nan if cast else plain_nan | sign
    try:
        return int.from_bytes(form.pack(value), "little")
    except OverflowError:
        return infinity | (1 << (8 * form.size - 1) if value < 0 else 0)


def _narrow(value: float, dtype: str, *, cast: bool) -> int:
    digits, bias, infinity, plain_nan, one_nan = _NARROW[dtype]
    shift = _SHIFT.get(dtype, 0)
    sign = 1 << (DTYPES[dtype].bits - 1) if math.copysign(1.0, value) < 0 else 0
    if value != value:  # noqa: PLR0124 - NaN
        return one_nan << shift if cast or shift else plain_nan | sign
    size = abs(value)
    if not cast and size < math.inf:
        size = _through_f32(size)
    if cast and dtype in FP8_MAX:
        size = min(size, FP8_MAX[dtype])
    if size in (0.0, math.inf):
        return (infinity << shift if size else 0) | sign
    _, exponent = math.frexp(size)
    step = max(exponent - 1, 1 - bias) - digits  # the exponent of the last digit
    whole = round(math.ldexp(size, -step))  # Python rounds half to even, and both steps are exact
    bits = whole + ((step + digits + bias - 1) << digits)  # a carry moves on to the next exponent by itself
    return (infinity if bits > _LARGEST[dtype] else bits) << shift | sign


def _through_f32(size: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", size))[0]
    except OverflowError:
        return math.inf
    return rounded


def _flushed(bits: int) -> int:
    return bits if bits & 0x7F800000 else bits & 0x80000000
