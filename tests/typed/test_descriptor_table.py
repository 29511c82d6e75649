"""Tables of descriptors: what may be in one, what an index may be, and what an entry is inside a pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import DescriptorError, Diagnostic, OxidecopyError, ScopeError, ShapeError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const, Sym, SymKind
from oxidecopy.isa.limits import TABLE_ENTRIES_MAX
from oxidecopy.isa.ops import MapRef
from oxidecopy.program.program import ArrayParam, MapParam, Program
from tests.helpers.recordings import recorded, refused

DEV = ox.Device.open("sim")
OTHER = ox.Device.open("sim")
SRC = MapParam(name="src", dtype="f32", box_dim=(64, 32), element_strides=(1, 1), entries=3)
DST = replace(SRC, name="dst")
ROWS = ArrayParam(name="rows", dtype="i32", rank=1)


def desc(shape: tuple[int, ...] = (40, 24), *, dev: ox.Device = DEV, dtype: Any = ox.f32, **given: Any) -> Any:
    a: Any = dev.empty(shape, dtype)
    return ox.TmaDescriptor.tiled(a, **{"box": (8, 8), **given})


def wrong(error: type[OxidecopyError], make: Any) -> tuple[Diagnostic, ...]:
    with pytest.raises(error) as caught:
        make()
    assert type(caught.value) is error
    assert all(d.fix and d.site is not None and d.site.file == __file__ for d in caught.value.diagnostics)
    return caught.value.diagnostics


# ---- on the host
def test_entries_may_differ_in_what_only_the_launch_knows() -> None:
    padded = ox.TmaDescriptor.tiled(DEV.array(np.ones((5, 3), np.float32), pad=True), box=(8, 8), l2_promotion=256)
    table = ox.DescriptorTable([desc(), desc((8, 8)), padded])
    assert len(table) == 3
    assert table.entries == tuple(table)
    assert table[2] is padded
    assert repr(table) == "DescriptorTable(3 entries of f32, box (8, 8), swizzle none)"


def test_every_difference_is_told_at_once() -> None:
    others = [desc(box=(16, 8)), desc(swizzle=ox.Swizzle32B), desc(dtype=ox.i32), desc((2, 40, 24), box=(1, 8, 8))]
    others += [desc(element_strides=(2, 1)), desc(oob_fill="nan"), desc(dev=OTHER)]
    found = wrong(DescriptorError, lambda: ox.DescriptorTable([desc(), *others]))
    assert [d.rule for d in found] == ["OX2031"] * 6 + ["OX2032"]
    words = ("dtype", "rank", "box_dim", "element_strides", "swizzle", "oob_fill")
    for d, name in zip(found, words, strict=False):
        assert d.what.endswith(f"in {name}")
    assert found[2].what == "entries 1, 4 of a table differ in box_dim"
    assert found[2].got == "(16, 8), (1, 8, 8)"
    assert found[2].required.startswith("(8, 8), as of the others")


def test_many_differences_are_counted() -> None:
    (found,) = wrong(DescriptorError, lambda: ox.DescriptorTable([desc(), *(desc(box=(16, 8)) for _ in range(9))]))
    assert found.what == "entries 1, 2, 3, 4 and 5 more of a table differ in box_dim"
    assert found.got == "(16, 8)"


@pytest.mark.parametrize("given", [[], 3, None, [desc()] * (TABLE_ENTRIES_MAX + 1), [desc(), 3], [desc(), DEV.empty((8, 8), ox.f32)], [3]])
def test_what_makes_no_table(given: Any) -> None:
    (found,) = wrong(DescriptorError, lambda: ox.DescriptorTable(given))
    assert found.rule == "OX2030"


def test_the_largest_table() -> None:
    assert len(ox.DescriptorTable([desc()] * TABLE_ENTRIES_MAX)) == TABLE_ENTRIES_MAX


@pytest.mark.parametrize("i", [-1, 2, True, 0.0, "0", None])
def test_entries_are_counted_from_0(i: Any) -> None:
    table = ox.DescriptorTable([desc(), desc()])
    for use in (lambda: table[i], lambda: table.update(i, desc())):
        (found,) = wrong(ShapeError, use)
        assert found.rule == "OX1150"
    assert table[np.int64(1)] is table.entries[1]  # type: ignore[index]  # numpy's integers are welcome at run time


def test_an_update_is_held_against_the_others() -> None:
    table = ox.DescriptorTable([desc(), desc()])
    new = desc((8, 8))
    table.update(0, new)
    assert table[0] is new
    (found,) = wrong(DescriptorError, lambda: table.update(1, desc(box=(16, 8))))
    assert (found.rule, found.what) == ("OX2031", "entry 1 of a table differs in box_dim")
    (found,) = wrong(DescriptorError, lambda: table.update(1, desc(dev=OTHER)))
    assert found.rule == "OX2032"
    found, *_ = wrong(DescriptorError, lambda: table.update(1, None))  # type: ignore[arg-type]  # the mistake
    assert found.rule == "OX2030"
    assert table.entries == (new, table[1])


def test_even_a_single_entry_keeps_its_kind() -> None:
    table = ox.DescriptorTable([desc()])
    (found,) = wrong(DescriptorError, lambda: table.update(0, desc(dtype=ox.i32)))
    assert found.rule == "OX2031"


# ---- in a pipeline
def refs(program: Program) -> list[MapRef]:
    return [ref for step in program.walk() if (ref := getattr(step.op, "map", None)) is not None]


def test_an_index_may_be_any_recorded_integer() -> None:
    def pipe(cta: ox.Cta, src: Any, dst: Any, rows: Any, n: ox.Idx) -> None:
        assert len(src) == 3
        tile, full = cta.shared(src[0]), cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            for i in (1, cta.block_idx.x, n, cta.load_index(rows, 0, below=len(src))):
                src[i].g2s(leader, tile, (0, 0), token)
            for k in cta.range(2):
                dst[k].s2g(leader, tile, (0, 0))
                dst[k + 1].reduce(ox.reduce.add, leader, tile, (0, 0))

    program = recorded(pipe, src=SRC, dst=DST, rows=ROWS)
    wanted = [
        ("src", Const(1)),
        ("src", Sym("block_idx.x", SymKind.BLOCK)),
        ("src", Sym("n", SymKind.PARAM)),
        ("src", Sym("read", SymKind.OPAQUE)),
    ]
    found = [(ref.name, ref.index) for ref in refs(program)]
    assert found[:4] == wanted
    assert [name for name, _ in found[4:]] == ["dst", "dst"]


def test_a_table_is_recorded_for_its_number_of_entries() -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        for entry in src:
            cta.shared(entry)

    assert len(recorded(pipe, src=SRC).tiles) == 3
    assert recorded(pipe, src=SRC) != recorded(pipe, src=replace(SRC, entries=4))


@pytest.mark.parametrize("i", [-1, 3])
def test_plain_indices_are_checked_at_once(i: int) -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        cta.shared(src[i])  # here

    refused(pipe, "OX1150", src=SRC)


def test_an_index_is_an_integer() -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        cta.shared(src[0.5])  # here

    refused(pipe, "OX1029", src=SRC)


def test_a_counter_stays_in_its_loop() -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        tile, full = cta.shared(src[0]), cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            late = src[0]
            for k in cta.range(2):
                late = src[k]
            late.g2s(leader, tile, (0, 0), token)  # here

    refused(pipe, "OX1068", src=SRC)


def test_what_a_pipeline_does_not_know() -> None:
    def entries(cta: ox.Cta, src: Any) -> None:
        cta.shared(src.entries[0])  # here

    def update(cta: ox.Cta, src: Any) -> None:
        src.update(0, src[1])  # here

    def host(cta: ox.Cta, src: Any) -> None:
        ox.DescriptorTable([src[0]])  # here

    def captured(cta: ox.Cta, n: Any) -> None:
        cta.shared(ox.DescriptorTable([desc()])[n])  # here

    for pipe, rule in ((entries, "OX1060"), (update, "OX1060"), (host, "OX2030"), (captured, "OX1019")):
        refused(pipe, rule, src=SRC)


def test_a_table_knows_its_name() -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        assert repr(src) == "DescriptorTable('src', 3 entries)"
        assert src[1]._recorded("g2s")[2] == "`g2s` of an entry of 'src'"

    recorded(pipe, src=SRC)


# ---- with what is built on descriptors
def test_rings_load_forward_and_stage_entries() -> None:
    def pipe(cta: Any, src: Any, dst: Any) -> None:
        i = cta.block_idx.x
        ring = cta.ring(stages=2, tiles=(src[0],), consumers=1)
        with cta.elect() as leader, ring.produce(leader) as (slot,):
            slot.load(src[i], (0, 0))
        with cta.thread(1) as storer:
            ring.forward(storer, dst[i + 1], (0, 0))

    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def staged(cta: ox.Cta, dst: ox.DescriptorTable[ox.f32, ox.D2]) -> None:
        outs = cta.store_ring(dst[cta.block_idx.x], stages=2)
        with cta.producer():
            pass
        with cta.consumers() as group, outs.put(group, (0, 0)) as out:
            cta.fill(out, 1)

    from oxidecopy.tiles.cta import Cta
    from oxidecopy.typed.recording import record

    program = record(pipe, threads=64, cluster=None, arguments={"src": SRC, "dst": DST}, cta=Cta)
    x = Sym("block_idx.x", SymKind.BLOCK)
    assert next(ref.index for ref in refs(program)) == x
    assert {ref.name for ref in refs(program)} == {"src", "dst"}
    bound = staged[2].bind(ox.DescriptorTable([desc(), desc()]))
    assert refs(bound.program) == [MapRef("dst", x)]


def test_slices_of_a_multicast_ring_come_from_one_entry() -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=(2, 1))
    def pipe(cta: ox.ClusterCta, src: ox.DescriptorTable[ox.f32, ox.D2], k: int) -> None:
        ring = cta.multicast_ring(stages=2, tiles=(src[0],))
        with cta.producer() as leader, ring.produce(leader) as (slot,):
            slot.load(src[cta.block_idx.x // k], (0, 0))
        with cta.consumers() as group, ring.consume(group):
            pass

    table = ox.DescriptorTable([desc(), desc()])
    pipe[2].bind(table, 2)
    with pytest.raises(ox.errors.ClusterError) as caught:
        pipe[2].bind(table, 1)
    assert caught.value.rule == "OX1147"


@pytest.mark.parametrize("use", ["tiles", "schedule"])
def test_boxes_of_an_entry_that_is_chosen_are_not_shared_out(use: str) -> None:
    def boxes(cta: Any, entry: Any) -> Any:
        return list(getattr(cta, use)(entry))

    @ox.pipeline(threads=32)
    def pipe(cta: ox.Cta, src: ox.DescriptorTable[ox.f32, ox.D2], fixed: bool) -> None:
        boxes(cta, src[1] if fixed else src[cta.block_idx.x])

    table = ox.DescriptorTable([desc(), desc()])
    program = pipe[2].bind(table, True).program
    (loop,) = [step.op for step in program.walk() if isinstance(step.op, ops.Loop)]
    assert "src[1].dim[0]" in str(loop.stop)
    with pytest.raises(ScopeError) as caught:
        pipe[2].bind(table, False)
    assert caught.value.rule == "OX1151"
