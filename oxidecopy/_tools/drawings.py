"""Writes the drawings of the documentation, `docs/drawings/*.svg`; `--check` only compares.

Where elements lie comes from `oxidecopy.draw`, as `oxidecopy show tile` draws it; the others are lanes of boxes over time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, final

from oxidecopy.draw.scene import EMPTY, FAINT, PALETTE, Box, Scene, Words
from oxidecopy.draw.svg import to_svg
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.draw.tile_scene import tile_scene

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "drawings"
COMMAND: Final = "python -m oxidecopy._tools.drawings"

_LANE: Final = 34  # height of a lane, and the gap below it
_GAP: Final = 8
_LEFT: Final = 190  # where lanes begin
_TOP: Final = 40
_EVEN, _ODD, _WAIT, _ASYNC, _SYNC = PALETTE[0], PALETTE[1], EMPTY, PALETTE[2], PALETTE[4]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that takes from `start` to `stop` in a lane."""

    lane: int
    start: float
    stop: float
    text: str
    fill: str


def lanes(title: str, names: Sequence[str], spans: Sequence[Span], *, unit: float, notes: Sequence[str] = ()) -> Scene:
    """Lanes of time, left to right, with lines of words below."""
    right = _LEFT + unit * max(span.stop for span in spans)
    bottom = _TOP + len(names) * (_LANE + _GAP)
    boxes = [
        Box(x=_LEFT + unit * s.start, y=_y(s.lane), width=unit * (s.stop - s.start) - 2, height=_LANE, fill=s.fill, title=s.text)
        for s in spans
    ]
    words = [Words(x=12, y=20, text=title, size=13, bold=True)]
    words += [Words(x=_LEFT - 10, y=_y(lane) + _LANE / 2, text=name, anchor="end") for lane, name in enumerate(names)]
    words += [
        Words(x=_LEFT + unit * (s.start + s.stop) / 2 - 1, y=_y(s.lane) + _LANE / 2, text=s.text, size=10, anchor="middle") for s in spans
    ]
    words += [Words(x=12, y=bottom + 12 + 18 * i, text=note, fill=FAINT) for i, note in enumerate(notes)]
    return Scene(title=title, width=right + 12, height=bottom + 18 * len(notes) + 14, boxes=tuple(boxes), words=tuple(words))


def _y(lane: int) -> float:
    return _TOP + lane * (_LANE + _GAP)


# ---- what is drawn
def phases() -> Scene:
    """Six uses of a ring of two stages: which phase of which barrier each waits for."""
    stages, uses, load, use = 2, 6, 2, 2
    names = [
        "producer",
        *(f"full[{s}]: phase, parity" for s in range(stages)),
        "consumer",
        *(f"empty[{s}]: phase, parity" for s in range(stages)),
    ]
    spans: list[Span] = []
    freed: list[float] = []  # when the consumer was done with use i
    landed: list[float] = []
    free_at = 0.0
    for i in range(uses):
        start = max(free_at, freed[i - stages] if i >= stages else 0)
        if start > free_at:
            spans.append(Span(lane=0, start=free_at, stop=start, text="waits", fill=_WAIT))
        spans.append(Span(lane=0, start=start, stop=start + 1, text=f"load {i}", fill=_ASYNC))
        free_at = start + 1
        landed.append(start + 1 + load)
        begun = max(landed[i], freed[i - 1] if i else 0)
        spans.append(Span(lane=stages + 1, start=begun, stop=begun + use, text=f"use {i}", fill=PALETTE[3]))
        freed.append(begun + use)
    for stage in range(stages):
        for lane, ends in ((1 + stage, landed), (stages + 2 + stage, freed)):
            before = 0.0
            for k, end in enumerate(ends[stage::stages]):
                spans.append(Span(lane=lane, start=before, stop=end, text=f"phase {k}, {k % 2}", fill=_ODD if k % 2 else _EVEN))
                before = end
    notes = (
        "Use i has stage i % 2 and round i // 2. The consumer waits for full[i % 2], phase i // 2,",
        "the producer for empty[i % 2], phase i // 2 - 1.",
        "The hardware keeps the parity alone: whoever asked for phase 0 during phase 2 would be told that it is not over.",
    )
    return lanes("Six tiles through a ring of two stages", names, spans, unit=54, notes=notes)


def proxies() -> Scene:
    """Threads write a tile, a store reads it, threads write it again."""
    names = ["all threads", "the leader", "copy engine (async proxy)"]
    generic = PALETTE[3]
    spans = [
        Span(lane=0, start=0, stop=2, text="write the tile", fill=generic),
        Span(lane=0, start=2, stop=4, text="fence_proxy_async", fill=_SYNC),
        Span(lane=0, start=4, stop=5, text="sync", fill=_SYNC),
        Span(lane=1, start=5, stop=6, text="s2g", fill=_ASYNC),
        Span(lane=1, start=6, stop=7.6, text="commit_group", fill=_ASYNC),
        Span(lane=1, start=7.6, stop=10, text="wait_group_read(0)", fill=_WAIT),
        Span(lane=2, start=6.4, stop=9.6, text="reads the tile", fill=_ASYNC),
        Span(lane=2, start=9.6, stop=12.4, text="writes global memory", fill=_ASYNC),
        Span(lane=0, start=10, stop=11, text="sync", fill=_SYNC),
        Span(lane=0, start=11, stop=13, text="write it again", fill=generic),
    ]
    notes = (
        "Without the fence the engine may read what was there before (measured: 1.3 % of the words, where one thread wrote and issued).",
        "wait_group_read(0) ends when the tile has been read; wait_group(0) when global memory is written, too.",
    )
    return lanes("A store, and what has to stand around it", names, spans, unit=66, notes=notes)


def multicast() -> Scene:
    """Four CTAs of a cluster load a quarter of a tile each, for all of them."""
    ranks = 4
    side, left, top = 116, 150, 62
    boxes, words = [], [Words(x=12, y=20, text="One tile for a cluster of four: each CTA loads a quarter, for all", size=13, bold=True)]
    for rank in range(ranks):
        x = left + rank * (side + 34)
        words.append(Words(x=x + side / 2, y=46, text=f"CTA {rank}", anchor="middle", bold=True))
        for part in range(ranks):
            own = "its own" if part == rank else f"by CTA {part}"
            box = Box(x=x, y=top + part * 24, width=side, height=22, fill=PALETTE[part], title=f"part {part}, loaded {own}")
            boxes.append(box)
            words.append(Words(x=x + side / 2, y=box.y + 11, text=f"part {part}: {own}", size=10, anchor="middle"))
        boxes.append(Box(x=x, y=top + ranks * 24 + 6, width=side, height=22, fill=EMPTY, title="its full barrier"))
        words.append(Words(x=x + side / 2, y=top + ranks * 24 + 17, text="full: 4 parts", size=10, anchor="middle"))
    for part in range(ranks):
        words.append(Words(x=left - 12, y=top + part * 24 + 11, text=f"tile.part({part}, of=4)", size=10, anchor="end"))
    foot = top + ranks * 24 + 46
    notes = (
        "g2s_multicast(leader, tile.part(rank, of=4), ..., cta_mask=0b1111) puts a part into the same place of all four,",
        "and reports to each one's barrier: each expects the bytes of the whole tile. Global memory is read once, not four times.",
    )
    words += [Words(x=12, y=foot + 18 * i, text=note, fill=FAINT, size=10) for i, note in enumerate(notes)]
    return Scene(
        title="multicast over a cluster of four",
        width=left + ranks * (side + 34) + 190,
        height=foot + 36,
        boxes=tuple(boxes),
        words=tuple(words),
    )


def swizzle(mode: str) -> Scene:
    """Where the elements of a box of eight rows of 128 bytes lie, as `oxidecopy show tile` draws it."""
    return tile_scene(PlacedTile(shape=(8, 32), dtype="f32", swizzle=mode, address=0x400), "", 8)


DRAWINGS: Final[Mapping[str, Callable[[], Scene]]] = {
    "phases": phases,
    "proxies": proxies,
    "multicast": multicast,
    "swizzle_none": partial(swizzle, "none"),
    "swizzle_128b": partial(swizzle, "128B"),
}


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """Writes the drawings, or with `--check` says which are out of date: 1 when any is."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").partition(";")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a drawing is out of date")
    options = parser.parse_args(arguments)
    made = {f"{name}.svg": to_svg(draw()) for name, draw in DRAWINGS.items()}
    old = [name for name, text in made.items() if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text]
    if options.check and old:
        print(f"{', '.join(old)} out of date: {COMMAND}", file=sys.stderr)
        return 1
    for name in old:
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(made[name], encoding="utf-8")
        print(f"wrote {folder / name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
