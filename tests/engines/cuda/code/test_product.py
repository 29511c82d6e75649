"""Programs of products: which are recognised, and that head and table say what the program does, load by load and tile by tile."""

# mypy: disable-error-code="valid-type, var-annotated, attr-defined, misc"

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import oxidecopy as ox
from oxidecopy.conformance import contractions
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import encode, encode_program
from oxidecopy.engines.cuda.code.contract import WHOLE
from oxidecopy.engines.cuda.code.image import INLINE_MAPS
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.errors import DeviceCodeError
from oxidecopy.isa import ops
from oxidecopy.program.expansion import expanded
from oxidecopy.program.verified import VerifiedProgram
from oxidecopy.verify import verify
from tests.helpers.device_emulator import fields
from tests.helpers.device_product import compare_product, head_of
from tests.helpers.edits import changed, edited

Map = ox.TmaDescriptor[ox.bf16, ox.D2, ox.Swizzle128B]
LEFT: Final = "cluster of 2 x 2 that shares both"  # each CTA's loads are for others


@cache
def verified(name: str) -> VerifiedProgram:
    return contractions.made(contractions.PLANS[name], ox.Device.open("sim")).launch.verify()


@pytest.mark.parametrize("name", [name for name in contractions.PLANS if name != LEFT])
def test_the_table_says_what_the_program_does(name: str) -> None:
    proof = verified(name)
    compare_product(proof.program, proof.assumptions.launch, encode(proof))


@pytest.mark.parametrize("name", ["bf16 128x128", "cluster of 2", "bf16 one group", "column bias, relu"])
def test_what_the_head_says_beside_tiles(name: str) -> None:
    image, plan = encode(verified(name)), contractions.PLANS[name]
    head, header = head_of(image), fields(image.template, abi.HEADER, INLINE_MAPS["large"] * abi.MAP_BYTES)
    assert (head["full_count"], head["empty_count"]) == (1, plan.groups * (plan.cluster if isinstance(plan.cluster, int) else 4))
    assert (head["stages"], head["out_stages"], head["groups"]) == (plan.stages, plan.staged, plan.groups)
    assert (image.form, image.in_memory, image.uploaded) == ("large", True, image.tiles)
    assert (header["crew"], header["warps"]) == (4 * plan.groups, 4 * plan.groups + 4)
    assert image.threads == 128 * (plan.groups + 1)
    at = INLINE_MAPS["large"] * abi.MAP_BYTES + abi.HEADER_BYTES + header["code_offset"]
    assert image.template[at : at + abi.PRODUCT_BYTES] == image.code
    assert at % 16 == 0
    finish = fields(image.code, abi.FINISH, abi.PRODUCT_FINISH_AT)
    assert (finish["count"] + finish["fn"] > 0) == (plan.epilogue is not None)


def test_each_part_has_a_line_of_the_program() -> None:
    image = encode(verified("bf16 128x128"))
    assert [type(image.sites[pc].op).__name__ for pc in (1, 2)] == ["Contract"] * 2
    assert image.sites[0].op is not None
    assert "product_contract M64N128 BF16, 3 stages of" in listing(image)


# ---- what is left to records
def program(
    *, columns: int = 128, epilogue: Any = None, between: Any = None, twice: bool = False, grid: int = 2, depth: int = 5
) -> VerifiedProgram:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
    def multiply(cta: ox.Cta, a: Map, b: Map, c: Map) -> None:
        ring = cta.ring(stages=3, tiles=(a, b))
        outs = [cta.store_ring(c, stages=2) for _ in range(2)]
        with cta.producer() as leader:
            for row, column in cta.tiles(c, box=(128, columns)):
                for i in cta.range(depth):
                    with ring.produce(leader) as (left, right):
                        left.load(a, (row, i * 64))
                        right.load(b, (column, (i if between is None else between(i)) * 64))
        for me in range(2):
            with cta.consumers(me) as group:
                for at in cta.tiles(c, box=(128, columns)):
                    for steps in (2, 3) if twice else (depth,):
                        group.contract(ring, outs[me], at, steps=steps, part=(me, 2), add=twice, epilogue=epilogue)

    dev = ox.Device.open("sim")
    maps: Any = ox.TmaDescriptor.tiled
    a = maps(dev.zeros((256, 320), ox.bf16), box=(128, 64), swizzle=ox.Swizzle128B)
    b = maps(dev.zeros((2 * columns, 320), ox.bf16), box=(columns, 64), swizzle=ox.Swizzle128B)
    c = maps(dev.zeros((256, 2 * columns), ox.bf16), box=(64, 64), swizzle=ox.Swizzle128B)
    return multiply[grid].bind(a, b, c).verify()


def test_the_twin_of_those_below() -> None:
    assert encode(program()).family == "product_m64n128"
    assert encode(program(columns=192)).family == "product_m64n192"
    assert encode(program(epilogue=lambda s: s.gelu().cast(ox.bf16))).family == "product_m64n128"


def test_barriers_that_count_more_than_the_head_can_say() -> None:
    """Nobody waits for them, as each stage is loaded once."""
    proof = program(grid=4, depth=3)
    launch = proof.assumptions.launch
    whole = expanded(proof.program, WHOLE)
    empty = 1  # behind those that are full
    for count, family in ((255, "product_m64n128"), (256, abi.MMA_FAMILY)):
        more = edited(whole, lambda op: isinstance(op, ops.MbarrierInit) and op.bar.barrier == empty, changed(count=lambda _, n=count: n))
        verify(more, launch)
        assert encode_program(more, launch).family == family


@pytest.mark.parametrize(
    ("options", "why", "line"),
    [
        ({"epilogue": lambda s: s.sqrt().cast(ox.bf16)}, "the epilogue is no chain of steps around one function", "group.contract"),
        ({"between": lambda i: i // 2}, "a coordinate that takes no equal steps from stage to stage", "cta.range(depth)"),
        ({"twice": True}, "tiles of different numbers of stages", "cta.range(depth)"),
    ],
    ids=["an epilogue that is not compiled", "uneven steps", "parts of K"],
)
def test_what_is_left_to_records(options: dict[str, Any], why: str, line: str) -> None:
    image = encode(program(**options))
    assert image.family == abi.MMA_FAMILY
    said, number = image.left.removesuffix(")").split(" (test_product.py:")
    assert said == why
    assert line in Path(__file__).read_text().splitlines()[int(number) - 1]
    assert f"  left to the interpreter: {image.left}\n" in listing(image)


def test_nothing_is_said_where_nothing_is_left() -> None:
    proof = program()
    assert encode(proof).left == ""
    assert encode_program(proof.program, proof.assumptions.launch, whole=False).left == ""
    assert "left to" not in listing(encode(proof))


def test_what_would_take_long_to_look_at_is_left_to_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxidecopy.engines.cuda.code.product.VISITS_MAX", 4)  # one block with all four tiles
    assert encode(program(grid=1)).family == "product_m64n128"
    monkeypatch.setattr("oxidecopy.engines.cuda.code.product.VISITS_MAX", 3)
    assert encode(program(grid=1)).left == "loops of more than 3 turns in all"


def in_halves(*orders: tuple[int, int]) -> VerifiedProgram:
    """The rows of A by two loads, in one of these orders for each tile."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
    def multiply(cta: ox.Cta, a: Map, b: Map, c: Map) -> None:
        ring = cta.ring(stages=3, tiles=(b, b))
        outs = [cta.store_ring(c, stages=2) for _ in range(2)]
        with cta.producer() as leader:
            for tile, order in enumerate(orders):
                for i in cta.range(5):
                    with ring.produce(leader) as (left, right):
                        for half in order:
                            left.load_part(a, (tile * 128 + half * 64, i * 64), half, of=2)
                        right.load(b, (0, i * 64))
        for me in range(2):
            with cta.consumers(me) as group:
                for tile in range(len(orders)):
                    group.contract(ring, outs[me], (tile * 128, 0), steps=5, part=(me, 2))

    dev = ox.Device.open("sim")
    maps: Any = ox.TmaDescriptor.tiled
    a = maps(dev.zeros((256, 320), ox.bf16), box=(64, 64), swizzle=ox.Swizzle128B)
    b = maps(dev.zeros((128, 320), ox.bf16), box=(128, 64), swizzle=ox.Swizzle128B)
    c = maps(dev.zeros((256, 128), ox.bf16), box=(64, 64), swizzle=ox.Swizzle128B)
    return multiply[1].bind(a, b, c).verify()


def test_loads_whose_place_in_a_stage_changes_from_tile_to_tile_are_left_to_records() -> None:
    assert encode(in_halves((0, 1), (0, 1))).family == "product_m64n128"
    image = encode(in_halves((0, 1), (1, 0)))
    assert image.family == abi.MMA_FAMILY
    assert image.left.startswith("a load whose place in a stage changes from tile to tile (test_product.py:")


@pytest.mark.parametrize("rows", [1, 3])
def test_tiles_of_one_stage(rows: int) -> None:
    """All tiles of a block are one loop over stages then, which the producer has as one record."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
    def multiply(cta: ox.Cta, a: Map, b: Map, c: Map) -> None:
        ring = cta.ring(stages=3, tiles=(a, b))
        outs = [cta.store_ring(c, stages=2) for _ in range(2)]
        with cta.producer() as leader:
            for row, column in cta.tiles(c, box=(128, 128)):
                with ring.produce(leader) as (left, right):
                    left.load(a, (row, 0))
                    right.load(b, (column, 0))
        for me in range(2):
            with cta.consumers(me) as group:
                for at in cta.tiles(c, box=(128, 128)):
                    group.contract(ring, outs[me], at, steps=1, part=(me, 2))

    dev = ox.Device.open("sim")
    maps: Any = ox.TmaDescriptor.tiled
    a, b = (maps(dev.zeros((size, 64), ox.bf16), box=(128, 64), swizzle=ox.Swizzle128B) for size in (rows * 128, 512))
    c = maps(dev.zeros((rows * 128, 512), ox.bf16), box=(64, 64), swizzle=ox.Swizzle128B)
    proof = multiply[2].bind(a, b, c).verify()
    image = encode(proof)
    assert head_of(image)["turns"] == 2 * rows
    compare_product(proof.program, proof.assumptions.launch, image)


def test_what_each_cta_loads_for_others_is_left_to_records() -> None:
    assert encode(verified(LEFT)).left.startswith("a multicast mask that depends on the block (test_product.py:")


def test_sums_that_only_this_family_has() -> None:
    with pytest.raises(DeviceCodeError) as error:
        encode(program(columns=192, epilogue=lambda s: s.sqrt().cast(ox.bf16)))
    assert error.value.rules == ("OX5569",)
    assert "64 x 192" in str(error.value)
