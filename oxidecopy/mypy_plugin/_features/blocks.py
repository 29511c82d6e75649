"""Scopes: a leader, group, slot or landed tile ends with the block that gave it (`oxidecopy-scope`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mypy.nodes import CallExpr, Expression, ForStmt, TupleExpr, WhileStmt, WithStmt
from mypy.types import CallableType, Instance, LiteralType, Overloaded, get_proper_type

from oxidecopy.mypy_plugin import _names
from oxidecopy.mypy_plugin._domain import NONE, State, Values, unions
from oxidecopy.mypy_plugin._types import fullname

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._statements import Statements

Given: TypeAlias = Values


def enter(flow: Statements, e: Expression, target: Expression, state: State) -> Given:
    """Binds what `with e as target` gives."""
    if isinstance(target, TupleExpr):
        return unions(enter(flow, e, item, state) for item in target.items)
    t = flow.type_of(target)
    if not flow.tracked(t):
        flow.assign(target, NONE, None, state)
        return NONE
    given: Given = {flow.fresh(("with", target), flow.text(target), t, target, state): None}
    flow.assign(target, given, None, state)
    return given


def leave(flow: Statements, s: WithStmt, e: Expression, given: Given, end: State) -> None:
    """The block is over: what the library gave it is no longer of use."""
    if given and opened(flow, e):
        flow.end(given, f'"{flow.text(e)}"', s, end)


def opened(flow: Statements, e: Expression) -> bool:
    """One of the library's blocks."""
    return isinstance(e, CallExpr) and flow.resolve(e).fullname.startswith(_names.PREFIX)


def conditional(flow: Statements, s: WithStmt) -> bool:
    """A block that the device may skip."""
    return any(isinstance(e, CallExpr) and flow.resolve(e).fullname == _names.WHEN for e in s.expr)


def end_of_iteration(flow: Statements, s: WhileStmt | ForStmt, end: State) -> None:
    """Stages that a loop walks over end with their iteration."""
    if not isinstance(s, ForStmt) or not isinstance(s.expr, CallExpr) or flow.resolve(s.expr).fullname not in _names.ENDING_LOOPS:
        return
    targets = s.index.items if isinstance(s.index, TupleExpr) else [s.index]
    for target in targets:
        flow.end(flow.evaluate(target, end, whole=False), f'"{flow.text(s.expr)}"', s, end)


def swallows(flow: Statements, s: WithStmt) -> bool:
    """One of its managers may hold an exception back: its `__exit__` gives a bool, as mypy reads it."""
    return any(_swallows(flow, e) for e in s.expr)


def always_raises(flow: Statements, s: WithStmt) -> bool:
    """`with pytest.raises(...)`: its body is there to raise."""
    return any(fullname(flow.type_of(e)) in _names.RAISES for e in s.expr)


def _swallows(flow: Statements, e: Expression) -> bool:
    t = flow.type_of(e)
    if not isinstance(t, Instance):
        return False
    found = t.type.get("__aexit__") or t.type.get("__exit__")
    declared = get_proper_type(found.type) if found is not None else None
    if isinstance(declared, Overloaded):
        declared = declared.items[0]
    given = get_proper_type(declared.ret_type) if isinstance(declared, CallableType) else None
    if isinstance(given, LiteralType):
        return given.value is True
    return isinstance(given, Instance) and given.type.fullname == "builtins.bool"
