"""Element expressions: what `MapTiles` computes for each element of its tiles, and exactly how.

Every node has an element type, and every operation rounds its result to that type before the next one sees it: nothing is fused
(`v * a + b` rounds twice) and nothing reordered. The rules, which every engine follows bit for bit:

- **f32, f64**: IEEE 754, to nearest even, subnormals kept, overflow to infinity. Negation flips the sign, of zeros too.
- **f16, bf16**: computed in f32, then rounded to nearest even. As f32 has more than twice their digits and two, that is the exact result
  rounded once.
- **integers**: modulo 2 ** bits. They have no division.
- **NaN**: a float operation or cast whose result is NaN gives the type's one NaN, all ones without the sign (f32 0x7FFFFFFF, e4m3 0x7F;
  tf32 in its upper 19 bits, 0x7FFFE000). An input that is only copied keeps its bits.
- **casts** to the type that a value has change no bit. All others round the exact value once:
  - integer to integer: modulo 2 ** bits, of the value (so that negative ones are extended by their sign);
  - float to integer: toward zero, held to the type's range; NaN is 0;
  - integer or float to float: to nearest even, overflow to infinity;
  - to e4m3 and e5m2: to nearest even, but what is beyond the largest number (448, 57344), infinity included, becomes the largest, with its
    sign (PTX cvt.rn.satfinite; e4m3 is the type without infinities, float8_e4m3fn);
  - to tf32: to nearest even with 10 digits after the point, stored as f32. From tf32: the f32 that is there.
  - The `_ftz` types: a subnormal, read or made, is a zero of its sign.
- **constants** of a float type, and scalar parameters of one, are f64 values rounded to it as a cast would; those of an integer type are in
  its range.

fp8, tf32 and the `_ftz` types are only copied and cast: cast to f32 to calculate.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from oxidecopy.isa.dtypes import DTYPES


class ElemOp(enum.Enum):
    """Operations of two values of one type."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"  # floats only


@final
@dataclass(frozen=True, slots=True)
class Input:
    """The element of input tile `index`."""

    index: int
    dtype: str


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A constant: a float for float types (fp8 among them), else an int."""

    value: float | int
    dtype: str


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """A scalar parameter of the program, by name."""

    name: str
    dtype: str


@final
@dataclass(frozen=True, slots=True)
class Neg:
    """-a."""

    a: Elem

    @property
    def dtype(self) -> str:
        """That of its operand."""
        return _dtype(self)


@final
@dataclass(frozen=True, slots=True)
class Binary:
    """a op b, both of one type."""

    op: ElemOp
    a: Elem
    b: Elem

    @property
    def dtype(self) -> str:
        """That of its operands."""
        return _dtype(self)


@final
@dataclass(frozen=True, slots=True)
class Cast:
    """`a` as another type."""

    a: Elem
    dtype: str


Elem: TypeAlias = Input | Number | Parameter | Neg | Binary | Cast


def _dtype(e: Elem) -> str:
    """Follows first operands; no recursion, as an expression may be too deep before anything has checked it."""
    while isinstance(e, Neg | Binary):
        e = e.a
    return e.dtype


def elements(e: Elem) -> Iterator[Elem]:
    """Every node below `e`, itself first, shared ones each time."""
    stack = [e]
    while stack:
        node = stack.pop()
        yield node
        stack += operands_of(node)


def operands_of(e: Elem) -> tuple[Elem, ...]:
    """The nodes right below, last one first."""
    match e:
        case Neg(a) | Cast(a, _):
            return (a,)
        case Binary(_, a, b):
            return (b, a)
        case Input() | Number() | Parameter():
            return ()


# ---- what a type can do
FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})
INTEGERS: Final = frozenset({"u8", "u16", "u32", "u64", "i32", "i64"})
FP8_MAX: Final = {"e4m3": 448.0, "e5m2": 57344.0}
ELEMENT_TYPES: Final = frozenset(name for name, row in DTYPES.items() if row.bits % 8 == 0)


def integer_range(dtype: str) -> tuple[int, int]:
    """The lowest and highest value of an integer type."""
    bits = DTYPES[dtype].bits
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def problem(node: Elem) -> str:
    """What makes `node` itself mean nothing, whatever is below it; "" when it is well formed."""
    if node.dtype not in ELEMENT_TYPES:
        return f"{node.dtype!r} is no type of elements"
    match node:
        case Number(value, dtype) if dtype in INTEGERS:
            low, high = integer_range(dtype)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                return f"{value!r} is no {dtype}"
        case Number(value, dtype) if not isinstance(value, float):
            return f"{value!r} is no {dtype}"
        case Neg() if node.dtype not in FLOATS | INTEGERS:
            return f"{node.dtype} has no arithmetic"
        case Binary(op, a, b):
            return pair_problem(op, a.dtype, b.dtype)
        case _:
            pass
    return ""


def pair_problem(op: ElemOp, a: str, b: str) -> str:
    """Why there is no such operation between these types; "" when there is."""
    if a != b:
        return f"{a} and {b} are combined by `{op.value}`"
    if a not in FLOATS | INTEGERS:
        return f"{a} has no arithmetic"
    if op is ElemOp.DIV and a in INTEGERS:
        return f"{a} has no division"
    return ""
