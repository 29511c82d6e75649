"""How far the others get while some agents and copies stand still, as an upper bound, and which of their steps that lets happen.

Nobody is run: an agent goes on as long as what it waits for could come. A phase could end when those that move bring at least the arrivals
it lacks; bytes are not counted. So no schedule of the others gets further, whatever is wrong with the program.

With that it is known which uses of a barrier can change places. An arrival is noticed by nobody who waits unless the phase may end with
it. And arrivals and bytes of one phase commute as long as the phase needs all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

from oxidecopy.engines.sim.flight import Load
from oxidecopy.engines.sim.footprints import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from oxidecopy.engines.sim.agents import Agent, TokenKey
    from oxidecopy.engines.sim.flight import Store
    from oxidecopy.engines.sim.footprints import Gate
    from oxidecopy.engines.sim.itinerary import Itinerary, Stop
    from oxidecopy.engines.sim.machine import Machine
    from oxidecopy.engines.sim.mbarrier import Mbarrier


class Flying(NamedTuple):
    """A copy in flight: its next footprint's number, the bits of all its footprints, and the barrier it will report to, if any."""

    number: int
    bits: int
    copy: Load | Store
    moves: tuple[int, int] | None = None


def closed_now(machine: Machine, agent: Agent, gate: Gate) -> bool:
    """True when the agent would wait if it asked now. An object that is no barrier is never waited for here: asking it is a step."""
    match gate.kind:
        case "phase":
            return _is_open(machine, gate.place, gate.phase)
        case "tokens":
            found = [agent.cta.tokens.get(token) for token in gate.tokens]
            return any(made is None or _is_open(machine, gate.place, made[1]) for made in found)
        case _:
            return True  # whether it goes on or waits, nobody notices


def _barrier(machine: Machine, place: tuple[int, ...]) -> Mbarrier | None:
    """The live barrier at a place."""
    bar = machine.ctas[place[0]].bars.get(place[1]) if 0 <= place[0] < len(machine.ctas) else None
    return bar if bar is not None and bar.live and not bar.broken else None


def _is_open(machine: Machine, place: tuple[int, ...], phase: int) -> bool:
    """The phase of that parity is not over."""
    bar = _barrier(machine, place)
    return bar is not None and bar.phase & 1 == phase & 1


def _holds(copy: Load | Store, agent: Agent, gate: Gate) -> bool:
    """`agent`, which is at `gate`, waits for what `copy` does next."""
    if isinstance(copy, Load) or copy.agent is not agent or (gate.read_only and len(copy.cuts) == 1):
        return False
    older = agent.groups[: len(agent.groups) - gate.pending] if gate.pending else agent.groups
    return copy.group in older


@final
class Reach:
    """What all but `still` agents and copies could do: in `bits`, for each agent and then each copy, the footprints of its steps."""

    def __init__(
        self,
        machine: Machine,
        itineraries: Sequence[Itinerary],
        places: Sequence[int],
        copies: Sequence[Flying],
        still: Collection[int],
        lost: int,
    ) -> None:
        """Agents come first in the numbers of `still`, then copies; `places` are indices in the itineraries, -1 for a lost agent."""
        self._machine, self._itineraries, self._at, self._first = machine, itineraries, list(places), places
        self.bits = [0] * (len(places) + len(copies))
        self._given: dict[tuple[int, ...], int] = {}
        self._moved: set[tuple[int, ...]] = set()
        self._made: set[tuple[int, ...]] = set()
        self._tokens: set[tuple[int, ...]] = set()
        self._anything = False  # somebody is lost
        self._still = [copy.copy for j, copy in enumerate(copies, len(places)) if j in still]
        self.moves: list[set[tuple[int, ...]]] = [set() for _ in self.bits]
        self.looks: list[set[tuple[int, ...]]] = [set() for _ in self.bits]
        self._loose: set[tuple[int, ...]] = set()
        self._flying: dict[tuple[int, ...], int] = {}  # bytes on their way to each barrier
        self._take_copies(copies, len(places), still)
        walkers = []
        for i, agent in enumerate(machine.agents):
            if agent.ended or i in still:
                continue
            if places[i] < 0:
                self.bits[i], self._anything = lost, True
            else:
                walkers.append(i)
        while sum(map(self._walk, walkers)):
            pass

    def _take_copies(self, copies: Sequence[Flying], first: int, still: Collection[int]) -> None:
        for j, copy in enumerate(copies, first):
            if isinstance(copy.copy, Load) and copy.moves is not None:
                self._flying[copy.moves] = self._flying.get(copy.moves, 0) + copy.copy.left()
            if j not in still:
                self.bits[j] = copy.bits
                if copy.moves is not None:
                    self._moved.add(copy.moves)
                    self.moves[j].add(copy.moves)

    def _walk(self, i: int) -> bool:
        """Takes agent `i` as far as it gets; True when it got anywhere."""
        agent, stops, first = self._machine.agents[i], self._itineraries[i].stops, self._at[i]
        at, start = first, self._first[i]
        while at < len(stops):
            stop = stops[at]
            if stop.gate is not None and self._closed(agent, stop.gate, now=at == start):
                self.bits[i] |= 1 << (stop.number if self._is_far(agent, stop.gate) else stop.asks)
                break
            self.bits[i] |= stop.bits
            self._moved |= stop.moved
            self._made |= stop.made
            self._loose |= stop.loose
            self.moves[i] |= stop.moved
            self.looks[i] |= stop.looked
            self._tokens |= stop.tokens
            for place, count in stop.gives:
                self._given[place] = self._given.get(place, 0) + count
            at += 1
        self._at[i] = at
        return at > first

    def _closed(self, agent: Agent, gate: Gate, *, now: bool) -> bool:
        if self._anything:
            return False
        if gate.kind == "groups":
            return now and any(_holds(copy, agent, gate) for copy in self._still)
        if gate.kind == "sync":
            return not self._is_met(agent, gate)
        if self._may_end(gate.place):
            return False
        if gate.kind == "phase":
            return _is_open(self._machine, gate.place, gate.phase)
        return any(self._is_awaited(agent, gate, token) for token in gate.tokens)

    def _is_awaited(self, agent: Agent, gate: Gate, token: TokenKey) -> bool:
        """Nobody makes the token, or its phase is not over."""
        made, number = agent.cta.tokens.get(token), token if isinstance(token, int) else token[0]
        if (agent.cta.rank, number) in self._tokens:
            return False  # made by then, of a phase that is not known
        return made is None or _is_open(self._machine, gate.place, made[1])

    def _may_end(self, place: tuple[int, ...]) -> bool:
        """The current phase of a barrier may end, or the object become another one."""
        bar = _barrier(self._machine, place)
        return place in self._made or (place in self._moved and (bar is None or self._given.get(place, 0) >= bar.pending))

    # ---- uses of barriers
    def meddles(self, i: int, mine: Stop | Flying, arrivals: dict[tuple[int, ...], int], loose: Collection[tuple[int, ...]]) -> bool:
        """Agent or copy `i` may do something to a barrier that does not commute with `mine`, the next step of one that stands still.

        `arrivals` are those of the next steps of all that stand still, `loose` the barriers that they move without.
        """
        moved = {mine.moves} if isinstance(mine, Flying) and mine.moves is not None else mine.moved if not isinstance(mine, Flying) else ()
        for place in moved:
            if place in self.looks[i] and self._ends(place, arrivals):
                return True
            if place in self.moves[i] and not self._all_needed(place, arrivals, loose):
                return True
        return not isinstance(mine, Flying) and any(place in self.moves[i] and self._may_end(place) for place in mine.looked)

    def _ends(self, place: tuple[int, ...], arrivals: dict[tuple[int, ...], int]) -> bool:
        """The phase may end once those that stand still have arrived, too."""
        bar = _barrier(self._machine, place)
        return bar is None or place in self._made or self._given.get(place, 0) + arrivals.get(place, 0) >= bar.pending

    def _all_needed(self, place: tuple[int, ...], arrivals: dict[tuple[int, ...], int], loose: Collection[tuple[int, ...]]) -> bool:
        """The current phase cannot end before everything that may come has come."""
        bar = _barrier(self._machine, place)
        if bar is None or place in self._made or place in self._loose or place in loose:
            return False
        coming = self._given.get(place, 0) + arrivals.get(place, 0)
        return coming <= bar.pending and bar.tx >= self._flying.get(place, 0)

    def _is_met(self, agent: Agent, gate: Gate) -> bool:
        """As many threads as a sync counts may come."""
        given = self._given.get(gate.place, 0)
        if gate.place == CLUSTER:
            return self._machine.cluster_barrier.arrived + given >= self._machine.live_threads
        known = agent.cta.thread_bars.get(gate.place[1])
        return (known.arrived if known is not None else 0) + given >= gate.phase

    def _is_far(self, agent: Agent, gate: Gate) -> bool:
        """Asking in vain would be reported: the phase is neither the current one nor the one before."""
        bar = _barrier(self._machine, gate.place) if gate.kind in ("phase", "tokens") else None
        if bar is None:
            return False
        phases = [gate.phase] if gate.kind == "phase" else [made[1] for t in gate.tokens if (made := agent.cta.tokens.get(t)) is not None]
        return any(bar.phase - phase not in (0, 1) for phase in phases)
