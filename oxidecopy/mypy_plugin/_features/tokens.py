"""Tokens: which barrier one came from, and that it is waited for there (`oxidecopy-token`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy.nodes import Expression
from mypy.types import Instance

from oxidecopy.mypy_plugin import _codes, _messages
from oxidecopy.mypy_plugin._domain import State, Value, Values

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._calls import Call
    from oxidecopy.mypy_plugin._flow import Flow


def arrived(flow: Flow, call: Call, state: State) -> None:  # the shape of a feature
    """The token of an arrival comes from the barrier that it was made on."""
    if call.result is not None:
        call.result.sources |= frozenset(call.held)


def waited(flow: Flow, call: Call, state: State) -> None:
    """All tokens of a wait come from this barrier, as far as that is known."""
    receiver = call.callee.receiver
    if receiver is None or not call.held:
        return
    for name in ("token", "more", "#0", "#1"):
        for e, values in call.arguments.get(name, ()):
            _check(flow, receiver, call.held, e, values)


def _check(flow: Flow, receiver: Expression, held: Values, e: Expression, values: Values) -> None:
    sources = {source for value in values for source in value.sources}
    if not sources or any(not value.sources for value in values) or _types_differ(flow, receiver, e):
        return
    if {_family(s) for s in sources} & {_family(b) for b in held} or any(map(_vague, (*sources, *held))):
        return
    made_by = ", ".join(sorted(f'"{flow.label(source)}"' for source in sources))
    flow.reports.say(_codes.TOKEN, e, _messages.other_barrier(flow.text(e), made_by, flow.text(receiver)))


def _types_differ(flow: Flow, receiver: Expression, e: Expression) -> bool:
    """Brands or kinds differ: mypy has said so itself."""
    barrier, token = flow.type_of(receiver), flow.type_of(e)
    return isinstance(barrier, Instance) and isinstance(token, Instance) and barrier.args[1:] != token.args


def _family(value: Value) -> tuple[int, str]:
    """The newest and the older values of one site may be each other."""
    return (id(value.node), "") if value.known_site else (id(value), value.label)


def _vague(value: Value) -> bool:
    """It may be any of several: an element at an unknown index, or a loop's target."""
    return bool(value.containers) or "[*]" in value.label
