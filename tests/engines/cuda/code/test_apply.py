"""Programs that map the tiles of a counter: which are one record, that it says what the program does, and twins that are none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

import oxidecopy as ox
from oxidecopy.conformance import applied
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import Image, encode
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.program.text import from_text, to_text
from oxidecopy.program.verified import VerifiedProgram
from oxidecopy.verify.verifier import verify
from tests.helpers.device_agreement import compare, deal
from tests.helpers.device_emulator import fields

Map = ox.TmaDescriptor[Any, Any, Any, Any]
Twin = Callable[..., Any]


def verified(name: str) -> VerifiedProgram:
    return applied.made(applied.PLANS[name], ox.Device.open("sim")).launch.verify()


@pytest.mark.parametrize("name", applied.PLANS)
def test_what_it_does_is_the_program(name: str) -> None:
    """Every agent of every block, for deals that give one block all tiles, and any."""
    program = verified(name)
    image, launch = encode(program), program.assumptions.launch
    assert image.entry_point == "oxidecopy_apply_medium"
    for seed in (0, 1):
        compare(program.program, launch, image, deal(program.program, launch, seed))


def test_where_things_lie() -> None:
    """The code starts the blob, argument words are behind it, and nothing of it is in memory."""
    image = encode(verified("two of f32 to bf16"))
    at = abi.INLINE_MAPS_MEDIUM * abi.MAP_BYTES
    header = fields(image.template, abi.HEADER, at)
    assert len(image.template) == abi.PARAM_BYTES_MEDIUM
    assert (header["code_offset"], header["args_offset"]) == (0, len(image.code))
    assert image.template[at + abi.HEADER_BYTES :][: len(image.code)] == image.code
    assert (image.in_memory, image.counted, image.table_maps) == (False, True, ())
    assert header["stage_slots"] < image.shared_bytes
    assert [warp.agent for warp in image.warps] == [0] * 8 + [1, 2]
    assert set(image.sites) == {agent.entry for agent in image.agents} == {0, abi.APPLY_STORES, abi.APPLY_COMPUTE // abi.RECORD_BYTES}


def test_the_listing_says_it_all() -> None:
    lines = [line.split("  #")[0].strip() for line in listing(encode(verified("two of f32 to bf16"))).splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("6  apply_makes"))
    assert lines[start + 1 : start + 4] == [
        "wait ring0_full[0]; sync; inputs + 16384 * stage, + 16384 * stage; fence; sync",
        "units 1024, 64 to a row; inputs at 0, 32768",
        "load_a_32_mul 0; f_mul_c word 0; load_b_32_mul 1; f_mul_cb 0x3e800000; f_add; f_sub_c 0x3f800000; f_max_c 0x00000000; "
        "store_bf16 0",
    ]
    start = next(i for i, line in enumerate(lines) if line.startswith("5  apply_stores each of 30 tiles"))
    assert lines[start + 1 : start + 4] == [
        "wait ring0_full[0]; 1 stores pending; sync; fence; sync",
        "tensor_s2g dst 65536 + 8192 * (k % 2) [(tile // 3) * 16, (tile % 3) * 256]",
        "commit, release ring0_empty[0]; in the end wait for their reads",
    ]
    start = next(i for i, line in enumerate(lines) if line.startswith("0  apply_loads"))
    assert lines[start + 2] == "tensor_g2s a 0 + 16384 * stage [(tile // 3) * 16, (tile % 3) * 256]"


# ---- twins
def image_of(
    body: Twin, *, box: tuple[int, int] = (16, 256), stages: int = 2, consumers: int = 3, order: Any = ox.order.counter, more: int = 0
) -> Image:
    """A map by a ring, with one thing that may be else."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=(consumers,) * (1 + more)))
    def pipe(cta: ox.Cta, a: Map, b: Map) -> None:
        ring: Any = cta.ring(stages=stages, tiles=(a,))
        outs = [cta.store_ring(b, stages=2) for _ in range(1 + more)]
        work = cta.schedule(a, order=order() if order is ox.order.counter else order)
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(a, at)
        for number, out in enumerate(outs):
            with cta.consumers(number) as group:
                for stage in ring.stages(group, work):
                    body(cta, group, stage, out)

    dev = ox.Device.open("sim-fast")
    maps = [ox.TmaDescriptor.tiled(dev.zeros((8 * box[0], 2 * box[1]), ox.f32), box=box) for _ in range(2)]
    return encode(pipe[2].bind(*maps).verify())


def plain(_: Any, group: Any, stage: Any, out: Any) -> None:
    with out.put(group, stage.at) as made:
        group.map(lambda v: v * 2, stage.tiles[0], out=made)


def twice(_: Any, group: Any, stage: Any, out: Any) -> None:
    with out.put(group, stage.at) as made:
        group.map(lambda v: v * 2, stage.tiles[0], out=made)
        group.sync()
        group.map(lambda v, w: v + w, made, stage.tiles[0], out=made)


def unmade(_: Any, group: Any, stage: Any, out: Any) -> None:
    with out.put(group, stage.at) as made:
        group.fill(made, 1)


def wide(_: Any, group: Any, stage: Any, out: Any) -> None:
    with out.put(group, stage.at) as made:
        group.map(lambda v: (v.cast(ox.f64) * 2).cast(ox.f32), stage.tiles[0], out=made)


def elsewhere(_: Any, group: Any, stage: Any, out: Any) -> None:
    """Rows from the last one up: coordinates that fall."""
    with out.put(group, (112 - stage.at[0], stage.at[1])) as made:
        group.map(lambda v: v * 2, stage.tiles[0], out=made)


def synced(cta: Any, group: Any, stage: Any, out: Any) -> None:
    with out.put(group, stage.at) as made:
        group.map(lambda v: v * 2, stage.tiles[0], out=made)
        group.sync()


TWINS: Final[dict[str, tuple[Twin, dict[str, Any], str, str]]] = {  # with the family, and why it is not "apply"
    "as it is": (plain, {}, "apply", ""),
    "one warp": (plain, {"consumers": 1}, "apply", ""),
    "the store elsewhere": (elsewhere, {}, "apply", ""),
    "a fixed order": (plain, {"order": ox.order.linear}, "compute", ""),  # it is none by far
    "small stages": (plain, {"box": (16, 64)}, "compute", "stages of 4,096 bytes (loads: 1), and not of 8,192 or more, in up to 4 loads"),
    "a ring of one stage": (plain, {"stages": 1}, "compute", "other barriers than those of a ring of 2 to 32 stages"),
    "two groups": (plain, {"more": 1}, "compute", "other roles than a thread that loads, a group that maps, and its thread"),
    "two maps": (twice, {}, "compute", "bar_sync, where a map of tiles has its fence_proxy_async"),
    "one more sync": (synced, {}, "compute", "bar_sync, where a map of tiles has its fence_proxy_async"),
    "no map": (unmade, {}, "move", ""),
    "a type that the machine has no form for": (wide, {}, "map", "map_tiles, where a map of tiles has its compute"),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_is_run_by(name: str) -> None:
    body, options, family, why = TWINS[name]
    image = image_of(body, **options)
    assert (image.family.removesuffix("_named"), image.left[: len(why) or None]) == (family, why)
    notes = {note.fused for note in image.loops}
    assert ("apply" in notes) == (family == "apply")


def test_tiles_that_are_made_in_place_are_left_to_records() -> None:
    """With no more tiles than stages that is a program: the kernel writes to what it makes before the first tile has come."""
    plan = applied.PLANS["two of f32 to bf16"]._replace(fn=lambda a, s: a * s, inputs=(ox.f32,), out=ox.f32, shape=(32, 256))
    bound = applied.made(plan, ox.Device.open("sim-fast")).launch
    text = re.sub(r" +#.*", "", to_text(bound.program))
    assert encode(verify(from_text(text), bound.launch)).family == "apply"
    image = encode(verify(from_text(text.replace("dst_out[i1 % 2]", "ring0_a[i1 % 2]")), bound.launch))
    assert image.left.startswith("a tile that is loaded, too, is made")


def test_functions_that_have_no_room_are_run_by_records() -> None:
    def long(_: Any, group: Any, stage: Any, out: Any) -> None:
        def fn(v: Any) -> Any:
            made = v
            for i in range(58):
                made += v * (i + 2)
            return made

        with out.put(group, stage.at) as made:
            group.map(fn, stage.tiles[0], out=made)

    image = image_of(long)
    assert image.family == "compute"
    assert image.left.endswith("bytes of code and numbers, with room for 1,344")
