"""The part of the pass that binds: assignments, loop targets, patterns."""

from __future__ import annotations

from mypy.nodes import CallExpr, Expression, IndexExpr, ListExpr, MemberExpr, NameExpr, RefExpr, StarExpr, TupleExpr, Var
from mypy.types import ProperType, Type

from oxidecopy.mypy_plugin._domain import ANY, NONE, State, Value, Values, union, unions
from oxidecopy.mypy_plugin._takes import Takes


class Assigns(Takes):
    """Binding names, attributes and elements."""

    def tracked(self, t: Type | None) -> bool:
        """May a value of this type go?"""
        return self.tracking.tracked(t)

    def assign(self, target: Expression, values: Values, source: Expression | None, state: State) -> None:
        """`target = source`, which is `values`."""
        if isinstance(source, CallExpr) and isinstance(target, NameExpr | MemberExpr | IndexExpr):
            self.named[source] = self.text(target)
        if isinstance(target, NameExpr):
            self._assign_name(target, values, state)
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
        for owner in base:
            place = (owner, part)
            state.slots[place] = values if certain else union(values, self.slot(owner, part, state))

    def _unpack(self, target: TupleExpr | ListExpr, values: Values, source: Expression | None, state: State) -> None:
        items = target.items
        star = next((i for i, item in enumerate(items) if isinstance(item, StarExpr)), None)
        display = isinstance(source, TupleExpr | ListExpr) and star is None and len(source.items) == len(items) and len(values) == 1
        # All are read before any is written: `a, b = b, a`.
        read: list[tuple[Expression, Values, Expression | None]] = []
        for i, item in enumerate(items):
            t = self.type_of(item)
            known = source.items[i] if display and isinstance(source, TupleExpr | ListExpr) else None
            if isinstance(item, StarExpr):
                read.append((item, self._rest(values, state), None))
            elif display:
                (owner,) = values
                read.append((item, state.slots.get((owner, f"[{i}]"), NONE), known))
            else:
                part = ANY if star is not None and i > star else f"[{i}]"
                read.append((item, self._element(item, values, part, t, state), None))
        for item, held, known in read:
            self.assign(item.expr if isinstance(item, StarExpr) else item, held, known, state)

    def _rest(self, values: Values, state: State) -> Values:
        """What a starred target takes in: the same container, for what is known of it."""
        return values

    def _element(self, target: Expression, values: Values, part: str, t: ProperType | None, state: State) -> Values:
        if isinstance(target, TupleExpr | ListExpr):
            return unions(self.slot(owner, part, state) for owner in values)
        if not self.tracked(t):
            return NONE
        if not values:
            return {self.fresh(("target", target), self.text(target), t, target, state): None}
        return unions(self._part_of(owner, part, state, t) for owner in values)

    def _part_of(self, owner: Value, part: str, state: State, t: ProperType | None) -> Values:
        """An element; of a container whose elements are only known together, any of them."""
        if (owner, part) not in state.slots and (owner, ANY) in state.slots:
            return self.slot(owner, ANY, state, t)
        return self.slot(owner, part, state, t)

    def bind_element(self, target: Expression, source: Expression, values: Values, state: State) -> None:
        """Binds a loop's target to the next element of `source`."""
        if isinstance(target, TupleExpr) and isinstance(source, CallExpr) and isinstance(source.callee, RefExpr):
            name, args = source.callee.fullname, source.args
            if name == "builtins.enumerate" and len(target.items) == 2 and args:
                self.assign(target.items[0], NONE, None, state)
                self.bind_element(target.items[1], args[0], values, state)
                return
            if name == "builtins.zip" and len(target.items) == len(args):
                for item, arg in zip(target.items, args, strict=True):
                    self.bind_element(item, arg, self.evaluate(arg, state.copy(), whole=False), state)
                return
        t = self.type_of(target)
        if isinstance(target, TupleExpr | ListExpr) and not self.tracked(t):
            t = next((self.type_of(i) for i in target.items if self.tracked(self.type_of(i))), None)
        if not self.tracked(t):
            self.assign(target, NONE, None, state)
            return
        self.assign(target, {self._item(target, values, t, state): None}, None, state)

    def _item(self, target: Expression, values: Values, t: ProperType | None, state: State) -> Value:
        item = self.fresh(("item", target), self.text(target), t, target, state)
        item.containers = frozenset(values)
        owner = next((value for value in values if value.borrowed), None)
        if owner is not None:
            item.borrowed, item.depth = owner.borrowed, owner.depth + 1
        if values:
            item.loops = min((value.loops for value in values), key=len)
            item.carried = next((value.carried for value in values if value.carried is not None), None)
        return item


def _is_global(target: NameExpr) -> bool:
    """Bound in a function by `global`."""
    return target.fullname != target.name and "." in (target.fullname or "")
