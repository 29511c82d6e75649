"""The part of the pass that makes, finds and uses up abstract values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from mypy.constant_fold import constant_fold_expr
from mypy.nodes import (
    CallExpr,
    ConditionalExpr,
    Context,
    DictExpr,
    Expression,
    FuncItem,
    GeneratorExpr,
    IndexExpr,
    IntExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    NameExpr,
    SetComprehension,
    SetExpr,
    SliceExpr,
    StrExpr,
    TupleExpr,
    UnaryExpr,
    Var,
    WithStmt,
)
from mypy.types import Instance, ProperType, TupleType, Type, get_proper_type

from oxidecopy.mypy_plugin import _codes, _debts, _messages, _names
from oxidecopy.mypy_plugin._domain import ANY, DEPTH_MAX, NONE, Move, Place, Slot, State, Value, Values, join_moves, union, unions
from oxidecopy.mypy_plugin._features import leaks
from oxidecopy.mypy_plugin._index import NO_INDEX
from oxidecopy.mypy_plugin._report import Reports
from oxidecopy.mypy_plugin._types import Tracking, class_of, fullname, literal

Key = tuple[object, ...]

CONTAINERS: Final = (TupleExpr, ListExpr, SetExpr, DictExpr, ListComprehension, GeneratorExpr, SetComprehension, IndexExpr)  # make one
_OPAQUE: Final = "..."  # how an expression without a name is shown


class Core(ABC):
    """The function under analysis, and its values."""

    def __init__(
        self, module: str, types: dict[Expression, Type], tracking: Tracking, outer: frozenset[Var], function: FuncItem | None
    ) -> None:
        self.module = module
        self.types = types
        self.tracking = tracking
        self.outer = outer  # variables of the functions around this one
        self.function = function  # None: the module's own statements
        self.reports = Reports()
        self.locals: set[Var] = set()
        self.named: dict[Context, str] = {}  # the name that the result of a call was given
        self.loops: tuple[Context, ...] = ()  # recorded loops around the statement in hand
        self.loop_names: dict[Context, str] = {}
        self.index = NO_INDEX
        self.chosen: dict[Expression, Var] = {}  # what `a if c else b` is, until it is given a name
        self.swallowing: set[WithStmt] = set()  # blocks that may hold an exception back
        self.nested: dict[FuncItem, frozenset[Var]] = {}  # functions inside this one, and the variables around them
        self.ledger: leaks.Ledger | None = None  # there when leaks are looked for
        self._values: dict[Key, Value] = {}
        self._told: set[tuple[int, str]] = set()

    @abstractmethod
    def evaluate(self, e: Expression | None, state: State, *, whole: bool = True) -> Values:
        """What `e` may be; it is used there. `whole`: all of it, not only a part."""

    def peek(self, e: Expression, state: State) -> Values:
        """What `e` may be, without a word about it."""
        quiet, self.reports.quiet = self.reports.quiet, True
        try:
            return self.evaluate(e, state.copy(), whole=False)
        finally:
            self.reports.quiet = quiet

    # ---- types
    def type_of(self, e: Expression) -> ProperType | None:
        """What mypy inferred."""
        t = self.types.get(e)
        if t is None and isinstance(e, NameExpr) and isinstance(e.node, Var):
            t = e.node.type
        return get_proper_type(t)

    def constant(self, e: Expression) -> int | None:
        """The integer that an expression always is."""
        folded = constant_fold_expr(e, self.module)
        return folded if type(folded) is int else literal(self.types.get(e))

    # ---- making values
    def value(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a site."""
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = make()
        return found

    def lazy(self, slot: Slot) -> Values:
        """What an attribute or element holds that nobody wrote to: one value of its own."""
        owner, part = slot
        if owner.depth >= DEPTH_MAX:
            return NONE
        made = owner.parts.get(part)
        if made is None:
            made = Value(self.label(owner) + part, borrowed=owner.borrowed, depth=owner.depth + 1, loops=owner.loops, of=slot)
            made.carried = owner.carried
            owner.parts[part] = made
        return {made: None}

    def slot(self, owner: Value, part: str, state: State, t: ProperType | None = None) -> Values:
        """What an attribute or element of `owner` holds."""
        part = named_part(owner, part)
        held = state.slots.get((owner, part))
        if held is None:
            held = state.slots[owner, part] = self.lazy((owner, part))
        for value in held:
            if value.type is None:
                value.type = t
        return held

    def fresh(self, key: Key, label: str, t: ProperType | None, node: Context, state: State) -> Value:
        """A new value made at a site; the one that the site made before, in a loop, becomes an older one."""
        value = self.value(key, lambda: Value(label, t, node, known_site=True, loops=self.loops))
        if value in state.made:
            self._age(value, state)
        state.made |= {value}
        state.bytes.pop(value, None)
        return value

    def _age(self, value: Value, state: State) -> None:
        """All that still holds the newest value of this site holds an older one."""
        if value.older is None:
            value.older = value.twin()
        value.older.sources |= value.sources
        value.older.containers |= value.containers
        self._substitute(self._twins(value, value.older), state)

    def retire(self, loop: Context, state: State) -> None:
        """A recorded loop goes on: what it made is of a past iteration from here on."""
        passing: dict[Value, Value] = {}
        for value in state.made:
            if loop in value.loops and value.carried is None:
                if value.past is None:
                    value.past = value.twin(carried=loop)
                passing.update(self._twins(value, value.past))
        if passing:
            self._substitute(passing, state)

    def elements(self, slot: Slot, state: State) -> Values:
        """What a place holds; of any element of a container, what all of them hold."""
        owner, part = slot
        if part != ANY:
            return union(self.slot(owner, part, state), state.slots.get((owner, ANY), NONE))
        held = self.slot(owner, ANY, state)
        for (other, known), more in state.slots.items():
            if other is owner and (known.startswith("[") or known[1:] in fields_of(owner)):
                held = union(held, more)
        return held

    def stands_for(self, values: Values, state: State) -> Values:
        """These, and what the loops' targets among them stand for."""
        return unions([values, *(self.elements(slot, state) for value in values for slot in self._behind(value, state))])

    def _behind(self, value: Value, state: State) -> frozenset[Slot]:
        """The places that a loop's target, or a part of it, stands for."""
        if value.of is None or value.containers:
            return value.containers
        owner, part = value.of
        if part != ANY and part.startswith("[") and (owner, ANY) in state.slots:
            return frozenset({(owner, ANY)})
        return frozenset((element, part) for slot in self._behind(owner, state) for element in self.elements(slot, state))

    def _twins(self, value: Value, twin: Value) -> dict[Value, Value]:
        """The twins of a value and of its parts."""
        found, todo = {value: twin}, [(value, twin)]
        while todo:
            one, other = todo.pop()
            for part, child in one.parts.items():
                for mine in self.lazy((other, part)):
                    mine.type = mine.type or child.type
                    found[child] = mine
                    todo.append((child, mine))
        return found

    def _substitute(self, twins: dict[Value, Value], state: State) -> None:
        """Places that hold a value hold its twin."""
        state.part(self._still_apart(twins, state))
        state.names = {name: _replaced(held, twins) for name, held in state.names.items()}
        slots: dict[Slot, Values] = {}
        for (owner, part), held in state.slots.items():
            place = (twins.get(owner, owner), part)
            new = _replaced(held, twins)
            slots[place] = union(slots[place], new) if place in slots else new
        state.slots = slots
        state.made = (state.made - twins.keys()) | {twin for twin in twins.values() if twin.known_site}
        if state.apart:  # what older ones hold is no longer one thing
            state.apart = frozenset(pair for pair in state.apart if not any(isinstance(p, tuple) and p[0] in twins for p in pair))
        for value, twin in twins.items():
            if value in state.bytes:
                state.bytes[twin] = state.bytes.pop(value)
        if not twins.keys().isdisjoint(state.owed):
            state.owed = _debts.renamed(state.owed, twins)

    def _still_apart(self, twins: dict[Value, Value], state: State) -> Iterator[frozenset[Place]]:
        """Who holds a value never held what the holders of its twin hold, though both are the twin now."""
        places: list[tuple[Place, Values]] = [
            *state.names.items(),
            *((slot, held) for slot, held in state.slots.items() if slot[0] not in twins),
        ]
        old = [(place, held) for place, held in places if not twins.keys().isdisjoint(held)]
        if not old:
            return
        met = set(twins.values())
        for other, theirs in places:
            if met.isdisjoint(theirs):
                continue
            for place, mine in old:
                if place != other and any(twins.get(value) in theirs for value in mine) and state.are_apart(place, other):
                    yield frozenset({place, other})

    # ---- words
    def text(self, e: Expression) -> str:
        """An expression as it is shown in messages."""
        if isinstance(e, NameExpr):
            return e.name
        if isinstance(e, MemberExpr):
            return f"{self.text(e.expr)}.{e.name}"
        if isinstance(e, IndexExpr):
            return f"{self.text(e.base)}[{self.text(e.index)}]"
        if isinstance(e, IntExpr | StrExpr):
            return repr(e.value)
        if isinstance(e, CallExpr):
            return f"{self.text(e.callee)}(...)"
        if isinstance(e, UnaryExpr):
            return f"{e.op}{self.text(e.expr)}"
        return _OPAQUE

    def noun(self, value: Value | None) -> str:
        """What kind of thing it is."""
        return _names.NOUNS.get(fullname(value.type), "value") if value is not None else "value"

    def label(self, value: Value) -> str:
        """The name that a value is known by."""
        return self.named.get(value.node, value.label) if value.node is not None else value.label

    def index_part(self, e: IndexExpr) -> str:
        """The element that a constant index names, or any."""
        if isinstance(e.index, StrExpr):
            return f"[{e.index.value!r}]"
        number = None if isinstance(e.index, SliceExpr) else self.constant(e.index)
        if number is None:
            return ANY
        base = self.type_of(e.base)
        if number < 0 and isinstance(base, TupleType):
            number += len(base.items)
        return f"[{number}]"

    # ---- using values
    def use(self, e: Expression, values: Values, state: State, *, whole: bool) -> None:
        """Reports a use of what is gone; of a whole also when a part of it is."""
        if not values:
            return
        if state.spared:
            owner = self.owner_of(e, state)
            values = {value: None if move and state.spares(move, owner) else move for value, move in values.items()}
        move, value = worst(values)
        if move is not None:
            self.report_moved(e, move, value)
        elif whole:
            place = self.place_of(e, state) if state.spared else None
            found = self.gone_part(values, state, place)
            if found is not None and written_out(values) and not all(self.gone_part({value: None}, state, place) for value in values):
                return  # which of the containers it is decides what is gone
            if found is not None and self._first_time(found[0], self.text(e)):
                move, path = found
                part = "an element of it" if "[" in path else f'"{self.text(e)}{path}"'
                code = _codes.SCOPE if move.ended else _codes.MOVED
                self.reports.say(code, e, _messages.partly_moved(self.text(e), part, move))

    def place_of(self, e: Expression | None, state: State) -> Place | None:
        """The one place that an expression names, if it does."""
        if isinstance(e, NameExpr):
            return e.node if isinstance(e.node, Var) else None
        if isinstance(e, ConditionalExpr):
            return self.chosen.get(e)
        if not isinstance(e, MemberExpr | IndexExpr):
            return None
        base = self.peek(e.expr if isinstance(e, MemberExpr) else e.base, state)
        part = f".{e.name}" if isinstance(e, MemberExpr) else self.index_part(e)
        if len(base) != 1 or part == ANY:
            return None
        (owner,) = base
        return owner, named_part(owner, part)

    def owner_of(self, e: Expression, state: State) -> Place | None:
        """The place of the object that `e` is a part of."""
        return self.place_of(e.expr if isinstance(e, MemberExpr) else e.base if isinstance(e, IndexExpr) else None, state)

    def gone_part(self, values: Values, state: State, place: Place | None = None) -> tuple[Move, str] | None:
        """A part of these values that was taken, and the way to it."""
        todo, seen = [(value, "") for value in values], set(values)
        while todo:
            owner, path = todo.pop()
            for (other, part), held in state.slots.items():
                if other is not owner:
                    continue
                for value, move in held.items():
                    if move is not None and not move.ended and not state.spares(move, place):
                        return move, path + part
                    if value not in seen:
                        seen.add(value)
                        todo.append((value, path + part))
        return None

    def report_moved(self, e: Expression, move: Move, value: Value | None) -> None:
        """One report for a move and a name, as rustc does."""
        name = self.text(e)
        if not self._first_time(move, name):
            return
        noun, code = self.noun(value), _codes.SCOPE if move.ended else _codes.MOVED
        if not move.ended and contains(move.node, e):
            self.reports.say(code, e, _messages.moved_before(noun, name, move))
            return
        known = self.label(value) if value is not None and value.known_site and isinstance(e, NameExpr) else name
        notes = []
        successor = self.named.get(move.node)
        if successor and successor != name:
            notes.append(_messages.returned(move.what, successor))
        alias = known if known not in (name, value.label if value is not None else name) else ""
        self.reports.say(code, e, _messages.moved(noun, name, move, alias), *notes)

    def _first_time(self, move: Move, name: str) -> bool:
        told = (id(move.node), name)
        if told in self._told:
            return False
        self._told.add(told)
        return True

    def mark(self, values: Iterable[Value], move: Move, state: State, through: Place | None = None) -> None:
        """Every place that may hold one of `values` sees it go, but for places that never hold what the place `through` holds."""
        going = set(values)
        stays = {place for pair in state.apart if through in pair for place in pair if place != through} if through is not None else set()
        state.names = {name: held if name in stays else _after(held, going, move) for name, held in state.names.items()}
        state.slots = {slot: held if slot in stays else _after(held, going, move) for slot, held in state.slots.items()}

    def reachable(self, values: Iterable[Value], state: State) -> set[Value]:
        """The values, and all that they are known to hold."""
        seen = set(values)
        todo = list(seen)
        while todo:
            owner = todo.pop()
            for (other, _), held in state.slots.items():
                if other is owner:
                    todo += held.keys() - seen
                    seen |= held.keys()
        return seen


def settled_on(owners: Values, held: Values) -> Values:
    """What an element of one of several containers may be: which of them it is decides what is gone, so nothing is unless all are."""
    return dict.fromkeys(held) if written_out(owners) and not all(move and not move.maybe for move in held.values()) else held


def written_out(values: Values) -> bool:
    """One of several containers that are written out here."""
    return len(values) > 1 and all(value.whole and isinstance(value.node, CONTAINERS) for value in values)


def _after(held: Values, going: set[Value], move: Move) -> Values:
    """What a place holds once `going` are gone."""
    if going.isdisjoint(held):
        return held
    return {value: _gone(old, move) if value in going else old for value, old in held.items()}


def _gone(old: Move | None, new: Move) -> Move:
    """A value that is certainly gone stays gone as it was."""
    return new if old is None or old.maybe else old


def _replaced(held: Values, twins: dict[Value, Value]) -> Values:
    if not held.keys() & twins.keys():
        return held
    changed: Values = {}
    for value, move in held.items():
        twin = twins.get(value, value)
        changed[twin] = join_moves(changed[twin], move) if twin in changed else move
    return changed


def fields_of(owner: Value) -> list[str]:
    """The names of a named tuple's elements, in order; of others none."""
    info = class_of(owner.type)
    found = next((base.metadata["namedtuple"] for base in info.mro if "namedtuple" in base.metadata), None) if info is not None else None
    return found["fields"] if found is not None else []


def named_part(owner: Value, part: str) -> str:
    """The one way to an element of a named tuple is by its name."""
    if not part.startswith("[") or part == ANY or not isinstance(owner.type, TupleType | Instance):
        return part
    fields = fields_of(owner)
    number = part[1:-1]
    return f".{fields[int(number)]}" if number.isdecimal() and int(number) < len(fields) else part


def worst(values: Values) -> tuple[Move | None, Value | None]:
    """The move that a use of a place runs into, and whose it is: certain when all that the place may hold is gone."""
    found: tuple[Move, Value] | None = None
    everything = True
    for value, move in values.items():
        if move is None:
            everything = False
        elif found is None or (found[0].maybe and not move.maybe):
            found = (move, value)
    if found is None:
        return None, None
    return (found[0] if everything else found[0].possibly()), found[1]


def contains(outer: Context, e: Expression) -> bool:
    """`e` is a part of this call: another look at it then comes from the loop around."""
    todo: list[object] = [outer]
    while todo:
        node = todo.pop()
        if node is e:
            return True
        if isinstance(node, CallExpr):
            todo += [node.callee, *node.args]
        elif isinstance(node, MemberExpr):
            todo.append(node.expr)
        elif isinstance(node, IndexExpr):
            todo += [node.base, node.index]
    return False
