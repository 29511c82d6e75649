"""Where each agent will go: its steps in order with what they touch, found by walking its code without running anything.

Control flow depends on no data but the answers of tests, whose bodies are taken to run, and on indices in memory, which are read. So what
an agent may still touch is known at each of its steps, and steps that conflict with nothing that others may still do need not be tried in
every order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from oxidecopy.engines.sim.faults import Fault
from oxidecopy.engines.sim.footprints import ALL, CLUSTER, EVERYTHING, NOTHING, Atom, Footprint, Gate, Touch, Way, conflict
from oxidecopy.isa import ops

if TYPE_CHECKING:
    from oxidecopy.engines.sim.agents import Agent

Place: TypeAlias = tuple[int, ...]  # a position in an agent's code, and the counters of the loops around it
LOCAL: Final = 0  # the number of the footprint of nothing
_VALUES: Final = ops.LoadIndex | ops.ShareTiles | ops.NextTile


class TooLong(Exception):
    """There are more steps than may be looked at."""


@final
class Footprints:
    """Footprints by number, and for each the numbers of those that it conflicts with, as bits."""

    def __init__(self) -> None:
        self._numbers: dict[Footprint, int] = {}
        self._known: list[Footprint] = []
        self._users: dict[tuple[str, object], list[int]] = {}  # by what is touched: those that touch it
        self.conflicts: list[int] = []
        self.everything = 1
        self.number(NOTHING)
        self.number(EVERYTHING)

    def number(self, footprint: Footprint) -> int:
        found = self._numbers.get(footprint)
        if found is None:
            found = self._numbers[footprint] = len(self._known)
            self._known.append(footprint)
            self.conflicts.append(0)
            touched = {(atom.space, atom.place) for atom in footprint}
            for thing in touched:
                self._users.setdefault(thing, []).append(found)
            near = {other for thing in touched for other in self._users[thing]}
            for other in near if footprint is not EVERYTHING else range(found + 1):
                if conflict(footprint, self._known[other]):
                    self._meet(found, other)
            if footprint and found > self.everything:
                self._meet(found, self.everything)
        return found

    def _meet(self, a: int, b: int) -> None:
        self.conflicts[a] |= 1 << b
        self.conflicts[b] |= 1 << a


class Stop(NamedTuple):
    """A step of an itinerary.

    Attributes:
        number: of its footprint.
        bits: its own, and those of the copies that it issues.
        moved: barriers that it or its copies do more than look at; `made`: those that it makes or ends; `loose`: those that it moves
            without an arrival, or will by a copy.
        looked: barriers that it waits for.
        tokens: that it makes, as rank and number.
        asks: number of the footprint of asking in vain; of the whole step where there is nothing to wait for.
    """

    number: int
    bits: int
    moved: frozenset[tuple[int, ...]]
    made: frozenset[tuple[int, ...]]
    loose: frozenset[tuple[int, ...]]
    looked: frozenset[tuple[int, ...]]
    tokens: frozenset[tuple[int, ...]]
    asks: int
    gate: Gate | None = None
    gives: tuple[tuple[tuple[int, ...], int], ...] = ()


@final
class Itinerary:
    """The steps of one agent, in order."""

    __slots__ = ("_at", "stops")

    def __init__(self, places: Sequence[tuple[Place, Touch]], footprints: Footprints) -> None:
        self._at = {place: i for i, (place, _) in enumerate(places)}
        self.stops = [_stop(touch, footprints) for _, touch in places]

    def index(self, place: Place) -> int:
        """Where in `stops` a place is; -1 for one that was not foreseen: there the agent may do anything."""
        return self._at.get(place, -1)


def _stop(touch: Touch, footprints: Footprints) -> Stop:
    number = footprints.number(touch.now)
    bits = 1 << number
    for footprint in touch.later:
        bits |= 1 << footprints.number(footprint)
    every = [atom for footprint in (touch.now, *touch.later) for atom in footprint]
    moved = _barriers(every, Way.MOVE, Way.MAKE)
    loose = moved - ({place for place, _ in touch.gives} - _barriers([a for later in touch.later for a in later], Way.MOVE))
    tokens = frozenset(_place(a) for a in every if a.space == "token" and a.way is Way.MOVE)
    named = frozenset(a._replace(way=Way.NAME) if a.space == "barrier" else a for a in touch.now if a.space != "token")
    asks = footprints.number(named) if touch.gate is not None and touch.gate.kind in ("phase", "tokens") else number
    return Stop(number, bits, moved, _barriers(every, Way.MAKE), loose, _barriers(every, Way.LOOK), tokens, asks, touch.gate, touch.gives)


def _barriers(atoms: Collection[Atom], *ways: Way) -> frozenset[Place]:
    return frozenset(_place(atom) for atom in atoms if atom.space == "barrier" and atom.way in ways)


def _place(atom: Atom) -> tuple[int, ...]:
    assert isinstance(atom.place, tuple)  # of barriers and tokens
    return atom.place


def without_regular_syncs(walks: Sequence[Sequence[tuple[Place, Touch]]], sizes: Sequence[int]) -> list[list[tuple[Place, Touch]]]:
    """The walks of all agents (of so many threads) without what is touched by coming to a sync that always counts the same agents.

    There nobody can tell who came first. The cluster's sync is one of them: whoever does not come has left, and is not waited for.
    """
    users: dict[Place, set[int]] = {CLUSTER: set()}
    wanted: dict[Place, set[int]] = {}
    for i, places in enumerate(walks):
        for _, touch in places:
            if touch.gate is not None and touch.gate.kind == "sync":
                users.setdefault(touch.gate.place, set()).add(i)
                wanted.setdefault(touch.gate.place, set()).add(touch.gate.phase)
    regular = {place for place, who in users.items() if place == CLUSTER or wanted[place] == {sum(sizes[i] for i in who)}}
    return [
        [
            (place, touch._replace(now=frozenset(a for a in touch.now if a.space != "sync" or a.place not in regular)))
            for place, touch in places
        ]
        for places in walks
    ]


def place_of(agent: Agent) -> Place:
    env = agent.env
    return (agent.pc, *[env[slot] for slot in agent.code.loops[agent.pc]])


def walk(agent: Agent, room: int, stored: Collection[int]) -> list[tuple[Place, Touch]]:
    """The steps of an agent that is at its first op, at most `room`; `stored` are the addresses of buffers that the program writes to.

    Its integers are left as they are at the end: reset it.
    """
    code, places, lost = agent.code, [], False
    last = len(code.ops) - 1
    while True:
        pc = agent.pc
        touches = code.touches[pc]
        if touches is None:
            agent.pc = pc + 1 if pc in code.asking else code.ops[pc](agent)
            continue
        try:
            touch = touches(agent)
        except (Fault, ZeroDivisionError):
            touch, lost = ALL, True
        places.append((place_of(agent), ALL if lost and touch.now else touch))
        if len(places) > room:
            raise TooLong
        if pc == last:
            return places
        step = code.steps[pc]
        if step is not None and isinstance(step.op, _VALUES):
            # An index that the launch itself may change is not known before.
            lost = lost or bool(touch.now and any(atom.place in stored for atom in touch.now))
            try:
                code.ops[pc](agent)
            except Fault:
                lost = True
        agent.pc = pc + 1
