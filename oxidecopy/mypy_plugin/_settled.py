"""Whether a loop has settled after its first turn: all that the turn left for the next one is what it found itself.

Most loops bind their names anew in each iteration. What such a name holds at the end of one is of no use to the next, though the state has
grown by it; and of values that only such names hold, nothing can be seen either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mypy.nodes import ForStmt, WhileStmt

from oxidecopy.mypy_plugin._domain import NONE, ZERO_BYTES, State, Value, Values, join_moves, unread

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._statements import Statements


def nothing_for_the_next(flow: Statements, loop: ForStmt | WhileStmt, head: State, end: State, source: Values) -> bool:
    """`head` is the state in which the turn began, `end` that after it, `source` what the loop goes over."""
    if flow.ledger is not None or head.apart or end.apart or head.spared or end.spared:
        return False
    roots: set[Value] = set(source)
    for variable, held in end.names.items():
        if _adds_nothing(held, head.names.get(variable, NONE)):
            roots.update(held)
        elif not flow.index.bound_anew(variable, loop, flow.swallowing):
            return False
    changed = set(_changed(flow, head, end))
    return not changed or changed.isdisjoint(reached(end, roots))


def _changed(flow: Statements, head: State, end: State) -> Iterator[Value]:
    """The values of which more is known than before, or less: what is in their attributes and elements, and bytes."""
    for slot, held in end.slots.items():
        before = head.slots[slot] if slot in head.slots else unread(slot, head, flow.lazy)
        if not _adds_nothing(held, before):
            yield slot[0]
    for slot in head.slots:
        if slot not in end.slots:
            yield slot[0]
    for barrier in {**head.bytes, **end.bytes}:
        if end.bytes.get(barrier, ZERO_BYTES) != head.bytes.get(barrier, ZERO_BYTES):
            yield barrier


def reached(state: State, roots: set[Value]) -> set[Value]:
    """All that can be found from these values."""
    inner: dict[Value, list[Values]] = {}
    for (owner, _), held in state.slots.items():
        inner.setdefault(owner, []).append(held)
    seen, todo = set(roots), list(roots)
    while todo:
        value = todo.pop()
        near = {*value.sources, *(owner for owner, _ in value.containers), *(other for held in inner.get(value, ()) for other in held)}
        if value.of is not None:
            near.add(value.of[0])
        todo += near - seen
        seen |= near
    return seen


def _adds_nothing(held: Values, before: Values) -> bool:
    """A place that held `before`, and may now hold `held` too, is the same as it was."""
    for value, move in held.items():
        if value not in before:
            return False
        old = before[value]
        both = join_moves(old, move)
        if (both and both.key) != (old and old.key):
            return False
    return True
