"""`oxidecopy show descriptor`."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from oxidecopy.cli.app import app
from oxidecopy.cli.descriptor_words import decoded_words
from oxidecopy.engines.sim.map_image import encoded
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import validate
from oxidecopy.program.map_bytes import decode
from oxidecopy.program.tensor_map import TensorMap
from tests.helpers.command import TILES, command, json_of

LESSONS = Path(__file__).parents[2] / "examples"
ADDRESS = 0x7F0000001000
MAP = TensorMap(
    dtype="bf16", global_dim=(3, 64, 96), global_strides=(12_288, 192), box_dim=(1, 8, 64), element_strides=(1, 2, 1), swizzle="128B"
)
IM2COL = TensorMap(
    dtype="f16",
    global_dim=(2, 14, 9, 64),
    global_strides=(16_128, 1152, 128),
    box_dim=(64, 8),
    element_strides=(1, 1, 1, 1),
    mode="im2col",
    lower=(-1, -1),
    upper=(-1, -1),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(*arguments: str) -> dict[str, str]:
    """The rows of the last map, by name."""
    result = command("show", "descriptor", *arguments)
    assert result.exit_code == 0, result.stderr
    return {line[2:20].strip(): line[20:].strip() for line in result.stdout.splitlines() if line.startswith("  ")}


def refused(*arguments: str) -> str:
    result = command("show", "descriptor", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def test_of_a_pipeline() -> None:
    rows = shown(f"{LESSONS / '01_load.py'}:tma_load")
    assert rows["kind"] == "tiled, rank 2"
    assert rows["extents"].startswith("128 x 256 ")
    assert rows["box"].startswith("64 x 64 ")
    assert rows["one copy"].startswith("16,384 bytes")
    assert rows["coordinates"].startswith("multiples of 4 ")


def test_each_entry_of_a_table() -> None:
    data = json_of(command("show", "descriptor", f"{LESSONS / '17_table.py'}:grouped", "--json"))
    names = [one["name"] for one in data["maps"]]
    assert any("[0]" in name for name in names)
    text = command("show", "descriptor", f"{LESSONS / '17_table.py'}:grouped").stdout
    assert all(f"{name}\n" in text for name in names)
    assert "a table of" in text


def test_a_recorded_program_has_no_extents(folder: Path) -> None:
    (folder / "mine.py").write_text(TILES)
    command("show", "program", "mine.py", "--binary", "mine.oxp")
    rows = shown("mine.oxp")
    assert rows["extents"].startswith("?")
    assert rows["one copy"].startswith("256 bytes")
    assert json_of(command("show", "descriptor", "mine.oxp", "--json"))["maps"] == [{"name": "src"}]


FORMS = ["bytes", "hex", "spaced", "byte array", "u32 array", "u64 array", "debugger", "argument", "stdin", "hex on stdin"]


@pytest.mark.parametrize("form", FORMS)
def test_raw_maps_in_every_form(form: str, folder: Path) -> None:
    data = encoded(MAP, ADDRESS)
    digits = data.hex()
    files = {
        "bytes": data,
        "hex": digits.encode(),
        "spaced": b"\n".join(digits[i : i + 32].upper().encode() for i in range(0, 256, 32)),
        "byte array": ", ".join(f"0x{byte:x}" for byte in data).join("{}").encode(),
        "u32 array": ", ".join(f"0x{word:08x}u" for word in struct.unpack("<32I", data)).join("{}").encode(),
        "u64 array": "\n".join(f"[{word:#x}]" for word in struct.unpack("<16Q", data)).encode(),
        "debugger": "".join(
            f"0x7ffe{i:04x}:\t0x{one:016x}\t0x{two:016x}\n" for i, (one, two) in enumerate(struct.iter_unpack("<QQ", data))
        ).encode(),
    }
    if form in files:
        (folder / "map.bin").write_bytes(files[form])
        result = command("show", "descriptor", "map.bin", "--json")
    elif form == "argument":
        result = command("show", "descriptor", digits, "--json")
    else:
        given = data if form == "stdin" else digits.encode()
        result = CliRunner().invoke(app, ["show", "descriptor", "-", "--json"], input=given)
    [one] = json_of(result)["maps"]
    assert one["address"] == ADDRESS
    assert one["parameters"]["box_dim"] == [1, 8, 64]
    assert (one["unknown"], one["oddities"]) == ([], [])


def test_words_of_a_raw_map() -> None:
    rows = shown(encoded(MAP, ADDRESS).hex())
    assert rows["address"] == "0x7f0000001000"
    assert rows["elements"].startswith("bf16 ")
    assert rows["strides"].startswith("12,288, 192 bytes")
    assert rows["strides"].endswith("dense rows")
    assert rows["element strides"].endswith("so a copy moves 1 x 4 x 64")
    assert rows["one copy"].startswith("512 bytes")
    assert rows["shared memory"].endswith("at a multiple of 1,024")
    assert rows["coordinates"].startswith("multiples of 8 ")
    assert any("where it was measured; others may differ" in name + value for name, value in rows.items())


def test_words_of_an_im2col_map() -> None:
    rows = shown(encoded(IM2COL, ADDRESS).hex())
    assert rows["kind"] == "im2col, rank 4"
    assert rows["box"].startswith("64 x 8 ")
    assert rows["filter bases"].startswith("(-1, -1) to (-1, -1)")
    assert rows["one copy"].startswith("1,024 bytes")


def test_fields_say_where_they_lie() -> None:
    lines = [line.split() for line in command("show", "descriptor", encoded(MAP, ADDRESS).hex(), "--fields").stdout.splitlines()]
    assert ["0x08", "13-14", "swizzle", "0x3", "128B"] in lines
    assert ["0x34", "3-5", "element", "stride", "1", "0x1", "every", "element", "number", "2"] in lines


def test_several_maps(folder: Path) -> None:
    (folder / "maps.bin").write_bytes(encoded(MAP, 0) + encoded(IM2COL, 16))
    text = command("show", "descriptor", "maps.bin").stdout
    assert text.index("map 0\n") < text.index("map 1\n")
    assert [one["address"] for one in json_of(command("show", "descriptor", "maps.bin", "--json"))["maps"]] == [0, 16]


def test_what_is_odd_or_unknown_is_said() -> None:
    data = bytearray(encoded(MAP, 8))
    data[0x3D] = data[0x70] = 0x5A
    text = command("show", "descriptor", data.hex()).stdout
    assert "unknown: byte 0x3d has bits 0x5a that nobody explains" in text
    assert "unknown: byte 0x70" in text
    assert "no multiple of 16: every copy faults" in text
    assert "odd:" not in text
    data[0x0A] |= 0x20
    assert "odd: bits 19 to 21" in command("show", "descriptor", data.hex()).stdout


def test_bytes_that_are_no_map_are_shown_by_field() -> None:
    data = bytearray(encoded(MAP, 0))
    data[8] |= 0x70
    rows = shown(data.hex())
    assert rows["rank"] == "rank 8"
    assert any(name.startswith("odd: rank 8") for name in rows)
    assert json_of(command("show", "descriptor", data.hex(), "--json"))["maps"][0]["parameters"] is None


def test_the_verdict() -> None:
    plain = TensorMap(dtype="f32", global_dim=(64, 64), global_strides=(256,), box_dim=(8, 32), element_strides=(1, 1), swizzle="128B")
    assert shown(encoded(plain, 4096).hex())["verdict"] == "usable on 9.0"
    assert shown(encoded(plain, 4096).hex(), "--arch", "sm_100a")["verdict"] == "usable on 10.0"
    broken = command("show", "descriptor", encoded(replace(plain, box_dim=(8, 33)), 4096).hex())
    assert broken.exit_code == 0  # explained, not launched
    assert "does not encode on 9.0" in broken.stdout
    assert "[OX2007]" in broken.stdout
    assert "fix: box inner 32, or" in broken.stdout
    long = encoded(replace(plain, global_dim=((1 << 31) + 1, 64)), 4096).hex()
    assert shown(long)["verdict"] == "encodes, and is not usable on 9.0"
    [one] = json_of(command("show", "descriptor", long, "--json"))["maps"]
    assert (one["verdict"]["encodes"], one["verdict"]["usable"]) == (True, False)
    assert [d["rule"] for d in one["verdict"]["errors"]] == ["OX2004"]
    advised = encoded(replace(plain, box_dim=(80, 32)), 4096).hex()
    assert "  warning: " in command("show", "descriptor", advised).stdout
    assert "[OX2055]" in refused(advised, "--arch", "hopper")


def test_the_verdict_of_a_pipelines_maps() -> None:
    assert shown(f"{LESSONS / '01_load.py'}:tma_load")["verdict"] == "usable on 9.0"
    [one] = json_of(command("show", "descriptor", f"{LESSONS / '01_load.py'}:tma_load", "--json"))["maps"]
    assert one["verdict"]["usable"]


@pytest.mark.parametrize("data", [bytes(128), b"\xff" * 128, bytes(range(128)), bytes(128)[:8] + b"\xff" * 120])
def test_any_bytes_are_answered(data: bytes) -> None:
    result = command("show", "descriptor", data.hex(), "--fields")
    assert result.exit_code == 0
    assert json_of(command("show", "descriptor", data.hex(), "--json"))["maps"]


@given(data=st.binary(min_size=128, max_size=128), rank=st.integers(0, 5), im2col=st.booleans())
def test_there_are_words_for_any_bytes(data: bytes, rank: int, im2col: bool) -> None:
    one = decode(data[:8] + bytes([data[8] & 0x80 | rank << 4 | im2col]) + data[9:])
    assert len(decoded_words(one)) > 5
    if one.tensor_map is not None:
        assert validate(MapParameters.of(one.tensor_map, one.address)).sm == 90


def test_odd_parameters_in_words() -> None:
    for change, words in (
        ({"element_strides": (1, 1, 2)}, "the hardware ignores the innermost one"),
        ({"global_strides": (12_288, 208)}, "16 bytes between rows"),
        ({"global_strides": (12_288, 64)}, "rows overlap"),
        ({"global_strides": (12_288, 0)}, "rows repeat"),
        ({"interleave": "16B"}, "one slice of channels"),
        ({"oob_fill": "nan"}, "NaN"),
        ({"dtype": "u8"}, "e4m3, e5m2 carry the same number"),
        ({"l2_promotion": 0}, "L2 promotion      none"),
    ):
        changes: Any = change
        assert words in command("show", "descriptor", encoded(replace(MAP, **changes), 0).hex()).stdout, words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "0 bytes"),
        (bytes(64), "64 bytes"),
        (bytes(129), "129 bytes"),
        (b"00" * 127, "254 hex digits"),
        (b"0" * 255, "255 hex digits"),
        (bytes(128 * 1025), "131,200 bytes"),
        (b"hello", "5 bytes"),
        (b"\x93NUMPY".ljust(256, b"\0"), "x.tofile(path)"),  # np.save of a map: its header would be taken for one
    ],
)
def test_files_that_hold_no_maps(content: bytes, words: str, folder: Path) -> None:
    (folder / "map.bin").write_bytes(content)
    text = refused("map.bin")
    assert words in text
    assert "[OX6023]" in text


def test_a_pipelines_name_may_be_hex_digits(folder: Path) -> None:
    (folder / "a_file_with_a_rather_long_name.py").write_text(
        TILES.replace("def tiles", "def facade").replace("@tiles", "@facade").replace("tiles[", "facade[")
    )
    assert shown("a_file_with_a_rather_long_name.py:facade")["kind"] == "tiled, rank 1"


def test_what_else_is_refused(folder: Path) -> None:
    (folder / "mine.py").write_text(TILES)
    assert "leave --fields out" in refused("mine.py", "--fields")
    assert "nowhere.py [OX6001]" in refused("nowhere.py")
    assert "nowhere.bin [OX6001]" in refused("nowhere.bin")
    assert "the argument holds no tensor maps" in refused("00" * 64)
    assert "[OX6004]" in refused("mine.py:other")
    (folder / "mine.py").write_text(
        TILES.replace("src: ox.TmaDescriptor[ox.f32, ox.D1], ", "")
        .replace("ox.TmaDescriptor.tiled(src, box=(64,)), ", "")
        .partition("    tile =")[0]
        + "    cta.sync()\n\n\n@tiles"
        + TILES.partition("\n@tiles")[2].replace("ox.TmaDescriptor.tiled(src, box=(64,)), ", "")
    )
    assert "tiles has no descriptors" in refused("mine.py")
