"""The image of a program: its launch parameter, its form, and what it says of records."""

from __future__ import annotations

import struct

import pytest

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import Image, encode_program, records
from oxidecopy.engines.cuda.code import listing as listings
from oxidecopy.engines.cuda.code.image import INLINE_MAPS, form_of, room
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.program.program import ArrayInfo, Launch
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from tests.helpers.device_emulator import fields

MAP = TensorMap(dtype="f32", global_dim=(800, 224), global_strides=(896,), box_dim=(8, 32), element_strides=(1, 1))
INFO = ArrayInfo(dtype="f32", shape=(5, 7, 9), strides_bytes=(252, 36, 4))
TEXT = """\
program simple threads=64 cluster=(1, 1, 1) shared=4096:    # a.py:1 simple
{maps}  array out: f32 rank=3
  array other: f32 rank=1
  scalar alpha: f32
  tile t: f32 (8, 32) align=1024 stages=2 at=0 step=1024
  tile s: f32 (2, 2, 2) align=1024 at=2048 step=32
  barrier full: TmaBarrier stages=2 at=4000
  barrier done: TmaBarrier at=4016
  scope thread {{0}}:
    mbarrier.init full[1], count=1    # :7
{loads}  st.shared.fill s, alpha
  st.shared.fill s, 1.5
  st.global.tile out, s, [block_idx.x, 0, 3]
{more}"""
LOAD = "    cp.async.bulk.tensor.g2s m{0}, t, [0, 0], full[1]\n"


def image_of(maps: int = 1, more: int = 0) -> Image:
    names = [f"m{i}" for i in range(maps)]
    text = (TEXT if more >= 0 else TEXT.replace("{loads}", "").replace("    mbarrier.init full[1], count=1    # :7\n", "")).format(
        maps="".join(f"  map {n}: f32 box=(8, 32)\n" for n in names),
        loads="".join(LOAD.format(i) for i in range(maps)),
        more="  bar.sync number=0, threads=64\n" * more,
    )
    other = ArrayInfo(dtype="f32", shape=(4,), strides_bytes=(4,))
    arrays = (("other", other), ("out", INFO))
    return encode_program(from_text(text), Launch(grid=(2, 1, 1), maps=tuple((n, MAP) for n in sorted(names)), arrays=arrays))


def header_of(image: Image, parameter: bytes) -> dict[str, int]:
    return {name: int(value) for name, value in fields(parameter, abi.HEADER, INLINE_MAPS[image.form] * abi.MAP_BYTES).items()}


def filled(image: Image) -> bytes:
    maps = {name: bytes([i + 1]) * 128 for i, name in enumerate(image.maps)}
    given = {"report": 11, "counter": 12, "code": 13, "table": 14, "limit_us": 15}
    return image.parameter(maps=maps, addresses={"out": 1 << 40, "other": 5}, scalars={"alpha": 0.1}, **given)


@pytest.mark.parametrize(
    ("maps", "more", "form"), [(0, -1, "small"), (1, 0, "large"), (3, 0, "large"), (1, 20, "large"), (1, 100, "global"), (11, 0, "large")]
)
def test_the_parameter_holds_what_the_kernel_reads(maps: int, more: int, form: str) -> None:
    image = image_of(maps, more)
    assert image.form == form
    assert image.entry_point == f"oxidecopy_move_{form}"
    data = filled(image)
    assert len(data) == {"small": 1024, "large": 4096, "global": 1024}[form]
    inline = INLINE_MAPS[form]
    for slot in range(min(maps, inline)):
        assert data[128 * slot : 128 * slot + 128] == bytes([slot + 1]) * 128
    assert image.table_maps == tuple(f"m{i}" for i in range(inline, maps))
    header = header_of(image, data)
    assert {k: header[k] for k in ("report", "counter", "code", "table", "limit_us")} == {
        "report": 11, "counter": 12, "code": 13, "table": 14, "limit_us": 15,
    }  # fmt: skip
    assert (header["warps"], header["records"], header["stage_slots"]) == (len(image.warps), len(image.code) // 32, 0)
    blob = inline * 128 + abi.HEADER_BYTES
    for i, warp in enumerate(image.warps):
        found = fields(data, abi.WARP_ENTRY, blob + 8 * i)
        assert found == {"entry": warp.entry, "threads": warp.threads, "first_lane": warp.first_lane, "lanes": warp.lanes}
    if form != "global":
        code = blob + header["code_offset"]
        assert header["code_offset"] % 32 == 0
        assert data[code : code + len(image.code)] == image.code
    words = struct.unpack_from("<12Q", data, blob + header["args_offset"])
    assert words[:9] == (1 << 40, 252, 36, 4, 0, 0, 5 | 7 << 32, 9 | 1 << 32, 1)
    alpha, one_and_a_half = bits_of(0.1, "f32", cast=False), bits_of(1.5, "f32", cast=False)
    assert words[9:11] == (alpha, one_and_a_half)
    assert image.arrays == {"out": 0}, "arrays that no op names take no room"


def test_the_parameter_is_new_each_time() -> None:
    image = image_of()
    assert filled(image) == filled(image)
    assert image.parameter(
        maps={name: bytes(128) for name in image.maps}, addresses={"out": 1}, scalars={"alpha": 2.0}, report=0, limit_us=1
    ) != filled(image)


def test_forms_at_their_bounds() -> None:
    assert form_of(2, 1, 1, room("small") - 32) == "small"
    assert form_of(3, 1, 1, 32) == "large"
    assert form_of(2, 1, 1, room("small") - 31) == "large"
    assert form_of(2, 1, 1, room("large") - 32) == "large"
    assert form_of(2, 1, 1, room("large") - 31) == "global"
    assert form_of(2, 32, (room("global") - 256) // 8, room("large")) == "global"
    assert form_of(2, 32, (room("global") - 256) // 8 + 1, room("large")) == ""
    assert form_of(2, 32, (room("global") - 256) // 8 + 1, 32) == "large"


def test_records_say_where_they_come_from() -> None:
    image = image_of()
    init = next(where for where in image.sites.values() if "mbarrier.init" in where.words)
    assert init.words == "mbarrier.init full[1], count=1"
    assert (init.site.file, init.site.line) == ("a.py", 7) if init.site else False
    assert image.barriers == {4000: "full[0]", 4008: "full[1]", 4016: "done"}
    assert [agent.words for agent in image.agents] == ["thread 0 (thread)", "threads 1-63"]


def test_the_listing_names_what_the_user_named() -> None:
    text = listing(image_of(3))
    for words in (
        "simple, 96 threads",
        "map 0: m0",
        "array out",
        "scalar alpha as f32",
        "store_global out",
        "share 1-64 of 64",
        "tensor_g2s m2",
    ):
        assert words in text
    assert text.count("  end 0") == 2


@pytest.mark.parametrize(
    ("layout", "form"),
    [
        (abi.RECORD, records.RECORD),
        (abi.EVAL_INSTR, records.INSTRUCTION),
        (abi.RING, records.RING),
        (abi.COPY, records.COPY),
        (abi.ONCE, records.ONCE),
        (abi.LAYOUT, listings._LAYOUT),
    ],
)
def test_structures_are_laid_out_as_declared(layout: tuple[tuple[str, str, int], ...], form: struct.Struct) -> None:
    data = bytes(range(1, form.size + 1))
    plain = [value for found in fields(data, layout).values() for value in (found if isinstance(found, list) else [found])]
    assert list(form.unpack(data)) == plain
    assert form.size in (abi.RECORD_BYTES, abi.EVAL_BYTES)
