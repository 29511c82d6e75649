"""Which CTAs of a cluster share a tile of a multicast ring: all of them, or those along one axis. Each loads one slice for the others."""

from __future__ import annotations

import itertools
from math import prod
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, final

from oxidecopy.isa import expr
from oxidecopy.isa.expr import ONE, ZERO, Const, Expr, Sym, SymKind
from oxidecopy.program.program import RANK_SYMBOL
from oxidecopy.tiles.uniform import uneven

if TYPE_CHECKING:
    from collections.abc import Mapping

ClusterAxis: TypeAlias = Literal["x", "y", "z"]
AXES: Final[tuple[ClusterAxis, ...]] = ("x", "y", "z")
_RANK: Final = Sym(RANK_SYMBOL, SymKind.RANK)


@final
class Sharing(NamedTuple):
    """How one tile is shared.

    Attributes:
        cluster: CTAs of the cluster in x, y and z.
        along: the axis; None for the whole cluster.
        axis: the dimension of the array in which the slices follow each other, from the end where it is negative.
    """

    cluster: tuple[int, int, int]
    along: ClusterAxis | None = None
    axis: int = 0

    def dimension(self, rank: int) -> int:
        """`axis`, of an array of that rank."""
        return self.axis + rank if self.axis < 0 else self.axis

    @property
    def parts(self) -> int:
        """Slices of the tile."""
        return prod(self.cluster) if self.along is None else self.cluster[AXES.index(self.along)]

    @property
    def part(self) -> Expr:
        """Which slice a CTA loads."""
        if self.along is None:
            return _RANK
        return expr.mod(expr.floordiv(_RANK, Const(self._apart)), Const(self.parts)) if self.parts > 1 else ZERO

    @property
    def mask(self) -> Expr:
        """The CTAs that the slice goes to, one bit for each."""
        every = sum(1 << i * self._apart for i in range(self.parts))
        if self.along is None:
            return Const(every)
        # The CTAs before it on the other axes: the rank without this axis, one number after the other.
        before = expr.mod(_RANK, Const(self._apart)) if self._apart > 1 else ZERO
        behind = expr.floordiv(_RANK, Const(self._apart * self.parts))
        other = expr.add(before, expr.mul(behind, Const(self._apart)))
        masks = [every << i % self._apart + i // self._apart * self._apart * self.parts for i in range(prod(self.cluster) // self.parts)]
        found: Expr = Const(masks[0])
        for i, (low, high) in enumerate(itertools.pairwise(masks)):
            past = expr.minimum(ONE, expr.maximum(ZERO, expr.sub(other, Const(i))))
            found = expr.add(found, expr.mul(past, Const(high - low)))
        return found

    @property
    def _apart(self) -> int:
        """Ranks from one CTA to the next one along the axis."""
        return 1 if self.along is None else prod(self.cluster[: AXES.index(self.along)])

    def uneven(self, e: Expr, reads: Mapping[str, Expr]) -> bool:
        """True when the CTAs that share the tile get different values from `e`."""
        return uneven(e, self.cluster, reads, None if self.along is None else AXES.index(self.along))
