"""What stands inside the same loops: over which values expressions range there, and what they are for all instances at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, final

import numpy as np
import numpy.typing as npt

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Add, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Sym, symbols
from oxidecopy.program.program import BLOCK_SYMBOLS
from oxidecopy.verify.affine import Range, Ranges

INSTANCES_MAX: Final = 1 << 18  # of one op: some 10 ms
_WIDEST: Final = 1 << 62

Column = npt.NDArray[np.int64]


@final
class Columns:
    """The instances of an op: which CTA each is on (x fastest), and the values of its expressions, each computed once."""

    def __init__(self, cta: Column, env: Mapping[str, Column]) -> None:
        self.cta = cta
        self.env = env
        self._known: dict[int, tuple[Expr, Column | np.int64]] = {}  # by id, with the expression, whose id therefore stays its own

    def knows(self, *exprs: Expr) -> bool:
        """Nothing in them is known only while the program runs."""
        return all(s.name in self.env for e in exprs for s in symbols(e))

    def of(self, e: Expr) -> Column | np.int64:
        """`e` for all instances."""
        if isinstance(e, Const):
            return np.int64(e.value)
        if isinstance(e, Sym):
            return self.env[e.name]
        found = self._known.get(id(e))
        if found is None:
            found = self._known[id(e)] = (e, _OPERATIONS[type(e)](self.of(e.a), self.of(e.b)))
        return found[1]

    def inside(self, loop: ops.Loop) -> Columns | None:
        """Each instance repeated for each iteration; None where that depends on what is known while it runs, or where they are too many."""
        if not self.knows(loop.start, loop.stop):
            return None
        start, stop = (np.broadcast_to(self.of(e), self.cta.shape) for e in (loop.start, loop.stop))
        trips = np.maximum(-((start - stop) // loop.step), 0) if loop.step > 0 else np.maximum(-((stop - start) // -loop.step), 0)
        total = int(trips.sum())
        if total > INSTANCES_MAX:
            return None
        outer = np.repeat(np.arange(len(self.cta)), trips)
        first = np.repeat(np.cumsum(trips) - trips, trips)
        env = {name: column[outer] for name, column in self.env.items()}
        env[loop.counter] = start[outer] + (np.arange(total) - first) * loop.step
        return Columns(self.cta[outer], env)


_OPERATIONS: Final[Mapping[type, Callable[..., Column | np.int64]]] = {
    Add: lambda a, b: a + b,
    Mul: lambda a, b: a * b,
    FloorDiv: lambda a, b: a // b,
    Mod: lambda a, b: a % b,
    Min: np.minimum,
    Max: np.maximum,
}


@final
class Around:
    """A nest of loops, by the ranges of all symbols in it, and the grid of the launch."""

    def __init__(self, loops: tuple[ops.Loop, ...], env: Mapping[str, Range], grid: tuple[int, int, int]) -> None:
        self.loops = loops
        self.ranges = Ranges(env)
        self._grid = grid
        self._fitting: set[int] = set()  # ids of expressions, which `ranges` keeps

    def fits(self, e: Expr) -> bool:
        """True when no number in `e` leaves what the columns hold."""
        if id(e) in self._fitting:
            return True
        span = self.ranges.of(e)
        if not -_WIDEST < span.lo <= span.hi < _WIDEST:
            return False
        if isinstance(e, Const | Sym):
            return True
        good = self.fits(e.a) and self.fits(e.b)
        if good:
            self._fitting.add(id(e))
        return good

    @cached_property
    def columns(self) -> Columns | None:
        """All instances of what stands there; None where they are too many, or hang on what is known only while the program runs."""
        x, y, z = self._grid
        if x * y * z > INSTANCES_MAX:
            return None
        number = np.arange(x * y * z, dtype=np.int64)
        found: Columns | None = Columns(number, dict(zip(BLOCK_SYMBOLS, (number % x, number // x % y, number // (x * y)), strict=True)))
        for loop in self.loops:
            found = found and found.inside(loop)
        return found
