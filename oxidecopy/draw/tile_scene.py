"""The picture of a tile: the box at the left, shared memory at the right, and a table of bank conflicts below."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final

from oxidecopy.draw.grid import COLOURS, Grid, box_grid, memory_grid
from oxidecopy.draw.reads import Read, under_each_swizzle
from oxidecopy.draw.scene import EMPTY, FAINT, INK, PALETTE, Box, Scene, Words
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.draw.words import conflict_rows, facts

_MARGIN: Final = 24.0
_CELL: Final = (58.0, 19.0)
_LABEL: Final = 64.0
_GAP: Final = 1.5
_LINE: Final = 19.0
_CHARACTER: Final = 0.61  # the width of a monospaced character, of its size


def tile_scene(tile: PlacedTile, name: str, limit: int) -> Scene:
    """Draws at most `limit` rows and lines."""
    head = [f"{name}: {facts(tile)[0]}" if name else facts(tile)[0], *facts(tile)[1:]]
    grids = (box_grid(tile, limit), memory_grid(tile, limit))
    boxes: list[Box] = []
    words = [Words(x=_MARGIN, y=_MARGIN + i * _LINE, text=t, size=14 if i == 0 else 11, bold=i == 0) for i, t in enumerate(head)]
    top = _MARGIN + len(head) * _LINE + 14
    panel = _LABEL + 8 * _CELL[0]
    bottom = max(_panel(boxes, words, grid, _MARGIN + i * (panel + 2 * _MARGIN), top) for i, grid in enumerate(grids))
    bottom = _legend(boxes, words, bottom + 10)
    bottom = _conflicts(words, under_each_swizzle(tile), tile.swizzle, bottom + 12)
    width = 2 * panel + 4 * _MARGIN
    return Scene(title="; ".join(head), width=width, height=ceil(bottom + _MARGIN), boxes=tuple(boxes), words=tuple(words))


def _panel(boxes: list[Box], words: list[Words], grid: Grid, left: float, top: float) -> float:
    """One grid; gives its lower edge."""
    width, height = _CELL
    words.append(Words(x=left, y=top, text=grid.title, bold=True))
    words.append(Words(x=left + _LABEL - 8, y=top + _LINE, text=grid.heading, size=9, anchor="end", fill=FAINT))
    for i, column in enumerate(grid.columns):
        words.append(Words(x=left + _LABEL + (i + 0.5) * width, y=top + _LINE, text=column, size=9, anchor="middle", fill=FAINT))
    y = top + 1.7 * _LINE
    for line in grid.lines:
        words.append(Words(x=left + _LABEL - 8, y=y + height / 2, text=line.label, size=9.5, anchor="end", fill=FAINT))
        for i, cell in enumerate(line.cells):
            x = left + _LABEL + i * width
            fill, title = (EMPTY, "") if cell is None else (PALETTE[cell.colour], cell.title)
            boxes.append(Box(x=x, y=y, width=width - _GAP, height=height - _GAP, fill=fill, title=title))
            if cell is not None:
                size = min(10.0, (width - 6) / (_CHARACTER * len(cell.text)))
                words.append(
                    Words(x=x + (width - _GAP) / 2, y=y + (height - _GAP) / 2, text=cell.text, size=round(size, 1), anchor="middle")
                )
        y += height
    if grid.hidden:
        words.append(Words(x=left + _LABEL, y=y + _LINE / 2, text=grid.more, fill=FAINT))
        y += _LINE
    return y


def _legend(boxes: list[Box], words: list[Words], top: float) -> float:
    """Which colour is which group of banks, and which rows."""
    words.append(Words(x=_MARGIN, y=top + _LINE / 2, text="colours", bold=True))
    for i in range(COLOURS):
        x = _MARGIN + _LABEL + i * 130
        boxes.append(Box(x=x, y=top + 2, width=14, height=14, fill=PALETTE[i]))
        words.append(Words(x=x + 20, y=top + _LINE / 2, text=f"banks {4 * i}-{4 * i + 3}", size=9.5))
    return top + _LINE


def _conflicts(words: list[Words], by_swizzle: Mapping[str, tuple[Read, ...]], swizzle: str, top: float) -> float:
    """The table, one line for each swizzle."""
    heading, *rows = conflict_rows(by_swizzle)
    columns = [0.0, 190.0, 380.0, 570.0]
    text = "bank conflicts: words that one bank gives one after the other; 1 is none"
    words.append(Words(x=_MARGIN, y=top + _LINE / 2, text=text, bold=True))
    for n, row in enumerate((heading, *rows), 1):
        ours = row[0] == swizzle
        for column, entry in zip(columns, row, strict=True):
            fill = FAINT if row is heading else INK
            words.append(Words(x=_MARGIN + column, y=top + (n + 0.5) * _LINE, text=entry, bold=ours, fill=fill))
    return top + (len(rows) + 2) * _LINE
