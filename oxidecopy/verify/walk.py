"""The co-execution: every agent of one cluster runs until it waits, in turn, until all are done or nobody can go on.

One schedule is enough, because arrivals and bytes are proven to fall in the same phase on every schedule, and a phase that is over stays
over. Which op needs what and does what is none of this module's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Answer, Cond
from oxidecopy.verify.affine import decide
from oxidecopy.verify.check import unguarded
from oxidecopy.verify.code import NEXT, RUN, Control, Item, has_answer
from oxidecopy.verify.periods import Periods
from oxidecopy.verify.resolve import UndecidedError, counters, ranges, resolve, truth, value
from oxidecopy.verify.state import Agent, At, Machine, Mark
from oxidecopy.verify.transfer import apply, passed

STEPS_MAX = 100_000  # ops run one by one for one box of block indices; periods skipped do not count


class OutOfStepsError(Exception):
    """The bound on single steps was reached."""


class Edges(Protocol):
    """Is told of the end of every iteration, with the counter already moved on."""

    def edge(self, agent: Agent, op: ops.Loop, /) -> None: ...


def run(machine: Machine, edges: Callable[[Machine, Mapping[int, At]], Edges] = Periods) -> None:
    """Runs all agents to their end; violations go to `machine.out`."""
    # Large groups first: then what the many did is there when the one thread that copies comes by, and a missing sync shows as such.
    # One class of all CTAs at a time: CTAs that keep step come to a state that repeats soonest.
    classes = len(machine.agents) // machine.program.cluster_size
    order = sorted((machine.agents[c::classes] for c in range(classes)), key=lambda twins: -twins[0].size)
    walk = _Walk(machine, edges, in_step=machine.program.cluster_size > 1)
    while True:
        # From the first again after every step that may have let somebody go on.
        for twins in order:
            moved = [walk.advance(agent) for agent in twins if not agent.asleep]
            if any(moved):
                break
        else:
            if all(a.done for a in machine.agents) or machine.lost:
                return
            from oxidecopy.verify.deadlock import unblock  # a launch that goes well has no use for it

            if not unblock(machine, walk.waiting):
                return


class _Walk:
    """The state of one walk that is not the machine's: the pending op of each agent, and the count of steps."""

    def __init__(self, machine: Machine, edges: Callable[[Machine, Mapping[int, At]], Edges], *, in_step: bool) -> None:
        self.machine = machine
        self.in_step = in_step  # others have their turn after each iteration of a loop
        self.waiting: dict[int, At] = {}
        self.steps = 0
        self.edges = edges(machine, self.waiting)

    def advance(self, agent: Agent) -> bool:
        """Runs one agent until it waits, ends, or lets others go on; False when it could not move."""
        moved = False
        machine, code = self.machine, agent.code
        while agent.pc < len(code):
            item = code[agent.pc]
            self.steps += 1
            if self.steps > STEPS_MAX:
                raise OutOfStepsError
            if not (self._op(agent, item) if item.control is RUN else self._control(agent, item)):
                self.steps -= 1
                break
            if machine.woken or (self.in_step and item.control is NEXT and moved):
                machine.woken, moved = False, True
                break
            moved = True
        else:
            agent.asleep = True  # at its end
        return moved

    def _op(self, agent: Agent, item: Item) -> bool:
        machine = self.machine
        if item.banned:
            unguarded(machine, item)  # reported, and left out: whether it runs is anybody's guess
            agent.pc += 1
            return True
        at = self.waiting.pop(agent.id, None)
        if at is None:
            machine.step_on(agent)
            at = At(agent, item, item.op, Mark(agent.id, agent.time, item.step), turns=tuple(agent.turns.values()))
            machine.ran.setdefault(id(item.step), len(machine.ran))
            if item.named is not None and not resolve(machine, at, item.named):
                machine.lost = True
                agent.pc += 1
                return True
        if item.ready is not None and not item.ready(machine, at):
            self.waiting[agent.id] = at
            for bar in at.bars:
                bar.used[agent.id] = at.mark
            machine.sleep(at)
            return False
        for look in item.checks:
            look(machine, at)
        apply(machine, at)
        agent.pc += 1
        return True

    def _control(self, agent: Agent, item: Item) -> bool:
        op = item.op
        if isinstance(op, ops.When):
            if item.control is Control.UNGUARD:
                self._unguard(agent, item, op.cond)
                agent.pc += 1
                return True
            return self._when(agent, item, op.cond)
        assert isinstance(op, ops.Loop)
        if item.control is Control.ENTER:
            first = value(self.machine, agent, op.start)
            # Blocks that make other numbers of turns are told apart now, rather than when the first ones are through.
            if not agent.quick.range(op.stop, counters(agent)).single:
                raise UndecidedError(op.stop)
            agent.env[op.counter] = first
            agent.turns[op.counter] = 0
            agent.seen = None
            return self._loop(agent, item, op, inside=agent.pc + 1, after=item.target)
        agent.env[op.counter] += op.step
        agent.turns[op.counter] += 1
        agent.seen = None
        after, agent.pc = agent.pc + 1, item.target  # where it stands for a snapshot: at the start of the next iteration
        self.edges.edge(agent, op)
        return self._loop(agent, item, op, inside=item.target, after=after)

    def _loop(self, agent: Agent, item: Item, op: ops.Loop, *, inside: int, after: int) -> bool:
        if truth(self.machine, agent, item.more):
            agent.pc = inside
        else:
            del agent.turns[op.counter]
            agent.env.pop(op.counter)
            agent.seen = None
            agent.pc = after
        return True

    # ---- conditions
    def _when(self, agent: Agent, item: Item, cond: Cond) -> bool:
        if not item.answered:
            agent.pc = agent.pc + 1 if truth(self.machine, agent, cond) else item.target
            return True
        answers, rest = _parts(cond)
        if not all(self._possible(agent, c) for c in rest):
            agent.pc = item.target
            return True
        seen = [self._answer(agent, a.register) for a in answers]
        over = [s for s in seen if s is not None]
        if len(over) < len(seen):
            if agent.denied:
                agent.denied = False
                agent.pc = item.target
                return True
            return False
        agent.denied = False
        agent.saved.append(agent.known.copy())
        for bar_id, phase in over:
            self._acquire(agent, item, bar_id, phase)
        agent.pc += 1
        return True

    def _acquire(self, agent: Agent, item: Item, bar_id: int, phase: int) -> None:
        """The agent has been told that a phase is over."""
        bar = self.machine.bars[bar_id]
        before = bar.passed.copy()
        passed(self.machine, agent, bar, [phase], Mark(agent.id, agent.time, item.step))
        bar.passed = before  # an answer obliges nobody: asked too late it is no

    def _possible(self, agent: Agent, c: Cond) -> bool:
        """False when `c` fails whatever the answers are."""
        return decide(c, ranges(agent)) is not False if has_answer(c) else truth(self.machine, agent, c)

    def _answer(self, agent: Agent, register: int) -> tuple[int, int] | None:
        """The barrier and phase behind a predicate, once that phase is over."""
        entry = agent.answers.get(register)
        if entry is not None and len(entry) == 3:
            entry = self.machine.tokens.get(entry)
        if entry is None:
            return None
        # Two phases later the answer is no again, but nothing says that the test comes so late.
        return entry if self.machine.bars[entry[0]].phase > entry[1] else None

    def _unguard(self, agent: Agent, item: Item, cond: Cond) -> None:
        """Behind the body nothing is known of the phase, as the answer may have been no; where the body waits after a no, it is over."""
        inside, agent.known = agent.known, agent.saved.pop()
        self.machine.keep_own(agent)
        if isinstance(cond, expr.Not) and isinstance(cond.a, Answer):
            told = self._answer(agent, cond.a.register)
            if told is not None and inside[self.machine.overs + told[0]] > told[1]:
                self._acquire(agent, item, *told)


def _parts(cond: Cond) -> tuple[list[Answer], list[Cond]]:
    """A conjunction's plain answers and everything else."""
    if isinstance(cond, Answer):
        return [cond], []
    if isinstance(cond, expr.And):
        a, b = _parts(cond.a), _parts(cond.b)
        return a[0] + b[0], a[1] + b[1]
    return [], [cond]
