"""Debts along the paths of a function: conditions, loops, handlers, classes and functions inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mypy.nodes import ComparisonExpr, Expression, FuncItem, IntExpr, MemberExpr, NameExpr, OpExpr, StrExpr, UnaryExpr, Var
from mypy.patterns import Pattern, ValuePattern

from oxidecopy.mypy_plugin import _debts
from oxidecopy.mypy_plugin._debts import Debts, Fact
from oxidecopy.mypy_plugin._domain import State, Values
from oxidecopy.mypy_plugin._features.leaks import drop, escape
from oxidecopy.mypy_plugin._features.literals_walk import NO_LEAVES, Walker

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._values import Core

_NEGATED: Final[dict[str, str]] = {"!=": "==", "is not": "is", "not in": "in", ">=": "<", ">": "<="}


# ---- conditions
def assume(flow: Core, e: Expression, state: State, *, so: bool) -> None:
    """On this path, `e` is true, or is not."""
    if flow.ledger is None:
        return
    facts = frozenset(_facts(flow, e, so=so))
    state.owed = _debts.assume(state.owed, facts)
    state.facts |= facts


def _facts(flow: Core, e: Expression, *, so: bool) -> Iterator[Fact]:
    if isinstance(e, UnaryExpr) and e.op == "not":
        yield from _facts(flow, e.expr, so=not so)
    elif isinstance(e, OpExpr) and e.op in ("and", "or"):
        if e.op == ("and" if so else "or"):
            yield from _facts(flow, e.left, so=so)
            yield from _facts(flow, e.right, so=so)
        variables: set[Var] = set()
        key = _compound(flow, e, variables)
        if key:
            yield from _noted(flow, key, variables, so=so)
    elif isinstance(e, ComparisonExpr) and len(e.operators) == 1 and e.operators[0] in _NEGATED:
        yield from _fact(flow, e.operands, _NEGATED[e.operators[0]], so=not so)
    elif isinstance(e, ComparisonExpr) and len(e.operators) == 1:
        yield from _fact(flow, e.operands, e.operators[0], so=so)
    else:
        yield from _fact(flow, [e], "", so=so)


def _fact(flow: Core, operands: list[Expression], operator: str, *, so: bool) -> Iterator[Fact]:
    """A condition of names, attributes and constants only: it is the same whenever it is asked."""
    variables: set[Var] = set()
    if all(_constant(e, variables) for e in operands):
        yield from _noted(flow, f" {operator} ".join(map(flow.text, operands)), variables, so=so)


def _noted(flow: Core, key: str, variables: set[Var], *, so: bool) -> Iterator[Fact]:
    """The condition is forgotten when one of its variables is assigned."""
    for variable in variables:
        flow.ledger.facts_of.setdefault(variable, set()).add(key)  # type: ignore[union-attr]
    yield key, so


def _compound(flow: Core, e: Expression, variables: set[Var]) -> str:
    """`a and b > 2` as it is written; nothing where it may be something else the next time."""
    if isinstance(e, OpExpr) and e.op in ("and", "or"):
        parts, sign = [_compound(flow, e.left, variables), _compound(flow, e.right, variables)], e.op
    elif isinstance(e, ComparisonExpr) and len(e.operators) == 1:
        parts, sign = [_compound(flow, operand, variables) for operand in e.operands], e.operators[0]
    elif isinstance(e, UnaryExpr) and e.op == "not":
        parts, sign = [_compound(flow, e.expr, variables)], "not"
    else:
        return flow.text(e) if _constant(e, variables) else ""
    return f"({f' {sign} '.join(parts) if len(parts) > 1 else f'{sign} {parts[0]}'})" if all(parts) else ""


def _constant(e: Expression, variables: set[Var]) -> bool:
    if isinstance(e, MemberExpr):
        return _constant(e.expr, variables)
    if isinstance(e, NameExpr):
        if isinstance(e.node, Var):
            variables.add(e.node)
        return True
    return isinstance(e, IntExpr | StrExpr)


def matched(flow: Core, subject: Expression, pattern: Pattern, state: State) -> None:
    """`case 1` is `subject == 1`."""
    if flow.ledger is not None and isinstance(pattern, ValuePattern):
        facts = frozenset(_fact(flow, [subject, pattern.expr], "==", so=True))
        state.owed = _debts.assume(state.owed, facts)
        state.facts |= facts


def rebound(flow: Core, variable: Var, state: State) -> None:
    """What was known of its conditions is not known any more."""
    keys = frozenset(flow.ledger.facts_of.get(variable, ())) if flow.ledger is not None else frozenset()
    if keys:
        state.owed = _debts.forget(state.owed, keys)
        state.facts = frozenset(fact for fact in state.facts if fact[0] not in keys)


def bound(flow: Core, target: NameExpr, values: Values, state: State) -> None:
    """`name = values`: what functions inside this one, or around it, know by that name is theirs; `_name` says that nobody wants it."""
    ledger, variable = flow.ledger, target.node
    if ledger is None or not isinstance(variable, Var):
        return
    rebound(flow, variable, state)
    if variable in ledger.captured or variable not in flow.locals or variable.name.startswith("_"):
        escape(flow, values, state)


# ---- loops, handlers, functions inside
def enter_loop(flow: Core, body: State) -> None:
    """One look at a loop's body begins."""
    if flow.ledger is not None:
        flow.ledger.used.append(set())
        body.owed = _debts.carried(body.owed)


def leave_loop(flow: Core, head: State, ends: Iterable[State | None]) -> None:
    """What the body uses up of what came into it is used up when the loop is over, whatever path it took, and however often."""
    if flow.ledger is None:
        return
    used = flow.ledger.used.pop()
    for end in ends:
        if end is not None and used:
            drop({value for value in used if value in end.owed and end.owed[value].carried}, end)
    drop(used & head.owed.keys(), head)


def restore(entry: Debts, out: State | None) -> None:
    """After a loop: what was made before it is as fresh as it was."""
    if out is not None and out.owed:
        out.owed = {v: replace(debt, carried=entry[v].carried) if v in entry else debt for v, debt in out.owed.items()}


def only_if_in_any(state: State, others: Iterable[State | None]) -> None:
    """A path that there may not be: what all others use up is not owed on it."""
    if state.owed:
        known = [other.owed for other in others if other is not None]
        state.owed = {v: d for v, d in state.owed.items() if not known or any(v in owed for owed in known)}


def interrupted(end: State | None, points: list[State]) -> None:
    """Where a handler begins: what the block makes or uses up is not owed there, how far it came is not known."""
    states = [*points, *([end] if end is not None else [])]
    for point in points:
        if point.owed:
            point.owed = {v: d for v, d in point.owed.items() if all(v in other.owed for other in states)}


def kept(end: State | None, before: Debts) -> None:
    """The body of a class keeps what it makes."""
    if end is not None and end.owed:
        end.owed = {value: debt for value, debt in end.owed.items() if value in before}


def captured(flow: Core, function: FuncItem, state: State) -> None:
    """A function that is defined here may use up what it knows."""
    ledger = flow.ledger
    if ledger is None:
        return

    def look(e: NameExpr) -> None:
        if isinstance(e.node, Var):
            ledger.captured.add(e.node)
            escape(flow, state.names.get(e.node, {}), state)

    walker = Walker({NameExpr: look}, leaves=NO_LEAVES)
    walker.visit(function.body)
    walker.all([argument.initializer for argument in function.arguments if argument.initializer is not None])
