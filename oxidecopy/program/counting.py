"""How often ops ran before a point of a program, as expressions: exact sums over the counters of the loops around it.

Everything is relative to one body that runs from its start: the loops above it do not count. A loop's iterations are numbered from 0
whatever its start and step; that number is its turn. What has no exact expression raises `CannotCount`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import final

from oxidecopy.isa import expr
from oxidecopy.isa.expr import ONE, ZERO, Add, Const, Expr, Mod, Mul, Sym, SymKind, evaluate, is_launch_constant, symbols
from oxidecopy.isa.ops import Loop


class CannotCount(Exception):
    """No exact expression is known; the message says why, in the user's words."""


# ---- sums
@final
@dataclass(frozen=True, slots=True)
class Sum:
    """Expressions with integer factors, and a constant."""

    terms: Mapping[Expr, int] = field(default_factory=dict)
    const: int = 0

    def __add__(self, other: Sum) -> Sum:
        terms = {e: self.terms.get(e, 0) + other.terms.get(e, 0) for e in (*self.terms, *other.terms)}
        return Sum({e: k for e, k in terms.items() if k}, self.const + other.const)

    def times(self, factor: int) -> Sum:
        """All of it, `factor` times."""
        return Sum({e: k * factor for e, k in self.terms.items() if factor}, self.const * factor)

    def expr(self) -> Expr:
        """As one expression."""
        made: Expr = ZERO
        for e, k in self.terms.items():
            made = expr.add(made, expr.mul(e, Const(k)))
        return expr.add(made, Const(self.const))

    def divided(self, by: int) -> Expr:
        """The sum over `by`, rounded down; whole multiples leave the division."""
        whole = Sum({e: k // by for e, k in self.terms.items() if k // by}, self.const // by)
        rest = Sum({e: k % by for e, k in self.terms.items() if k % by}, self.const % by)
        return expr.add(whole.expr(), expr.floordiv(rest.expr(), Const(by)))


def sum_of(e: Expr) -> Sum:
    """`e` taken apart into products with constants."""
    match e:
        case Const(value):
            return Sum(const=value)
        case Add(a, b):
            return sum_of(a) + sum_of(b)
        case Mul(a, Const(k)) | Mul(Const(k), a):
            return sum_of(a).times(k)
        case _:
            return Sum({e: 1})


def product(total: Sum, e: Expr) -> Sum:
    """`total` times `e`."""
    if isinstance(e, Const):
        return total.times(e.value)
    if total.terms and not is_launch_constant(e):
        raise CannotCount("the trip count of an inner loop is no constant of the launch")
    made = Sum({e: total.const} if total.const else {})
    for term, k in total.terms.items():
        made += Sum({expr.mul(term, e): k})
    return made


# ---- loops
def turn(loop: Loop) -> Expr:
    """Number of the iteration that the loop is in, from 0."""
    counter = Sym(loop.counter, SymKind.LOOP)
    if loop.step > 0:
        return expr.floordiv(expr.sub(counter, loop.start), Const(loop.step))
    return expr.floordiv(expr.sub(loop.start, counter), Const(-loop.step))


def trips(loop: Loop) -> Expr:
    """Iterations of the whole loop."""
    step = abs(loop.step)
    span = expr.sub(loop.stop, loop.start) if loop.step > 0 else expr.sub(loop.start, loop.stop)
    return expr.maximum(ZERO, expr.floordiv(expr.add(span, Const(step - 1)), Const(step)))


def passes(loops: Sequence[Loop], around: Sequence[Loop] = ()) -> Expr:
    """Iterations of the innermost of nested loops in one pass over all; they must not depend on each other's counters, or those around."""
    counters = {loop.counter for loop in (*loops, *around)}
    made: Expr = ONE
    for loop in loops:
        n = trips(loop)
        if any(s.name in counters for s in symbols(n)):
            raise CannotCount("the trip count of a loop changes with the counter of the loop around it")
        made = expr.mul(made, n)
    return made


def turns(loops: Sequence[Loop]) -> Sum:
    """Iterations of the innermost of nested loops before the one they are in."""
    total = Sum()
    for i, loop in enumerate(loops):
        if i:
            total = product(total, passes((loop,), loops[:i]))
        total += sum_of(turn(loop))
    return total


# ---- which element of an array an index names
@final
@dataclass(frozen=True, slots=True)
class Ring:
    """An index that visits the elements of an array in turn.

    `outer`, `ring` and `inner` are the loops around, split into those before, in and behind the index; the element comes again after
    `period` turns of the ring's loops (0: never within one pass), and each turn moves it by `by` modulo `modulus`. `base` is what the
    loops leave alone.
    """

    outer: tuple[Loop, ...]
    ring: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    modulus: int
    by: int
    base: Sum

    @property
    def period(self) -> int:
        """Turns after which the same element comes again; 0 for never in one pass."""
        return self.modulus // gcd(self.by, self.modulus) if self.modulus else 0


def ring_of(index: Expr, loops: Sequence[Loop], env: Mapping[str, int]) -> Ring | None:
    """How `index` walks with `loops`; None where it does not move with them."""
    inside, modulus = (index.a, index.b.value) if isinstance(index, Mod) and isinstance(index.b, Const) else (index, 0)
    total = sum_of(inside)
    counters = {loop.counter: i for i, loop in enumerate(loops)}
    if not _moves(index, counters):
        return None
    steps: dict[int, int] = {}
    base = Sum(const=total.const)
    for e, k in total.terms.items():
        if isinstance(e, Sym) and e.name in counters:
            steps[counters[e.name]] = k * loops[counters[e.name]].step
            base += sum_of(loops[counters[e.name]].start).times(k)
        else:
            base += Sum({e: k})
    if not steps or modulus < 0 or any(_moves(e, counters) for e in base.terms):
        raise CannotCount("the index of the barrier is no sum of loop counters, whole or modulo a number, that start at fixed places")
    first, last = min(steps), max(steps)
    ring = tuple(loops[first : last + 1])
    if not modulus and (first != last or not steps[first]):
        raise CannotCount("the index of the barrier goes through its elements with two loops at once")
    by = steps[last]
    for i in range(first, last):
        ahead = [number(trips(loop), env) for loop in loops[i + 1 : last + 1]]
        if (steps.get(i, 0) - by * prod(ahead)) % modulus:
            raise CannotCount("the index of the barrier does not go round evenly over its loops")
    return Ring(tuple(loops[:first]), ring, tuple(loops[last + 1 :]), modulus, by % modulus if modulus else by, base)


def _moves(e: Expr, counters: Collection[str]) -> bool:
    return any(s.name in counters for s in symbols(e))


def number(e: Expr, env: Mapping[str, int]) -> int:
    """The value of a trip count that the launch knows."""
    try:
        return evaluate(e, env)
    except (KeyError, ZeroDivisionError):
        raise CannotCount("the trip count of an inner loop is known only while the program runs") from None


def visits_before(ring: Ring, behind: int | None, env: Mapping[str, int]) -> Sum:
    """Earlier iterations in which an op named the element that the point's own iteration names.

    `behind` is how many turns of the ring earlier the op named it, from 0 to period - 1 (`distance`). None: never.
    """
    if behind is None:
        return Sum()
    before = turns(ring.ring)
    here = Sum()
    if ring.period:
        here = sum_of(Sum(before.terms, before.const + (ring.period - behind if behind else 0)).divided(ring.period))
    if ring.outer:
        here += product(turns(ring.outer), visits_per_pass(ring, env))
    if not ring.inner:
        return here
    total = product(here, passes(ring.inner, (*ring.outer, *ring.ring)))
    return total + turns(ring.inner) if behind == 0 else total


def visits_per_pass(ring: Ring, env: Mapping[str, int]) -> Expr:
    """How often one pass over the ring's loops names each element, the inner loops not counted."""
    n = passes(ring.ring, ring.outer)
    if not ring.period:
        return ONE
    if number(n, env) % ring.period:
        raise CannotCount("a pass over the loop does not go round its barriers a whole number of times")
    return expr.floordiv(n, Const(ring.period))


def distance(point: Ring, op: Ring) -> int | None:
    """How many turns before `point` names an element `op` named it, modulo the period; None when it never does."""
    if (point.ring, point.modulus, point.by) != (op.ring, op.modulus, op.by):
        raise CannotCount("two arrivals on the barriers go round them in different ways")
    apart = point.base + op.base.times(-1)
    if apart.terms:
        raise CannotCount("two arrivals on the barriers are a distance apart that only the launch knows")
    if not point.modulus:
        if apart.const:
            raise CannotCount("two arrivals on the barriers name different elements of one pass")
        return 0
    return next((d for d in range(point.period) if (d * point.by + apart.const) % point.modulus == 0), None)
