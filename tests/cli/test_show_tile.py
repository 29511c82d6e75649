"""`oxidecopy show tile`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rich.console import Console

from oxidecopy.draw.tile import PlacedTile
from tests.helpers.command import TILES, command, json_of

RING = str(Path(__file__).parents[2] / "examples" / "10_ring.py")
BOX = ("--box", "64,32", "--swizzle", "128B")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tile(*arguments: str) -> str:
    result = command("show", "tile", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*arguments: str) -> str:
    result = command("show", "tile", *arguments)
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    return result.stderr


def test_a_box_and_its_conflicts() -> None:
    text = tile(*BOX)
    lines = [line.split() for line in text.splitlines()]
    assert text.startswith("box 64 x 32 of f32, swizzle 128B, at 0x400\n")
    assert ["1", "0x00490", "0x00480", "0x004b0", "0x004a0", "0x004d0", "0x004c0", "0x004f0", "0x004e0"] in lines
    assert ["0x00480", "1:4", "1:0", "1:12", "1:8", "1:20", "1:16", "1:28", "1:24"] in lines
    assert [">", "128B", "1", "4", "1"] in lines
    assert ["none", "1", "32", "8"] in lines
    assert ["64B", "-", "-", "-"] in lines
    assert "and 48 more rows: the pattern repeats every 8 rows" in text


@pytest.mark.parametrize(
    "arguments",
    [
        BOX,
        ("--box", "2,3,256", "--dtype", "u8"),
        ("--box", "256,16", "--dtype", "u8", "--swizzle", "32B", "--at", "0x480"),
        ("--box", "9,128", "--dtype", "u6x16_align16b", "--swizzle", "128b_atom_32b"),
        ("--box", "9,8", "--dtype", "f16", "--swizzle", "128B_ATOM_32B_FLIP_8B"),
    ],
)
def test_eighty_columns_are_enough(arguments: tuple[str, ...]) -> None:
    assert max(map(len, tile(*arguments).splitlines())) <= 79


def test_views_and_rows() -> None:
    assert "shared memory:" not in tile(*BOX, "--view", "box")
    assert "the box:" not in tile(*BOX, "--view", "memory")
    assert "more" not in tile(*BOX, "--rows", "0")
    assert "and 62 more rows" in tile(*BOX, "--rows", "2")


def test_colours_follow_the_banks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the cells of a column have all eight colours under the swizzle, and one without."""
    recording = Console(record=True, force_terminal=True, color_system="truecolor", width=80, legacy_windows=False)
    monkeypatch.setattr("oxidecopy.cli.tile_text.out", lambda: recording)
    for swizzle, colours in (("128B", 8), ("none", 1)):
        tile("--box", "8,32", "--swizzle", swizzle, "--view", "box")
        rows = [line for line in recording.export_text(styles=True).splitlines() if "0x00" in line]
        assert len({re.findall(r"48;2;\d+;\d+;\d+", row)[0] for row in rows}) == colours
        assert all(row.count("48;2;") == 8 for row in rows)
        assert not any(re.search(r"\x1b\[2;[\d;]*48;2", row) for row in rows)  # dim text would not be read on them


def test_the_words_say_what_is_odd() -> None:
    assert "needs compute capability 10.0" in tile("--box", "8,32", "--swizzle", "128B_ATOM_64B")
    assert "(OX1010)" in tile(*BOX, "--at", "0x480")
    assert "(OX1010)" not in tile(*BOX, "--at", "0x800")
    assert "16 bytes behind each stay unused" in tile("--box", "8,4", "--swizzle", "32B")
    assert "then a gap of 4" in tile("--box", "8,128", "--dtype", "u6x16_align16b")
    assert "as stores read it" in tile("--box", "8,128", "--dtype", "u6x16_align16b", "--stored")
    assert "row 5 is (1, 2)" in tile("--box", "2,3,4")


@pytest.mark.parametrize(
    ("box", "swizzle"),
    [("64,32", "128B"), ("64x32", "128b"), ("64 32", "Swizzle128B"), ("(64, 32)", "ox.Swizzle128B"), (" 64 , 32 ", "SWIZZLE128B")],
)
def test_names_and_boxes_as_they_are_written_elsewhere(box: str, swizzle: str) -> None:
    text = tile("--box", box, "--swizzle", swizzle, "--dtype", "ox.f32", "--rows", "1")
    assert text.startswith("box 64 x 32 of f32, swizzle 128B, at 0x400\n")


def test_json_places_every_element() -> None:
    [data] = json_of(command("show", "tile", "--box", "3x5x8", "--dtype", "bf16", "--swizzle", "64B", "--json"))["tiles"]
    placed = PlacedTile(shape=(3, 5, 8), dtype="bf16", swizzle="64B", address=0x400)
    assert (data["box"], data["pitch_bytes"], data["footprint_bytes"]) == ([3, 5, 8], 64, placed.footprint_bytes)
    where = {(p["row"], p["first"] + i): p["address"] + 2 * i for p in data["pieces"] for i in range(p["count"])}
    assert where == {(row, i): placed.position(row, i)[0] for row in range(15) for i in range(8)}
    assert data["conflicts"]["128B"]["ldmatrix"] == {"lanes": 8, "bytes": 16, "best": 1, "worst": 1, "at": [0, 0]}


def test_a_pipelines_tiles(folder: Path) -> None:
    (folder / "mine.py").write_text(TILES)
    data = json_of(command("show", "tile", "mine.py", "--json"))["tiles"]
    assert [(t["tile"], t["box"], t["dtype"], t["swizzle"], t["address"]) for t in data] == [("src_tile", [64], "f32", "none", 0x400)]
    assert tile(f"{RING}:prefetch").startswith("ring0_src[0]  box 64 x 32 of f32, swizzle 128B, at 0x400\n")
    assert tile(f"{RING}:prefetch", "--tile", "ring0_src", "--at", "0x2400").count("at 0x2400") == 1
    assert tile(f"{RING}:prefetch", "--tile", "ring0_src[1]").startswith("ring0_src[1]  box 64 x 32 of f32, swizzle 128B, at 0x2400\n")
    assert "has no stage 9" in refused(f"{RING}:prefetch", "--tile", "ring0_src[9]")


def test_a_recipe_may_need_an_array(folder: Path) -> None:
    (folder / "mine.py").write_text(
        TILES.replace("| None = None) ->", ") ->").replace("np.arange(256, dtype=np.float32) if x is None else ", "")
    )
    assert "one --input FILE.npy for each" in refused("mine.py")
    np.save("x.npy", np.ones(64, np.float32))
    assert tile("mine.py", "--input", "x.npy").startswith("src_tile  box 64 of f32")


def test_pictures(folder: Path) -> None:
    assert tile(*BOX, "-o", "box.svg") == ""
    assert ET.parse(folder / "box.svg").getroot().get("role") == "img"
    assert tile(*BOX, "-o", "box.PNG") == ""
    assert (folder / "box.PNG").read_bytes().startswith(b"\x89PNG")
    assert json_of(command("show", "tile", *BOX, "-o", "again.svg", "--json"))["output"] == "again.svg"
    assert (folder / "again.svg").read_bytes() == (folder / "box.svg").read_bytes()
    tile(f"{RING}:prefetch", "-o", "ring.svg")
    assert b"ring0_src[0]: box 64 x 32" in (folder / "ring.svg").read_bytes()


def test_a_picture_needs_its_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = refused(*BOX, "-o", "box.png")
    assert "pip install 'oxidecopy[plot]', or -o box.svg" in text
    assert "[OX6022]" in text
    assert tile(*BOX, "-o", "box.svg") == ""
    assert not (folder / "box.png").exists()


TWO = TILES.replace("    full = cta", "    other = cta.shared(ox.f32, (2, 3), align=ox.A16)\n    cta.fill(other, 0)\n    full = cta")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "neither a box nor a file"),
        (("64,32",), "--box 64,32"),
        (("--box", "64,32", "-o", "/"), "-o tile.svg"),
        (("--box", "99999999999999999999,4"), "1 to 256 elements"),
        (("--box", "64,y"), "--box 64,y is no box"),
        (("--box", ""), "is no box"),
        (("--box", "64,32", "--dtype", "float32"), "--dtype f32"),
        (("--box", "64,32", "--dtype", "float32"), "required: u8, u16"),
        (("--box", "64,32", "--swizzle", "256B"), "there is no swizzle 256B"),
        (("--box", "64,32", "--at", "here"), "--at here is no address"),
        (("--box", "64,32", "--at", "100"), "--at 0x0 or 0x80"),
        (("--box", "64,32", "--stored"), "leave --stored out"),
        (("--box", "64,32", "--tile", "src"), "without FILE"),
        (("--box", "64,32", "--input", "x.npy"), "leave --input out"),
        (("--box", "64,32", "-o", "tile.pdf"), "-o tile.svg"),
        (("--box", "64,32", "-o", "tile"), "no ending"),
        (("--box", "64,32", "-o", "no/where.svg"), "no/where.svg cannot be written [OX5027]"),
        (("--box", "64,64", "--swizzle", "128B"), "box inner 32, or swizzle=ox.SwizzleNone"),
        (("mine.py", "--box", "64,32", "--stored"), "leave --box, --stored out"),
        (("mine.py", "--tile", "source"), "--tile src_tile"),
        (("mine.py", "--at", "0x400"), "--tile src_tile --at 0x400"),
        (("mine.py", "--tile", "src_tile", "--at", "0x410"), "a multiple of 128 bytes"),
        (("mine.py", "-o", "both.svg"), "a picture shows one tile"),
        (("nowhere.py",), "nowhere.py [OX6001]"),
        (("mine.py:other",), "no pipeline or recipe 'other'"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], words: str, folder: Path) -> None:
    (folder / "mine.py").write_text(TWO)
    assert words in refused(*arguments)


def test_plain_tiles_may_lie_at_sixteen_bytes(folder: Path) -> None:
    (folder / "mine.py").write_text(TWO)
    name = next(t["tile"] for t in json_of(command("show", "tile", "mine.py", "--json"))["tiles"] if t["tile"] != "src_tile")
    assert "at 0x410" in tile("mine.py", "--tile", name, "--at", "0x410")
    assert "a multiple of 16 bytes" in refused("mine.py", "--tile", name, "--at", "0x408")


def test_nothing_is_shared(folder: Path) -> None:
    source = (
        TILES.replace("    tile = cta.shared(src)\n", "").partition("    full = cta")[0]
        + "    cta.sync()\n\n\n@tiles.recipe"
        + TILES.partition("@tiles.recipe")[2]
    )
    (folder / "mine.py").write_text(source)
    assert "has no shared tiles" in refused("mine.py")


def test_refusals_as_json() -> None:
    result = command("show", "tile", "--box", "64,33", "--json")
    data: Any = json_of(result)
    assert result.exit_code == 1
    assert [d["rule"] for d in data["diagnostics"]] == ["OX2007"]
