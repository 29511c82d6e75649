"""All literal arithmetic that needs no dataflow: of one function, or of what stands in a module outside its functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

from mypy.nodes import (
    AssignmentStmt,
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
from oxidecopy.mypy_plugin._features.literals_walk import statements
from oxidecopy.mypy_plugin._index import Index

_CLUSTERED: Final = frozenset({"g2s_multicast", "arrive_remote", "arrive_expect_tx_remote", "multicast_ring"})
METHODS: Final = _CLUSTERED | shared_total.METHODS | call_rules.METHODS | {box_rules.METHOD}  # calls of all others are none of ours


def literal_problems(tree: MypyFile, fn: FuncItem | None, types: Mapping[Expression, Type], module: str, index: Index) -> Iterator[Problem]:
    """Errors of `fn`, nested functions left out; for None those of the module's own statements, classes' bodies included.

    `index` has the file's calls of `METHODS`.
    """
    view = View(types=types, module=module)
    body = _Body()
    if fn is None:
        body.all(tree.defs)
    else:
        body.enter(fn)
    calls = list(index.calls(fn, body.functions))
    called = {call.callee.name for call in calls if isinstance(call.callee, MemberExpr)}
    cluster = None
    if fn is not None and not called.isdisjoint(_CLUSTERED):
        cluster = call_rules.declared_cluster(tree, fn, view)
    for node, annotation in body.annotations:
        yield from box_rules.of_type(node, annotation)
    for call in calls:
        yield from box_rules.of_call(call, view)
        yield from call_rules.of_call(call, view, cluster)
    if fn is not None and not called.isdisjoint(shared_total.METHODS):
        yield from shared_total.problems(fn, view, cluster, calls, body.loops)


@final
class _Body:
    """Loops, annotations and functions of one function, or of a module, without what is in the functions inside."""

    def __init__(self) -> None:
        self.functions: list[FuncDef] = []
        self.loops: list[ForStmt] = []
        self.annotations: list[tuple[Context, Type]] = []

    def enter(self, fn: FuncItem) -> None:
        """The function's signature and body."""
        signature = fn.type if isinstance(fn.type, CallableType) else None
        if signature is not None:
            for argument, annotation in zip(fn.arguments, signature.arg_types, strict=False):
                self.annotations.append((argument, annotation))
            self.annotations.append((fn, signature.ret_type))
        self.all([fn.body])

    def all(self, roots: Sequence[Node]) -> None:
        """What is in these nodes."""
        for node in statements(roots):
            kind = type(node)
            if kind is AssignmentStmt:
                self._assignment(node)
            elif kind is ForStmt:
                self.loops.append(node)
            elif kind is FuncDef:
                self.functions.append(node)

    def _assignment(self, o: AssignmentStmt) -> None:
        if o.unanalyzed_type is not None and o.type is not None:
            self.annotations.append((o, o.type))
        if isinstance(o.rvalue, IndexExpr) and isinstance(o.rvalue.analyzed, TypeAliasExpr):
            self.annotations.append((o, o.rvalue.analyzed.node.target))
