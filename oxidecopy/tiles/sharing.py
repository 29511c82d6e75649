"""Which CTAs of a cluster share a tile of a multicast ring: all of them, or those along one axis. Each loads one slice for the others."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, final

from oxidecopy.isa import expr
from oxidecopy.isa.expr import ONE, ZERO, Const, Expr, Sym, SymKind
from oxidecopy.program.program import RANK_SYMBOL
from oxidecopy.tiles.uniform import uneven

if TYPE_CHECKING:
    from collections.abc import Mapping

ClusterAxis: TypeAlias = Literal["x", "y"]
AXES: Final[tuple[ClusterAxis, ...]] = ("x", "y")
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
        # As many powers of two further as its row (its column) is: a table, as shifts are no index arithmetic.
        x, y, _ = self.cluster
        number, step = (expr.floordiv(_RANK, Const(x)), x) if self.along == "x" else (expr.mod(_RANK, Const(x)), 1)
        found: Expr = Const(every)
        for i in range((y if self.along == "x" else x) - 1):
            past = expr.minimum(ONE, expr.maximum(ZERO, expr.sub(number, Const(i))))
            found = expr.add(found, expr.mul(past, Const((every << (i + 1) * step) - (every << i * step))))
        return found

    @property
    def _apart(self) -> int:
        """Ranks from one CTA to the next one along the axis."""
        return self.cluster[0] if self.along == "y" else 1

    def uneven(self, e: Expr, reads: Mapping[str, Expr]) -> bool:
        """True when the CTAs that share the tile get different values from `e`."""
        return uneven(e, self.cluster, reads, None if self.along is None else AXES.index(self.along))


def told(sharing: tuple[Sharing, ...], cluster: tuple[int, int, int]) -> tuple[str, int]:
    """Who is told by a CTA that a stage is free, by the word of the op table, and how many they are: exactly those that load into it.

    No others: they do not wait for it, so what it says next could come too soon.
    """
    if not sharing:
        return "cluster", 0
    x, y, z = cluster
    axes = {each.along for each in sharing}
    if None in axes:
        return "cluster", x * y * z
    return {"x": ("x", x), "y": ("y", y), "xy": ("xy", x + y - 1)}["".join(sorted(str(axis) for axis in axes))]
