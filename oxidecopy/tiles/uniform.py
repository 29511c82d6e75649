"""Whether all CTAs of a cluster compute the same integer.

Asked of values, not proven from the form: an expression counts as uneven when two CTAs of one cluster get different values from it at
the same point of the program, for some plausible sizes and counters. So what is refused for it has a counterexample. An index that is read
from memory is taken to differ where its place in the array does.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from typing import Final

from oxidecopy.isa.expr import Expr, Sym, SymKind, evaluate, symbols
from oxidecopy.program.nesting import fits
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL

_TRIALS: Final = 3
_SPREAD: Final = 2_654_435_761, 4093  # a prime factor and a prime: places that differ read values that differ
_PLACES: Final = frozenset({SymKind.BLOCK, SymKind.RANK, SymKind.OPAQUE})


def uneven(e: Expr, cluster: tuple[int, int, int], reads: Mapping[str, Expr], along: int | None = None) -> bool:
    """True when CTAs of one cluster get different values from `e`; `reads` are the places of the indices read so far, by name.

    `along`: only CTAs that differ in this axis alone are compared.
    """
    if not all(map(fits, (e, *reads.values()))) or not any(s.kind in _PLACES for s in symbols(e)):
        return False
    known = list({s.name: s for read in (e, *reads.values()) for s in symbols(read)}.values())
    draw = random.Random(0)  # sizes to try, the same ones each time
    return any(len(values) > 1 for _ in range(_TRIALS) for values in _values(e, cluster, reads, known, draw, along))


def _values(
    e: Expr, cluster: tuple[int, int, int], reads: Mapping[str, Expr], known: list[Sym], draw: random.Random, along: int | None
) -> list[set[int]]:
    """What the CTAs that are compared get, for one drawing of everything else; nothing where that divides by zero."""
    drawn = {s.name: _drawn(s, cluster, draw) for s in known}
    first = [size * draw.randrange(8) for size in cluster]
    found: dict[tuple[int, ...], set[int]] = {}
    # The x dimension is the fastest, as in the rank.
    for rank, (z, y, x) in enumerate(itertools.product(*(range(n) for n in reversed(cluster)))):
        place = (x, y, z)
        block = dict(zip(BLOCK_SYMBOLS, (a + b for a, b in zip(first, place, strict=True)), strict=True))
        env = drawn | block | {RANK_SYMBOL: rank}
        compared = () if along is None else tuple(at for axis, at in enumerate(place) if axis != along)
        try:
            for name, read in reads.items():
                env[name] = evaluate(read, env) * _SPREAD[0] % _SPREAD[1]
            found.setdefault(compared, set()).add(evaluate(e, env))
        except ZeroDivisionError:
            return []
    return list(found.values())


def _drawn(symbol: Sym, cluster: tuple[int, int, int], draw: random.Random) -> int:
    if symbol.kind is SymKind.GRID:
        return cluster["xyz".index(symbol.name[-1])] * draw.randint(8, 64)
    return draw.randrange(8) if symbol.kind is SymKind.LOOP else draw.randint(1, 4096)
