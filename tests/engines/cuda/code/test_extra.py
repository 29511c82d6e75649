"""Copies that take a COPY_EXTRA record: every conformance case of theirs says on the device what its program says."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.conformance import bulk, im2col, replaced
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code import Image, encode
from oxidecopy.engines.cuda.code.extra import KINDS
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.isa import ops
from oxidecopy.program.program import ArrayInfo, Launch
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from oxidecopy.verify import verify
from tests.helpers.device_agreement import check

DEV = ox.Device.open("sim-fast")
CASES = [*bulk.cases(), *im2col.cases()]
REPLACED = list(replaced.cases())


@pytest.mark.parametrize("case", [*CASES[::4], *REPLACED[::4], *REPLACED[-5:]], ids=lambda case: f"{case.group}: {case.name}")
def test_the_device_does_what_the_program_says(case: Any) -> None:
    launch = case.make(DEV).launch
    image = check(launch.program, launch.launch)
    assert image.entry_point in abi.ENTRY_POINTS
    assert image.family.startswith("full") or case.name.startswith("interleaved") or case.group == "rare copies in wide code"
    listing(image)


def test_every_copy_has_its_number() -> None:
    assert set(KINDS) == set(ops.OPS) & set(ops.Copy.__args__)
    assert all(kind == op.opcode for op, kind in KINDS.items())


HEAD = """\
program p threads=32 cluster=(1, 1, 1) shared=4096:
  map src: f32 box=(8, 32)
  array out: f32 rank=1
  tile t: f32 (8, 32) align=1024 at=0 step=1024
  barrier full: TmaBarrier at=4000
"""
MAP = TensorMap(dtype="f32", global_dim=(80, 64), global_strides=(256,), box_dim=(8, 32), element_strides=(1, 1))


def image_of(body: str) -> Image:
    arrays = (("out", ArrayInfo(dtype="f32", shape=(1 << 32,), strides_bytes=(4,))),)
    return check(from_text(HEAD + body), Launch(grid=(2, 1, 1), maps=(("src", MAP),), arrays=arrays))


def test_a_copy_without_a_hint_needs_no_such_family() -> None:
    for hint, family in (("", "move"), (", hint=evict_first", "full")):
        image = image_of(f"  scope elect {{0}}:\n    cp.async.bulk.tensor.s2g src, t, [0, 0]{hint}\n")
        assert image.family == family


def test_named_barriers_need_the_form_in_global_memory() -> None:
    body = "  scope warps {0..31}:\n    bar.sync number=7, threads=32\n"
    copy = "  scope elect {0}:\n    cp.async.bulk.prefetch.tensor src, [0, 0]\n"
    image = image_of(copy + body)
    assert image.entry_point in abi.ENTRY_POINTS


def test_what_the_listing_says() -> None:
    image = image_of(
        "  scope elect {0}:\n"
        "    cp.async.bulk.prefetch.tensor src, [8, 32], hint=evict_last(0.5, evict_first)\n"
        "    cp.reduce.async.bulk.s2g add out, [block_idx.x * 4], t, nbytes=64\n"
    )
    text = listing(image)
    assert "tensor_prefetch evict_last(0.5, evict_first)" in text
    assert "bulk_reduce 64 bytes of f32" in text
    assert "copy_extra out 0 [r" in text


def test_a_place_beyond_32_bits_needs_wide_code() -> None:
    image = image_of("  scope elect {0}:\n    cp.async.bulk.prefetch out, [block_idx.x * 3000000000], nbytes=64\n")
    assert image.family == "wide"


def test_a_loop_with_a_hint_is_not_fused() -> None:
    launch = next(c for c in bulk.cases() if c.name == "rings").make(DEV).launch
    notes = encode(verify(launch.program, launch.launch)).loops
    assert any("cache hint" in note.why for note in notes)


def test_the_record_is_as_declared() -> None:
    offsets = {"kind": 0, "im2col": 1, "policy": 2, "dtype": 3, "fraction": 4, "nbytes": 8, "place": 12}
    assert {name: offset for name, _, offset in abi.EXTRA} == offsets
    assert DeviceOp.COPY_EXTRA.value == 0x94
