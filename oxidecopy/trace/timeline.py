"""A launch as a picture needs it: per CTA a lane for each class of threads, the copies in flight, and the states of its tiles.

Made of stamps, so it does not know whose clock it shows. Times are nanoseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from oxidecopy.isa import ops
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.stamps import Block, Cause, Flight, Stamp, Stamped, ThreadGroup
from oxidecopy.trace import words
from oxidecopy.trace.tiles import Access, Segment, segments
from oxidecopy.trace.words import Kind

Way: TypeAlias = Literal["load", "store", "send"]
_SCOPES: Final = ("elect", "thread", "threads_except", "warps")  # say how threads were chosen, not what they are for
_WARP: Final = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One op of a lane.

    Attributes:
        number: of its stamp.
        start: when the threads came to it; `went` when they need not wait any more; `end` when they were through.
        open: it had no end in what was looked at.
        site: file and line of the user's call, or nothing.
        cause: what ended its waiting.
    """

    number: int
    kind: Kind
    label: str
    start: float
    went: float
    end: float
    open: bool
    site: str
    cause: Cause | None

    @property
    def waited(self) -> float:
        """Before it could go on."""
        return self.went - self.start


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One class of threads of one CTA. `role` is what it is for, `who` which threads it is, `agent` its number."""

    agent: int
    role: str
    who: str
    threads: int
    spans: tuple[Span, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """A copy in flight from `start` to `end`, in a row of its own where others are under way.

    Its bytes move from `begun` to `moved`; where that is not known both are `start`.
    """

    number: int
    way: Way
    label: str
    row: int
    nbytes: int
    start: float
    begun: float
    moved: float
    read: float | None
    end: float
    open: bool
    site: str
    issuer: int  # number of the span that issued it


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a tile, over time."""

    name: str
    segments: tuple[Segment, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One CTA. `end` is when its last thread was through."""

    block: Block
    lanes: tuple[Lane, ...]
    transfers: tuple[Transfer, ...]
    stages: tuple[Stage, ...]
    end: float

    @property
    def name(self) -> str:
        """`CTA 5`, or `CTA (5, 1)` in a grid of more dimensions."""
        x, y, z = self.block
        return f"CTA {x}" if not (y or z) else f"CTA ({x}, {y})" if not z else f"CTA ({x}, {y}, {z})"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All that is shown."""

    title: str
    source: str
    model: tuple[str, ...]
    tracks: tuple[Track, ...]
    end: float
    outcome: str
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    ops: int


def timeline(run: Stamped) -> Timeline:
    """The picture of a stamped launch."""
    known = [t for s in run.stamps for t in (s.came, s.went, s.end) if t is not None]
    known += [t for f in run.flights for t in (f.issued, f.read, f.end) if t is not None]
    end = max(known, default=0.0)
    hidden = _hidden(run)
    tracks = tuple(_track(run, block, end, hidden) for block in run.ctas)
    grid = " x ".join(str(n) for n in run.grid if n > 1) or "1"
    x, y, z = run.grid
    notes = [run.cut] if run.cut else []
    if len(run.ctas) < x * y * z:
        notes.append(f"{len(run.ctas)} of {x * y * z:,} CTAs are shown")
    if hidden:
        count = sum(len(run.classes[i].threads) for i in hidden)
        notes.append(f"{count} threads of each CTA have no lane: they come to syncs of the whole CTA and nothing else")
    return Timeline(
        title=f"{run.program.name}, grid {grid}, {run.program.threads} threads",
        source=run.source,
        model=run.model,
        tracks=tracks,
        end=end,
        outcome=run.outcome,
        problems=tuple(str(d) for d in run.diagnostics),
        notes=tuple(notes),
        ops=len(run.stamps),
    )


def _hidden(run: Stamped) -> set[int]:
    """Classes that do nothing but come to syncs of the whole CTA or cluster."""
    whole = [i for i in range(len(run.classes)) if all(_idle(run, s) for s in run.stamps if s.agent == i)]
    return set(whole) if len(whole) < len(run.classes) else set()


def _idle(run: Stamped, stamp: Stamp) -> bool:
    op = stamp.step.op
    whole = isinstance(op, ops.ClusterSync) or (isinstance(op, ops.BarSync) and op.threads == run.program.threads)
    return (whole and stamp.end is not None) or isinstance(op, ops.ShareTiles)


def _track(run: Stamped, block: Block, end: float, hidden: set[int]) -> Track:
    numbered = [(i, s) for i, s in enumerate(run.stamps) if s.cta == block]
    lanes = []
    for agent, group in enumerate(run.classes):
        if agent in hidden:
            continue
        spans = tuple(_span(run, i, s, end) for i, s in numbered if s.agent == agent and not isinstance(s.step.op, ops.ShareTiles))
        lanes.append(Lane(agent=agent, role=role_of(group), who=_who(group.threads), threads=len(group.threads), spans=spans))
    flights = [(i, f) for i, f in enumerate(run.flights) if f.into == block]
    return Track(
        block=block,
        lanes=tuple(lanes),
        transfers=_transfers(run, flights, end),
        stages=_stages(run, block, numbered, flights, end),
        end=max((span.end for lane in lanes for span in lane.spans), default=0.0),
    )


def _span(run: Stamped, number: int, stamp: Stamp, end: float) -> Span:
    op = stamp.step.op
    went = end if stamp.went is None else stamp.went
    return Span(
        number=number,
        kind=words.kind_of(op),
        label=words.label(run.program, op, _names(run, stamp)),
        start=stamp.came,
        went=went,
        end=went if stamp.end is None else stamp.end,
        open=stamp.end is None,
        site=_site(stamp),
        cause=stamp.woken,
    )


def _names(run: Stamped, stamp: Stamp) -> dict[str, int]:
    return {**run.constants, **stamp.names}


def _site(stamp: Stamp) -> str:
    site = stamp.step.site
    return f"{site.file}:{site.line}" if site is not None else ""


# ---- threads in words
def role_of(group: ThreadGroup) -> str:
    """What the threads are for: the user's role, else how they were chosen."""
    roles = [role for role in group.roles if role not in _SCOPES]
    if roles:
        return roles[0]
    return "elected thread" if "elect" in group.roles or len(group.threads) == 1 else "threads"


def _who(threads: ThreadSet) -> str:
    spans = ", ".join(str(lo) if hi == lo + 1 else f"{lo}-{hi - 1}" for lo, hi in threads.ranges)
    first, last = threads.first // _WARP, (threads.ranges[-1][1] - 1) // _WARP
    warps = f"warp {first}" if first == last else f"warps {first}-{last}"
    return f"{warps}, thread {spans}" if len(threads) == 1 else f"{warps}, threads {spans}"


# ---- copies
def _transfers(run: Stamped, flights: Sequence[tuple[int, Flight]], end: float) -> tuple[Transfer, ...]:
    """In rows, so that those under way at one time are one below the other; loads first."""
    found, rows = [], defaultdict[bool, list[float]](list)
    for number, flight in sorted(flights, key=lambda item: item[1].issued):
        stamp = run.stamps[flight.stamp]
        way = _way(stamp.step.op)
        until = end if flight.end is None else flight.end
        free = rows[way == "store"]
        row = next((i for i, since in enumerate(free) if since <= flight.issued), len(free))
        free[row : row + 1] = [until]
        begun = flight.issued if flight.begun is None else flight.begun
        found.append(
            Transfer(
                number=number, way=way, label=words.label(run.program, stamp.step.op, _names(run, stamp)), row=row, nbytes=flight.nbytes,
                start=flight.issued, begun=begun, moved=begun if flight.moved is None else min(flight.moved, until), read=flight.read,
                end=until, open=flight.end is None, site=_site(stamp), issuer=flight.stamp,
            )
        )  # fmt: skip
    return tuple(found)


def _way(op: ops.Instr) -> Way:
    return "send" if isinstance(op, ops.Send) else "store" if isinstance(op, ops.Grouped) else "load"


# ---- tiles
def _stages(
    run: Stamped, block: Block, numbered: Sequence[tuple[int, Stamp]], flights: Sequence[tuple[int, Flight]], end: float
) -> tuple[Stage, ...]:
    found: defaultdict[tuple[int, int], list[Access]] = defaultdict(list)
    for _, stamp in numbered:
        if stamp.went is not None:
            for place, access in _touched(run, stamp, end):
                found[place].append(access)
    for _, flight in flights:
        for place, access in _flown(run, block, flight, end):
            found[place].append(access)
    names = {
        (number, stage): f"{decl.name}[{stage}]" if decl.stages > 1 else decl.name
        for number, decl in enumerate(run.program.tiles)
        for stage in range(decl.stages)
    }
    return tuple(Stage(name=names[place], segments=tuple(segments(found[place], end))) for place in names if place in found)


_Touch: TypeAlias = tuple[tuple[int, int], Access]


def _touched(run: Stamped, stamp: Stamp, end: float) -> Iterable[_Touch]:
    """By threads; what an op reads and writes in place is in use, not filled anew."""
    names, refs = _names(run, stamp), list(words.touched(stamp.step.op))
    read = {(ref.tile, words.stage_of(ref, names)) for ref, way in refs if way == "read"}
    start, until = stamp.went or stamp.came, end if stamp.end is None else stamp.end
    for ref, way in refs:
        place = ref.tile, words.stage_of(ref, names)
        yield place, Access("filling" if way == "write" and place not in read else "used", start, until)


def _flown(run: Stamped, block: Block, flight: Flight, end: float) -> Iterable[_Touch]:
    """By the copy engine."""
    stamp = run.stamps[flight.stamp]
    op, names = stamp.step.op, _names(run, stamp)
    until = end if flight.end is None else flight.end
    if isinstance(op, ops.Grouped):
        yield (op.tile.tile, words.stage_of(op.tile, names)), Access("stored", flight.issued, until if flight.read is None else flight.read)
    elif isinstance(op, ops.Send):
        yield (op.into.tile, words.stage_of(op.into, names)), Access("filling", flight.issued, until)
        if stamp.cta == block:
            yield (op.tile.tile, words.stage_of(op.tile, names)), Access("stored", flight.issued, until)
    elif isinstance(op, ops.Landing):
        yield (op.tile.tile, words.stage_of(op.tile, names)), Access("filling", flight.issued, until)
