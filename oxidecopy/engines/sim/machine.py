"""The machine of one launch: CTAs of one cluster at a time, who is ready to run, and the bulk copies in flight.

Clusters run one after the other (a legal order: nothing but global memory connects them). Inside a cluster every agent that can run is
in `ready`; an agent that must wait has registered itself with what it waits for. When nobody is ready and nothing is in flight, whoever
has not ended is in a deadlock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import final

from oxidecopy.engines.sim.agents import BLOCKED, ENDED, Agent, Code, Cta, ThreadBarrier
from oxidecopy.engines.sim.classes import ThreadClass
from oxidecopy.engines.sim.clocks import Clocks
from oxidecopy.engines.sim.faults import Fault
from oxidecopy.engines.sim.flight import Flight
from oxidecopy.engines.sim.mbarrier import Mbarrier
from oxidecopy.engines.sim.memory import SharedMemory
from oxidecopy.engines.sim.notes import Ran
from oxidecopy.engines.sim.schedule import Schedule
from oxidecopy.engines.sim.shares import Shares
from oxidecopy.errors import Site
from oxidecopy.program.program import Program


class Stuck(Exception):
    """Nobody can go on, and somebody has not ended."""


class OutOfSteps(Exception):
    """The bound on loop iterations was reached by `agent`."""

    def __init__(self, agent: Agent) -> None:
        super().__init__("step bound")
        self.agent = agent


@final
class Machine:
    """Runs the clusters of a launch.

    Without `clocks` copies happen at once (the fast path); with them they are in flight, and `schedule` says what happens next. Where there
    is none the caller does (`exhaust`).
    """

    def __init__(self, program: Program, *, clocks: Clocks | None, schedule: Schedule | None, max_steps: int, shares: Shares) -> None:
        self.program = program
        self.clocks = clocks
        self.schedule = schedule
        self.max_steps = max_steps
        self.shares = shares
        self.ran = Ran() if clocks is not None else None
        self.steps_left = max_steps
        self.ready: deque[Agent] = deque()
        self.cluster_barrier = ThreadBarrier()
        self.flight = Flight(self, clocks, schedule.random if schedule is not None else None) if clocks is not None else None
        self.ctas = tuple(Cta(rank, SharedMemory(program.shared_bytes)) for rank in range(program.cluster_size))
        self.agents: tuple[Agent, ...] = ()
        self.fault_site: Site | None = None
        self.fault_agent: Agent | None = None
        self.live_threads = 0
        self.constants: Mapping[str, int] = {}  # of the launch, by symbol

    def load(self, classes: tuple[ThreadClass, ...], codes: tuple[Code, ...]) -> None:
        """Gives every CTA its agents."""
        index = 0
        for cta in self.ctas:
            agents = []
            for kind, code in zip(classes, codes, strict=True):
                agents.append(Agent(cta, kind, code, index))
                index += 1
            cta.agents = tuple(agents)
        self.agents = tuple(agent for cta in self.ctas for agent in cta.agents)

    def run_cluster(self, blocks: list[tuple[int, int, int]]) -> None:
        """Runs the CTAs with these block indices (by rank) to their end; raises Fault, Stuck or OutOfSteps."""
        self.start_cluster(blocks)
        if self.schedule is None or self.flight is None:
            while self.ready:
                self._run(self.ready.popleft())
        else:
            self.schedule.drive(self, self.flight)
        self.finish_cluster()

    def start_cluster(self, blocks: list[tuple[int, int, int]]) -> None:
        """All agents at their first op."""
        for cta, block in zip(self.ctas, blocks, strict=True):
            cta.reset(block)
        self.cluster_barrier = ThreadBarrier()
        self.live_threads = self.program.threads * len(self.ctas)
        self.ready.extend(self.agents)
        if self.clocks is not None:
            self.clocks.start(self.ctas)

    def finish_cluster(self) -> None:
        """Nobody is ready and nothing in flight: all have ended, or it is a deadlock."""
        if any(not agent.ended for agent in self.agents):
            raise Stuck
        if self.clocks is not None:
            for cta in self.ctas:
                self.clocks.finish(cta)

    def _run(self, agent: Agent) -> None:
        """Runs `agent` until it waits or ends."""
        ops = agent.code.ops
        pc = agent.pc
        try:
            while (to := ops[pc](agent)) >= 0:
                pc = to
        except (Fault, ZeroDivisionError):
            self.blame(agent, pc)
            raise
        agent.pc = pc
        if to == ENDED:
            self.end(agent)

    def step(self, agent: Agent) -> bool:
        """Runs one op of `agent`; True when it can go on."""
        try:
            to = agent.code.ops[agent.pc](agent)
        except (Fault, ZeroDivisionError):
            self.blame(agent, agent.pc)
            raise
        if to >= 0:
            agent.pc = to
            return True
        if to != BLOCKED:
            self.end(agent)
        return False

    def blame(self, agent: Agent, pc: int) -> None:
        agent.pc = pc
        self.fault_agent, self.fault_site = agent, agent.site

    def end(self, agent: Agent) -> None:
        """The threads of `agent` exit; exited threads count as arrived at the cluster barrier (PTX barrier.cluster)."""
        agent.ended = True
        self.live_threads -= agent.threads
        self.check_cluster_barrier()

    def check_cluster_barrier(self) -> None:
        bar = self.cluster_barrier
        if bar.arrived and bar.arrived >= self.live_threads:
            bar.arrived = 0
            self.sync_over(bar)

    def sync_over(self, bar: ThreadBarrier) -> None:
        """Everyone a thread barrier waits for is there."""
        bar.generation += 1
        if self.clocks is not None:
            self.clocks.sync_over(bar)
        self.wake(bar.waiters)

    def phase_over(self, bar: Mbarrier) -> None:
        """A phase of `bar` was completed just now."""
        if self.clocks is not None:
            self.clocks.phase_over(bar)
        if bar.waiters:
            self.wake(bar.waiters)

    def wake_for_token(self, cta: Cta, token: int) -> None:
        """An arrive that makes `token` has run."""
        woken = [agent for agent in cta.token_waiters if agent.wait is not None and agent.wait.detail == token]
        cta.token_waiters = [agent for agent in cta.token_waiters if agent not in woken]
        self.wake(woken)

    def wake(self, waiters: list[Agent]) -> None:
        for agent in waiters:
            agent.wait = None
        self.ready.extend(waiters)
        waiters.clear()
