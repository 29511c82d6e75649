"""Which tiles a CTA works on, in which order: loops whose counter is turned into element coordinates."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, final, get_args

from oxidecopy.errors import UsageError
from oxidecopy.isa import expr
from oxidecopy.isa.expr import ONE, ZERO, Const, Expr, Sym, SymKind
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.symbolic import Idx, SymIdx, constant, to_expr

if TYPE_CHECKING:
    from oxidecopy.typed.cta import Cta

Per = Literal["cta", "cluster"]
Affine: TypeAlias = Callable[[SymIdx, tuple[SymIdx, ...]], tuple[Idx, ...]]


class Order(Protocol):
    """An order of tiles: yields tile indices (not yet coordinates), once for each loop it records."""

    def visit(self, cta: Cta, counts: tuple[Expr, ...], worker: Expr, workers: Expr) -> Iterator[tuple[Expr, ...]]:
        """Tile indices in `counts` tiles per dimension, for worker number `worker` of `workers`."""


@final
@dataclass(frozen=True, slots=True)
class Linear:
    """Persistent: worker w takes tiles w, w + workers, w + 2 workers, ..., the innermost dimension fastest."""

    def visit(self, cta: Cta, counts: tuple[Expr, ...], worker: Expr, workers: Expr) -> Iterator[tuple[Expr, ...]]:
        """One loop."""
        for i in cta.range(SymIdx(share(product(counts), worker, workers), cta._recorder)):
            yield unravel(expr.add(worker, expr.mul(i.expr, workers)), counts)


@final
@dataclass(frozen=True, slots=True)
class Once:
    """One-shot: worker w takes tile w; workers beyond the last tile have nothing to do. The grid must have a worker for each tile."""

    def visit(self, cta: Cta, counts: tuple[Expr, ...], worker: Expr, workers: Expr) -> Iterator[tuple[Expr, ...]]:
        """One loop of at most one trip."""
        cta._recorder.require_of_launch(
            expr.Cmp(expr.CmpOp.LE, product(counts), workers),
            "`ox.order.once` gives each worker one box, and there are more boxes than workers: the others would be left out",
            "launch a CTA (a cluster) for each box, or use `ox.order.linear`",
        )
        trips = expr.minimum(ONE, expr.maximum(ZERO, expr.sub(product(counts), worker)))
        for _ in cta.range(SymIdx(trips, cta._recorder)):
            yield unravel(worker, counts)


@final
@dataclass(frozen=True, slots=True)
class Grouped:
    """Rasterised: persistent over groups of `rows` rows of tiles, down the rows first, so that workers nearby share columns in L2.

    The last rows, when `rows` does not divide their number, form a smaller group in a loop of its own.
    """

    rows: int

    def visit(self, cta: Cta, counts: tuple[Expr, ...], worker: Expr, workers: Expr) -> Iterator[tuple[Expr, ...]]:
        """Two loops: full groups, then the rest."""
        chosen = constant(self.rows)
        if len(counts) < 2 or chosen is None or chosen < 1:
            refuse(
                UsageError,
                "OX1110",
                "no such grouped order",
                got=f"rows={self.rows!r}, rank {len(counts)}",
                required="rows >= 1 and 2 dimensions or more",
                fix="ox.order.grouped(4); ox.order.linear for one dimension",
            )
        *batch, down, across = counts
        rows = Const(chosen)
        full = expr.floordiv(down, rows)
        left = expr.mod(down, rows)
        # Outer dimensions count as more rows of groups; the remainder of each of them comes in the second loop.
        outer = product(tuple(batch))
        cells = expr.mul(rows, across)
        first = expr.mul(expr.mul(outer, full), cells)
        mine = share(first, worker, workers)
        for i in cta.range(SymIdx(mine, cta._recorder)):
            t = expr.add(worker, expr.mul(i.expr, workers))
            group, cell = expr.floordiv(t, cells), expr.mod(t, cells)
            some = expr.maximum(ONE, full)
            y = expr.add(expr.mul(expr.mod(group, some), rows), expr.mod(cell, rows))
            yield (*unravel(expr.floordiv(group, some), tuple(batch)), y, expr.floordiv(cell, rows))
        rest = expr.maximum(ONE, left)
        total = expr.add(first, expr.mul(expr.mul(outer, left), across))
        for i in cta.range(SymIdx(mine, cta._recorder), SymIdx(share(total, worker, workers), cta._recorder)):
            t = expr.sub(expr.add(worker, expr.mul(i.expr, workers)), first)
            some = expr.maximum(ONE, expr.mul(rest, across))
            cell = expr.mod(t, some)
            y = expr.add(expr.mul(full, rows), expr.mod(cell, rest))
            yield (*unravel(expr.floordiv(t, some), tuple(batch)), y, expr.floordiv(cell, rest))


@final
@dataclass(frozen=True, slots=True)
class Custom:
    """A user's own order: `fn(i, counts)` gives the tile index of the worker's i-th tile; it records affine arithmetic only."""

    fn: Affine
    trips: Callable[[tuple[SymIdx, ...]], Idx]

    def visit(self, cta: Cta, counts: tuple[Expr, ...], worker: Expr, workers: Expr) -> Iterator[tuple[Expr, ...]]:
        """One loop."""
        del worker, workers
        known = tuple(SymIdx(c, cta._recorder) for c in counts)
        _check_call(self.trips, "trips", known)
        for i in cta.range(self.trips(known)):
            _check_call(self.fn, "fn", i, known)
            index: object = self.fn(i, known)
            if not isinstance(index, tuple) or len(index) != len(counts):
                refuse(
                    UsageError,
                    "OX1110",
                    "an order gives one tile index per dimension",
                    got=repr(index),
                    required=f"a tuple of {len(counts)}",
                    fix="lambda i, counts: (i // counts[1], i % counts[1])",
                )
            yield tuple(to_expr(x, "a tile index") for x in index)


def _check_call(fn: Callable[..., object], name: str, *args: object) -> None:
    """Python's own refusal of the call, in words of the order."""
    try:
        inspect.signature(fn).bind(*args)
    except (TypeError, ValueError) as problem:
        required = "fn(i, counts) and trips(counts)"
        refuse(
            UsageError,
            "OX1110",
            f"{name!r} of a custom order cannot be called",
            got=str(problem),
            required=required,
            fix="ox.order.custom(fn, trips)",
        )


def checked_order(order: object) -> Order:
    """`order`, when it is one."""
    if isinstance(order, type) or not callable(getattr(order, "visit", None)):
        refuse(
            UsageError,
            "OX1110",
            "no such order",
            got=described(order),
            required="ox.order.linear, once, grouped(rows), custom(fn, trips), or counter() for a schedule",
            fix="order=ox.order.linear",
        )
    return order  # type: ignore[return-value]  # as far as can be seen


def product(factors: tuple[Expr, ...]) -> Expr:
    """The product; 1 of none."""
    out: Expr = ONE
    for f in factors:
        out = expr.mul(out, f)
    return out


def share(total: Expr, worker: Expr, workers: Expr) -> Expr:
    """How many of tiles 0 .. total - 1 worker takes when it takes every workers-th. Not negative, as worker < workers."""
    return expr.floordiv(expr.add(expr.sub(expr.add(total, workers), worker), Const(-1)), workers)


def unravel(t: Expr, counts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Tile number `t` as indices, innermost fastest; the outermost takes what is left."""
    out: list[Expr] = []
    for n in reversed(counts[1:]):
        out.append(expr.mod(t, n))
        t = expr.floordiv(t, n)
    return (t, *reversed(out)) if counts else ()


def worker_of(cta: Cta, per: Per) -> tuple[Expr, Expr]:
    """This CTA's (or its cluster's) number in the grid and how many there are, x fastest."""
    if per not in get_args(Per):
        refuse(
            UsageError,
            "OX1110",
            "no such share of the tiles",
            got=f"per={per!r}",
            required=" or ".join(map(repr, get_args(Per))),
            fix="per='cta'",
        )
    sizes = cta._recorder.cluster if per == "cluster" else (1, 1, 1)
    index: Expr = ZERO
    count: Expr = ONE
    for axis, size in zip("xyz", sizes, strict=True):
        block = expr.floordiv(Sym(f"block_idx.{axis}", SymKind.BLOCK), Const(size))
        index = expr.add(index, expr.mul(count, block))
        count = expr.mul(count, expr.floordiv(Sym(f"grid_dim.{axis}", SymKind.GRID), Const(size)))
    return index, count
