"""Whether all CTAs of a cluster compute the same integer.

Asked of values, not proven from the form: an expression counts as uneven when two CTAs of one cluster get different values from it at
the same point of the program, for some plausible sizes and counters. So what is refused for it has a counterexample.
"""

from __future__ import annotations

import itertools
import random
from typing import Final

from oxidecopy.isa.expr import Expr, Sym, SymKind, evaluate, symbols
from oxidecopy.program.nesting import fits
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL

_TRIALS: Final = 3
_PLACES: Final = frozenset({SymKind.BLOCK, SymKind.RANK})


def uneven(e: Expr, cluster: tuple[int, int, int]) -> bool:
    """True when CTAs of one cluster get different values from `e`."""
    known = {s.name: s for s in symbols(e)} if fits(e) else {}
    if not any(s.kind in _PLACES for s in known.values()):
        return False
    draw = random.Random(0)  # sizes to try, the same ones each time
    return any(len(_values(e, cluster, list(known.values()), draw)) > 1 for _ in range(_TRIALS))


def _values(e: Expr, cluster: tuple[int, int, int], known: list[Sym], draw: random.Random) -> set[int]:
    """What the CTAs of one cluster get, for one drawing of everything else; empty where that divides by zero."""
    env = {s.name: _drawn(s, cluster, draw) for s in known}
    first = [size * draw.randrange(8) for size in cluster]
    found: set[int] = set()
    # The x dimension is the fastest, as in the rank.
    for rank, (z, y, x) in enumerate(itertools.product(*(range(n) for n in reversed(cluster)))):
        block = dict(zip(BLOCK_SYMBOLS, (a + b for a, b in zip(first, (x, y, z), strict=True)), strict=True))
        try:
            found.add(evaluate(e, env | block | {RANK_SYMBOL: rank}))
        except ZeroDivisionError:
            return set()
    return found


def _drawn(symbol: Sym, cluster: tuple[int, int, int], draw: random.Random) -> int:
    if symbol.kind is SymKind.GRID:
        return cluster["xyz".index(symbol.name[-1])] * draw.randint(8, 64)
    return draw.randrange(8) if symbol.kind is SymKind.LOOP else draw.randint(1, 4096)
