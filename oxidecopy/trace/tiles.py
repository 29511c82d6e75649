"""What became of each stage of each tile over time: free, being loaded or written, full, in use, being stored.

It follows from who touched it when. A stage that was filled is full until its last use before it is filled again, and free from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, TypeAlias, final

State: TypeAlias = Literal["filling", "full", "used", "stored"]
STATES: Final[dict[State, str]] = {
    "filling": "being loaded or written",
    "full": "full, not in use",
    "used": "read by threads",
    "stored": "read by a store",
}


@final
@dataclass(frozen=True, slots=True)
class Access:
    """Bytes of a stage touched from `start` to `end`: "filling", "used" or "stored"."""

    state: State
    start: float
    end: float


@final
@dataclass(frozen=True, slots=True)
class Segment:
    """A stage's state for a while; free where there is none."""

    state: State
    start: float
    end: float


def segments(accesses: Iterable[Access], end: float) -> list[Segment]:
    """The states of one stage, in order; `end` is that of the picture."""
    found: list[Segment] = []
    ordered = sorted(accesses, key=lambda a: (a.start, a.end))
    rounds = _rounds(ordered)
    for number, accessed in enumerate(rounds):
        fills = [a for a in accessed if a.state == "filling"]
        uses = [a for a in accessed if a.state != "filling"]
        until = rounds[number + 1][0].start if number + 1 < len(rounds) else end
        ready = max((a.end for a in fills), default=uses[0].start if uses else until)
        if fills:
            found.append(Segment("filling", fills[0].start, ready))
        last = max((a.end for a in uses), default=until)
        at = ready
        for use in _merged(uses):
            if use.start > at:
                found.append(Segment("full", at, use.start))
            found.append(use)
            at = max(at, use.end)
        if not uses and last > at:
            found.append(Segment("full", at, last))
    return [s for s in found if s.end > s.start]


def _rounds(ordered: list[Access]) -> list[list[Access]]:
    """Cut where a stage is filled again after it was used."""
    rounds: list[list[Access]] = []
    for access in ordered:
        if not rounds or (access.state == "filling" and any(a.state != "filling" for a in rounds[-1])):
            rounds.append([])
        rounds[-1].append(access)
    return rounds


def _merged(uses: list[Access]) -> list[Segment]:
    """Uses of one sort that overlap are one: threads that do it together. What overlaps of another sort begins where the other ends."""
    found: list[Segment] = []
    for state, same in groupby(uses, key=lambda a: a.state):
        for use in same:
            last = found[-1] if found else None
            if last is not None and last.state == state and use.start <= last.end:
                found[-1] = Segment(state, last.start, max(last.end, use.end))
            elif last is None or use.end > last.end:
                found.append(Segment(state, max(use.start, last.end) if last is not None else use.start, use.end))
    return found
