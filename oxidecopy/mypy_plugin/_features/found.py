"""What stands in the source where mypy says something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from mypy.nodes import AssignmentStmt, CallExpr, Expression, FuncDef, MemberExpr, MypyFile, NameExpr, Node, Var
from mypy.types import ProperType, Type, get_proper_type

from oxidecopy.mypy_plugin._features.literals_walk import NO_LEAVES, Walker


def _called(call: CallExpr) -> str:
    return call.callee.name if isinstance(call.callee, NameExpr | MemberExpr) else ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A place in a file. `maps`: mypy's types of expressions, the newest first."""

    tree: MypyFile
    maps: Sequence[Mapping[Expression, Type]]
    line: int
    column: int

    def type_of(self, e: Expression) -> ProperType | None:
        """What mypy inferred, or was told."""
        for known in self.maps:
            if e in known:
                return get_proper_type(known[e])
        return get_proper_type(e.node.type) if isinstance(e, NameExpr) and isinstance(e.node, Var) else None

    def receiver(self, method: str) -> Expression | None:
        """`bar` of `bar.method` there."""
        found = [node.expr for node in self._at(MemberExpr) if isinstance(node, MemberExpr) and node.name == method]
        return found[0] if found else None

    def name(self) -> Expression | None:
        """The name that stands there."""
        found = [node for node in self._at(NameExpr) if isinstance(node, NameExpr)]
        return found[0] if found else None

    def call(self, method: str) -> CallExpr | None:
        """The call of a function of this name that begins there."""
        found = [n for n in self._at(CallExpr) if isinstance(n, CallExpr) and _called(n) == method]
        return found[0] if found else None

    def _at(self, cls: type[Expression]) -> list[Node]:
        found: list[Node] = []

        def look(node: Node) -> None:
            if (node.line, node.column) == (self.line, self.column):
                found.append(node)
            walker.deeper(node)

        walker = Walker({cls: look}, leaves=NO_LEAVES)
        walker.all(self.tree.defs)
        return found

    def made(self, variable: Var) -> AssignmentStmt | None:
        """The nearest assignment to a variable before this place."""
        found: list[AssignmentStmt] = []

        def look(s: AssignmentStmt) -> None:
            if s.line < self.line and any(isinstance(target, NameExpr) and target.node is variable for target in s.lvalues):
                found.append(s)

        Walker({AssignmentStmt: look}).all(self.tree.defs)
        return max(found, key=lambda s: s.line) if found else None

    def declared(self, variable: Var) -> bool:
        """It is a parameter."""
        found: list[bool] = []

        def look(function: FuncDef) -> None:
            found.append(any(argument.variable is variable for argument in function.arguments))
            walker.deeper(function)

        walker = Walker({FuncDef: look})
        walker.all(self.tree.defs)
        return any(found)
