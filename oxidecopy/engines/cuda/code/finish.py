"""Epilogues that are compiled: which functions of a sum kernels/finish.cuh computes by straight code, and how it is told.

What is recognised is a chain: the sum, some steps each with an operand, one function, some steps more, in any order of operands, rounded to
16 bits wherever the expression is. Every other expression is for the machine (kernels/fragment.cuh).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import ElementForm, FinishFn, FinishOf, FinishOp
from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.isa.elem import Along, Binary, Cast, Elem, ElemOp, Fn, Input, Neg, Number, Parameter, Unary, operands_of, told_apart

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.words import Words

HEAD: Final = struct.Struct("<7B9x")  # abi.FINISH
STEP: Final = struct.Struct("<4B3I")  # abi.FINISH_STEP
BYTES: Final = abi.FINISH_BYTES + abi.FINISH_STEPS * abi.FINISH_STEP_BYTES
_FORMS: Final = {"f32": ElementForm.BITS32, "f16": ElementForm.F16, "bf16": ElementForm.BF16}
_ROUNDS: Final = {"f32": 0, "f16": ElementForm.F16, "bf16": ElementForm.BF16}
_FUNCTIONS: Final = {Fn.GELU: FinishFn.GELU, Fn.SIGMOID: FinishFn.SIGMOID, Fn.TANH: FinishFn.TANH, Fn.EXP: FinishFn.EXP}
_OPS: Final = {
    ElemOp.ADD: (FinishOp.ADD, FinishOp.ADD),  # the second one where the value is the second operand
    ElemOp.MUL: (FinishOp.MUL, FinishOp.MUL),
    ElemOp.SUB: (FinishOp.SUB, FinishOp.RSUB),
    ElemOp.MIN: (FinishOp.MIN, FinishOp.MIN),
    ElemOp.MAX: (FinishOp.MAX, FinishOp.MAX),
}
_EXACT: Final = frozenset({ElemOp.MIN, ElemOp.MAX})  # what they give is one of their operands
_OF: Final = {Along.ALL: FinishOf.ALL, Along.ROW: FinishOf.ROW, Along.COLUMN: FinishOf.COLUMN}
_STRAIGHT: Final = frozenset({FinishFn.NONE, FinishFn.RELU, FinishFn.GELU})
_MINUS_ONE: Final = 0xBF800000


class _OtherError(Exception):
    """It is no such chain."""


@final
@dataclass(frozen=True, slots=True)
class _Operand:
    """Where a step's operand is from; see `abi.FINISH_STEP`."""

    of: FinishOf
    form: int = 0
    source: int = 0
    scale: int = 0
    flags: int = 0


@final
@dataclass(frozen=True, slots=True)
class _Step:
    op: FinishOp
    operand: _Operand
    round: int


_ONE_NAN: Final = _Step(FinishOp.ADD, _Operand(FinishOf.NUMBER, source=0x80000000), 0)  # what is no NaN plus -0 is the same number


@final
@dataclass(slots=True)
class _Chain:
    """What has been found from the sum on."""

    round: int = 0
    steps: list[_Step] = field(default_factory=list)
    before: int = 0
    fn: FinishFn = FinishFn.NONE
    fn_round: int = 0

    def step(self, step: _Step) -> None:
        if len(self.steps) == abi.FINISH_STEPS:
            raise _OtherError
        self.steps.append(step)
        self.before += self.fn is FinishFn.NONE

    def function(self, fn: FinishFn, rounded: int) -> None:
        if self.fn is not FinishFn.NONE:
            raise _OtherError
        self.fn, self.fn_round = fn, rounded

    def rounded(self, form: int) -> None:
        """What is there now is rounded, which nothing has done yet."""
        if self._last_round() not in (0, form):
            raise _OtherError
        self._end_with(form)

    def stored_as(self, form: int) -> None:
        """The store rounds by itself, and a NaN that was rounded before is no longer the one of f32."""
        if self._last_round() == form:
            self._end_with(0)
        elif not form:
            self.step(_ONE_NAN)

    def _last_round(self) -> int:
        return self.steps[-1].round if self._ends_with_step() else self.fn_round if self.fn is not FinishFn.NONE else self.round

    def _end_with(self, form: int) -> None:
        if self._ends_with_step():
            self.steps[-1] = replace(self.steps[-1], round=form)
        elif self.fn is not FinishFn.NONE:
            self.fn_round = form
        else:
            self.round = form

    def _ends_with_step(self) -> bool:
        return len(self.steps) > (0 if self.fn is FinishFn.NONE else self.before)


def finish_of(e: Elem, sources: Sequence[int], words: Words) -> bytes | None:
    """`abi.FINISH` and its steps; None where it is not compiled. `sources`: the first argument word of each array that is read."""
    chain = _Chain()
    try:
        _Reader(e, sources, words).value(e, chain)
        chain.stored_as(_ROUNDS[e.dtype])
    except _OtherError:
        return None
    return _packed(chain)


def _packed(chain: _Chain) -> bytes:
    steps = chain.steps
    if chain.fn is FinishFn.NONE:
        chain.before = len(steps)
    first = steps[0] if steps else None
    biased = (
        first is not None and chain.before > 0 and first.op is FinishOp.ADD and first.operand.of is FinishOf.COLUMN
        and not (first.operand.flags or first.round or chain.round)
    )  # fmt: skip
    whole = not (chain.round or chain.fn_round or any(step.round for step in steps))
    straight = chain.fn in _STRAIGHT and chain.before == len(steps) and whole
    data = HEAD.pack(chain.before, len(steps), chain.fn, chain.fn_round, chain.round, biased, straight)
    for op, operand, rounded in ((step.op, step.operand, step.round) for step in steps):
        data += STEP.pack(op, operand.of, operand.form, rounded, operand.source, operand.scale, operand.flags)
    return data.ljust(BYTES, b"\0")


@final
class _Reader:
    def __init__(self, whole: Elem, sources: Sequence[int], words: Words) -> None:
        self._sources = sources
        self._words = words
        self._having = _having_sum(whole)

    def _has(self, e: Elem) -> bool:
        return id(e) in self._having

    def value(self, e: Elem, chain: _Chain) -> None:
        """Adds to the chain what makes `e` of the sum. It goes as deep as a chain is long, and through casts."""
        path: list[Elem] = []
        while not isinstance(e, Input):
            path.append(e)
            e = self._within(e)
        if e.index != 0 or e.dtype != "f32" or e.along is not Along.ALL:
            raise _OtherError
        for node in reversed(path):
            self._add(node, chain)

    def _within(self, e: Elem) -> Elem:
        """The operand that the sum is in."""
        if isinstance(e, Binary) and self._has(e.a) and self._has(e.b):
            return _gate(e)
        inside = [part for part in operands_of(e) if self._has(part)]
        if len(inside) != 1 or isinstance(e, Input):
            raise _OtherError
        return inside[0]

    def _add(self, e: Elem, chain: _Chain) -> None:  # noqa: C901 - one case per node
        if e.dtype not in _FORMS:
            raise _OtherError
        rounded = _ROUNDS[e.dtype]
        match e:
            case Cast(a, dtype):
                if a.dtype not in ("f32", dtype) and dtype != "f32":
                    raise _OtherError
                if a.dtype != dtype and rounded:
                    chain.rounded(rounded)
            case Neg():
                chain.step(_Step(FinishOp.MUL, _Operand(FinishOf.NUMBER, source=_MINUS_ONE), 0))
            case Unary(fn, _) if fn in _FUNCTIONS:
                chain.function(_FUNCTIONS[fn], rounded)
            case Binary(_, a, b) if self._has(a) and self._has(b):
                chain.function(FinishFn.SILU, 0)
            case Binary(ElemOp.MAX, a, b) if chain.fn is FinishFn.NONE and (_is_zero(a) or _is_zero(b)):
                chain.function(FinishFn.RELU, 0)
            case Binary(op, a, b) if op in _OPS:
                second = self._has(b)
                operand = self._operand(a if second else b)
                chain.step(_Step(_OPS[op][second], operand, 0 if op in _EXACT else rounded))
            case _:
                raise _OtherError

    # ---- what is not made of the sum
    def _operand(self, e: Elem) -> _Operand:
        match e:
            case Number() | Parameter():
                bits, argument = self._number(e)
                return _Operand(FinishOf.NUMBER, source=bits, flags=abi.FINISH_ARGUMENT if argument else 0)
            case Binary(ElemOp.MUL, a, (Number() | Parameter()) as by) | Binary(ElemOp.MUL, (Number() | Parameter()) as by, a):
                bits, argument = self._number(by)
                return self._scaled(e, a, bits, abi.FINISH_SCALED | (abi.FINISH_SCALE_ARGUMENT if argument else 0))
            case Neg(a):
                return self._scaled(e, a, _MINUS_ONE, abi.FINISH_SCALED)
            case _:
                return self._element(e)

    def _scaled(self, e: Elem, a: Elem, bits: int, flags: int) -> _Operand:
        if e.dtype != "f32":
            raise _OtherError
        return replace(self._element(a), scale=bits, flags=flags)

    def _element(self, e: Elem) -> _Operand:
        """An element of an array; f16 and bf16 are numbers in f32 anyway."""
        while isinstance(e, Cast) and e.dtype in ("f32", e.a.dtype):
            e = e.a
        if not isinstance(e, Input) or e.index == 0 or e.dtype not in _FORMS:
            raise _OtherError
        return _Operand(_OF[e.along], _FORMS[e.dtype], self._sources[e.index - 1])

    def _number(self, e: Number | Parameter) -> tuple[int, bool]:
        """Bits as f32, or the word that will hold them."""
        if e.dtype not in _FORMS:
            raise _OtherError
        if isinstance(e, Number):
            return _as_f32(bits_of(e.value, e.dtype, cast=True), e.dtype), False
        if e.dtype != "f32":
            raise _OtherError
        return self._words.scalar(e.name, e.dtype, cast=True), True


def _as_f32(bits: int, dtype: str) -> int:
    if dtype == "f16":
        (value,) = struct.unpack("<e", bits.to_bytes(2, "little"))
        return bits_of(value, "f32", cast=True)
    return bits << 16 if dtype == "bf16" else bits


def _is_zero(e: Elem) -> bool:
    return isinstance(e, Number) and told_apart(e.value) == told_apart(0.0)


def _gate(e: Binary) -> Elem:
    """The x of x * sigmoid(x)."""
    for x, gate in ((e.a, e.b), (e.b, e.a)):
        if e.op is ElemOp.MUL and e.dtype == "f32" and isinstance(gate, Unary) and gate.fn is Fn.SIGMOID and (gate.a is x or gate.a == x):
            return x
    raise _OtherError


def _having_sum(whole: Elem) -> set[int]:
    """Every node with the sum in it, by identity: parts come before what they are part of."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = [(whole, False)]
    while stack:
        node, visited = stack.pop()
        if visited:
            if (isinstance(node, Input) and node.index == 0) or any(id(part) in found for part in operands_of(node)):
                found.add(id(node))
        elif id(node) not in seen:
            seen.add(id(node))
            stack += [(node, True), *[(part, False) for part in operands_of(node)]]
    return found
