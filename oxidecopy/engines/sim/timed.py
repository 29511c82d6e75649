"""Runs some CTAs of a launch in order of time, by a cost model, and stamps what they do.

Copies are in flight as when hazards are looked for, but each lands at a time that follows from its size, and agents go on in the order of
their clocks. An op has its effect when its threads come to it and may go on; its cost is how long they are busy with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from typing import Final, TypeAlias, final

from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim.agents import Agent, Cta
from oxidecopy.engines.sim.bulk import SharedRun
from oxidecopy.engines.sim.classes import thread_classes
from oxidecopy.engines.sim.clocks import Clocks
from oxidecopy.engines.sim.costs import Costs
from oxidecopy.engines.sim.explore import buffers_of, memory_of
from oxidecopy.engines.sim.flight import Flight as InFlight
from oxidecopy.engines.sim.flight import Load, Store
from oxidecopy.engines.sim.launch import MAX_STEPS, STOPS, Result, check_grid, clusters, prepare, stopped
from oxidecopy.engines.sim.machine import Machine
from oxidecopy.engines.sim.memory import SimBuffer
from oxidecopy.engines.sim.shares import Shares
from oxidecopy.isa import ops
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Program, Step
from oxidecopy.program.stamps import Block, Cause, Flight, Stamp, Stamped, ThreadGroup

OPS_MAX: Final = 20_000  # of all CTAs together, beyond which a launch is cut off

Copy: TypeAlias = Load | Store
_SILENT: Final = ops.Scope | ops.When | ops.Loop  # decide where to go on, at no cost


class Full(Exception):
    """There is room for no more ops."""


def stamped(
    program: Program, bindings: Bindings, *, ctas: Collection[Block], costs: Costs | None = None, ops_max: int = OPS_MAX
) -> Stamped:
    """Follows the clusters that hold these CTAs; memory is as before afterwards.

    Args:
        program: any program, verified or not.
        bindings: its arguments, as for `explore`.
        ctas: block indices; the other CTAs only take their share of the memory's rate.
        costs: of the ops.
        ops_max: how many ops are stamped at most; each cluster has its share.
    """
    costs, memory = costs or Costs(), memory_of(bindings)
    program, grid = expanded(program), bindings.grid
    classes = thread_classes(program)
    chosen = [blocks for blocks in clusters(program, grid) if any(block in ctas for block in blocks)]
    with memory.lock, _kept(buffers_of(bindings)):
        clocks = Clocks(program, len(classes) * program.cluster_size)
        shares = Shares(0, grid, turns=costs.resident(program))
        machine = Machine(program, clocks=clocks, schedule=None, max_steps=MAX_STEPS, shares=shares)
        walk = _Walk(machine, costs, costs.rate(program, grid))
        result, cut = Result(outcome="ok"), ""
        try:
            check_grid(program, grid)
            prepare(machine, classes, bindings, memory, named=True)
            for number, blocks in enumerate(chosen, 1):
                walk.room = ops_max * number // len(chosen)
                machine.start_cluster(blocks)
                try:
                    walk.drive()
                except Full:
                    cut = f"cut off after {ops_max:,} ops: what comes later is not shown"
                    continue
                finally:
                    walk.leave()
                machine.finish_cluster()
        except STOPS as stop:
            result = stopped(stop, machine)
    return Stamped(
        program=program,
        grid=grid,
        constants=dict(machine.constants),
        classes=tuple(ThreadGroup(threads=kind.threads, roles=kind.roles) for kind in classes),
        ctas=tuple(block for blocks in chosen for block in blocks),
        stamps=tuple(walk.stamps),
        flights=tuple(walk.flights),
        source="simulator",
        model=costs.lines(program, grid),
        outcome=result.outcome,
        diagnostics=result.diagnostics,
        cut=cut,
    )


@contextmanager
def _kept(buffers: list[SimBuffer]) -> Iterator[None]:
    """What they hold is put back afterwards."""
    before = [buffer.data.copy() for buffer in buffers]
    try:
        yield
    finally:
        for buffer, data in zip(buffers, before, strict=True):
            if buffer.data.flags.writeable:
                buffer.data[...] = data


@final
class _Walk:
    """One cluster at a time, from event to event."""

    def __init__(self, machine: Machine, costs: Costs, rate: float) -> None:
        assert machine.flight is not None  # a machine with clocks has one
        self.machine, self.flight, self.costs, self.rate = machine, machine.flight, costs, rate
        self.stamps: list[Stamp] = []
        self.flights: list[Flight] = []
        self.room = 0
        self._order = count()
        self._to_come: list[tuple[float, int, Agent | Copy]] = []
        self._came: dict[int, float] = {}  # by agent: since when it waits
        self._woken: dict[int, Cause] = {}
        self._arrived: dict[int, int] = {}  # by agent: the stamp of the sync that it came to and has not left yet
        self._numbers: dict[int, int] = {}  # by id of a copy in flight
        self._threads: dict[int, int] = {}  # by id of a step
        self._free: dict[tuple[int, bool], float] = {}  # by CTA, and whether it is for copies between CTAs: when the next one has its turn

    def drive(self) -> None:
        """Runs the cluster until nobody is ready and nothing in flight; raises Full."""
        self._collect(0, None)
        while self._to_come:
            now, _, what = heappop(self._to_come)
            if isinstance(what, Agent):
                self._step(now, what)
            else:
                self._move(now, what)

    def leave(self) -> None:
        """Whoever still waits is stamped so, and what is in flight forgotten."""
        for agent in self.machine.agents:
            came = self._came.pop(agent.index, None)
            if came is not None:
                self._stamp(agent, agent.pc, came, None, None)
        self.flight.copies.clear()
        self.machine.ready.clear()
        for kept in (self._to_come, self._woken, self._arrived, self._numbers, self._free):
            kept.clear()

    def _later(self, when: float, what: Agent | Copy) -> None:
        heappush(self._to_come, (when, next(self._order), what))

    def _collect(self, now: float, cause: Cause | None) -> None:
        """Whoever has been woken goes on a little later; all of them together at the start."""
        for agent in self.machine.ready:
            if cause is not None:
                self._woken[agent.index] = cause
            self._later(now + (self.costs.wake if agent.index in self._came else 0), agent)
        self.machine.ready.clear()

    # ---- agents
    def _step(self, now: float, agent: Agent) -> None:
        pc, flying = agent.pc, len(self.flight.copies)
        goes_on = self.machine.step(agent)
        if not goes_on and not agent.ended:
            self._came.setdefault(agent.index, now)
            self._collect(now, None)
            return
        step = agent.code.steps[pc]
        if step is None or isinstance(step.op, _SILENT):
            self._collect(now, None)
            if goes_on:
                self._later(now, agent)
            return
        arrival = isinstance(step.op, ops.BarSync | ops.ClusterSync) and agent.index not in self._arrived
        cost = 0.0 if arrival else self.costs.of(self.machine.program, step.op, self._together(step), self.rate)
        number = self._arrived.pop(agent.index, None)
        if number is None:
            number = self._stamp(agent, pc, self._came.pop(agent.index, now), now, now + cost)
        else:  # it came to this sync before, and now may leave it
            self._came.pop(agent.index, None)
            before, woken = self.stamps[number], self._woken.pop(agent.index, None)
            self.stamps[number] = replace(before, went=now, end=now + cost, woken=woken)
        if arrival:
            self._arrived[agent.index] = number
        self._issue(now, agent, number, self.flight.copies[flying:])
        self._collect(now, Cause(number))
        self._later(now + cost, agent)

    def _together(self, step: Step) -> int:
        """How many threads of a CTA run it."""
        if id(step) not in self._threads:
            alike = (agent for agent in self.machine.ctas[0].agents if any(other is step for other in agent.code.steps))
            self._threads[id(step)] = sum(agent.threads for agent in alike)
        return self._threads[id(step)]

    def _stamp(self, agent: Agent, pc: int, came: float, went: float | None, end: float | None) -> int:
        step = agent.code.steps[pc]
        assert step is not None  # nobody waits at the end
        number = self._arrived.pop(agent.index, None) if went is None else None
        if number is not None:  # it waits at a sync
            self.stamps[number] = replace(self.stamps[number], went=None, end=None)
            return number
        if len(self.stamps) >= self.room and went is not None:
            raise Full
        names = {name: agent.env[slot] for name, slot in agent.code.names[pc].items()}
        self.stamps.append(
            Stamp(
                cta=agent.cta.block, agent=agent.index % len(agent.cta.agents), step=step, names=names,
                came=came, went=went, end=end, woken=self._woken.pop(agent.index, None),
            )
        )  # fmt: skip
        return len(self.stamps) - 1

    # ---- copies
    def _issue(self, now: float, agent: Agent, number: int, copies: list[Copy]) -> None:
        """Their turns come one after the other; a multicast has one turn, and lands everywhere at once."""
        turns: dict[object, tuple[float, float]] = {}
        for copy in copies:
            image = copy.image if isinstance(copy, Store) else copy.landing[1]
            nbytes = image.layout.nbytes
            sent = isinstance(copy, Load) and isinstance(copy.plan, SharedRun)
            turn = (id(copy.plan), copy.coords) if isinstance(copy, Load) else id(copy)
            if turn not in turns:
                key = agent.cta.rank, sent
                begun = max(now, self._free.get(key, 0.0))
                self._free[key] = begun + nbytes / (self.costs.sm if sent else self.rate)
                turns[turn] = begun, self._free[key]
            begun, moved = turns[turn]
            into: Cta = agent.cta if isinstance(copy, Store) else copy.landing[0]
            self._numbers[id(copy)] = len(self.flights)
            self.flights.append(Flight(stamp=number, into=into.block, nbytes=nbytes, issued=now, begun=begun, moved=moved))
            after = self.costs.store_read if isinstance(copy, Store) else self.costs.send if sent else self.costs.load
            self._later(moved + after, copy)

    def _move(self, now: float, copy: Copy) -> None:
        """A load lands; a store has been read, and later is written."""
        number = self._numbers[id(copy)]
        self.flight.advance(self.flight.copies.index(copy))
        if _flies(self.flight, copy):
            self.flights[number] = replace(self.flights[number], read=now)
            self._later(now + self.costs.store_write, copy)
        else:
            self.flights[number] = replace(self.flights[number], end=now)
            del self._numbers[id(copy)]
        self._collect(now, Cause(number, copy=True))


def _flies(flight: InFlight, copy: Copy) -> bool:
    return any(other is copy for other in flight.copies)
