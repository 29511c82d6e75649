"""`oxidecopy show tile`: where each element of a box lands in shared memory, and what reading it there costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from oxidecopy.cli.options import AsJson, Inputs
from oxidecopy.cli.report import OK, guarded, print_json
from oxidecopy.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from oxidecopy.draw.tile import PlacedTile

HELP: Final = """Draw where each element of a box lands in shared memory under a swizzle, with the bank conflicts of reading it.

Give a box by --box, --dtype and --swizzle, or a pipeline by FILE:NAME, whose tiles are drawn where it has them. Degrees count the words
that one bank gives one after the other for a row, a column, and a matrix of ldmatrix (8 rows of 16 bytes); 1 is free of conflicts.
"""
EXAMPLES: Final = (
    "oxidecopy show tile --box 64,32 --dtype f32 --swizzle 128B",
    "oxidecopy show tile --box 8,64 --dtype bf16 --swizzle 128B --at 0x480",
    "oxidecopy show tile --box 16,64 --dtype u8 --swizzle 64B -o tile.svg",
    "oxidecopy show tile examples/10_ring.py:prefetch",
)
_ROWS: Final = 16  # of a terminal: twice the pattern of the widest swizzle
_PICTURE_ROWS: Final = 32
_SUFFIXES: Final = (".svg", ".png")


@guarded
def command(  # noqa: PLR0913  # options, not arguments
    target: Annotated[
        str | None, typer.Argument(metavar="FILE[:NAME]", help="A Python file with a pipeline, in place of --box.", show_default=False)
    ] = None,
    *,
    box: Annotated[
        str | None, typer.Option("--box", "-b", metavar="N,N", help="Extents in elements, outermost first.", show_default=False)
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="NAME", help="Element type, packed ones too; f32 when left out.", show_default=False)
    ] = None,
    swizzle: Annotated[
        str | None, typer.Option("--swizzle", "-s", metavar="MODE", help="none, 32B, 64B, 128B, 128B_ATOM_32B ...", show_default=False)
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="ADDRESS", help="Shared address; 0x400, or the pipeline's.", show_default=False)
    ] = None,
    stored: Annotated[bool, typer.Option("--stored", help="Of 6-bit elements, the form that stores read.")] = False,
    tile: Annotated[
        str | None, typer.Option("--tile", metavar="NAME", help="Only this tile of the pipeline; NAME[2] is a stage.", show_default=False)
    ] = None,
    view: Annotated[Literal["box", "memory", "both"], typer.Option("--view", help="As the box, as shared memory, or both.")] = "both",
    inputs: Inputs = None,
    rows: Annotated[
        int | None, typer.Option("--rows", min=0, help="Rows and lines at most, 0 for all; 16, or 32 in a picture.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.svg|png", help="Draw it there instead.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Draws; nothing is verified or run."""
    from oxidecopy.cli.tile_choice import Options, from_options, from_pipeline

    if output is not None:
        _check_picture(output)
    drawn = Options(box=box, dtype=dtype, swizzle=swizzle, stored=stored)
    tiles = from_options(drawn, at, tile, inputs or []) if target is None else from_pipeline(target, drawn, inputs or [], tile, at)
    limit = rows if rows is not None else _ROWS if output is None else _PICTURE_ROWS
    if output is not None:
        _write(output, tiles, limit or 1 << 20)
    if as_json:
        print_json({"tiles": [_data(name, placed) for name, placed in tiles.items()], "output": str(output) if output else None})
    elif output is None:
        from oxidecopy.cli.tile_text import print_tile

        for name, placed in tiles.items():
            print_tile(name, placed, view, limit or 1 << 20)
    return OK


def _check_picture(path: Path) -> None:
    if path.suffix.lower() in _SUFFIXES:
        return
    got, fix = path.suffix or "no ending", f"-o {path.stem or 'tile'}.svg"
    raise UsageError(Diagnostic(rule="OX6022", what=f"{path} is no picture", got=got, required=" or ".join(_SUFFIXES), fix=fix))


def _write(path: Path, tiles: Mapping[str, PlacedTile], limit: int) -> None:
    from oxidecopy.draw.tile_scene import tile_scene
    from oxidecopy.host.npy import write_whole
    from oxidecopy.typed.sites import no_sites

    if len(tiles) > 1:
        from oxidecopy.cli.tile_choice import refuse

        refuse("a picture shows one tile", got=", ".join(tiles), fix=f"--tile {next(iter(tiles))}")
    [(name, placed)] = tiles.items()
    scene = tile_scene(placed, name, limit)
    if path.suffix.lower() == ".svg":
        from oxidecopy.draw.svg import to_svg

        data = to_svg(scene).encode()
    else:
        from oxidecopy.draw.png import to_png

        try:
            data = to_png(scene)
        except ImportError:
            raise UsageError(
                Diagnostic(
                    rule="OX6022",
                    what="PNG pictures are drawn by matplotlib",
                    got="not installed",
                    required="the extra `plot`",
                    fix=f"pip install 'oxidecopy[plot]', or -o {path.stem}.svg",
                )
            ) from None
    with no_sites():
        write_whole(path, lambda file: file.write(data))


def _data(name: str, tile: PlacedTile) -> dict[str, Any]:
    """Everything that is drawn, and the place of every element: each piece is `count` neighbours from `address` on."""
    from oxidecopy.draw.reads import under_each_swizzle

    return {
        "tile": name or None,
        "box": tile.shape,
        "dtype": tile.dtype,
        "swizzle": tile.swizzle,
        "address": tile.address,
        "row_bytes": tile.row_bytes,
        "pitch_bytes": tile.pitch_bytes,
        "footprint_bytes": tile.footprint_bytes,
        "element_bits": tile.element_bits,
        "repeat_bytes": tile.mode.repeat_bytes,
        "aligned": tile.aligned,
        "conflicts": {
            mode: {r.name: {"lanes": r.lanes, "bytes": r.nbytes, "best": r.best, "worst": r.worst, "at": r.at} for r in found}
            for mode, found in under_each_swizzle(tile).items()
        },
        "pieces": [
            {"row": p.row, "first": p.first, "count": p.count, "address": p.address, "bytes": p.nbytes}
            for row in range(tile.rows)
            for p in tile.pieces(row)
        ],
    }
