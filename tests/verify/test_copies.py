"""Plain bulk copies, copies between CTAs, copies of four rows: refused with one edit, accepted without it; the simulator agrees."""

from __future__ import annotations

import pytest

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const, Expr
from oxidecopy.isa.ops import ArrayRef, BarrierRef, MapRef
from oxidecopy.program.program import ArrayInfo
from tests.engines.sim.harness import findings
from tests.helpers.programs import BX, RANK, Builder, E, add, e, eq, lt, mul
from tests.helpers.verdicts import Make, accepted, made, refused

N = 64  # elements of a tile, f32
BYTES = 4 * N


def bulk_g2s(b: Builder, at: tuple[E, ...] = (0,), nbytes: int = BYTES, tile: int = 0, tag: str = "", bar: int = 0) -> None:
    coords = tuple(map(e, at))
    b.op(ops.BulkG2S(array=ArrayRef("out"), coords=coords, tile=b.ref(tile), nbytes=nbytes, bar=BarrierRef(bar, Const(0))), tag)


def bulk_s2g(b: Builder, at: tuple[E, ...] = (0,), nbytes: int = BYTES, tag: str = "") -> None:
    b.op(ops.BulkS2G(array=ArrayRef("out"), coords=tuple(map(e, at)), tile=b.ref(0), nbytes=nbytes), tag)


def send(b: Builder, rank: E, source: int = 0, into: int = 1, tag: str = "", op: str = "", nbytes: int = BYTES) -> None:
    bar = BarrierRef(0, Const(0))
    if op:
        b.op(ops.BulkReduceS2S(op=op, tile=b.ref(source), into=b.ref(into), rank=e(rank), nbytes=nbytes, bar=bar), tag)
    else:
        b.op(ops.BulkS2S(tile=b.ref(source), into=b.ref(into), rank=e(rank), nbytes=nbytes, bar=bar), tag)


def loaded(b: Builder, at: tuple[E, ...] = (0,), nbytes: int = BYTES, expected: int = BYTES) -> None:
    """One load by one thread, waited for."""
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(expected)
        bulk_g2s(b, at, nbytes, tag="copy")
        b.wait(token)


def flat(
    b: Builder, shape: tuple[int, ...] = (1024,), dtype: str = "f32", tile: str = "f32", swizzle: str = "none", align: int = 16
) -> None:
    b.array(shape=shape, dtype=dtype)
    b.tile(shape=(N,) if swizzle == "none" else (8, 8), dtype=tile, swizzle=swizzle, align=align)


# ---- one copy against its array and tile
def size(b: Builder, broken: bool) -> None:
    flat(b)
    loaded(b, nbytes=24 if broken else 16, expected=16 if not broken else 24)


def nothing(b: Builder, broken: bool) -> None:
    b.array(shape=(1024,))
    with b.elect():
        b.op(ops.BulkPrefetch(array=ArrayRef("out"), coords=(Const(0),), nbytes=0 if broken else 16), "copy")


def start(b: Builder, broken: bool) -> None:
    flat(b)
    loaded(b, at=(mul(BX, 3 if broken else 4),))


def gaps(b: Builder, broken: bool) -> None:
    flat(b)
    if broken:
        b.arrays["out"] = ArrayInfo(dtype="f32", shape=(1024,), strides_bytes=(8,))
    loaded(b)


def behind(b: Builder, broken: bool) -> None:
    flat(b, shape=(1024 - 16,))
    b.grid = (16 if broken else 15, 1, 1)
    loaded(b, at=(mul(BX, N),))


def before(b: Builder, broken: bool) -> None:
    flat(b)
    loaded(b, at=(add(mul(BX, N), -N if broken else 0),))


def row_end(b: Builder, broken: bool) -> None:
    """Rows with gaps: a run may not leave its row."""
    flat(b, shape=(8, 80))
    b.arrays["out"] = ArrayInfo(dtype="f32", shape=(8, 80), strides_bytes=(384, 4))
    loaded(b, at=(7, 20 if broken else 16))


def row_start(b: Builder, broken: bool) -> None:
    """Without gaps it may go on into the next row, from the 16-byte grid."""
    flat(b, shape=(8, 81))
    loaded(b, at=(1 if broken else 4, 64))


def guarded(b: Builder, broken: bool) -> None:
    """What a condition leaves out does not count."""
    flat(b)
    b.grid = (17, 1, 1)
    b.bar()
    b.init()
    with b.elect(), b.when(lt(BX, 17 if broken else 16)):
        token = b.arm(BYTES)
        bulk_g2s(b, (mul(BX, N),), tag="copy")
        b.wait(token)


def small_tile(b: Builder, broken: bool) -> None:
    flat(b)
    loaded(b, nbytes=BYTES + (16 if broken else 0), expected=BYTES + (16 if broken else 0))


def element_type(b: Builder, broken: bool) -> None:
    flat(b, tile="u32" if broken else "f32")
    loaded(b)


def swizzled(b: Builder, broken: bool) -> None:
    flat(b, swizzle="32B" if broken else "none")
    loaded(b)


def placed(b: Builder, broken: bool) -> None:
    b.array(shape=(1024,))
    b.tile(shape=(N,), align=8, offset=8 if broken else 16)
    loaded(b)


def fewer_told(b: Builder, broken: bool) -> None:
    flat(b)
    loaded(b, expected=BYTES + (16 if broken else 0))


def many_threads(b: Builder, broken: bool) -> None:
    flat(b)
    b.fill()
    b.fence()
    b.sync()
    with b.scope((0, 2 if broken else 1)):
        bulk_s2g(b, (mul(BX, N),), tag="copy")
        b.commit()
        b.wait_group(0)


def fence(b: Builder, broken: bool) -> None:
    flat(b)
    b.fill()
    if not broken:
        b.fence()
    b.sync()
    with b.elect():
        bulk_s2g(b, (mul(BX, N),), tag="copy")
        b.commit()
        b.wait_group(0)


def undrained(b: Builder, broken: bool) -> None:
    flat(b)
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        bulk_s2g(b, (mul(BX, N),), tag="copy")
        b.commit()
        b.wait_read(1 if broken else 0)


def reduced(b: Builder, broken: bool) -> None:
    flat(b, dtype="f32_ftz" if broken else "f32", tile="f32_ftz" if broken else "f32")
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        b.op(ops.BulkReduce(op="add", array=ArrayRef("out"), coords=(Const(0),), tile=b.ref(0), nbytes=BYTES), "copy")
        b.commit()
        b.wait_group(0)


def prefetched(b: Builder, broken: bool) -> None:
    b.array(shape=(1024,))
    with b.elect():
        b.op(ops.BulkPrefetch(array=ArrayRef("out"), coords=(Const(1),) if broken else (Const(4),), nbytes=64), "copy")


def map_prefetched(b: Builder, broken: bool) -> None:
    b.map()
    with b.elect():
        b.op(ops.TensorPrefetch(map=MapRef("src"), coords=(Const(-3), Const(2 if broken else -4))), "copy")


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (size, "OX3055"),
        (nothing, "OX3055"),
        (start, "OX3080"),
        (gaps, "OX3056"),
        (behind, "OX3057"),
        (before, "OX3057"),
        (row_end, "OX3057"),
        (row_start, "OX3080"),
        (guarded, "OX3057"),
        (small_tile, "OX3064"),
        (element_type, "OX3066"),
        (swizzled, "OX3066"),
        (placed, "OX3060"),
        (many_threads, "OX3053"),
        (fence, "OX3046"),
        (undrained, "OX3050"),
        (reduced, "OX3054"),
        (prefetched, "OX3080"),
        (map_prefetched, "OX3080"),
    ],
    ids=lambda x: x.__name__ if callable(x) else "",
)
def test_refused_and_its_twin(make: Make, rule: str) -> None:
    refused(made(make, True), rule, "copy")
    accepted(made(make, False))


def test_bytes_that_a_bulk_copy_does_not_bring() -> None:
    refused(made(fewer_told, True), "OX3020")
    accepted(made(fewer_told, False))


# ---- between CTAs: each also on the simulator, whose findings have rules of their own
def pair(b: Builder, dtype: str = "f32") -> None:
    """A cluster of two with a written tile, one to be filled, and a barrier."""
    b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
    b.tile("mine", (N,), dtype)
    b.tile("theirs", (N,), dtype)
    b.bar()
    b.init()
    b.fill(0)
    b.fill(1)
    b.fence()
    b.sync()
    b.cluster_sync()


def exchanged(b: Builder) -> None:
    """Each waits for what the other sends."""
    with b.elect():
        token = b.arm(BYTES)
        send(b, add(1, mul(RANK, -1)), tag="copy")
        b.wait(token)


def peer_gone(b: Builder, broken: bool) -> None:
    pair(b)
    exchanged(b)
    if not broken:
        b.cluster_sync()


def too_early(b: Builder, broken: bool) -> None:
    b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
    b.tile("mine", (N,))
    b.tile("theirs", (N,))
    b.bar()
    b.init()
    with b.elect():
        b.fill(0)
        b.fence()
    if not broken:
        b.cluster_sync()
    exchanged(b)
    b.cluster_sync()


def reused(b: Builder, broken: bool) -> None:
    """The source is written again: the other CTA's wait must be known here."""
    pair(b)
    exchanged(b)
    if not broken:
        b.cluster_sync()
    with b.elect():
        b.fill(0, tag="again")
    b.cluster_sync()


def read_early(b: Builder, broken: bool) -> None:
    pair(b)
    b.array(shape=(N,))
    with b.elect(), b.when(eq(RANK, 0)):
        send(b, 1, tag="copy")
    with b.elect(), b.when(eq(RANK, 1)):
        token = b.arm(BYTES)
        if not broken:
            b.wait(token)
        b.store((0,), tile=1, tag="read")
        if broken:
            b.wait(token)
    b.cluster_sync()


def no_fence(b: Builder, broken: bool) -> None:
    b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
    b.tile("mine", (N,))
    b.tile("theirs", (N,))
    b.bar()
    b.init()
    b.fill(0)
    if not broken:
        b.fence()
    b.sync()
    b.cluster_sync()
    exchanged(b)
    b.cluster_sync()


SENDS = [
    (peer_gone, "OX3058", "OX4119"),
    (too_early, "OX3006", "OX4110"),
    (reused, "OX3043", "OX4104"),
    (read_early, "OX3040", "OX4102"),
    (no_fence, "OX3046", "OX4105"),
]


@pytest.mark.parametrize(("make", "rule", "hazard"), SENDS, ids=[make.__name__ for make, _, _ in SENDS])
def test_sends_refused_and_their_twins(make: Make, rule: str, hazard: str) -> None:
    refused(made(make, True), rule)
    found = {r for r, _ in findings(made(make, True))}
    assert hazard in found or found & {"OX4115", "OX4111"}, found
    accepted(made(make, False))
    assert findings(made(make, False)) == set()


def together(b: Builder, op: str = "add", dtype: str = "u32", second: str = "") -> None:
    """Both CTAs combine their tile into that of rank 0."""
    pair(b, dtype)
    with b.elect(), b.when(eq(RANK, 0)):
        b.expect(2 * BYTES)
        b.arrive(tag="told")
    b.cluster_sync()
    with b.elect():
        with b.when(eq(RANK, 0)):
            send(b, 0, op=op, tag="copy")
        with b.when(eq(RANK, 1)):
            send(b, 0, op=second or op)
        with b.when(eq(RANK, 0)):
            b.wait_phase(0)
    b.cluster_sync()


def test_reductions_need_no_order_among_each_other() -> None:
    b = Builder()
    together(b)
    accepted(b)
    assert findings(b) == set()


@pytest.mark.parametrize("broken", [True, False])
def test_each_of_them_follows_what_was_there(broken: bool) -> None:
    """CTA 0 combines into what it has written itself, and CTA 1 too: it must know of the write, as the first reduction does not tell it."""
    b = Builder()
    pair(b, "u32")
    with b.elect(), b.when(eq(RANK, 0)):
        b.fill(1)
        b.fence()
        b.expect(2 * BYTES)
        b.arrive()
    if not broken:
        b.cluster_sync()
    with b.elect():
        send(b, 0, op="add", tag="copy")
        with b.when(eq(RANK, 0)):
            b.wait_phase(0)
    b.cluster_sync()
    if broken:
        refused(b, "OX3045", "copy")
        assert findings(b)
    else:
        accepted(b)
        assert findings(b) == set()


def test_different_reductions_do() -> None:
    b = Builder()
    together(b, second="max")
    refused(b, "OX3042")
    assert {r for r, _ in findings(b)} == {"OX4103"}


@pytest.mark.parametrize(
    ("op", "dtype", "legal"), [("add", "u64", True), ("max", "u64", False), ("add", "f32", False), ("bit_xor", "i32", True)]
)
def test_reductions_between_ctas_that_exist(op: str, dtype: str, legal: bool) -> None:
    b = Builder()
    together(b, op, dtype)
    if legal:
        accepted(b)
    else:
        refused(b, "OX3054")


def test_a_rank_that_the_cluster_does_not_have() -> None:
    for rank, rule in ((2, "OX3084"), (1, "")):
        b = Builder()
        pair(b)
        with b.elect():
            token = b.arm(BYTES)
            with b.when(eq(RANK, 0)):
                send(b, rank, tag="copy")
            with b.when(eq(RANK, 1)):
                send(b, 0)
            b.wait(token)
        b.cluster_sync()
        if rule:
            refused(b, rule, "copy")
        else:
            accepted(b)


def test_tiles_of_a_send_lie_alike() -> None:
    for swizzle, rule in (("32B", "OX3066"), ("none", "")):
        b = Builder()
        b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
        b.tile("mine", (8, 8))
        b.tile("theirs", (8, 8), swizzle=swizzle)
        b.bar()
        b.init()
        b.fill(0)
        b.fence()
        b.sync()
        b.cluster_sync()
        exchanged(b)
        b.cluster_sync()
        if rule:
            refused(b, rule, "copy")
        else:
            accepted(b)


# ---- four rows at once
def gathers(b: Builder, box: tuple[int, int] = (1, 16), column: int = 0, sm: int = 100, tile: int = 4) -> None:
    b.sm = sm
    b.map(box=box, dims=(64, 64))
    b.tile(shape=(tile, 16))
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(256)
        rows = (Const(3), Const(-1), Const(63), Const(3), Const(column))
        b.op(ops.TensorGather4(map=MapRef("src"), tile=b.ref(0), coords=rows, bar=BarrierRef(0, Const(0))), "copy")
        b.wait(token)


def test_gathers() -> None:
    b = Builder()
    gathers(b)
    accepted(b)
    assert findings(b) == set()


@pytest.mark.parametrize(
    ("changed", "rule"),
    [({"box": (2, 16)}, "OX3059"), ({"column": 2}, "OX3080"), ({"sm": 90}, "OX3074"), ({"tile": 2}, "OX3064")],
    ids=["box", "column", "sm_90", "tile"],
)
def test_gathers_refused(changed: dict[str, object], rule: str) -> None:
    b = Builder()
    gathers(b, **changed)  # type: ignore[arg-type]  # one of its arguments
    refused(b, rule)


@pytest.mark.parametrize("row", [0, -1])
def test_scatters_start_inside(row: int) -> None:
    b = Builder()
    b.sm = 100
    b.map(box=(1, 16), dims=(64, 64))
    b.tile(shape=(4, 16))
    b.fill()
    b.fence()
    b.sync()
    coords: tuple[Expr, ...] = (Const(5), Const(6), Const(row), Const(8), Const(16))
    with b.elect():
        b.op(ops.TensorScatter4(map=MapRef("src"), tile=b.ref(0), coords=coords), "copy")
        b.commit()
        b.wait_group(0)
    if row < 0:
        refused(b, "OX3081", "copy")
    else:
        accepted(b)


def test_an_array_that_bulk_copies_write_gives_no_indices() -> None:
    for written, rule in (("out", "OX3087"), ("other", "")):
        b = Builder()
        b.array("out", shape=(N,), dtype="i32")
        b.array("other", shape=(N,), dtype="i32")
        b.grid = (1, 1, 1)
        b.tile(shape=(N,), dtype="i32")
        b.fill()
        b.fence()
        b.sync()
        b.op(ops.LoadIndex(name="read", array=ArrayRef("out"), index=Const(0), below=Const(4)), "read")
        with b.elect():
            b.op(ops.BulkS2G(array=ArrayRef(written), coords=(Const(0),), tile=b.ref(0), nbytes=BYTES))
            b.commit()
            b.wait_group(0)
        if rule:
            refused(b, rule, "read")
        else:
            accepted(b)


def test_indices_of_a_loop_that_nobody_comes_into_are_looked_at() -> None:
    for shape, stop in (((N,), 0), ((N, 1), 0), ((N, 1), 1)):
        b = Builder()
        b.array("table", shape=shape, dtype="i32")
        b.grid = (1, 1, 1)
        with b.loop(stop) as i:
            b.op(ops.LoadIndex(name="read", array=ArrayRef("table"), index=i, below=Const(4)), "read")
        if len(shape) > 1:
            refused(b, "OX3087", "read")
        else:
            accepted(b)
