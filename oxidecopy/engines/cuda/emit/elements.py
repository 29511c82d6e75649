"""Element expressions as C++ that gives the bits `isa.elem` asks for.

A value is held in the type it is calculated in: integers as unsigned ones of their size, f16 and bf16 as the float they are, f32 as float,
f64 as double; fp8, tf32 and the `_ftz` types, which are only cast, as their bits. The intrinsics (`__fmul_rn`) keep the compiler from
contracting, conversions to narrow types go through a float that is rounded to odd where a direct one would round twice.
"""

from __future__ import annotations

import struct
from typing import Final, assert_never, final

from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import (
    BITWISE,
    INTEGERS,
    MASK,
    SHIFTS,
    SIGNED,
    Binary,
    Cast,
    Compare,
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

_HALVES: Final = frozenset({"f16", "bf16"})
_AS_BITS: Final = frozenset({"e4m3", "e5m2", "tf32", "tf32_ftz", "f32_ftz"})
_LIBRARY: Final = {Fn.ABS: "fabsf", Fn.SQRT: "__fsqrt_rn", Fn.RSQRT: "rsqrtf", Fn.EXP: "expf", Fn.LOG: "logf", Fn.TANH: "tanhf"}
_OWN: Final = {Fn.SIGMOID: "sigmoid", Fn.GELU: "gelu"}
_INTRINSICS: Final = {ElemOp.ADD: "add", ElemOp.SUB: "sub", ElemOp.MUL: "mul", ElemOp.DIV: "div"}


def storage(dtype: str) -> str:
    """The C++ type that stores the bits of an element."""
    return f"u{DTYPES[dtype].nbytes * 8}"


@final
class Elements:
    """Writes element expressions; `used` collects the functions they call."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def text(self) -> str:
        """The functions that were called, with those that they call, in a namespace of their own."""
        needed: set[str] = set()
        open_names = list(self.used)
        while open_names:
            name = open_names.pop()
            if name not in needed:
                needed.add(name)
                open_names += [n for n in FUNCTIONS if f"{n}(" in FUNCTIONS[name] and n != name]
        bodies = "\n\n".join(f"__device__ __forceinline__ {text}" for name, text in FUNCTIONS.items() if name in needed)
        head = (
            "// Numbers: each operation and cast rounds once, and any NaN that is made is its type's one. Not for -ftz=true or fast math."
        )
        return f"{head}\nnamespace num {{\n\n{bodies}\n\n}}  // namespace num\n" if bodies else ""

    def bits(self, e: Elem, inputs: list[str], parameters: dict[str, str]) -> str:
        """The bits of `e`: `inputs` are the texts of the inputs' bits, `parameters` those of scalars in their storage type."""
        e = _core(e)
        match e:
            case Input(index, _):
                return inputs[index]
            case Number(value, dtype):
                return literal_bits(bits_of(value, dtype, cast=True), dtype)
            case Parameter(name, _):
                return parameters[name]
            case _:
                pass
        if e.dtype in _HALVES:
            return self._call(f"{e.dtype}_bits", self._unrounded(e, inputs, parameters))
        made = self.value(e, inputs, parameters)
        return self._call(f"{e.dtype}_bits", made) if e.dtype in ("f32", "f64") else made

    def value(self, e: Elem, inputs: list[str], parameters: dict[str, str]) -> str:
        """`e` in its working type."""
        e = _core(e)
        match e:
            case Input(index, dtype):
                return self._read(inputs[index], dtype)
            case Parameter(name, dtype):
                return self._read(parameters[name], dtype)
            case Number(value, dtype):
                return self._number(value, dtype)
            case _ if e.dtype in _HALVES and not isinstance(e, Neg):
                return self._call(f"to_{e.dtype}", self._unrounded(e, inputs, parameters))
            case _:
                return self._unrounded(e, inputs, parameters)

    def _unrounded(self, e: Elem, inputs: list[str], parameters: dict[str, str]) -> str:
        """`e` in its working type, for halves before the rounding to their own digits."""
        match e:
            case Neg(a):
                x = self.value(a, inputs, parameters)
                return f"({storage(e.dtype)})(0 - {_promoted(x, e.dtype)})" if e.dtype in INTEGERS else f"(-{x})"
            case Binary(op, a, b):
                return self._binary(op, e.dtype, self.value(a, inputs, parameters), self.value(b, inputs, parameters))
            case Unary(fn, a):
                return self._unary(fn, e.dtype, self.value(a, inputs, parameters))
            case Compare(op, a, b):
                x, y = self.value(a, inputs, parameters), self.value(b, inputs, parameters)
                return f"({_ordered(x, a.dtype)} {op.value} {_ordered(y, a.dtype)})"
            case Select(cond, a, b):
                x, y = self.value(a, inputs, parameters), self.value(b, inputs, parameters)
                return f"({self.value(cond, inputs, parameters)} ? {x} : {y})"
            case Cast(a, dtype):
                return self.cast(self.value(a, inputs, parameters), a.dtype, dtype)
            case Input() | Number() | Parameter():
                return self.value(e, inputs, parameters)
            case _:
                assert_never(e)

    def _unary(self, fn: Fn, dtype: str, x: str) -> str:
        if fn is Fn.NOT:
            return f"(!{x})" if dtype == MASK else f"({storage(dtype)})(~{_promoted(x, dtype)})"
        if fn is Fn.ABS and dtype in INTEGERS:
            return f"({_ordered(x, dtype)} < 0 ? ({storage(dtype)})(0 - {x}) : {x})"
        if dtype == "f64":
            return f"fabs({x})" if fn is Fn.ABS else f"__dsqrt_rn({x})"
        return self._call(_OWN[fn], x) if fn in _OWN else f"{_LIBRARY[fn]}({x})"

    def _binary(self, op: ElemOp, dtype: str, x: str, y: str) -> str:
        if dtype == MASK:
            return f"({x} {op.value} {y})"
        if op in (ElemOp.MIN, ElemOp.MAX):
            if dtype in INTEGERS:
                sign = "<" if op is ElemOp.MIN else ">"
                return f"({_ordered(x, dtype)} {sign} {_ordered(y, dtype)} ? {x} : {y})"
            return self._call(("minimum" if op is ElemOp.MIN else "maximum") + ("_f64" if dtype == "f64" else ""), x, y)
        if op in SHIFTS:
            kind = "shl" if op is ElemOp.SHL else "shr"
            return self._call(f"{kind}_{'i' if op is ElemOp.SHR and dtype in SIGNED else 'u'}{DTYPES[dtype].bits}", x, y)
        if dtype in INTEGERS:
            return f"({storage(dtype)})({_promoted(x, dtype)} {op.value} {_promoted(y, dtype)})"
        if op in BITWISE:
            raise KeyError(op)  # of floats: a program with it is refused
        return f"__{'d' if dtype == 'f64' else 'f'}{_INTRINSICS[op]}_rn({x}, {y})"

    def _read(self, bits: str, dtype: str) -> str:
        """Stored bits in the working type."""
        if dtype in INTEGERS or dtype in _AS_BITS:
            return bits
        return self._call(f"from_{dtype}", bits)

    def _number(self, value: float, dtype: str) -> str:
        bits = bits_of(value, dtype, cast=True)
        if dtype in ("f32", "f16", "bf16"):
            wide = {"f32": lambda: bits, "bf16": lambda: bits << 16, "f16": lambda: _f32_of_f16(bits)}[dtype]()
            exact: float = struct.unpack("<f", struct.pack("<I", wide))[0]
            return _float_text(exact, "f") or f"__uint_as_float({wide:#010x}u)"
        if dtype == "f64":
            whole: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
            return _float_text(whole, "") or f"__longlong_as_double({bits:#018x}ull)"
        return literal_bits(bits, dtype)

    # ---- casts
    def cast(self, x: str, source: str, target: str) -> str:  # noqa: C901 - one case per sort of type
        """A value of `source` in the working type of `target`, for halves not rounded yet."""
        if source == target:
            return x
        if source in INTEGERS:
            return self._from_integer(x, source, target)
        if source in _AS_BITS:
            x = self._call({"tf32": "from_f32", "tf32_ftz": "from_ftz", "f32_ftz": "from_ftz"}.get(source, f"from_{source}"), x)
        double = source == "f64"
        if target in INTEGERS:
            return self._to_integer(x, target, double=double)
        if target == "f64":
            return x if double else f"(double)({x})"
        if target == "f32":
            return f"__double2float_rn({x})" if double else x
        if double and target != "f32_ftz":
            x = self._call("odd_f64", x)
        elif double:
            x = f"__double2float_rn({x})"
        return x if target in _HALVES else self._call(f"to_{target}", x)

    def _from_integer(self, x: str, source: str, target: str) -> str:
        signed = source.startswith("i")
        size = DTYPES[source].bits
        if target in INTEGERS:
            return f"({storage(target)})(i{size})({x})" if signed else f"({storage(target)})({x})"
        number = f"(i{size})({x})" if signed else x
        if target == "f64":
            return f"__{'ll' if signed else 'ull'}2double_rn({number})" if size == 64 else f"(double)({number})"
        if size < 32:
            number = f"(float)({number})"  # exact
        elif target in ("f32", "f32_ftz"):  # an integer is no subnormal
            number = (
                f"__{'ll' if signed else 'ull'}2float_rn({number})" if size == 64 else f"__{'int' if signed else 'uint'}2float_rn({number})"
            )
        else:
            number = self._call("odd_i64" if signed else "odd_u64", number)
        return number if target in _HALVES or target == "f32" else self._call(f"to_{target}", number)

    def _to_integer(self, x: str, target: str, *, double: bool) -> str:
        kind = "double" if double else "float"
        return self._call(f"{target}_of_{kind}", x)

    def _call(self, name: str, *args: str) -> str:
        self.used.add(name)
        return f"num::{name}({', '.join(args)})"

    def use(self, name: str) -> str:
        """Asks for a function; gives its name."""
        self.used.add(name)
        return f"num::{name}"


def _core(e: Elem) -> Elem:
    """Without casts that change nothing."""
    while isinstance(e, Cast) and e.a.dtype == e.dtype:
        e = e.a
    return e


def _ordered(x: str, dtype: str) -> str:
    """A value as what it is compared as."""
    return f"(i{DTYPES[dtype].bits}){x}" if dtype in SIGNED else x


def _promoted(x: str, dtype: str) -> str:
    """Wide enough that nothing signed overflows."""
    return f"(u32){x}" if DTYPES[dtype].bits < 32 else x


def _float_text(value: float, suffix: str) -> str:
    """A literal that the compiler rounds back to `value`; empty for infinities and NaN."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return ""
    text = repr(value)
    text = text if any(c in text for c in ".e") else f"{text}.0"
    return f"({text}{suffix})" if text.startswith("-") else f"{text}{suffix}"


def _f32_of_f16(bits: int) -> int:
    value: float = struct.unpack("<e", struct.pack("<H", bits))[0]
    if value != value:  # noqa: PLR0124 - NaN
        return 0x7FFFFFFF
    return int.from_bytes(struct.pack("<f", value), "little")


def literal_bits(bits: int, dtype: str) -> str:
    """Bits as a C++ constant of the storage type."""
    size = DTYPES[dtype].nbytes
    suffix = {4: "u", 8: "ull"}.get(size, "")
    return f"({storage(dtype)}){bits:#0{2 + 2 * size}x}{suffix}"


def _integer_functions() -> dict[str, str]:
    """Toward zero, held to the range, NaN is 0: the conversions clamp by themselves to 32 or 64 bits, and 64-bit ones give 2^63 for NaN."""
    made: dict[str, str] = {}
    for dtype in sorted(INTEGERS):
        bits, signed = DTYPES[dtype].bits, dtype.startswith("i")
        word = {(32, True): "int", (32, False): "uint", (64, True): "ll", (64, False): "ull"}[max(bits, 32), signed]
        for kind in ("float", "double"):
            call = f"__{kind}2{word}_rz(x)"
            call = f"umin({call}, {(1 << bits) - 1}u)" if bits < 32 else call
            kept = storage(dtype)
            made[f"{dtype}_of_{kind}"] = f"{kept} {dtype}_of_{kind}({kind} x) {{\n    return x != x ? ({kept})0 : ({kept}){call};\n}}"
    return made


def _shifts() -> dict[str, str]:
    """Amounts are unsigned; from the type's width on nothing is left, of a negative number its sign."""
    made: dict[str, str] = {}
    for bits in (8, 16, 32, 64):
        kept = f"u{bits}"
        wide = "u64" if bits == 64 else "u32"
        made[f"shl_u{bits}"] = (
            f"{kept} shl_u{bits}({kept} x, {kept} n) {{\n    return n < {bits} ? ({kept})(({wide})x << n) : ({kept})0;\n}}"
        )
        made[f"shr_u{bits}"] = f"{kept} shr_u{bits}({kept} x, {kept} n) {{\n    return n < {bits} ? ({kept})(x >> n) : ({kept})0;\n}}"
        if bits >= 32:
            made[f"shr_i{bits}"] = (
                f"{kept} shr_i{bits}({kept} x, {kept} n) {{\n    return ({kept})((i{bits})x >> (n < {bits} ? n : {bits - 1}));\n}}"
            )
    return made


FUNCTIONS: Final[dict[str, str]] = {
    "from_f32": "float from_f32(u32 bits) {\n    return __uint_as_float(bits);\n}",
    "from_f64": "double from_f64(u64 bits) {\n    return __longlong_as_double((i64)bits);\n}",
    "from_f16": """float from_f16(u16 bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}""",
    "from_bf16": "float from_bf16(u16 bits) {\n    return __uint_as_float((u32)bits << 16);\n}",
    "from_ftz": """float from_ftz(u32 bits) {  // a subnormal is a zero of its sign
    return __uint_as_float(bits & 0x7f800000u ? bits : bits & 0x80000000u);
}""",
    "from_e4m3": """float from_e4m3(u8 bits) {
    u32 pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((u16)bits));
    return from_f16((u16)pair);
}""",
    "from_e5m2": "float from_e5m2(u8 bits) {  // the upper half of an f16\n    return from_f16((u16)((u32)bits << 8));\n}",
    "f32_bits": "u32 f32_bits(float x) {\n    return x != x ? 0x7fffffffu : __float_as_uint(x);\n}",
    "f64_bits": "u64 f64_bits(double x) {\n    return x != x ? 0x7fffffffffffffffull : (u64)__double_as_longlong(x);\n}",
    "f16_bits": """u16 f16_bits(float x) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return x != x ? (u16)0x7fff : bits;
}""",
    "bf16_bits": """u16 bf16_bits(float x) {
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return x != x ? (u16)0x7fff : bits;
}""",
    "to_f16": "float to_f16(float x) {\n    return from_f16(f16_bits(x));\n}",
    "to_bf16": "float to_bf16(float x) {\n    return from_bf16(bf16_bits(x));\n}",
    "to_f32_ftz": """u32 to_f32_ftz(float x) {
    const u32 bits = __float_as_uint(x);
    return x != x ? 0x7fffffffu : bits & 0x7f800000u ? bits : bits & 0x80000000u;
}""",
    "to_tf32": """u32 to_tf32(float x) {  // to nearest even at bit 13
    const u32 bits = __float_as_uint(x);
    const u32 rounded = (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
    return x != x ? 0x7fffe000u : (bits & 0x7f800000u) == 0x7f800000u ? bits : rounded;
}""",
    "to_tf32_ftz": """u32 to_tf32_ftz(float x) {
    const u32 bits = to_tf32(x);
    return bits & 0x7f800000u ? bits : bits & 0x80000000u;
}""",
    "to_e4m3": """u8 to_e4m3(float x) {
    u16 pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return x != x ? (u8)0x7f : (u8)pair;
}""",
    "to_e5m2": """u8 to_e5m2(float x) {
    u16 pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return x != x ? (u8)0x7f : (u8)pair;
}""",
    "odd_f64": """float odd_f64(double x) {  // cut off toward zero, the last bit set if anything was: a second rounding is then the first
    const float cut = __double2float_rz(x);
    return (double)cut == x ? cut : __uint_as_float(__float_as_uint(cut) | 1u);
}""",
    "odd_u64": """float odd_u64(u64 x) {  // as odd_f64
    const float cut = __ull2float_rz(x);
    return __uint_as_float(__float_as_uint(cut) | ((u64)cut == x ? 0u : 1u));
}""",
    "odd_i64": """float odd_i64(i64 x) {
    return x < 0 ? -odd_u64(0ull - (u64)x) : odd_u64((u64)x);
}""",
    "plain_e4m3": """u8 plain_e4m3(float x) {  // as a fill rounds: what is out of range is NaN
    return x > 464.0f ? (u8)0x7f : to_e4m3(x);
}""",
    "plain_e5m2": """u8 plain_e5m2(float x) {  // as a fill rounds: what is out of range is infinity
    return x >= 61440.0f ? (u8)0x7c : to_e5m2(x);
}""",
    "minimum": """float minimum(float x, float y) {  // NaN where one of the two is, -0 below +0
    float least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(x), "f"(y));
    return least;
}""",
    "maximum": """float maximum(float x, float y) {  // NaN where one of the two is, -0 below +0
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(x), "f"(y));
    return most;
}""",
    "minimum_f64": """double minimum_f64(double x, double y) {  // NaN where one of the two is, -0 below +0
    if (x != x || y != y) return x + y;
    if (x == y) return __longlong_as_double(__double_as_longlong(x) | __double_as_longlong(y));
    return x < y ? x : y;
}""",
    "maximum_f64": """double maximum_f64(double x, double y) {  // NaN where one of the two is, -0 below +0
    if (x != x || y != y) return x + y;
    if (x == y) return __longlong_as_double(__double_as_longlong(x) & __double_as_longlong(y));
    return x > y ? x : y;
}""",
    "sigmoid": """float sigmoid(float x) {
    const float e = expf(-fabsf(x));
    return __fdiv_rn(x < 0.0f ? e : 1.0f, __fadd_rn(1.0f, e));
}""",
    "gelu": """float gelu(float x) {
    const float phi = __fmul_rn(0.5f, __fadd_rn(1.0f, erff(__fmul_rn(x, 0.70710678118654752f))));
    return x < -13.5f ? -0.0f : __fmul_rn(x, phi);
}""",
    **_shifts(),
    **_integer_functions(),
}
