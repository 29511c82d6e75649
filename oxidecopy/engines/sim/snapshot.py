"""The state of a launch at one moment: taken, put back, and told from others.

Everything that changes while a launch runs is named here. Two states are the same when no step can tell them apart and memory holds the
same bytes: what is only an order of lists, or the number of a store, is left out of the comparison.
"""

from __future__ import annotations

import marshal
from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from oxidecopy.engines.sim.bulk import SharedRun
from oxidecopy.engines.sim.flight import Load

if TYPE_CHECKING:
    from oxidecopy.engines.sim.accesses import Access
    from oxidecopy.engines.sim.agents import Agent, Cta, ThreadBarrier, Wait
    from oxidecopy.engines.sim.clocks import AgentClock, BarrierClock, Clocks
    from oxidecopy.engines.sim.flight import Flight, Group, Store
    from oxidecopy.engines.sim.machine import Machine
    from oxidecopy.engines.sim.map_clocks import Acquire, MapState, Release, Use
    from oxidecopy.engines.sim.mbarrier import Mbarrier
    from oxidecopy.engines.sim.memory import SimBuffer

Copy: TypeAlias = "Load | Store"
# (Any: marshal's own types, nested; every entry is what `_put` of the same name reads.)
Row: TypeAlias = tuple[Any, ...]


@final
class Saved:
    """A state. Rows are values; objects that live on (agents, barriers, copies, groups, accesses) stand beside theirs."""

    __slots__ = ("accesses", "agents", "barriers", "buffers", "copies", "ctas", "groups", "ledger", "machine", "maps", "targets")

    machine: Row
    agents: list[Row]
    ctas: list[Row]
    barriers: list[tuple[Mbarrier, Row]]
    copies: list[tuple[Copy, Row]]
    groups: list[tuple[Group, int, int]]
    accesses: list[list[Access]]
    targets: list[tuple[Access, int]]
    ledger: Row
    maps: MapState
    buffers: list[bytes]


@final
class Snapshots:
    """Takes and puts back states of one machine. `buffers` are those that the program stores to."""

    def __init__(self, machine: Machine, clocks: Clocks, flight: Flight, buffers: list[SimBuffer]) -> None:
        self._machine, self._clocks, self._flight, self._buffers = machine, clocks, flight, buffers

    # ---- taking
    def take(self) -> Saved:
        saved = Saved()
        machine, clocks = self._machine, self._clocks
        saved.machine = (machine.steps_left, tuple(machine.ready), machine.live_threads, _bar_row(machine.cluster_barrier))
        groups: dict[int, Group] = {}
        saved.agents = [_agent_row(agent, groups) for agent in machine.agents]
        saved.barriers = []
        saved.ctas = [self._cta_row(cta, saved.barriers) for cta in machine.ctas]
        saved.copies = []
        saved.accesses = [list(accesses) for accesses in clocks.accesses]
        targets = {id(access): access for accesses in clocks.accesses for access in accesses}
        saved.maps = clocks.maps.state()
        targets.update({id(a): a for _, _, uses in saved.maps.values() for accesses, _ in uses for a in accesses})
        for copy in self._flight.copies:
            units = None if copy.units is None else copy.units.tobytes()
            if isinstance(copy, Load):
                targets.update({id(access): access for access in copy.accesses})
            else:
                groups[id(copy.group)] = copy.group
            saved.copies.append((copy, (units, tuple(copy.cuts))))
        saved.targets = [(access, access.target) for access in targets.values()]
        saved.groups = [(group, group.reading, group.writing) for group in groups.values()]
        saved.ledger = clocks.ledger.state()
        saved.buffers = [buffer.data.tobytes() for buffer in self._buffers]
        return saved

    def _cta_row(self, cta: Cta, barriers: list[tuple[Mbarrier, Row]]) -> Row:
        barriers += [(bar, _mbarrier_row(bar)) for bar in cta.bars.values()]
        return (
            cta.block,
            cta.memory.data.tobytes(),
            dict(cta.bars),
            {number: (bar, _bar_row(bar)) for number, bar in cta.thread_bars.items()},
            dict(cta.tokens),
            tuple(cta.token_waiters),
            self._clocks.written[cta.rank].tobytes(),
            dict(cta.maps),
        )

    # ---- putting back
    def put(self, saved: Saved) -> None:
        machine, clocks = self._machine, self._clocks
        machine.steps_left, ready, machine.live_threads, cluster = saved.machine
        machine.ready = deque(ready)
        machine.cluster_barrier = _bar_of(machine.cluster_barrier, cluster)
        for agent, row in zip(machine.agents, saved.agents, strict=True):
            _put_agent(agent, row)
        for cta, row in zip(machine.ctas, saved.ctas, strict=True):
            cta.block, memory, bars, thread_bars, tokens, waiters, written, maps = row
            cta.memory.data[...] = np.frombuffer(memory, np.uint8)
            cta.bars = dict(bars)
            cta.thread_bars = {number: _bar_of(bar, kept) for number, (bar, kept) in thread_bars.items()}
            cta.tokens = dict(tokens)
            cta.token_waiters = list(waiters)
            cta.maps = dict(maps)
            clocks.written[cta.rank][...] = np.frombuffer(written, np.bool_)
        for bar, row in saved.barriers:
            _put_mbarrier(bar, row)
        self._flight.copies = [copy for copy, _ in saved.copies]
        for copy, (units, cuts) in saved.copies:
            copy.units = None if units is None else np.frombuffer(units, "V16").copy()
            copy.cuts = list(cuts)
        for access, target in saved.targets:
            access.target = target
        for group, reading, writing in saved.groups:
            group.reading, group.writing = reading, writing
        clocks.accesses = [list(accesses) for accesses in saved.accesses]
        clocks.ledger.put_state(saved.ledger)
        clocks.maps.put_state(saved.maps)
        for buffer, data in zip(self._buffers, saved.buffers, strict=True):
            buffer.data[...] = np.frombuffer(data, np.uint8)

    # ---- comparing
    def key(self, saved: Saved, cluster: int) -> bytes:
        """A digest of the state in cluster number `cluster`; equal for states that nobody can tell apart."""
        _, ready, live, cluster_barrier = saved.machine
        places = {id(group): (i, j) for i, agent in enumerate(self._machine.agents) for j, group in enumerate(_groups(agent, saved))}
        agents = [
            (pc, ended, _wait_key(wait), synced, env, answers, _pending(groups), opened is not None, sums, *clock)
            for pc, ended, wait, synced, env, answers, _, groups, opened, sums, clock in map(_agent_key, saved.agents)
        ]
        ctas = [
            (
                block,
                memory,
                sorted((at, _mbarrier_key(bar)) for at, bar in bars.items()),
                sorted((number, _thread_key(row)) for number, (_, row) in thread_bars.items()),
                sorted((repr(name), bar.address, phase) for name, (bar, phase) in tokens.items()),
                written,
                sorted(maps.items()),
            )
            for block, memory, bars, thread_bars, tokens, _, written, maps in saved.ctas
        ]
        copies = sorted(marshal.dumps((*_copy_key(copy, places), *row), 2) for copy, row in saved.copies)
        accesses = [sorted(marshal.dumps(_access_key(access), 2) for access in rows) for rows in saved.accesses]
        parts: Row = (
            cluster,
            sorted(agent.index for agent in ready),
            live,
            _thread_key(cluster_barrier),
            agents,
            ctas,
            copies,
            accesses,
            self._clocks.ledger.key(saved.ledger),
            sorted((at, *_place_key(place)) for at, place in saved.maps.items()),
            saved.buffers,
        )
        return blake2b(marshal.dumps(parts, 2), digest_size=16).digest()


# ---- agents
def _agent_row(agent: Agent, groups: dict[int, Group]) -> Row:
    mine = (*agent.groups, *([agent.open_group] if agent.open_group is not None else []))
    groups.update({id(group): group for group in mine})
    return (
        agent.pc,
        agent.ended,
        agent.wait,
        agent.synced,
        tuple(agent.env),
        tuple(agent.answers.items()),
        dict(agent.given),
        tuple(agent.groups),
        agent.open_group,
        _sums_row(agent),
        _clock_row(agent.clock),
    )


def _sums_row(agent: Agent) -> Row:
    return () if agent.sums is None else (agent.sums.shape, agent.sums.tobytes())


def _pending(groups: tuple[Group, ...]) -> list[tuple[int, int]]:
    """Groups by what is left of them; old ones that are done are never asked for again."""
    left = [(group.reading, group.writing) for group in groups]
    return left[next((i for i, group in enumerate(left) if any(group)), len(left)) :]


def _clock_row(clock: AgentClock | None) -> Row:
    return () if clock is None else (clock.known.tobytes(), clock.now, clock.committed, clock.last_store)


def _agent_key(row: Row) -> Row:
    *rest, clock = row
    return (*rest, () if not clock else (*clock[:3], clock[3][0], id(clock[3][1])))


def _put_agent(agent: Agent, row: Row) -> None:
    agent.pc, agent.ended, agent.wait, agent.synced, env, answers, given, groups, agent.open_group, sums, clock = row
    agent.env, agent.answers, agent.given, agent.groups = list(env), dict(answers), dict(given), list(groups)
    agent.sums = np.frombuffer(sums[1], np.float64).reshape(sums[0]).copy() if sums else None
    if agent.clock is not None and clock:
        known, agent.clock.now, agent.clock.committed, agent.clock.last_store = clock
        agent.clock.known = np.frombuffer(known, np.int64).copy()


def _groups(agent: Agent, saved: Saved) -> tuple[Group, ...]:
    row = saved.agents[agent.index]
    return (*row[7], *([row[8]] if row[8] is not None else []))


def _wait_key(wait: Wait | None) -> Row:
    return () if wait is None else (wait.kind, -1 if wait.barrier is None else wait.barrier.address, wait.phase, wait.detail)


# ---- barriers
def _mbarrier_row(bar: Mbarrier) -> Row:
    state = bar.broken, bar.expected, bar.live, bar.pending, bar.phase, bar.tx
    return (*state, tuple(bar.waiters), bar.clock, () if bar.clock is None else _barrier_clock_row(bar.clock))


def _barrier_clock_row(clock: BarrierClock) -> Row:
    return (
        clock.base,
        clock.completed,
        clock.open.copy(),
        dict(clock.waits),
        dict(clock.done),
        clock.made,
        dict(clock.uses),
        tuple(clock.remote),
        tuple(clock.announced),
    )


def _put_mbarrier(bar: Mbarrier, row: Row) -> None:
    bar.broken, bar.expected, bar.live, bar.pending, bar.phase, bar.tx, waiters, bar.clock, kept = row
    bar.waiters = list(waiters)
    if bar.clock is not None:
        clock = bar.clock
        clock.base, clock.completed, opened, waits, done, clock.made, uses, remote, announced = kept
        clock.open, clock.waits, clock.done, clock.uses = opened.copy(), dict(waits), dict(done), dict(uses)
        clock.remote, clock.announced = list(remote), list(announced)


def _mbarrier_key(bar: Mbarrier) -> Row:
    """Of a barrier as it is: keys are made right after the state was taken."""
    clock = bar.clock
    state = bar.broken, bar.expected, bar.live, bar.pending, bar.phase, bar.tx
    if clock is None:
        return state
    made = () if clock.made is None else (clock.made[0], clock.made[1], id(clock.made[2]))
    return (
        *state,
        clock.base,
        clock.completed,
        clock.open.tobytes(),
        sorted((who, at, id(site)) for who, (at, site) in clock.waits.items()),
        sorted((phase, known.tobytes()) for phase, known in clock.done.items()),
        made,
        sorted((who, at, id(site)) for who, (at, site) in clock.uses.items()),
        sorted((who, at, id(site)) for who, at, site in clock.remote),
        sorted((who, at, id(site)) for who, at, site in clock.announced),
    )


def _bar_row(bar: ThreadBarrier) -> Row:
    return bar.arrived, bar.wanted, bar.generation, tuple(bar.waiters), None if bar.open is None else bar.open.copy(), dict(bar.done)


def _bar_of(bar: ThreadBarrier, row: Row) -> ThreadBarrier:
    bar.arrived, bar.wanted, bar.generation, waiters, opened, done = row
    bar.waiters, bar.open, bar.done = list(waiters), None if opened is None else opened.copy(), dict(done)
    return bar


def _thread_key(row: Row) -> Row:
    arrived, wanted, generation, _, opened, done = row
    return arrived, wanted, generation, b"" if opened is None else opened.tobytes(), sorted((n, k.tobytes()) for n, k in done.items())


# ---- maps
def _place_key(place: tuple[Release | None, tuple[Acquire, ...], tuple[Use, ...]]) -> Row:
    released, acquired, uses = place
    before = () if released is None else (released[0], released[1], id(released[2]))
    return before, sorted(acquired), sorted((id(site), [_access_key(access) for access in accesses]) for accesses, site in uses)


# ---- copies
def _access_key(access: Access) -> Row:
    past = b"" if access.past is None else access.past.tobytes()
    what = access.kind.value, access.low, access.high, access.agent, access.epoch, id(access.site), id(access.op)
    return (*what, access.turn, access.alone, access.fenced, past, access.reduces or (), access.counter, access.target)


def _copy_key(copy: Copy, places: dict[int, tuple[int, int]]) -> Row:
    if isinstance(copy, Load):
        cta, image, bar = copy.landing
        landing = (cta.rank, image.address, bar.address)
        # A copy between CTAs has a source of its own; all others go through what was bound before the launch began.
        source = copy.plan.image.address if isinstance(copy.plan, SharedRun) else id(copy.plan)
        return "load", copy.agent.index, id(copy.site), source, copy.coords, landing, [_access_key(a) for a in copy.accesses]
    return "store", copy.agent.index, id(copy.site), id(copy.plan), copy.coords, copy.image.address, places.get(id(copy.group), ())
