"""One access to a tile, as the clocks remember it."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from oxidecopy.engines.sim.clocks import Clock
    from oxidecopy.errors import Site
    from oxidecopy.isa.ops import Instr


class Kind(enum.Enum):
    """Who touches the tile, and how."""

    READ = "read"  # generic proxy
    WRITE = "write"  # generic proxy
    LOAD = "load"  # async proxy writes it
    STORE = "store"  # async proxy reads it


@final
class Access:
    """Shared bytes `low` to `high`-1 (window addresses) touched by agent `agent`.

    Plain accesses have the `epoch` of their agent. Copies have a `counter` of the clock and the `target` it must reach before everyone
    who knows of it may treat the copy as over; a load has no target until it has landed.
    """

    __slots__ = ("agent", "alone", "counter", "epoch", "fenced", "high", "kind", "low", "op", "past", "reduces", "site", "target", "turn")

    def __init__(self, kind: Kind, low: int, high: int, agent: int, epoch: int, site: Site | None) -> None:
        self.kind = kind
        self.low = low
        self.high = high
        self.agent = agent
        self.epoch = epoch
        self.site = site
        self.op: Instr | None = None
        self.turn: tuple[int, ...] = ()  # counters of the loops around an access that classes share
        self.fenced = False  # of a read: by the async proxy
        self.alone = True  # no other class does a part of this access
        self.past: Clock | None = None  # of a load: what had happened when it was issued
        self.reduces: tuple[str, str] | None = None  # of a copy that combines: operation and element type
        self.counter = 0
        self.target = 0

    def same_step(self, other: Access) -> bool:
        """True for two classes doing their parts of one cooperative access: they touch different elements."""
        return self.op is not None and self.op is other.op and self.turn == other.turn and self.agent != other.agent

    def replaces(self, old: Access) -> bool:
        """True when whoever is ordered after this access is ordered after `old` too, or would be reported for this one."""
        if not (self.low <= old.low and old.high <= self.high):
            return False
        if self.reduces is not None:
            return False  # one like it may come beside it, and need not follow what this one follows
        if self.kind is Kind.LOAD or (self.kind is Kind.WRITE and self.alone):
            return True
        # A class's part of a cooperative write stands for that class only: the others are not ordered after what it was ordered after.
        return self.kind is old.kind and self.agent == old.agent and self.counter == old.counter
