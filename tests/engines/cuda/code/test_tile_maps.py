"""Maps as records: which machine runs them, that each element is computed once, and what a computing group's loop is made of."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code import Image, encode
from oxidecopy.engines.cuda.code.trim import trimmed
from oxidecopy.isa import ops
from oxidecopy.program.expansion import expanded
from tests.helpers.device_emulator import fields
from tests.helpers.programs import Builder

Map = ox.TmaDescriptor[Any, Any, Any, Any]


def launch(fn: Any, dtype: Any = ox.f32, box: tuple[int, int] = (16, 32), consumers: int = 3) -> Any:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=consumers))
    def pipe(cta: ox.Cta, a: Map, b: Map) -> None:
        ring: Any = cta.ring(stages=2, tiles=(a,))
        outs = cta.store_ring(b, stages=2)
        with cta.producer() as leader:
            for at in cta.tiles(a):
                with ring.produce(leader) as (slot,):
                    slot.load(a, at)
        with cta.consumers() as group:
            for at in cta.tiles(a):
                with ring.consume(group) as (tile,), outs.put(group, at) as made:
                    group.map(fn, tile, out=made)

    dev = ox.Device.open("sim-fast")
    shape = (4 * box[0], 4 * box[1])
    maps = [ox.TmaDescriptor.tiled(dev.zeros(shape, dtype), box=box) for _ in range(2)]
    return pipe[2].bind(*maps)


def image_of(fn: Any, dtype: Any = ox.f32, box: tuple[int, int] = (16, 32), consumers: int = 3) -> Image:
    return encode(launch(fn, dtype, box, consumers).verify())


def heads(image: Image, op: DeviceOp) -> list[tuple[int, dict[str, Any]]]:
    """Records of an op with their places."""
    found = [(pc, fields(image.code, abi.RECORD, pc * abi.RECORD_BYTES)) for pc in sorted(image.sites)]
    return [(pc, record) for pc, record in found if record["op"] == op]


@pytest.mark.parametrize("consumers", [1, 2, 3, 7])
@pytest.mark.parametrize("box", [(16, 32), (5, 4), (3, 24), (33, 64)])
def test_every_unit_is_computed_by_one_lane(box: tuple[int, int], consumers: int) -> None:
    image = image_of(lambda v: v * 2, box=box, consumers=consumers)
    done: Counter[int] = Counter()
    units = box[0] * box[1] // 4
    for pc, record in heads(image, DeviceOp.COMPUTE):
        (agent,) = [i for i, a in enumerate(image.agents) if a.entry <= pc < a.entry + a.records]
        low, high, total = record["imm"][2] & 0xFFFF, record["imm"][2] >> 16, record["imm"][3]
        shape = fields(image.code, abi.UNITS, (pc + 1) * abi.RECORD_BYTES)
        assert (shape["units"], shape["per_row"]) == (units, box[1] // 4)
        assert shape["down"] * shape["per_row"] + shape["right"] == total
        for warp in image.warps:
            if warp.agent == agent:
                for rank in range(low + warp.first_lane, low + warp.first_lane + 32):
                    done.update(u for r in range(rank, high, warp.lanes) for u in range(r, units, total))
    assert done == Counter(range(units))


def test_an_elected_thread_leaves_the_elements_to_the_others() -> None:
    image = image_of(lambda v: v * 2)
    ((pc, _),) = heads(image, DeviceOp.COMPUTE)
    (agent,) = [a for a in image.agents if a.entry <= pc < a.entry + a.records]
    assert agent.words.startswith("threads 1-95")


def test_a_computing_groups_loops_are_tight() -> None:
    image = image_of(lambda v: v * 2)
    flags = [record["flags"] for _, record in heads(image, DeviceOp.LOOP)]
    assert flags == [abi.LOOP_TIGHT] * 2  # the elected thread's and the others'
    for pc, record in heads(image, DeviceOp.PLACE):
        parts = record["imm"][1].bit_count()
        assert record["flags"] == -(-3 * parts // 2)
        assert pc + 1 + record["flags"] in image.sites


@pytest.mark.parametrize(
    ("fn", "dtype", "box", "consumers", "family"),
    [
        (lambda v: v + 1, ox.f32, (16, 32), 3, "compute"),
        (lambda v: v.gelu(), ox.bf16, (16, 32), 3, "compute"),
        (lambda v: v, ox.u8, (16, 32), 3, "compute"),
        (lambda v: v + 1, ox.f64, (16, 32), 3, "map"),
        (lambda v: v + 1, ox.i64, (16, 32), 3, "map"),
        (lambda v: v, ox.u64, (16, 32), 3, "map"),
        (lambda v: v + 1, ox.f32, (16, 32), 19, "compute"),
        (lambda v: v + 1, ox.f32, (16, 32), 20, "map"),  # one warp more than registers allow
    ],
)
def test_families(fn: Any, dtype: Any, box: tuple[int, int], consumers: int, family: str) -> None:
    image = image_of(fn, dtype, box, consumers)
    assert image.family == family
    assert image.form == "global"
    assert (sum(1 for _ in heads(image, DeviceOp.COMPUTE)) > 0) == (family == "compute")


def test_the_second_of_two_barriers_around_a_store_is_left_out() -> None:
    program = expanded(launch(lambda v: v * 2).program)
    before, after = ([s.op for s in p.walk() if isinstance(s.op, ops.BarSync)] for p in (program, trimmed(program)))
    assert len(before) - len(after) == 1
    others = [[s.op for s in p.walk() if not isinstance(s.op, ops.BarSync)] for p in (program, trimmed(program))]
    assert others[0] == others[1]


@pytest.mark.parametrize(
    ("roles", "left"), [(((0, 64),), 1), (((0, 32), (32, 64)), 4)], ids=["all are there", "another role waits elsewhere"]
)
def test_a_barrier_that_others_reach_elsewhere_is_kept(roles: tuple[tuple[int, int], ...], left: int) -> None:
    """Of two roles that meet twice, one stores in between and the other fills a tile: each has to come twice."""
    b = Builder(threads=64)
    b.map("dst")
    b.tile("stored")
    b.tile("filled")
    for role in roles:
        with b.scope(role):
            b.sync(64, number=1)
            if role[0] == 0:
                with b.elect():
                    b.s2g((0, 0), "dst")
                    b.commit()
            else:
                b.fill(1)
            b.sync(64, number=1)
    assert sum(isinstance(step.op, ops.BarSync) for step in trimmed(b.program()).walk()) == left


def test_scalars_and_vectors_are_operands() -> None:
    image = image_of(lambda v: (v < 0).select(v * 0.5, v))
    ((pc, record),) = heads(image, DeviceOp.COMPUTE)
    at = (pc + 3) * abi.RECORD_BYTES
    code = [struct.unpack_from("<4BI", image.code, at + 8 * i) for i in range(record["imm"][1])]
    assert [abi.ComputeFn(fn).name for fn, *_ in code][-1] == "STORE_32"
    assert abi.ComputeFn.RSELECT in {fn for fn, *_ in code} or abi.ComputeFn.SELECT in {fn for fn, *_ in code}


def _code(image: Image) -> list[tuple[int, int, int, int, int]]:
    """The instructions of its one map: fn, form, index, mask, word."""
    ((pc, record),) = heads(image, DeviceOp.COMPUTE)
    return [struct.unpack_from("<4BI", image.code, (pc + 3) * abi.RECORD_BYTES + 8 * i) for i in range(record["imm"][1])]


@pytest.mark.parametrize(
    ("box", "consumers", "lanes", "distance"),
    [
        ((64, 64), 8, 256, 4096),  # sixteen elements a lane: a unit in each of four rows
        ((32, 64), 8, 128, 2048),  # half of the warps have them all
        ((64, 64), 4, 128, 2048),  # twice over
        ((48, 32), 3, 96, 1536),
        ((33, 64), 3, 96, 0),  # some lanes have one more
        ((8, 16), 2, 64, 0),  # less than a warp would have
    ],
)
def test_lanes_with_the_same_number_of_units_find_them_by_one_address(
    box: tuple[int, int], consumers: int, lanes: int, distance: int
) -> None:
    image = image_of(lambda v: v + 2, box=box, consumers=consumers)
    ((_, record),) = heads(image, DeviceOp.COMPUTE)
    assert record["imm"][3] == lanes
    first, *_, last = _code(image)
    names = [abi.ComputeFn(first[0]).name, abi.ComputeFn(last[0]).name]
    assert names == (["LOAD_A_32", "STORE_32"] if distance else ["LOAD_A", "STORE"])
    assert first[4] == last[4] == (4 * box[1] | distance << 12 if distance else 4 * box[1])


def test_a_swizzle_is_the_same_for_all_units_of_a_lane_or_they_are_not_even() -> None:
    from oxidecopy.engines.cuda.code.compute import Place
    from oxidecopy.engines.cuda.code.tile_maps import spread

    assert spread(Place(7, 128), 32, 32, 4, 128) == Place(7, 128, 2048)
    assert spread(Place(7, 128), 32, 32, 4, 32) == Place(7, 128)  # four rows of eight
    assert spread(Place(0, 128), 32, 32, 4, 32) == Place(0, 128, 512)
    assert spread(Place(0, 256), 32, 32, 4, 128) == Place(0, 256, 4096)  # rows with space between them
    assert spread(Place(0, 256), 32, 48, 4, 128) == Place(0, 256)  # the next unit is in another column
