"""Two states are the same when no future op can tell them apart.

That is: their shapes are equal, and on each timeline their marks lie in the same order, and what is known lies between the same marks. Ops
ask of two times only whether one that is known reaches a mark; they join what is known by maximum, which keeps that, and make new marks
later than all. So where exactly between two marks something lies is nobody's concern. The same holds for the phases of a barrier, of which
the newest are also compared by distance. Only a wait by parity reads how many phases are known, however few: where a program has one, all
phases are compared by order. Loop counters are left out: `periods` judges them by the expressions that read them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, final

from oxidecopy.isa import ops
from oxidecopy.verify.code import Item
from oxidecopy.verify.state import Access, Agent, At, Bar, Known, Machine, Mark, TokenKey

Snapshot: TypeAlias = tuple[object, ...]
_FAR = 2  # phases further back than the one before are only compared by order: no op asks for them by distance


def outline(machine: Machine) -> Snapshot:
    """A cheap necessary condition for two states to be the same."""
    return (
        tuple(a.pc for a in machine.agents),
        tuple(b.pending for b in machine.bars),
        tuple(len(s.accesses) for s in machine.stages),
    )


def snapshot(machine: Machine, waiting: Mapping[int, At], *, parity: bool) -> Snapshot:
    """The whole state up to order. `parity` keeps the parity of each barrier's phase."""
    taker = _Taker(machine, parity=parity)
    for agent in machine.agents:
        taker.agent(agent, waiting.get(agent.id))
    for bar in machine.bars:
        taker.bar(bar)
    for stage in machine.stages:
        taker.put(stage.written)
        taker.accesses(stage.accesses)
    for where, place in sorted(machine.places.items()):
        taker.put("place", *where)
        taker.mark(place.released)
        taker.mark(place.fetched)
        taker.marks(place.acquired)
        taker.accesses(place.uses)
    for key, agents in sorted(machine.syncs.items()):
        taker.put(key, *(a.id for a in agents))
    taker.tokens()
    return taker.result()


def _places(marks: list[int], known: tuple[int, ...]) -> tuple[int, ...]:
    """The order of the marks, and for what is known how many of them it reaches."""
    line = sorted(set(marks))
    if not line:
        return (len(known),)
    place = {v: bisect_right(line, v) for v in {*marks, *known}}
    return tuple(map(place.__getitem__, (*marks, *known)))


def _phases(marks: list[int], known: tuple[int, ...], phase: int) -> tuple[int, ...]:
    """As `_places`, with the distance from `phase` of what is near."""
    line = sorted(set(marks))
    place = {v: bisect_right(line, v) * (_FAR + 1) + max(min(v - phase, 0), -_FAR) for v in {*marks, *known}}
    return tuple(map(place.__getitem__, (*marks, *known)))


def _ranks(line: tuple[int, ...]) -> tuple[int, ...]:
    values = set(line)
    if len(values) == 1:
        return (len(line),)
    rank = {v: i for i, v in enumerate(sorted(values))}
    return tuple([rank[v] for v in line])


@final
class _Taker:
    def __init__(self, machine: Machine, *, parity: bool) -> None:
        self.machine = machine
        self.parity = parity
        self.shape: list[object] = []
        self.n = len(machine.agents)
        self.lines: list[list[int]] = [[] for _ in range(self.n + len(machine.bars))]
        self.vectors: list[list[int]] = []
        self.uses: dict[tuple[int, int, int], int] = {}
        self.fences = [agent.fence for agent in machine.agents]

    def result(self) -> Snapshot:
        """Each timeline's values as their places. Knowledge comes in whole vectors; turned over, an entry is a column of one timeline."""
        n, bars = self.n, self.machine.bars
        columns = list(zip(*self.vectors, strict=True))
        ran = 2 * n + 2 * len(bars)
        orders = [_places(self.lines[i], (*columns[i], *columns[n + i], *columns[ran + i], self.fences[i])) for i in range(n)]
        for bar in bars:
            seen, line = (*columns[2 * n + bar.id], *columns[2 * n + len(bars) + bar.id]), self.lines[n + bar.id]
            orders.append(_phases(line, seen, bar.phase))
            if self.parity:
                orders.append(_ranks((*seen, *line)))
        return (tuple(self.shape), tuple(orders))

    def put(self, *values: object) -> None:
        self.shape.extend(values)

    def mark(self, m: Mark | None) -> None:
        if m is None:
            self.shape.append(None)
        else:
            self.shape += (m.agent, id(m.step))
            self.lines[m.agent].append(m.time)

    def marks(self, marks: Iterable[Mark]) -> None:
        self.shape.append("marks")
        for m in marks:
            self.mark(m)

    def phase(self, bar: Bar, value: int) -> None:
        """A count of completed phases."""
        self.shape.append(min(bar.phase - value, _FAR))
        self.lines[self.n + bar.id].append(value)

    def asked(self, bar: Bar, phase: int) -> None:
        """A phase that somebody will learn of: how many are over then counts as well."""
        self.phase(bar, phase)
        self.lines[self.n + bar.id].append(phase + 1)

    def known(self, known: Known | None) -> None:
        self.shape.append(known is None)
        if known is not None:
            self.vectors.append(known.tolist())

    # ---- parts of the state
    def agent(self, agent: Agent, at: At | None) -> None:
        self.put("agent", agent.pc, tuple(agent.turns), agent.released, agent.denied, len(agent.groups))
        self.known(agent.known)
        for known in agent.saved:
            self.known(known)
        if at is not None:
            self.mark(at.mark)
            for phase in at.phases:
                self.asked(at.bars[0], phase)
        self.accesses(agent.open)
        for group in agent.groups:
            self.accesses(group.stores)
        for register, entry in agent.answers.items():
            self.put(register)
            if len(entry) == 3:
                self.put(entry[1], self._relative(tuple(agent.turns), entry[2], agent) if len(entry[2]) == len(agent.turns) else entry[2])
            else:
                self.put(entry[0])
                self.asked(self.machine.bars[entry[0]], entry[1])

    def bar(self, bar: Bar) -> None:
        self.put("bar", bar.life, bar.count, bar.pending, bar.expected, bar.issued, bar.last_expected, bar.broken, bar.phase == bar.base)
        if self.parity:
            self.put((bar.phase - bar.base) & 1)
        self.lines[self.n + bar.id].append(bar.phase)
        self.mark(bar.born)
        if bar.born is not None:
            self.lines[bar.born.agent].append(bar.init_fence)
        self.known(bar.acc)
        for marks in (bar.arrived, bar.announced, bar.bare, bar.copies, bar.last_arrived, bar.last_announced, bar.last_copies):
            self.marks(marks)
        self.marks(m for _, m in sorted(bar.passed.items()))
        self.marks(m for _, m in sorted(bar.used.items()))
        self.known(bar.published)
        if bar.loaded is not None:
            self.put("loaded")
            self.phase(bar, bar.loaded[0] + 1)
        for agent, (phase, m) in sorted(bar.remote.items()):
            self.put(agent)
            self.phase(bar, phase + 1)
            self.mark(m)

    def accesses(self, accesses: Iterable[Access]) -> None:
        self.shape.append("accesses")
        for a in accesses:
            self.put(a.way, a.lo, a.hi, a.bar, a.done >= 0, a.reduces)
            if a.turns is not None:
                # Its mates that run the op may still come to the same instance.
                mates = self.machine.mates(self.machine.agents[a.mark.agent].rank)
                self.put(*(self._relative(a.loops, a.turns, m) for m in mates if id(a.mark.step) in self._steps(m)))
            self.mark(a.mark)
            self.lines[a.mark.agent].append(a.done)
            if a.bar >= 0:
                self.phase(self.machine.bars[a.bar], a.until)

    def _steps(self, agent: Agent) -> set[int]:
        """Ids of the steps that an agent runs."""
        found = self.machine.steps.get(id(agent.code))
        if found is None:
            found = self.machine.steps[id(agent.code)] = {id(item.step) for item in agent.code}
        return found

    def _relative(self, loops: tuple[str, ...], turns: tuple[int, ...], agent: Agent) -> tuple[object, ...]:
        """Iterations counted from the agent's own where it is in the loop; those of loops it has yet to enter start anew."""
        return tuple(t - agent.turns[n] if n in agent.turns else ("at", t) for n, t in zip(loops, turns, strict=True))

    # ---- tokens
    def tokens(self) -> None:
        """Forgets the tokens that nobody can ask for any more, and takes the others."""
        for key, (bar, phase) in list(self.machine.tokens.items()):
            wanted = [self._distance(agent, key) for agent in self.machine.mates(key[0])]
            if not any(wanted):
                del self.machine.tokens[key]
                continue
            self.put("token", key[0], key[1], tuple(wanted), bar)
            self.asked(self.machine.bars[bar], phase)

    def _distance(self, agent: Agent, key: TokenKey) -> tuple[object, ...] | None:
        """How far ahead of the agent a token's iteration is; None when the agent will not ask for it again."""
        use = _last_use(agent.code, key[1], len(key[2]), self.uses)
        if use < 0:
            return None
        now = [agent.turns.get(name) for name in agent.code[use].loops]
        for mine, its in zip(now, key[2], strict=True):
            if mine is None:
                return ("before", *key[2]) if agent.pc <= use else None
            if mine != its:
                return tuple(i - (m or 0) for m, i in zip(now, key[2], strict=True)) if mine < its else None
        return (0,) if agent.pc <= use else None


def _last_use(code: list[Item], token: int, depth: int, uses: dict[tuple[int, int, int], int]) -> int:
    """The last place that names a token, in as many loops as the token's own; -1 when there is none. `uses` keeps it."""
    at = (id(code), token, depth)
    found = uses.get(at)
    if found is None:
        found = uses[at] = max((i for i, item in enumerate(code) if len(item.loops) == depth and _names(item.op, token)), default=-1)
    return found


def _names(op: Any, token: int) -> bool:
    """Any: every op has other fields; only those of the token ops are asked for."""
    if isinstance(op, ops.MbarrierWait):
        return token in op.tokens
    return getattr(op, "token", None) == token
