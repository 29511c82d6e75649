"""Where things stand in one file: found in one look at the expressions that mypy has types of, quicker than by walks over the tree."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias, final

from mypy.nodes import (
    AssignmentStmt,
    Block,
    CallExpr,
    Context,
    Expression,
    ForStmt,
    IfStmt,
    ListExpr,
    MatchStmt,
    MemberExpr,
    NameExpr,
    Node,
    StarExpr,
    Statement,
    TryStmt,
    TupleExpr,
    WhileStmt,
    WithStmt,
)

At: TypeAlias = "tuple[int, int]"  # line and column

_NOWHERE: Final[At] = (-1, -1)  # the end of what mypy knows no end of: nothing is in it
_DISPLAYS: Final = (TupleExpr, ListExpr)


@final
class Index:
    """Names by what they stand for, and the calls of methods that somebody asks for."""

    def __init__(self, expressions: Iterable[Expression], methods: Collection[str]) -> None:
        self._names: dict[Node, list[NameExpr]] = {}
        self._in_order: set[Node] = set()  # those whose names are sorted
        calls: list[CallExpr] = []
        for e in expressions:
            if isinstance(e, NameExpr):
                if e.node is not None:
                    self._names.setdefault(e.node, []).append(e)
            elif isinstance(e, CallExpr) and isinstance(e.callee, MemberExpr) and e.callee.name in methods:
                calls.append(e)
        self._calls = sorted(calls, key=start)
        self._places = [start(call) for call in self._calls]

    def calls(self, outer: Context | None, inner: Iterable[Context]) -> Iterator[CallExpr]:
        """Calls in a function, or in the module, without those of the functions inside it; in the order of the source."""
        at = 0 if outer is None else bisect_left(self._places, start(outer))
        last = len(self._places) if outer is None else bisect_right(self._places, end(outer))
        for function in sorted(inner, key=start) if at < last else ():
            until = bisect_left(self._places, start(function), at, last)
            yield from self._calls[at:until]
            at = bisect_right(self._places, end(function), until, last)
        yield from self._calls[at:last]

    def bound_anew(self, variable: Node, loop: ForStmt | WhileStmt, swallowing: Collection[WithStmt]) -> bool:
        """Does each iteration bind a variable before anything can read it? No, where that cannot be seen at a glance."""
        names = self._names.get(variable, [])
        if variable not in self._in_order:
            names.sort(key=start)
            self._in_order.add(variable)
        names = names[bisect_left(names, start(loop), key=start) : bisect_right(names, end(loop), key=start)]
        if not names:
            return False  # it is bound or read in another way
        if isinstance(loop, ForStmt):
            source = start(loop.expr), end(loop.expr)
            if any(source[0] <= start(name) <= source[1] for name in names):
                return False
            if _is_target(names[0], [loop.index]):
                return True
        return _binds_first(loop.body, names, swallowing)


def _binds_first(block: Block | None, names: list[NameExpr], swallowing: Collection[WithStmt]) -> bool:
    """Is the first of these names, all there are in order, bound whenever the block comes to any of them?"""
    first = start(names[0])
    for s in block.body if block is not None else ():
        if end(s) < first:
            continue
        if first < start(s):
            return False
        inside = [name for name in names if start(name) <= end(s)]
        if isinstance(s, AssignmentStmt):
            return all(_is_target(name, s.lvalues) for name in inside)
        if isinstance(s, WithStmt):
            return _with_binds_first(s, inside, alone=len(inside) == len(names), swallowing=swallowing)
        if len(inside) < len(names):
            return False
        if isinstance(s, ForStmt) and _is_target(names[0], [s.index]):
            return not any(start(s.expr) <= start(name) <= end(s.expr) for name in names)
        return any(_holds(part, names) and _binds_first(part, names, swallowing) for part in _parts(s))
    return False


def _with_binds_first(s: WithStmt, names: list[NameExpr], *, alone: bool, swallowing: Collection[WithStmt]) -> bool:
    """`alone`: there are no names behind the block, which an exception that it holds back would bring us to."""
    if not s.body.body:
        return False
    head = [name for name in names if start(name) < start(s.body.body[0])]
    if head:
        return all(_is_target(name, [target for target in s.target if target is not None]) for name in head)
    return (alone or s not in swallowing) and _binds_first(s.body, names, swallowing)


def _parts(s: Statement) -> list[Block | None]:
    if isinstance(s, IfStmt):
        return [*s.body, s.else_body]
    if isinstance(s, ForStmt | WhileStmt):
        return [s.body, s.else_body]
    if isinstance(s, TryStmt):
        return [s.body, *s.handlers, s.else_body, s.finally_body]
    return list(s.bodies) if isinstance(s, MatchStmt) else []


def _holds(block: Block | None, names: list[NameExpr]) -> bool:
    """All of the names are in it."""
    if block is None or not block.body:
        return False
    return start(block.body[0]) <= start(names[0]) and start(names[-1]) <= end(block.body[-1])


def _is_target(name: NameExpr, targets: Iterable[Expression]) -> bool:
    """It is one of the names that are bound, and not one that is read on the way to an attribute or element."""
    for target in targets:
        if target is name:
            return True
        if isinstance(target, _DISPLAYS) and _is_target(name, target.items):
            return True
        if isinstance(target, StarExpr) and _is_target(name, [target.expr]):
            return True
    return False


def start(node: Context) -> At:
    """Where it begins."""
    return node.line, node.column


def end(node: Context) -> At:
    """Where it ends."""
    return _NOWHERE if node.end_line is None or node.end_column is None else (node.end_line, node.end_column)


NO_INDEX: Final = Index((), ())
