"""What runs: agents (one class of threads each) in CTAs, with the state that their ops read and change.

A waiting agent keeps a `Wait` that says what for; whoever changes that thing wakes it, and it asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from oxidecopy.engines.sim.faults import ILLEGAL_ADDRESS, MISALIGNED_ADDRESS, Fault
from oxidecopy.engines.sim.mbarrier import Mbarrier
from oxidecopy.isa.limits import MBARRIER_BYTES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from oxidecopy.engines.sim.classes import ThreadClass
    from oxidecopy.engines.sim.clocks import AgentClock, Clock
    from oxidecopy.engines.sim.flight import Group
    from oxidecopy.engines.sim.footprints import Touches
    from oxidecopy.engines.sim.memory import SharedMemory
    from oxidecopy.errors import Site
    from oxidecopy.program.program import Step

Op: TypeAlias = Callable[["Agent"], int]
TokenKey: TypeAlias = int | tuple[int, ...]

BLOCKED: Final = -1  # the agent waits; the op runs again when it is woken
ENDED: Final = -2
SYMBOL_SLOTS: Final = {"block_idx.x": 0, "block_idx.y": 1, "block_idx.z": 2, "cta_rank": 3}


@final
@dataclass(frozen=True, slots=True)
class Code:
    """The ops of one class as closures, with the step of the program that each belongs to. A closure returns the position to go on at.

    The next three are filled where all schedules are looked for: what each closure touches (None: it decides where its agent goes on),
    where the counters of the loops around it are, and which of those that decide do so by the answer of a test. The last is filled where
    ops are timed: by name, where the integers are that each closure sees.
    """

    ops: list[Op]
    steps: tuple[Step | None, ...]
    env_size: int
    touches: tuple[Touches | None, ...] = ()
    loops: tuple[tuple[int, ...], ...] = ()
    asking: frozenset[int] = frozenset()
    names: tuple[Mapping[str, int], ...] = ()


class Wait(NamedTuple):
    """Why an agent is blocked: on an mbarrier phase, a token nobody has yet, a thread barrier, the cluster, or its bulk groups."""

    kind: str  # "phase", "token", "bar", "cluster", "group"
    barrier: Mbarrier | None = None
    phase: int = 0
    detail: int = 0  # token number, thread barrier number, or pending groups


@final
class Agent:
    """One class of threads of one CTA."""

    __slots__ = (
        "answers", "clock", "code", "cta", "ended", "env", "given", "groups", "index", "kind", "open_group", "pc", "sums", "synced",
        "threads", "wait",
    )  # fmt: skip

    def __init__(self, cta: Cta, kind: ThreadClass, code: Code, index: int) -> None:
        self.cta = cta
        self.kind = kind
        self.code = code
        self.index = index
        self.threads = len(kind.threads)
        self.clock: AgentClock | None = None
        self.reset()

    def reset(self) -> None:
        """Back to the first op; the CTA must have its block index already."""
        self.env = [*self.cta.block, self.cta.rank, *[0] * self.code.env_size]
        self.answers: dict[int, bool] = {}
        self.given: dict[str, list[int]] = {}  # tiles of its CTA's share, by the share's name
        self.pc = 0
        self.ended = False
        self.wait: Wait | None = None
        self.synced = 0  # generation of the thread or cluster barrier it arrived at
        self.groups: list[Group] = []  # committed bulk groups that are not finished, oldest first
        self.open_group: Group | None = None
        self.sums: npt.NDArray[np.float64] | None = None  # of a product on tensor cores, of its whole group; None: zero

    @property
    def site(self) -> Site | None:
        step = self.step
        return step.site if step is not None else None

    @property
    def step(self) -> Step | None:
        """Where it is in the program; None behind its end."""
        return self.code.steps[self.pc] if self.pc < len(self.code.steps) else None

    def __str__(self) -> str:
        x, y, z = self.cta.block
        return f"CTA ({x}, {y}, {z}), {self.kind}"


@final
class ThreadBarrier:
    """A CTA barrier of bar.sync, or the cluster barrier: counts threads, and a generation that passes when enough are there."""

    __slots__ = ("arrived", "done", "generation", "open", "waiters", "wanted")

    def __init__(self) -> None:
        self.arrived = 0
        self.wanted = 0  # threads of the last arrival's operand; 0 for the cluster barrier, which counts all that live
        self.generation = 0
        self.waiters: list[Agent] = []
        self.open: Clock | None = None  # for the clocks: releases of this generation, and those of the last ones
        self.done: dict[int, Clock] = {}


@final
class Cta:
    """One CTA: its window of shared memory and everything that lives in it."""

    __slots__ = ("agents", "bars", "block", "maps", "memory", "rank", "thread_bars", "token_waiters", "tokens")

    def __init__(self, rank: int, memory: SharedMemory) -> None:
        self.rank = rank
        self.memory = memory
        self.agents: tuple[Agent, ...] = ()
        self.reset((0, 0, 0))

    def reset(self, block: tuple[int, int, int]) -> None:
        self.block = block
        self.memory.reset()
        self.bars: dict[int, Mbarrier] = {}
        self.thread_bars: dict[int, ThreadBarrier] = {}
        self.tokens: dict[TokenKey, tuple[Mbarrier, int]] = {}
        self.token_waiters: list[Agent] = []
        self.maps: dict[int, bytes] = {}  # by address: maps in global memory as its copies know them, until it acquires the place
        for agent in self.agents:
            agent.reset()

    def barrier(self, address: int) -> Mbarrier:
        """The object at a shared address. A live one is kept outside plain memory (measured); else it is what the bytes there say."""
        found = self.bars.get(address)
        if found is not None and found.live:
            return found
        if found is None:
            found = self._place(address)
        found.load_word(int.from_bytes(self.memory.raw[address : address + MBARRIER_BYTES], "little"))
        found.live = True  # whatever it is, from its first use on it is kept there
        return found

    def init_barrier(self, address: int, count: int) -> Mbarrier:
        """mbarrier.init; on a live object it simply starts again (measured)."""
        found = self.bars.get(address) or self._place(address)
        found.init(count)
        return found

    def _place(self, address: int) -> Mbarrier:
        self.check_barrier(address)
        found = self.bars[address] = Mbarrier(address)
        return found

    def check_barrier(self, address: int) -> None:
        if address % MBARRIER_BYTES:
            raise Fault(MISALIGNED_ADDRESS, "an mbarrier is not at a multiple of 8 bytes", got=f"{address:#x}", required="8-byte alignment")
        if not 0 <= address <= self.memory.size - MBARRIER_BYTES:
            raise Fault(ILLEGAL_ADDRESS, "an mbarrier lies past the CTA's shared memory", got=f"{address:#x}", required="the allocation")

    def invalidate(self, address: int) -> None:
        """mbarrier.inval: the state goes back to memory as a word; ops after it find it there."""
        bar = self.barrier(address)
        word = bar.word
        self.memory.raw[address : address + MBARRIER_BYTES] = word.to_bytes(MBARRIER_BYTES, "little")
        bar.live = False
