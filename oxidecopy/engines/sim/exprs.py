"""Index expressions and conditions as closures over an agent's integers.

An agent keeps its symbols in a list: block index, cluster rank, then loop counters. Everything constant for the launch is folded before,
and what is left affine (nearly all of it) becomes one multiply-add per symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from oxidecopy.isa.expr import Add, And, Answer, Bool, Cmp, CmpOp, Cond, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym

Env: TypeAlias = list[int]
Value: TypeAlias = Callable[[Env], int]
Truth: TypeAlias = Callable[[Env, Mapping[int, bool]], bool]
Affine: TypeAlias = dict[int, int]  # slot -> coefficient; CONST holds the constant

CONST = -1


class Scope:
    """Where the symbols of an expression live: launch constants by value, the others by slot of the agent's list."""

    __slots__ = ("constants", "slots")

    def __init__(self, constants: Mapping[str, int], slots: Mapping[str, int]) -> None:
        self.constants = constants
        self.slots = slots

    def value(self, e: Expr) -> Value:
        """`e` as a function of the agent's list."""
        terms = self._affine(e)
        if terms is None:
            return self._binary(e)
        const = terms.pop(CONST, 0)
        match [(slot, k) for slot, k in terms.items() if k]:
            case []:
                return lambda _env: const
            case [(slot, 1)]:
                return (lambda env: env[slot]) if const == 0 else (lambda env: env[slot] + const)
            case [(slot, k)]:
                return (lambda env: env[slot] * k) if const == 0 else (lambda env: env[slot] * k + const)
            case pairs:
                return lambda env: const + sum([env[slot] * k for slot, k in pairs])

    def constant(self, e: Expr) -> int | None:
        """The value of `e` when it is the same for the whole launch."""
        terms = self._affine(e)
        if terms is None or any(k for slot, k in terms.items() if slot != CONST):
            return None
        return terms.get(CONST, 0)

    def _affine(self, e: Expr) -> Affine | None:
        match e:
            case Const(value):
                return {CONST: value}
            case Sym(name):
                known = self.constants.get(name)
                return {CONST: known} if known is not None else {self.slots[name]: 1}
            case Add(a, b):
                x, y = self._affine(a), self._affine(b)
                if x is None or y is None:
                    return None
                return {slot: x.get(slot, 0) + y.get(slot, 0) for slot in {**x, **y}}
            case Mul(a, b):
                return self._product(a, b)
            case FloorDiv(a, b) | Mod(a, b) | Min(a, b) | Max(a, b):
                left, right = self.constant(a), self.constant(b)
                if left is None or right is None or (right == 0 and isinstance(e, FloorDiv | Mod)):
                    return None
                return {CONST: _apply(e, left, right)}
            case _:
                assert_never(e)

    def _product(self, a: Expr, b: Expr) -> Affine | None:
        x, y = self._affine(a), self._affine(b)
        if x is None or y is None:
            return None
        for one, other in ((x, y), (y, x)):
            if not any(k for slot, k in one.items() if slot != CONST):
                return {slot: k * one.get(CONST, 0) for slot, k in other.items()}
        return None

    def _binary(self, e: Expr) -> Value:
        if isinstance(e, Const | Sym):
            return self.value(e)
        a, b = self.value(e.a), self.value(e.b)
        match e:
            case Add():
                return lambda env: a(env) + b(env)
            case Mul():
                return lambda env: a(env) * b(env)
            case FloorDiv():
                return lambda env: a(env) // b(env)
            case Mod():
                return lambda env: a(env) % b(env)
            case Min():
                return lambda env: min(a(env), b(env))
            case Max():
                return lambda env: max(a(env), b(env))
            case _:
                assert_never(e)

    def truth(self, c: Cond) -> Truth:
        """`c` as a function of the agent's list and its predicate registers (False until a try_wait wrote them)."""
        match c:
            case Bool(value):
                return lambda _env, _answers: value
            case Cmp(op, a, b):
                return _compare(op, self.value(a), self.value(b))
            case And(a, b):
                x, y = self.truth(a), self.truth(b)
                return lambda env, answers: x(env, answers) and y(env, answers)
            case Or(a, b):
                x, y = self.truth(a), self.truth(b)
                return lambda env, answers: x(env, answers) or y(env, answers)
            case Not(a):
                x = self.truth(a)
                return lambda env, answers: not x(env, answers)
            case Answer(register):
                return lambda _env, answers: answers.get(register, False)
            case _:
                assert_never(c)


def _apply(e: FloorDiv | Mod | Min | Max, a: int, b: int) -> int:
    match e:
        case FloorDiv():
            return a // b
        case Mod():
            return a % b
        case Min():
            return min(a, b)
        case Max():
            return max(a, b)
        case _:
            assert_never(e)


def _compare(op: CmpOp, a: Value, b: Value) -> Truth:
    match op:
        case CmpOp.LT:
            return lambda env, _answers: a(env) < b(env)
        case CmpOp.LE:
            return lambda env, _answers: a(env) <= b(env)
        case CmpOp.EQ:
            return lambda env, _answers: a(env) == b(env)
        case CmpOp.NE:
            return lambda env, _answers: a(env) != b(env)
        case _:
            assert_never(op)


def asks(c: Cond) -> bool:
    """True when the answer of a test is in `c`."""
    match c:
        case Answer():
            return True
        case Not(inner):
            return asks(inner)
        case And(a, b) | Or(a, b):
            return asks(a) or asks(b)
        case Bool() | Cmp():
            return False
        case _:
            assert_never(c)
