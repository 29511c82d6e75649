"""Loops that the device runs: `cta.range` and its kin, whose body is recorded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy.nodes import CallExpr, Expression

from oxidecopy.mypy_plugin import _names
from oxidecopy.mypy_plugin._types import fullname

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._calls import Call
    from oxidecopy.mypy_plugin._domain import State
    from oxidecopy.mypy_plugin._expressions import Expressions
    from oxidecopy.mypy_plugin._flow import Flow


def name(flow: Expressions, source: Expression) -> str:
    """The name of the recorded loop that a loop over `source` is, or nothing."""
    if not isinstance(source, CallExpr):
        return ""
    called = flow.resolve(source).fullname
    if called == _names.CTA_TILES and "order" in source.arg_names:
        return ""  # it may be one that records no loop
    return _names.RECORDED_LOOPS.get(called, "")


def tokens_stay(flow: Flow, call: Call, state: State) -> None:  # the shape of a feature
    """A token that is only lent to a call has to be of the same iteration, too."""
    _check(flow, call, inward=True)


def copies_stay(flow: Flow, call: Call, state: State) -> None:  # the shape of a feature
    """The copies of an inner loop all count for the phase of a token from outside of it; none may use one that comes out of a loop."""
    _check(flow, call, inward=False)


def _check(flow: Flow, call: Call, *, inward: bool) -> None:
    for pairs in call.arguments.values():
        for e, values in pairs:
            tokens = {value: move for value, move in values.items() if fullname(value.type) in _names.TOKENS}
            if tokens:
                flow.check_loops(e, tokens, inward=inward)
