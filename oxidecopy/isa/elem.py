"""Element expressions: what `MapTiles` computes for each element of its tiles, and exactly how.

Every node has an element type, and every operation rounds its result to that type before the next one sees it: nothing is fused
(`v * a + b` rounds twice) and nothing reordered. The rules, which every engine follows bit for bit:

- **f32, f64**: IEEE 754, to nearest even, subnormals kept, overflow to infinity. Negation flips the sign, of zeros too.
- **f16, bf16**: computed in f32, then rounded to nearest even. As f32 has more than twice their digits and two, that is the exact result
  rounded once.
- **integers**: modulo 2 ** bits. They have no division.
- **NaN**: a float operation or cast whose result is NaN gives the type's one NaN, all ones without the sign (f32 0x7FFFFFFF, e4m3 0x7F;
  tf32 in its upper 19 bits, 0x7FFFE000). An input that is only copied keeps its bits.
- **minimum, maximum**: NaN where one of the two is NaN; -0 is less than +0.
- **comparisons** give a truth value (type "mask"), false where an operand is NaN, but for `!=`, which is then true. `select` takes one of
  two values by it; a NaN that it takes becomes the type's one NaN.
- **bits**: `<<` and `>>` take the amount as an unsigned number; from the type's width on, no bit of the value is left (of a negative one
  its sign, all ones). `>>` of signed types keeps the sign.
- **sqrt** is IEEE. The other functions are within the error of `ULP` of the exact value, in units of the last place of f32, then rounded to
  the type; `gelu` is x * Phi(x) (by the error function), its error in units of the last place of x.
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
from math import copysign, isnan, prod
from typing import Final, TypeAlias, final

from typing_extensions import override

from oxidecopy.isa.dtypes import DTYPES


class ElemOp(enum.Enum):
    """Operations of two values of one type."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"  # floats only
    MIN = "min"
    MAX = "max"
    AND = "&"  # these five: integers only; the first three truth values as well
    OR = "|"
    XOR = "^"
    SHL = "<<"
    SHR = ">>"


class CompareOp(enum.Enum):
    """Comparisons of two values of one type."""

    LT = "<"
    LE = "<="
    EQ = "=="
    NE = "!="
    GT = ">"
    GE = ">="


class Fn(enum.Enum):
    """Functions of one value."""

    ABS = "abs"  # floats and signed integers
    NOT = "invert"  # integers and truth values
    SQRT = "sqrt"  # floats
    RSQRT = "rsqrt"  # these and all below: f32, f16, bf16
    EXP = "exp"
    LOG = "log"
    TANH = "tanh"
    SIGMOID = "sigmoid"
    GELU = "gelu"


class Along(enum.Enum):
    """Which element of an input belongs to an element of the output."""

    ALL = "all"  # that at the same place
    ROW = "row"  # of a vector, that with the number of the row: rows counted over all outer dimensions
    COLUMN = "column"  # of a vector, that with the number of the column: the index along the innermost dimension


@final
@dataclass(frozen=True, slots=True)
class Input:
    """The element of input tile `index`, which is a vector unless it is `along` all."""

    index: int
    dtype: str
    along: Along = Along.ALL


def told_apart(value: object) -> tuple[object, float]:
    """What two values are compared by: 0.0 and -0.0 are not the same constant, and NaN is the same as itself."""
    if not isinstance(value, float):
        return value, 1.0
    return "nan" if isnan(value) else value, copysign(1.0, value)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A constant: a float for float types (fp8 among them), else an int."""

    value: float | int
    dtype: str

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.dtype == other.dtype and told_apart(self.value) == told_apart(other.value)

    @override
    def __hash__(self) -> int:
        return hash((told_apart(self.value), self.dtype))


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
class Unary:
    """fn(a)."""

    fn: Fn
    a: Elem

    @property
    def dtype(self) -> str:
        """That of its operand."""
        return _dtype(self)


@final
@dataclass(frozen=True, slots=True)
class Compare:
    """a op b, both of one type: a truth value."""

    op: CompareOp
    a: Elem
    b: Elem

    @property
    def dtype(self) -> str:
        """Truth values are of no type that a tile can have."""
        return MASK


@final
@dataclass(frozen=True, slots=True)
class Select:
    """`a` where `cond` holds, else `b`, both of one type."""

    cond: Elem
    a: Elem
    b: Elem

    @property
    def dtype(self) -> str:
        """That of its values."""
        return _dtype(self)


@final
@dataclass(frozen=True, slots=True)
class Cast:
    """`a` as another type."""

    a: Elem
    dtype: str


Elem: TypeAlias = Input | Number | Parameter | Neg | Binary | Unary | Compare | Select | Cast
MASK: Final = "mask"
# Largest errors, in units of the last place of f32, but near the smallest numbers (results below 2**-126 are off by as much as that unit).
ULP: Final = {Fn.RSQRT: 2, Fn.EXP: 2, Fn.LOG: 2, Fn.TANH: 2, Fn.SIGMOID: 4, Fn.GELU: 2}


def _dtype(e: Elem) -> str:
    """Follows first operands; no recursion, as an expression may be too deep before anything has checked it."""
    while isinstance(e, Neg | Binary | Unary | Select):
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
        case Neg(a) | Cast(a, _) | Unary(_, a):
            return (a,)
        case Binary(_, a, b) | Compare(_, a, b):
            return (b, a)
        case Select(cond, a, b):
            return (b, a, cond)
        case Input() | Number() | Parameter():
            return ()


def ways(e: Elem) -> dict[int, set[Along]]:
    """How each input is used."""
    found: dict[int, set[Along]] = {}
    seen: set[int] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) in seen:  # a recording may share subtrees
            continue
        seen.add(id(node))
        if isinstance(node, Input):
            found.setdefault(node.index, set()).add(node.along)
        stack += operands_of(node)
    return found


def input_shapes(shape: tuple[int, ...], along: Along) -> tuple[int, ...]:
    """The shape that an input needs for an output of `shape`; of a vector, which may have outer dimensions of extent 1, the inner one."""
    if along is Along.ALL:
        return shape
    return shape[-1:] if along is Along.COLUMN else (prod(shape[:-1]),)


def fits_shape(shape: tuple[int, ...], out: tuple[int, ...], along: Along) -> bool:
    """True when a tile of `shape` can be such an input of a map to a tile of shape `out`."""
    needed = input_shapes(out, along)
    return shape == needed if along is Along.ALL else shape[-1:] == needed and prod(shape[:-1]) == 1


# ---- what a type can do
FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})
INTEGERS: Final = frozenset({"u8", "u16", "u32", "u64", "i32", "i64"})
SIGNED: Final = frozenset({"i32", "i64"})
IN_F32: Final = frozenset({"f16", "bf16", "f32"})  # calculated in f32
BITWISE: Final = frozenset({ElemOp.AND, ElemOp.OR, ElemOp.XOR})
SHIFTS: Final = frozenset({ElemOp.SHL, ElemOp.SHR})
FP8_MAX: Final = {"e4m3": 448.0, "e5m2": 57344.0}
ELEMENT_TYPES: Final = frozenset(name for name, row in DTYPES.items() if row.bits % 8 == 0)


def integer_range(dtype: str) -> tuple[int, int]:
    """The lowest and highest value of an integer type."""
    bits = DTYPES[dtype].bits
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def problem(node: Elem) -> str:  # noqa: C901 - one case per node
    """What makes `node` itself mean nothing, whatever is below it; "" when it is well formed."""
    if node.dtype not in ELEMENT_TYPES and not _is_truth(node):
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
        case Unary(fn, a):
            return "" if a.dtype in domain(fn) else f"{a.dtype} has no {fn.value}"
        case Compare(op, a, b):
            return compare_problem(op, a.dtype, b.dtype)
        case Select(cond, a, b):
            if cond.dtype != MASK:
                return f"{cond.dtype} is no condition"
            return "" if a.dtype == b.dtype else f"{a.dtype} and {b.dtype} are what `select` takes one of"
        case Cast(a, dtype) if a.dtype == MASK:
            return "a condition has no number"
        case _:
            pass
    return ""


def _is_truth(node: Elem) -> bool:
    """True for a node that may be a truth value."""
    whole = isinstance(node, Compare | Unary) or (isinstance(node, Binary) and node.op in BITWISE)
    return whole and node.dtype == MASK


def domain(fn: Fn) -> frozenset[str]:
    """The types that have a function."""
    if fn is Fn.ABS:
        return FLOATS | SIGNED
    if fn is Fn.NOT:
        return INTEGERS | {MASK}
    return FLOATS if fn is Fn.SQRT else IN_F32


def pair_problem(op: ElemOp, a: str, b: str) -> str:
    """Why there is no such operation between these types; "" when there is."""
    if a != b:
        return f"{a} and {b} are combined by `{op.value}`"
    if a == MASK and op in BITWISE:
        return ""
    if a not in FLOATS | INTEGERS:
        return f"{a} has no arithmetic"
    if op is ElemOp.DIV and a in INTEGERS:
        return f"{a} has no division"
    if op in BITWISE | SHIFTS and a not in INTEGERS:
        return f"{a} has no `{op.value}`"
    return ""


def compare_problem(op: CompareOp, a: str, b: str) -> str:
    """Why these types have no such comparison; "" when they have."""
    if a != b:
        return f"{a} and {b} are compared by `{op.value}`"
    return "" if a in FLOATS | INTEGERS else f"{a} has no order: cast to f32"
