"""Who runs: thread classes of a program, which of them are worth warps, and how many threads meet at each barrier of threads.

A class is a maximal set of threads that are in exactly the same scopes: all operands are uniform over it, so it is one agent with one
control flow. Each agent gets warps of its own. Those that only wait and synchronise get none. Where there are more agents than a block has
warps, hardware warps run several of them in turn (`Cast.many`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, final

from oxidecopy.errors import DeviceCodeError, Diagnostic
from oxidecopy.isa import limits, ops
from oxidecopy.isa.ops import Scope, ThreadSet
from oxidecopy.program.program import Program, Step

WARPS_MAX: Final = limits.THREADS_MAX // limits.WARP
# Without any of the others, an agent changes nothing that others see. An index that is read must be in range; see `_worth`.
_IDLE: Final = (
    ops.MbarrierWait,
    ops.MbarrierWaitPhase,
    ops.MbarrierWaitParity,
    ops.MbarrierTestToken,
    ops.MbarrierTestParity,
    ops.CommitGroup,
    ops.WaitGroup,
    ops.WaitGroupRead,
    ops.FenceProxyAsync,
    ops.FenceMbarrierInit,
    ops.BarSync,
    ops.ClusterSync,
    ops.LoadIndex,
    ops.ShareTiles,
    ops.NextTile,
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One class of threads. `scopes` are the scopes that hold it, by position in the program's depth-first list of scopes."""

    threads: ThreadSet
    scopes: frozenset[int]
    roles: tuple[str, ...]
    warps: int = 0

    @property
    def count(self) -> int:
        """How many threads it stands for."""
        return len(self.threads)

    def __str__(self) -> str:
        spans = ", ".join(str(lo) if hi == lo + 1 else f"{lo}-{hi - 1}" for lo, hi in self.threads.ranges)
        words = f"thread {spans}" if self.count == 1 else f"threads {spans}"
        return f"{words} ({', '.join(self.roles)})" if self.roles else words


def scopes_of(steps: Sequence[Step], inside: frozenset[int] = frozenset()) -> Iterator[tuple[Step, int, frozenset[int]]]:
    """Every step with its number among scopes (-1 when it is none) and the scopes around it."""
    yield from _Numbering().walk(steps, inside)


@final
class _Numbering:
    def __init__(self) -> None:
        self.next = 0

    def walk(self, steps: Sequence[Step], inside: frozenset[int]) -> Iterator[tuple[Step, int, frozenset[int]]]:
        for step in steps:
            if isinstance(step.op, Scope):
                number, self.next = self.next, self.next + 1
                yield step, number, inside
                yield from self.walk(step.body, inside | {number})
            else:
                yield step, -1, inside
                if step.body:
                    yield from self.walk(step.body, inside)


def classes_of(program: Program) -> list[Agent]:
    """All classes, in order of their first thread."""
    scopes = [step.op for step in program.walk() if isinstance(step.op, Scope)]
    cuts = {0, program.threads}
    for scope in scopes:
        cuts.update([edge for span in scope.threads.ranges for edge in span if 0 < edge < program.threads])
    groups: dict[frozenset[int], list[tuple[int, int]]] = {}
    for low, high in pairwise(sorted(cuts)):
        spans = groups.setdefault(frozenset([i for i, scope in enumerate(scopes) if low in scope.threads]), [])
        if spans and spans[-1][1] == low:
            spans[-1] = (spans[-1][0], high)
        else:
            spans.append((low, high))
    return [
        Agent(threads=ThreadSet(tuple(spans)), scopes=inside, roles=tuple(dict.fromkeys([scopes[i].role for i in sorted(inside)])))
        for inside, spans in groups.items()
    ]


@final
class Cast:
    """The agents of a program: `all` classes, and by position there, those that are `kept`, with their warps."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.all = classes_of(program)
        self._steps = list(scopes_of(program.steps))
        self.scopes = {id(step): number for step, number, _ in self._steps if number >= 0}
        self.kept = self._worth()
        self._give_warps()
        self._bars = self._barriers()
        self.numbers = self._numbers()

    @property
    def many(self) -> bool:
        """There are more agents than warps."""
        return len(self.kept) > WARPS_MAX

    def steps_of(self, kinds: tuple[type[ops.Instr], ...]) -> Iterator[tuple[Step, frozenset[int]]]:
        """The steps of some ops, with the scopes around them."""
        return ((step, scopes) for step, _, scopes in self._steps if isinstance(step.op, kinds))

    def inside(self, scopes: frozenset[int]) -> list[int]:
        """The classes, kept or not, that execute what stands in these scopes."""
        return [i for i, agent in enumerate(self.all) if scopes <= agent.scopes]

    def _worth(self) -> list[int]:
        busy: set[int] = set()
        readers: list[list[int]] = []
        for step, _, scopes in self._steps:
            if isinstance(step.op, ops.LoadIndex):
                readers.append(self.inside(scopes))
            elif isinstance(step.op, ops.TensormapCpFenceproxy):
                busy.update(self.inside(scopes)[:1])  # it does all of it
            elif not isinstance(step.op, (*_IDLE, *ops.BLOCKS)):
                busy.update(self.inside(scopes))
        for who in readers:  # somebody must find out that an index is out of range
            if who and not busy.intersection(who):
                busy.add(who[0])
        return sorted(busy) or [0]

    def _give_warps(self) -> None:
        warps = {i: -(-self.all[i].count // limits.WARP) for i in self.kept}
        most = max(WARPS_MAX, len(self.kept))
        while sum(warps.values()) > most:
            largest = max(warps, key=lambda i: warps[i])
            warps[largest] -= 1
        for i, n in warps.items():
            agent = self.all[i]
            self.all[i] = Agent(threads=agent.threads, scopes=agent.scopes, roles=agent.roles, warps=n)

    # ---- barriers of threads
    def lanes_at(self, bar: ops.BarSync, scopes: frozenset[int]) -> int:
        """Hardware threads that come to this `bar.sync`: 32 for each warp of the kept agents that meet there."""
        return limits.WARP * sum(self.all[i].warps for i in self._meeting(bar, scopes))

    def _numbers(self) -> dict[int, int]:
        """What the program's numbers of barriers are in device code: as few as there are, since kernels with few are lighter."""
        used = {s.op.number for s, _, scopes in self._steps if isinstance(s.op, ops.BarSync) and self.lanes_at(s.op, scopes) > limits.WARP}
        used |= {
            s.op.number for s, _ in self.steps_of((ops.Contract, ops.ContractDrain)) if isinstance(s.op, ops.Contract | ops.ContractDrain)
        }
        return {number: i for i, number in enumerate(sorted(used))}

    def _meeting(self, bar: ops.BarSync, scopes: frozenset[int]) -> list[int]:
        here = self.inside(scopes)
        if sum(self.all[i].count for i in here) == bar.threads:
            return here
        return self._bars[bar.number, bar.threads]

    def _barriers(self) -> dict[tuple[int, int], list[int]]:
        """Who meets at a barrier that different agents reach by different lines; refused when that is not always the same set."""
        groups: dict[tuple[int, int], set[int]] = {}
        wrong: list[Diagnostic] = []
        places: dict[tuple[int, int], Step] = {}
        for step, _, scopes in self._steps:
            if isinstance(step.op, ops.BarSync):
                here = self.inside(scopes)
                if sum(self.all[i].count for i in here) != step.op.threads:
                    key = (step.op.number, step.op.threads)
                    groups.setdefault(key, set()).update(here)
                    places.setdefault(key, step)
        for (number, threads), who in groups.items():
            found = sum(self.all[i].count for i in who)
            if found != threads:
                wrong.append(
                    Diagnostic(
                        rule="OX5511",
                        what=f"bar.sync {number} of {threads} threads is reached by changing groups of threads",
                        got=f"{found} threads that may come",
                        required="the same threads each time: those in scope, or all that reach the number by any line",
                        fix="give each group of threads a barrier number of its own",
                        site=places[number, threads].site,
                    )
                )
        if wrong:
            raise DeviceCodeError(*wrong)
        return {key: sorted(who) for key, who in groups.items()}
