"""Many expressions rewritten together: what they share is looked at once, and those that are equal afterwards are one object.

So whoever keeps what it finds out about an expression, by its id, finds it out once for all equal ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never, final

from oxidecopy.isa.expr import BUILD, And, Answer, Bool, Cmp, Cond, Const, Expr, Not, Or, Sym


@final
class Rewriter:
    """Replaces symbols by expressions, by name; constants fold again. It keeps what it was given, whose ids therefore stay theirs."""

    def __init__(self, values: Mapping[str, Expr]) -> None:
        self._values = values
        self._done: dict[int, tuple[Expr, Expr]] = {}  # by id: what was given, and what it became
        self._one: dict[object, Expr] = {}  # by what is in it, before it folds: the object that stands for all equal ones
        self._ours: set[int] = set()  # ids of those objects

    def expr(self, e: Expr) -> Expr:
        """As `substitute`."""
        found = self._done.get(id(e))
        if found is not None:
            return found[1]
        if isinstance(e, Const):
            new = self._unique(e)
        elif isinstance(e, Sym):
            new = self._unique(self._values.get(e.name, e))
        else:
            a, b = self.expr(e.a), self.expr(e.b)
            key = (type(e), id(a), id(b))
            made = self._one.get(key)
            if made is None:
                built = BUILD[type(e)](a, b)
                same = type(built) is type(e) and built.a is e.a and built.b is e.b
                made = self._one[key] = self._unique(e if same else built)
            new = made
        self._done[id(e)] = (e, new)
        return new

    def cond(self, c: Cond) -> Cond:
        """As `substitute_cond`. Conditions are few: equal ones stay objects of their own."""
        match c:
            case Cmp(op, a, b):
                x, y = self.expr(a), self.expr(b)
                return c if x is a and y is b else Cmp(op, x, y)
            case And(a, b):
                return And(self.cond(a), self.cond(b))
            case Or(a, b):
                return Or(self.cond(a), self.cond(b))
            case Not(a):
                return Not(self.cond(a))
            case Bool() | Answer():
                return c
            case _:
                assert_never(c)

    def _unique(self, e: Expr) -> Expr:
        if id(e) in self._ours:
            return e
        if isinstance(e, Const):
            key: object = e.value
        elif isinstance(e, Sym):
            key = e
        else:
            a, b = self._unique(e.a), self._unique(e.b)
            key = (type(e), id(a), id(b))
            if a is not e.a or b is not e.b:
                e = type(e)(a, b)
        one = self._one.setdefault(key, e)
        self._ours.add(id(one))
        return one
