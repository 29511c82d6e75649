"""Element expressions on arrays, bit for bit as `isa.elem` says.

Values travel as unsigned integers of their type's size, so that nothing changes a bit unless a rule does. Where numpy or ml_dtypes would
round twice on the way to a narrow type, the value first goes through f32 rounded to odd: its last bit then says whether anything was cut
off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, assert_never

import ml_dtypes
import numpy as np
import numpy.typing as npt

from oxidecopy.engines.sim.memory import ELEMENT, Array
from oxidecopy.engines.sim.tma import TF32_TYPES, round_tf32
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import (
    BITWISE,
    FP8_MAX,
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
    integer_range,
)

NAN: Final = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f32_ftz": 0x7FFFFFFF, "f64": (1 << 63) - 1, "e4m3": 0x7F, "e5m2": 0x7F}
FTZ_TYPES: Final = frozenset({"f32_ftz", "tf32_ftz"})
_NARROW: Final[dict[str, np.dtype[Any]]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
_NUMPY: Final[dict[ElemOp, Callable[[Array, Array], Array]]] = {
    ElemOp.ADD: np.add,
    ElemOp.SUB: np.subtract,
    ElemOp.MUL: np.multiply,
    ElemOp.DIV: np.divide,
    ElemOp.AND: np.bitwise_and,
    ElemOp.OR: np.bitwise_or,
    ElemOp.XOR: np.bitwise_xor,
}
_COMPARE: Final[dict[CompareOp, Callable[[Array, Array], Array]]] = {
    CompareOp.LT: np.less,
    CompareOp.LE: np.less_equal,
    CompareOp.EQ: np.equal,
    CompareOp.NE: np.not_equal,
    CompareOp.GT: np.greater,
    CompareOp.GE: np.greater_equal,
}
_SILENT: Final[dict[str, Any]] = {"all": "ignore"}


def evaluate(e: Elem, inputs: Sequence[Array], scalars: Mapping[str, int | float]) -> Array:
    """The bits of `e` for each element of the inputs' arrays, all of one shape; one element when there is no input in it."""
    done: dict[int, Array] = {}  # by identity: a recording may share subtrees
    with np.errstate(**_SILENT):
        return _evaluate(e, inputs, scalars, done)


def _evaluate(  # noqa: C901 - one case per node
    e: Elem, inputs: Sequence[Array], scalars: Mapping[str, int | float], done: dict[int, Array]
) -> Array:
    found = done.get(id(e))
    if found is not None:
        return found
    match e:
        case Input(index, _, _):
            made = inputs[index]
        case Number(value, dtype):
            made = constant(value, dtype)
        case Parameter(name, dtype):
            made = constant(scalars[name], dtype)
        case Neg(a):
            made = negate(_evaluate(a, inputs, scalars, done), e.dtype)
        case Binary(op, a, b):
            made = combine(op, _evaluate(a, inputs, scalars, done), _evaluate(b, inputs, scalars, done), e.dtype)
        case Unary(fn, a):
            made = unary(fn, _evaluate(a, inputs, scalars, done), e.dtype)
        case Compare(op, a, b):
            left, right = _evaluate(a, inputs, scalars, done), _evaluate(b, inputs, scalars, done)
            made = _COMPARE[op](_ordered(left, a.dtype), _ordered(right, a.dtype))
        case Select(cond, a, b):
            chosen = np.where(
                _evaluate(cond, inputs, scalars, done), _evaluate(a, inputs, scalars, done), _evaluate(b, inputs, scalars, done)
            )
            made = chosen if e.dtype in INTEGERS else _one_nan(chosen, e.dtype, np.isnan(numbers(chosen, e.dtype)))
        case Cast(a, dtype):
            made = cast(_evaluate(a, inputs, scalars, done), a.dtype, dtype)
        case _:
            assert_never(e)
    done[id(e)] = made
    return made


def constant(value: float, dtype: str) -> Array:
    """One element, as an array: numpy warns of scalars that wrap around."""
    if dtype in INTEGERS:
        row = DTYPES[dtype]
        return np.array([int(value) % (1 << row.bits)], ELEMENT[row.nbytes])
    return from_float(np.array([value], np.float64), dtype)


# ---- operations of one type
def negate(bits: Array, dtype: str) -> Array:
    if dtype in INTEGERS:
        return np.add(~bits, constant(1, dtype))
    sign = bits.dtype.type(1 << (DTYPES[dtype].bits - 1))
    return _one_nan(bits ^ sign, dtype, np.isnan(numbers(bits, dtype)))


def combine(op: ElemOp, a: Array, b: Array, dtype: str) -> Array:
    if op in (ElemOp.MIN, ElemOp.MAX):
        return _extreme(op, a, b, dtype)
    if op in (ElemOp.SHL, ElemOp.SHR):
        return _shifted(op, a, b, dtype)
    if dtype in INTEGERS or op in BITWISE:  # two's complement: the low bits do not depend on the sign
        return _NUMPY[op](a, b)
    return from_float(_NUMPY[op](_working(a, dtype), _working(b, dtype)), dtype)


def _extreme(op: ElemOp, a: Array, b: Array, dtype: str) -> Array:
    """The smaller or the larger; NaN where one of the two is, and -0 below +0."""
    left, right = _ordered(a, dtype), _ordered(b, dtype)
    first = left < right if op is ElemOp.MIN else left > right
    if dtype in INTEGERS:
        return np.where(first, a, b)
    negative = a >> (DTYPES[dtype].bits - 1) != 0
    first |= (left == right) & (negative == (op is ElemOp.MIN))
    return _one_nan(np.where(first, a, b), dtype, np.isnan(left) | np.isnan(right))


def _shifted(op: ElemOp, a: Array, b: Array, dtype: str) -> Array:
    bits = DTYPES[dtype].bits
    inside = np.minimum(b, b.dtype.type(bits - 1))
    if op is ElemOp.SHR and dtype in SIGNED:
        kept: Array = np.right_shift(_ordered(a, dtype), inside.astype(_ordered(a, dtype).dtype)).view(a.dtype)
        return kept
    made: Array = np.left_shift(a, inside) if op is ElemOp.SHL else np.right_shift(a, inside)
    return np.where(b < bits, made, made.dtype.type(0))


def unary(fn: Fn, bits: Array, dtype: str) -> Array:
    """A function of one value; those that have an error are rounded from f64, so theirs is a half of the last place."""
    if fn is Fn.NOT:
        return ~bits
    if fn is Fn.ABS and dtype in INTEGERS:
        return np.where(_ordered(bits, dtype) < 0, negate(bits, dtype), bits)
    if fn is Fn.ABS:
        clear = bits & bits.dtype.type((1 << (DTYPES[dtype].bits - 1)) - 1)
        return _one_nan(clear, dtype, np.isnan(numbers(bits, dtype)))
    if fn is Fn.SQRT:
        return from_float(np.sqrt(_working(bits, dtype)), dtype)
    made = _FUNCTIONS[fn](numbers(bits, dtype).astype(np.float64))
    return from_float(made.astype(np.float32), dtype)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _gelu(x: Array) -> Array:
    tail = np.array([math.erfc(v) for v in (-x / math.sqrt(2.0)).reshape(-1).tolist()], np.float64).reshape(x.shape)
    made = 0.5 * x * tail
    return np.where(x == -np.inf, -0.0, made)


_FUNCTIONS: Final[dict[Fn, Callable[[Array], Array]]] = {
    Fn.RSQRT: lambda x: 1.0 / np.sqrt(x),
    Fn.EXP: np.exp,
    Fn.LOG: np.log,
    Fn.TANH: np.tanh,
    Fn.SIGMOID: _sigmoid,
    Fn.GELU: _gelu,
}


def _ordered(bits: Array, dtype: str) -> Array:
    """Bits as what their order is taken of."""
    if dtype in INTEGERS:
        return bits.view(f"i{bits.dtype.itemsize}") if dtype in SIGNED else bits
    return bits if dtype == MASK else numbers(bits, dtype)


def _working(bits: Array, dtype: str) -> Array:
    """The values in the type they are computed in: f64 for f64, else f32."""
    values = numbers(bits, dtype)
    return values if dtype == "f64" else values.astype(np.float32)


# ---- bits and values
def numbers(bits: Array, dtype: str) -> Array:
    """Bits of a float type as numpy or ml_dtypes numbers."""
    kind = _NARROW[dtype] if dtype in _NARROW else np.dtype(DTYPES[dtype].numpy)
    return np.ascontiguousarray(_flushed(bits, dtype)).view(kind)


def _flushed(bits: Array, dtype: str) -> Array:
    return np.where(bits & 0x7F800000, bits, bits & 0x80000000).astype(bits.dtype) if dtype in FTZ_TYPES else bits


def _one_nan(bits: Array, dtype: str, nan: npt.NDArray[np.bool_]) -> Array:
    return np.where(nan, bits.dtype.type(NAN[dtype]), bits)


def from_float(values: Array, dtype: str) -> Array:
    """f32 or f64 values rounded once to a float type, as bits."""
    nan = np.isnan(values)
    if dtype == "f64":
        return _one_nan(values.astype(np.float64).view(np.uint64), dtype, nan)
    if dtype == "f16":
        return _one_nan(values.astype(np.float16).view(np.uint16), dtype, nan)
    if dtype in ("f32", "f32_ftz"):
        return _one_nan(_flushed(values.astype(np.float32).view(np.uint32), dtype), dtype, nan)
    odd = _to_odd(values)
    if dtype in TF32_TYPES:
        bits = odd.view(np.uint32)
        round_tf32(bits)  # its NaN is the type's one
        return _flushed(bits, dtype)
    if dtype in FP8_MAX:
        top = FP8_MAX[dtype]
        small = np.where(nan, np.float32(0), np.clip(odd, -top, top)).astype(np.float32)
        return _one_nan(small.astype(_NARROW[dtype]).view(np.uint8), dtype, nan)
    return _one_nan(odd.astype(_NARROW[dtype]).view(np.uint16), dtype, nan)


def _to_odd(values: Array) -> Array:
    """f32 rounded to odd: cut off toward zero, and the last bit set if anything was."""
    near = np.ascontiguousarray(values.astype(np.float32))
    if values.dtype == np.float32:
        return near.copy()
    bits = near.view(np.uint32)
    wide = near.astype(np.float64)
    inexact = (wide != values) & ~np.isnan(values)
    cut = bits - (inexact & (np.abs(wide) > np.abs(values))).astype(np.uint32)
    odd: Array = (cut | inexact.astype(np.uint32)).view(np.float32)
    return odd


# ---- casts
def cast(bits: Array, source: str, target: str) -> Array:
    if source == target:
        return bits
    if source in INTEGERS:
        signed = bits.view(f"i{bits.dtype.itemsize}") if source.startswith("i") else bits
        if target in INTEGERS:
            return signed.astype(ELEMENT[DTYPES[target].nbytes])
        return _from_integer(signed, target)
    values = numbers(bits, source)
    if target in INTEGERS:
        return _to_integer(values.astype(np.float64), target)
    return from_float(values if source == "f64" else values.astype(np.float32), target)


def _from_integer(values: Array, target: str) -> Array:
    if target == "f64":
        return values.astype(np.float64).view(np.uint64)
    if values.dtype.itemsize < 8:  # exact in f64
        return from_float(values.astype(np.float64), target)
    # Rounded to odd at bit 11, a 64-bit integer is exact in f64 and still has 42 digits or more.
    negative = values < 0
    size = np.where(negative, ~values.astype(np.uint64) + np.uint64(1), values.astype(np.uint64))
    large = size >= np.uint64(1 << 53)
    cut = np.where(size & np.uint64(0x7FF), (size & ~np.uint64(0x7FF)) | np.uint64(0x800), size)
    wide = np.where(large, cut, size).astype(np.float64)
    return from_float(np.where(negative, -wide, wide), target)


def _to_integer(values: npt.NDArray[np.float64], target: str) -> Array:
    low, high = integer_range(target)
    kind = ELEMENT[DTYPES[target].nbytes]
    whole = np.trunc(values)
    above, below = whole >= float(high), whole <= float(low)  # the largest 64-bit ones round up to what is no longer in range
    inside = np.where(above | below | np.isnan(whole), 0.0, whole)
    exact = inside.astype(np.int64 if target.startswith("i") else np.uint64).astype(kind)
    top, bottom = constant(high, target), constant(low, target)
    return np.where(above, top, np.where(below, bottom, exact))
