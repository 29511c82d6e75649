"""Bytes: what a barrier is told to expect against what is issued on it, path by path (`oxidecopy-tx`).

Only sums that are certain are compared: an amount that is not a literal makes the sum unknown, and the verifier decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy.nodes import ARG_STAR, Expression

from oxidecopy.mypy_plugin import _codes, _messages, _names
from oxidecopy.mypy_plugin._domain import BYTES_MAX, UNKNOWN_BYTES, ZERO_BYTES, Bytes, State, Value, Values
from oxidecopy.mypy_plugin._features.literals import View, made_bytes
from oxidecopy.mypy_plugin._types import fullname

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._calls import Call
    from oxidecopy.mypy_plugin._flow import Flow


def _view(flow: Flow, state: State) -> View:
    """Numbers as written; of a tile, the size that it was made with."""

    def tile(e: Expression) -> int | None:
        sizes = {value.nbytes for value in flow.peek(e, state)}
        return sizes.pop() if len(sizes) == 1 else None

    return View(types=flow.types, module=flow.module, tile=tile)


def tile_made(flow: Flow, call: Call, state: State) -> None:
    """`cta.shared(...)`: its size."""
    if call.result is not None:
        call.result.nbytes = made_bytes(call.expr, _view(flow, state))


def announced(flow: Flow, call: Call, state: State) -> None:
    """Adds what a barrier is told to expect."""
    _add(call.held, _total(flow, call, state), 0, state)


def completed(flow: Flow, call: Call, state: State) -> None:
    """`complete_tx` takes bytes off as a landed copy does."""
    _add(call.held, 0, _total(flow, call, state), state)


def _total(flow: Flow, call: Call, state: State) -> int | None:
    """The sum of `nbytes`."""
    view = _view(flow, state)
    known = ARG_STAR not in call.expr.arg_kinds
    amounts = [view.announced(e) if known else None for e, _ in call.arguments.get("nbytes", [])]
    return None if None in amounts else sum(a for a in amounts if a is not None)


def issued(flow: Flow, call: Call, state: State) -> None:
    """Adds what a copy reports to its token's barrier: the tile's bytes, or those that it is told to move."""
    view, asked = _view(flow, state), call.arguments.get("nbytes", [])
    for e, _ in call.arguments.get("tile", [])[:1]:
        _add(_barriers(call), 0, view.announced(asked[0][0]) if asked else view.bytes_of_tile(e), state)


def issued_to_many(flow: Flow, call: Call, state: State) -> None:
    """A multicast reports to barriers of other CTAs: their sums are not known here."""
    for barrier in _barriers(call):
        state.bytes[barrier] = UNKNOWN_BYTES


def issued_to_peers(flow: Flow, call: Call, state: State) -> None:
    """A copy to another CTA reports to that one's barrier, and this one's is told by its peers: the sums are not known here."""
    for _, values in call.arguments.get("bar", []):
        for barrier in values:
            state.bytes[barrier] = UNKNOWN_BYTES


def lent(flow: Flow, call: Call, state: State) -> None:
    """A function that is given a barrier or its token may announce bytes or issue copies: nothing is known of the sums afterwards."""
    for values in (*call.actuals, call.held):
        for value in values:
            kind = fullname(value.type)
            for barrier in value.sources if kind in _names.TOKENS else {value} if kind == _names.BARRIER else ():
                state.bytes[barrier] = UNKNOWN_BYTES


def joined(before: dict[Value, Bytes], end: State) -> None:
    """After a block that the device may skip: the sums with it, or those without."""
    for barrier in {**before, **end.bytes}:
        sums = before.get(barrier, ZERO_BYTES) | end.bytes.get(barrier, ZERO_BYTES)
        end.bytes[barrier] = sums if len(sums) <= BYTES_MAX else UNKNOWN_BYTES


def widen(head: State, settled: State) -> None:
    """Sums that still grow in a loop's second round would grow with every round: they are not known."""
    for barrier, sums in settled.bytes.items():
        if sums != head.bytes.get(barrier, ZERO_BYTES):
            settled.bytes[barrier] = UNKNOWN_BYTES


def _barriers(call: Call) -> Values:
    found: Values = {}
    for _, values in call.arguments.get("token", []):
        found.update({source: None for value in values for source in value.sources})
    return found


def _add(barriers: Values, told: int | None, moved: int | None, state: State) -> None:
    for barrier in barriers:
        before = state.bytes.get(barrier, ZERO_BYTES)
        after = frozenset(
            (None if a is None or told is None else a + told, None if b is None or moved is None else b + moved) for a, b in before
        )
        sums = after | before if len(barriers) > 1 else after
        small = len(sums) <= BYTES_MAX and all((a or 0) < 1 << 22 and (b or 0) < 1 << 22 for a, b in sums)
        state.bytes[barrier] = sums if small else UNKNOWN_BYTES


def waited(flow: Flow, call: Call, state: State) -> None:
    """A phase ends: both sums must be the same on it, and begin anew."""
    receiver = call.callee.receiver
    for barrier in call.held:
        # What a nested function does to a captured token is not followed.
        sums = UNKNOWN_BYTES if flow.nested else state.bytes.get(barrier, ZERO_BYTES)
        known = [(a, b) for a, b in sums if a is not None and b is not None]
        # Only when no path has them equal: a path may be one that is never taken.
        if known and len(known) == len(sums) and all(a != b for a, b in known) and receiver is not None:
            told, moved = min(known)
            text = _messages.expected_bytes(flow.text(receiver), told, moved)
            flow.reports.say(_codes.TX, call.expr, text, _messages.expected_note(told, moved))
        if len(call.held) == 1:
            state.bytes[barrier] = ZERO_BYTES
