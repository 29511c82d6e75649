"""What an expression can be over a box of block indices and loop counters: strided intervals, decisions, and shifts.

A `Range` stands for the integers lo, lo + step, ..., hi. Every operation returns a superset of the true values, so a decision made on
ranges holds for each value; `None` means "not decided here", never "no". Divisors are launch constants by the recorder's rules; one that is
not gives the widest answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import Final, NamedTuple, assert_never, final

from oxidecopy.isa.expr import (
    ONE,
    Add,
    And,
    Answer,
    Bool,
    Cmp,
    CmpOp,
    Cond,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Sym,
    SymKind,
    symbols,
)

_HUGE = 1 << 80  # wider than any product of values a launch can name; stands for "any integer"


class Range(NamedTuple):
    """lo, lo + step, ..., hi; `step` is 0 exactly when lo == hi."""

    lo: int
    hi: int
    step: int

    @property
    def single(self) -> bool:
        return self.lo == self.hi


def point(value: int) -> Range:
    return Range(value, value, 0)


def strided(lo: int, hi: int, step: int) -> Range:
    """The range from `lo` up to at most `hi`; `hi` is lowered onto the grid of `step`."""
    if step <= 0 or hi - lo < step:
        return point(lo)
    return Range(lo, lo + (hi - lo) // step * step, step)


ANY = Range(-_HUGE, _HUGE, 1)


def gather_terms(e: Expr, factor: int, terms: dict[Expr, int]) -> None:
    """Adds the terms of `factor * e` to `terms`, by what they are multiples of; a constant is one of 1."""
    match e:
        case Const(value):
            terms[ONE] = terms.get(ONE, 0) + factor * value
        case Add(a, b):
            gather_terms(a, factor, terms)
            gather_terms(b, factor, terms)
        case Mul(a, Const(k)):
            gather_terms(a, factor * k, terms)
        case _:
            terms[e] = terms.get(e, 0) + factor


def range_of(e: Expr, env: Mapping[str, Range]) -> Range:
    """A superset of the values of `e` when each symbol ranges over `env` independently. Raises ZeroDivisionError on a divisor of 0."""
    if isinstance(e, Const):
        return Range(e.value, e.value, 0)
    if isinstance(e, Sym):
        return env[e.name]
    return _RANGES[type(e)](range_of(e.a, env), range_of(e.b, env))


@final
class Ranges:
    """As `range_of`, for many expressions over the same ranges of symbols: what they share is looked at once."""

    def __init__(self, env: Mapping[str, Range]) -> None:
        self.env = env
        self._known: dict[int, tuple[Expr, Range]] = {}  # by id, with the expression, whose id therefore stays its own

    def of(self, e: Expr) -> Range:
        if isinstance(e, Const | Sym):
            return range_of(e, self.env)
        found = self._known.get(id(e))
        if found is None:
            found = self._known[id(e)] = (e, _RANGES[type(e)](self.of(e.a), self.of(e.b)))
        return found[1]


def _sum(x: Range, y: Range) -> Range:
    return Range(x.lo + y.lo, x.hi + y.hi, gcd(x.step, y.step))


def _smaller(x: Range, y: Range) -> Range:
    return _select(x, y, min(x.lo, y.lo), min(x.hi, y.hi), first=x.hi <= y.lo, second=y.hi <= x.lo)


def _larger(x: Range, y: Range) -> Range:
    return _select(x, y, max(x.lo, y.lo), max(x.hi, y.hi), first=x.lo >= y.hi, second=y.lo >= x.hi)


def _select(x: Range, y: Range, lo: int, hi: int, *, first: bool, second: bool) -> Range:
    """Minimum or maximum: one side where it always wins, else the hull on the common grid."""
    if first:
        return x
    if second:
        return y
    step = gcd(gcd(x.step, y.step), abs(x.lo - y.lo))
    return strided(lo, hi, step or 1)


def _product(x: Range, y: Range) -> Range:
    if y.single:
        x, y = y, x
    if x.single:
        k = x.lo
        return Range(y.lo * k, y.hi * k, y.step * k) if k >= 0 else Range(y.hi * k, y.lo * k, -y.step * k)
    corners = (x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi)
    return Range(min(corners), max(corners), 1)


def _quotient(x: Range, y: Range) -> Range:
    if not y.single:
        return ANY
    d = y.lo
    if d == 0:
        raise ZeroDivisionError
    lo, hi = (x.lo // d, x.hi // d) if d > 0 else (x.hi // d, x.lo // d)
    exact = x.step % d == 0
    return strided(lo, hi, abs(x.step // d) if exact else 1)


def _remainder(x: Range, y: Range) -> Range:
    if not y.single:
        return ANY
    m = y.lo
    if m == 0:
        raise ZeroDivisionError
    if x.lo // m == x.hi // m:
        return Range(x.lo % m, x.hi % m, x.step) if m > 0 or x.single else strided(min(x.lo % m, x.hi % m), max(x.lo % m, x.hi % m), x.step)
    if m < 0:
        return strided(m + 1, 0, 1)
    g = gcd(x.step, m)
    return strided(x.lo % g, m - g + x.lo % g, g)


_RANGES: Final[Mapping[type, Callable[[Range, Range], Range]]] = {
    Add: _sum,
    Mul: _product,
    FloorDiv: _quotient,
    Mod: _remainder,
    Min: _smaller,
    Max: _larger,
}


def decide(c: Cond, env: Mapping[str, Range]) -> bool | None:  # noqa: C901  one case per kind of node
    """The truth of `c` over all of `env`, or None. The answer of a try_wait is never decided."""
    match c:
        case Bool(value):
            return value
        case Answer():
            return None
        case Not(a):
            inner = decide(a, env)
            return None if inner is None else not inner
        case And(a, b):
            x, y = decide(a, env), decide(b, env)
            if x is False or y is False:
                return False
            return True if x and y else None
        case Or(a, b):
            x, y = decide(a, env), decide(b, env)
            if x or y:
                return True
            return False if x is False and y is False else None
        case Cmp(op, a, b):
            return _compare(op, range_of(a, env), range_of(b, env))
        case _:
            assert_never(c)


def _compare(op: CmpOp, x: Range, y: Range) -> bool | None:
    match op:
        case CmpOp.LT:
            return True if x.hi < y.lo else False if x.lo >= y.hi else None
        case CmpOp.LE:
            return True if x.hi <= y.lo else False if x.lo > y.hi else None
        case CmpOp.EQ:
            return _equal(x, y)
        case CmpOp.NE:
            same = _equal(x, y)
            return None if same is None else not same
        case _:
            assert_never(op)


def _equal(x: Range, y: Range) -> bool | None:
    if x.single and y.single:
        return x.lo == y.lo
    if x.hi < y.lo or y.hi < x.lo:
        return False
    g = gcd(x.step, y.step)
    return False if g and (x.lo - y.lo) % g else None


def shift_of(e: Expr, deltas: Mapping[str, int]) -> int | None:  # noqa: C901  one case per kind of node
    """By how much `e` grows, whatever its value, when each loop counter grows by its entry of `deltas`; None when that is not constant."""
    match e:
        case Const():
            return 0
        case Sym(name):
            return deltas.get(name, 0)
        case Add(a, b):
            x, y = shift_of(a, deltas), shift_of(b, deltas)
            return None if x is None or y is None else x + y
        case Mul(a, b):
            x, y = shift_of(a, deltas), shift_of(b, deltas)
            if x == 0 and y == 0:
                return 0
            if isinstance(b, Const) and x is not None:
                return x * b.value
            return y * a.value if isinstance(a, Const) and y is not None else None
        case FloorDiv(a, b) | Mod(a, b):
            x, y = shift_of(a, deltas), shift_of(b, deltas)
            if x == 0 and y == 0:
                return 0
            if x is None or not isinstance(b, Const) or b.value == 0 or x % b.value:
                return None
            return x // b.value if isinstance(e, FloorDiv) else 0
        case Min(a, b) | Max(a, b):
            x, y = shift_of(a, deltas), shift_of(b, deltas)
            return x if x == y else None
        case _:
            assert_never(e)


def steady(c: Cond, deltas: Mapping[str, int]) -> bool:
    """True when the truth of `c` cannot change as the loop counters grow by `deltas`."""
    match c:
        case Bool() | Answer():
            return True
        case Not(a):
            return steady(a, deltas)
        case And(a, b) | Or(a, b):
            return steady(a, deltas) and steady(b, deltas)
        case Cmp(_, a, b):
            x = shift_of(a, deltas)
            return x is not None and x == shift_of(b, deltas)
        case _:
            assert_never(c)


def has_loop_symbol(e: Expr | Cond) -> bool:
    """True when the value can differ between iterations, or with the number of them that a counter gives."""
    return any(s.kind is SymKind.LOOP or s.kind is SymKind.TRIPS for s in symbols(e))


def periods(e: Expr | Cond, deltas: Mapping[str, int]) -> frozenset[int]:
    """After how many such moves of the counters each divisor and modulus inside `e` may be where it was: of i * 8 % 4 after one of i."""
    found: set[int] = set()
    stack: list[Expr | Cond] = [e]
    while stack:
        node = stack.pop()
        if isinstance(node, FloorDiv | Mod) and isinstance(node.b, Const) and node.b.value > 1:
            moved = shift_of(node.a, deltas)
            found.add(node.b.value // gcd(node.b.value, 1 if moved is None else moved))
        if isinstance(node, Not):
            stack.append(node.a)
        elif not isinstance(node, Const | Sym | Bool | Answer):
            stack += (node.a, node.b)
    return frozenset(found)


def moduli(e: Expr | Cond) -> frozenset[int]:
    """Constant divisors and moduli inside `e`: good steps for splitting a box of block indices."""
    found: set[int] = set()
    stack: list[Expr | Cond] = [e]
    while stack:
        node = stack.pop()
        if isinstance(node, FloorDiv | Mod) and isinstance(node.b, Const) and node.b.value > 1:
            found.add(node.b.value)
        if isinstance(node, Not):
            stack.append(node.a)
        elif not isinstance(node, Const | Sym | Bool | Answer):
            stack += (node.a, node.b)
    return frozenset(found)
