"""Plain bulk copies, copies between CTAs and copies of four rows on the simulator: bytes, faults, and what late delivery shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oxidecopy.engines.base import BoundArray
from oxidecopy.engines.sim.bulk import RunPlan, check_reduce, moved_bytes
from oxidecopy.engines.sim.faults import Fault
from oxidecopy.engines.sim.gather import gather_plan
from oxidecopy.engines.sim.memory import GlobalMemory, SimBuffer
from oxidecopy.engines.sim.pixels import plan_of
from oxidecopy.engines.sim.tma import TensorPlan
from oxidecopy.isa import ops
from oxidecopy.isa.bulk import REDUCES_IN_GLOBAL, REDUCES_IN_SHARED
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import Const
from oxidecopy.isa.ops import ArrayRef, BarrierRef, MapRef
from oxidecopy.program.program import ArrayInfo
from oxidecopy.program.tensor_map import TensorMap
from tests.engines.sim.harness import Rig
from tests.helpers.programs import RANK, Builder, add, e, eq, mul

FULL = BarrierRef(0, Const(0))
FLOATS = np.arange(256, dtype=np.float32)


def run_of(memory: GlobalMemory, nbytes: int, *, offset: int = 0, dtype: str = "u8") -> tuple[RunPlan, SimBuffer]:
    buffer = memory.allocate(4096)
    size = DTYPES[dtype].nbytes
    info = ArrayInfo(dtype=dtype, shape=(8, 256 // size), strides_bytes=(320, size))
    return RunPlan(BoundArray(info=info, buffer=buffer, offset_bytes=offset), memory, nbytes), buffer


@pytest.mark.parametrize(("asked", "moved"), [(0, 0), (15, 0), (16, 16), (24, 16), (40, 32)])
def test_sizes_are_rounded_down(asked: int, moved: int) -> None:
    assert moved_bytes(asked) == moved
    plan, buffer = run_of(GlobalMemory(), asked)
    buffer.data[:64] = np.arange(64)
    assert plan.load((0, 0)).tobytes() == bytes(range(moved))


def test_places_are_elements() -> None:
    plan, buffer = run_of(GlobalMemory(), 32, dtype="f32", offset=64)
    buffer.data[64 + 320 * 2 + 16 * 4 :][:32] = 7
    assert set(plan.load((2, 16)).tobytes()) == {7}


@pytest.mark.parametrize(("offset", "column"), [(8, 0), (0, 8), (4, 4)])
def test_addresses_off_the_grid_fault(offset: int, column: int) -> None:
    plan, _ = run_of(GlobalMemory(), 16, offset=offset)
    with pytest.raises(Fault) as caught:
        plan.address((0, column))
    assert caught.value.code == 716


def test_a_run_into_unmapped_memory_faults() -> None:
    plan, _ = run_of(GlobalMemory(), 8192)
    with pytest.raises(Fault) as caught:
        plan.load((0, 0))
    assert caught.value.code == 700


@pytest.mark.parametrize("shared", [False, True])
def test_reductions_that_are_there(shared: bool) -> None:
    table = REDUCES_IN_SHARED if shared else REDUCES_IN_GLOBAL
    for dtype in DTYPES:
        for op in ops.REDUCE.words:
            if op in table.get(dtype, ()):
                check_reduce(op, dtype, shared=shared)
                continue
            with pytest.raises(Fault) as caught:
                check_reduce(op, dtype, shared=shared)
            assert caught.value.code == 715


def test_a_reduction_combines_element_by_element() -> None:
    plan, buffer = run_of(GlobalMemory(), 32, dtype="i32")
    buffer.data[:40].view(np.int32)[:] = [-5, 3, 7, 0, 1, 2, 9, 9, 4, 4]
    plan.reduce((0, 0), np.array([1, 2, -9, 4, 0, 0, 10, -10], np.int32).view("V16"), "max")
    assert buffer.data[:40].view(np.int32).tolist() == [1, 3, 7, 4, 1, 2, 10, 9, 4, 4]


# ---- programs
def loading(b: Builder, nbytes: int = 256, told: int = 256) -> None:
    b.array("src", (256,))
    b.array("out", (256,))
    b.grid = (1, 1, 1)
    b.tile(shape=(64,))
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(told)
        b.op(ops.BulkG2S(array=ArrayRef("src"), coords=(Const(4),), tile=b.ref(0), nbytes=nbytes, bar=FULL))
        b.wait(token)
        b.op(ops.BulkS2G(array=ArrayRef("out"), coords=(Const(8),), tile=b.ref(0), nbytes=nbytes))
        b.commit()
        b.wait_group(0)


@pytest.mark.parametrize("hazards", [False, True])
def test_a_copy_there_and_back(hazards: bool) -> None:
    b = Builder()
    loading(b)
    rig = Rig(b)
    rig.put("src", FLOATS)
    rig.put("out", np.zeros(256, np.float32))
    result = rig.explore(hazards=hazards, seed=3)
    assert (result.outcome, result.findings) == ("ok", ())
    wanted = np.zeros(256, np.float32)
    wanted[8:72] = FLOATS[4:68]
    assert np.array_equal(rig.get("out", "f32", (256,)), wanted)


def test_bytes_left_out_are_not_told() -> None:
    b = Builder()
    loading(b, nbytes=248, told=256)
    assert Rig(b).explore().outcome == "deadlock"


def sent(b: Builder, op: str = "", rank: int = 0) -> None:
    """CTA 1 of two sends its tile to `rank`."""
    b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
    b.array("out", (128,), "u32")
    b.tile("mine", (64,), "u32")
    b.tile("theirs", (64,), "u32")
    b.bar()
    b.init()
    b.op(ops.Iota(tile=b.ref(0), axis=0))
    b.op(ops.Fill(tile=b.ref(1), value=5))
    b.fence()
    b.sync()
    b.cluster_sync()
    with b.elect():
        with b.when(eq(RANK, rank)):
            b.arm(256)
        with b.when(eq(RANK, 1)):
            if op:
                b.op(ops.BulkReduceS2S(op=op, tile=b.ref(0), into=b.ref(1), rank=e(rank), nbytes=256, bar=FULL))
            else:
                b.op(ops.BulkS2S(tile=b.ref(0), into=b.ref(1), rank=e(rank), nbytes=256, bar=FULL))
        with b.when(eq(RANK, rank)):
            b.wait_phase(0)
    b.sync()
    b.store((mul(RANK, 64),), tile=1)
    b.cluster_sync()


@pytest.mark.parametrize("hazards", [False, True])
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(("op", "wanted"), [("", lambda i: i), ("max", lambda i: np.maximum(i, 5)), ("add", lambda i: i + 5)])
def test_a_tile_comes_to_one_cta_only(op: str, wanted: Callable[..., Any], rank: int, hazards: bool) -> None:
    for seed in range(3):
        b = Builder()
        sent(b, op, rank)
        rig = Rig(b)
        result = rig.explore(hazards=hazards, seed=seed)
        assert (result.outcome, result.findings) == ("ok", ())
        out = rig.get("out", "u32", (2, 64))
        assert np.array_equal(out[rank], wanted(np.arange(64)))
        assert (out[1 - rank] == 5).all()


def test_a_source_that_is_overwritten_early_may_arrive_changed() -> None:
    """What the rule about it prevents: some schedule delivers what was written after the copy was issued."""
    seen = set()
    for seed in range(24):
        b = Builder()
        b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
        b.array("out", (128,), "u32")
        b.tile("mine", (64,), "u32")
        b.tile("theirs", (64,), "u32")
        b.bar()
        b.init()
        b.op(ops.Fill(tile=b.ref(0), value=1))
        b.fence()
        b.sync()
        b.cluster_sync()
        with b.elect():
            token = b.arm(256)
            b.op(ops.BulkS2S(tile=b.ref(0), into=b.ref(1), rank=add(1, mul(RANK, -1)), nbytes=256, bar=FULL))
            b.op(ops.Fill(tile=b.ref(0), value=2))
            b.wait(token)
        b.sync()
        b.store((mul(RANK, 64),), tile=1)
        b.cluster_sync()
        rig = Rig(b)
        result = rig.explore(seed=seed)
        assert "OX4104" in {d.rule for d in result.findings}
        seen |= set(rig.get("out", "u32", (128,)).tolist())
    assert seen == {1, 2}


# ---- four rows
def rows_map(box: tuple[int, int] = (1, 16), dims: tuple[int, int] = (8, 32)) -> TensorMap:
    return TensorMap(dtype="f32", global_dim=dims, global_strides=(128,), box_dim=box, element_strides=(1, 1))


def test_gathered_rows_are_those_of_four_loads() -> None:
    memory = GlobalMemory()
    buffer = memory.allocate(1024)
    buffer.data.view(np.float32)[:] = FLOATS
    plan = TensorPlan(rows_map(), buffer.address, memory)
    four = gather_plan(plan)
    place = (3, -1, 7, 3, 20)
    four.check(place)
    found = np.ascontiguousarray(four.load(place)).view(np.float32)
    single = [np.ascontiguousarray(plan.load((row, 20))).view(np.float32).reshape(-1) for row in place[:4]]
    assert np.array_equal(found, np.array(single))
    assert (found[1] == 0).all()
    assert found[0, :12].tolist() == FLOATS[3 * 32 + 20 : 4 * 32].tolist()
    assert (four.nbytes, four.layout.shape) == (256, (4, 16))


def test_scattered_rows_come_to_their_places() -> None:
    memory = GlobalMemory()
    buffer = memory.allocate(1024)
    buffer.data[:] = 0
    four = gather_plan(TensorPlan(rows_map(), buffer.address, memory))
    four.check_store((6, 0, 9, 2, 16))
    four.store((6, 0, 9, 2, 16), FLOATS[:64].view("V16").reshape(4, 4))
    out = buffer.data.view(np.float32).reshape(8, 32)
    assert out[6, 16:].tolist() == FLOATS[:16].tolist()
    assert out[0, 16:].tolist() == FLOATS[16:32].tolist()
    assert out[2, 16:].tolist() == FLOATS[48:64].tolist()
    assert not out[:, :16].any()


@pytest.mark.parametrize(
    ("box", "place", "code"), [((2, 16), (0, 1, 2, 3, 0), 715), ((1, 16), (0, 1, 2, 3, 2), 715), ((1, 16), (0, -1, 2, 3, 0), 715)]
)
def test_gathers_that_fault(box: tuple[int, int], place: tuple[int, ...], code: int) -> None:
    memory = GlobalMemory()
    plan = gather_plan(TensorPlan(rows_map(box), memory.allocate(1024).address, memory))
    with pytest.raises(Fault) as caught:
        plan.check_store(place)
    assert caught.value.code == code


def test_pixels_have_no_rows_to_gather() -> None:
    memory = GlobalMemory()
    tensor = TensorMap(
        dtype="f32", global_dim=(1, 4, 8), global_strides=(128, 32), box_dim=(4, 8), element_strides=(1, 1, 1),
        mode="im2col", lower=(0,), upper=(0,),
    )  # fmt: skip
    with pytest.raises(Fault):
        gather_plan(plan_of(tensor, memory.allocate(128).address, memory, "im2col"))


def test_a_gather_in_a_program() -> None:
    b = Builder()
    b.sm, b.grid = 100, (1, 1, 1)
    b.map("src", box=(1, 16), dims=(8, 32))
    b.array("out", (4, 16))
    b.tile(shape=(4, 16))
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(256)
        b.op(ops.TensorGather4(map=MapRef("src"), tile=b.ref(0), coords=tuple(map(Const, (7, 0, 3, 3, 4))), bar=FULL))
        b.wait(token)
    b.sync()
    b.store((0, 0))
    rig = Rig(b)
    rig.put("src", FLOATS)
    result = rig.explore()
    assert (result.outcome, result.findings) == ("ok", ())
    table = FLOATS.reshape(8, 32)
    assert np.array_equal(rig.get("out", "f32", (4, 16)), table[[7, 0, 3, 3], 4:20])
