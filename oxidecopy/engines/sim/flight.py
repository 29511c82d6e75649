"""Bulk copies in flight: issued, but delivered at a later time that the schedule picks, in portions.

A load reads its box when its first portion is delivered and lands in up to four portions of at least 16 bytes, each of which reports its
bytes. A store reads shared memory in portions, then writes global memory. A copy between CTAs is a load whose source is shared memory.
Copies are not ordered among each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, final

import numpy as np

from oxidecopy.engines.sim.bulk import combined
from oxidecopy.engines.sim.faults import Fault
from oxidecopy.engines.sim.memory import GRANULE, UNIT, Array

if TYPE_CHECKING:
    from random import Random

    from oxidecopy.engines.sim.accesses import Access
    from oxidecopy.engines.sim.agents import Agent, Cta
    from oxidecopy.engines.sim.clocks import Clocks
    from oxidecopy.engines.sim.images import TileImage
    from oxidecopy.engines.sim.ledger import Region
    from oxidecopy.engines.sim.machine import Machine
    from oxidecopy.engines.sim.mbarrier import Mbarrier
    from oxidecopy.errors import Site

PORTIONS: Final = 4
Coords: TypeAlias = tuple[int, ...]
Landing: TypeAlias = "tuple[Cta, TileImage, Mbarrier]"


class Source(Protocol):
    """Where a load comes from; what a place is, is its own matter."""

    def load(self, place: Coords, /) -> Array:
        """What lies there, as 16-byte units."""

    def regions(self, place: Coords, /) -> list[Region]:
        """Where that is in global memory."""


class Target(Protocol):
    """Where a store goes to."""

    def store(self, place: Coords, units: Array, /) -> None: ...
    def reduce(self, place: Coords, units: Array, op: str, /) -> None: ...
    def regions(self, place: Coords, /) -> list[Region]: ...
    def over_elements(self, place: Coords, /) -> int:
        """Bytes behind each row that a store writes, and that are elements of a wider array."""


@final
class Group:
    """A bulk group of one agent: how many of its copies still read shared memory, and how many still write global memory."""

    __slots__ = ("reading", "writing")

    def __init__(self) -> None:
        self.reading = 0
        self.writing = 0


@final
class Load:
    """One delivery of a load into one CTA; a multicast makes one for each receiver.

    With `reduces`, an operation and an element type, it combines what it brings with what is there.
    """

    __slots__ = ("accesses", "agent", "coords", "cuts", "kinds", "landing", "plan", "reduces", "site", "units")

    def __init__(
        self,
        agent: Agent,
        plan: Source,
        coords: Coords,
        landing: Landing,
        accesses: tuple[Access, ...],
        site: Site | None,
        reduces: tuple[str, str] | None = None,
    ) -> None:
        self.agent = agent
        self.plan = plan
        self.coords = coords
        self.landing = landing
        self.accesses = accesses  # over when it has landed
        self.reduces = reduces
        self.site = site
        self.units: Array | None = None
        self.cuts: list[int] = []
        self.kinds: tuple[int, ...] = ()  # numbers of its footprints, where all schedules are looked for

    def left(self) -> int:
        """Bytes that have not landed."""
        return self.landing[1].layout.nbytes - (self.cuts[0] * GRANULE if self.cuts else 0)

    def advance(self, flight: Flight, most: int = 0) -> bool:
        """Delivers the next portion, or `most` 16-byte units of it; True when it was the last."""
        cta, image, bar = self.landing
        machine = flight.machine
        if self.units is None:
            self.units = np.array(self.plan.load(self.coords)).reshape(-1)
            self.cuts = flight.cuts(len(self.units))
        start, stop = self.cuts[0], self.cuts[1]
        if most and start + most < stop:
            stop = start + most
            self.cuts.insert(1, stop)
        if self.reduces is not None:
            there = np.empty_like(self.units)
            image.gather_part(there, start, stop)
            self.units[start:stop] = combined(*self.reduces, there[start:stop], self.units[start:stop])
        image.scatter_part(self.units, start, stop)
        before = bar.phase
        last = len(self.cuts) == 2
        for access in self.accesses:
            flight.clocks.landing(access, cta, bar, last=last)
        bar.complete_tx((stop - start) * GRANULE)
        if bar.phase != before:
            machine.phase_over(bar)
        del self.cuts[0]
        return last


@final
class Store:
    """A store or reduction: reads its tile in portions, then writes."""

    __slots__ = ("agent", "coords", "cuts", "group", "image", "kinds", "op", "plan", "site", "units")

    def __init__(self, agent: Agent, plan: Target, coords: Coords, image: TileImage, op: str, group: Group, site: Site | None) -> None:
        self.agent = agent
        self.plan = plan
        self.coords = coords
        self.image = image
        self.op = op
        self.group = group
        self.site = site
        self.units: Array | None = None
        self.cuts: list[int] = []
        self.kinds: tuple[int, ...] = ()  # numbers of its footprints, where all schedules are looked for

    def advance(self, flight: Flight, _most: int = 0) -> bool:
        """Reads the next portion, or writes once all is read; True when it is done."""
        if self.units is None:
            self.units = np.empty(self.image.layout.rows * self.image.row_units, UNIT)
            self.cuts = flight.cuts(len(self.units))
        if len(self.cuts) > 1:
            self.image.gather_part(self.units, self.cuts[0], self.cuts[1])
            del self.cuts[0]
            if len(self.cuts) == 1:
                self.group.reading -= 1
            return False
        units = self.units.reshape(*self.image.layout.shape[:-1], -1)
        if self.op:
            self.plan.reduce(self.coords, units, self.op)
        else:
            self.plan.store(self.coords, units)
        self.group.writing -= 1
        return True


@final
class Flight:
    """All copies in flight of the running cluster."""

    def __init__(self, machine: Machine, clocks: Clocks, random: Random | None) -> None:
        self.machine = machine
        self.clocks = clocks
        self.copies: list[Load | Store] = []
        self._random = random

    def cuts(self, units: int) -> list[int]:
        """Where a copy of `units` 16-byte units is cut: 0, up to three places, the end. None where there is nobody to draw them."""
        if self._random is None:
            return sorted({0, units})
        draw = self._random.random
        places = {int(draw() * units) for _ in range(int(draw() * PORTIONS))}
        return sorted({0, units} | places)

    def advance(self, i: int, most: int = 0) -> None:
        """Moves copy `i` on by one portion; a load by no more than `most` 16-byte units, where that is given."""
        copy = self.copies[i]
        try:
            done = copy.advance(self, most)
        except Fault:
            self.machine.fault_agent, self.machine.fault_site = copy.agent, copy.site
            raise
        if done:
            self.copies[i] = self.copies[-1]
            self.copies.pop()
        if isinstance(copy, Store) and copy.agent.wait is not None and copy.agent.wait.kind == "group":
            self.machine.wake([copy.agent])

    def load(self, agent: Agent, plan: Source, coords: Coords, landings: list[Landing], site: Site | None) -> tuple[Access, ...]:
        """Issues a load; the result is its accesses, one for each receiver."""
        self.clocks.ledger.load(agent, plan, coords, site)
        made = []
        for landing in landings:
            cta, image, bar = landing
            access = self.clocks.issue_load(agent, cta, image, bar, site)
            self.copies.append(Load(agent, plan, coords, landing, (access,), site))
            made.append(access)
        return tuple(made)

    def send(
        self, agent: Agent, source: TileImage, plan: Source, landing: Landing, reduces: tuple[str, str] | None, site: Site | None
    ) -> None:
        """A copy to another CTA of the cluster."""
        cta, image, bar = landing
        landed = self.clocks.issue_load(agent, cta, image, bar, site, reduces=reduces)
        read = self.clocks.issue_send(agent, source, cta, bar, site)
        self.copies.append(Load(agent, plan, (), landing, (landed, read), site, reduces))

    def store(self, agent: Agent, plan: Target, coords: Coords, image: TileImage, op: str, site: Site | None) -> tuple[Access, ...]:
        """Issues a store or, with `op`, a reduction."""
        access = self.clocks.issue_store(agent, image, site)
        self.clocks.ledger.bulk(agent, plan, coords, op, site)
        group = agent.open_group
        if group is None:
            group = agent.open_group = Group()
        group.reading += 1
        group.writing += 1
        self.copies.append(Store(agent, plan, coords, image, op, group, site))
        return (access,)

    def commit(self, agent: Agent) -> None:
        agent.groups.append(agent.open_group or Group())
        agent.open_group = None
        self.clocks.commit(agent)

    def groups_done(self, agent: Agent, pending: int, *, read_only: bool) -> bool:
        """True when all but the newest `pending` committed groups of `agent` are read (or also written)."""
        older = agent.groups[: len(agent.groups) - pending] if pending else agent.groups
        if any(group.reading or (group.writing and not read_only) for group in older):
            return False
        while agent.groups and not agent.groups[0].reading and not agent.groups[0].writing:
            del agent.groups[0]  # finished groups are never pending again
        return True
