"""Bytes: what a barrier is told against what is issued on it, and the total of shared memory (`oxidecopy-tx`, `oxidecopy-smem`).

Only sums that are certain are compared: an amount that is not a literal makes the sum unknown, and the verifier decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy.nodes import ARG_STAR, Expression, MemberExpr, OpExpr, TupleExpr

from oxidecopy.mypy_plugin import _codes, _messages, _names
from oxidecopy.mypy_plugin._domain import BYTES_MAX, UNKNOWN_BYTES, ZERO_BYTES, State, Values
from oxidecopy.mypy_plugin._features.geometry import element_bytes, tile_bytes
from oxidecopy.mypy_plugin._types import fullname

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._calls import Call
    from oxidecopy.mypy_plugin._flow import Flow

SHARED_MAX: Final = 232_448  # bytes a block may have on sm_90: CUDA C++ Programming Guide, table of compute capabilities


def tile_made(flow: Flow, call: Call, state: State) -> None:  # noqa: ARG001  # the shape of a feature
    """`cta.shared(...)`: its size, and the running total of the function."""
    if call.result is None:
        return
    nbytes = _asked_bytes(flow, call)
    call.result.nbytes = nbytes
    sizes: dict[Expression, int] = flow.memory.setdefault("shared", {})
    if nbytes is None or call.expr in sizes:
        return
    before = sum(sizes.values())
    sizes[call.expr] = nbytes
    if before <= SHARED_MAX < before + nbytes:
        flow.reports.say(_codes.SMEM, call.expr, _messages.shared_total(nbytes, before + nbytes, SHARED_MAX))


def _asked_bytes(flow: Flow, call: Call) -> int | None:
    """From the result's type, or from the extents as written."""
    nbytes = tile_bytes(flow.type_of(call.expr))
    args = call.expr.args
    if nbytes is not None or len(args) < 2 or not isinstance(args[1], TupleExpr):
        return nbytes
    size = element_bytes(flow.type_of(call.expr))
    for item in args[1].items:
        extent = flow.constant(item)
        if size is None or extent is None:
            return None
        size *= extent
    return size


def announced(flow: Flow, call: Call, state: State) -> None:
    """Adds what a barrier is told to expect."""
    pairs = call.arguments.get("nbytes", [])
    known = ARG_STAR not in call.expr.arg_kinds
    amounts = [_amount(flow, e, values, state) if known else None for e, values in pairs]
    total = None if None in amounts else sum(a for a in amounts if a is not None)
    _add(call.held, total, 0, state)


def _amount(flow: Flow, e: Expression, values: Values, state: State) -> int | None:
    """The bytes that an argument stands for: a number, a tile, `tile.nbytes`, or a sum or product of them."""
    number = flow.constant(e)
    if number is not None:
        return number
    if isinstance(e, OpExpr) and e.op in "+*":
        left, right = _amount(flow, e.left, {}, state), _amount(flow, e.right, {}, state)
        if left is None or right is None:
            return None
        return left + right if e.op == "+" else left * right
    tile = e.expr if isinstance(e, MemberExpr) and e.name == "nbytes" else e
    return _tile_amount(flow, tile, values, state)


def _tile_amount(flow: Flow, e: Expression, values: Values, state: State) -> int | None:
    if fullname(flow.type_of(e)) not in (_names.TILE,):
        return None
    known = values or flow.peek(e, state)
    sizes = {value.nbytes for value in known}
    return sizes.pop() if len(sizes) == 1 and None not in sizes else tile_bytes(flow.type_of(e))


def issued(flow: Flow, call: Call, state: State) -> None:
    """Adds what a copy reports to its token's barrier."""
    for e, values in call.arguments.get("tile", [])[:1]:
        nbytes = _tile_amount(flow, e, values, state)
        _add(_barriers(call), 0, nbytes, state)


def issued_to_many(flow: Flow, call: Call, state: State) -> None:  # noqa: ARG001
    """A multicast reports to barriers of other CTAs: their sums are not known here."""
    for barrier in _barriers(call):
        state.bytes[barrier] = UNKNOWN_BYTES


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
        sums = state.bytes.get(barrier, ZERO_BYTES)
        known = [(a, b) for a, b in sums if a is not None and b is not None]
        # Only when no path has them equal: a path may be one that is never taken.
        if known and len(known) == len(sums) and all(a != b for a, b in known) and receiver is not None:
            told, moved = min(known)
            text = _messages.expected_bytes(flow.text(receiver), told, moved)
            flow.reports.say(_codes.TX, call.expr, text, _messages.expected_note(told, moved))
        if len(call.held) == 1:
            state.bytes[barrier] = ZERO_BYTES
