"""Subexpressions that a program writes more than once: each gets a name where the last of its symbols becomes known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from oxidecopy.engines.cuda.emit.shares import worker
from oxidecopy.isa.expr import Add, And, Cmp, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym, SymKind, symbols
from oxidecopy.program.nesting import Node, expressions
from oxidecopy.program.program import Program

_INTEGERS: Final = (Add, Mul, FloorDiv, Mod, Min, Max)
_CHEAP: Final = 2  # operators that are written again rather than named


@final
class Common:
    """What is worth a name, innermost parts first; `ready` gives what becomes known with a symbol."""

    def __init__(self, program: Program) -> None:
        self._parents: dict[Expr, set[object]] = {}
        root = 0
        for step in program.walk():
            for _, e in expressions(step.op):
                root += 1
                self._note(e, root)
        self._wanted = [e for e, above in self._parents.items() if len(above) > 1 and _worth(e)]
        self._wanted.sort(key=_size)

    def ready(self, symbol: str, known: set[str]) -> list[Expr]:
        """Those that `symbol` completes; "" is for what is known from the start."""
        found = []
        for e in self._wanted:
            names = {s.name for s in symbols(e)}
            if names <= known and (symbol in names or not symbol):
                found.append(e)
        return found

    def _note(self, node: Node, above: object) -> None:
        stack: list[tuple[Node, object]] = [(node, above)]
        while stack:
            e, over = stack.pop()
            inside: object = over
            if isinstance(e, _INTEGERS):
                seen = self._parents.setdefault(e, set())
                known = bool(seen)
                seen.add(over)
                if known:
                    continue  # what is below it has been noted with it
                inside = e
            stack += [(child, inside) for child in _children(e)]


def _children(e: Node) -> Iterator[Node]:
    if isinstance(e, Not):
        yield e.a
    elif isinstance(e, (*_INTEGERS, Cmp, And, Or)):
        yield from (e.a, e.b)


def _size(e: Expr) -> int:
    return 0 if isinstance(e, Const | Sym) else 1 + _size(e.a) + _size(e.b)


def _worth(e: Expr) -> bool:
    """Divisions are; sums and products when they are long. What names no symbol is folded anyway."""
    if not any(True for _ in symbols(e)):
        return False
    return isinstance(e, FloorDiv | Mod) or _size(e) > _CHEAP


def short_name(e: Expr) -> str:
    """A name that says what it is, where that is short; else empty."""
    match e:
        case Mod(Sym(name), Const(n)) if n > 0:
            return f"{name}_mod_{n}"
        case FloorDiv(Sym(name), Const(n)) if n > 0:
            return f"{name}_div_{n}"
        case FloorDiv(Add(Sym(name, SymKind.EXTENT), Const(c)), Const(n)) if n > 1 and c == n - 1:
            return f"{name}_in_{n}"
        case _:
            return "block" if e == worker() else ""
