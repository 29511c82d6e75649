"""A tile as lines of cells, the same for a terminal and for a picture: seen as the box, or as shared memory.

The box: a line for each row; each cell says where its bytes went, and is coloured by the group of banks it landed in, so equal colours
below each other are conflicts. The memory: a line for each 128 bytes; each cell says what lies there, and is coloured by the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, final

from oxidecopy.draw.tile import LINE_BYTES, Piece, PlacedTile

COLOURS: Final = 8
_GROUP_BYTES: Final = LINE_BYTES // COLOURS  # of four neighbouring banks, which one 16-byte chunk fills
_WIDTH: Final = 8  # cells of a line


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Up to 16 bytes; `colour` is 0 to 7, `title` says in full what `text` says in short."""

    text: str
    title: str
    colour: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the box or 128 bytes of memory; None where nothing of the tile lies. Without a label it goes on with the line above."""

    label: str
    cells: tuple[Cell | None, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """One picture: what labels and cells mean, the lines, and how many more there would be."""

    title: str
    heading: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    hidden: int
    unit: str
    repeat: str

    @property
    def more(self) -> str:
        """What is left out, and that it looks the same; empty when nothing is."""
        plural = "" if self.hidden == 1 else "s"
        return f"and {self.hidden:,} more {self.unit}{plural}{self.repeat}" if self.hidden else ""


def box_grid(tile: PlacedTile, limit: int) -> Grid:
    """The box's first `limit` rows: where each landed."""
    rows = min(limit, tile.rows)
    lines = [line for row in range(rows) for line in _folded(str(row), [_landed(tile, piece) for piece in tile.pieces(row)])]
    widest = max(len(line.cells) for line in lines)
    elements = [f"+{piece.first}" for piece in islice(tile.pieces(0), widest)]
    return Grid(
        title="the box: the address each piece of a row landed at, coloured by the banks there",
        heading="row",
        columns=tuple(elements),
        lines=tuple(lines),
        hidden=tile.rows - rows,
        unit="row",
        repeat=_repeat(tile, tile.pitch_bytes, "row"),
    )


def memory_grid(tile: PlacedTile, limit: int) -> Grid:
    """The first `limit` lines of 128 bytes that the tile has bytes in: what lies there."""
    first, last = tile.address // LINE_BYTES, (tile.address + tile.pitch_bytes * (tile.rows - 1) + tile.row_bytes - 1) // LINE_BYTES
    shown = min(limit, last - first + 1)
    grain, slots = tile.mode.grain_bytes, LINE_BYTES // tile.mode.grain_bytes
    there: dict[tuple[int, int], list[Piece]] = {}
    for piece in _until(tile, first + shown):
        there.setdefault((piece.address // LINE_BYTES, piece.address % LINE_BYTES // grain), []).append(piece)
    lines: list[Line] = []
    for number in range(first, first + shown):
        cells = [_lying(tile, there[number, slot]) if (number, slot) in there else None for slot in range(slots)]
        lines += _folded(f"{number * LINE_BYTES:#07x}", cells)
    return Grid(
        title="shared memory: the row and first element that lie there, coloured by row",
        heading="address",
        columns=tuple(f"+{slot * grain:#04x}" for slot in range(_WIDTH)),
        lines=tuple(lines),
        hidden=last - first + 1 - shown,
        unit="line",
        repeat=_repeat(tile, LINE_BYTES, "line"),
    )


def _repeat(tile: PlacedTile, step: int, unit: str) -> str:
    """After how many rows or lines the pattern of a swizzle is the same again."""
    if not tile.mode.span_bytes or tile.mode.repeat_bytes % step:
        return ""
    return f": the pattern repeats every {tile.mode.repeat_bytes // step} {unit}s"


def _until(tile: PlacedTile, line: int) -> Iterator[Piece]:
    """The pieces of the rows that reach into the lines before `line`."""
    for row in range(tile.rows):
        if tile.address + row * tile.pitch_bytes >= line * LINE_BYTES:
            return
        yield from tile.pieces(row)


def _folded(label: str, cells: list[Cell | None]) -> list[Line]:
    """A row wider than a line goes on in the next ones."""
    parts = [cells[i : i + _WIDTH] for i in range(0, len(cells), _WIDTH)]
    return [Line(label=label if i == 0 else "", cells=tuple(part)) for i, part in enumerate(parts)]


def _landed(tile: PlacedTile, piece: Piece) -> Cell:
    group = piece.address % LINE_BYTES // _GROUP_BYTES
    return Cell(text=f"{piece.address:#07x}", title=_sentence(tile, piece), colour=group)


def _lying(tile: PlacedTile, pieces: list[Piece]) -> Cell:
    first = min(pieces, key=lambda piece: piece.address)
    more = "+" if len(pieces) > 1 else ""
    return Cell(
        text=f"{first.row}:{first.first}{more}", title="; ".join(_sentence(tile, piece) for piece in pieces), colour=first.row % COLOURS
    )


def _sentence(tile: PlacedTile, piece: Piece) -> str:
    inner = f"{piece.first}" if piece.count == 1 else f"{piece.first} to {piece.first + piece.count - 1}"
    outer = tile.coordinates(piece.row)
    where = f"row {', '.join(map(str, outer))}, " if outer else ""
    banks = piece.address % LINE_BYTES // 4
    last = (piece.address + piece.nbytes - 1) % LINE_BYTES // 4
    return f"{where}elements {inner}: bytes {piece.address:#x} to {piece.address + piece.nbytes - 1:#x}, banks {banks} to {last}"
