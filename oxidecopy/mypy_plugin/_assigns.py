"""The part of the pass that binds: assignments, loop targets, patterns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from mypy.nodes import ARG_POS, CallExpr, Expression, IndexExpr, ListExpr, MemberExpr, NameExpr, RefExpr, StarExpr, TupleExpr, Var
from mypy.types import ProperType, TupleType, Type

from oxidecopy.mypy_plugin._domain import ANY, NONE, Place, Slot, State, Value, Values, union, unions
from oxidecopy.mypy_plugin._features import leak_paths, leaks
from oxidecopy.mypy_plugin._takes import Takes
from oxidecopy.mypy_plugin._types import class_of
from oxidecopy.mypy_plugin._values import named_part, settled_on


class Assigns(Takes):
    """Binding names, attributes and elements."""

    def tracked(self, t: Type | None) -> bool:
        """May a value of this type go?"""
        return self.tracking.tracked(t)

    def assign(self, target: Expression, values: Values, source: Expression | None, state: State) -> None:
        """`target = source`, which is `values`."""
        self._rebind([(target, source)], state)
        self._bind(target, values, source, state)

    def _rebind(self, pairs: list[tuple[Expression, Expression | None]], state: State) -> None:
        """Which places hold from here on what other places held."""
        if state.apart or state.spared:
            places = [(self.place_of(target, state), self.place_of(source, state)) for target, source in pairs]
            state.rebound({target: source for target, source in places if target is not None})

    def _bind(self, target: Expression, values: Values, source: Expression | None, state: State) -> None:
        if isinstance(source, CallExpr) and isinstance(target, NameExpr | MemberExpr | IndexExpr):
            self.named[source] = self.text(target)
        if isinstance(target, NameExpr):
            self._assign_name(target, values, state)
            leak_paths.bound(self, target, values, state)
        elif isinstance(target, TupleExpr | ListExpr):
            self._unpack(target, values, source, state)
        elif isinstance(target, MemberExpr):
            base = self.evaluate(target.expr, state, whole=False)
            self._write(base, f".{target.name}", values, state, certain=len(base) == 1)
        elif isinstance(target, IndexExpr):
            base = self.evaluate(target.base, state, whole=False)
            self.evaluate(target.index, state)
            part = self.index_part(target)
            self._write(base, part, values, state, certain=len(base) == 1 and part != ANY)
        elif isinstance(target, StarExpr):
            self.assign(target.expr, NONE, None, state)

    def _assign_name(self, target: NameExpr, values: Values, state: State) -> None:
        variable = target.node
        if not isinstance(variable, Var):
            return
        if self.function is None or not _is_global(target):
            self.locals.add(variable)
        if values:
            state.names[variable] = values
        elif variable in self.locals:
            state.names.pop(variable, None)
        else:
            state.names[variable] = NONE

    def _write(self, base: Values, part: str, values: Values, state: State, *, certain: bool) -> None:
        if not base or not all(owner.whole for owner in base):
            leaks.escape(self, values, state)
        for owner in base:
            place = (owner, part)
            state.slots[place] = values if certain else union(values, self.slot(owner, part, state))

    def _unpack(self, target: TupleExpr | ListExpr, values: Values, source: Expression | None, state: State) -> None:
        items = target.items
        star = next((i for i, item in enumerate(items) if isinstance(item, StarExpr)), None)
        display = isinstance(source, TupleExpr | ListExpr) and star is None and len(source.items) == len(items) and len(values) == 1
        length = None if star is None else _length(source, values)
        # All are read before any is written: `a, b = b, a`.
        read: list[tuple[Expression, Values, Expression | None]] = []
        for i, item in enumerate(items):
            t = self.type_of(item)
            known = source.items[i] if display and isinstance(source, TupleExpr | ListExpr) else None
            if isinstance(item, StarExpr):
                read.append((item, self._rest(item, values, (i, len(items) - i - 1), length, state), None))
            elif display:
                (owner,) = values
                read.append((item, state.slots.get((owner, f"[{i}]"), NONE), known))
            else:
                part = f"[{i}]" if star is None or i < star else ANY if length is None else f"[{length - len(items) + i}]"
                read.append((item, self._element(item, values, part, t, state), None))
        apart = list(self._apart_elements(items, values, state)) if star is None else []
        self._rebind([(item, known) for item, _, known in read], state)
        for item, held, known in read:
            self._bind(item.expr if isinstance(item, StarExpr) else item, held, known, state)
        state.part(apart)

    def _apart_elements(self, items: list[Expression], values: Values, state: State) -> Iterator[frozenset[Place]]:
        """Names that get what is apart in each of the containers that it may be: `a, b = (x, y) if c else (y, x)`."""
        if len(values) < 2 or not all(owner.whole for owner in values):
            return
        names = [(i, item.node) for i, item in enumerate(items) if isinstance(item, NameExpr) and isinstance(item.node, Var)]
        for (i, one), (j, other) in combinations(names, 2):
            if one is not other and all(state.are_apart((owner, f"[{i}]"), (owner, f"[{j}]")) for owner in values):
                yield frozenset({one, other})

    def _rest(self, star: StarExpr, values: Values, around: tuple[int, int], length: int | None, state: State) -> Values:
        """What a starred target takes in: a list of its own, of what is neither for a target before it nor for one behind."""
        t = self.type_of(star.expr)
        if not values or not self.tracked(t):
            return NONE
        rest = self.fresh(("rest", star), self.text(star.expr), t, star, state)
        rest.whole = all(owner.whole for owner in values)
        before, behind = around
        for owner in values:
            if owner.borrowed:
                rest.borrowed, rest.depth = owner.borrowed, owner.depth + 1
            elements = {part: held for (other, part), held in state.slots.items() if other is owner and part.startswith("[")}
            if not owner.whole and length is None:
                elements[ANY] = self.slot(owner, ANY, state)
            for part, held in elements.items():
                number = int(part[1:-1]) if part[1:-1].isdecimal() else None
                if number is not None and (number < before or (length is not None and number >= length - behind)):
                    continue
                place = rest, ANY if number is None or (behind and length is None) else f"[{number - before}]"
                state.slots[place] = union(state.slots.get(place, NONE), held)
        return {rest: None}

    def _element(self, target: Expression, values: Values, part: str, t: ProperType | None, state: State) -> Values:
        if isinstance(target, TupleExpr | ListExpr):
            return unions(self.slot(owner, part, state) for owner in values)
        if not self.tracked(t):
            return NONE
        if not values:
            return {self.fresh(("target", target), self.text(target), t, target, state): None}
        return settled_on(values, unions(self._part_of(owner, part, state, t) for owner in values))

    def _part_of(self, owner: Value, part: str, state: State, t: ProperType | None) -> Values:
        """An element."""
        part = named_part(owner, part)
        together = state.slots.get((owner, ANY))
        if part == ANY or not part.startswith("[") or (owner, part) in state.slots or not together:
            return self.slot(owner, part, state, t)
        # One of those that are only known together: not the one at another index, so it goes by itself.
        held = self.slot(owner, part, state, t)
        for value in held:
            value.sources |= frozenset(source for other in together for source in other.sources)
            value.loops = max((other.loops for other in together), key=len)
            value.carried = next((other.carried for other in together if other.carried is not None), value.carried)
        moves = [move for move in together.values() if move is not None]
        if moves:
            certain = len(moves) == len(together) and not any(move.maybe for move in moves)
            held = state.slots[owner, part] = dict.fromkeys(held, moves[0] if certain else moves[0].possibly())
        return held

    def bind_element(self, target: Expression, source: Expression, values: Values, state: State) -> None:
        """Binds a loop's target to the next element of `source`."""
        if isinstance(target, TupleExpr) and isinstance(source, CallExpr) and isinstance(source.callee, RefExpr):
            name = source.callee.fullname
            args = [arg for arg, kind in zip(source.args, source.arg_kinds, strict=True) if kind is ARG_POS]
            if name == "builtins.enumerate" and len(target.items) == 2 and args:
                self.assign(target.items[0], NONE, None, state)
                self.bind_element(target.items[1], args[0], values, state)
                return
            if name == "builtins.zip" and len(target.items) == len(args):
                for item, arg in zip(target.items, args, strict=True):
                    self.bind_element(item, arg, self.evaluate(arg, state.copy(), whole=False), state)
                return
            if self._is_items(source.callee) and len(target.items) == 2:
                self.assign(target.items[0], NONE, None, state)
                self._bind_item(target.items[1], frozenset((value, ANY) for value in values), state)
                return
        self._bind_item(target, frozenset((value, ANY) for value in values), state)

    def _is_items(self, callee: RefExpr) -> bool:
        """`d.items` of a mapping."""
        owner = class_of(self.type_of(callee.expr)) if isinstance(callee, MemberExpr) and callee.name == "items" else None
        return owner is not None and owner.has_base("typing.Mapping")

    def _bind_item(self, target: Expression, slots: frozenset[Slot], state: State) -> None:
        """Binds a loop's target to what is in one of these places: which one, each iteration says anew."""
        if slots and isinstance(target, TupleExpr | ListExpr):
            elements = unions(self.elements(slot, state) for slot in sorted(slots, key=_by_label))
            star = next((i for i, item in enumerate(target.items) if isinstance(item, StarExpr)), len(target.items))
            for i, item in enumerate(target.items):
                known = frozenset((element, f"[{i}]") for element in elements) if i < star else frozenset[Slot]()
                self._bind_item(item.expr if isinstance(item, StarExpr) else item, known, state)
            return
        t = self.type_of(target)
        if isinstance(target, TupleExpr | ListExpr) and not self.tracked(t):
            t = next((self.type_of(i) for i in target.items if self.tracked(self.type_of(i))), None)
        if not self.tracked(t):
            self.assign(target, NONE, None, state)
            return
        self.assign(target, {self._item(target, slots, t, state): None}, None, state)

    def _item(self, target: Expression, slots: frozenset[Slot], t: ProperType | None, state: State) -> Value:
        item = self.fresh(("item", target), self.text(target), t, target, state)
        item.containers = slots
        owners = [owner for owner, _ in slots]
        lender = next((owner for owner in owners if owner.borrowed), None)
        if lender is not None:
            item.borrowed, item.depth = lender.borrowed, lender.depth + 1
        if owners:
            item.loops = min((owner.loops for owner in owners), key=len)
            item.carried = next((owner.carried for owner in owners if owner.carried is not None), None)
        return item


def _length(source: Expression | None, values: Values) -> int | None:
    """How many elements there are, where the source says it."""
    if isinstance(source, TupleExpr | ListExpr):
        return None if any(isinstance(item, StarExpr) for item in source.items) else len(source.items)
    lengths = {len(owner.type.items) if isinstance(owner.type, TupleType) else None for owner in values}
    return lengths.pop() if len(lengths) == 1 else None


def _by_label(slot: Slot) -> tuple[str, str]:
    return slot[0].label, slot[1]


def _is_global(target: NameExpr) -> bool:
    """Bound in a function by `global`."""
    return target.fullname != target.name and "." in (target.fullname or "")
