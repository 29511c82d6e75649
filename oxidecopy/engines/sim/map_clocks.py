"""Who may use the map at a place in global memory: released by whom, acquired by which CTA, and which copies may still read it.

PTX 9.7.13.16 and the programming guide: what one thread has acquired its CTA may use after a sync, other CTAs may not; a map must not be
written while a copy may read it (a load is over with its phase, a store with `wait_group.read`, a prefetch never says).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, final

from oxidecopy.engines.sim import reports

if TYPE_CHECKING:
    from collections.abc import Callable

    from oxidecopy.engines.sim.accesses import Access
    from oxidecopy.engines.sim.agents import Agent
    from oxidecopy.engines.sim.clocks import AgentClock, Clock
    from oxidecopy.engines.sim.findings import Findings
    from oxidecopy.errors import Site

Release: TypeAlias = "tuple[int, int, Site | None]"  # agent, epoch
Acquire: TypeAlias = tuple[int, int, int]  # CTA, agent, epoch: of what is there now
Use: TypeAlias = "tuple[tuple[Access, ...], Site | None]"
MapState: TypeAlias = "dict[int, tuple[Release | None, tuple[Acquire, ...], tuple[Use, ...]]]"


@final
class _Place:
    """What was done to one place. Each use is the accesses of one copy (one for each receiver), of which any may tell that it is over."""

    __slots__ = ("acquired", "released", "uses")

    def __init__(self) -> None:
        self.released: Release | None = None
        self.acquired: list[Acquire] = []
        self.uses: list[Use] = []


@final
class MapClocks:
    """The places of the running cluster."""

    def __init__(self, findings: Findings, clock: Callable[[Agent], AgentClock]) -> None:
        self._findings = findings
        self._clock = clock
        self._places: dict[int, _Place] = {}

    def start(self) -> None:
        """A new cluster begins."""
        self._places.clear()

    # ---- states
    def state(self) -> MapState:
        """All that changes while a launch runs, but for the targets of accesses."""
        return {at: (place.released, tuple(place.acquired), tuple(place.uses)) for at, place in self._places.items()}

    def put_state(self, state: MapState) -> None:
        self._places.clear()
        for at, (released, acquired, uses) in state.items():
            place = self._places[at] = _Place()
            place.released, place.acquired, place.uses = released, list(acquired), list(uses)

    # ---- what is done to places

    def release(self, agent: Agent, address: int, site: Site | None, *, warp: bool) -> None:
        """A map was copied there. `warp`: by one whole warp, as the instruction asks for."""
        if not warp:
            self._findings.add(reports.not_one_warp(agent, site))
        place, mine = self._places.setdefault(address, _Place()), self._clock(agent)
        for accesses, used in place.uses:
            if not any(_over(mine.known, access) for access in accesses):
                self._findings.add(reports.map_overwritten(agent, site, used))
        before = place.released
        if before is not None and mine.known[before[0]] < before[1]:
            self._findings.add(reports.map_overwritten(agent, site, before[2]))
        place.released = (agent.index, mine.now, site)
        place.acquired.clear()
        place.uses.clear()

    def acquire(self, agent: Agent, address: int) -> None:
        """It counts where the release is known to have happened."""
        place, mine = self._places.setdefault(address, _Place()), self._clock(agent)
        if place.released is not None and (mine.known[place.released[0]] >= place.released[1] or place.released[0] == agent.index):
            place.acquired.append((agent.cta.rank, agent.index, mine.now))

    def use(self, agent: Agent, address: int, site: Site | None, accesses: tuple[Access, ...]) -> None:
        """A copy goes through the place."""
        place, known = self._places.setdefault(address, _Place()), self._clock(agent).known
        if place.released is None:
            self._findings.add(reports.map_stale(agent, site, None, "nothing was released there"))
        elif not any(cta == agent.cta.rank and (known[who] >= epoch or who == agent.index) for cta, who, epoch in place.acquired):
            why = "released, but not acquired by this CTA, or by a thread that this one is not known to follow"
            self._findings.add(reports.map_stale(agent, site, place.released[2], why))
        place.uses.append((accesses, site))


def _over(known: Clock, access: Access) -> bool:
    return bool(access.target and known[access.counter] >= access.target)
