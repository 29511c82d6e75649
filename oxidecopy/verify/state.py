"""The abstract state of one cluster: agents with what they know, barriers, and what was done to each shared tile.

Times are counts of ops per agent. What an agent knows is one vector: for each agent the time up to which its ops are ordered before, for
each agent the same for its last proxy fence, for each barrier of the cluster the number of phases seen to be over (with all they make
visible), then the same for barriers and agents by mere physical order: phases that are over and ops that have run, visible or not. The two
differ because a landed copy proves that its issuer had come so far, but makes nothing visible except its own bytes (tma.md G.1).
Everything compares times only by order and joins them by maximum; `periods` rests on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from oxidecopy.isa.expr import Cond, Expr
from oxidecopy.isa.ops import BarSync, ClusterSync, Instr, MbarrierWaitParity, MbarrierWaitPhase
from oxidecopy.program.program import Launch, Program, Step
from oxidecopy.verify.affine import Range
from oxidecopy.verify.classes import ThreadClass
from oxidecopy.verify.code import Item
from oxidecopy.verify.quick import Quick
from oxidecopy.verify.report import Collector

Known: TypeAlias = npt.NDArray[np.int64]
TokenKey: TypeAlias = tuple[int, int, tuple[int, ...]]  # rank, token, iterations of the enclosing loops


_PLURAL: Final = {"has": "have"}


def join(into: Known, other: Known) -> None:
    np.maximum(into, other, out=into)


@final
@dataclass(slots=True)
class Mark:
    """That an agent ran a step at a time."""

    agent: int
    time: int
    step: Step


class Life(Enum):
    """Of an mbarrier object."""

    NONE = "never initialised"
    LIVE = "live"
    DEAD = "invalidated"


# Members of an enumeration under names of their own: to look them up in it takes long (Python 3.11), and the walk asks at every op.
LIVE: Final = Life.LIVE


@final
@dataclass(slots=True, kw_only=True, eq=False)
class Bar:
    """One mbarrier of one CTA. Phases count over all lives: the current life's phase 0 is `base`. `id` is its place in `Known`."""

    id: int
    rank: int
    decl: int
    index: int
    name: str
    life: Life = Life.NONE
    base: int = 0
    phase: int = 0
    count: int = 0
    pending: int = 0
    expected: int = 0
    issued: int = 0
    born: Mark | None = None  # the init, later the inval
    init_fence: int = -1  # time of fence.mbarrier_init by the initialising agent
    acc: Known | None = None  # joined knowledge of this phase's arrivers
    arrived: list[Mark] = field(default_factory=list)
    announced: list[Mark] = field(default_factory=list)  # every expect of this phase
    bare: list[Mark] = field(default_factory=list)  # those that did not arrive
    copies: list[Mark] = field(default_factory=list)
    last_expected: int = 0  # of the phase before
    last_arrived: list[Mark] = field(default_factory=list)
    last_announced: list[Mark] = field(default_factory=list)
    last_copies: list[Mark] = field(default_factory=list)
    published: Known | None = None  # what the arrivers of the phase before knew
    passed: dict[int, Mark] = field(default_factory=dict)  # by agent: its last wait for the newest phase that is over
    used: dict[int, Mark] = field(default_factory=dict)  # last use by each agent
    loaded: tuple[int, Mark] | None = None  # the newest phase with bytes of a copy
    remote: dict[int, tuple[int, Mark]] = field(default_factory=dict)  # last arrival from each agent of another CTA, with its phase
    broken: bool = False  # a violation of its counts was reported: no more of them
    sleepers: list[Agent] = field(default_factory=list)  # agents that wait for the next phase


class Way(Enum):
    """How a tile is touched."""

    WRITE = "written"
    READ = "read"
    LOAD = "loaded"
    STORE = "stored"


WRITE: Final = Way.WRITE
READ: Final = Way.READ
LOAD: Final = Way.LOAD
STORE: Final = Way.STORE


@final
@dataclass(slots=True)
class Access:
    """Bytes [lo, hi) of a stage touched by an agent.

    A load is over when `bar` has completed `until` phases, a store's read at `done`. A store with a `bar` is a copy to another CTA, whose
    read is over as a load is.
    """

    way: Way
    mark: Mark
    lo: int
    hi: int
    bar: int = -1
    until: int = 0
    done: int = -1
    reduces: str | None = None  # of a copy that combines: its operation
    # For an access that several classes run, each for its share: the loops around it and their iterations, which name the instance.
    loops: tuple[str, ...] = ()
    turns: tuple[int, ...] | None = None

    def same_instance(self, step: Step, turns: tuple[int, ...]) -> bool:
        return self.turns == turns and self.mark.step is step


@final
@dataclass(slots=True, kw_only=True, eq=False)
class Stage:
    """One stage of a tile in one CTA. `written` are the disjoint sorted byte ranges that something was ever put in."""

    rank: int
    tile: int
    index: int
    name: str
    accesses: list[Access] = field(default_factory=list)
    written: tuple[tuple[int, int], ...] = ()

    def covers(self, lo: int, hi: int) -> bool:
        return any(a <= lo and hi <= b for a, b in self.written)

    def cover(self, lo: int, hi: int) -> None:
        if self.covers(lo, hi):
            return
        parts: list[tuple[int, int]] = []
        for a, b in sorted((*self.written, (lo, hi))):
            if parts and a <= parts[-1][1]:
                parts[-1] = (parts[-1][0], max(b, parts[-1][1]))
            else:
                parts.append((a, b))
        self.written = tuple(parts)


@final
@dataclass(slots=True, eq=False)
class Place:
    """A place for a map in global memory, of one CTA.

    `uses` are the copies through what is there, `fetched` one that never tells when it is over. `acquired` are acquires of what is there.
    """

    released: Mark | None = None
    acquired: list[Mark] = field(default_factory=list)
    uses: list[Access] = field(default_factory=list)
    fetched: Mark | None = None


Span: TypeAlias = tuple[Stage, int, int]  # bytes [lo, hi) of a stage


@final
@dataclass(slots=True)
class Group:
    """A bulk group of one thread: its stores."""

    stores: list[Access]


@final
@dataclass(slots=True, kw_only=True, eq=False)
class Agent:
    """One class of one CTA, at a position of its code."""

    id: int
    rank: int
    threads: ThreadClass
    size: int
    name: str
    code: list[Item]
    known: Known
    env: dict[str, int]
    ranges: dict[str, Range]
    quick: Quick  # shared by the agents of a CTA
    pc: int = 0
    time: int = 0
    fence: int = 0
    asleep: bool = False  # it waits, and nothing has changed for it since it last looked
    released: bool = False  # a sync let it pass
    denied: bool = False  # the answer it waits for is taken to be no
    turns: dict[str, int] = field(default_factory=dict)  # iteration number of each active loop
    open: list[Access] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    answers: dict[int, tuple[int, int] | TokenKey] = field(default_factory=dict)  # by predicate: a barrier's id and phase, or a token
    saved: list[Known] = field(default_factory=list)  # knowledge before each guarded body

    seen: dict[str, Range] | None = None  # the counters of `turns` as ranges, made when asked for and dropped when one moves
    given: dict[str, Range] = field(default_factory=dict)  # the number of tiles that a counter gives, in this walk

    @property
    def done(self) -> bool:
        return self.pc >= len(self.code)

    def does(self, verb: str) -> str:
        """Its name with a verb in the right number: `thread 0 waits`, `threads 1-127 wait`."""
        many = self.size > 1
        return f"{self.name} {_PLURAL.get(verb, verb.removesuffix('s')) if many else verb}"


class Use(Enum):
    """What a value decides, hence what must not change for a period to repeat."""

    INDEX = "index"  # the value itself
    PHASE = "phase"  # the value against the barrier's phase
    TRUTH = "truth"  # a condition
    COORD = "coord"  # only a range


INDEX: Final = Use.INDEX
PHASE: Final = Use.PHASE
TRUTH: Final = Use.TRUTH


@final
@dataclass(slots=True)
class Asked:
    """An expression whose value steered an agent, with the loop counters (and the number of tiles given) that it saw."""

    agent: int
    use: Use
    expr: Expr | Cond
    counters: dict[str, Range]
    truth: bool = False
    bar: int = -1
    item: Item | None = None


@final
@dataclass(slots=True, kw_only=True, eq=False)
class Machine:
    """Everything one co-execution needs."""

    program: Program
    launch: Launch
    out: Collector
    agents: list[Agent]
    bars: list[Bar]
    stages: list[Stage]
    bar_base: tuple[int, ...]
    tile_base: tuple[int, ...]
    bars_per_cta: int
    stages_per_cta: int
    steered: dict[int, bool] = field(default_factory=dict)  # by id of an expression: whether a loop counter is in it
    # By op (its id), rank and the values that name them: barriers, tile bytes, and those of sources.
    operands: dict[tuple[int, ...], tuple[Sequence[Bar], Sequence[Span], Sequence[Span]]] = field(default_factory=dict)
    doubtful: set[int]  # ids of the copies whose coordinates are judged at each instance
    tokens: dict[TokenKey, tuple[int, int]] = field(default_factory=dict)
    places: dict[tuple[int, str, int], Place] = field(default_factory=dict)  # for maps, by CTA, array and number
    syncs: dict[tuple[int, int], list[Agent]] = field(default_factory=dict)
    sync_users: dict[tuple[int, int], dict[int, int]] = field(
        default_factory=dict
    )  # by CTA and named barrier: who ever met there, with sizes
    met: set[tuple[int, ...]] = field(default_factory=set)  # which agents met at which sync, and were looked at
    woken: bool = False  # the last op ended a phase or a sync
    explained: bool = False  # a deadlock was met, and who waits for whom was said
    lost: bool = False  # an op had no live barrier to work on: what follows from that is not reported
    ran: dict[int, int] = field(default_factory=dict)  # id of every step that ran, numbered in order of the first time
    log: list[Asked] | None = None  # expressions that steered the run since the last snapshot, while a period is looked for
    trips: str = ""  # the name of the number of tiles that a counter gives, and that number in this walk
    count: int = 0
    steps: dict[int, set[int]] = field(default_factory=dict)  # by id of a class's code: the ids of its steps
    all_phases: bool = False  # log the phases that are asked for as constants, too
    # Where the parts of `Known` begin, after the times that are ordered before: fences, phases over, phases ended, times run.
    fences: int = field(init=False)
    overs: int = field(init=False)
    ends: int = field(init=False)
    rans: int = field(init=False)

    def __post_init__(self) -> None:
        self.fences = len(self.agents)
        self.overs = 2 * self.fences
        self.ends = self.overs + len(self.bars)
        self.rans = self.ends + len(self.bars)

    def order(self, agent: Agent, mark: Mark) -> bool:
        """True when the marked op is ordered before whatever `agent` does next, for every thread of it."""
        return bool(agent.known[mark.agent] >= mark.time)

    def fenced(self, agent: Agent, mark: Mark) -> bool:
        """True when a proxy fence by the marked op's threads, after it, is ordered before what `agent` does next."""
        return bool(agent.known[self.fences + mark.agent] >= mark.time)

    def over(self, agent: Agent, bar: Bar) -> int:
        """How many phases of `bar` the agent knows to be over."""
        return int(agent.known[self.overs + bar.id])

    def ended(self, agent: Agent, bar: Bar) -> int:
        """How many phases of `bar` are over for certain when the agent goes on, visible to it or not."""
        return int(agent.known[self.ends + bar.id])

    def ran_before(self, known: Known, mark: Mark) -> bool:
        """True when whoever has this knowledge goes on after the marked op for certain, visible to it or not."""
        return bool(known[self.rans + mark.agent] >= mark.time)

    def step_on(self, agent: Agent) -> None:
        """The agent runs one more op."""
        agent.time += 1
        if agent.size == 1:
            self._own(agent, agent.known)

    def keep_own(self, agent: Agent) -> None:
        """A single thread knows what it did: program order is enough. Several threads must meet first."""
        if agent.size == 1:
            self._own(agent, agent.known)

    def _own(self, agent: Agent, known: Known) -> None:
        known[agent.id] = known[self.rans + agent.id] = agent.time
        known[self.fences + agent.id] = agent.fence

    def sleep(self, at: At) -> None:
        """The op's agent looks again when the sync is complete, or when the barrier's phase or life has changed."""
        if isinstance(at.op, BarSync | ClusterSync):
            at.agent.asleep = True
        elif isinstance(at.op, MbarrierWaitPhase | MbarrierWaitParity):
            at.agent.asleep = True
            at.bars[0].sleepers.append(at.agent)

    def learn(self, agent: Agent, bar: Bar, phases: int) -> None:
        known = agent.known
        for at in (self.overs + bar.id, self.ends + bar.id):
            known[at] = max(known[at], phases)

    def witness(self, agent: Agent, bar: Bar) -> None:
        """The phase of `bar` needs bytes that the agent issues now: when it is over, so is all that the agent had to wait for."""
        if bar.acc is None:
            bar.acc = np.zeros_like(agent.known)
        happened = bar.acc[self.ends :]
        np.maximum(happened, agent.known[self.ends :], out=happened)

    def publish(self, agent: Agent) -> Known:
        """What an arrival of all the agent's threads hands on: all they know and did."""
        known = agent.known.copy()
        self._own(agent, known)
        return known

    def mates(self, rank: int) -> list[Agent]:
        """The agents of one CTA."""
        n = len(self.agents) // self.program.cluster_size
        return self.agents[rank * n : (rank + 1) * n]


@final
@dataclass(slots=True, eq=False)
class At:
    """One op instance with its operands resolved."""

    agent: Agent
    item: Item
    op: Instr
    mark: Mark
    bars: Sequence[Bar] = ()
    tiles: Sequence[Span] = ()
    sources: Sequence[Span] = ()  # what is read of an op that writes `tiles`
    phases: tuple[int, ...] = ()  # those waited for, counted over all lives
    turns: tuple[int, ...] = ()
    flagged: bool = False  # a violation about its tiles was found: it leaves no trace to be reported again

    @property
    def step(self) -> Step:
        return self.item.step
