"""All schedules of a small launch, up to equivalence.

A state's next moves are one step of each agent that is ready and of each copy in flight. Not all of them are tried everywhere. Where some
agents and copies can do nothing next that conflicts with anything the others may still do, the others may as well wait (persistent sets);
a step that ends in a fault conflicts with everything, because it takes the rest of the run away. And a state that was met before is not
gone on from again. Both leave every ending and every finding: each schedule left out has one that differs only in the order of steps whose
order nobody can tell.

A copy lands whole, since its portions show in nothing but memory that somebody touches too early, which is found at any time. Only where
the barrier has been promised less than is in flight may a count come to zero early: there it lands whole or by portions, of the largest
size of which all sums that the barrier is told are multiples, or half of it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from math import factorial, gcd
from typing import Final, NamedTuple, final

from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim.agents import Agent
from oxidecopy.engines.sim.classes import thread_classes
from oxidecopy.engines.sim.clocks import Clocks
from oxidecopy.engines.sim.flight import Flight, Load, Store
from oxidecopy.engines.sim.footprints import Touch, load_footprint, store_footprints
from oxidecopy.engines.sim.itinerary import LOCAL, Footprints, Itinerary, Place, Stop, TooLong, place_of, walk, without_regular_syncs
from oxidecopy.engines.sim.launch import STOPS, Result, clusters, prepare, stopped
from oxidecopy.engines.sim.machine import Machine, OutOfSteps, Stuck
from oxidecopy.engines.sim.memory import GRANULE, GlobalMemory
from oxidecopy.engines.sim.reach import Flying, Reach, closed_now
from oxidecopy.engines.sim.shares import Shares
from oxidecopy.engines.sim.snapshot import Saved, Snapshots
from oxidecopy.isa import ops
from oxidecopy.isa.limits import MBARRIER_BYTES, SHARED_BASE
from oxidecopy.program.program import Program

STATES: Final = 20_000
SECONDS: Final = 20.0
STEPS: Final = 5_000  # of all agents of a cluster, loops written out


class Move(NamedTuple):
    """A step of agent `agent`, or of copy number `copy` in flight; of a load by no more than `most` 16-byte units, where that is given."""

    agent: int = -1
    copy: int = -1
    most: int = 0


@final
@dataclass(frozen=True, slots=True)
class Ending:
    """One way for the launch to end, and what global memory then holds: the bytes of every buffer it stores to."""

    result: Result
    contents: tuple[bytes, ...] = field(repr=False)


@final
@dataclass(slots=True)
class Tree:
    """What the search has seen. `paths` are schedules left after the reduction, `orders` of how many at most they stand."""

    endings: list[Ending] = field(default_factory=list)
    states: int = 0
    moves: int = 0
    paths: int = 0
    orders: int = 1
    bound: str = ""  # what it gave up for


class _GiveUp(Exception):
    """A bound was reached."""


@final
@dataclass(slots=True)
class _Frame:
    """A state with moves that are still to be tried; `paths` of those tried so far."""

    saved: Saved
    key: bytes
    cluster: int
    moves: list[Move]
    listed: set[tuple[int, int]]  # agents and copies whose moves are, or were, in `moves`
    paths: int = 0


@final
class Search:
    """The search of one launch. `reduce=False` tries all moves in all states (for tests of the reduction)."""

    def __init__(
        self, program: Program, bindings: Bindings, memory: GlobalMemory, *, states: int, seconds: float, max_steps: int, reduce: bool
    ) -> None:
        classes = thread_classes(program)
        self.clocks = Clocks(program, len(classes) * program.cluster_size)
        shares = Shares(0, bindings.grid)
        self._machine = Machine(program, clocks=self.clocks, schedule=None, max_steps=max_steps, shares=shares)
        assert self._machine.flight is not None  # there are clocks
        self._flight: Flight = self._machine.flight
        self._program, self._bindings, self._memory, self._classes = program, bindings, memory, classes
        self._states, self._until, self._seconds, self._reduce = states, time.monotonic() + seconds, seconds, reduce
        self._blocks = (
            list(clusters(program, bindings.grid)) if all(g % c == 0 for g, c in zip(bindings.grid, program.cluster, strict=True)) else []
        )
        self._plans: dict[int, tuple[Footprints, list[Itinerary]]] = {}
        self._cluster = 0
        self._seen: dict[bytes, int] = {}
        self._ended: set[tuple[object, ...]] = set()
        self._units = _portions(program, bindings)
        self.tree = Tree()

    def run(self) -> Tree:
        """Looks; memory is as before afterwards."""
        try:
            buffers = prepare(self._machine, self._classes, self._bindings, self._memory, footprints=True)
        except STOPS as stop:
            self.tree.endings.append(Ending(stopped(stop, self._machine), ()))
            self.tree.paths = 1
            return self.tree
        self._buffers = buffers
        before = [buffer.data.copy() for buffer in buffers]
        self._snapshots = Snapshots(self._machine, self.clocks, self._flight, buffers)
        try:
            self._look()
        except _GiveUp as bound:
            self.tree.bound = str(bound)
        finally:
            for buffer, data in zip(buffers, before, strict=True):
                buffer.data[...] = data
        return self.tree

    # ---- the search
    def _look(self) -> None:
        if not self._blocks:
            self._end(Result(outcome="ok"))
            self.tree.paths = 1
            return
        if any(isinstance(step.op, ops.ShareTiles) for step in self._program.walk()):
            raise _GiveUp("the tiles of a counter may be dealt in more ways than are tried")
        self._enter(0)
        frames = [self._frame(self._choices())]
        while frames:
            frame = frames[-1]
            if not frame.moves:
                frames.pop()
                self._seen[frame.key] = frame.paths
                if frames:
                    frames[-1].paths += frame.paths
                else:
                    self.tree.paths = frame.paths
                continue
            move = frame.moves.pop()
            self._put(frame)
            found = self._follow(frame, move)
            if isinstance(found, _Frame):
                frames.append(found)
            else:
                frame.paths += found

    def _put(self, frame: _Frame) -> None:
        self._cluster = frame.cluster
        self._snapshots.put(frame.saved)

    def _frame(self, moves: list[Move]) -> _Frame:
        """The state now, with moves to try."""
        saved = self._snapshots.take()
        return _Frame(saved, self._snapshots.key(saved, self._cluster), self._cluster, moves, {move[:2] for move in moves})

    def _follow(self, frame: _Frame, move: Move) -> _Frame | int:
        """From the state of `frame` by `move`, and on while there is one move: to a state with several, or to an end, as its paths."""
        trail: list[Move] = []
        while True:
            trail.append(move)
            self.tree.moves += 1
            self._look_at_the_clock()
            try:
                self._move(move)
            except OutOfSteps:
                raise _GiveUp(f"{self._machine.max_steps:,} loop iterations") from None
            except STOPS as stop:
                self._end(stopped(stop, self._machine))
                return self._before(frame, trail)
            moves = self._choices()
            if len(moves) == 1:
                move = moves[0]
            elif moves:
                return self._new(self._frame(moves))
            elif self._advance():
                return self._new(self._frame(self._choices()))
            else:
                return 1

    def _look_at_the_clock(self) -> None:
        if time.monotonic() > self._until:
            raise _GiveUp(f"{self._seconds:g} seconds")

    def _new(self, made: _Frame) -> _Frame | int:
        """A state to go on from, or the number of paths from it where that has been done."""
        if made.key in self._seen:
            return self._seen[made.key]
        self.tree.states += 1
        if self.tree.states > self._states:
            raise _GiveUp(f"{self._states:,} states")
        return made

    def _before(self, frame: _Frame, trail: list[Move]) -> _Frame | int:
        """The last move of `trail` has ended the run: everything else could have gone before it."""
        last = trail.pop()
        if not trail:
            frame.moves += [m for m in self._restored(frame, trail) if m[:2] not in frame.listed]
            frame.listed.update(m[:2] for m in frame.moves)
            return 1
        others = [m for m in self._restored(frame, trail) if m[:2] != last[:2]]
        if not others:
            return 1
        found = self._new(self._frame(others))
        if isinstance(found, int):
            return found + 1
        found.paths = 1
        return found

    def _restored(self, frame: _Frame, trail: list[Move]) -> list[Move]:
        """Every move in the state behind `trail`."""
        self._put(frame)
        for move in trail:
            self._move(move)
        return [move for moves in self._every().values() for move in moves]

    def _advance(self) -> bool:
        """Nobody can move: the cluster has ended, and with it the launch unless there is another cluster; False when it has."""
        try:
            self._machine.finish_cluster()
        except Stuck as stop:
            self._end(stopped(stop, self._machine))
            return False
        if self._cluster + 1 == len(self._blocks):
            self._end(Result(outcome="ok"))
            return False
        self._enter(self._cluster + 1)
        return True

    def _end(self, result: Result) -> None:
        contents = tuple(buffer.data.tobytes() for buffer in self._buffers)
        key = (result.outcome, result.code, result.diagnostics, contents if result.outcome == "ok" else ())
        if key not in self._ended:
            self._ended.add(key)
            self.tree.endings.append(Ending(replace(result, findings=()), contents))

    # ---- moves
    def _enter(self, cluster: int) -> None:
        """Starts a cluster."""
        self._cluster = cluster
        machine = self._machine
        if cluster not in self._plans:
            self._plans[cluster] = self._plan(cluster)
        machine.start_cluster(self._blocks[cluster])
        self._settle()

    def _plan(self, cluster: int) -> tuple[Footprints, list[Itinerary]]:
        """Where the agents of a cluster will go."""
        machine, footprints, stored = self._machine, Footprints(), {buffer.address for buffer in self._buffers}
        walks: list[list[tuple[Place, Touch]]] = []
        left = machine.steps_left
        for cta, block in zip(machine.ctas, self._blocks[cluster], strict=True):
            cta.reset(block)
            for agent in cta.agents:
                self._look_at_the_clock()
                try:
                    walks.append(walk(agent, STEPS - sum(len(places) for places in walks), stored))
                except (TooLong, OutOfSteps):
                    raise _GiveUp(f"{STEPS:,} steps of one cluster, loops written out") from None
        machine.steps_left = left
        walks = without_regular_syncs(walks, [agent.threads for agent in machine.agents])
        itineraries = [Itinerary(places, footprints) for places in walks]
        counts = [sum(1 for stop in itinerary.stops if stop.number != LOCAL) for itinerary in itineraries]
        counts += [1 for places in walks for _, touch in places for _ in touch.later]
        self.tree.orders *= factorial(sum(counts))
        for count in counts:
            self.tree.orders //= factorial(count)
        return footprints, itineraries

    def _move(self, move: Move) -> None:
        machine = self._machine
        if move.agent >= 0:
            agent = machine.agents[move.agent]
            machine.ready.remove(agent)
            if machine.step(agent):
                machine.ready.append(agent)
        else:
            self._flight.advance(move.copy, move.most)
        self._settle()

    def _settle(self) -> None:
        """Everybody goes on to the next step that somebody else may notice; a wait that would be in vain begins at once."""
        ready = self._machine.ready
        while moving := [agent for agent in ready if self._is_local(agent)]:
            for agent in moving:
                if not self._machine.step(agent):
                    ready.remove(agent)

    def _is_local(self, agent: Agent) -> bool:
        if agent.code.touches[agent.pc] is None:
            return True
        itinerary = self._plans[self._cluster][1][agent.index]
        at = itinerary.index(place_of(agent))
        if at < 0:
            return False
        stop = itinerary.stops[at]
        return stop.number == LOCAL or (stop.gate is not None and closed_now(self._machine, agent, stop.gate))

    def _places(self) -> list[int]:
        itineraries = self._plans[self._cluster][1]
        return [0 if agent.ended else itineraries[agent.index].index(place_of(agent)) for agent in self._machine.agents]

    def _flying(self) -> list[Flying]:
        footprints = self._plans[self._cluster][0]
        flying = []
        for copy in self._flight.copies:
            if not copy.kinds:
                made = (load_footprint(self._memory, copy),) if isinstance(copy, Load) else store_footprints(self._memory, copy)
                copy.kinds = tuple(footprints.number(footprint) for footprint in made)
            if isinstance(copy, Load):
                flying.append(Flying(copy.kinds[0], 1 << copy.kinds[0], copy, (copy.landing[0].rank, copy.landing[2].address)))
            else:
                kinds = copy.kinds if len(copy.cuts) != 1 else copy.kinds[1:]
                flying.append(Flying(kinds[0], sum(1 << kind for kind in set(kinds)), copy))
        return flying

    def _every(self) -> dict[int, list[Move]]:
        """The moves there are: by agents that are ready, and by copies, numbered behind all agents."""
        agents = {agent.index: [Move(agent=agent.index)] for agent in self._machine.ready}
        first = len(self._machine.agents)
        copies = {first + i: [Move(copy=i), *self._portion(i, copy)] for i, copy in enumerate(self._flight.copies)}
        return agents | copies

    def _choices(self) -> list[Move]:
        """The moves to try in this state: those of the fewest agents and copies that the others cannot interfere with."""
        every = self._every()
        best = [move for moves in every.values() for move in moves]
        if not self._reduce or len(best) <= 1:
            return best
        places, flying = self._places(), self._flying()
        for seed in sorted(every, reverse=True):
            chosen = self._closed(every, places, flying, seed)
            if len(chosen) < len(best):
                best = chosen
                if len(best) == 1:
                    break
        return best

    def _closed(self, every: dict[int, list[Move]], places: list[int], flying: list[Flying], seed: int) -> list[Move]:
        """The moves of a set with `seed` such that nothing that the others get to without it conflicts with a move in it."""
        footprints, itineraries = self._plans[self._cluster]
        agents, lost = len(places), footprints.everything
        inside = {seed}
        while True:
            if any(i < agents and places[i] < 0 for i in inside):
                return [move for moves in every.values() for move in moves]
            steps = [flying[i - agents] if i >= agents else itineraries[i].stops[places[i]] for i in sorted(inside)]
            reached, arrivals, loose = 0, dict[Place, int](), set[Place]()
            for step in steps:
                reached |= footprints.conflicts[step.number]
                if isinstance(step, Stop):
                    loose |= step.loose
                    for place, count in step.gives:
                        arrivals[place] = arrivals.get(place, 0) + count
            reach = Reach(self._machine, itineraries, places, flying, inside, 1 << lost)
            found = [
                i
                for i, bits in enumerate(reach.bits)
                if i not in inside and (bits & reached or any(reach.meddles(i, step, arrivals, loose) for step in steps))
            ]
            if not found or len(inside) == len(every):
                return [move for i in sorted(inside) for move in every[i]]
            inside |= set(found) if all(i in every for i in found) else set(every)  # one that waits now is let go by somebody

    def _portion(self, i: int, copy: Load | Store) -> list[Move]:
        """Besides landing whole: a portion, where the count of the barrier could come to zero before all that is in flight has landed."""
        if not isinstance(copy, Load):
            return []
        cta, _, bar = copy.landing
        coming = sum(
            c.left() for c in self._flight.copies if isinstance(c, Load) and c.landing[0] is cta and c.landing[2].address == bar.address
        )
        units = self._units.get(bar.address, 1)
        return [Move(copy=i, most=units)] if bar.tx < coming and units * GRANULE < copy.left() else []


def _portions(program: Program, bindings: Bindings) -> dict[int, int]:
    """For each barrier (its shared address) the 16-byte units in a portion of a copy that reports to it."""
    sums: dict[int, int] = {}
    for step in program.walk():
        op = step.op
        match op:
            case ops.MbarrierArriveExpectTx() | ops.MbarrierArriveExpectTxRemote() | ops.MbarrierExpectTx() | ops.MbarrierCompleteTx():
                nbytes = op.nbytes
            case ops.BulkG2S() | ops.BulkG2SMulticast() | ops.BulkS2S() | ops.BulkReduceS2S():
                nbytes = op.nbytes
            case ops.TensorG2S() | ops.TensorG2SMulticast() | ops.TensorGather4():
                names = program.maps[op.map.name].bound_names
                nbytes = gcd(*[bindings.maps[name].map.layout.nbytes for name in names])
            case _:
                continue
        sums[op.bar.barrier] = gcd(sums.get(op.bar.barrier, 0), nbytes)
    units = {}
    for number, total in sums.items():
        decl = program.barriers[number]
        portion = max(total // GRANULE, 1)
        portion = portion // 2 if portion % 2 == 0 else portion
        for index in range(decl.stages):
            units[SHARED_BASE + decl.offset + index * MBARRIER_BYTES] = portion
    return units
