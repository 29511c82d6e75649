"""Launch, shared layout, and each copy against its map and tile."""

from __future__ import annotations

from dataclasses import replace

import pytest

import oxidecopy as ox
from oxidecopy.isa import expr, limits, ops
from oxidecopy.isa.expr import Const
from oxidecopy.program.program import Requirement
from oxidecopy.verify import inspect
from tests.helpers.programs import BX, RANK, Builder, eq, mul
from tests.helpers.verdicts import Make, accepted, made, refused

BYTES = 64 * 64 * 4


def load(b: Builder, *, nbytes: int = BYTES, stages: int = 1, part: int | None = None) -> None:
    """Loads every stage once. Parameters and tile are made by the caller."""
    b.bar()
    b.init()
    with b.elect(), b.loop(stages) as i:
        token = b.arm(nbytes)
        b.g2s(stage=i, part=part, of=2, tag="load") if part is not None else b.g2s(stage=i, tag="load")
        b.wait(token)


# ---- the launch
def grid_zero(b: Builder, broken: bool) -> None:
    b.grid = (0 if broken else 1, 1, 1)


def grid_deep(b: Builder, broken: bool) -> None:
    b.grid = (1, 1, limits.GRID_YZ_MAX + (1 if broken else 0))


def cluster_grid(b: Builder, broken: bool) -> None:
    b.cluster, b.grid = (1, 1, 2), (3, 1, 3 if broken else 4)


def cluster_size(b: Builder, broken: bool) -> None:
    b.cluster = (2, 2, 2) if not broken else (4, 4, 2)
    b.grid = b.cluster


def threads(b: Builder, broken: bool) -> None:
    b.threads = 1025 if broken else 1024


def role_threads(b: Builder, broken: bool) -> None:
    with b.scope((96, 129 if broken else 128), tag="role"):
        b.fence()


def unbound(b: Builder, broken: bool) -> None:
    b.index("n", 3)
    b.map()
    if broken:
        b.idx.clear()


def other_box(b: Builder, broken: bool) -> None:
    b.map()
    if broken:
        b.maps["src"] = replace(b.maps["src"], box_dim=(64, 32))


def other_rank(b: Builder, broken: bool) -> None:
    b.array(shape=(4, 4))
    if broken:
        b.arrays["out"] = replace(b.arrays["out"], shape=(4,), strides_bytes=(4,))


def arch(b: Builder, broken: bool) -> None:
    b.sm = 89 if broken else 100


def atoms(b: Builder, broken: bool) -> None:
    """Swizzles with wider atoms came with 10.0."""
    b.sm = 90 if broken else 100
    b.map(box=(4, 32), swizzle="128B_ATOM_32B")
    b.tile(shape=(4, 32), swizzle="128B_ATOM_32B")
    load(b, nbytes=4 * 32 * 4)


def extent(b: Builder, broken: bool) -> None:
    b.map(dims=(256, (1 << 31) + (4 if broken else 0)))


# ---- shared memory
def total(b: Builder, broken: bool) -> None:
    b.tile(stages=14)
    b.shared_bytes = limits.SHARED_BYTES_MAX[90] + (1 if broken else 0)


def total_of_the_arch(b: Builder, broken: bool) -> None:
    """What a Hopper CTA may have is more than a consumer Blackwell's."""
    b.sm = 120 if broken else 100
    b.tile(stages=7)


def tile_align(b: Builder, broken: bool) -> None:
    b.map()
    b.tile(offset=64 if broken else 128, align=64)
    load(b)


def stage_align(b: Builder, broken: bool) -> None:
    """Only the second stage is off."""
    b.map(box=(4, 12))
    b.tile(shape=(4, 12), stages=2, stage_bytes=192 if broken else 256, align=64)
    load(b, nbytes=192, stages=2)


def part_align(b: Builder, broken: bool) -> None:
    rows = 2 if broken else 8
    b.map(box=(rows // 2, 16))
    b.tile(shape=(rows, 16))
    load(b, nbytes=rows // 2 * 64, part=1)


def promised_align(b: Builder, broken: bool) -> None:
    b.tile(offset=128 if broken else 256, align=256)


@pytest.mark.parametrize(("swizzle", "inner", "repeat"), [("32B", 8, 256), ("64B", 16, 512), ("128B", 32, 1024)])
def test_swizzle_repeat_of_every_stage(swizzle: str, inner: int, repeat: int) -> None:
    for step in (128, repeat):
        b = Builder()
        b.map(box=(4, inner), swizzle=swizzle)
        b.tile(shape=(4, inner), swizzle=swizzle, stages=2, stage_bytes=repeat * 2 + step)
        load(b, nbytes=4 * inner * 4, stages=2)
        if step == repeat:
            accepted(b)
        else:
            found = refused(b, "OX3061", "load")
            assert found.required == f"a multiple of {repeat}"
            assert "stage 1" in found.what


def barrier_align(b: Builder, broken: bool) -> None:
    b.bar(offset=12 if broken else 16)


def small_tile(b: Builder, broken: bool) -> None:
    b.map()
    b.tile(shape=(32 if broken else 64, 64))
    load(b)


def short_swizzled_rows(b: Builder, broken: bool) -> None:
    """16-byte rows under a 128-byte swizzle lie 128 bytes apart: a tile of the dense bytes is too small."""
    b.map(box=(8, 4), swizzle="128B")
    b.tile(shape=(4 if broken else 8, 4), swizzle="128B")
    load(b, nbytes=8 * 16)


def part_too_small(b: Builder, broken: bool) -> None:
    b.map(box=(64, 64) if broken else (32, 64))
    b.tile()
    load(b, nbytes=BYTES if broken else BYTES // 2, part=0)


def overlap(b: Builder, broken: bool) -> None:
    b.tile("a")
    b.tile("b", offset=BYTES - (128 if broken else 0))


def stages_overlap(b: Builder, broken: bool) -> None:
    b.tile(stages=2, stage_bytes=BYTES // 2 if broken else BYTES)


def past_the_end(b: Builder, broken: bool) -> None:
    b.tile()
    b.shared_bytes = BYTES - (1 if broken else 0)


def other_swizzle(b: Builder, broken: bool) -> None:
    b.map(box=(64, 32), swizzle="128B")
    b.tile(shape=(64, 32), swizzle="none" if broken else "128B", align=1024)
    load(b, nbytes=BYTES // 2)


def other_dtype(b: Builder, broken: bool) -> None:
    b.map(dtype="f32")
    b.tile(dtype="i32" if broken else "f32")
    load(b)


# ---- ops
def reduce_type(b: Builder, broken: bool) -> None:
    b.map(dtype="f32")
    b.tile(dtype="f32")
    with b.elect():
        b.fill()
        b.fence()
        b.reduce("min" if broken else "add", tag="reduce")
        b.commit()
        b.wait_group(0)


def coord_rank(b: Builder, broken: bool) -> None:
    b.map()
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(BYTES)
        b.g2s((0,) if broken else (0, 0), tag="load")
        b.wait(token)


def plain_rank(b: Builder, broken: bool) -> None:
    b.tile(shape=(8, 8))
    b.array(shape=(256, 256))
    b.fill()
    b.sync()
    b.store((0, 0, 0) if broken else (0, mul(BX, 8)), tag="store")


def plain_array_rank(b: Builder, broken: bool) -> None:
    b.tile(shape=(8, 8))
    b.array(shape=(256,) if broken else (256, 256))
    b.fill()
    b.sync()
    b.store((0, mul(BX, 8)), tag="store")


def plain_dtype(b: Builder, broken: bool) -> None:
    b.tile(shape=(8, 8))
    b.array(dtype="i32" if broken else "f32")
    b.fill()
    b.sync()
    b.store((0, mul(BX, 8)), tag="store")


def iota_axis(b: Builder, broken: bool) -> None:
    b.tile(shape=(8, 8))
    b.op(ops.Iota(tile=b.ref(0), axis=2 if broken else 1), "iota")


def mask(b: Builder, broken: bool) -> None:
    b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
    b.map()
    b.tile()
    b.bar()
    b.init()
    b.cluster_sync()
    with b.elect():
        b.arm(BYTES)
        with b.when(eq(RANK, 0)):
            b.multicast(0b111 if broken else 0b11, tag="load")
        b.wait_phase(0)
    b.cluster_sync()


def remote_rank(b: Builder, broken: bool) -> None:
    b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
    b.bar()
    b.init()
    b.cluster_sync()
    with b.elect():
        b.arrive_remote(expr.add(RANK, Const(1)) if broken else expr.mod(expr.add(RANK, Const(1)), Const(2)), tag="remote")
    b.cluster_sync()


def sync_all(b: Builder, broken: bool) -> None:
    b.sync(threads=64 if broken else 128, tag="sync")


def sync_warps(b: Builder, broken: bool) -> None:
    n = 48 if broken else 64
    with b.scope((0, n)):
        b.sync(threads=n, number=1, tag="sync")


def sync_counts_differ(b: Builder, broken: bool) -> None:
    with b.scope((0, 32)):
        b.sync(threads=64, number=1)
    with b.scope((32, 64)):
        b.sync(threads=96 if broken else 64, number=1, tag="sync")


def sync_of_three(b: Builder, broken: bool) -> None:
    """Two of three warps meet, twice: if 0 meets 2 first, 1 waits for ever."""
    b.threads = 96
    for lo, meets in ((0, (1,)), (32, (1, 2)), (64, (2,))):
        with b.scope((lo, lo + 32)):
            for number in meets:
                b.sync(threads=64, number=1 if broken else number, tag="sync")


def divisor(b: Builder, broken: bool) -> None:
    n = b.index("n", 0 if broken else 2)
    b.tile(stages=4)
    b.fill(stage=expr.mod(Const(5), n))


# ---- answers
def landing(b: Builder) -> None:
    """A tile is on its way, and an array waits for it."""
    b.map()
    b.array()
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        b.arm(BYTES)
        b.g2s()


def answer_of_another_role(b: Builder, broken: bool) -> None:
    landing(b)
    with b.scope((0, 32)):
        done = b.test_parity(0, 0)
        if not broken:
            with b.when(done):
                b.store()
    if broken:
        with b.scope((32, 64)), b.when(done, tag="used"):
            b.store()
    b.wait_phase(0)


def answer_of_another_iteration(b: Builder, broken: bool) -> None:
    """Found by mutation: asked under a condition and used outside it, the answer may be that of the iteration before."""
    landing(b)
    with b.when(b.test_parity(0, 0)):
        late = b.test_parity(0, 1)
        if not broken:
            with b.when(late):
                b.store()
    if broken:
        with b.when(late, tag="used"):
            b.store()
    b.wait_phase(0)


def answer_of_a_loop_that_is_over(b: Builder, broken: bool) -> None:
    landing(b)
    done = None if broken else b.test_parity(0, 0)
    with b.loop(3):
        late = b.test_parity(0, 1)
    with b.when(late if done is None else done, tag="used"):
        b.store()
    b.wait_phase(0)


CASES: list[tuple[Make, str, str]] = [
    (grid_zero, "OX3070", ""),
    (grid_deep, "OX3070", ""),
    (cluster_grid, "OX3071", ""),
    (cluster_size, "OX3072", ""),
    (threads, "OX3073", ""),
    (role_threads, "OX3073", "role"),
    (arch, "OX3074", ""),
    (atoms, "OX3074", ""),
    (extent, "OX3075", ""),
    (unbound, "OX3076", ""),
    (other_box, "OX3076", ""),
    (other_rank, "OX3076", ""),
    (total, "OX3063", ""),
    (total_of_the_arch, "OX3063", ""),
    (tile_align, "OX3060", "load"),
    (stage_align, "OX3060", "load"),
    (part_align, "OX3060", "load"),
    (promised_align, "OX3060", ""),
    (barrier_align, "OX3062", ""),
    (small_tile, "OX3064", "load"),
    (short_swizzled_rows, "OX3064", "load"),
    (part_too_small, "OX3064", "load"),
    (overlap, "OX3065", ""),
    (stages_overlap, "OX3065", ""),
    (past_the_end, "OX3065", ""),
    (other_swizzle, "OX3066", "load"),
    (other_dtype, "OX3066", "load"),
    (reduce_type, "OX3054", "reduce"),
    (coord_rank, "OX3085", "load"),
    (plain_rank, "OX3085", "store"),
    (plain_array_rank, "OX3085", "store"),
    (plain_dtype, "OX3066", "store"),
    (iota_axis, "OX3085", "iota"),
    (mask, "OX3083", "load"),
    (remote_rank, "OX3084", "remote"),
    (sync_all, "OX3032", "sync"),
    (sync_warps, "OX3032", "sync"),
    (sync_counts_differ, "OX3032", "sync"),
    (sync_of_three, "OX3032", "sync"),
    (divisor, "OX3092", ""),
    (answer_of_another_role, "OX3018", "used"),
    (answer_of_another_iteration, "OX3018", "used"),
    (answer_of_a_loop_that_is_over, "OX3018", "used"),
]


@pytest.mark.parametrize(("make", "rule", "tag"), CASES, ids=lambda x: getattr(x, "__name__", None))
def test_refused_and_its_twin(make: Make, rule: str, tag: str) -> None:
    refused(made(make, True), rule, tag)
    accepted(made(make, False))


def test_sixteen_ctas_pass_with_a_warning() -> None:
    b = Builder(cluster=(16, 1, 1), grid=(32, 1, 1))
    accepted(b, "OX3105")


def test_a_role_that_never_runs_is_a_warning() -> None:
    for trips, expected in ((0, ["OX3102"]), (1, [])):
        b = Builder()
        n = b.index("n", trips)
        with b.scope((32, 64), tag="role"), b.loop(n):
            b.fence()
        accepted(b, *expected)


def test_everything_wrong_with_a_launch_is_reported_at_once() -> None:
    b = Builder(grid=(0, 70_000, 1), threads=2000)
    b.index("n", 1)
    b.idx.clear()
    found = inspect(b.program(), b.launch()).violations
    assert [d.rule for d in found] == ["OX3070", "OX3070", "OX3073", "OX3076"]


# ---- what the recorder asks of a launch
@pytest.mark.parametrize(("order", "grid", "rules"), [("once", 3, ["OX3077"]), ("once", 4, []), ("once", 5, []), ("linear", 1, [])])
def test_a_launch_is_one_that_the_orders_of_tiles_can_do(order: str, grid: int, rules: list[str]) -> None:
    @ox.pipeline(threads=32)
    def fetch(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D1], out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
        tile, full = cta.shared(src), cta.barrier().init(1)
        for at in cta.tiles(src, order=getattr(ox.order, order)):
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, at, token)
            full.wait(token)
            cta.store(out, tile, at)
            cta.sync()

    dev = ox.Device.open("sim")
    a = dev.zeros((250,), ox.f32)
    bound = fetch[grid].bind(ox.TmaDescriptor.tiled(a, box=(64,)), dev.empty((250,), ox.f32))
    found = inspect(bound.program, bound.launch).violations
    assert [d.rule for d in found] == rules
    for d in found:
        assert d.got == "4 <= 3 does not hold"
        assert d.site is not None
        assert d.site.file == __file__


def test_requirements_of_parameters_that_are_not_bound_wait_for_those() -> None:
    b = Builder()
    b.index("n", 3)
    cond = expr.Cmp(expr.CmpOp.LE, expr.Sym("n", expr.SymKind.PARAM), Const(2))
    program = replace(b.program(), requires=(Requirement(cond=cond, what="n is too large"),))
    assert [d.rule for d in inspect(program, b.launch()).violations] == ["OX3077"]
    b.idx.clear()
    assert [d.rule for d in inspect(program, b.launch()).violations] == ["OX3076"]
