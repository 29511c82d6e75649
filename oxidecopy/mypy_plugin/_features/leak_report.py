"""What is said of leaks: at every way out of a function, what is owed there (`oxidecopy-leak`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, final

from mypy.nodes import CallExpr, Decorator, FuncItem, LambdaExpr, MemberExpr, MypyFile, NameExpr, RefExpr

from oxidecopy.mypy_plugin import _codes, _debts, _messages, _names
from oxidecopy.mypy_plugin._debts import Debt, Debts
from oxidecopy.mypy_plugin._domain import State, Value
from oxidecopy.mypy_plugin._features.leaks import Ledger
from oxidecopy.mypy_plugin._features.literals_walk import NO_LEAVES, Walker

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._flow import Flow


def report(flow: Flow, ends: Iterable[State], tree: MypyFile) -> None:
    """At every way out of the function; a path that raises is none, recording ends with it."""
    ledger = flow.ledger
    if ledger is None or flow.function is None:
        return
    place: _Place | None = None
    for value, debt in _left(ends).items():
        if not debt.paths or value.node is None or value.node in ledger.excused:
            continue
        if debt.kind == _debts.TOKEN and not _is_lost(ledger, value, debt):
            continue
        place = place or _Place(tree, flow.function)
        if debt.kind == _debts.GROUP and (place.is_called or not (place.is_pipeline or ledger.waits_for_groups)):
            continue  # its caller may wait for it; a helper that waits for none leaves that to whoever calls it, in another file perhaps
        at_end = debt.kind == _debts.BARRIER and place.is_pipeline
        level = flow.config.leaks_at_end if at_end else flow.config.leaks
        if level != "off":
            name = flow.label(value)
            text = _messages.leak(debt.kind, name, some=value.node in ledger.ever_used)
            flow.reports.say(_codes.LEAK, value.node, text, _messages.leak_note(debt.kind, name), level=level)


def _left(ends: Iterable[State]) -> Debts:
    """What is owed at some end. Of several pending groups, only the newest is pending for certain."""
    left: Debts = {}
    for end in ends:
        groups = [value for value, debt in end.owed.items() if debt.kind == _debts.GROUP]
        for value, debt in end.owed.items():
            if debt.kind != _debts.GROUP or value is groups[-1]:
                left[value] = _debts.either(left[value], debt) if value in left else debt
    return left


def _is_lost(ledger: Ledger, token: Value, debt: Debt) -> bool:
    """Nobody can wait for the token's phase by number: neither here nor, where a copy was issued with it, by a barrier of somebody else."""
    others = ledger.elsewhere | ledger.numbered
    families = set(map(_family, others))
    vague = any(map(_vague, others))
    for barrier in token.sources:
        if _family(barrier) in families or (_vague(barrier) and (debt.lent or vague)):
            return False
    return bool(token.sources)


def _vague(barrier: Value) -> bool:
    """It was there before, or is an element of something."""
    return not barrier.known_site or bool(barrier.containers)


def _family(value: Value) -> int:
    """The newest and the older values of one site may be each other."""
    return id(value.node) if value.known_site else id(value)


@final
class _Place:
    """The function in its file."""

    def __init__(self, tree: MypyFile, function: FuncItem) -> None:
        self.is_pipeline = False
        self.is_called = False
        name = "" if isinstance(function, LambdaExpr) else function.name

        def decorated(node: Decorator) -> None:
            if node.func is function:
                called = (d.callee if isinstance(d, CallExpr) else d for d in node.original_decorators)
                self.is_pipeline |= any(isinstance(d, RefExpr) and d.fullname == _names.PIPELINE for d in called)
            walker.deeper(node)

        def named(node: NameExpr | MemberExpr) -> None:
            self.is_called |= bool(name) and node.name == name
            walker.deeper(node)

        walker = Walker({Decorator: decorated, NameExpr: named, MemberExpr: named}, leaves=NO_LEAVES)
        walker.all(tree.defs)
        self.is_called &= not self.is_pipeline
