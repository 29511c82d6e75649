"""A timeline in the trace event format of Chrome, which Perfetto reads: https://ui.perfetto.dev takes the file.

A CTA is a process, each class of threads a thread of it; copies are asynchronous slices, tiles counters of their own, and arrows lead from
what ended a wait. Times are microseconds, as the format wants.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from oxidecopy.trace.stalls import Summary
from oxidecopy.trace.timeline import Span, Timeline, Track, Transfer

Event: TypeAlias = dict[str, object]
_NS: Final = 1000  # per microsecond
_COPIES: Final = 1000  # thread numbers of copies and tiles begin here: behind all lanes
_TILES: Final = 2000


def to_chrome(line: Timeline, said: Summary) -> str:
    """The JSON document."""
    notes = {"source": line.source, "model": list(line.model), "notes": list(line.notes), "outcome": line.outcome, "stalls": said.lines}
    document = {"traceEvents": list(_events(line)), "displayTimeUnit": "ns", "otherData": {"title": line.title, **notes}}
    return json.dumps(document, separators=(",", ":")) + "\n"


def _events(line: Timeline) -> Iterator[Event]:
    places: dict[tuple[bool, int], tuple[int, int, float, float]] = {}  # of stamps and copies: process, thread, begin, end
    for pid, track in enumerate(line.tracks):
        for lane in track.lanes:
            places |= {(False, s.number): (pid, lane.agent, s.went, s.end) for s in lane.spans}
        places |= {(True, t.number): (pid, _row(t), t.start, t.end) for t in track.transfers}
    for pid, track in enumerate(line.tracks):
        yield from _names(pid, track)
        for tid, span in ((lane.agent, span) for lane in track.lanes for span in lane.spans):
            yield from _span(pid, tid, span)
            yield from _arrow(pid, tid, span, places)
        for transfer in track.transfers:
            yield _transfer(pid, transfer)
        for tid, stage in enumerate(track.stages, _TILES):
            yield from (_slice(pid, tid, s.state, "tile", s.start, s.end, {"tile": stage.name}) for s in stage.segments)


def _names(pid: int, track: Track) -> Iterator[Event]:
    yield _meta(pid, 0, "process_name", {"name": track.name})
    yield _meta(pid, 0, "process_sort_index", {"sort_index": pid})
    for lane in track.lanes:
        yield _meta(pid, lane.agent, "thread_name", {"name": f"{lane.role} ({lane.who})"})
        yield _meta(pid, lane.agent, "thread_sort_index", {"sort_index": lane.agent})
    for tid in sorted({_row(t) for t in track.transfers}):
        way = "stores" if tid >= _COPIES + _COPIES // 2 else "loads"
        yield _meta(pid, tid, "thread_name", {"name": f"{way} in flight"})
        yield _meta(pid, tid, "thread_sort_index", {"sort_index": tid})
    for number, stage in enumerate(track.stages):
        yield _meta(pid, _TILES + number, "thread_name", {"name": stage.name})
        yield _meta(pid, _TILES + number, "thread_sort_index", {"sort_index": _TILES + number})


def _row(t: Transfer) -> int:
    """Copies that overlap lie in rows of their own: complete slices of one thread must nest."""
    return _COPIES + (_COPIES // 2 if t.way == "store" else 0) + t.row


def _span(pid: int, tid: int, span: Span) -> Iterator[Event]:
    """Waiting and being busy are two slices."""
    said = {"line": span.site} if span.site else {}
    if span.waited > 0:
        never = {"ends": "not in what was looked at"} if span.open else {}
        yield _slice(pid, tid, span.label, f"{span.kind},waiting", span.start, span.went, {**said, **never})
    if not span.open:
        yield _slice(pid, tid, span.label if not span.waited else f"({span.label})", span.kind, span.went, span.end, said)


def _transfer(pid: int, t: Transfer) -> Event:
    said: dict[str, object] = {"bytes": t.nbytes, "moves bytes from us": t.begun / _NS, "to us": t.moved / _NS}
    return _slice(pid, _row(t), t.label, t.way, t.start, t.end, {**said, **({"line": t.site} if t.site else {})})


def _arrow(pid: int, tid: int, span: Span, places: dict[tuple[bool, int], tuple[int, int, float, float]]) -> Iterator[Event]:
    """From what ended a wait to where it ended."""
    cause = span.cause
    origin = places.get((cause.copy, cause.number)) if cause is not None else None
    if origin is None or cause is None or span.open:
        return
    from_pid, from_tid, begin, end = origin
    # An op lets others go when it begins; a copy when it has landed or is written, or, a store, when it was read.
    at = max(begin, min(end, span.went)) - 1e-3 if cause.copy else begin
    common: Event = {"name": "lets go", "cat": "cause", "id": span.number}
    yield {**common, "ph": "s", "pid": from_pid, "tid": from_tid, "ts": at / _NS}
    yield {**common, "ph": "f", "bp": "e", "pid": pid, "tid": tid, "ts": span.went / _NS}


def _slice(pid: int, tid: int, name: str, category: str, start: float, end: float, said: Mapping[str, object]) -> Event:
    place: Event = {"ph": "X", "pid": pid, "tid": tid}
    return {"name": name, "cat": category, **place, "ts": start / _NS, "dur": (end - start) / _NS, "args": said}


def _meta(pid: int, tid: int, name: str, args: Mapping[str, object]) -> Event:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": args}
