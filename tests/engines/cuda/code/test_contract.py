"""Device code of contractions: whole warpgroups, records, what is computed meanwhile, and what no kernel computes."""

# mypy: disable-error-code="valid-type, var-annotated, attr-defined, misc"

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import pytest

import oxidecopy
import oxidecopy as ox
from oxidecopy.conformance import contractions
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import ContractShape, ContractType, DeviceOp, ElementForm
from oxidecopy.engines.cuda.code import Image, encode_program
from oxidecopy.engines.cuda.code.contract import MACHINE
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.errors import DeviceCodeError
from oxidecopy.program.verified import VerifiedProgram
from tests.helpers.device_agreement import compare

ROWS, STAGES = 128, 3


def encode(verified: VerifiedProgram) -> Image:
    """As records, whatever the whole program is (test_product.py)."""
    return encode_program(verified.program, verified.assumptions.launch, whole=False)


Groups = tuple[int, ...]


def product(
    dtype: Any = ox.bf16,
    result: Any = ox.bf16,
    *,
    columns: int = 128,
    groups: Groups = (4, 4),
    k: int = 320,
    epilogue: Any = None,
    add: bool = False,
    grid: int = 4,
) -> VerifiedProgram:
    """a times b transposed, of 300 x k and 200 x k, by blocks that share the tiles out."""
    depth, width = 128 * 8 // dtype.info.bits, 128 * 8 // result.info.bits
    operand, out = ox.TmaDescriptor[dtype, ox.D2, ox.Swizzle128B], ox.TmaDescriptor[result, ox.D2, ox.Swizzle128B]

    @ox.pipeline(warps=ox.roles(producer=1, consumers=groups))
    def multiply(cta: ox.Cta, a: operand, b: operand, c: out, bias: ox.GlobalArray[ox.f32, ox.D1]) -> None:
        ring = cta.ring(stages=STAGES, tiles=(a, b))
        outs = [cta.store_ring(c, stages=2) for _ in groups]
        steps = (a.shape[1] + depth - 1) // depth
        work = cta.schedule(c, box=(ROWS, columns), order=ox.order.grouped(2))
        with cta.producer() as leader:
            for row, column in work:
                for i in cta.range(steps):
                    with ring.produce(leader) as (left, right):
                        left.load(a, (row, i * depth))
                        right.load(b, (column, i * depth))
        for me in range(len(groups)):
            with cta.consumers(me) as group:
                for at in work:
                    more: dict[str, Any] = {} if epilogue is None else {"epilogue": epilogue, "reads": (ox.per_column(bias),)}
                    group.contract(ring, outs[me], at, steps=steps, part=(me, len(groups)), add=add, **more)

    dev = ox.Device.open("sim")
    a, b, c = (dev.empty(shape, t) for shape, t in (((300, k), dtype), ((200, k), dtype), ((300, 200), result)))
    tiled = ox.TmaDescriptor.tiled
    return (
        multiply[grid]
        .bind(
            tiled(a, box=(ROWS, depth), swizzle=ox.Swizzle128B),
            tiled(b, box=(columns, depth), swizzle=ox.Swizzle128B),
            tiled(c, box=(64, width), swizzle=ox.Swizzle128B),
            dev.empty((200,), ox.f32),
        )
        .verify()
    )


def records(image: Image) -> list[tuple[int, ...]]:
    """Of each CONTRACT its two records behind the head, as `abi.CONTRACT` and `abi.EPILOGUE` have them."""
    heads = [pc for pc in image.sites if image.code[pc * abi.RECORD_BYTES] == DeviceOp.CONTRACT]
    return [struct.unpack_from("<6i8Bi3BxH2x4B16x", image.code, (pc + 1) * abi.RECORD_BYTES) for pc in sorted(heads)]


def test_each_warpgroup_is_one_agent_of_four_warps_and_they_come_first() -> None:
    image = encode(product())
    assert image.entry_point == "oxidecopy_mma_global"
    assert [agent.words for agent in image.agents] == [
        "threads 0-127 (consumers)", "threads 128-255 (consumers)", "thread 256 (thread, producer)", "the rest of a warpgroup",
    ]  # fmt: skip
    assert [warp.agent for warp in image.warps] == [0] * 4 + [1] * 4 + [2, 3, 3, 3]
    assert [warp.first_lane for warp in image.warps[:8]] == [0, 32, 64, 96] * 2
    assert image.threads == 384
    crew = next(offset for name, _, offset in abi.HEADER if name == "crew")
    assert struct.unpack_from("<I", image.template, abi.INLINE_MAPS_SMALL * abi.MAP_BYTES + crew) == (8,)


@pytest.mark.parametrize("grid", [1, 2, 4, 7])
def test_records_say_what_the_program_does(grid: int) -> None:
    verified = product(grid=grid, k=264)
    compare(verified.program, verified.assumptions.launch, encode(verified))


@pytest.mark.parametrize("name", ["cluster of 2", "cluster of 2 that shares a", "cluster of 2 x 2 that shares both"])
def test_records_say_who_is_told_of_free_stages(name: str) -> None:
    bound = contractions.made(contractions.PLANS[name], ox.Device.open("sim")).launch
    verified = bound.verify()
    compare(verified.program, verified.assumptions.launch, encode(verified))


def test_one_group_takes_two_warpgroups_registers() -> None:
    image = encode(product(groups=(4,), columns=128))
    assert image.threads == 256
    assert records(image)[0][8] == ContractShape.M128N128


def test_barriers_are_initialised_by_a_thread_beside_them() -> None:
    agents = listing(encode(product())).split("\nthread")
    assert [text.count("mbarrier_init") > 0 for text in agents[1:]] == [False, False, True]


def test_what_a_record_says() -> None:
    verified = product(add=True, result=ox.f32)
    tiles = {decl.name: decl for decl in verified.program.tiles}
    barriers = {decl.name: decl.offset for decl in verified.program.barriers}
    found = records(encode(verified))
    first, second = found[0], found[-1]
    a, b = tiles["ring0_a"], tiles["ring0_b"]
    assert first[:2] == (barriers["ring0_full"], barriers["ring0_empty"])
    assert first[2:6] == (a.offset, a.stage_bytes, b.offset, b.stage_bytes)
    assert second[2] - first[2] == 64 * 128  # the other half of the rows
    assert first[6:10] == (STAGES, 0, ContractShape.M64N128, ContractType.BF16)
    assert first[10] != second[10]  # barriers of threads
    assert first[14:18] == (tiles["c_out"].offset, 2, ElementForm.BITS32, 1)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(ox.f16, ContractType.F16), (ox.tf32, ContractType.TF32), (ox.e4m3, ContractType.E4M3), (ox.e5m2, ContractType.E5M2)],
)
def test_types(dtype: Any, kind: ContractType) -> None:
    assert records(encode(product(dtype)))[0][9] == kind


def test_an_epilogue_is_instructions() -> None:
    lines = listing(encode(product(epilogue=lambda s, v: (s + v).gelu().cast(ox.bf16))))
    assert "load_a 0 bits32; column_b 1 bits32; f_add; f_gelu; store 0 bf16" in lines
    assert "instructions" not in lines
    assert records(encode(product()))[0][18] == 0


def test_the_kernel_has_each_instruction_that_an_epilogue_may_have() -> None:
    source = (Path(oxidecopy.__file__).parent / "kernels" / "fragment.cuh").read_text()
    there = set(re.findall(r"case COMPUTE_(\w+):", source)) | {"STORE"}
    for kind, name in re.findall(r"OX_(BOTH|TWO|ONE|CONSTANT)\((\w+),", source):
        ends = {"BOTH": ("", "_C", "_CB"), "CONSTANT": ("_C",)}.get(kind, ("",))
        there.update(f"{name}{end}" for end in ends)
    assert {fn.name for fn in MACHINE} <= there


def test_the_producer_loads_by_one_record_for_a_tile_and_few_instructions() -> None:
    text = listing(encode(product(grid=1))).split("\nthread 256")[1]
    assert "produce" in text
    assert "place" in text
    assert "wait_phase" not in text


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"columns": 192}, "sums of 64 x 192"),
        ({"epilogue": lambda s, v: (s + v).cast(ox.i32).cast(ox.bf16)}, "an epilogue"),
    ],
)
def test_what_no_kernel_computes(options: dict[str, Any], why: str) -> None:
    with pytest.raises(DeviceCodeError, match=why) as caught:
        encode(product(**options))
    assert caught.value.rules == ("OX5569",)


@ox.pipeline(warps=ox.roles(producer=1, consumers=1))
def two_loops(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2], steps: ox.Idx) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    work = cta.schedule(dst, box=(8, 96), order=ox.order.grouped(2))
    with cta.producer() as leader:
        for row, _ in work:
            for k in cta.range(steps):
                with ring.produce(leader) as (slot,):
                    slot.load(src, (row, k * 32))
    with cta.consumers() as group:
        for row, _ in work:
            for k in cta.range(steps):
                with ring.consume(group) as (tile,):
                    group.store(dst, tile, (row, k * 32))


def test_a_loop_behind_one_of_no_trips_counts_from_zero() -> None:
    dev = ox.Device.open("sim")
    x, y = dev.empty((40, 96), ox.f32), dev.empty((40, 96), ox.f32)
    src, dst = (ox.TmaDescriptor.tiled(array, box=(8, 32)) for array in (x, y))
    verified = two_loops[7].bind(src, dst, 3).verify()
    image = encode(verified)
    compare(verified.program, verified.assumptions.launch, image)
    counts = [line.strip().partition(",")[0] for line in listing(image).splitlines() if line.strip().startswith("k = ")]
    assert counts == ["k = counter+0"] * 2  # kernels count without a sign
