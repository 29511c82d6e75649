"""All literal arithmetic that needs no dataflow: of one function, or of what stands in a module outside its functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

from mypy.nodes import (
    AssignmentStmt,
    CallExpr,
    Context,
    Expression,
    ForStmt,
    FuncDef,
    FuncItem,
    IndexExpr,
    MemberExpr,
    MypyFile,
    Node,
    TypeAliasExpr,
)
from mypy.types import CallableType, Type

from oxidecopy.mypy_plugin._features import box_rules, call_rules, shared_total
from oxidecopy.mypy_plugin._features.literals import Problem, View
from oxidecopy.mypy_plugin._features.literals_walk import inside

_CLUSTERED: Final = frozenset({"g2s_multicast", "arrive_remote", "arrive_expect_tx_remote", "multicast_ring"})
_CALLS: Final = _CLUSTERED | shared_total.METHODS | call_rules.METHODS | {box_rules.METHOD}  # all others are none of ours
_FUNCTIONS: Final[frozenset[type[object]]] = frozenset({FuncDef})
_LOOKED_AT: Final[frozenset[type[object]]] = frozenset({CallExpr, AssignmentStmt, ForStmt})


def literal_problems(tree: MypyFile, fn: FuncItem | None, types: Mapping[Expression, Type], module: str) -> Iterator[Problem]:
    """Errors of `fn`, nested functions left out; for None those of the module's own statements, classes' bodies included."""
    view = View(types=types, module=module)
    body = _Body()
    if fn is None:
        body.all(tree.defs)
    else:
        body.enter(fn)
    cluster = None
    if fn is not None and body.clustered:
        cluster = call_rules.declared_cluster(tree, fn, view)
    for node, annotation in body.annotations:
        yield from box_rules.of_type(node, annotation)
    for call in body.calls:
        yield from box_rules.of_call(call, view)
        yield from call_rules.of_call(call, view, cluster)
    if fn is not None and body.takes_memory:
        yield from shared_total.problems(fn, view, cluster, body.calls, body.loops)


@final
class _Body:
    """Calls, loops and annotations of one function, or of a module, without those of the functions inside."""

    def __init__(self) -> None:
        self.calls: list[CallExpr] = []
        self.loops: list[ForStmt] = []
        self.annotations: list[tuple[Context, Type]] = []
        self.clustered = False
        self.takes_memory = False

    def enter(self, fn: FuncItem) -> None:
        """The function's signature and body."""
        signature = fn.type if isinstance(fn.type, CallableType) else None
        if signature is not None:
            for argument, annotation in zip(fn.arguments, signature.arg_types, strict=False):
                self.annotations.append((argument, annotation))
            self.annotations.append((fn, signature.ret_type))
        self.all([fn.body])

    def all(self, roots: Sequence[Node]) -> None:
        """What is in these nodes, in the order of the source."""
        for node in inside(roots, _FUNCTIONS, _LOOKED_AT):
            if isinstance(node, CallExpr):
                self._call(node)
            elif isinstance(node, AssignmentStmt):
                self._assignment(node)
            elif isinstance(node, ForStmt):
                self.loops.append(node)
        self.calls.sort(key=_place)

    def _call(self, o: CallExpr) -> None:
        name = o.callee.name if isinstance(o.callee, MemberExpr) else ""
        if name in _CALLS:
            self.calls.append(o)
            self.clustered |= name in _CLUSTERED
            self.takes_memory |= name in shared_total.METHODS

    def _assignment(self, o: AssignmentStmt) -> None:
        if o.unanalyzed_type is not None and o.type is not None:
            self.annotations.append((o, o.type))
        if isinstance(o.rvalue, IndexExpr) and isinstance(o.rvalue.analyzed, TypeAliasExpr):
            self.annotations.append((o, o.rvalue.analyzed.node.target))


def _place(node: Context) -> tuple[int, int]:
    return node.line, node.column
