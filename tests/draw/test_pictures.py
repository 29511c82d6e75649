"""SVG and PNG of a tile: well-formed, complete, the same for the same tile."""

from __future__ import annotations

from io import BytesIO
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.image import imread

from oxidecopy.draw.png import to_png
from oxidecopy.draw.scene import PALETTE, Box, Scene, Words
from oxidecopy.draw.svg import to_svg
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.draw.tile_scene import tile_scene
from oxidecopy.isa.swizzle import EVERY_SWIZZLE

SVG = "{http://www.w3.org/2000/svg}"


def scene(swizzle: str = "128B", limit: int = 100) -> Scene:
    return tile_scene(PlacedTile(shape=(20, 32), dtype="f32", swizzle=swizzle, address=0x400), "tile <&>", limit)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("swizzle", ["none", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"])
def test_svg_holds_every_piece_and_every_degree(swizzle: str) -> None:
    svg = to_svg(scene(swizzle))
    said = [t.text or "" for t in ET.fromstring(svg).iter(f"{SVG}title")]
    grain = EVERY_SWIZZLE[swizzle].grain_bytes
    assert len([t for t in said if t.startswith("row 7, ")]) == 2 * 128 // grain  # in both views
    words = texts(svg)
    assert words[0] == f"tile <&>: box 20 x 32 of f32, swizzle {swizzle}, at 0x400"
    assert set(EVERY_SWIZZLE) <= set(words)
    assert "ldmatrix 8 x 16 B" in words
    assert {f"banks {4 * i}-{4 * i + 3}" for i in range(8)} <= set(words)


def test_everything_is_inside_the_picture() -> None:
    for swizzle in ("none", "128B_ATOM_32B_FLIP_8B"):
        drawn = scene(swizzle)
        assert all(b.x >= 0 and b.x + b.width <= drawn.width and b.y >= 0 and b.y + b.height <= drawn.height for b in drawn.boxes)
        for words in drawn.words:
            width = len(words.text) * words.size * 0.62
            left = words.x - {"start": 0, "middle": width / 2, "end": width}[words.anchor]
            assert left >= 0, words
            assert left + width <= drawn.width, words
            assert words.size <= words.y <= drawn.height - words.size / 2


def test_a_large_box_is_cut_and_says_so() -> None:
    assert "and 16 more rows: the pattern repeats every 8 rows" in texts(to_svg(scene(limit=4)))


def test_the_same_tile_gives_the_same_bytes() -> None:
    assert to_svg(scene()) == to_svg(scene())
    assert to_png(scene()) == to_png(scene())


def test_png_has_the_colours_where_the_scene_has_them() -> None:
    drawn = scene()
    pixels = imread(BytesIO(to_png(drawn)))[:, :, :3]
    assert pixels.shape[:2] == (round(2 * drawn.height), round(2 * drawn.width))
    for box in drawn.boxes:
        wanted = [int(box.fill[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        corner = pixels[round(2 * (box.y + box.height)) - 5, round(2 * box.x) + 5]
        assert np.allclose(corner, wanted, atol=0.02), box


def test_dollars_are_no_formula() -> None:
    odd = Scene(
        title="$", width=60, height=20, boxes=(Box(x=0, y=0, width=5, height=5, fill=PALETTE[0]),), words=(Words(x=5, y=9, text="$a$ <"),)
    )
    assert to_png(odd).startswith(b"\x89PNG")
    assert texts(to_svg(odd)) == ["$a$ <"]
