"""Stores of a whole launch: each refused program has a twin, one edit away, that is accepted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oxidecopy.isa import ops
from oxidecopy.isa.expr import FloorDiv, Mod, Sym, SymKind
from oxidecopy.isa.ops import MapRef
from oxidecopy.program.program import Launch, MapParam
from oxidecopy.verify import inspect, verify
from tests.helpers.programs import BX, BY, RANK, Builder, E, add, div, e, eq, lt, mod, mul
from tests.helpers.verdicts import Make, accepted, made, refused, report

ROWS, COLS = 64, 64


def staged(b: Builder, *names: str) -> None:
    """A tile that the async proxy may read, and maps of 256 x 256."""
    for name in names or ("dst",):
        b.map(name)
    b.tile()
    b.fill()
    b.fence()
    b.sync()


def put(b: Builder, coords: tuple[E, ...], name: str = "dst", tag: str = "store") -> None:
    b.s2g(coords, name=name, tag=tag)
    b.commit()


def same_row(b: Builder, broken: bool) -> None:
    """A coordinate that does not tell blocks apart."""
    staged(b)
    with b.elect():
        put(b, (0 if broken else mul(BX, ROWS), 0))
        b.wait_group()


def one_off(b: Builder, broken: bool) -> None:
    """Boxes that lap over by 16 columns."""
    staged(b)
    with b.elect():
        put(b, (0, mul(BX, COLS - 16 if broken else COLS)))
        b.wait_group()


def missing_axis(b: Builder, broken: bool) -> None:
    b.grid = (4, 2, 1)
    staged(b)
    with b.elect():
        put(b, (0 if broken else mul(BY, ROWS), mul(BX, COLS)))
        b.wait_group()


def rank_forgotten(b: Builder, broken: bool) -> None:
    b.cluster = (2, 1, 1)
    staged(b)
    with b.elect():
        put(b, (mul(div(BX, 2), ROWS), 0 if broken else mul(RANK, COLS)))
        b.wait_group()
    b.cluster_sync()


def two_ops(b: Builder, broken: bool) -> None:
    """Two stores at different lines, of neighbouring blocks."""
    b.grid = (2, 1, 1)
    staged(b)
    with b.elect():
        put(b, (mul(BX, ROWS), 0), tag="first")
        put(b, (mul(add(BX, 1 if broken else 2), ROWS), 0))
        b.wait_group()


def guarded(b: Builder, broken: bool) -> None:
    """A condition leaves one block only."""
    staged(b)
    with b.elect(), b.when(lt(BX, 2 if broken else 1)):
        put(b, (0, 0))
        b.wait_group()


def tile_order(b: Builder, broken: bool) -> None:
    """A persistent order in which the second round starts at the wrong tile."""
    staged(b)
    with b.elect(), b.loop(4) as i:
        tile = add(BX, mul(i, 3 if broken else 4))
        put(b, (mul(div(tile, 4), ROWS), mul(mod(tile, 4), COLS)))
        b.wait_group()


def plain(b: Builder, broken: bool) -> None:
    b.array()
    b.tile()
    b.fill()
    b.sync()
    b.store((mul(BX, ROWS - 1 if broken else ROWS), 0), tag="store")


def reduction_and_store(b: Builder, broken: bool) -> None:
    """Reductions may meet, a store among them may not."""
    staged(b)
    with b.elect():
        if broken:
            with b.when(lt(BX, 1)):
                put(b, (0, 0))
        b.reduce("add", (0, 0), name="dst")
        b.commit()
        b.wait_group()


def two_reductions(b: Builder, broken: bool) -> None:
    b.grid = (2, 1, 1)
    b.map("dst", dtype="i32")
    b.tile(dtype="i32")
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        b.reduce("add", (0, 0), name="dst")
        b.reduce("max" if broken else "add", (0, 0), name="dst", tag="store")
        b.commit()
        b.wait_group()


MEET: list[Make] = [
    same_row, one_off, missing_axis, rank_forgotten, two_ops, guarded, tile_order, plain, reduction_and_store, two_reductions,
]  # fmt: skip


SAID: dict[Make, str] = {
    reduction_and_store: "one CTA stores to elements of 'dst' that another one reduces into",
    two_reductions: "two CTAs reduce into the same elements of 'dst' by add and max",
}


@pytest.mark.parametrize("make", MEET, ids=lambda make: make.__name__)
def test_stores_of_two_blocks_meet(make: Make) -> None:
    found = refused(made(make, True), "OX3201", "" if make in (two_ops, reduction_and_store) else "store")
    assert "by blocks" in found.got
    assert found.what.startswith(SAID.get(make, "two CTAs store to the same elements of"))
    accepted(made(make, False))


# ---- one thread
def not_waited(b: Builder, broken: bool) -> None:
    b.grid = (1, 1, 1)
    staged(b)
    with b.elect():
        for tag in ("first", "store"):
            put(b, (0, 0), tag=tag)
            b.wait_read() if broken else b.wait_group()
        b.wait_group()


def loop_not_waited(b: Builder, broken: bool) -> None:
    """Every fourth turn comes back to a box whose store may be two groups behind."""
    b.grid = (1, 1, 1)
    staged(b)
    with b.elect():
        with b.loop(12) as i:
            put(b, (mul(mod(i, 4), ROWS), 0))
            b.wait_group(4 if broken else 3)
        b.wait_group()


def group_left_open(b: Builder, broken: bool) -> None:
    """The first store is in no group that the wait covers."""
    b.grid = (1, 1, 1)
    staged(b)
    with b.elect():
        b.s2g((0, 0), name="dst")
        if not broken:
            b.commit()
        b.wait_group()
        put(b, (0, 0))
        b.wait_group()


UNORDERED: list[Make] = [not_waited, loop_not_waited, group_left_open]


@pytest.mark.parametrize("make", UNORDERED, ids=lambda make: make.__name__)
def test_stores_of_one_thread_are_waited_for(make: Make) -> None:
    refused(made(make, True), "OX3202", "store")
    accepted(made(make, False))


def test_threads_that_store_the_same_elements_again_do_so_in_order() -> None:
    b = Builder()
    b.array()
    b.tile()
    b.fill()
    b.sync()
    for _ in range(2):
        b.store((mul(BX, ROWS), 0))
    assert [w.rule for w in report(b).warnings] == ["OX3106"]


@pytest.mark.parametrize("second", [ROWS, 1], ids=["the same elements by the same threads", "rows that others have stored"])
@pytest.mark.parametrize("sync", ["all", "none", "others"])
@pytest.mark.parametrize("looped", [False, True])
def test_plain_stores_to_one_place_are_ordered_by_a_sync(second: int, sync: str, looped: bool) -> None:
    """PTX: without one between them they are a race, unless each thread stores what it stored before."""
    b = Builder(grid=(1, 1, 1), threads=64)
    b.array("out", (2 * ROWS, 64))
    b.tile(shape=(ROWS, 64))
    b.fill()
    b.sync()
    with b.scope((0, 64)), b.loop(2) if looped else b.loop(1):
        b.store((0, 0))
        if sync == "all":
            b.sync(64, number=1)
        if sync == "others":
            with b.scope((0, 32)):
                b.sync(32, number=1)
        b.store((second % ROWS, 0))
        if sync == "all":
            b.sync(64, number=1)
    undecided = second == 1 and sync != "all"
    accepted(b, *(["OX3107"] if undecided else []), "OX3106")


def test_stores_of_two_threads_to_one_place_are_not_decided() -> None:
    b = Builder(grid=(1, 1, 1))
    staged(b)
    for thread in (0, 32):
        with b.elect(thread):
            put(b, (0, 0))
            b.wait_group()
        b.sync()
    accepted(b, "OX3107", "OX3106")


# ---- CTAs of one cluster
def in_turns(b: Builder, sync: bool) -> None:
    """The CTAs of a cluster store to one place, one after the other."""
    b.grid, b.cluster = (2, 1, 1), (2, 1, 1)
    staged(b)
    for rank in range(2):
        with b.elect(), b.when(eq(RANK, rank)):
            put(b, (0, 0))
            b.wait_group()
        if sync:
            b.cluster_sync()
    if not sync:
        b.cluster_sync()


def test_syncs_of_a_cluster_may_order_its_stores() -> None:
    b = Builder()
    in_turns(b, sync=True)
    accepted(b, "OX3107", "OX3106")
    b = Builder()
    in_turns(b, sync=False)
    refused(b, "OX3201")


def in_rounds(b: Builder, row: E) -> None:
    """Stores in a loop, each round ending with a sync of the cluster."""
    b.grid, b.cluster = (2, 1, 1), (2, 1, 1)
    staged(b)
    with b.loop(2) as i:
        with b.elect():
            put(b, (mul(mod(add(i, row), 2), ROWS), 0), tag="store")
            b.wait_group()
        b.cluster_sync()


def test_ctas_that_do_the_same_are_never_in_turn() -> None:
    """Another one's store of the round before is behind a sync, its store of this round is not."""
    b = Builder()
    in_rounds(b, RANK)
    accepted(b, "OX3107", "OX3106")
    b = Builder()
    in_rounds(b, 0)
    refused(b, "OX3201", "store")


def handed_on(b: Builder, multicast: bool, writer: int = 1) -> None:
    """CTA 0 loads a tile for both, or each its own; CTA `writer` stores to where CTA 0 has loaded from."""
    b.grid, b.cluster = (2, 1, 1), (2, 1, 1)
    b.map("buf")
    b.tile()
    b.bar()
    b.init()
    b.cluster_sync()
    with b.elect():
        token = b.arm(ROWS * COLS * 4)
        if multicast:
            with b.when(eq(RANK, 0)):
                b.multicast(3, name="buf")
        else:
            b.g2s((mul(RANK, ROWS), 0), name="buf", tag="load")
        b.wait(token)
        with b.when(eq(RANK, writer)):
            put(b, (0, 0), name="buf")
        b.wait_group()
    b.cluster_sync()


def test_a_multicast_tells_other_ctas_that_it_has_loaded() -> None:
    b = Builder()
    handed_on(b, multicast=True)
    accepted(b, "OX3106", "OX3107")
    b = Builder()
    handed_on(b, multicast=False)
    refused(b, "OX3203", "load")


def test_who_multicasts_loads_for_the_others_too() -> None:
    """Its own tile may be there, and its own store under way, while another CTA still waits for what was there before."""
    b = Builder()
    handed_on(b, multicast=True, writer=0)
    accepted(b, "OX3106", "OX3107")
    b = Builder()
    handed_on(b, multicast=False, writer=0)
    accepted(b, "OX3106")


# ---- what is no box of elements
@pytest.mark.parametrize("scattered", [True, False])
def test_what_is_no_box_is_not_decided(scattered: bool) -> None:
    """A scatter of four rows; of memory that another parameter shares, it is a store like any other one."""
    b = Builder(grid=(2, 1, 1))
    b.sm = 100
    b.map("dst", box=(1, 16), dims=(64, 64))
    b.map("src", box=(1, 16), dims=(64, 64))
    b.tile(shape=(4 if scattered else 1, 16))
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        if scattered:
            b.op(ops.TensorScatter4(map=MapRef("dst"), tile=b.ref(0), coords=tuple(map(e, (5, 6, 7, 8, 16)))))
        else:
            b.s2g((BX, 0), name="dst")
        b.commit()
        b.wait_group()
    accepted(b, *(["OX3107"] if scattered else []))
    found = inspect(b.program(), replace(b.launch(), overlapping=(("dst", "src"),)))
    assert [d.rule for d in found.violations] == ["OX3204"]


# ---- loads of what is stored
def in_place(b: Builder, row: E) -> None:
    b.map("buf")
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(ROWS * COLS * 4)
        b.g2s((row, 0), name="buf", tag="load")
        b.wait(token)
        put(b, (mul(BX, ROWS), 0), name="buf")
        b.wait_group()


@pytest.mark.parametrize("row", [mul(mod(add(BX, 1), 4), ROWS), add(mul(BX, ROWS), 16), add(mul(BX, ROWS), -1)])
def test_a_block_loads_what_another_one_stores(row: E) -> None:
    b = Builder()
    in_place(b, row)
    refused(b, "OX3203", "load")
    b = Builder()
    in_place(b, mul(BX, ROWS))
    accepted(b)


@pytest.mark.parametrize(
    ("grid", "cluster"), [((2, 1, 1), (1, 1, 1)), ((2, 2, 1), (1, 2, 1)), ((2, 2, 1), (2, 1, 1)), ((2, 1, 1), (2, 1, 1))]
)
@pytest.mark.parametrize("broken", [True, False])
def test_reductions_of_several_blocks_to_what_one_loads(grid: tuple[int, int, int], cluster: tuple[int, int, int], broken: bool) -> None:
    """Any number of them may meet, but to the block that loads there all but its own are of others, be it the first or the last one."""
    b = Builder(grid=grid, cluster=cluster)
    b.map("buf", dims=(512, 64))
    b.tile()
    b.bar()
    b.init()
    block = add(BX, mul(BY, 2))
    with b.elect():
        token = b.arm(ROWS * COLS * 4)
        b.g2s((mul(add(block, 0 if broken else 1), ROWS), 0), name="buf", tag="load")
        b.wait(token)
        b.reduce("add", (0, 0), name="buf")
        b.commit()
        b.wait_group()
    if broken:
        refused(b, "OX3203", "load")
    else:
        accepted(b)


@pytest.mark.parametrize("off", [0, ROWS])
def test_work_in_place_is_proven_for_any_number_of_blocks(off: int) -> None:
    b = Builder(grid=(1 << 19, 1, 1))
    b.map("buf", dims=(1 << 25, COLS))
    b.tile()
    b.bar()
    b.init()
    with b.elect(), b.loop(1) as i:
        token = b.arm(ROWS * COLS * 4)
        b.g2s((add(mul(add(BX, mul(i, 1 << 19)), ROWS), off), 0), name="buf")
        b.wait(token)
    with b.elect(), b.loop(1) as i:
        put(b, (mul(add(BX, mul(i, 1 << 19)), ROWS), 0), name="buf")
        b.wait_group()
    accepted(b, *(["OX3107"] if off else []))


def copying(*, same: bool = False, overlapping: bool = False) -> tuple[Builder, Launch]:
    """From one map to another one, a block further."""
    b = Builder(grid=(2, 1, 1))
    b.map("src")
    b.map("dst")
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(ROWS * COLS * 4)
        b.g2s((mul(BX, ROWS), 0), tag="load")
        b.wait(token)
        put(b, (mul(add(BX, 1), ROWS), 0))
        b.wait_group()
    pair = ("dst", "src")
    return b, replace(b.launch(), same=(pair,) if same else (), overlapping=(pair,) if overlapping else ())


def test_parameters_over_one_view_are_one_tensor() -> None:
    b, launch = copying(same=True)
    assert [d.rule for d in inspect(b.program(), launch).violations] == ["OX3203"]
    b, launch = copying()
    assert inspect(b.program(), launch).ok


def test_an_output_that_shares_memory_otherwise_is_refused() -> None:
    b, launch = copying(overlapping=True)
    assert [d.rule for d in inspect(b.program(), launch).violations] == ["OX3204"]


def test_inputs_may_share_memory() -> None:
    b = Builder()
    b.map("src")
    b.map("other")
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(ROWS * COLS * 4)
        b.g2s()
        b.wait(token)
    launch = replace(b.launch(), overlapping=(("other", "src"),))
    assert inspect(b.program(), launch).ok


# ---- coverage
def test_a_block_too_few_is_a_warning_with_the_region() -> None:
    for blocks, missing in ((4, ""), (3, "nothing for elements [192:250, 0:64]")):
        b = Builder(grid=(blocks, 1, 1))
        b.map("dst", dims=(250, 64))
        b.tile()
        b.fill()
        b.fence()
        b.sync()
        with b.elect():
            put(b, (mul(BX, ROWS), 0))
            b.wait_group()
        assert [w.got for w in report(b).warnings] == ([missing] if missing else [])


def test_a_hole_in_the_middle_is_found() -> None:
    b = Builder(grid=(4, 1, 1))
    staged(b)
    with b.elect(), b.loop(4) as i, b.when(lt(0, add(mul(BX, 4), add(i, -9)))):
        put(b, (mul(BX, ROWS), mul(i, COLS)))
        b.wait_group()
    (warning,) = report(b).warnings
    assert warning.got == "nothing for some of elements [0:192, 0:256]"


def test_sums_need_not_go_everywhere() -> None:
    b = Builder(grid=(2, 1, 1))
    staged(b)
    with b.elect():
        b.reduce("add", (0, 0), name="dst")
        b.commit()
        b.wait_group()
    assert report(b).warnings == ()


# ---- what is not decided
def test_too_many_boxes_need_a_proof() -> None:
    """A grid of 2^20 blocks: fine where the coordinates show it, a warning where they do not."""
    for row, rules in ((mul(BX, 8), []), (mul(mod(mul(BX, 3), 1 << 20), 8), ["OX3107"])):
        b = Builder(grid=(1 << 20, 1, 1))
        b.map("dst", box=(8, 16), dims=(1 << 23, 16))
        b.tile(shape=(8, 16))
        b.fill()
        b.fence()
        b.sync()
        with b.elect():
            put(b, (row, 0))
            b.wait_group()
        accepted(b, *rules)


def test_numbers_beyond_64_bits_are_not_counted() -> None:
    """What wraps around must not be taken for a place inside."""
    b = Builder(grid=(4, 1, 1))
    b.array()
    b.tile()
    b.fill()
    b.sync()
    b.store((mul(mod(BX, 2), 1 << 64), 0))
    accepted(b, "OX3107")


def test_rows_that_memory_chooses_are_not_decided() -> None:
    b = Builder(grid=(4, 1, 1))
    b.array("rows", (4,), "i32")
    staged(b)
    with b.elect():
        b.op(ops.LoadIndex(name="row", array=ops.ArrayRef("rows"), index=BX, below=e(4)))
        put(b, (mul(Sym("row", SymKind.OPAQUE), ROWS), 0))
        b.wait_group()
    accepted(b, "OX3107")


# ---- tables
def test_entries_of_a_table_are_tensors_of_their_own() -> None:
    b = Builder(grid=(2, 1, 1))
    for name in ("dst[0]", "dst[1]"):
        b.map(name)
    b.params[:] = [MapParam(name="dst", dtype="f32", box_dim=(64, 64), element_strides=(1, 1), entries=2)]
    b.tile()
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        b.op(ops.TensorS2G(map=MapRef("dst", BX), tile=b.ref(0), coords=(e(0), e(0))))
        b.commit()
        b.wait_group()
    assert verify(b.program(), b.launch()).warnings == ()
    for shared in ({"same": (("dst[0]", "dst[1]"),)}, {"overlapping": (("dst[0]", "dst[1]"),)}):
        found = inspect(b.program(), replace(b.launch(), **shared)).violations  # type: ignore[arg-type]  # one of two fields
        assert [d.rule for d in found] == ["OX3204"]


@pytest.mark.parametrize(("entry", "rules"), [(BX, []), (mod(add(BX, 1), 2), ["OX3203"])])
def test_tables_with_the_same_views_are_one_tensor(entry: E, rules: list[str]) -> None:
    """Work in place on a list of matrices."""
    b = Builder(grid=(2, 1, 1))
    for name in ("src[0]", "src[1]", "dst[0]", "dst[1]"):
        b.map(name, dims=(64, 64))
    b.params[:] = [MapParam(name=name, dtype="f32", box_dim=(64, 64), element_strides=(1, 1), entries=2) for name in ("src", "dst")]
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(64 * 64 * 4)
        b.op(ops.TensorG2S(map=MapRef("src", BX), tile=b.ref(0), coords=(e(0), e(0)), bar=ops.BarrierRef(0, e(0))))
        b.wait(token)
        b.op(ops.TensorS2G(map=MapRef("dst", e(entry)), tile=b.ref(0), coords=(e(0), e(0))))
        b.commit()
        b.wait_group()
    crossed = (("dst[0]", "src[1]"), ("dst[1]", "src[0]"))
    for same, found in (((("dst[0]", "src[0]"), ("dst[1]", "src[1]")), rules), (crossed, ["OX3204", "OX3204"])):
        assert [d.rule for d in inspect(b.program(), replace(b.launch(), same=same)).violations] == found


def test_quotient_and_remainder_are_kept_apart() -> None:
    """Column by column instead of row by row: other nodes, the same proof."""
    b = Builder(grid=(16, 1, 1))
    staged(b)
    with b.elect():
        put(b, (mul(Mod(BX, e(4)), ROWS), mul(FloorDiv(BX, e(4)), COLS)))
        b.wait_group()
    accepted(b)
