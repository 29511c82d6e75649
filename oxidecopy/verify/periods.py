"""Long loops: when the state at a loop's edge repeats, whole periods are skipped, and the tail is run one by one again.

That the state repeats is `snapshot`'s to say. That the next K periods run as the last one did is decided here, from the expressions that
steered it: an index must not move (or not at all over the K periods), a phase must move as its barrier's does, a condition must keep its
truth, coordinates must stay legal. K is the largest number for which all of that is provable, so the proof covers every iteration.

Skipping moves the loop counters, and each barrier's `base` the other way by the phases skipped: everything else is only compared by order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd, lcm
from typing import Final, assert_never, final

from oxidecopy.isa import expr, ops
from oxidecopy.program.nesting import steering
from oxidecopy.program.program import Program
from oxidecopy.verify.affine import Range, has_loop_symbol, periods, shift_of, steady
from oxidecopy.verify.coords import Placed, faults
from oxidecopy.verify.resolve import counters
from oxidecopy.verify.snapshot import Snapshot, outline, snapshot
from oxidecopy.verify.state import Agent, Asked, At, Machine, Mark, Use

_WORTH_IT: Final = 6  # iterations left, below which running them is cheaper than looking
_GUESS_MAX: Final = 128  # the longest period that is guessed
_PATIENCE: Final = 4  # guessed periods that a ring may need to fill up
_LOG_MAX: Final = 40_000  # expressions remembered, beyond which the search starts over


@final
@dataclass(slots=True)
class _Saved:
    """A state at an edge, with the counters and phases it had; `again` is the iteration from which on a newer one is taken."""

    outline: Snapshot
    state: Snapshot
    counters: list[dict[str, int]]
    phases: list[int]  # of each barrier, in its present life
    lives: list[Mark | None]  # the init of each barrier
    log_start: int
    again: int


@final
@dataclass(slots=True)
class _Search:
    """What was seen of one loop. `guess` is the period that the constants of its expressions suggest.

    States are taken a guess apart, first where the cheap outline repeats that way; should the guess be wrong, further and further apart
    (Brent's search). What is guessed costs time only: that a state repeats is looked at.
    """

    guess: int
    window: int = 0
    outlines: dict[int, Snapshot] = field(default_factory=dict)
    saved: _Saved | None = None

    def due(self, turn: int, now: Snapshot) -> bool:
        """Whether the state is to be taken at this turn."""
        before = self.outlines.pop(turn - self.guess, None)
        self.outlines[turn] = now
        if self.saved is not None:
            return turn >= self.saved.again
        return turn % self.guess == 1 % self.guess and (before == now or turn >= _PATIENCE * self.guess)

    def next(self, turn: int) -> int:
        """When to take the next state, if this one is taken."""
        self.window = max(self.guess, 2 * self.window if turn > _PATIENCE * self.guess else self.window)
        return turn + self.window


@final
class Periods:
    """Watches the loops of the first agent that loops; the others follow it by the state."""

    def __init__(self, machine: Machine, waiting: Mapping[int, At]) -> None:
        self.machine = machine
        self.waiting = waiting
        self.parity = has_parity(machine.program)
        self.watched: Agent | None = None
        self.searches: dict[tuple[str, tuple[int, ...]], _Search] = {}
        self.phases: list[int] = []  # of every barrier, at the last edge
        self.failures = 0
        self.rest: tuple[str, int] = ("", 0)  # after a state that repeats but may not be skipped: the loop, and the turn to look again

    def edge(self, agent: Agent, op: ops.Loop) -> None:
        """At the end of an iteration, with the counter already moved on."""
        if self.watched is not agent:
            if self.watched is not None and self.watched.turns:
                return
            self.watched = agent
            self.failures, self.rest = 0, ("", 0)
            self._restart()
        turn = agent.turns[op.counter]
        left = (agent.quick.range(op.stop, counters(agent)).lo - agent.env[op.counter]) // op.step
        if left < _WORTH_IT or (self.rest[0] == op.counter and turn < self.rest[1]):
            return
        if self.machine.log is not None and len(self.machine.log) > _LOG_MAX:
            self._restart()
        self._look(agent, op, turn, left)

    def _look(self, agent: Agent, op: ops.Loop, turn: int, left: int) -> None:
        """Compares the state with the saved one of this loop, and saves a newer one now and then."""
        machine = self.machine
        key = (op.counter, tuple(agent.turns[n] for n in agent.turns if n != op.counter))
        search = self.searches.get(key)
        if search is None:
            # Older instances of the same loop are over.
            self.searches = {k: s for k, s in self.searches.items() if k[0] != key[0]}
            search = self.searches[key] = _Search(_guess(agent, op))
        # What the last iteration did to the barriers tells the iterations of a period apart at little cost.
        now = (*outline(machine), tuple([b.phase - p for b, p in zip(machine.bars, self.phases, strict=False)]))
        self.phases = [b.phase for b in machine.bars]
        saved, state = search.saved, None
        if saved is not None and saved.outline == now:
            state = snapshot(machine, self.waiting, parity=self.parity)
            if state == saved.state:
                del self.searches[key]
                if self._skip(agent, op, saved, left):
                    self.failures = 0
                    return
                self.searches[key] = search
                self.failures += 1
                if len(agent.turns) == 1:
                    self.rest = (op.counter, turn + (1 << min(self.failures, 10)))
                    self._restart()
                    return
        if search.due(turn, now):
            search.saved = self._saved(now, state or snapshot(machine, self.waiting, parity=self.parity), search.next(turn))

    def _restart(self) -> None:
        self.searches, self.machine.log = {}, None

    def _saved(self, now: Snapshot, state: Snapshot, again: int) -> _Saved:
        if self.machine.log is None:
            self.machine.log = []  # only what is asked from a saved state on is ever looked at
        counters = [{n: a.env[n] for n in a.turns} for a in self.machine.agents]
        phases = [b.phase - b.base for b in self.machine.bars]
        lives = [b.born for b in self.machine.bars]
        return _Saved(now, state, counters, phases, lives, len(self.machine.log), again)

    def _skip(self, agent: Agent, op: ops.Loop, saved: _Saved, left: int) -> bool:
        """Skips as many periods as can be proven to run like the one since `saved`."""
        machine = self.machine
        deltas = [{n: a.env[n] - before[n] for n in a.turns} for a, before in zip(machine.agents, saved.counters, strict=True)]
        if any(sum(1 for d in moved.values() if d) > 1 for moved in deltas) or not deltas[agent.id].get(op.counter):
            return False  # a counter that moves inside one that moves has started anew
        if any(b.born is not born for b, born in zip(machine.bars, saved.lives, strict=True)):
            return False
        phases = [b.phase - b.base - before for b, before in zip(machine.bars, saved.phases, strict=True)]
        asked = list(
            {
                (a.agent, a.use, id(a.expr), a.bar, _placed(a), *a.counters.values()): a for a in (machine.log or [])[saved.log_start :]
            }.values()
        )
        judge = Judge(machine, deltas, phases, asked)
        periods = judge.most(left // (deltas[agent.id][op.counter] // op.step)) if judge.moves_along() else 0
        if periods:
            length = deltas[agent.id][op.counter] // op.step
            self._tell(agent, op, length, periods)
            self._move(judge, periods)
        return periods > 0

    def _tell(self, agent: Agent, op: ops.Loop, length: int, periods: int) -> None:
        turn = agent.turns[op.counter]
        step = next(item.step for item in agent.code if item.op is op)
        self.machine.out.bound(
            f"iterations {turn + 1} to {turn + periods * length} of this loop are taken to run as {turn - length + 1} to {turn} do",
            f"after {turn} iterations barriers, tiles and threads stand as after {turn - length}, up to a shift of phases and counters"
            " that no op can tell, and no stage, phase, condition or coordinate changes in what it decides",
            site=step.site,
            key=id(step),
        )

    def _move(self, judge: Judge, periods: int) -> None:
        machine = self.machine
        for a, moved in zip(machine.agents, judge.deltas, strict=True):
            for name, d in moved.items():
                a.env[name] += d * periods
            a.seen = None
        for bar, d in zip(machine.bars, judge.phases, strict=True):
            bar.base -= d * periods
        # For the loops around this one, the expressions were asked in the skipped iterations too.
        if not any(s.saved for s in self.searches.values()):
            machine.log = None
        if machine.log is not None:
            moving = [q for q in judge.asked if any(judge.deltas[q.agent].values())]
            machine.log += [Asked(q.agent, q.use, q.expr, judge.widened(q, periods), q.truth, q.bar, q.item) for q in moving]


@final
class Judge:
    """Whether the expressions of one period steer the next ones the same way."""

    def __init__(self, machine: Machine, deltas: list[dict[str, int]], phases: list[int], asked: list[Asked]) -> None:
        self.machine = machine
        self.deltas = deltas
        self.phases = phases
        self.asked = asked
        self.lasting: dict[tuple[int, Use, int], bool] = {}

    def moves_along(self) -> bool:
        """Every phase asked for moves by as many as its barrier's phase does."""
        asked = {(q.agent, q.bar, id(q.expr)): q for q in self.asked if q.use is Use.PHASE}
        return all(shift_of(_expr(q), self.deltas[q.agent]) == self.phases[q.bar] for q in asked.values())

    def most(self, bound: int) -> int:
        """The largest number of periods, up to `bound`, over which nothing changes; fewer are as safe as more."""
        most = bound
        for q in self.asked:
            if not self._for_ever(q) and not self._over(q, most):
                low, high = 0, most - 1
                while low < high:
                    middle = (low + high + 1) // 2
                    low, high = (middle, high) if self._over(q, middle) else (low, middle - 1)
                most = low
        return most

    def holds(self, periods: int) -> bool:
        """Nothing changes over `periods` of them."""
        return all(self._for_ever(q) or self._over(q, periods) for q in self.asked)

    def _for_ever(self, q: Asked) -> bool:
        key = (q.agent, q.use, id(q.expr))
        if key not in self.lasting:
            self.lasting[key] = self._lasts(q)
        return self.lasting[key]

    def _lasts(self, q: Asked) -> bool:
        moved = self.deltas[q.agent]
        match q.use:
            case Use.INDEX:
                return shift_of(_expr(q), moved) == 0
            case Use.TRUTH:
                return steady(_cond(q), moved)
            case Use.PHASE:
                return True
            case Use.COORD:
                return False
            case _:
                assert_never(q.use)

    def _over(self, q: Asked, periods: int) -> bool:
        agent, wide = self.machine.agents[q.agent], self.widened(q, periods)
        match q.use:
            case Use.INDEX:
                return agent.quick.range(_expr(q), wide).single
            case Use.TRUTH:
                return agent.quick.decided(_cond(q), wide) is q.truth
            case Use.PHASE:
                return True
            case Use.COORD:
                env = {**agent.ranges, **wide}
                return (
                    q.item is None
                    or not isinstance(q.item.op, Placed)
                    or not any(True for _ in faults(self.machine.program, self.machine.launch, q.item.op, env))
                )
            case _:
                assert_never(q.use)

    def widened(self, q: Asked, periods: int) -> dict[str, Range]:
        """The counters it saw, over this period and the next ones."""
        moved = self.deltas[q.agent]
        return {name: _spread(r, moved.get(name, 0), periods) for name, r in q.counters.items()}


def _guess(agent: Agent, op: ops.Loop) -> int:
    """A number of iterations after which all that divides or takes remainders in the loop may be where it was."""
    asked = [e for item in agent.code if op.counter in item.loops for e in steering(item.op) if has_loop_symbol(e)]
    guess = lcm(*(n for e in asked for n in periods(e, {op.counter: op.step})))
    return guess if guess <= _GUESS_MAX else 1


def has_parity(program: Program) -> bool:
    """Whether the program waits by parity, so that a phase's own parity matters."""
    return any(isinstance(s.op, ops.MbarrierWaitParity | ops.MbarrierTestParity) for s in program.walk())


def _spread(r: Range, delta: int, periods: int) -> Range:
    if not delta or not periods:
        return r
    return Range(r.lo + min(0, delta * periods), r.hi + max(0, delta * periods), gcd(r.step, delta))


def _placed(q: Asked) -> int:
    """Which copy or read it was asked of: two of them may share a coordinate and differ in another, or in their entry of a table."""
    return id(q.item) if q.use is Use.COORD else 0


def _expr(q: Asked) -> expr.Expr:
    if isinstance(q.expr, expr.Bool | expr.Cmp | expr.And | expr.Or | expr.Not | expr.Answer):
        raise TypeError("a condition where a value was asked for")
    return q.expr


def _cond(q: Asked) -> expr.Cond:
    if isinstance(q.expr, expr.Bool | expr.Cmp | expr.And | expr.Or | expr.Not | expr.Answer):
        return q.expr
    raise TypeError("a value where a condition was asked for")
