"""Transposes and reductions as records: each element is moved once, lanes that access memory together meet different banks, warps share."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.conformance import compute, reshape
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code import Image, encode
from oxidecopy.engines.cuda.code.coordinates import magic_of
from oxidecopy.engines.cuda.code.listing import listing
from tests.helpers.device_agreement import compare
from tests.helpers.device_emulator import fields

Map = ox.TmaDescriptor[Any, Any, Any, Any]
CASES = {case.name: case for case in reshape.cases()}
SWIZZLES = {"none": ox.SwizzleNone, "128B": ox.Swizzle128B, "64B": ox.Swizzle64B}


def image_of(dtype: Any, box: tuple[int, ...], swizzle: str = "none", consumers: int = 3) -> Image:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=consumers))
    def flip(cta: ox.Cta, src: Map, dst: Map) -> None:
        ring: Any = cta.ring(stages=2, tiles=(src,))
        outs = cta.store_ring(dst, stages=2)
        with cta.producer() as leader:
            for at in cta.tiles(src):
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for at in cta.tiles(src):
                there: Any = (*at[:-2], at[-1], at[-2])
                with ring.consume(group) as (tile,), outs.put(group, there) as made:
                    group.transpose(tile, out=made)

    dev = ox.Device.open("sim-fast")
    shape, there = tuple(2 * n for n in box), (*box[:-2], box[-1], box[-2])
    other = tuple(2 * n for n in there)
    maps = [(shape, box), (other, there)]
    tiled: Any = ox.TmaDescriptor.tiled
    bound = [tiled(dev.zeros(s, dtype), box=b, swizzle=SWIZZLES[swizzle]) for s, b in maps]
    return encode(flip[2].bind(*bound).verify())


def heads(image: Image, op: DeviceOp) -> list[tuple[int, dict[str, Any]]]:
    """Records of an op with their places."""
    found = [(pc, fields(image.code, abi.RECORD, pc * abi.RECORD_BYTES)) for pc in sorted(image.sites)]
    return [(pc, record) for pc, record in found if record["op"] == op]


def blocks(record: dict[str, Any], flip: dict[str, Any]) -> list[tuple[int, int]]:
    """The corners of each block, in elements of the source: its rows counted over all outer dimensions."""
    shifts, side = record["imm"][4], flip["side"]
    tall, wide = shifts >> 16 & 0xFF, shifts >> 24
    assert (flip["across_magic"], shifts & 0xFF) == magic_of(flip["across"])
    assert (flip["down_magic"], shifts >> 8 & 0xFF) == magic_of(flip["down"])
    corners = []
    for unit in range(flip["blocks"]):
        inside, square = unit & ((1 << tall + wide) - 1), unit >> tall + wide
        down, right = divmod(square, flip["across"])
        low, high = (wide, tall) if wide >= tall else (tall, wide)
        a = inside & ((1 << low) - 1)
        b = (a ^ inside >> low) & ((1 << high) - 1)
        i, j = (b, a) if wide >= tall else (a, b)
        corners.append((((down << tall) + i) << side, ((right << wide) + j) << side))
    return corners


@pytest.mark.parametrize(
    ("dtype", "box", "side"),
    [
        (ox.f32, (64, 32), 4), (ox.f32, (20, 24), 4), (ox.u8, (48, 32), 8), (ox.bf16, (3, 16, 40), 8), (ox.f64, (2, 2, 6, 10), 2),
        (ox.f16, (128, 128), 8),
    ],
)  # fmt: skip
def test_every_element_is_moved_once(dtype: Any, box: tuple[int, ...], side: int) -> None:
    image = image_of(dtype, box)
    ((pc, record),) = heads(image, DeviceOp.TRANSPOSE_TILE)
    flip = fields(image.code, abi.FLIP, (pc + 1) * abi.RECORD_BYTES)
    rows = 1
    for n in box[:-1]:
        rows *= n
    moved = Counter((r + i, c + j) for r, c in blocks(record, flip) for i in range(1 << flip["side"]) for j in range(1 << flip["side"]))
    assert 1 << flip["side"] == side
    assert moved == Counter((r, c) for r in range(rows) for c in range(box[-1]))


@pytest.mark.parametrize(
    ("dtype", "box"), [(ox.f32, (32, 32)), (ox.f16, (64, 64)), (ox.f64, (16, 16)), (ox.u8, (128, 128)), (ox.f32, (64, 96))]
)
@pytest.mark.parametrize("swizzle", ["none", "128B"])
def test_no_bank_conflicts(dtype: Any, box: tuple[int, int], swizzle: str) -> None:
    if swizzle != "none" and box[1] * dtype.info.nbytes > 128:
        pytest.skip("rows are wider than the swizzle")
    image = image_of(dtype, box, swizzle)
    ((pc, record),) = heads(image, DeviceOp.TRANSPOSE_TILE)
    flip = fields(image.code, abi.FLIP, (pc + 1) * abi.RECORD_BYTES)
    size, side, corners = 1 << flip["element"], 1 << flip["side"], blocks(record, flip)
    chunk = size * side
    together = 128 // chunk  # lanes that one access serves
    for first in range(0, len(corners), together):
        for step in range(side):
            for turned, pitch, mask in ((False, flip["source_pitch"], flip["source_mask"]), (True, flip["out_pitch"], flip["out_mask"])):
                corner = [(c, r) if turned else (r, c) for r, c in corners[first : first + together]]
                at = [(row + step) * pitch + column * size for row, column in corner]
                banks = {(a ^ (a >> 7 & mask) << 4) % 128 // chunk for a in at}
                assert len(banks) == together


def test_an_elected_thread_leaves_the_blocks_to_the_others() -> None:
    image = image_of(ox.f32, (32, 32))
    ((pc, record),) = heads(image, DeviceOp.TRANSPOSE_TILE)
    (agent,) = [a for a in image.agents if a.entry <= pc < a.entry + a.records]
    assert agent.words.startswith("threads 1-95")
    assert record["imm"][2:4] == [96 << 16, 96]
    assert image.entry_point == "oxidecopy_reshape_global"
    assert [r["flags"] for _, r in heads(image, DeviceOp.LOOP)] == [abi.LOOP_TIGHT] * 2


@pytest.mark.parametrize(("name", "family"), [("f16 1", "move"), ("f16 1 in a loop", "reshape")])
def test_iotas_that_come_again_are_run_where_they_are_fast(name: str, family: str) -> None:
    (case,) = [case for case in compute.cases() if case.name == name]
    made = case.make(ox.Device.open("sim-fast")).launch
    image = encode(made.verify())
    assert image.family == family
    compare(made.program, made.launch, image)


@pytest.mark.parametrize("name", ["transpose u8 3-D", "transpose odd by one", "sum of f32 axis 1 kept", "max of bf16 axis 0 odd"])
def test_records_agree_with_the_program(name: str) -> None:
    made = CASES[name].make(ox.Device.open("sim-fast")).launch
    image = encode(made.verify())
    compare(made.program, made.launch, image)
    assert ("transpose_tile" in listing(image)) == name.startswith("transpose")
    assert ("reduce_tile" in listing(image)) != name.startswith("transpose")
