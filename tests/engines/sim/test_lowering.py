"""Programs end to end: blocks, symbols, tokens, shares of cooperative accesses, element types."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import Const, Sym, SymKind
from oxidecopy.program.program import MapParam, ScalarParam
from tests.engines.sim.harness import Rig
from tests.helpers.programs import BX, RANK, Builder, add, div, eq, lt, mod, mul

BOTH = pytest.mark.parametrize("hazards", [True, False], ids=["hazards", "fast"])


def ran(rig: Rig, *, hazards: bool = True, seed: int = 0) -> Rig:
    result = rig.explore(hazards=hazards, seed=seed)
    assert result.outcome == "ok", result.diagnostics
    assert result.findings == ()
    return rig


def fill(b: Builder, value: float | ops.ScalarRef, tile: int = 0, part: ops.Part | None = None) -> None:
    b.op(ops.Fill(tile=ops.TileRef(tile, Const(0), part), value=value))


def zeros(rig: Rig, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    rig.put(name, np.zeros(shape, np.dtype(DTYPES[dtype].numpy) if dtype in ("f32", "u32", "i32") else np.uint8))


# ---- copies through the whole machine
@BOTH
@pytest.mark.parametrize("swizzle", ["none", "128B"])
def test_load_and_plain_store(swizzle: str, hazards: bool) -> None:
    b = Builder(grid=(3, 2, 1))
    box = (8, 32)
    b.map(box=box, dims=(15, 90), swizzle=swizzle)
    b.array(shape=(15, 90))
    b.tile(shape=box, swizzle=swizzle)
    b.bar()
    b.init()
    at = (mul(Sym("block_idx.y", SymKind.BLOCK), 8), mul(BX, 32))
    with b.elect():
        token = b.arm(8 * 32 * 4)
        b.g2s(at)
    b.wait(token)
    b.store(at)
    b.inval()
    rig = Rig(b)
    x = np.arange(15 * 92, dtype=np.float32).reshape(15, 92)
    rig.put("src", x)
    ran(rig, hazards=hazards)
    assert (rig.get("out", "f32", (15, 90)) == x[:, :90]).all()


def ring(tiles: int, stages: int) -> Builder:
    """A producer warp and a consumer warp over `stages` tiles."""
    b = Builder(grid=(2, 1, 1), threads=64)
    b.map(box=(8, 32), dims=(16, 32 * tiles))
    b.map("dst", box=(8, 32), dims=(16, 32 * tiles))
    b.tile(shape=(8, 32), stages=stages)
    b.bar("full", stages)
    b.bar("empty", stages)
    b.init(0)
    b.init(1)
    y = mul(BX, 8)
    with b.elect(0), b.loop(tiles) as i:
        stage, turn = mod(i, stages), div(i, stages)
        b.wait_phase(add(turn, -1), bar=1, i=stage)
        b.arm(8 * 32 * 4, bar=0, i=stage)
        b.g2s((y, mul(i, 32)), stage=stage, bar=0, i=stage)
    with b.elect(32):
        with b.loop(tiles) as i:
            stage, turn = mod(i, stages), div(i, stages)
            b.wait_phase(turn, bar=0, i=stage)
            b.s2g((y, mul(i, 32)), name="dst", stage=stage)
            b.commit()
            b.wait_read(0)
            b.arrive(bar=1, i=stage)
        b.wait_group(0)
    b.inval(0)
    b.inval(1, sync=False)
    return b


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("tiles", "stages"), [(1, 1), (5, 1), (7, 3)])
def test_ring(tiles: int, stages: int, seed: int) -> None:
    rig = Rig(ring(tiles, stages))
    x = np.arange(16 * 32 * tiles, dtype=np.float32).reshape(16, 32 * tiles)
    rig.put("src", x)
    ran(rig, seed=seed)
    assert (rig.get("dst", "f32", x.shape) == x).all()


@BOTH
def test_cluster_of_16_loads_one_tile_in_slices(hazards: bool) -> None:
    n = 16
    b = Builder(grid=(n, 1, 1), cluster=(n, 1, 1), threads=32)
    b.map(box=(2, 32), dims=(32, 32))
    b.array(shape=(32 * n, 32))
    b.tile(shape=(32, 32))
    b.bar()
    b.init()
    b.cluster_sync()
    with b.elect():
        token = b.arm(32 * 32 * 4)
        b.multicast((1 << n) - 1, (mul(RANK, 2), 0), part=RANK, of=n)
    b.wait(token)
    b.store((mul(RANK, 32), 0))
    b.cluster_sync()
    rig = Rig(b)
    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    rig.put("src", x)
    ran(rig, hazards=hazards)
    assert (rig.get("out", "f32", (32 * n, 32)) == np.tile(x, (n, 1))).all()


# ---- blocks
@BOTH
def test_nested_loops_and_their_tokens(hazards: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=64)
    b.array(shape=(8, 4), dtype="u32")
    b.tile(shape=(1, 4), dtype="u32")
    b.bar(stages=2)
    b.init(count=64)
    with b.loop(-1, start=3, step=-1) as i, b.loop(2) as j:
        fill(b, 5)
        b.wait(b.arrive(i=j), i=j)
        with b.when(eq(mod(i, 2), 1)):
            b.store((add(mul(i, 2), j), 0))
        b.sync()
    rig = Rig(b)
    zeros(rig, "out", "u32", (8, 4))
    ran(rig, hazards=hazards)
    assert rig.get("out", "u32", (8, 4))[:, 0].tolist() == [0, 0, 5, 5, 0, 0, 5, 5]


@BOTH
def test_symbols(hazards: bool) -> None:
    b = Builder(grid=(2, 1, 1), threads=32)
    n = b.index("n", 3)
    b.array(shape=(16,), dtype="u32")
    b.tile(shape=(1,), dtype="u32")
    fill(b, 1)
    b.sync()
    b.store((add(mul(BX, Sym("grid_dim.x", SymKind.GRID)), n),))
    with b.when(lt(BX, 1)):
        b.store((add(Sym("out.dim[0]", SymKind.EXTENT), -1),))
    rig = Rig(b)
    zeros(rig, "out", "u32", (16,))
    ran(rig, hazards=hazards)
    assert np.flatnonzero(rig.get("out", "u32", (16,))).tolist() == [3, 5, 15]


def test_division_by_zero_is_refused() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    n = b.index("n", 0)
    with b.loop(div(4, n)):
        b.sync()
    result = Rig(b).explore()
    assert result.outcome == "refused"
    assert result.diagnostics[0].rule == "OX4014"
    assert result.diagnostics[0].site is not None


@BOTH
def test_answers_gate(hazards: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.array(shape=(4,), dtype="u32")
    b.tile(shape=(1,), dtype="u32")
    b.bar()
    b.init(sync=False, count=2)
    fill(b, 9)
    token = b.arrive()
    for i in range(2):
        with b.when(b.test_token(token, 0)):
            b.store((i,))
        with b.when(b.test_parity(0, 1)):
            b.store((i + 2,))
        if i == 0:
            b.arrive()
    rig = Rig(b)
    zeros(rig, "out", "u32", (4,))
    ran(rig, hazards=hazards)
    assert rig.get("out", "u32", (4,)).tolist() == [0, 9, 0, 9]


# ---- cooperative accesses
@BOTH
@pytest.mark.parametrize("shape", [(5,), (3, 8), (2, 3, 8)])
@pytest.mark.parametrize("cuts", [((0, 1), (1, 7), (7, 32)), ((0, 32),), ((0, 16), (16, 17), (17, 32))])
def test_classes_share_an_access_out(shape: tuple[int, ...], cuts: tuple[tuple[int, int], ...], hazards: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.array(shape=shape, dtype="u32")
    b.tile(shape=shape, dtype="u32")
    for cut in cuts:  # scopes that do nothing but tell the threads apart
        with b.scope(cut):
            b.fence()
    b.op(ops.Iota(tile=ops.TileRef(0, Const(0)), axis=len(shape) - 1))
    b.sync()
    b.store((0,) * len(shape))
    rig = Rig(b)
    zeros(rig, "out", "u32", shape)
    ran(rig, hazards=hazards)
    assert (rig.get("out", "u32", shape) == np.broadcast_to(np.arange(shape[-1]), shape)).all()


def test_stores_are_clipped_on_both_sides() -> None:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.array(shape=(4, 4), dtype="u32")
    b.tile(shape=(3, 3), dtype="u32")
    b.op(ops.Iota(tile=ops.TileRef(0, Const(0)), axis=0))
    b.sync()
    b.store((-1, 2))
    b.store((9, 0))
    rig = Rig(b)
    zeros(rig, "out", "u32", (4, 4))
    ran(rig)
    assert rig.get("out", "u32", (4, 4)).tolist() == [[0, 0, 1, 1], [0, 0, 2, 2], [0] * 4, [0] * 4]


def test_a_store_that_fits_nothing_is_refused() -> None:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.array(shape=(4, 4), dtype="u32")
    b.tile(shape=(3,), dtype="u32")
    b.store((0, 0))
    assert Rig(b).explore().outcome == "refused"


@pytest.mark.parametrize("part", range(4))
def test_parts_of_tiles(part: int) -> None:
    for shape in ((8, 16), (16,)):
        b = Builder(grid=(1, 1, 1), threads=1)
        b.array(shape=shape, dtype="u32")
        b.tile(shape=shape, dtype="u32")
        fill(b, 0)
        fill(b, 3, part=ops.Part(Const(part), 4))
        b.store((0,) * len(shape))
        rig = Rig(b)
        ran(rig)
        out = rig.get("out", "u32", shape)
        assert np.flatnonzero(out.reshape(4, -1).sum(axis=1)).tolist() == [part]


# ---- element types
@pytest.mark.parametrize(
    ("dtype", "value", "kind"),
    [
        ("u8", 257, np.uint8(1)),
        ("i32", -1, np.int32(-1)),
        ("u64", (1 << 64) - 1, np.uint64((1 << 64) - 1)),
        ("u16", 2.7, np.uint16(2)),
        ("f16", 1 / 3, np.float16(1 / 3)),
        ("f32", float("inf"), np.float32("inf")),
        ("f64", 0.1, np.float64(0.1)),
        ("bf16", 1 / 3, ml_dtypes.bfloat16(1 / 3)),
        ("e4m3", 3.3, ml_dtypes.float8_e4m3fn(3.3)),
        ("e5m2", 3.3, ml_dtypes.float8_e5m2(3.3)),
        ("tf32", 1 / 3, np.array([0x3EAAA000], np.uint32).view(np.float32)[0]),
        ("f16", 1e9, np.float16("inf")),
    ],
)
def test_fill(dtype: str, value: float, kind: np.generic) -> None:
    for scalar in (False, True):
        b = Builder(grid=(1, 1, 1), threads=1)
        b.array(shape=(3,), dtype=dtype)
        b.tile(shape=(3,), dtype=dtype)
        if scalar:
            b.params.append(ScalarParam(name="alpha", dtype=dtype))
        fill(b, ops.ScalarRef("alpha") if scalar else value)
        b.store((0,))
        rig = Rig(b, scalars={"alpha": value})
        ran(rig)
        raw = rig.engine.read(rig.buffers["out"], 0, 3 * DTYPES[dtype].nbytes)
        assert raw == np.array([kind] * 3).tobytes()


def test_a_fill_with_nan_needs_a_float() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.tile(shape=(3,), dtype="u32")
    fill(b, float("nan"))
    assert Rig(b).explore().outcome == "refused"


def test_iota_wraps() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.array(shape=(300,), dtype="u8")
    b.tile(shape=(300,), dtype="u8")
    b.op(ops.Iota(tile=ops.TileRef(0, Const(0)), axis=0))
    b.store((0,))
    rig = Rig(b)
    ran(rig)
    assert rig.get("out", "u8", (300,)).tolist() == [i % 256 for i in range(300)]


# ---- shared memory
def test_every_cta_starts_with_poison() -> None:
    b = Builder(grid=(2, 1, 1), threads=1)
    b.array(shape=(2,), dtype="u32")
    b.tile(shape=(1,), dtype="u32")
    b.store((BX,))
    fill(b, 0)
    rig = Rig(b)
    assert {d.rule for d in rig.explore().findings} == {"OX4107"}
    assert [hex(v) for v in rig.get("out", "u32", (2,))] == ["0xffb5a5a5"] * 2


def test_a_program_of_many_threads_that_arrive() -> None:
    b = Builder(grid=(1, 1, 1), threads=1024)
    b.map(box=(1, 4), dims=(1, 4))
    b.array(shape=(1, 4))
    b.tile(shape=(1, 4))
    b.bar()
    b.init(count=1024)
    with b.elect():
        first = b.arm(16)
        b.g2s()
    with b.others():
        rest = b.arrive()
    b.wait(first, rest)
    b.store()
    rig = Rig(b)
    rig.put("src", np.ones((1, 4), np.float32))
    ran(rig)
    assert (rig.get("out", "f32", (1, 4)) == 1).all()


def test_out_of_range_coordinates_wrap_like_registers() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.map(box=(1, 4), dims=(2, 4))
    b.array(shape=(1, 4))
    b.tile(shape=(1, 4))
    b.bar()
    b.init(sync=False)
    token = b.arm(16)
    b.g2s((1 << 32, 0))
    b.wait(token)
    b.store()
    rig = Rig(b)
    rig.put("src", np.ones((2, 4), np.float32))
    ran(rig)
    assert (rig.get("out", "f32", (1, 4)) == 1).all()


def test_the_mode_of_the_copies_must_be_that_of_the_map() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.map(box=(1, 4), dims=(2, 4))
    b.tile(shape=(1, 4))
    fill(b, 0)
    b.fence()
    b.s2g()
    b.commit()
    b.wait_group()
    assert Rig(b).explore().outcome == "ok"
    b.params = [replace(p, mode="im2col") if isinstance(p, MapParam) else p for p in b.params]
    assert Rig(b).explore().code == 715


# ---- the rarer barrier ops
@BOTH
def test_parity_waits_and_software_bytes(hazards: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=64)
    b.bar()
    b.init(count=1)
    with b.elect(0):
        b.arm(32)
    with b.elect(32):
        b.complete(32)
    b.wait_parity(0)
    b.inval()
    ran(Rig(b), hazards=hazards)


@BOTH
def test_remote_announcement(hazards: bool) -> None:
    """CTA 1 announces and arrives for CTA 0, CTA 0 loads."""
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=32)
    b.map(box=(1, 4), dims=(1, 4))
    b.array(shape=(1, 4))
    b.tile(shape=(1, 4))
    b.bar()
    b.init()
    b.cluster_sync()
    with b.elect():
        with b.when(eq(RANK, 1)):
            b.arm_remote(0, 16)
        with b.when(eq(RANK, 0)):
            b.g2s()
    with b.when(eq(RANK, 0)):
        b.wait_phase(0)
        b.store()
    b.cluster_sync()
    rig = Rig(b)
    rig.put("src", np.full((1, 4), 3, np.float32))
    ran(rig, hazards=hazards)
    assert (rig.get("out", "f32", (1, 4)) == 3).all()


def test_a_remote_op_outside_the_cluster_faults() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    b.arrive_remote(1)
    assert Rig(b).explore().code == 719


@BOTH
def test_arrive_drop(hazards: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=64)
    b.bar()
    b.init(count=64)
    with b.scope((32, 64)):
        dropped = b.arrive_drop()
    with b.scope((0, 32)):
        token = b.arrive()
    b.wait(token, dropped)
    b.sync()
    with b.scope((0, 32)):
        b.wait(b.arrive())
    b.inval()
    ran(Rig(b), hazards=hazards)
