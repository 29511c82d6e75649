"""A tile in a terminal of 80 columns: two grids and the table of conflicts. Colours repeat what the words say."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from oxidecopy.cli.report import out
from oxidecopy.draw.grid import Cell, Grid, box_grid, memory_grid
from oxidecopy.draw.reads import under_each_swizzle
from oxidecopy.draw.scene import INK, PALETTE
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.draw.words import conflict_rows, facts

_LABEL: Final = 7
_CELL: Final = 8
_NAME: Final = 22


def print_tile(name: str, tile: PlacedTile, view: str, limit: int) -> None:
    console = out()
    first, *others = facts(tile)
    head = Text(f"{name}  " if name else "", "bold cyan").append(first, "bold default")
    grids = ([box_grid(tile, limit)] if view != "memory" else []) + ([memory_grid(tile, limit)] if view != "box" else [])
    for line in (head, *(Text(f"  {other}", "dim") for other in others)):
        console.print(line)
    for grid in grids:
        console.print()
        for line in _lines(grid):
            if console.color_system is None:  # else the last cell is coloured to its end
                line.rstrip()
            console.print(line)
    console.print()
    console.print(Text("bank conflicts: words that one bank gives one after the other; 1 is none", "bold"))
    for degrees in conflict_rows(under_each_swizzle(tile)):
        ours = degrees[0] == tile.swizzle
        words = degrees[0].ljust(_NAME) + "".join(entry.ljust(18) for entry in degrees[1:])
        console.print(Text(f"{'>' if ours else ' '} {words.rstrip()}", "bold" if ours else ""))


def _lines(grid: Grid) -> list[Text]:
    heading = grid.heading.rjust(_LABEL) + "".join(f" {column.center(_CELL)}" for column in grid.columns)
    lines = [Text(grid.title, "bold"), Text(heading.rstrip(), "dim")]
    for line in grid.lines:
        text = Text().append(line.label.rjust(_LABEL), "dim")
        for cell in line.cells:
            text.append(" ").append_text(_cell(cell))
        lines.append(text)
    if grid.more:
        lines.append(Text(f"{' ' * _LABEL} {grid.more}", "dim"))
    return lines


def _cell(cell: Cell | None) -> Text:
    if cell is None:
        return Text(".".center(_CELL), "dim")
    return Text(cell.text.center(_CELL), f"{INK} on {PALETTE[cell.colour]}")
