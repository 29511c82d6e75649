"""Rules of transposes, reductions and stencils of tiles (recorder side)."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_TABLE: Final = "the op table, oxidecopy.isa.ops: TransposeTile, ReduceTile and StencilTile"


def _group(line: str) -> str:
    """A group does `line` with a filled tile."""
    return (
        "@ox.pipeline(threads=32)\n"
        "def shape(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:\n"
        "    tile = cta.shared(ox.f32, (32, 16), align=ox.A128)\n"
        "    other = cta.shared(ox.f32, (16, 32), align=ox.A128)\n"
        "    square = cta.shared(ox.f32, (16, 16), align=ox.A128)\n"
        "    inner = cta.shared(ox.f32, (16, 8), align=ox.A128)\n"
        "    halves = cta.shared(ox.f16, (16, 32), align=ox.A128)\n"
        "    whole = cta.shared(ox.i32, (32, 16), align=ox.A128)\n"
        "    rows = cta.shared(ox.f32, (32,), align=ox.A128)\n"
        "    for each in (tile, square, whole):\n"
        "        cta.fill(each, 1)\n"
        "    cta.sync()\n"
        "    with cta.warps(0, 1) as group:\n"
        f"        {line}\n"
        "    cta.store(out, square, (0, 0))\n\n\n"
        "shape[1](dev.zeros((16, 16), ox.f32))\n"
    )


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="OX1190",
        title="A transpose swaps the last two dimensions of a tile",
        error="ShapeError",
        why="Element (.., j, i) of `out` is element (.., i, j) of the tile: where the extents do not match there is none.",
        source=_TABLE,
        wrong=_group("group.transpose(tile, out=square)"),
        right=_group("group.transpose(tile, out=other)"),
    ),
    Rule(
        id="OX1191",
        title="`sum` and `max` make a vector of a tile of two dimensions: one element for each row or column",
        error="ShapeError",
        why="axis=1 puts the elements of each row together, axis=0 those of each column, as in numpy; `out` has one dimension.",
        source=_TABLE,
        wrong=_group("group.sum(tile, axis=0, out=rows)"),
        right=_group("group.sum(tile, axis=1, out=rows)"),
    ),
    Rule(
        id="OX1192",
        title="`sum` and `max` take f32, f16 or bf16 and give f32; `stencil` takes f32",
        error="DTypeError",
        why="They work in f32: a narrower result would be rounded once more without being seen, and integers are none of it.",
        source=_TABLE,
        wrong=_group("group.sum(whole, axis=1, out=rows)"),
        right=_group("group.sum(tile, axis=1, out=rows)"),
    ),
    Rule(
        id="OX1193",
        title="Both tiles of a transpose have one element type",
        error="DTypeError",
        why="It moves bits; a cast that nobody wrote would round without being seen.",
        source=_TABLE,
        wrong=_group("group.transpose(tile, out=halves)"),
        right=_group("group.transpose(tile, out=other)"),
    ),
    Rule(
        id="OX1194",
        title="Transposes, reductions and stencils write another tile than they read",
        error="ShapeError",
        why="Each thread reads what others write to: which of the two comes first is not said.",
        source=_TABLE,
        wrong=_group("group.transpose(square, out=square)"),
        right=_group("group.transpose(tile, out=other)"),
    ),
    Rule(
        id="OX1195",
        title="The output of a stencil lies in the middle of its tile",
        error="ShapeError",
        why="What the tile has more of rows and columns is the halo, the same on both sides: so it is known where the output begins.",
        source=_TABLE,
        wrong=_group("group.stencil(tile, taps={(0, 0): 0.5, (1, 0): 0.5}, out=other)"),
        right=_group("group.stencil(tile, taps={(0, 0): 0.5, (1, 0): 0.5}, out=inner)"),
    ),
    Rule(
        id="OX1196",
        title="A stencil has one to nine taps, which stay inside its tile, with weights of f32",
        error="ShapeError",
        why="A tap beyond the halo would read what lies behind the row or the tile. What f32 cannot hold has no weight.",
        source=_TABLE,
        wrong=_group("group.stencil(tile, taps={(0, 0): 0.5, (9, 0): 0.5}, out=inner)"),
        right=_group("group.stencil(tile, taps={(0, 0): 0.5, (8, 0): 0.5}, out=inner)"),
    ),
)
