"""A timeline as a picture that does not move, for a page of documentation: a scene, which `draw` writes as PNG or SVG."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, log10
from textwrap import wrap
from typing import Final

from oxidecopy.draw.scene import FAINT, INK, Box, Scene, Words
from oxidecopy.trace.stalls import Summary
from oxidecopy.trace.tiles import State
from oxidecopy.trace.timeline import Lane, Span, Stage, Timeline, Track, Transfer, Way
from oxidecopy.trace.words import Kind

WIDTH: Final = 1100
CTAS_MAX: Final = 4  # more would be a very tall picture
_GUTTER: Final = 190
_RIGHT: Final = 12
_LANE: Final = 18
_THIN: Final = 8
_STAGE: Final = 12
_ROWS_MAX: Final = 12
_PIXEL: Final = 0.3
_BUSY: Final[dict[Kind, str]] = {"wait": "#d4603f", "sync": "#b07d05", "copy": "#0f8a6c", "compute": "#2f6fdb", "barrier": "#8a94a6"}
_WAITING: Final[dict[Kind, str]] = {"wait": "#f6cdc1", "sync": "#f7e2ab", "copy": "#f6cdc1", "compute": "#f6cdc1", "barrier": "#f6cdc1"}
_FLIGHT: Final[dict[Way, tuple[str, str]]] = {
    "load": ("#45a3d9", "#bfe0f4"), "store": ("#8e63ce", "#dccbf3"), "send": ("#c2578f", "#f0cfe0"),
}  # fmt: skip
_STATE: Final[dict[State, str]] = {"filling": "#a9d5f2", "full": "#4b8bc8", "used": "#2f9e63", "stored": "#9a74d6"}
_BACK: Final = "#f4f5f7"
_GRID: Final = "#e3e7ec"
_LEGEND: Final = (
    ("#f6cdc1", "waits"), ("#f7e2ab", "waits at a sync"), ("#2f6fdb", "computes"), ("#0f8a6c", "issues a copy"), ("#8a94a6", "other ops"),
    ("#45a3d9", "load in flight"), ("#8e63ce", "store in flight"), ("#a9d5f2", "tile filling"), ("#4b8bc8", "full"), ("#2f9e63", "in use"),
    ("#9a74d6", "being stored"),
)  # fmt: skip


def to_scene(line: Timeline, said: Summary) -> Scene:
    """All that fits: the first CTAs, the whole time."""
    return _Picture(line, said).scene()


class _Picture:
    def __init__(self, line: Timeline, said: Summary) -> None:
        self.line = line
        self.said = said
        self.boxes: list[Box] = []
        self.words: list[Words] = []
        self.y = 16.0
        self._last: dict[tuple[float, str], float] = {}  # by row and colour: where the last box ends

    def scene(self) -> Scene:
        self._heading()
        top, shown = self.y, self.line.tracks[:CTAS_MAX]
        self.y += 18
        grid = len(self.boxes)
        for track in shown:
            self._track(track)
        if len(shown) < len(self.line.tracks):
            self._say(12, f"and {len(self.line.tracks) - len(shown)} CTAs more", fill=FAINT)
            self.y += 16
        self.boxes[grid:grid] = list(self._ruler(top))
        return Scene(title=self.line.title, width=WIDTH, height=self.y + 6, boxes=tuple(self.boxes), words=tuple(self.words))

    def _heading(self) -> None:
        self._say(12, self.line.title, size=14, bold=True)
        self.y += 20
        source = "; ".join((self.line.source, f"{time(self.line.end)} in all", *self.line.notes))
        problems = [(text.partition("\n")[0], _BUSY["wait"]) for text in self.line.problems]
        for text, fill in ((source, FAINT), *problems, *((text, INK) for text in self.said.lines)):
            for number, piece in enumerate(wrap(text, 160)):
                self._say(24 if number else 12, piece, size=9.5, fill=fill)
                self.y += 13
        self.y += 4
        x = 12.0
        for colour, text in _LEGEND:
            self.boxes.append(Box(x=x, y=self.y - 5, width=11, height=10, fill=colour))
            self._say(x + 15, text, size=9, fill=FAINT)
            x += 26 + 5.6 * len(text)
        self.y += 16

    def _ruler(self, top: float) -> Iterator[Box]:
        """Lines of time, with their words; they lie behind all else."""
        raw = self.line.end / 8 or 1
        ten = 10 ** floor(log10(raw))
        by = next(m * ten for m in (1, 2, 5, 10) if m * ten >= raw)
        for i in range(int(self.line.end / by) + 1):
            self.words.append(Words(x=self._x(i * by), y=top, text=time(i * by), size=9, anchor="middle", fill=FAINT))
            yield Box(x=self._x(i * by), y=top + 8, width=0.7, height=self.y - top - 8, fill=_GRID)

    # ---- rows
    def _track(self, track: Track) -> None:
        self._say(12, track.name, size=11, bold=True)
        self.y += 16
        for lane in track.lanes:
            self._lane(lane)
        for name, ways in (("loads in flight", ("load", "send")), ("stores in flight", ("store",))):
            some = [t for t in track.transfers if t.way in ways]
            if some:
                self._transfers(name, some)
        for stage in track.stages:
            self._stage(stage)
        self.y += 14

    def _lane(self, lane: Lane) -> None:
        self._row(_LANE, f"{lane.role}, {lane.who.partition(', ')[2]}")
        for span in lane.spans:
            self._bar(span.start, span.went, _LANE, _WAITING[span.kind], _title(span))
            if not span.open:
                self._bar(span.went, span.end, _LANE, _BUSY[span.kind], _title(span))
        self.y += _LANE + 3

    def _transfers(self, name: str, some: list[Transfer]) -> None:
        rows = min(_ROWS_MAX, 1 + max(t.row for t in some))
        self._row(rows * _THIN, name)
        start = self.y
        for t in some:
            strong, soft = _FLIGHT[t.way]
            self.y = start + min(t.row, _ROWS_MAX - 1) * _THIN
            self._bar(t.start, t.begun, 1, strong, t.label, down=2.5)
            self._bar(t.begun, t.end, _THIN - 2, soft, t.label)
            self._bar(t.begun, t.moved, _THIN - 2, strong, t.label)
        self.y = start + rows * _THIN + 3

    def _stage(self, stage: Stage) -> None:
        self._row(_STAGE, stage.name)
        for s in stage.segments:
            self._bar(s.start, s.end, _STAGE - 4, _STATE[s.state], f"{stage.name} {s.state}", down=2)
        self.y += _STAGE + 2

    def _row(self, height: float, name: str) -> None:
        self.boxes.append(Box(x=_GUTTER, y=self.y, width=WIDTH - _GUTTER - _RIGHT, height=height, fill=_BACK))
        text = name if len(name) <= 29 else name[:28] + "…"
        self.words.append(Words(x=20, y=self.y + height / 2, text=text, size=9.5))

    def _bar(self, start: float, end: float, height: float, fill: str, title: str, *, down: float = 0) -> None:
        x, right = self._x(start), self._x(end)
        row = self.y + down, fill
        if end > start and right > self._last.get(row, 0) + _PIXEL:  # what nobody could tell from its neighbour is left out
            self._last[row] = max(right, x + 2 * _PIXEL)
            self.boxes.append(Box(x=x, y=self.y + down, width=self._last[row] - x, height=height, fill=fill, title=title))

    def _x(self, at: float) -> float:
        return _GUTTER + at / (self.line.end or 1) * (WIDTH - _GUTTER - _RIGHT)

    def _say(self, x: float, text: str, *, size: float = 10, fill: str = INK, bold: bool = False) -> None:
        self.words.append(Words(x=x, y=self.y, text=text, size=size, fill=fill, bold=bold))


def _title(span: Span) -> str:
    return f"{span.label}, from {time(span.start)} to {time(span.end)}"


def time(ns: float) -> str:
    """A time in the unit that suits it."""
    if ns >= 1e6:
        return f"{ns / 1e6:.3f} ms"
    return f"{ns / 1e3:.2f} us" if ns >= 1e3 else f"{ns:.0f} ns"
