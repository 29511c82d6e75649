"""Expressions of one CTA made ready to be evaluated often: what loops do not move is settled once, the rest becomes closures.

Both are done when an expression is first asked for, so that one behind a condition that never holds costs nothing and divides by nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never, final

from oxidecopy.isa import expr
from oxidecopy.isa.expr import CmpOp, Cond, Const, Expr, Sym, SymKind
from oxidecopy.verify.affine import Range, decide, range_of

Env: TypeAlias = dict[str, int]
Number: TypeAlias = Callable[[Env], int]
Truth: TypeAlias = Callable[[Env], bool]

_OPERATORS: Final[Mapping[type, Callable[[int, int], int]]] = {
    expr.Add: operator.add,
    expr.Mul: operator.mul,
    expr.FloorDiv: operator.floordiv,
    expr.Mod: operator.mod,
    expr.Min: min,
    expr.Max: max,
}
_COMPARISONS: Final[Mapping[CmpOp, Callable[[int, int], bool]]] = {
    CmpOp.LT: operator.lt,
    CmpOp.LE: operator.le,
    CmpOp.EQ: operator.eq,
    CmpOp.NE: operator.ne,
}


@final
@dataclass(slots=True)
class Quick:
    """The expressions of one CTA by their id, which lives as long as the program does.

    Attributes:
        ranges: the symbols that neither a loop nor the share of a counter moves; under names of their own, what was settled to more than
            one value.
    """

    ranges: dict[str, Range]
    numbers: dict[int, Number] = field(default_factory=dict)
    truths: dict[int, Truth] = field(default_factory=dict)
    settled: dict[int, Expr | Cond] = field(default_factory=dict)
    parts: dict[int, tuple[Expr, Expr]] = field(default_factory=dict)  # of expressions: what they are and what they were settled to

    def number(self, e: Expr) -> Number:
        """A closure of `e` over loop counters; it raises KeyError where `e` is not settled to one value."""
        found = self.numbers.get(id(e))
        if found is None:
            new = self.settled[id(e)] = self._settle(e)
            found = self.numbers[id(e)] = number(new)
        return found

    def truth(self, c: Cond) -> Truth:
        """As `number`, of a condition without answers."""
        found = self.truths.get(id(c))
        if found is None:
            new = self.settled[id(c)] = self._settle_cond(c)
            found = self.truths[id(c)] = truth(new)
        return found

    def range(self, e: Expr, counters: Mapping[str, Range]) -> Range:
        """The values of an expression over these counters."""
        self.number(e)
        settled = self.settled[id(e)]
        assert not isinstance(settled, Cond)
        return range_of(settled, {**self.ranges, **counters})

    def decided(self, c: Cond, counters: Mapping[str, Range]) -> bool | None:
        """The truth of a condition without answers, where it has one over these counters."""
        self.truth(c)
        settled = self.settled[id(c)]
        assert isinstance(settled, Cond)
        return decide(settled, {**self.ranges, **counters})

    def _settle(self, e: Expr) -> Expr:
        """`e` with everything that no loop moves replaced by its value, or by a symbol of the same range."""
        if isinstance(e, Const):
            return e
        if isinstance(e, Sym):
            known = self.ranges.get(e.name)
            return Const(known.lo) if known is not None and known.single else e
        found = self.parts.get(id(e))
        if found is not None:
            return found[1]
        a, b = self._settle(e.a), self._settle(e.b)
        new: Expr = e if a is e.a and b is e.b else type(e)(a, b)
        if self._stays(a) and self._stays(b):
            new = self._named(new)
        self.parts[id(e)] = (e, new)
        return new

    def _stays(self, e: Expr) -> bool:
        """Of something settled: no loop moves it."""
        return isinstance(e, Const) or (isinstance(e, Sym) and e.name in self.ranges)

    def _named(self, e: Expr) -> Expr:
        """The value of what no loop moves, or a symbol of its range."""
        try:
            r = range_of(e, self.ranges)
        except ZeroDivisionError:
            return e  # it is raised when the value is asked for
        if r.single:
            return Const(r.lo)
        name = f"={len(self.ranges)}"
        self.ranges[name] = r
        return Sym(name, SymKind.BLOCK)

    def _settle_cond(self, c: Cond) -> Cond:
        match c:
            case expr.Bool() | expr.Answer():
                return c
            case expr.Not(a):
                return expr.Not(self._settle_cond(a))
            case expr.And(a, b):
                return expr.And(self._settle_cond(a), self._settle_cond(b))
            case expr.Or(a, b):
                return expr.Or(self._settle_cond(a), self._settle_cond(b))
            case expr.Cmp(op, x, y):
                return expr.Cmp(op, self._settle(x), self._settle(y))
            case _:
                assert_never(c)


# ---- closures
def number(e: Expr) -> Number:
    """`e` as a function of its symbols."""
    if isinstance(e, Const):
        value = e.value
        return lambda _env: value
    if isinstance(e, Sym):
        return operator.itemgetter(e.name)
    do = _OPERATORS[type(e)]
    if isinstance(e.b, Const):
        right = e.b.value
        if isinstance(e.a, Sym):
            name = e.a.name
            return lambda env: do(env[name], right)
        left = number(e.a)
        return lambda env: do(left(env), right)
    first, second = number(e.a), number(e.b)
    return lambda env: do(first(env), second(env))


def truth(c: Cond) -> Truth:
    """`c` as a function of its symbols. It has no answers."""
    match c:
        case expr.Bool(value):
            return lambda _env: value
        case expr.Cmp(op, a, b):
            compare, x, y = _COMPARISONS[op], number(a), number(b)
            return lambda env: compare(x(env), y(env))
        case expr.And(a, b):
            p, q = truth(a), truth(b)
            return lambda env: p(env) and q(env)
        case expr.Or(a, b):
            p, q = truth(a), truth(b)
            return lambda env: p(env) or q(env)
        case expr.Not(a):
            p = truth(a)
            return lambda env: not p(env)
        case expr.Answer():
            raise TypeError("an answer where a condition without one was asked for")
        case _:
            assert_never(c)
