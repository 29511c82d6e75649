"""What the pass knows at one point of a function: which values each place may hold, and which of them are gone.

A value is an allocation site (an expression that makes one, a parameter, a place read for the first time). A site in a loop stands for its
newest value; older ones share one value, `Value.older`. Whether a value is gone is kept on the way to it, place -> value, not on the value:
`if c: r.inval(); r = new()` then joins to "a live one or another live one", without a false alarm.

Maps are never changed in place once they are shared: whoever changes one makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from mypy.nodes import Context, Var
from mypy.types import ProperType

from oxidecopy.mypy_plugin import _debts
from oxidecopy.mypy_plugin._debts import Debts, Path


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Move:
    """How a value went.

    Attributes:
        what: who took it, in quotes, as `"init"`; for an ended block, what opened it.
        line: where.
        node: the call, or the statement whose block ended.
        maybe: only on some path.
        ended: it was not taken: its block is over.
    """

    what: str
    line: int
    node: Context
    maybe: bool = False
    ended: bool = False

    def possibly(self) -> Move:
        """The same, on some path."""
        return self if self.maybe else Move(what=self.what, line=self.line, node=self.node, maybe=True, ended=self.ended)

    @property
    def key(self) -> tuple[int, bool, bool]:
        """What makes two of them the same for the fixed point."""
        return (id(self.node), self.maybe, self.ended)


@dataclass(slots=True, eq=False)
class Value:
    """An abstract value.

    Attributes:
        label: its name in messages.
        type: mypy's type, where it is known.
        node: the expression that makes it; None for what was there before.
        borrowed: why it may not be taken; empty when it may.
        known_site: it is made here, once per execution of `node`; others were there before and may be each other.
        depth: how many attributes or indices away from a root.
        sources: the barriers that a token came from.
        containers: the places that a loop's target stands for: any element of a container, or one part of any.
        method: it is a bound method that takes its object: the method's name.
        loops: the recorded loops around the place that made it.
        nbytes: the size of a tile, where it is known.
        whole: a container written out here, or an object made here of which all attributes are known: nobody else has it.
        older: all but the newest value of a site in a loop.
        past: this value, once the recorded loop that made it has gone on.
        carried: the recorded loop that has gone on since.
        parts: what its attributes and elements hold that nobody wrote to.
        of: whose part it is, where it is one of those.
    """

    label: str
    type: ProperType | None = None
    node: Context | None = None
    borrowed: str = ""
    known_site: bool = False
    depth: int = 0
    sources: frozenset[Value] = frozenset()
    containers: frozenset[tuple[Value, str]] = frozenset()
    method: str = ""
    loops: tuple[Context, ...] = ()
    nbytes: int | None = None
    whole: bool = False
    older: Value | None = None
    past: Value | None = None
    carried: Context | None = None
    parts: dict[str, Value] = field(default_factory=dict)
    of: Slot | None = None

    def twin(self, *, carried: Context | None = None) -> Value:
        """Another value of the same site. Written out: `dataclasses.replace` takes three times as long."""
        other = Value(self.label, self.type, self.node, self.borrowed, self.known_site, self.depth, self.sources, self.containers)
        other.method, other.loops, other.nbytes, other.whole, other.of = self.method, self.loops, self.nbytes, self.whole, self.of
        other.carried = carried or self.carried
        return other


Values: TypeAlias = "dict[Value, Move | None]"
Slot: TypeAlias = "tuple[Value, str]"
Place: TypeAlias = "Var | Slot"
Pairs: TypeAlias = "frozenset[frozenset[Place]]"
Spared: TypeAlias = "frozenset[tuple[int, Place]]"
Bytes: TypeAlias = "frozenset[tuple[int | None, int | None]]"

NONE: Final[Values] = {}
NO_PAIRS: Final[Pairs] = frozenset()
NONE_SPARED: Final[Spared] = frozenset()
ANY: Final = "[*]"  # an element at an index that is not a constant
DEPTH_MAX: Final = 4  # linked structures end here: what lies deeper is not tracked
BYTES_MAX: Final = 8  # more possible sums than this on one barrier are not told apart
PAIRS_MAX: Final = 400  # where more places meet than this, they are not told apart
UNKNOWN_BYTES: Final[Bytes] = frozenset({(None, None)})
ZERO_BYTES: Final[Bytes] = frozenset({(0, 0)})


@dataclass(slots=True)
class State:
    """Places and their values; `slots` are attributes and elements of values, `bytes` (announced, issued) sums by barrier.

    `owed` is what must still be used up, and is only kept where leaks are looked for; `facts` are the conditions of this path. Neither is
    ever changed in place.

    Two places that may hold the same value may still never hold it at the same time, as two names that a loop swaps: `apart` has the pairs
    that are known for this. Places without a common value are apart without being in it.
    `spared` has moves, by the call that took, and places whose object lost nothing by them: a part was taken of what another place holds.
    """

    names: dict[Var, Values] = field(default_factory=dict)
    slots: dict[Slot, Values] = field(default_factory=dict)
    made: frozenset[Value] = frozenset()
    bytes: dict[Value, Bytes] = field(default_factory=dict)
    owed: Debts = field(default_factory=dict)
    facts: Path = _debts.START
    apart: Pairs = NO_PAIRS
    spared: Spared = NONE_SPARED

    def copy(self) -> State:
        """A copy that may be changed by itself."""
        return State(dict(self.names), dict(self.slots), self.made, dict(self.bytes), self.owed, self.facts, self.apart, self.spared)

    def become(self, other: State) -> None:
        """Takes over all of `other`."""
        self.names, self.slots, self.made, self.bytes = other.names, other.slots, other.made, other.bytes
        self.owed, self.facts = other.owed, other.facts
        self.apart, self.spared = other.apart, other.spared

    def places(self) -> Iterable[Values]:
        """The values of all places."""
        yield from self.names.values()
        yield from self.slots.values()

    def held(self, place: Place) -> Values:
        """What one place holds."""
        return self.slots.get(place, NONE) if isinstance(place, tuple) else self.names.get(place, NONE)

    def are_apart(self, one: Place, other: Place) -> bool:
        """Two places never hold the same value at the same time."""
        return frozenset({one, other}) in self.apart or self.held(one).keys().isdisjoint(self.held(other))

    def part(self, pairs: Iterable[frozenset[Place]]) -> None:
        """These are apart, of which more than one place may hold a value."""
        self.apart |= frozenset(pairs)

    def rebound(self, sources: Mapping[Place, Place | None]) -> None:
        """Places hold what others held until now, all at once: `a, b = b, a`; None stands for anything else."""
        if not self.apart and not self.spared:
            return
        now: dict[Place, list[Place]] = {}
        for place, source in sources.items():
            if source is not None:
                now.setdefault(source, []).append(place)
        new: set[frozenset[Place]] = set()
        for one, other in map(tuple, self.apart):
            ones = now.get(one, []) + [one] * (one not in sources)
            others = now.get(other, []) + [other] * (other not in sources)
            new |= {frozenset({p, q}) for p in ones for q in others}
        self.apart = frozenset(new)
        here = ((taker, now.get(place, []) + [place] * (place not in sources)) for taker, place in self.spared)
        self.spared = frozenset((taker, place) for taker, places in here for place in places)

    def spares(self, move: Move, place: Place | None) -> bool:
        """This move took nothing of what `place` holds."""
        return place is not None and (id(move.node), place) in self.spared

    def takers(self) -> set[int]:
        """Who took anything that is in some place."""
        return {id(move.node) for held in self.places() for move in held.values() if move is not None}

    def same(self, other: State) -> bool:
        """Nothing new: a loop has reached its fixed point."""
        flat = self.made == other.made and self.bytes == other.bytes and self.owed == other.owed and self.facts == other.facts
        flat = flat and self.apart == other.apart and self.spared == other.spared
        return flat and _keys(self.names) == _keys(other.names) and _keys(self.slots) == _keys(other.slots)


def _keys(places: dict[Var, Values] | dict[Slot, Values]) -> object:
    return {place: {value: move and move.key for value, move in values.items()} for place, values in places.items()}


def join_moves(a: Move | None, b: Move | None) -> Move | None:
    """What is known of a value after two paths."""
    if a is None or b is None:
        gone = a or b
        return gone and gone.possibly()
    first = a if a.line <= b.line else b
    return first.possibly() if a.maybe or b.maybe else first


def union(a: Values, b: Values) -> Values:
    """Either of both."""
    if not b or a is b:
        return a
    if not a:
        return b
    joined = dict(a)
    for value, move in b.items():
        joined[value] = join_moves(joined[value], move) if value in joined else move
    return joined


def unions(many: Iterable[Values]) -> Values:
    """Any of many."""
    joined = NONE
    for values in many:
        joined = union(joined, values)
    return joined


Lazy: TypeAlias = Callable[[Slot], Values]


def join(a: State | None, b: State | None, lazy: Lazy) -> State | None:
    """The state after two paths, of which None is the one that nothing takes; `lazy` is what a slot holds that was never read."""
    if a is None or b is None:
        rest = a or b
        return rest and rest.copy()
    joined = a.copy()
    for name, values in b.names.items():
        joined.names[name] = union(joined.names.get(name, NONE), values)
    for slot in {**a.slots, **b.slots}:
        left = a.slots[slot] if slot in a.slots else unread(slot, a, lazy)
        right = b.slots[slot] if slot in b.slots else unread(slot, b, lazy)
        joined.slots[slot] = union(left, right)
    joined.made = a.made | b.made
    joined.facts = a.facts & b.facts
    if a.owed or b.owed:
        joined.owed = _debts.join(a.owed, b.owed)
    joined.apart = _apart(a, b, joined)
    if a.spared or b.spared:
        joined.spared = a.spared & b.spared
        for one, other in ((a.spared - b.spared, b), (b.spared - a.spared, a)):
            takers = other.takers() if one else set()
            joined.spared |= {pair for pair in one if pair[0] not in takers}
    for barrier in {**a.bytes, **b.bytes}:
        sums = a.bytes.get(barrier, ZERO_BYTES) | b.bytes.get(barrier, ZERO_BYTES)
        joined.bytes[barrier] = sums if len(sums) <= BYTES_MAX else UNKNOWN_BYTES
    return joined


def _apart(a: State, b: State, joined: State) -> Pairs:
    """Places that are apart on both paths are, though each may hold on one of them what the other one holds on the other."""
    places: list[tuple[Place, Values]] = [*joined.names.items(), *joined.slots.items()]
    grown = [(place, values) for place, values in places if len(values) > len(a.held(place))]
    pairs = set(a.apart)
    if grown:
        new = {value for _, values in grown for value in values}
        near = [(place, values) for place, values in places if not new.isdisjoint(values)]
        if len(grown) * len(near) <= PAIRS_MAX:
            pairs |= {frozenset({p, q}) for p, mine in grown for q, theirs in near if p != q and not mine.keys().isdisjoint(theirs)}
    return frozenset(pair for pair in pairs if a.are_apart(*pair) and b.are_apart(*pair))


def unread(slot: Slot, state: State, lazy: Lazy) -> Values:
    """What a slot holds that this path has not read: nothing, where the path never made its owner."""
    owner = slot[0]
    return NONE if owner.known_site and owner not in state.made else lazy(slot)
