"""A proof without counting: no two instances of an op touch the same box.

Suppose two instances did. Where a coordinate only takes values at least a box apart, it is then the same for both. From equal expressions
follow equal symbols: a sum in which no smaller term can make up for a larger one gives its terms, quotient and remainder of one number give
the number. If all that tells instances apart follows, they were one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import final

from oxidecopy.isa.expr import Const, Expr, FloorDiv, Mod, Sym
from oxidecopy.verify.affine import Ranges, gather_terms

_ROUNDS = 32  # far more than expressions nest in practice; a proof that needs more is not found


def proves_distinct(
    coords: Iterable[Expr],
    extents: Iterable[int],
    ranges: Ranges,
    free: Iterable[str],
    unique: Mapping[str, tuple[Expr, ...]],
) -> bool:
    """True when boxes of `extents` at `coords` are disjoint for different values of the symbols `free`, each within `ranges`.

    `unique` are symbols with a value of their own for each instance (the tile that a counter gave), with what that tells.
    """
    facts = _Facts(ranges, unique)
    for e, n in zip(coords, extents, strict=True):
        r = ranges.of(e)
        if r.single or r.step >= n:
            facts.learn(e)
    return facts.give({name for name in free if not ranges.env[name].single})


@final
class _Facts:
    """Expressions known to have one value."""

    def __init__(self, ranges: Ranges, unique: Mapping[str, tuple[Expr, ...]]) -> None:
        self._ranges = ranges
        self._unique = unique
        self._known: set[Expr] = set()

    def give(self, wanted: set[str]) -> bool:
        """True once all of `wanted` follow from what was learnt."""
        for _ in range(_ROUNDS):
            names = {e.name for e in self._known if isinstance(e, Sym)}
            if wanted <= names:
                return True
            before = len(self._known)
            for e in list(self._known):
                self._derive(e)
            if len(self._known) == before:
                return False
        return False

    def learn(self, e: Expr) -> None:
        if not isinstance(e, Const):
            self._known.add(e)

    def _derive(self, e: Expr) -> None:
        if isinstance(e, Sym):
            for told in self._unique.get(e.name, ()):
                self.learn(told)
        elif isinstance(e, Mod):
            self._from_remainder(e)
        elif isinstance(e, FloorDiv):
            r = self._ranges.of(e.a)
            if isinstance(e.b, Const) and e.b.value and r.step % e.b.value == 0:
                self.learn(e.a)  # quotients of numbers that are a divisor or more apart
        else:
            self._from_sum(e)

    def _from_remainder(self, e: Mod) -> None:
        r = self._ranges.of(e.a)
        if not isinstance(e.b, Const) or e.b.value <= 0:
            return
        if r.hi - r.lo < e.b.value or self._quotient_known(e.a, e.b.value):
            self.learn(e.a)

    def _quotient_known(self, a: Expr, divisor: int) -> bool:
        if FloorDiv(a, Const(divisor)) in self._known:
            return True
        # (x // n) % m and x // (n * m) tell x // n
        return isinstance(a, FloorDiv) and isinstance(a.b, Const) and FloorDiv(a.a, Const(a.b.value * divisor)) in self._known

    def _from_sum(self, e: Expr) -> None:
        terms: dict[Expr, int] = {}
        gather_terms(e, 1, terms)
        left: list[tuple[int, int, Expr]] = []  # how far apart values of the term are, how far it goes, the term without its factor
        for atom, factor in terms.items():
            r = self._ranges.of(atom)
            if factor and not r.single and atom not in self._known:
                left.append((abs(factor) * r.step, abs(factor) * (r.hi - r.lo), atom))
        left.sort(key=lambda term: term[0])
        reach = 0
        for apart, width, _ in left:
            if apart <= reach:
                return
            reach += width
        for _, _, atom in left:
            self.learn(atom)
