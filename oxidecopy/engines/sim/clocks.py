"""Vector clocks: which accesses to shared memory are ordered, in which proxy, whatever the schedule did.

A clock is one array of counters for a cluster. For each agent i: its epoch, the epoch its proxy fences cover, the epoch its mbarrier-init
fence covers, and how many of its bulk groups are known to be read; then one counter per mbarrier, of completed phases. Clocks travel by
release (arrive, bar.sync, cluster sync) and acquire (the waits on them). A copy's own end travels with the phase it reports to, or with
the wait_group of its thread: a copy publishes nothing of what its issuer did before (PTX 8.9.1.1).

Every array has the counters twice. The first half says what is visible. The second says what has happened, visible or not: a phase that a
copy reports to cannot end before the copy was issued. Memory needs the first, the order of arrivals and phases only the second.

A class of several threads does not know what its own threads did until they meet at a barrier: its clock's own entry only moves when the
class acquires it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.sim import reports
from oxidecopy.engines.sim.accesses import Access, Kind
from oxidecopy.engines.sim.findings import Findings
from oxidecopy.engines.sim.ledger import Ledger
from oxidecopy.engines.sim.map_clocks import MapClocks
from oxidecopy.engines.sim.memory import GRANULE
from oxidecopy.isa.limits import MBARRIER_BYTES, SHARED_BASE

if TYPE_CHECKING:
    from oxidecopy.engines.sim.agents import Agent, Cta, ThreadBarrier
    from oxidecopy.engines.sim.images import TileImage
    from oxidecopy.engines.sim.mbarrier import Mbarrier
    from oxidecopy.errors import Site
    from oxidecopy.isa.ops import Edit, Fill, Instr, Iota, Made, MmaOut, MmaStep, StoreGlobal, TensormapCpFenceproxy
    from oxidecopy.program.program import Program

Clock = npt.NDArray[np.int64]
KEPT_PHASES: Final = 2  # a wait names the current phase or the one before
NEVER: Final = 1 << 62  # a phase that no barrier comes to


@final
class AgentClock:
    """What one agent knows. `now` is its own epoch; `committed` counts its bulk groups."""

    __slots__ = ("committed", "known", "last_store", "now")

    def __init__(self, size: int) -> None:
        self.known: Clock = np.zeros(size, np.int64)
        self.now = 1
        self.committed = 0
        self.last_store: tuple[int, Site | None] = (0, None)


@final
class BarrierClock:
    """What a barrier carries: the releases of the open phase, those of the last completed phases, who made it and who used it."""

    __slots__ = ("announced", "base", "completed", "counter", "done", "made", "open", "remote", "uses", "waits")

    def __init__(self, size: int, counter: int) -> None:
        self.counter = counter
        self.completed = 0
        self.base = 0  # completed phases of earlier lives of the object
        self.open: Clock = np.zeros(size, np.int64)
        self.announced: list[tuple[int, int, Site | None]] = []  # announcements without an arrival in the open phase
        self.waits: dict[int, tuple[int, Site | None]] = {}  # who waited for the phase before the open one, in which epoch
        self.done: dict[int, Clock] = {}
        self.made: tuple[int, int, Site | None] | None = None
        self.uses: dict[int, tuple[int, Site | None]] = {}
        self.remote: list[tuple[int, int, Site | None]] = []


@final
class Clocks:
    """The clocks of the running cluster, and the accesses that later ones must be ordered after."""

    def __init__(self, program: Program, agents: int) -> None:
        self.findings = Findings()
        self.ledger = Ledger(self.findings)
        self.maps = MapClocks(self.findings, self._clock)
        self._program = program
        self._bars: dict[int, int] = {}
        for decl in program.barriers:
            for i in range(decl.stages):
                self._bars.setdefault(SHARED_BASE + decl.offset + i * MBARRIER_BYTES, len(self._bars))
        self._fence, self._made, self._read, self._first_bar = agents, 2 * agents, 3 * agents, 4 * agents
        # Barriers at addresses nobody declared share one last counter in each CTA.
        self._past = self._first_bar + program.cluster_size * (len(self._bars) + 1)
        self._size = 2 * self._past
        self.accesses: list[list[Access]] = []
        self.written: list[npt.NDArray[np.bool_]] = []
        self._ctas: tuple[Cta, ...] = ()

    def start(self, ctas: tuple[Cta, ...]) -> None:
        """A new cluster begins."""
        self._ctas = ctas
        self.ledger.start()
        self.maps.start()
        self.accesses = [[] for _ in ctas]
        self.written = [np.zeros(-(-cta.memory.size // GRANULE), np.bool_) for cta in ctas]
        for cta in ctas:
            for agent in cta.agents:
                agent.clock = AgentClock(self._size)
                self._settle(agent, agent.clock)

    # ---- release and acquire
    def _clock(self, agent: Agent) -> AgentClock:
        clock = agent.clock
        assert clock is not None  # set by start()
        return clock

    def _settle(self, agent: Agent, clock: AgentClock) -> None:
        if agent.threads == 1:  # program order is enough for one thread
            clock.known[agent.index] = clock.known[self._past + agent.index] = clock.now

    def _release(self, agent: Agent, into: Clock) -> None:
        clock = self._clock(agent)
        np.maximum(into, clock.known, out=into)
        into[agent.index] = into[self._past + agent.index] = clock.now
        clock.now += 1
        self._settle(agent, clock)

    def _join(self, agent: Agent, other: Clock) -> None:
        clock = self._clock(agent)
        np.maximum(clock.known, other, out=clock.known)

    def fence(self, agent: Agent, *, proxy: bool) -> None:
        clock = self._clock(agent)
        slot = (self._fence if proxy else self._made) + agent.index
        clock.known[slot] = clock.known[self._past + slot] = clock.now
        clock.now += 1
        self._settle(agent, clock)

    def sync_arrive(self, agent: Agent, bar: ThreadBarrier) -> None:
        if bar.open is None:
            bar.open = np.zeros(self._size, np.int64)
        self._release(agent, bar.open)

    def sync_over(self, bar: ThreadBarrier) -> None:
        if bar.open is not None:
            bar.done[bar.generation - 1] = bar.open
            bar.open = None
            bar.done.pop(bar.generation - 1 - KEPT_PHASES, None)

    def sync_acquire(self, agent: Agent, bar: ThreadBarrier, generation: int) -> None:
        done = bar.done.get(generation)
        if done is not None:
            self._join(agent, done)

    # ---- mbarriers
    def _bar(self, cta: Cta, bar: Mbarrier) -> BarrierClock:
        if bar.clock is None:
            number = self._bars.get(bar.address, len(self._bars))
            counter = self._first_bar + cta.rank * (len(self._bars) + 1) + number
            bar.clock = BarrierClock(self._size, counter)
        return bar.clock

    def init(self, agent: Agent, bar: Mbarrier, site: Site | None) -> None:
        clock = self._bar(agent.cta, bar)
        if clock.made is not None or agent.threads > 1:
            self.findings.add(reports.init_again(self._program, agent, bar, site, clock.made[2] if clock.made is not None else site))
        clock.made = (agent.index, self._clock(agent).now, site)
        clock.base = clock.completed
        clock.done.clear()
        clock.waits.clear()
        clock.announced.clear()
        clock.open[:] = 0

    def inval(self, agent: Agent, bar: Mbarrier, site: Site | None) -> None:
        clock, known = self._bar(agent.cta, bar), self._clock(agent).known
        for index, (epoch, used) in clock.uses.items():
            if known[index] < epoch:
                self.findings.add(reports.inval_in_use(self._program, agent, bar, site, used))
        if bar.tx:
            self.findings.add(reports.bytes_left(self._program, agent.cta, bar, site))
        self.use(agent, agent.cta, bar, site)
        clock.made = None
        clock.uses.clear()

    def use(self, agent: Agent, cta: Cta, bar: Mbarrier, site: Site | None) -> None:
        """`agent` names this barrier in an op: its init must be visible to it."""
        clock, mine = self._bar(cta, bar), self._clock(agent)
        clock.uses[agent.index] = (mine.now, site)
        made = clock.made
        if made is None:
            self.findings.add(reports.no_barrier(self._program, agent, bar, site))
            return
        index, epoch, where = made
        if mine.known[index] < epoch:
            self.findings.add(reports.init_not_visible(self._program, agent, bar, site, where))
        elif cta is not agent.cta and mine.known[self._made + index] < epoch:
            self.findings.add(reports.init_not_fenced(self._program, agent, bar, site, where))
        if cta is not agent.cta:
            self._remote(agent, cta, site)

    def _remote(self, agent: Agent, cta: Cta, site: Site | None) -> None:
        known = self._clock(agent).known
        if not any(known[self._past + other.index] for other in cta.agents):
            self.findings.add(reports.peer_not_started(agent, cta, site))

    def arrive(self, agent: Agent, cta: Cta, bar: Mbarrier, site: Site | None) -> None:
        self.use(agent, cta, bar, site)
        clock = self._bar(cta, bar)
        self._in_phase(agent, clock, bar, site)
        if cta is not agent.cta:
            clock.remote.append((agent.index, self._clock(agent).now, site))
        self._release(agent, clock.open)

    def move_bytes(self, agent: Agent, bar: Mbarrier, site: Site | None, *, announced: bool) -> None:
        """expect_tx or complete_tx, without an arrival."""
        self.use(agent, agent.cta, bar, site)
        clock = self._bar(agent.cta, bar)
        self._in_phase(agent, clock, bar, site)
        if announced:
            clock.announced.append((agent.index, self._clock(agent).now, site))
        self._cause(clock, self._happened(agent))

    def _happened(self, agent: Agent) -> Clock:
        """What has happened before what `agent` does now, this included."""
        clock = self._clock(agent)
        past = clock.known[self._past :].copy()
        past[agent.index] = clock.now
        return past

    def _cause(self, clock: BarrierClock, past: Clock) -> None:
        """The open phase cannot end before this has happened."""
        half = clock.open[self._past :]
        np.maximum(half, past, out=half)

    def _in_phase(self, agent: Agent, clock: BarrierClock, bar: Mbarrier, site: Site | None) -> None:
        """Unless the phase before must have ended by now, this could have come while it was still open."""
        if clock.completed > clock.base and self._clock(agent).known[self._past + clock.counter] < clock.completed:
            self.findings.add(reports.unordered_arrival(self._program, agent, bar, site))

    def counted(self, agent: Agent, bar: Mbarrier, before: int, phase: int, token: tuple[Mbarrier, int] | None, site: Site | None) -> None:
        """The arrivals of one class must all count in one phase, and a token must name one phase."""
        if phase != before or (token is not None and token != (bar, phase)):
            self.findings.add(reports.split_arrival(self._program, agent, bar, site))

    def ask(self, agent: Agent, cta: Cta, bar: Mbarrier, phase: int, site: Site | None) -> None:
        """A wait names `phase`: parity can only tell the current phase and the one before."""
        self.use(agent, cta, bar, site)
        if bar.phase - phase not in (0, 1):
            self.findings.add(reports.ambiguous_phase(self._program, agent, bar, phase, site))

    def own_token(self, agent: Agent, bar: Mbarrier, made_on: Mbarrier, site: Site | None) -> None:
        if bar is not made_on:
            self.findings.add(reports.foreign_token(self._program, agent, bar, made_on, site))

    def acquire(self, agent: Agent, bar: Mbarrier, phase: int) -> None:
        done = bar.clock.done.get(phase) if bar.clock is not None else None
        if done is not None:
            self._join(agent, done)

    def waited(self, agent: Agent, bar: Mbarrier, phase: int, site: Site | None) -> None:
        """A wait that blocks has returned: its phase is over."""
        self.acquire(agent, bar, phase)
        if bar.clock is not None and phase == bar.phase - 1:
            bar.clock.waits[agent.index] = (self._clock(agent).now, site)

    def phase_over(self, bar: Mbarrier) -> None:
        """A phase has ended. Whoever waited for the one before must have caused it, or it may come two phases late elsewhere."""
        clock = bar.clock
        if clock is None:
            return
        for index, (epoch, site) in clock.waits.items():
            if clock.open[self._past + index] < epoch:
                self.findings.add(reports.late_wait(self._program, bar, site))
        for index, epoch, site in clock.announced:
            if clock.open[index] < epoch:  # what arrivals released, and no copy's cause
                self.findings.add(reports.late_announcement(self._program, bar, site))
        clock.waits.clear()
        clock.announced.clear()
        clock.completed += 1
        clock.open[clock.counter] = clock.open[self._past + clock.counter] = clock.completed
        clock.done[bar.phase - 1] = clock.open
        clock.done.pop(bar.phase - 1 - KEPT_PHASES, None)
        clock.open = np.zeros(self._size, np.int64)

    # ---- tiles
    def write(
        self, agent: Agent, image: TileImage, op: Fill | Iota | MmaOut, turn: tuple[int, ...], site: Site | None, *, alone: bool
    ) -> None:
        access = self._plain(Kind.WRITE, agent, image, op, site)
        access.turn, access.alone = turn, alone
        self._check(agent, agent.cta, access)
        image.mark(self.written[agent.cta.rank])

    def read(self, agent: Agent, image: TileImage, op: StoreGlobal | TensormapCpFenceproxy, site: Site | None) -> None:
        self._check(agent, agent.cta, self._plain(Kind.READ, agent, image, op, site))
        self._check_written(agent, image, site)

    def operands(self, agent: Agent, sources: Sequence[TileImage], op: MmaStep, site: Site | None) -> None:
        """Reads through the async proxy that are over when the op is: as plain ones, but of what plain stores wrote only behind a fence."""
        for source in sources:
            read = self._plain(Kind.READ, agent, source, op, site)
            read.fenced = True
            self._check(agent, agent.cta, read)
            self._check_written(agent, source, site)

    def map(
        self,
        agent: Agent,
        sources: list[TileImage],
        image: TileImage,
        op: Made,
        turn: tuple[int, ...],
        site: Site | None,
        *,
        alone: bool,
    ) -> None:
        """Reads of all sources, then a write: a thread's own read of an element comes before its write of it."""
        reads = [self._plain(Kind.READ, agent, source, op, site) for source in sources]
        for source, access in zip(sources, reads, strict=True):
            access.turn = turn
            self._check(agent, agent.cta, access)
            self._check_written(agent, source, site)
        write = self._plain(Kind.WRITE, agent, image, op, site)
        write.turn, write.alone = turn, alone
        self._check(agent, agent.cta, write, own=reads)
        image.mark(self.written[agent.cta.rank])

    def edit(self, agent: Agent, image: TileImage, op: Edit, turn: tuple[int, ...], site: Site | None, *, reads: bool, alone: bool) -> None:
        """A map in the tile is written, all of it; but for a copy of one, from what is there."""
        if not alone:
            self.findings.add(reports.edited_together(agent, site))
        before = [self._plain(Kind.READ, agent, image, op, site)] if reads else []
        for access in before:
            access.turn = turn
            self._check(agent, agent.cta, access)
            self._check_written(agent, image, site)
        write = self._plain(Kind.WRITE, agent, image, op, site)
        write.turn = turn
        self._check(agent, agent.cta, write, own=before)
        image.mark(self.written[agent.cta.rank])

    def _plain(self, kind: Kind, agent: Agent, image: TileImage, op: Instr, site: Site | None) -> Access:
        access = Access(kind, image.address, image.end, agent.index, self._clock(agent).now, site)
        access.op = op
        return access

    def issue_load(
        self, agent: Agent, cta: Cta, image: TileImage, bar: Mbarrier, site: Site | None, *, reduces: tuple[str, str] | None = None
    ) -> Access:
        """A copy will write the tile; one that `reduces` also reads it."""
        self.use(agent, cta, bar, site)
        access = Access(Kind.LOAD, image.address, image.end, agent.index, 0, site)
        clock = self._bar(cta, bar)
        access.counter = clock.counter
        access.past = self._happened(agent)
        access.reduces = reduces
        self._check(agent, cta, access)
        if reduces is not None and not image.is_marked(self.written[cta.rank]):
            self.findings.add(reports.never_written(self._program, agent, image, site))
        image.mark(self.written[cta.rank])
        return access

    def issue_send(self, agent: Agent, image: TileImage, cta: Cta, bar: Mbarrier, site: Site | None) -> Access:
        """A copy to CTA `cta` reads the tile: over for whoever knows that the phase over there is over. There is no group to wait for."""
        access = Access(Kind.STORE, image.address, image.end, agent.index, 0, site)
        access.counter = self._bar(cta, bar).counter
        access.target = NEVER
        self._check(agent, agent.cta, access)
        self._check_written(agent, image, site)
        return access

    def landing(self, access: Access, cta: Cta, bar: Mbarrier, *, last: bool) -> None:
        """A portion lands now. After the last, whoever knows that the open phase is over may use the tile."""
        clock = self._bar(cta, bar)
        if access.past is not None:
            self._cause(clock, access.past)
        if last:
            access.target = clock.completed + 1

    def issue_store(self, agent: Agent, image: TileImage, site: Site | None) -> Access:
        clock = self._clock(agent)
        access = Access(Kind.STORE, image.address, image.end, agent.index, 0, site)
        access.target = clock.committed + 1
        access.counter = self._read + agent.index
        clock.last_store = (access.target, site)
        self._check(agent, agent.cta, access)
        self._check_written(agent, image, site)
        return access

    def commit(self, agent: Agent) -> None:
        self._clock(agent).committed += 1

    def groups_waited(self, agent: Agent, pending: int, *, read_only: bool) -> None:
        clock = self._clock(agent)
        slot = self._read + agent.index
        if not read_only:
            self.ledger.waited(agent, clock.committed - pending)
        done = max(int(clock.known[slot]), clock.committed - pending)
        clock.known[slot] = clock.known[self._past + slot] = done

    def _check_written(self, agent: Agent, image: TileImage, site: Site | None) -> None:
        if not image.is_marked(self.written[agent.cta.rank]):
            self.findings.add(reports.never_written(self._program, agent, image, site))

    def _check(self, agent: Agent, cta: Cta, new: Access, own: Sequence[Access] = ()) -> None:
        """Reports every earlier access (but its `own` reads) that `new` is not ordered after, and takes its place where it covers them."""
        known = self._clock(agent).known
        kept = []
        for old in self.accesses[cta.rank]:
            if old.high <= new.low or new.high <= old.low:
                kept.append(old)
                continue
            problem = "" if old in own else self._problem(known, old, new)
            if problem:
                self.findings.add(reports.race(self._program, agent, cta, problem, old, new))
            if not new.replaces(old):
                kept.append(old)
        kept.append(new)
        self.accesses[cta.rank] = kept

    def _problem(self, known: Clock, old: Access, new: Access) -> str:
        """The rule that `new` after `old` breaks, or nothing."""
        writes = new.kind in (Kind.WRITE, Kind.LOAD)
        if old.reduces is not None and old.reduces == new.reduces:
            return ""  # each element is combined in one step, in any order
        if old.kind is Kind.LOAD:
            if old.target and known[old.counter] >= old.target:
                return ""
            return reports.OVERWRITTEN_IN_FLIGHT if writes else reports.READ_BEFORE_LANDING
        if old.kind is Kind.STORE:
            return reports.OVERWRITTEN_BEFORE_READ if writes and known[old.counter] < old.target else ""
        if old.kind is Kind.READ and not writes:
            return ""
        asynchronous = new.kind in (Kind.LOAD, Kind.STORE) or new.fenced
        if known[old.agent] < old.epoch and not new.same_step(old):
            return reports.UNORDERED_COPY if asynchronous else reports.RACE
        if asynchronous and old.kind is Kind.WRITE and known[self._fence + old.agent] < old.epoch:
            return reports.NO_PROXY_FENCE
        return ""

    # ---- the end
    def finish(self, cta: Cta) -> None:
        """What must not be left when a CTA exits. Called when the whole cluster has ended and nothing is in flight."""
        clocks = [self._clock(agent) for agent in cta.agents]
        for agent, clock in zip(cta.agents, clocks, strict=True):
            number, site = clock.last_store
            if number > clock.known[self._read + agent.index]:
                self.findings.add(reports.store_not_drained(agent, site))
        for access in self.accesses[cta.rank]:
            if access.kind is Kind.LOAD and not any(clock.known[access.counter] >= access.target for clock in clocks):
                self.findings.add(reports.load_not_waited(self._program, cta, access))
            elif (
                access.kind is Kind.STORE
                and access.counter >= self._first_bar
                and not any(c.known[access.counter] >= access.target for c in clocks)
            ):
                self.findings.add(reports.send_not_waited(self._program, cta, access))
        for bar in cta.bars.values():
            if bar.clock is not None:
                self._finish_barrier(cta, bar, bar.clock, [clock.known for clock in clocks])

    def _finish_barrier(self, cta: Cta, bar: Mbarrier, clock: BarrierClock, known: list[Clock]) -> None:
        if bar.tx and clock.made is not None:
            self.findings.add(reports.bytes_left(self._program, cta, bar, None))
        for index, epoch, site in clock.remote:
            if not any(k[self._past + index] >= epoch for k in known):
                self.findings.add(reports.peer_may_be_gone(cta, site))
