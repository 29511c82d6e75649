"""Where the time went, in words: who waited how long for what, why, and what might help.

A wait at a sync for a thread that itself waits for something else is put down to that. Advice follows from what was going on meanwhile:
whether bytes moved, whether the loading side waited too, and for whom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from oxidecopy.isa import ops
from oxidecopy.program.stamps import Stamped
from oxidecopy.trace import words
from oxidecopy.trace.timeline import Lane, Span, Timeline, Track, role_of

Interval: TypeAlias = tuple[float, float]
WORTH_SAYING: Final = 0.05  # of the time of its CTA
_BUSY: Final = 0.85  # of the time that bytes move, from which on memory is what everything waits for
_MOSTLY: Final = 0.5
_SHORT: Final = 150  # nanoseconds: of a wait at a sync that is hardly more than the sync itself


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """`role` waited `share` of its CTA's time for `what`; `why` and `advice` may be empty."""

    role: str
    what: str
    share: float
    why: str
    advice: str

    def __str__(self) -> str:
        text = f"{self.role} waited {self.share:.0%} of the time for {self.what}"
        text += f": {self.why}" if self.why else ""
        return text + (f"; {self.advice}" if self.advice else "")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Of all CTAs that are shown.

    Attributes:
        stalls: the longest first; none of a launch that did not end, since its waits say nothing about speed.
        moving: the part of the time in which bytes moved; 0 where that is not known.
        flying: the part in which a copy was in flight.
        rate: bytes per nanosecond and CTA.
        computing: the part in which threads computed.
        outcome: "ok", or how the launch ended.
    """

    stalls: tuple[Stall, ...]
    moving: float
    flying: float
    rate: float
    computing: float
    outcome: str = "ok"

    @property
    def lines(self) -> list[str]:
        """One sentence each, the rates first."""
        if self.outcome != "ok":
            return [f"this is what ran until it ended so ({self.outcome}): its waits say nothing about speed; mend that first"]
        what = f"bytes moved {self.moving:.0%}" if self.moving else f"copies were in flight {self.flying:.0%}"
        first = f"{what} of the time ({self.rate:.1f} bytes per ns for each CTA)"
        if self.computing >= WORTH_SAYING:
            first += f"; threads computed {self.computing:.0%} of it"
        rest = [str(s) for s in self.stalls]
        return [first, *(rest or [f"no role waited more than {WORTH_SAYING:.0%} of the time"])]


def summary(run: Stamped, line: Timeline) -> Summary:
    """What is to be said of a timeline."""
    ended = line.outcome == "ok"
    total = sum(track.end for track in line.tracks) or 1.0
    waits = [wait for track in line.tracks for wait in _waits(run, track)] if ended else []
    moving = sum(_length(_union((t.begun, t.moved) for t in track.transfers)) for track in line.tracks)
    computing = sum(_length(_union((s.went, s.end) for x in track.lanes for s in x.spans if s.kind == "compute")) for track in line.tracks)
    nbytes = sum(t.nbytes for track in line.tracks for t in track.transfers)
    spent: defaultdict[str, float] = defaultdict(float)
    for track in line.tracks:
        for lane in _main(track):
            spent[lane.role] += track.end  # also of one that is through early: then its waits held up nobody
    by: defaultdict[tuple[str, str], list[_Wait]] = defaultdict(list)
    for wait in waits:
        by[wait.role, wait.what].append(wait)
    in_flight = sum(_length(_union((t.start, t.end) for t in track.transfers)) for track in line.tracks)
    flying = {run.ctas.index(track.block): _union((t.start, t.end) for t in track.transfers if t.way != "store") for track in line.tracks}
    facts = _Facts(moving=moving / total, computing=computing / total, waits=waits, loads=_loads(run), flying=flying)
    stalls = [
        Stall(role=role, what=what, share=share, why=facts.why(found), advice=facts.advice(found))
        for (role, what), found in by.items()
        if (share := sum(w.length for w in found) / (spent[role] or 1.0)) >= WORTH_SAYING
    ]
    stalls.sort(key=lambda s: -s.share)
    return Summary(
        stalls=tuple(stalls),
        moving=facts.moving,
        flying=in_flight / total,
        rate=nbytes / total,
        computing=facts.computing,
        outcome=line.outcome,
    )


# ---- who waited for what
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    """A lane waited from `start` to `end`; `sort` says for what sort of thing."""

    cta: int
    role: str
    what: str
    sort: str  # "landing", "arrival", "group", "sync"
    start: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.start


def _main(track: Track) -> list[Lane]:
    """The lanes that stand for their roles: those with the most threads, one for each group of consumers."""
    most = {role: max(lane.threads for lane in track.lanes if lane.role == role) for role in {lane.role for lane in track.lanes}}
    return [lane for lane in track.lanes if 2 * lane.threads > most[lane.role]]


def _waits(run: Stamped, track: Track) -> list[_Wait]:
    """Of the main lane of each role; at syncs by what the last to come waited for."""
    number = run.ctas.index(track.block)
    found: list[_Wait] = []
    for lane in _main(track):
        for span in lane.spans:
            parts = _put_down(run, track, span, depth=0) if span.waited > 0 else ()
            found += [_Wait(cta=number, role=lane.role, what=what, sort=sort, start=start, end=end) for what, sort, (start, end) in parts]
    return found


_Part: TypeAlias = tuple[str, str, Interval]


def _put_down(run: Stamped, track: Track, span: Span, *, depth: int) -> list[_Part]:
    """What a wait was for, in parts."""
    op = run.stamps[span.number].step.op
    interval = (span.start, span.went)
    bar = words.barrier_of(op)
    if bar is not None:
        lands = any(isinstance(s.op, ops.Landing) and s.op.bar.barrier == bar.barrier for s in run.program.walk())
        return [(words.family(run.program, bar), "landing" if lands else "arrival", interval)]
    if isinstance(op, ops.WaitGroup | ops.WaitGroupRead):
        done = "read" if isinstance(op, ops.WaitGroupRead) else "written"
        return [(f"its stores to be {done}", "group", interval)]
    last = _lane_of(track, span) if depth < 2 else None
    parts: list[_Part] = []
    rest = [interval]
    for other in last.spans if last is not None else ():
        start, end = max(other.start, span.start), min(other.went, span.went)
        if other.waited > 0 and end > start:
            cut = _put_down(run, track, other, depth=depth + 1)
            parts += [(what, sort, (max(s, start), min(e, end))) for what, sort, (s, e) in cut if min(e, end) > max(s, start)]
            rest = _without(rest, (start, end))
    name = "the cluster" if isinstance(op, ops.ClusterSync) else "the other threads of its syncs"
    return parts + [(name, "sync", piece) for piece in rest]


def _lane_of(track: Track, span: Span) -> Lane | None:
    """Who came last to the sync that a span waited at."""
    cause = span.cause
    if cause is None or cause.copy:
        return None
    return next((lane for lane in track.lanes if any(s.number == cause.number for s in lane.spans)), None)


# ---- why, and what might help
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    moving: float
    computing: float
    waits: Sequence[_Wait]
    loads: frozenset[str]  # roles that issue loads
    flying: Mapping[int, Sequence[Interval]]  # by CTA: when a load was in flight

    def why(self, found: Sequence[_Wait]) -> str:
        match found[0].sort:
            case "landing" | "group" if self.moving >= _BUSY:
                return f"bytes moved {self.moving:.0%} of the time, so memory sets the pace"
            case "landing" if self._loader_waited(found):
                return "later loads could not begin before stages were free" + self._idle(", and bytes moved only {} of the time")
            case "landing" if self._part(found, self.flying) >= _MOSTLY:
                return "their loads were in flight" + self._idle(", but bytes moved only {} of the time: it is latency")
            case "landing":
                return "nothing was in flight meanwhile: the loads were issued late"
            case "arrival" if found[0].role in self.loads:
                return "all stages were full or in use" if self.moving >= _BUSY else "stages were given back late"
            case "sync":
                waits = "1 wait" if len(found) == 1 else f"{len(found):,} waits"
                return f"{waits} of {sum(w.length for w in found) / len(found):,.0f} ns"
            case "group":
                return "the copy engine was not through with them"
            case _:
                return ""

    def _idle(self, text: str) -> str:
        """How little was moved, where that is known."""
        return text.format(f"{self.moving:.0%}") if self.moving else ""

    def advice(self, found: Sequence[_Wait]) -> str:
        if self.moving >= _BUSY:
            return self._at_full_rate(found)
        match found[0].sort:
            case "landing" if self._loader_waited(found):
                return "add stages, shrink the box, or let more CTAs share an SM"
            case "landing" if self._part(found, self.flying) >= _MOSTLY:
                return "issue loads earlier, with more of them in flight (stages, CTAs on an SM)"
            case "landing":
                return "let the loading thread run further ahead"
            case "arrival" if found[0].role in self.loads and self.computing >= _BUSY:
                return "nothing to gain there: the computing threads are busy all the time"
            case "group":
                return "add stages to what is stored from, or wait later"
            case "sync":
                short = sum(w.length for w in found) < _SHORT * len(found)
                return "larger boxes make more of each" if short else "share the work out more evenly, or sync fewer threads"
            case _:
                return ""

    def _at_full_rate(self, found: Sequence[_Wait]) -> str:
        match found[0].sort:
            case "landing" | "group":
                return "fewer bytes would help (a narrower type, a multicast), more stages would not"
            case "arrival" if found[0].role in self.loads:
                return "nothing to gain there: memory is busy all the time"
            case _:
                return ""

    def _loader_waited(self, found: Sequence[_Wait]) -> bool:
        """While these waits lasted, whoever loads waited as well, most of the time."""
        waited = {
            cta: _union((w.start, w.end) for w in self.waits if w.cta == cta and w.role in self.loads and w.sort == "arrival")
            for cta in self.flying
        }
        return self._part(found, waited) >= _MOSTLY

    def _part(self, found: Sequence[_Wait], meanwhile: Mapping[int, Sequence[Interval]]) -> float:
        """In which part of these waits something was going on in their CTA."""
        both = sum(max(0.0, min(e, w.end) - max(s, w.start)) for w in found for s, e in meanwhile[w.cta])
        return both / (sum(w.length for w in found) or 1.0)


def _loads(run: Stamped) -> frozenset[str]:
    return frozenset(role_of(run.classes[s.agent]) for s in run.stamps if isinstance(s.step.op, ops.Landing))


# ---- intervals
def _union(intervals: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif end > start:
            found.append((start, end))
    return found


def _length(intervals: Sequence[Interval]) -> float:
    return sum(end - start for start, end in intervals)


def _without(intervals: Sequence[Interval], cut: Interval) -> list[Interval]:
    found: list[Interval] = []
    for start, end in intervals:
        found += [(a, b) for a, b in ((start, min(end, cut[0])), (max(start, cut[1]), end)) if b > a]
    return found
