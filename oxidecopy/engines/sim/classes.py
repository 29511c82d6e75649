"""Threads of a CTA grouped into classes: maximal sets of threads that are in exactly the same scopes of the whole program.

All operands are uniform over the threads in scope, so one class is one sequential agent that stands for `len(threads)` threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import final

from oxidecopy.isa.ops import Scope, ThreadSet
from oxidecopy.program.program import Program


@final
@dataclass(frozen=True, slots=True)
class ThreadClass:
    """`scopes` are positions in the program's depth-first list of scopes; `roles` the user's words for them."""

    threads: ThreadSet
    scopes: frozenset[int]
    roles: tuple[str, ...]

    def __str__(self) -> str:
        spans = ", ".join(str(lo) if hi == lo + 1 else f"{lo}-{hi - 1}" for lo, hi in self.threads.ranges)
        word = "thread" if len(self.threads) == 1 else "threads"
        return f"{word} {spans}" + (f" ({', '.join(self.roles)})" if self.roles else "")


def thread_classes(program: Program) -> tuple[ThreadClass, ...]:
    """The classes of `program`, in order of their first thread."""
    scopes = [step.op for step in program.walk() if isinstance(step.op, Scope)]
    cuts = {0, program.threads}
    for scope in scopes:
        cuts.update(edge for span in scope.threads.ranges for edge in span if 0 < edge < program.threads)
    edges = sorted(cuts)
    groups: dict[frozenset[int], list[tuple[int, int]]] = {}
    for lo, hi in pairwise(edges):
        inside = frozenset(i for i, scope in enumerate(scopes) if lo in scope.threads)
        spans = groups.setdefault(inside, [])
        if spans and spans[-1][1] == lo:
            spans[-1] = (spans[-1][0], hi)
        else:
            spans.append((lo, hi))
    return tuple(
        ThreadClass(ThreadSet(tuple(spans)), inside, tuple(dict.fromkeys(scopes[i].role for i in sorted(inside))))
        for inside, spans in groups.items()
    )
