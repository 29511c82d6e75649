"""Copies through entries of tables: every entry that an index can name is there, and every one is right for the copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import VerificationError
from oxidecopy.program.program import Launch, Program
from oxidecopy.verify import inspect

DEV = ox.Device.open("sim")
Table = ox.DescriptorTable[ox.f32, ox.D2]
List = ox.GlobalArray[ox.i32, ox.D1]


def table(*shapes: tuple[int, int], pad: bool = True) -> Table:
    arrays = [DEV.array(np.ones(shape, np.float32), ox.f32, pad=pad) for shape in shapes]
    return ox.DescriptorTable([ox.TmaDescriptor.tiled(a, box=(8, 8)) for a in arrays])


THREE = table((16, 8), (8, 24), (40, 8))


@ox.pipeline(threads=32)
def by_block(cta: ox.Cta, src: Table, shift: int) -> None:
    tile, full = cta.shared(src[0]), cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[cta.block_idx.x + shift].g2s(leader, tile, (0, 0), token)
    full.wait(token)


@ox.pipeline(threads=32)
def by_counter(cta: ox.Cta, src: Table, n: ox.Idx, guard: int) -> None:
    tile, full = cta.shared(src[0]), cta.barriers(1).init(1)
    for i in cta.range(n):
        with cta.elect() as leader, cta.when(i < guard):
            token = full[0].arrive_expect_tx(leader, tile.nbytes)
            src[i].g2s(leader, tile, (0, 0), token)
            full[0].wait_phase(i)


@ox.pipeline(threads=32)
def by_argument(cta: ox.Cta, src: Table, n: ox.Idx) -> None:
    tile, full = cta.shared(src[0]), cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[n].g2s(leader, tile, (0, 0), token)
    full.wait(token)


@ox.pipeline(threads=32)
def by_list(cta: ox.Cta, src: Table, which: List, below: ox.Idx) -> None:
    tile, full = cta.shared(src[0]), cta.barrier().init(1)
    i = cta.load_index(which, cta.block_idx.x, below=below)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[i].g2s(leader, tile, (0, 0), token)
    full.wait(token)


WHICH = DEV.array(np.zeros(4, np.int32), ox.i32)


@pytest.mark.parametrize(
    ("good", "broken", "got"),
    [
        (by_block[3].bind(THREE, 0), by_block[4].bind(THREE, 0), "entries 0 to 3"),
        (by_block[2].bind(THREE, 1), by_block[2].bind(THREE, -1), "entries -1 to 0"),
        (by_counter[1].bind(THREE, 3, 9), by_counter[1].bind(THREE, 4, 9), "entry 3"),
        (by_counter[1].bind(THREE, 9, 3), by_counter[1].bind(THREE, 9, 4), "entry 3"),
        (by_counter[1].bind(THREE, 1000, 3), by_counter[1].bind(THREE, 1000, 999), "entry 3"),
        (by_argument[1].bind(THREE, 2), by_argument[1].bind(THREE, 3), "entry 3"),
        (by_argument[1].bind(THREE, 0), by_argument[1].bind(THREE, -1), "entry -1"),
        (by_list[4].bind(THREE, WHICH, 3), by_list[4].bind(THREE, WHICH, 4), "entries 0 to 3"),
    ],
)
def test_every_entry_is_in_the_table(good: ox.BoundLaunch, broken: ox.BoundLaunch, got: str) -> None:
    good.verify()
    with pytest.raises(VerificationError) as caught:
        broken.verify()
    (found,) = caught.value.diagnostics
    assert (found.rule, found.got, found.required) == ("OX3089", got, "0 to 2")
    assert "below=len(src)" in found.fix
    assert found.site is not None
    assert found.site.function == broken.program.name


def test_two_copies_with_one_coordinate_are_two_copies() -> None:
    """In iterations that are skipped, as they repeat earlier ones, each is judged for itself: the first copy is wrong in one of them."""

    @ox.pipeline(threads=32)
    def pipe(cta: ox.Cta, src: Table, peak: int) -> None:
        tiles, full = cta.shared(src[0], stages=2), cta.barriers(1).init(1)
        with cta.elect() as leader:
            for i in cta.range(500):
                at = (i * 8, 0)
                token = full[0].arrive_expect_tx(leader, 2 * tiles[0].nbytes)
                src[ox.maximum(0, ox.minimum(i - 200 + peak, 200 + peak - i))].g2s(leader, tiles[0], at, token)
                with cta.when(i < 400):
                    src[i % 3 + i // 400].g2s(leader, tiles[1], at, token)
                with cta.when(i >= 400):
                    src[0].g2s(leader, tiles[1], at, token)
                full[0].wait_phase(i)

    pipe[1].bind(THREE, 2).verify()
    with pytest.raises(VerificationError) as caught:
        pipe[1].bind(THREE, 3).verify()
    assert caught.value.rules == ("OX3089",)


# ---- what differs from entry to entry
@ox.pipeline(threads=32)
def store(cta: ox.Cta, dst: Table, entries: int) -> None:
    tile = cta.shared(dst[0])
    cta.fill(tile, 1)
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        dst[ox.minimum(cta.block_idx.x, entries - 1)].s2g(leader, tile, (0, 0))
        leader.commit_group()
        leader.wait_group(0)


def test_rows_that_are_written_behind_are_those_of_entries_that_can_be_named() -> None:
    """The second entry's rows of 28 bytes follow each other 32 bytes apart, the third's with 16 bytes more in between."""
    wide = DEV.zeros((8, 12), ox.f32)
    narrow = ox.GlobalArray(dtype=ox.f32, shape=(8, 7), strides_bytes=wide.strides_bytes, buffer=wide.buffer, device=wide.device)
    mixed = ox.DescriptorTable([*table((8, 8), (8, 7)), ox.TmaDescriptor.tiled(narrow, box=(8, 8))])
    assert store[2].bind(mixed, 2).verify().warnings == ()
    (warning,) = store[3].bind(mixed, 3).verify().warnings
    assert warning.rule == "OX3103"
    assert "dst[2]" in warning.what


def test_trips_follow_the_extents_of_each_entry() -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
    def ragged(cta: ox.Cta, src: Table, dst: Table, more: int) -> None:
        i = cta.block_idx.x
        ring = cta.ring(stages=2, tiles=(src[0],))
        steps = (src[i].shape[0] + 7) // 8
        with cta.producer() as leader:
            for y in cta.range(steps):
                with ring.produce(leader) as (slot,):
                    slot.load(src[i], (y * 8, 0))
        with cta.storer() as leader:
            for y in cta.range((dst[i].shape[0] + 7) // 8 + more):
                ring.forward(leader, dst[i], (y * 8, 0))

    ragged[3].bind(THREE, table((16, 8), (8, 24), (40, 8)), 0).verify()
    for dst, more in ((table((16, 8), (8, 24), (48, 8)), 0), (table((16, 8), (8, 24), (40, 8)), 1)):
        with pytest.raises(VerificationError) as caught:
            ragged[3].bind(THREE, dst, more).verify()
        assert "OX3012" in caught.value.rules


# ---- what is bound
def changed(launch: Launch, name: str, **fields: Any) -> Launch:
    return replace(launch, maps=tuple((n, replace(m, **fields) if n == name else m) for n, m in launch.maps))


def test_each_entry_is_bound_to_what_was_recorded() -> None:
    bound = by_block[3].bind(THREE, 0)
    program: Program = bound.program
    assert inspect(program, bound.launch).ok
    for broken in (
        changed(bound.launch, "src[1]", box_dim=(4, 8)),
        changed(bound.launch, "src[2]", dtype="i32"),
        replace(bound.launch, maps=bound.launch.maps[:-1]),
    ):
        (found,) = inspect(program, broken).violations
        assert found.rule == "OX3076"
        assert "src[" in found.what
