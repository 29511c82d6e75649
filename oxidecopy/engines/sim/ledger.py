"""Who stored what in global memory: stores that meet, and loads of what another cluster stores in the same launch.

Beside each buffer that a program stores to lies a shadow: for every granule the number of its latest store, and the cluster that last
loaded it. Clusters run one after the other here and at the same time on a GPU, so whatever two of them do to one granule is unordered.
Inside a cluster the clocks decide, and for a bulk store the `wait_group` that saw it through. A reduction leaves no mark where a store
lies, since any number of one operation may meet: a store after reductions of several clusters is only held against the last of them.
Of loads and stores inside one cluster only a load after the store of another CTA is looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.sim import reports
from oxidecopy.engines.sim.memory import GRANULE, SimBuffer

if TYPE_CHECKING:
    from oxidecopy.engines.sim.agents import Agent
    from oxidecopy.engines.sim.clocks import AgentClock
    from oxidecopy.engines.sim.findings import Findings
    from oxidecopy.engines.sim.flight import Coords, Source, Target
    from oxidecopy.engines.sim.memory import GlobalMemory
    from oxidecopy.errors import Site

Marks = npt.NDArray[np.int32]
LedgerState: TypeAlias = "tuple[int, tuple[_Store, ...], dict[int, tuple[tuple[int, int], ...]], dict[int, tuple[bytes, bytes]]]"
_MARK: Final = 4  # bytes of one


class Region(NamedTuple):
    """Strided bytes of global memory: rows of `shape[-1]` items of `item` bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    item: int


@final
class _Store(NamedTuple):
    """A store that was issued. `at` is its agent's epoch, or the number of its bulk group."""

    cluster: int
    cta: int
    agent: int
    bulk: bool
    op: str
    at: int
    site: Site | None


@final
class _Shadow:
    """Marks of one buffer: 0, the number of a store, or of a cluster that loads (from 1 on)."""

    __slots__ = ("loaded", "stored")

    def __init__(self, buffer: SimBuffer, granule: int) -> None:
        self.stored: Marks = np.zeros(len(buffer.data) // granule, np.int32)
        self.loaded: Marks = np.zeros(len(buffer.data) // granule, np.int32)


@final
class Ledger:
    """The marks of a launch; none before `watch` says where."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._memory: GlobalMemory | None = None
        self._granule = GRANULE
        self._shadows: dict[int, _Shadow] = {}
        self._stores: list[_Store] = []
        self._cluster = 0
        self._waited: dict[int, list[tuple[int, int]]] = {}  # of each agent: groups seen through, and in which epoch

    def watch(self, memory: GlobalMemory, stored: Collection[SimBuffer], elements: Collection[int]) -> None:
        """Looks at buffers that the program stores to. Of plain stores `elements` are the sizes in bytes: smaller ones are told apart."""
        self._memory = memory
        self._granule = min(elements, default=GRANULE)
        self._shadows = {buffer.address: _Shadow(buffer, self._granule) for buffer in stored}

    def start(self) -> None:
        """A new cluster begins."""
        self._cluster += 1
        self._waited.clear()

    def missed(self, address: int, dims: tuple[int, ...], strides: tuple[int, ...], size: int) -> npt.NDArray[np.bool_] | None:
        """Which elements of a dense-rowed tensor nothing was stored to; None where nobody looked.

        Args:
            address: of its first element.
            dims: extents, outermost first.
            strides: bytes, without the innermost.
            size: bytes of an element.
        """
        if any(s % self._granule for s in strides):
            return None
        units = -(-dims[-1] * size // self._granule)
        marks = self._marks(Region(address, (*dims[:-1], units), (*strides, self._granule), self._granule))
        if marks is None:
            return None
        empty = marks[0][..., 0] == 0
        per_unit, units_each = max(1, self._granule // size), max(1, size // self._granule)
        if units_each > 1:
            return np.asarray(empty.reshape(*dims, units_each).any(axis=-1))
        return np.asarray(np.repeat(empty, per_unit, axis=-1)[..., : dims[-1]])

    # ---- states
    def state(self) -> LedgerState:
        """All that changes while a launch runs."""
        shadows = {at: (shadow.stored.tobytes(), shadow.loaded.tobytes()) for at, shadow in self._shadows.items()}
        return self._cluster, tuple(self._stores), {agent: tuple(seen) for agent, seen in self._waited.items()}, shadows

    def put_state(self, state: LedgerState) -> None:
        self._cluster, stores, waited, shadows = state
        self._stores, self._waited = list(stores), {agent: list(seen) for agent, seen in waited.items()}
        for at, (stored, loaded) in shadows.items():
            shadow = self._shadows[at]
            shadow.stored[...], shadow.loaded[...] = np.frombuffer(stored, np.int32), np.frombuffer(loaded, np.int32)

    @staticmethod
    def key(state: LedgerState) -> tuple[object, ...]:
        """What tells two states apart: which store a granule was last touched by, whatever its number."""
        cluster, stores, waited, shadows = state
        rows = [(s.cluster, s.cta, s.agent, s.bulk, s.op, s.at, id(s.site)) for s in stores]
        ranks = {row: i for i, row in enumerate(sorted(set(rows)), 1)}
        renamed = np.array([0, *[ranks[row] for row in rows]], np.int32)
        marks = [(at, renamed[np.frombuffer(stored, np.int32)].tobytes(), loaded) for at, (stored, loaded) in shadows.items()]
        return cluster, sorted(ranks), sorted(waited.items()), marks

    # ---- groups
    def waited(self, agent: Agent, groups: int) -> None:
        """A `wait_group` (not `wait_group_read`) has seen the first `groups` groups of `agent` through."""
        seen = self._waited.setdefault(agent.index, [])
        if groups > (seen[-1][0] if seen else 0):
            seen.append((groups, _clock(agent).now))

    # ---- accesses
    def bulk(self, agent: Agent, plan: Target, coords: Coords, op: str, site: Site | None) -> None:
        """A store or, with `op`, a reduction by a bulk copy is issued."""
        group = _clock(agent).committed + 1
        over = plan.over_elements(coords)
        if over:
            self._findings.add(reports.beyond_the_edge(agent, over, site))
        for region in plan.regions(coords):
            self._store(agent, region, _Store(self._cluster, agent.cta.rank, agent.index, True, op, group, site))  # noqa: FBT003

    def plain(self, agent: Agent, region: Region, site: Site | None) -> None:
        """Threads store elements."""
        self._store(agent, region, _Store(self._cluster, agent.cta.rank, agent.index, False, "", _clock(agent).now, site))  # noqa: FBT003

    def read(self, agent: Agent, region: Region, site: Site | None) -> None:
        """Threads load elements."""
        marks = self._marks(region)
        if marks is None:
            return
        stored, loaded = marks
        for number in _numbers(stored):
            old = self._stores[number - 1]
            if old.cluster != self._cluster or not self._ordered(old, agent):
                whose = "cluster" if old.cluster != self._cluster else "CTA"
                self._findings.add(reports.load_of_stored(agent, site, old.site, "stored", whose, own=old.cta == agent.cta.rank))
        loaded[...] = self._cluster

    def load(self, agent: Agent, plan: Source, coords: Coords, site: Site | None) -> None:
        """A load by a bulk copy is issued."""
        for region in plan.regions(coords):
            marks = self._marks(region)
            if marks is None:
                continue
            stored, loaded = marks
            for number in _numbers(stored):
                old = self._stores[number - 1]
                own = old.cluster == self._cluster and old.cta == agent.cta.rank
                # Loads go through the async proxy, which need not see plain stores: no fence for that is in the op table.
                if old.cluster != self._cluster or not self._ordered(old, agent) or (own and not old.bulk):
                    whose = "cluster" if old.cluster != self._cluster else "CTA"
                    self._findings.add(reports.load_of_stored(agent, site, old.site, "stored", whose, own=own))
            loaded[...] = self._cluster

    def _store(self, agent: Agent, region: Region, new: _Store) -> None:
        marks = self._marks(region)
        if marks is None:
            return
        stored, loaded = marks
        for cluster in _numbers(loaded):
            if cluster != self._cluster:
                self._findings.add(reports.load_of_stored(agent, new.site, None, "loaded", "cluster"))
        for number in _numbers(stored):
            old = self._stores[number - 1]
            if not (old.op and old.op == new.op) and not self._ordered(old, agent):
                self._findings.add(reports.stores_meet(agent, new.site, old.site, across=old.cluster != self._cluster))
        self._stores.append(new)
        stored[...] = len(self._stores)

    def _ordered(self, old: _Store, agent: Agent) -> bool:
        """`agent` knows that `old` is written."""
        if old.cluster != self._cluster:
            return False
        epoch = old.at
        if old.bulk:
            seen = next((at for done, at in self._waited.get(old.agent, ()) if done >= old.at), None)
            if seen is None:
                return False
            epoch = seen
        return old.agent == agent.index or bool(_clock(agent).known[old.agent] >= epoch)

    def _marks(self, region: Region) -> tuple[Marks, Marks] | None:
        """The marks of a region, as two views; None where it is not in one buffer that is looked at."""
        buffer = self._memory.find(region.address) if self._memory is not None else None
        shadow = self._shadows.get(buffer.address) if buffer is not None else None
        if buffer is None or shadow is None:
            return None
        start, granule = region.address - buffer.address, self._granule
        end = start + region.item + sum((n - 1) * s for n, s in zip(region.shape, region.strides, strict=True))
        if end > len(buffer.data):
            return None
        shape = (*region.shape, region.item // granule)
        strides = (*(s // granule * _MARK for s in region.strides), _MARK)
        first = start // granule * _MARK
        return np.ndarray(shape, np.int32, shadow.stored, first, strides), np.ndarray(shape, np.int32, shadow.loaded, first, strides)


def _clock(agent: Agent) -> AgentClock:
    clock = agent.clock
    assert clock is not None  # set by Clocks.start
    return clock


def _numbers(marks: Marks) -> list[int]:
    """The different marks, without 0."""
    return sorted(set(marks[marks != 0].tolist()))
