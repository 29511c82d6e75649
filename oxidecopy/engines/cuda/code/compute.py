"""Element expressions as code of `COMPUTE`: an accumulator machine with two vectors, A and B, and three that are put by.

What is done to an input by constants can be done in B, so that a sum of two such terms puts nothing by.

Numbers of all float types are f32 in its registers; after each operation of a narrower type its result is rounded to that (a store does it
by itself). What the machine has no form for (64-bit types, tf32, `_ftz`), or what needs more vectors, is left to `MAP_TILES`.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, final

from oxidecopy.engines.cuda.abi import COMPUTE_ARGUMENT, COMPUTE_AT_HAND, COMPUTE_VECTORS, ComputeFn, ElementForm
from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import (
    INTEGERS,
    MASK,
    SIGNED,
    Along,
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
    operands_of,
)

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.words import Words

INSTRUCTION: Final = struct.Struct("<4BI")
_FORMS: Final = {
    "f32": ElementForm.BITS32,
    "f16": ElementForm.F16,
    "bf16": ElementForm.BF16,
    "e4m3": ElementForm.E4M3,
    "e5m2": ElementForm.E5M2,
    "u32": ElementForm.BITS32,
    "i32": ElementForm.BITS32,
    "u16": ElementForm.BITS16,
    "u8": ElementForm.BITS8,
}
_RAW: Final = {1: ElementForm.BITS8, 2: ElementForm.BITS16, 4: ElementForm.BITS32}
_F: Final = {
    ElemOp.ADD: (ComputeFn.F_ADD, ComputeFn.F_ADD),
    ElemOp.SUB: (ComputeFn.F_SUB, ComputeFn.F_RSUB),
    ElemOp.MUL: (ComputeFn.F_MUL, ComputeFn.F_MUL),
    ElemOp.DIV: (ComputeFn.F_DIV, ComputeFn.F_RDIV),
    ElemOp.MIN: (ComputeFn.F_MIN, ComputeFn.F_MIN),
    ElemOp.MAX: (ComputeFn.F_MAX, ComputeFn.F_MAX),
}
_I: Final = {
    ElemOp.ADD: (ComputeFn.I_ADD, ComputeFn.I_ADD),
    ElemOp.SUB: (ComputeFn.I_SUB, ComputeFn.I_RSUB),
    ElemOp.MUL: (ComputeFn.I_MUL, ComputeFn.I_MUL),
    ElemOp.AND: (ComputeFn.I_AND, ComputeFn.I_AND),
    ElemOp.OR: (ComputeFn.I_OR, ComputeFn.I_OR),
    ElemOp.XOR: (ComputeFn.I_XOR, ComputeFn.I_XOR),
    ElemOp.SHL: (ComputeFn.I_SHL, ComputeFn.I_RSHL),
    ElemOp.SHR: (ComputeFn.U_SHR, ComputeFn.U_RSHR),
    ElemOp.MIN: (ComputeFn.U_MIN, ComputeFn.U_MIN),
    ElemOp.MAX: (ComputeFn.U_MAX, ComputeFn.U_MAX),
}
_S: Final = _I | {
    ElemOp.SHR: (ComputeFn.S_SHR, ComputeFn.S_RSHR),
    ElemOp.MIN: (ComputeFn.S_MIN, ComputeFn.S_MIN),
    ElemOp.MAX: (ComputeFn.S_MAX, ComputeFn.S_MAX),
}
_TURNED: Final = {
    CompareOp.LT: CompareOp.GT,
    CompareOp.LE: CompareOp.GE,
    CompareOp.GT: CompareOp.LT,
    CompareOp.GE: CompareOp.LE,
    CompareOp.EQ: CompareOp.EQ,
    CompareOp.NE: CompareOp.NE,
}
_FUNCTIONS: Final = {
    Fn.SQRT: ComputeFn.F_SQRT,
    Fn.RSQRT: ComputeFn.F_RSQRT,
    Fn.EXP: ComputeFn.F_EXP,
    Fn.LOG: ComputeFn.F_LOG,
    Fn.TANH: ComputeFn.F_TANH,
    Fn.SIGMOID: ComputeFn.F_SIGMOID,
    Fn.GELU: ComputeFn.F_GELU,
}
_EXACT: Final = frozenset({ElemOp.MIN, ElemOp.MAX})  # what they give is one of their operands
_ANY_NAN: Final = frozenset(fn for fn in ComputeFn if fn.name.startswith("F_"))  # give the same for any NaN
_STEP: Final = 16  # in which distances of even units are counted
EVEN_MAX: Final = _STEP << 16  # their bound; that of rows is 1 << 16
_MINUS_ZERO: Final = 0x80000000
_MINUS_ONE: Final = 0xBF800000
_LOADS: Final = {
    Along.ALL: (ComputeFn.LOAD_A, ComputeFn.LOAD_B),
    Along.ROW: (ComputeFn.ROW_A, ComputeFn.ROW_B),
    Along.COLUMN: (ComputeFn.COLUMN_A, ComputeFn.COLUMN_B),
}
_EVEN: Final = {
    ElementForm.BITS32: (ComputeFn.LOAD_A_32, ComputeFn.LOAD_B_32, ComputeFn.STORE_32),
    ElementForm.BF16: (ComputeFn.LOAD_A_BF16, ComputeFn.LOAD_B_BF16, ComputeFn.STORE_BF16),
    ElementForm.F16: (ComputeFn.LOAD_A_F16, ComputeFn.LOAD_B_F16, ComputeFn.STORE_F16),
}
_WITH_PRODUCT: Final = {
    (ComputeFn.LOAD_A_32, ComputeFn.F_MUL_C): ComputeFn.LOAD_A_32_MUL,
    (ComputeFn.LOAD_B_32, ComputeFn.F_MUL_CB): ComputeFn.LOAD_B_32_MUL,
}
_STORES: Final = frozenset({ComputeFn.STORE, *[fns[2] for fns in _EVEN.values()]})
CONSTANT: Final = 1  # form of an instruction with a constant
_WITH_CONSTANT: Final = {fn: ComputeFn[f"{fn.name}_C"] for fn in ComputeFn if f"{fn.name}_C" in ComputeFn.__members__}
_ON_B: Final = {fn: ComputeFn[f"{fn.name}_CB"] for fn in ComputeFn if f"{fn.name}_CB" in ComputeFn.__members__}


class UnfitError(Exception):
    """The machine cannot run the expression."""


class Place(NamedTuple):
    """How a tile lies: the swizzle's mask and the bytes from one row to the next; `even`: those from a lane's unit to its next one.

    0: these differ, or a lane has not all of its units each time (see `abi.UNITS`).
    """

    mask: int
    pitch: int
    even: int = 0


class Step(NamedTuple):
    """One instruction; `which` is its `index`."""

    fn: ComputeFn
    form: int = 0
    which: int = 0
    mask: int = 0
    word: int = 0


def compute_code(e: Elem, inputs: list[Place], out: Place, words: Words, *, arguments: bool = False) -> list[Step]:
    """The instructions of an expression; with `arguments` scalar parameters are constants of instructions (`abi.COMPUTE_ARGUMENT`).

    Raises:
        UnfitError: there are none.
    """
    e = _core(e)
    if isinstance(e, Input):  # a copy, bit for bit
        form = _RAW.get(DTYPES[e.dtype].nbytes)
        if form is None:
            raise UnfitError
        return [_load(e, inputs, 0, form), _store(form, out)]
    for shared in (True, False):  # once more without keeping what is used twice
        writer = _Writer(inputs, words, e if shared else None, arguments=arguments)
        try:
            writer.value(e)
        except _NoVectorError:
            continue
        writer.store(e.dtype, out)
        return _tidied(writer.code)
    raise UnfitError


def packed(code: list[Step]) -> bytes:
    """As a COMPUTE record is followed by it."""
    return b"".join([INSTRUCTION.pack(*step) for step in code])


def in_parts(code: list[Step]) -> list[Step]:
    """Code in parts that fit into a warp's lanes (`ComputeFn.MORE`)."""
    made: list[Step] = []
    while len(code) > COMPUTE_AT_HAND:
        fitting = COMPUTE_AT_HAND - 1
        fitting -= code[fitting - 1].fn in _WITH_PRODUCT.values()  # a load stays with its product
        made += [*code[:fitting], Step(ComputeFn.MORE, word=len(made) + fitting + 1)]
        code = code[fitting:]
    return made + code


class _NoVectorError(Exception):
    """All vectors are taken."""


@final
class _Writer:
    """Writes code that leaves a value in A. `whole`: what is used more than once in it is kept."""

    def __init__(self, inputs: list[Place], words: Words, whole: Elem | None, *, arguments: bool) -> None:
        self.code: list[Step] = []
        self._inputs = inputs
        self._words = words
        self._arguments = arguments
        self._free = list(range(COMPUTE_VECTORS - 1, -1, -1))
        self._left = _uses(whole) if whole is not None else Counter[int]()  # uses to come, by identity
        self._kept: dict[int, int] = {}  # vectors of what is used again

    # ---- vectors
    def _take(self) -> int:
        if not self._free:
            raise _NoVectorError
        return self._free.pop()

    def _put(self) -> int:
        vector = self._take()
        self._add(ComputeFn.PUT, index=vector)
        return vector

    def _add(self, fn: ComputeFn, form: int = 0, index: int = 0, mask: int = 0, word: int = 0) -> None:
        self.code.append(Step(fn, form, index, mask, word))

    def _used(self, e: Elem) -> None:
        """One use of a kept value less."""
        self._left[id(e)] -= 1
        if self._left[id(e)] == 0:
            self._free.append(self._kept.pop(id(e)))

    # ---- values
    def value(self, e: Elem) -> None:
        """Leaves `e` in A."""
        e = _core(e)
        if id(e) in self._kept:
            self._add(ComputeFn.TAKE, index=self._kept[id(e)])
            self._used(e)
            return
        self._made(e)
        if self._left[id(e)] > 1 and not isinstance(e, Input | Number | Parameter):
            self._left[id(e)] -= 1
            self._kept[id(e)] = self._put()

    def _made(self, e: Elem) -> None:  # noqa: C901 - one case per node
        match e:
            case Input():
                self.code.append(_load(e, self._inputs, 0, _form(e.dtype)))
            case Number():
                self._add(ComputeFn.CONST_A, CONSTANT, word=_word(e))
            case Parameter():
                self.operand(e)
                self._add(ComputeFn.CONST_A, CONSTANT)
                self._add(ComputeFn.I_OR)
            case Neg(a):
                self.value(a)
                if e.dtype in INTEGERS:
                    self._add(ComputeFn.I_RSUB_C, CONSTANT)
                    self._wrap(e.dtype)
                else:
                    self._add(ComputeFn.F_MUL_C, CONSTANT, word=_MINUS_ONE)
            case Unary(fn, a):
                self.value(a)
                self._unary(fn, e.dtype)
            case Binary(op, a, b):
                fns = self._pair_fns(op, e.dtype)
                self._pair(*fns, a, b)
                if e.dtype in INTEGERS:
                    self._wrap(e.dtype)
                elif e.dtype != MASK and op not in _EXACT:
                    self._round(e.dtype)
            case Compare(op, a, b):
                self._pair(_compare_fn(op, a.dtype), _compare_fn(_TURNED[op], a.dtype), a, b)
            case Select(cond, a, b):
                self._select(cond, a, b, e.dtype)
            case Cast(a, dtype):
                self.value(a)
                self._cast(_core(a).dtype, dtype)

    def _pair_fns(self, op: ElemOp, dtype: str) -> tuple[ComputeFn, ComputeFn]:
        _form(dtype)
        table = _S if dtype in SIGNED else _I if dtype in INTEGERS or dtype == MASK else _F
        return table[op]

    def _pair(self, fn: ComputeFn, turned: ComputeFn, a: Elem, b: Elem) -> None:
        """A function of two values, the second one in B or in the instruction; `turned` is the one for operands the other way round."""
        a, b = _core(a), _core(b)
        turn = isinstance(a, Number | Parameter) and not isinstance(b, Number | Parameter)  # a constant is best in the instruction
        if self._simple(b) and not turn:
            self.value(a)
            self._with(fn, b)
        elif self._simple(a):
            self.value(b)
            self._with(turned, a)
        else:
            first, second, now, later = (a, b, fn, turned) if _depth(a) >= _depth(b) else (b, a, turned, fn)
            chain = self._chain(second)
            self.value(first)
            if chain is not None:  # nothing is put by
                self.code += chain
                self._add(now)
                return
            if self._simple(second):  # it is part of the first
                self._with(now, second)
                return
            vector = self._put()
            self.value(second)
            self._add(ComputeFn.GET, index=vector)
            self._free.append(vector)
            self._add(later)

    def _fits(self, e: Number | Parameter) -> bool:
        """True for what can be an instruction's constant: a parameter's bits are taken as they are."""
        return isinstance(e, Number) or (self._arguments and DTYPES[e.dtype].nbytes == 4)

    def _constant(self, e: Number | Parameter) -> tuple[int, int]:
        """Form and word of an instruction with it."""
        _form(e.dtype)
        if isinstance(e, Number):
            return CONSTANT, _word(e)
        return COMPUTE_ARGUMENT, self._words.scalar(e.name, e.dtype, cast=True)

    def _chain(self, e: Elem) -> list[Step] | None:
        """Code that leaves `e` in B: an input, and what is done to it by constants. None for other values, and for those used again."""
        e = _core(e)
        if self._left[id(e)] > 1 or id(e) in self._kept or e.dtype != "f32":
            return None
        match e:
            case Input():
                return [_load(e, self._inputs, 1, _form(e.dtype))]
            case Cast(Input() as a) if a.dtype in ("f16", "bf16"):
                below: list[Step] | None = [_load(a, self._inputs, 1, _form(a.dtype))]
                fn, constant = ComputeFn.F_ADD, (CONSTANT, _MINUS_ZERO)
            case Neg(a):
                below, fn, constant = self._chain(a), ComputeFn.F_MUL, (CONSTANT, _MINUS_ONE)
            case Binary(op, a, (Number() | Parameter()) as b) if op in _F and self._fits(b):
                below, fn, constant = self._chain(a), _F[op][0], self._constant(b)
            case Binary(op, (Number() | Parameter()) as b, a) if op in _F and self._fits(b):
                below, fn, constant = self._chain(a), _F[op][1], self._constant(b)
            case _:
                return None
        return None if below is None or fn not in _ON_B else [*below, Step(_ON_B[fn], constant[0], 0, 0, constant[1])]

    def _simple(self, e: Elem) -> bool:
        """True for what can be an operand without a vector of its own."""
        return isinstance(e, Input | Number | Parameter) or id(e) in self._kept

    def _with(self, fn: ComputeFn, e: Elem, index: int = 0) -> None:
        """`fn` of A and an operand that is simple now, maybe no more: A's value may have been the last to need it."""
        if isinstance(e, Number | Parameter) and fn in _WITH_CONSTANT and self._fits(e):
            form, word = self._constant(e)
            self._add(_WITH_CONSTANT[fn], form, word=word)
            return
        self.operand(e)
        self._add(fn, index=index)

    def operand(self, e: Elem) -> None:
        """Leaves a simple value in B."""
        if isinstance(e, Input):
            self.code.append(_load(e, self._inputs, 1, _form(e.dtype)))
        elif isinstance(e, Number):
            self._add(ComputeFn.CONST_B, CONSTANT, word=_word(e))
        elif isinstance(e, Parameter):
            self._add(ComputeFn.SCALAR_B, _form(e.dtype), word=self._words.scalar(e.name, e.dtype, cast=True))
        else:
            self._add(ComputeFn.GET, index=self._kept[id(e)])
            self._used(e)

    def _select(self, cond: Elem, a: Elem, b: Elem, dtype: str) -> None:
        a, b = _core(a), _core(b)
        self.value(cond)
        vector = self._put()
        if self._simple(b):
            self.value(a)
            self._with(ComputeFn.SELECT, b, vector)
        elif self._simple(a):
            self.value(b)
            self._with(ComputeFn.RSELECT, a, vector)
        else:
            self.value(b)
            other = self._put()
            self.value(a)
            self._add(ComputeFn.GET, index=other)
            self._free.append(other)
            self._add(ComputeFn.SELECT, index=vector)
        self._free.append(vector)
        if dtype == "f32":
            self._one_nan()

    def _unary(self, fn: Fn, dtype: str) -> None:
        if fn is Fn.NOT:
            self._add(ComputeFn.I_NOT)
            if dtype != MASK:
                self._wrap(dtype)
        elif fn is Fn.ABS:
            _form(dtype)
            self._add(ComputeFn.S_ABS) if dtype in INTEGERS else self._add(ComputeFn.F_ABS_C, CONSTANT, word=_MINUS_ZERO)
        else:
            self._add(_FUNCTIONS[fn])
            self._round(dtype)

    # ---- types
    def _round(self, dtype: str) -> None:
        if dtype != "f32":
            self._add(ComputeFn.ROUND, _form(dtype))

    def _wrap(self, dtype: str) -> None:
        if DTYPES[dtype].bits < 32:
            self._add(ComputeFn.I_AND_C, CONSTANT, word=(1 << DTYPES[dtype].bits) - 1)

    def _one_nan(self) -> None:
        self._add(ComputeFn.F_ADD_C, CONSTANT, word=_MINUS_ZERO)

    def _cast(self, source: str, target: str) -> None:
        _form(source)
        _form(target)
        whole, bits = source in INTEGERS, DTYPES[target].bits
        if whole and target in INTEGERS:
            if bits < DTYPES[source].bits:
                self._wrap(target)
        elif whole:
            narrow = target != "f32" and DTYPES[source].bits == 32
            signed = (ComputeFn.S_TO_F, ComputeFn.S_TO_ODD) if source in SIGNED else (ComputeFn.U_TO_F, ComputeFn.U_TO_ODD)
            self._add(signed[narrow])
            self._round(target)
        elif target in INTEGERS:
            self._add(ComputeFn.F_TO_S if target in SIGNED else ComputeFn.F_TO_U)
            if bits < 32:
                self._add(ComputeFn.CONST_B, CONSTANT, word=(1 << bits) - 1)
                self._add(ComputeFn.U_MIN)
        elif target == "f32":
            self._one_nan()
        else:
            self._round(target)

    def store(self, dtype: str, out: Place) -> None:
        """A to the output, rounded to its type."""
        self.code.append(_store(_form(dtype), out))


def _compare_fn(op: CompareOp, dtype: str) -> ComputeFn:
    _form(dtype)
    kind = "S" if dtype in SIGNED else "U" if dtype in INTEGERS else "F"
    if kind != "F" and op in (CompareOp.EQ, CompareOp.NE):
        kind = "I"
    return ComputeFn[f"{kind}_{op.name}"]


def _load(e: Input, inputs: list[Place], into: int, form: int) -> Step:
    place = inputs[e.index]
    if e.along is Along.ALL and place.even and form in _EVEN:
        return Step(_EVEN[ElementForm(form)][into], form, e.index, place.mask, _even(place))
    return Step(_LOADS[e.along][into], form, e.index, place.mask, place.pitch if e.along is Along.ALL else 0)


def _store(form: int, out: Place) -> Step:
    if out.even and form in _EVEN:
        return Step(_EVEN[ElementForm(form)][2], form, 0, out.mask, _even(out))
    return Step(ComputeFn.STORE, form, 0, out.mask, out.pitch)


def _even(place: Place) -> int:
    return place.pitch | place.even // _STEP << 16


def _form(dtype: str) -> int:
    if dtype == MASK:
        return ElementForm.BITS32
    if dtype not in _FORMS:
        raise UnfitError
    return _FORMS[dtype]


def _word(e: Number) -> int:
    """A constant as the machine's registers hold it."""
    _form(e.dtype)
    bits = bits_of(e.value, e.dtype, cast=True)
    return bits if e.dtype in INTEGERS else _as_f32(bits, e.dtype)


def _as_f32(bits: int, dtype: str) -> int:
    """Bits of a float type as those of the same number in f32."""
    if dtype == "f32":
        return bits
    if dtype == "bf16":
        return bits << 16
    if dtype == "f16":
        value: float = struct.unpack("<e", bits.to_bytes(2, "little"))[0]
    elif dtype == "e5m2":
        value = struct.unpack("<e", (bits << 8).to_bytes(2, "little"))[0]
    else:
        value = _e4m3(bits)
    return 0x7FFFFFFF if value != value else int.from_bytes(struct.pack("<f", value), "little")  # noqa: PLR0124 - NaN


def _e4m3(bits: int) -> float:
    sign, exponent, fraction = -1.0 if bits & 0x80 else 1.0, bits >> 3 & 15, bits & 7
    if exponent == 15 and fraction == 7:
        return float("nan")
    return sign * (float(fraction) * 2.0**-9 if exponent == 0 else (1.0 + fraction / 8.0) * 2.0 ** (exponent - 7))


def _core(e: Elem) -> Elem:
    """Without casts that change nothing."""
    while isinstance(e, Cast) and e.a.dtype == e.dtype:
        e = e.a
    return e


def _uses(e: Elem) -> Counter[int]:
    """How often each node is used by others, by identity."""
    found: Counter[int] = Counter()
    seen: set[int] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for part in operands_of(node):
            found[id(_core(part))] += 1
            stack.append(_core(part))
    return found


def _depth(e: Elem) -> int:
    """Vectors that are put by while it is computed, about: the deeper side goes first."""
    parts = sorted([_depth(part) for part in operands_of(e) if not isinstance(part, Input | Number | Parameter)], reverse=True)
    if isinstance(e, Select):
        return max([1, *[1 + n for n in parts]])
    return max([0, *[n + i for i, n in enumerate(parts)]])


def _tidied(code: list[Step]) -> list[Step]:
    """Without roundings that the next instruction makes unneeded, and with loads that do the product behind them."""
    made: list[Step] = []
    for i, step in enumerate(code):
        following = code[i + 1] if i + 1 < len(code) else None
        if following is not None and following.fn in _STORES and step.fn is ComputeFn.ROUND and step.form == following.form:
            continue
        canonical = step.fn in (ComputeFn.F_ADD_C, ComputeFn.F_ADD_CB) and step.form == CONSTANT and step.word == _MINUS_ZERO
        narrow = following is not None and following.fn in (*_STORES, ComputeFn.ROUND) and following.form >= ElementForm.F16
        if canonical and following is not None and (following.fn in _ANY_NAN or narrow):
            continue
        made.append(step)
    return [
        step._replace(fn=_WITH_PRODUCT.get((step.fn, after), step.fn))
        for step, after in zip(made, [*[s.fn for s in made[1:]], ComputeFn.STORE], strict=True)
    ]
