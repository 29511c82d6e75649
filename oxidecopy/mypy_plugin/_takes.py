"""The part of the pass that takes values: what may be taken, and what that does to the places that hold it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from mypy.nodes import CallExpr, Context, Expression, IndexExpr, NameExpr, Var

from oxidecopy.mypy_plugin import _codes, _messages
from oxidecopy.mypy_plugin._domain import ANY, Move, Place, State, Value, Values
from oxidecopy.mypy_plugin._features import leaks
from oxidecopy.mypy_plugin._values import Core

Taken: TypeAlias = "list[tuple[Place | None, Values]]"  # what a call took before, from its other arguments


class Takes(Core):
    """Consuming values, ending them with their block, and the recorded loops between."""

    def take(self, e: Expression, values: Values, state: State, what: str, call: CallExpr, taken: Taken) -> None:
        """`call` takes what `e` is; `taken` is what it took before, from its other arguments."""
        if not values:
            return
        if self.ledger is not None:
            leaks.settle(self, self.stands_for(values, state), state)
        name = self.text(e)
        place = self.place_of(e, state)
        if any(value in held and not (place and other and state.are_apart(place, other)) for other, held in taken for value in values):
            self.reports.say(_codes.MOVED, e, _messages.twice(self.noun(next(iter(values))), name, what))
            return
        taken.append((place, values))
        if isinstance(e, IndexExpr) and self.index_part(e) == ANY:
            why, note = _messages.unknown_index()
            self.reports.say(_codes.BORROWED, e, _messages.borrowed(name, why), note)
            return
        owner = next((value for value in values if value.borrowed and value.depth == 0), None)
        if owner is not None:
            self.reports.say(_codes.BORROWED, e, _messages.borrowed(name, owner.borrowed))
        self.check_loops(e, values)
        self._spare(e, values, call, state)
        self.go(values, Move(what=what, line=call.line, node=call), state, place)
        if isinstance(e, NameExpr) and isinstance(e.node, Var) and e.node in state.names:
            state.names[e.node] = {value: Move(what=what, line=call.line, node=call) for value in state.names[e.node]}

    def check_lent(self, e: Expression, values: Values, what: str, taken: Taken) -> None:
        """What a call takes cannot be lent to it as well."""
        for _, gone in taken:
            if len(values) == 1 and gone.keys() == values.keys():
                self.reports.say(_codes.MOVED, e, _messages.lent_too(self.noun(next(iter(values))), self.text(e), what))

    def _spare(self, e: Expression, values: Values, call: CallExpr, state: State) -> None:
        """A part is taken of one object of several: what is apart from the object's place loses nothing."""
        owner = self.owner_of(e, state) if state.apart and len(values) > 1 else None
        if owner is None:
            return
        apart = {(id(call), place) for pair in state.apart if owner in pair for place in pair if place != owner}
        again = id(call) in state.takers()  # another turn of a loop: what it took then, it took of others perhaps
        before = state.spared
        state.spared = frozenset(pair for pair in before if pair[0] != id(call)) | (apart & before if again else apart)

    def go(self, values: Values, move: Move, state: State, place: Place | None) -> None:
        """These values, which `place` holds, go: certainly when there is only one that they can be."""
        self.mark(values, move if len(values) == 1 else move.possibly(), state, place)
        for slot in {slot for value in values for slot in value.containers}:
            # One of its elements, through a loop's target: which one is not known.
            self.mark(self.elements(slot, state), move.possibly(), state)

    def take_elements(self, e: Expression, values: Values, state: State, what: str, call: CallExpr, taken: Taken) -> None:
        """`f(*xs)`: all elements are taken."""
        for container in values:
            self.slot(container, ANY, state)
            parts = {part: held for (owner, part), held in state.slots.items() if owner is container and part.startswith("[")}
            for held in parts.values():
                self.take(e, held, state, what, call, taken)

    def end(self, values: Iterable[Value], what: str, node: Context, state: State) -> None:
        """The block that these values belong to is over."""
        ended = self.reachable(values, state)
        self.mark(ended, Move(what=what, line=node.line, node=node, ended=True), state)

    def check_loops(self, e: Expression, values: Values, *, inward: bool = True) -> None:
        """A recorded loop's body is recorded once: nothing may be used up on another side of it than it was made on.

        Without `inward`, what was made before the loop may be used in it.
        """
        for value in values:
            noun, name = self.noun(value), self.text(e)
            note = _messages.carried_note(noun)
            if value.carried is not None:
                loop = value.carried
                told = _messages.carried_round if loop in self.loops else _messages.carried_out
            elif inward and len(self.loops) > len(value.loops):
                loop = self.loops[len(value.loops)]
                told = _messages.carried
            else:
                continue
            self.reports.say(_codes.MOVED, e, told(noun, name, self.loop_names.get(loop, "the loop"), loop.line), note)
            leaks.excuse(self, values)
            return

    def check_left(self, state: State) -> None:
        """At a function's end: what was taken out of something borrowed must have been put back."""
        for slot_owner in {owner for owner, _ in state.slots if owner.borrowed and owner.depth == 0}:
            seen, todo = {slot_owner}, [slot_owner]
            while todo:
                owner = todo.pop()
                for (other, part), held in state.slots.items():
                    if other is not owner:
                        continue
                    self._left(slot_owner, owner.label + part, held)
                    todo += held.keys() - seen
                    seen |= held.keys()

    def _left(self, root: Value, name: str, held: Values) -> None:
        for move in held.values():
            if move is not None and not move.ended:
                why = f"{root.borrowed}, and {_messages.not_put_back(move.maybe or len(held) > 1)}"
                self.reports.say(_codes.BORROWED, move.node, _messages.borrowed(name, why))
                return
