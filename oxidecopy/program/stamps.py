"""When the ops of a launch ran: what an engine stamps, whatever its clock is.

The simulator stamps by a cost model, and knows when each copy landed and who woke whom. An interpreter that stamps with a GPU's timer knows
when each op began and ended; what it cannot see is None. Times are nanoseconds from the start of the launch. All else about an op follows
from its step and the integers that it saw, so an engine need not say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from oxidecopy.errors import Diagnostic
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.program import Program, Step

Block: TypeAlias = tuple[int, int, int]


@final
@dataclass(frozen=True, slots=True)
class Cause:
    """What let a waiting op go on: the stamp, or else the copy, of this number."""

    number: int
    copy: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """One op of one class of threads.

    Attributes:
        cta: block index of its CTA.
        agent: number of the class in `Stamped.classes`.
        step: of `Stamped.program`.
        names: the integers that it saw by name: loop counters, block indices, what was read.
        came: when the threads came to it.
        went: when they had what they waited for; `came` for an op that does not wait, None where that never came.
        end: when they went on to the next op.
        woken: what they waited for, where the engine knows.
    """

    cta: Block
    agent: int
    step: Step
    names: Mapping[str, int]
    came: float
    went: float | None
    end: float | None
    woken: Cause | None = None

    @property
    def waited(self) -> float:
        """How long, as far as is known."""
        return 0.0 if self.went is None else self.went - self.came


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """One bulk copy, or its delivery to one of several CTAs.

    Attributes:
        stamp: number of the stamp of the op that issued it.
        into: CTA whose shared memory it fills; for a store the CTA that it leaves.
        nbytes: of shared memory.
        issued: when.
        begun: when its turn came to move bytes.
        moved: when its last byte had had its turn.
        read: when a store had read shared memory; None for loads, or where it is not known.
        end: when it had landed, or was written.
    """

    stamp: int
    into: Block
    nbytes: int
    issued: float
    begun: float | None = None
    moved: float | None = None
    read: float | None = None
    end: float | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadGroup:
    """Threads of a CTA that run the same ops, with the user's words for them."""

    threads: ThreadSet
    roles: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stamped:
    """A launch with its times.

    Attributes:
        program: in primitive ops only.
        grid: of the launch.
        constants: of the launch, by symbol.
        classes: of each CTA.
        ctas: those that were followed, by block index.
        stamps: in the order of their ends, as far as that is known.
        flights: by the order of their issue.
        source: whose times these are, in a few words.
        model: what stands behind them, a line each.
        outcome: "ok", or how it ended.
        diagnostics: why it did not end well.
        cut: what was left out, in words; empty for all of the launch.
    """

    program: Program
    grid: Block
    constants: Mapping[str, int]
    classes: tuple[ThreadGroup, ...]
    ctas: tuple[Block, ...]
    stamps: tuple[Stamp, ...]
    flights: tuple[Flight, ...]
    source: str
    model: tuple[str, ...] = ()
    outcome: str = "ok"
    diagnostics: tuple[Diagnostic, ...] = ()
    cut: str = ""
