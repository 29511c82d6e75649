"""What element expressions mean, by exact fractions: the independent model of `isa.elem`, one element at a time.

A float is taken apart into sign and exact magnitude, every result is rounded once, and put together again. Nothing of numpy is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isnan, isqrt
from typing import TypeAlias, assert_never

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import (
    INTEGERS,
    MASK,
    SIGNED,
    Binary,
    Cast,
    Compare,
    CompareOp,
    Elem,
    ElemOp,
    Fn,
    Input,
    Neg,
    Number,
    Parameter,
    Select,
    Unary,
)


@dataclass(frozen=True)
class Format:
    exponent: int
    fraction: int
    bits: int
    shift: int = 0  # unused low bits
    flush: bool = False
    saturate: bool = False
    finite: bool = False  # no infinities: the top exponent holds numbers, and one NaN

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def largest(self) -> Fraction:
        top = (1 << self.exponent) - (1 if self.finite else 2) - self.bias
        return Fraction(2) ** top * (2 - Fraction(2 if self.finite else 1, 1 << self.fraction))


FORMATS = {
    "f16": Format(5, 10, 16),
    "bf16": Format(8, 7, 16),
    "f32": Format(8, 23, 32),
    "f64": Format(11, 52, 64),
    "f32_ftz": Format(8, 23, 32, flush=True),
    "tf32": Format(8, 10, 32, shift=13),
    "tf32_ftz": Format(8, 10, 32, shift=13, flush=True),
    "e4m3": Format(4, 3, 8, saturate=True, finite=True),
    "e5m2": Format(5, 2, 8, saturate=True),
}
INF = "inf"
Float: TypeAlias = tuple[bool, Fraction | str] | None  # sign and magnitude; None is NaN


def decode(bits: int, dtype: str) -> Float:
    f = FORMATS[dtype.replace("tf32", "f32")]  # what is stored is read as it is
    sign = bool(bits >> (f.bits - 1))
    exponent, fraction = bits >> f.fraction & ((1 << f.exponent) - 1), bits & ((1 << f.fraction) - 1)
    if exponent == (1 << f.exponent) - 1:
        if not f.finite:
            return None if fraction else (sign, INF)
        if fraction == (1 << f.fraction) - 1:
            return None
    if exponent == 0:
        return sign, Fraction(0) if f.flush else Fraction(fraction, 1 << f.fraction) * Fraction(2) ** (1 - f.bias)
    return sign, (1 + Fraction(fraction, 1 << f.fraction)) * Fraction(2) ** (exponent - f.bias)


def encode(value: Float, dtype: str) -> int:
    f = FORMATS[dtype]
    if value is None:
        return ((1 << (f.bits - 1 - f.shift)) - 1) << f.shift
    sign, size = value
    return sign << (f.bits - 1) | _magnitude(size, f) << f.shift


def _magnitude(size: Fraction | str, f: Format) -> int:
    infinite = ((1 << f.exponent) - 1) << f.fraction
    top = infinite + (1 << f.fraction) - 2 if f.finite else infinite - 1  # the largest number's bits
    if isinstance(size, str):
        return top if f.saturate else infinite
    if f.saturate and size > f.largest:
        return top
    exponent = max(_log2(size), 1 - f.bias) if size else 1 - f.bias
    scaled = round(size / Fraction(2) ** (exponent - f.fraction))  # Python rounds halves to even
    bits = scaled + ((exponent + f.bias - 1) << f.fraction)  # a carry goes into the exponent
    if f.flush and bits < 1 << f.fraction:
        return 0
    return min(bits, infinite) if not f.saturate else min(bits, top)


def _log2(x: Fraction) -> int:
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return n if Fraction(2) ** n <= x else n - 1


# ---- integers
def signed(bits: int, dtype: str) -> int:
    n = DTYPES[dtype].bits
    return bits - (1 << n) if dtype.startswith("i") and bits >> (n - 1) else bits


def wrap(value: int, dtype: str) -> int:
    return value % (1 << DTYPES[dtype].bits)


def held(value: int, dtype: str) -> int:
    n = DTYPES[dtype].bits
    low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if dtype.startswith("i") else (0, (1 << n) - 1)
    return min(max(value, low), high)


# ---- operations
def cast(bits: int, source: str, target: str) -> int:
    if source == target:
        return bits
    if source in INTEGERS:
        value = signed(bits, source)
        return wrap(value, target) if target in INTEGERS else encode((value < 0, Fraction(abs(value))), target)
    number = decode(bits, source)
    if target not in INTEGERS:
        return encode(number, target)
    if number is None:
        return 0
    sign, size = number
    whole = 1 << 70 if isinstance(size, str) else int(size)
    return wrap(held(-whole if sign else whole, target), target)


def combine(op: ElemOp, a: int, b: int, dtype: str) -> int:
    if dtype in INTEGERS:
        x, y = signed(a, dtype), signed(b, dtype)
        return wrap({ElemOp.ADD: x + y, ElemOp.SUB: x - y, ElemOp.MUL: x * y}[op], dtype)
    p, q = decode(a, dtype), decode(b, dtype)
    if p is None or q is None:
        return encode(None, dtype)
    if op is ElemOp.SUB:
        q = (not q[0], q[1])
    if op in (ElemOp.ADD, ElemOp.SUB):
        return encode(_sum(p, q), dtype)
    return encode(_product(op, p, q), dtype)


def _sum(p: tuple[bool, Fraction | str], q: tuple[bool, Fraction | str]) -> Float:
    (s, x), (t, y) = p, q
    if isinstance(x, str) or isinstance(y, str):
        if x == y and s != t:
            return None
        return p if isinstance(x, str) else q
    total = (-x if s else x) + (-y if t else y)
    return (s and t) if total == 0 else total < 0, abs(total)


def _product(op: ElemOp, p: tuple[bool, Fraction | str], q: tuple[bool, Fraction | str]) -> Float:
    (s, x), (t, y) = p, q
    if op is ElemOp.DIV:
        if x == y and (isinstance(x, str) or x == 0):
            return None
        if y == 0 or isinstance(x, str):
            return s != t, INF
        return s != t, Fraction(0) if isinstance(y, str) else x / y
    if isinstance(x, str) or isinstance(y, str):
        return None if 0 in (x, y) else (s != t, INF)
    return s != t, x * y


def negate(bits: int, dtype: str) -> int:
    if dtype in INTEGERS:
        return wrap(-signed(bits, dtype), dtype)
    number = decode(bits, dtype)
    return encode(None if number is None else (not number[0], number[1]), dtype)


def one_nan(bits: int, dtype: str) -> int:
    return encode(None, dtype) if dtype not in INTEGERS and decode(bits, dtype) is None else bits


def rank(bits: int, dtype: str) -> Fraction:
    """What numbers of a type are ordered by."""
    if dtype in INTEGERS:
        return Fraction(signed(bits, dtype))
    number = decode(bits, dtype)
    assert number is not None
    sign, size = number
    far = Fraction(2) ** 2000 if isinstance(size, str) else size
    return -far if sign else far


def compare(op: CompareOp, a: int, b: int, dtype: str) -> bool:
    if dtype not in INTEGERS and None in (decode(a, dtype), decode(b, dtype)):
        return op is CompareOp.NE
    x, y = rank(a, dtype), rank(b, dtype)
    return {"<": x < y, "<=": x <= y, "==": x == y, "!=": x != y, ">": x > y, ">=": x >= y}[op.value]


def extreme(op: ElemOp, a: int, b: int, dtype: str) -> int:
    if dtype not in INTEGERS and None in (decode(a, dtype), decode(b, dtype)):
        return encode(None, dtype)
    negative = DTYPES[dtype].bits - 1
    order = sorted((a, b), key=lambda bits: (rank(bits, dtype), dtype in INTEGERS or not bits >> negative))
    return order[0 if op is ElemOp.MIN else 1]


def bitwise(op: ElemOp, a: int, b: int, dtype: str) -> int:
    width = DTYPES[dtype].bits
    match op:
        case ElemOp.AND:
            return a & b
        case ElemOp.OR:
            return a | b
        case ElemOp.XOR:
            return a ^ b
        case ElemOp.SHL:
            return wrap(a << b, dtype) if b < width else 0
        case _:
            return wrap(signed(a, dtype) >> min(b, width), dtype)


def unary(fn: Fn, bits: int, dtype: str) -> int:
    """Of those functions that are exact, or rounded once."""
    if fn is Fn.NOT:
        return wrap(~bits, dtype)
    if fn is Fn.ABS:
        negative = dtype in SIGNED and signed(bits, dtype) < 0
        return wrap(-signed(bits, dtype), dtype) if negative else bits if dtype in INTEGERS else encode(_size(decode(bits, dtype)), dtype)
    assert fn is Fn.SQRT
    number = decode(bits, dtype)
    if number is None or (number[0] and number[1] != 0):
        return encode(None, dtype)
    sign, size = number
    if isinstance(size, str) or size == 0:
        return encode((sign, size), dtype)
    scale = 1 << 1200  # its root has so many digits that only an exact one rounds like a tie
    whole = size * scale * scale
    root = isqrt(whole.numerator // whole.denominator)
    inexact = root * root * whole.denominator != whole.numerator
    return encode((False, Fraction(2 * root + inexact, 2 * scale)), dtype)


def _size(number: Float) -> Float:
    return None if number is None else (False, number[1])


def constant(value: float, dtype: str) -> int:
    if dtype in INTEGERS:
        return wrap(int(value), dtype)
    if isnan(value):
        return encode(None, dtype)
    sign = str(value).startswith("-")
    return encode((sign, INF if value in (float("inf"), -float("inf")) else Fraction(abs(value))), dtype)


def evaluate(e: Elem, inputs: list[int], scalars: dict[str, float]) -> int:  # noqa: C901 - one case per node
    """The bits of `e` for elements with these bits."""
    match e:
        case Input(index, _, _):
            return inputs[index]
        case Number(value, dtype):
            return constant(value, dtype)
        case Parameter(name, dtype):
            return constant(scalars[name], dtype)
        case Neg(a):
            return negate(evaluate(a, inputs, scalars), a.dtype)
        case Cast(a, dtype):
            return cast(evaluate(a, inputs, scalars), a.dtype, dtype)
        case Unary(fn, a):
            bits = evaluate(a, inputs, scalars)
            return 1 - bits if a.dtype == MASK else unary(fn, bits, a.dtype)
        case Compare(op, a, b):
            return int(compare(op, evaluate(a, inputs, scalars), evaluate(b, inputs, scalars), a.dtype))
        case Select(cond, a, b):
            return one_nan(evaluate(a if evaluate(cond, inputs, scalars) else b, inputs, scalars), e.dtype)
        case Binary(op, a, b):
            first, second = evaluate(a, inputs, scalars), evaluate(b, inputs, scalars)
            if op in (ElemOp.MIN, ElemOp.MAX):
                return extreme(op, first, second, e.dtype)
            if op in (ElemOp.ADD, ElemOp.SUB, ElemOp.MUL, ElemOp.DIV):
                return combine(op, first, second, e.dtype)
            return bitwise(op, first, second, "u8" if e.dtype == MASK else e.dtype)
        case _:
            assert_never(e)
