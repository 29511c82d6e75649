"""A walk over statements and expressions in the order of execution. Mypy's own visitors are compiled: no class can be theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from mypy import nodes as n

if TYPE_CHECKING:
    from mypy.nodes import Node

# Where the parts of a node are, in order. What is not here has none, or none that a call may stand in.
PARTS: Final[Mapping[type[object], tuple[str, ...]]] = {
    n.Block: ("body",),
    n.ExpressionStmt: ("expr",),
    n.AssignmentStmt: ("rvalue", "lvalues"),
    n.OperatorAssignmentStmt: ("lvalue", "rvalue"),
    n.IfStmt: ("expr", "body", "else_body"),
    n.WhileStmt: ("expr", "body", "else_body"),
    n.ForStmt: ("expr", "index", "body", "else_body"),
    n.ReturnStmt: ("expr",),
    n.RaiseStmt: ("expr", "from_expr"),
    n.AssertStmt: ("expr", "msg"),
    n.DelStmt: ("expr",),
    n.WithStmt: ("expr", "target", "body"),
    n.TryStmt: ("body", "handlers", "else_body", "finally_body"),
    n.MatchStmt: ("subject", "guards", "bodies"),
    n.ClassDef: ("decorators", "defs"),
    n.Decorator: ("original_decorators", "func"),
    n.OverloadedFuncDef: ("items",),
    n.FuncDef: ("body",),
    n.LambdaExpr: ("body",),
    n.CallExpr: ("callee", "args"),
    n.MemberExpr: ("expr",),
    n.IndexExpr: ("base", "index"),
    n.SliceExpr: ("begin_index", "end_index", "stride"),
    n.TupleExpr: ("items",),
    n.ListExpr: ("items",),
    n.SetExpr: ("items",),
    n.DictExpr: ("items",),
    n.ConditionalExpr: ("cond", "if_expr", "else_expr"),
    n.OpExpr: ("left", "right"),
    n.AssignmentExpr: ("value", "target"),
    n.ComparisonExpr: ("operands",),
    n.UnaryExpr: ("expr",),
    n.StarExpr: ("expr",),
    n.CastExpr: ("expr",),
    n.AssertTypeExpr: ("expr",),
    n.RevealExpr: ("expr",),
    n.AwaitExpr: ("expr",),
    n.YieldExpr: ("expr",),
    n.YieldFromExpr: ("expr",),
    n.ListComprehension: ("generator",),
    n.SetComprehension: ("generator",),
    n.GeneratorExpr: ("sequences", "condlists", "left_expr"),
    n.DictionaryComprehension: ("sequences", "condlists", "key", "value"),
}

LEAVES: Final[frozenset[type[object]]] = frozenset(
    {n.NameExpr, n.IntExpr, n.StrExpr, n.FloatExpr, n.PassStmt}
)  # nothing is in them, and no handler asks for them

NO_LEAVES: Final[frozenset[type[object]]] = frozenset()
_SEVERAL: Final = (list, tuple)

Handler = Callable[..., None]


class Walker:
    """Visits nodes; `handlers` take over those of a class, and go deeper themselves where they want to."""

    def __init__(self, handlers: Mapping[type[object], Handler], leaves: frozenset[type[object]] = LEAVES) -> None:
        self._handlers = handlers
        self._leaves = leaves

    def visit(self, node: Node | None) -> None:
        """One node with all that is in it."""
        if node is None:
            return
        handler = self._handlers.get(type(node))
        if handler is not None:
            handler(node)
        elif type(node) in PARTS:
            self.deeper(node)

    def deeper(self, node: Node) -> None:
        """What is inside a node."""
        for name in PARTS.get(type(node), ()):
            value = getattr(node, name)
            if isinstance(value, list):
                self._each(value)
            elif value is not None and type(value) not in self._leaves:
                self.visit(value)

    def _each(self, values: Iterable[object]) -> None:
        for value in values:
            if isinstance(value, list | tuple):
                self._each(value)
            elif isinstance(value, n.Node) and type(value) not in self._leaves:
                self.visit(value)

    def all(self, many: Iterable[Node]) -> None:
        """One after the other."""
        for node in many:
            self.visit(node)


def nothing(_: object) -> None:
    """The handler of what is left out."""


def inside(roots: Iterable[object], skipped: frozenset[type[object]], wanted: frozenset[type[object]]) -> Iterator[object]:
    """The nodes of the classes `wanted`, in any order, which is quicker than a walk; nothing that is in one of the classes `skipped`."""
    todo = list(roots)
    while todo:
        node = todo.pop()
        kind = type(node)
        if kind in wanted:
            yield node
        parts = PARTS.get(kind)
        if parts is None:
            if isinstance(node, _SEVERAL):
                todo += node
        elif kind not in skipped:
            for name in parts:
                todo.append(getattr(node, name))  # a list made for each node costs more


# The same for statements alone; what stands in a function is not looked at.
_BLOCKS: Final[Mapping[type[object], tuple[str, ...]]] = {
    n.Block: ("body",),
    n.IfStmt: ("body", "else_body"),
    n.WhileStmt: ("body", "else_body"),
    n.ForStmt: ("body", "else_body"),
    n.WithStmt: ("body",),
    n.TryStmt: ("body", "handlers", "else_body", "finally_body"),
    n.MatchStmt: ("bodies",),
    n.ClassDef: ("defs",),
    n.Decorator: ("func",),
    n.OverloadedFuncDef: ("items",),
}


def statements(roots: Iterable[object]) -> Iterator[Any]:
    """All statements, functions among them but not theirs, in any order."""
    todo = list(roots)
    while todo:
        node = todo.pop()
        parts = _BLOCKS.get(type(node))
        if parts is not None:
            for name in parts:
                part = getattr(node, name)
                if type(part) is list:
                    todo += part
                else:
                    todo.append(part)
        yield node


_SCOPES: Final[frozenset[type[object]]] = frozenset({n.FuncDef, n.LambdaExpr, n.ClassDef})


def any_of(node: Node, classes: frozenset[type[object]]) -> bool:
    """Is something of these classes inside, functions inside left out?"""
    return next(inside([node], _SCOPES, classes), None) is not None
