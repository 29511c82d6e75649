"""Thread classes: the threads of a CTA that take part in exactly the same `Scope` blocks, hence run the same ops.

One class is one sequential agent with a multiplicity. Its threads are not ordered among themselves unless the program synchronises them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple, final

from oxidecopy.isa.ops import Scope, ThreadSet
from oxidecopy.program.program import Program


@final
class ThreadClass(NamedTuple):
    """`threads` of every CTA; `name` is how reports call them."""

    threads: ThreadSet
    name: str

    @property
    def size(self) -> int:
        return len(self.threads)

    def inside(self, scope: Scope) -> bool:
        """Membership of one thread is that of all."""
        return self.threads.first in scope.threads


def thread_classes(program: Program) -> tuple[ThreadClass, ...]:
    """The classes of a program, by their lowest thread."""
    scopes = dict.fromkeys(s.op.threads for s in program.walk() if isinstance(s.op, Scope))
    cuts = {0, program.threads}
    for threads in scopes:
        cuts.update(edge for pair in threads.ranges for edge in pair if 0 < edge < program.threads)
    edges = sorted(cuts)
    groups: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    for lo, hi in pairwise(edges):
        ranges = groups.setdefault(tuple(lo in threads for threads in scopes), [])
        if ranges and ranges[-1][1] == lo:
            ranges[-1] = (ranges[-1][0], hi)
        else:
            ranges.append((lo, hi))
    return tuple(ThreadClass(threads=ThreadSet(tuple(r)), name=_name(r, program.threads)) for r in groups.values())


def _name(ranges: list[tuple[int, int]], everyone: int) -> str:
    if ranges == [(0, everyone)]:
        return "all threads" if everyone > 1 else "the only thread"
    words = [str(lo) if hi == lo + 1 else f"{lo}-{hi - 1}" for lo, hi in ranges]
    one = len(ranges) == 1 and ranges[0][1] == ranges[0][0] + 1
    return f"thread {words[0]}" if one else "threads " + ", ".join(words)
