"""Between which bounds an expression stays in one launch: what decides 32 or 64 bits, and plain `/` and `%` or rounding down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, assert_never

from oxidecopy.isa.expr import Add, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Sym

INT32: Final = 1 << 31
INT64: Final = 1 << 63


class Span(NamedTuple):
    """Every integer from `lo` to `hi`."""

    lo: int
    hi: int

    @property
    def narrow(self) -> bool:
        """It fits 32 bits."""
        return self.lo >= -INT32 and self.hi < INT32

    @property
    def representable(self) -> bool:
        """It fits 64 bits."""
        return self.lo >= -INT64 and self.hi < INT64


def span(e: Expr, env: Mapping[str, Span]) -> Span:  # noqa: C901 - one case per kind of node
    """A superset of the values of `e`."""
    match e:
        case Const(value):
            return Span(value, value)
        case Sym(name):
            return env[name]
        case Add(a, b):
            x, y = span(a, env), span(b, env)
            return Span(x.lo + y.lo, x.hi + y.hi)
        case Mul(a, b):
            return _hull(span(a, env), span(b, env), lambda p, q: p * q)
        case FloorDiv(a, b):
            x, y = span(a, env), span(b, env)
            if y.lo <= 0 <= y.hi:  # the simulator refuses the launch that divides by zero
                most = max(abs(x.lo), abs(x.hi))
                return Span(-most - 1, most)
            return _hull(x, y, lambda p, q: p // q)
        case Mod(a, b):
            return _remainder(span(a, env), span(b, env))
        case Min(a, b):
            x, y = span(a, env), span(b, env)
            return Span(min(x.lo, y.lo), min(x.hi, y.hi))
        case Max(a, b):
            x, y = span(a, env), span(b, env)
            return Span(max(x.lo, y.lo), max(x.hi, y.hi))
        case _:
            assert_never(e)


def _hull(x: Span, y: Span, of: Callable[[int, int], int]) -> Span:
    corners = [of(p, q) for p in x for q in y]
    return Span(min(corners), max(corners))


def _remainder(x: Span, y: Span) -> Span:
    if y.lo == y.hi and y.lo > 0 and x.lo // y.lo == x.hi // y.lo:
        return Span(x.lo % y.lo, x.hi % y.lo)
    return Span(min(0, y.lo + 1), max(0, y.hi - 1))
