"""A deadlock as verifier, simulator and the GPU's watchdog report it: who waits for whom and for what, and why it did not come.

Each of the three knows where the agents of a cluster stand and in which state the barriers are, and says so in `Stuck`s. What follows from
that is worked out in `explain`, so that all three give the same report, with one way to write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any, final

from oxidecopy.errors import Site
from oxidecopy.isa import ops
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.program import Program, Step


# ---- what the three tools know
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """The barrier an agent waits for: element `index` of declaration `decl` in the CTA of rank `rank`.

    `pending` arrivals are missing, and `tx` bytes: announced ones minus landed ones. `parity` is that of its current phase. `phase` is the
    one waited for and `current` the one it is in, where the tool can tell; `asked` is the parity waited for. With a `tx_step` above 1 that
    many values of landed minus announced bytes look alike: `tx` belongs to the lowest of them.
    """

    rank: int
    decl: int
    index: int
    parity: int
    pending: int
    tx: int
    asked: int
    phase: int | None = None
    current: int | None = None
    tx_step: int = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """A sync of threads: its number, or -1 for that of the cluster."""

    number: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token that nobody has made."""

    number: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """An agent that has not ended: a class of `threads` of the CTA of rank `rank`, at a step of the program."""

    rank: int
    threads: ThreadSet
    step: Step
    on: Barrier | Sync | Token | None


# ---- the report
class Why(Enum):
    """Why an op has not supplied what is missing."""

    WAITS = "waits itself"
    DONE = "has run, and comes no more"
    CONDITION = "its condition is false"
    EMPTY = "its loop runs no iteration"
    ELSEWHERE = "does not come there"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Supplier:
    """An op that could supply what is missing; `waits_at` is the number of its agent's own wait in the report, from 1 on, or 0."""

    rank: int
    threads: str
    does: str
    site: Site | None
    why: Why
    waits_at: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One agent's wait.

    Attributes:
        rank: of its CTA in the cluster; `threads` in words: "thread 0 (producer)".
        site: the line it waits at.
        target: `full[2]` as in the source, "the sync of the CTA" and the like; `target_rank` is that of its CTA, -1: the cluster.
        phase: waited for, where it is known; `parity` its last bit, -1 of what has none.
        arrivals: that have come, and how many are needed; empty where none is missing.
        nbytes: that have landed, and how many were announced; empty where none is missing. Where the program does not tell (several
            announce), by how much they differ (below 0: missing), and -1.
        beside: what else is odd about the barrier.
    """

    rank: int
    threads: str
    site: Site | None
    target: str
    target_rank: int
    phase: int | None
    parity: int
    arrivals: tuple[int, int] | tuple[()] = ()
    nbytes: tuple[int, int] | tuple[()] = ()
    beside: str = ""
    suppliers: tuple[Supplier, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlock:
    """Everybody who waits, roots first.

    `cycle` are the numbers (from 1 on) of waits each of which waits for the next one, and the last for the first.
    """

    waiting: tuple[Waiting, ...]
    cycle: tuple[int, ...]
    fix: str
    ctas: int = 1

    def lines(self) -> list[str]:
        """The report in words, the cycle drawn."""
        several = self.ctas > 1
        out = ["who waits for whom:"]
        for number, wait in enumerate(self.waiting, 1):
            out.append(f"  [{number}] {_who(wait.rank, wait.threads, several)} at {wait.site or '?'}: waits for {_target(wait, several)}")
            out.append(f"        has {_come(wait)}")
            for s in wait.suppliers:
                why = f"{s.why.value}, at [{s.waits_at}]" if s.waits_at else s.why.value
                out.append(f"        {s.site or '?'} {s.does}, by {_who(s.rank, s.threads, several)}: {why}")
            if not wait.suppliers:
                out.append("        no op of the program supplies it")
        if self.cycle:
            ring = [f"[{n}]" for n in (*self.cycle, self.cycle[0])]
            out.append(f"  cycle: {' -> '.join(ring)}")
        out.append(f"  fix: {self.fix}")
        return out

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "waiting": [
                {
                    "number": number,
                    "cta_rank": wait.rank,
                    "threads": wait.threads,
                    "at": _place(wait.site),
                    "for": wait.target,
                    "of_cta_rank": wait.target_rank,
                    "phase": wait.phase,
                    "parity": wait.parity,
                    "arrivals": {"have": wait.arrivals[0], "need": wait.arrivals[1]} if wait.arrivals else None,
                    "bytes": {"have": wait.nbytes[0], "need": wait.nbytes[1]} if wait.nbytes else None,
                    "beside": wait.beside or None,
                    "suppliers": [
                        {
                            "cta_rank": s.rank,
                            "threads": s.threads,
                            "does": s.does,
                            "at": _place(s.site),
                            "why": s.why.name.lower(),
                            "waits_at": s.waits_at or None,
                        }
                        for s in wait.suppliers
                    ],
                }
                for number, wait in enumerate(self.waiting, 1)
            ],
            "cycle": list(self.cycle),
            "fix": self.fix,
        }


def _place(site: Site | None) -> dict[str, object] | None:
    return {"file": site.file, "line": site.line} if site is not None else None


def _who(rank: int, threads: str, several: bool) -> str:  # noqa: FBT001
    return f"{threads} of CTA {rank}" if several else threads


def _target(wait: Waiting, several: bool) -> str:  # noqa: FBT001
    of = f" of CTA {wait.target_rank}" if several and wait.target_rank >= 0 else ""
    phase = f"phase {wait.phase} of " if wait.phase is not None else f"a phase of parity {wait.parity} of " if wait.parity >= 0 else ""
    return f"{phase}{wait.target}{of}"


def _come(wait: Waiting) -> str:
    said = [f"{wait.arrivals[0]} of {wait.arrivals[1]} {'arrivals' if wait.parity >= 0 else 'threads'}"] if wait.arrivals else []
    if wait.nbytes:
        have, need = wait.nbytes
        said.append(
            f"{have} of {need} bytes"
            if need >= 0
            else f"up to {-have} announced bytes have not landed"
            if have < 0
            else f"{have} bytes too many"
        )
    return ", ".join([*said, *([wait.beside] if wait.beside else [])]) or "all it asks for"


# ---- agents in words
def thread_words(threads: ThreadSet, roles: Sequence[str] = ()) -> str:
    """`threads 32-63 (consumers)`."""
    spans = ", ".join(str(lo) if hi == lo + 1 else f"{lo}-{hi - 1}" for lo, hi in threads.ranges)
    return f"{'thread' if len(threads) == 1 else 'threads'} {spans}" + (f" ({', '.join(roles)})" if roles else "")


def classes(program: Program) -> dict[str, ThreadSet]:
    """The classes of a program's threads, by what they are called."""
    scopes = [step.op for step in program.walk() if isinstance(step.op, ops.Scope)]
    edges = sorted({0, program.threads, *(edge for scope in scopes for span in scope.threads.ranges for edge in span)})
    groups: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    for lo, hi in pairwise(edges):
        if hi <= program.threads:
            spans = groups.setdefault(tuple(lo in scope.threads for scope in scopes), [])
            if spans and spans[-1][1] == lo:
                spans[-1] = (spans[-1][0], hi)
            else:
                spans.append((lo, hi))
    made = [(ThreadSet(tuple(spans)), inside) for inside, spans in groups.items()]
    return {
        thread_words(threads, tuple(dict.fromkeys(scope.role for scope, is_in in zip(scopes, inside, strict=True) if is_in))): threads
        for threads, inside in made
    }
