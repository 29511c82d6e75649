"""Random boxes, strides and coordinates of every rank against the plain model; extents beyond any buffer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.engines.sim.faults import Fault, Refused
from oxidecopy.engines.sim.images import TileImage
from oxidecopy.engines.sim.memory import GlobalMemory, SharedMemory
from oxidecopy.engines.sim.tma import TensorPlan, wrap32
from oxidecopy.program.tensor_map import TensorMap
from tests.engines.sim.model import Geometry

DTYPES = {1: "u8", 2: "f16", 4: "f32", 8: "u64"}
SWIZZLES = {0: ("none", 0), 32: ("32B", 1), 64: ("64B", 3), 128: ("128B", 7)}
SMALL = st.integers(1, 6)


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    item = draw(st.sampled_from([1, 2, 4, 8]))
    span = draw(st.sampled_from([0, 32, 64, 128]))
    rank = draw(st.integers(1, 5))
    inner = draw(st.integers(1, (span or 96) // 16)) * 16 // item
    box = (*(draw(SMALL) for _ in range(rank - 1)), inner)
    dims = (*(draw(SMALL) for _ in range(rank - 1)), draw(st.integers(1, 2 * inner)))
    strides = (*(16 * draw(st.integers(0, 40)) for _ in range(rank - 1)), item)
    steps = (*(draw(st.integers(1, 3)) for _ in range(rank - 1)), draw(st.integers(1, 8)))
    nan = item in (2, 4) and draw(st.booleans())
    return Geometry(item, dims, strides, box, steps, span, SWIZZLES[span][1], nan)


def coords_of(draw: st.DrawFn, g: Geometry, low: int) -> tuple[int, ...]:
    outer = [draw(st.integers(low, n + 1)) for n in g.dims[:-1]]
    step = 16 // g.item
    return (*outer, step * draw(st.integers(low, g.dims[-1] // step + 1)))


@st.composite
def copies(draw: st.DrawFn, low: int) -> tuple[Geometry, tuple[int, ...], int]:
    g = draw(geometries())
    return g, coords_of(draw, g, low), 1024 + 128 * draw(st.integers(0, 8))


def plan_of(g: Geometry, memory: GlobalMemory, address: int) -> TensorPlan:
    tensor = TensorMap(
        dtype=DTYPES[g.item],
        global_dim=g.dims,
        global_strides=g.strides[:-1],
        box_dim=g.box,
        element_strides=g.steps,
        swizzle=SWIZZLES[g.span][0],
        oob_fill="nan" if g.nan else "zero",
    )
    return TensorPlan(tensor, address, memory)


def reach(g: Geometry) -> int:
    return sum((n - 1) * s for n, s in zip(g.dims, g.strides, strict=True)) + g.item + 16


@given(copies(-3))
def test_loads(copy: tuple[Geometry, tuple[int, ...], int]) -> None:
    g, coords, address = copy
    memory = GlobalMemory()
    buffer = memory.allocate(reach(g))
    buffer.data[:] = np.random.default_rng(len(buffer.data)).integers(0, 256, len(buffer.data), np.uint8)
    plan = plan_of(g, memory, buffer.address)
    plan.check(coords)
    shared = SharedMemory(1 << 17)
    before = shared.data.copy()
    TileImage(shared, plan.layout, address).scatter(plan.load(coords))
    wanted = g.load(coords, buffer.data.tobytes(), address)
    for at, byte in wanted.items():
        before[at] = byte
    assert (shared.data == before).all()
    assert plan.nbytes == np.prod(g.counts) * g.item


@given(copies(0))
def test_stores(copy: tuple[Geometry, tuple[int, ...], int]) -> None:
    g, coords, address = copy
    memory = GlobalMemory()
    buffer = memory.allocate(reach(g))
    plan = plan_of(g, memory, buffer.address)
    plan.check_store(coords)
    shared = SharedMemory(1 << 17)
    shared.data[:] = np.random.default_rng(address).integers(0, 256, shared.size, np.uint8)
    before = buffer.data.copy()
    plan.store(coords, TileImage(shared, plan.layout, address).gather())
    wanted = g.store(coords, dict(enumerate(shared.data.tolist())), address)
    for at, choices in wanted.items():
        assert buffer.data[at] in choices
        before[at] = buffer.data[at]
    assert (buffer.data == before).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_extents_beyond_any_memory(axis: int) -> None:
    dims = [64, 64, 64]
    dims[axis] = 1 << 31
    g = Geometry(2, tuple(dims), ((1 << 40) - 16, 1 << 20, 2), (2, 2, 32), (1, 1, 1), 0, 0, nan=False)
    memory = GlobalMemory()
    buffer = memory.allocate(4096)
    plan = plan_of(g, memory, buffer.address)
    plan.check((0, 0, 0))
    assert plan.load((-2, -2, 0)).tobytes() == bytes(256)  # all outside: only the base is touched
    with pytest.raises(Fault) as caught:
        plan.load(((1 << 31) - 1 if axis == 0 else 3, 0, 0))
    assert caught.value.code == 700
    far = tuple(n if i == axis else 0 for i, n in enumerate(dims))
    assert plan.load(far).tobytes() == bytes(256)


def test_rows_may_lie_in_different_buffers() -> None:
    memory = GlobalMemory()
    first, second = memory.allocate(512), memory.allocate(512)
    first.data[:], second.data[:] = 1, 2
    g = Geometry(1, (2, 16), (second.address - first.address, 1), (2, 16), (1, 1), 0, 0, nan=False)
    plan = plan_of(g, memory, first.address)
    assert plan.load((0, 0)).tobytes() == bytes([1] * 16 + [2] * 16)
    plan.store((0, 0), np.arange(32, dtype=np.uint8).view("V16").reshape(2, 1))
    assert (first.data[15], second.data[0]) == (15, 16)


@pytest.mark.parametrize(
    ("coords", "store", "code"),
    [
        ((0, 0), False, 0),
        ((0, 1), False, 715),
        ((0, -2), False, 715),
        ((-1, 0), False, 0),
        ((-1, 0), True, 715),
        ((0, -4), True, 715),
        ((0,), False, 715),
    ],
)
def test_rules_on_coordinates(coords: tuple[int, ...], store: bool, code: int) -> None:
    memory = GlobalMemory()
    g = Geometry(4, (8, 8), (32, 4), (2, 4), (1, 1), 0, 0, nan=False)
    plan = plan_of(g, memory, memory.allocate(256).address)
    check = plan.check_store if store else plan.check
    if not code:
        check(coords)
        return
    with pytest.raises(Fault) as caught:
        check(coords)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "broken",
    [
        Geometry(4, (8, 8), (24, 4), (2, 4), (1, 1), 0, 0, nan=False),
        Geometry(4, (8, 8), (32, 4), (2, 3), (1, 1), 0, 0, nan=False),
        Geometry(4, (8, 8), (32, 4), (2, 16), (1, 1), 32, 1, nan=False),
        Geometry(4, (8, 0), (32, 4), (2, 4), (1, 1), 0, 0, nan=False),
        Geometry(4, (8, 8), (32, 4), (2, 4), (0, 1), 0, 0, nan=False),
        Geometry(4, (8, 8, 8), (32, 4), (2, 4), (1, 1), 0, 0, nan=False),
    ],
)
def test_maps_that_cannot_be_encoded(broken: Geometry) -> None:
    memory = GlobalMemory()
    with pytest.raises(Refused):
        plan_of(broken, memory, memory.allocate(256).address)


@given(st.integers(-(1 << 40), 1 << 40))
def test_coordinates_are_32_bit_registers(c: int) -> None:
    assert -(1 << 31) <= wrap32(c) < 1 << 31
    assert (wrap32(c) - c) % (1 << 32) == 0
