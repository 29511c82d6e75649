"""A timeline as one HTML file: the page with its script beside this module, and the data in it. It asks nothing of the network."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Final

from oxidecopy.trace.stalls import Summary
from oxidecopy.trace.tiles import STATES
from oxidecopy.trace.timeline import Span, Timeline, Track, Transfer

KINDS: Final = ("wait", "sync", "copy", "compute", "barrier")  # as in the page
WAYS: Final = ("load", "store", "send")
_PLACE: Final = "/*DATA*/"


def to_html(line: Timeline, said: Summary) -> str:
    """The whole page."""
    template = files("oxidecopy.trace").joinpath("page.html").read_text(encoding="utf-8")
    # No text of the user's ends the element that holds it.
    text = json.dumps(as_data(line, said), separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return template.replace(_PLACE, text)


def as_data(line: Timeline, said: Summary) -> dict[str, object]:
    """What the page's script reads: rows of numbers, and each text once."""
    strings = _Strings()
    tracks = [_track(track, strings) for track in line.tracks]
    return {
        "title": line.title,
        "source": line.source,
        "model": line.model,
        "end": _round(line.end),
        "outcome": line.outcome,
        "problems": line.problems,
        "notes": line.notes,
        "ops": line.ops,
        "summary": said.lines,
        "tracks": tracks,
        "strings": strings.known,
    }


class _Strings:
    def __init__(self) -> None:
        self.known: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.known)
            self.known.append(text)
        return self._numbers[text]


def _track(track: Track, strings: _Strings) -> dict[str, object]:
    states = list(STATES)
    return {
        "name": track.name,
        "end": _round(track.end),
        "lanes": [{"role": lane.role, "who": lane.who, "spans": [_span(s, strings) for s in lane.spans]} for lane in track.lanes],
        "transfers": [_transfer(t, strings) for t in track.transfers],
        "stages": [
            [strings.number(stage.name), [[states.index(s.state), _round(s.start), _round(s.end)] for s in stage.segments]]
            for stage in track.stages
        ],
    }


def _span(span: Span, strings: _Strings) -> list[float]:
    cause = (-1, 0) if span.cause is None else (span.cause.number, int(span.cause.copy))
    times = _round(span.start), _round(span.went), _round(span.end)
    return [KINDS.index(span.kind), *times, int(span.open), strings.number(span.label), strings.number(span.site), *cause, span.number]


def _transfer(t: Transfer, strings: _Strings) -> list[float]:
    times = [_round(v) for v in (t.start, t.begun, t.moved, t.read or 0, t.end)]
    said = strings.number(t.label), strings.number(t.site)
    return [WAYS.index(t.way), t.row, *times, int(t.open), *said, t.number, t.issuer, t.nbytes]


def _round(value: float) -> float:
    """Tenths of a nanosecond."""
    whole = round(value, 1)
    return int(whole) if whole == int(whole) else whole
