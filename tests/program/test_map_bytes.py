"""Bytes of tensor maps read back: one edit of the hardware at a time, whole maps, and bytes that are no map's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.engines.sim.map_image import encoded
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.map_bytes import MAP_BYTES, DecodedMap, decode
from oxidecopy.program.tensor_map import TensorMap

EDITS: list[tuple[str, dict[str, str]]] = json.loads((Path(__file__).parents[1] / "cases/h200/tensormap_replace.json").read_text())["edits"]
PTX_FORMATS = ("u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f32_ftz", "f64", "bf16")
FIVE = 4 << 4  # rank 5 in the word at 0x08


def values(of: DecodedMap) -> dict[str, int]:
    return {field.name: field.value for field in of.fields}


def edited(changes: Mapping[str, str], rank: int) -> DecodedMap:
    data = bytearray(MAP_BYTES)
    data[8] |= (rank - 1) << 4
    for offset, byte in changes.items():
        data[int(offset, 16)] |= int(byte, 16)
    return decode(bytes(data))


@pytest.mark.parametrize(("name", "changes"), EDITS, ids=[name for name, _ in EDITS])
def test_what_the_hardware_edited_is_what_is_read(name: str, changes: dict[str, str]) -> None:
    """The instruction drops what does not fit and checks nothing; what it left behind is read as what it stands for."""
    of = edited(changes, 1 if name.startswith("rank") else 5)
    match = re.fullmatch(r"(addr|rank|box|dim|stride|es|dt|sw|fill)(\d+)?(?:_(\d+))?", name)
    assert match is not None
    kind, first, second = match[1], int(match[2] or 0), int(match[3] or 0)
    if kind == "addr":
        assert of.address == 0x123456789ABCDEF0
    elif kind == "rank":
        assert values(of)["rank"] == first
        assert (of.tensor_map is None) == (first > 4)
    elif kind == "stride" and first == 4:  # no map has a fifth: it lands where the others' upper bits are
        assert bool(of.unknown) == (second == (1 << 40) - 16)
    else:
        map_ = of.tensor_map
        assert map_ is not None
        assert not of.unknown
        inward = {"box": map_.box_dim, "dim": map_.global_dim, "es": map_.element_strides, "stride": map_.global_strides}
        match kind:
            case "dt":
                assert map_.dtype == PTX_FORMATS[first]
            case "sw":
                assert map_.swizzle == ("none", "32B", "64B", "128B")[first]
            case "fill":
                assert map_.oob_fill == ("zero", "nan")[first]
            case "stride":
                assert map_.global_strides[::-1][first] == second % (1 << 40) // 16 * 16
            case _:
                modulus = {"box": 256, "dim": 1 << 32, "es": 8}[kind]
                assert inward[kind][::-1][first] == (second - 1) % modulus + 1


@st.composite
def maps(draw: st.DrawFn) -> TensorMap:
    im2col = draw(st.booleans())
    rank = draw(st.integers(3, 5) if im2col else st.integers(1, 5))
    bits = {3: 16, 4: 8, 5: 5}.get(rank, 1)
    corner = st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    def each(entry: st.SearchStrategy[int], count: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(entry, min_size=count, max_size=count)))

    return TensorMap(
        dtype=draw(st.sampled_from([name for name, info in DTYPES.items() if info.driver_enum <= 12 and name not in ("e4m3", "e5m2")])),
        global_dim=each(st.integers(1, 1 << 32), rank),
        global_strides=each(st.integers(0, (1 << 36) - 1).map(lambda n: 16 * n), rank - 1),
        box_dim=(draw(st.integers(1, 1024)), draw(st.integers(1, 256))) if im2col else each(st.integers(1, 256), rank),
        element_strides=each(st.integers(1, 8), rank),
        swizzle=draw(st.sampled_from(["none", "32B", "64B", "128B"])),
        l2_promotion=draw(st.sampled_from([0, 64, 128, 256])),
        oob_fill=draw(st.sampled_from(["zero", "nan"])),
        mode="im2col" if im2col else "tile",
        lower=each(corner, rank - 2) if im2col else (),
        upper=each(corner, rank - 2) if im2col else (),
    )


@given(of=maps(), address=st.integers(0, (1 << 57) - 1))
def test_round_trip(of: TensorMap, address: int) -> None:
    decoded = decode(encoded(of, address))
    assert (decoded.tensor_map, decoded.address) == (of, address)
    assert (decoded.unknown, decoded.oddities) == ((), ())


PLAIN = TensorMap(dtype="f32", global_dim=(64, 96), global_strides=(384,), box_dim=(8, 32), element_strides=(1, 1), swizzle="128B")


@pytest.mark.parametrize("interleave", ["16B", "32B"])
def test_interleave(interleave: str) -> None:
    of = replace(PLAIN, global_dim=(2, 3, 4), global_strides=(64, 32), box_dim=(1, 1, 4), element_strides=(1, 1, 1), interleave=interleave)
    assert decode(encoded(of, 32)).tensor_map == of


@pytest.mark.parametrize(
    ("offset", "bits", "words"),
    [
        (0x08, 0b0000_0010, "version 1"),
        (0x08, 0b0101_0000, "rank 6"),
        (0x08, 0b0000_0001, "an im2col map of rank 2"),
        (0x09, 0b0001_1000, "interleave 3"),
        (0x0A, 0b0010_0000, "bits 19 to 21"),
        (0x0A, 0b0000_1000, "bits 19 to 21"),
        (0x40, 0xFF, "the note says a box has 1,279 bytes, the fields say 1,024"),
        (0x49, 0x01, "the note says alignment 1280, the swizzle 1024"),
    ],
)
def test_oddities_are_named(offset: int, bits: int, words: str) -> None:
    data = bytearray(encoded(PLAIN, 0))
    assert decode(bytes(data)).oddities == ()
    data[offset] |= bits
    assert any(oddity.startswith(words) for oddity in decode(bytes(data)).oddities), decode(bytes(data)).oddities


@pytest.mark.parametrize(("number", "words"), [(13, "packed"), (11, "writes tf32 as f32"), (6, "rounding bit with elements of f16")])
def test_formats_of_no_host_call(number: int, words: str) -> None:
    data = bytearray(encoded(PLAIN, 0))
    head = int.from_bytes(data[8:12], "little") & ~(0xF << 7) | number << 7 | (number == 6) << 16
    data[8:12] = head.to_bytes(4, "little")
    assert any(words in oddity for oddity in decode(bytes(data)).oddities)
    assert next(f for f in decode(bytes(data)).fields if f.name == "format").reported == (number == 13)


def test_a_map_without_notes_was_not_made_by_a_host_call() -> None:
    assert decode(bytes(MAP_BYTES)).oddities == ("no notes of a host call: made on a device (tensormap.replace), or by another encoder",)


@pytest.mark.parametrize("offset", [*range(0x3C, 0x40), *range(0x50, 0x80), 0x0B, 0x1E, 0x36])
def test_what_nobody_explains_is_unknown(offset: int) -> None:
    data = bytearray(encoded(PLAIN, 0))
    assert data[offset] == 0
    data[offset] = 0x80
    assert decode(bytes(data)).unknown == ((offset, 0x80),)


def test_entries_beyond_the_rank_are_shown_where_they_are_set() -> None:
    data = bytearray(encoded(PLAIN, 0))
    data[0x28] = data[0x3A] = data[0x10] = 7
    unused = [field.name for field in decode(bytes(data)).fields if field.meaning == "not used by this rank"]
    assert unused == ["stride 1", "dim 2", "box 3"]
    assert decode(bytes(data)).tensor_map == PLAIN


DEEP = replace(
    PLAIN, global_dim=(1,) * 5, global_strides=(16,) * 4, element_strides=(1,) * 5, mode="im2col", lower=(0,) * 3, upper=(0,) * 3
)


@pytest.mark.parametrize("of", [PLAIN, DEEP], ids=["tiled", "im2col"])
def test_no_bit_belongs_to_two_fields(of: TensorMap) -> None:
    taken = [8 * f.offset + f.shift + i for f in decode(encoded(of, 0)).fields for i in range(f.bits)]
    assert len(set(taken)) == len(taken)


@pytest.mark.parametrize("size", [0, 64, 127, 129])
def test_other_sizes(size: int) -> None:
    with pytest.raises(ValueError, match="128 bytes"):
        decode(bytes(size))
