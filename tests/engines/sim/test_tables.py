"""Copies through entries of tables: the entry is chosen when the copy is issued, and beside the table the hardware faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.sim import explore
from oxidecopy.errors import DeviceFaultError, ExecutionError

DEV = ox.Device.open("sim")
Table = ox.DescriptorTable[ox.i32, ox.D2]
List = ox.GlobalArray[ox.i32, ox.D1]
SHAPES = ((16, 8), (5, 24), (40, 4))


def arrays() -> list[Any]:
    return [DEV.array(np.arange(r * c, dtype=np.int32).reshape(r, c) + 1000 * i, ox.i32, pad=True) for i, (r, c) in enumerate(SHAPES)]


def table(of: list[Any]) -> Table:
    return ox.DescriptorTable([ox.TmaDescriptor.tiled(a, box=(8, 8)) for a in of])


@ox.pipeline(threads=32)
def move(cta: ox.Cta, src: Table, dst: Table, which: List, add: bool) -> None:
    tile, full = cta.shared(src[0]), cta.barriers(1).init(1)
    with cta.elect() as leader:
        for k in cta.range(4):
            i = cta.load_index(which, k, below=len(src))
            token = full[0].arrive_expect_tx(leader, tile.nbytes)
            src[i].g2s(leader, tile, (0, 0), token)
            full[0].wait_phase(k)
            if add:
                dst[k % 2].reduce(ox.reduce.add, leader, tile, (0, 0))
            else:
                dst[k].s2g(leader, tile, (0, 0))
            leader.commit_group()
            leader.wait_group(0)


@pytest.mark.parametrize("name", ["sim", "sim-fast"])
def test_each_copy_takes_its_entry(name: str) -> None:
    dev = ox.Device.open(name)
    which = np.array([2, 0, 0, 1], np.int32)
    xs = [np.arange(r * c, dtype=np.int32).reshape(r, c) + 1000 * i for i, (r, c) in enumerate(SHAPES)]
    src = ox.DescriptorTable([ox.TmaDescriptor.tiled(dev.array(x, ox.i32, pad=True), box=(8, 8)) for x in xs])
    outs = [dev.zeros(shape, ox.i32) for shape in ((8, 8), (4, 8), (8, 12), (16, 4))]
    dst = ox.DescriptorTable([ox.TmaDescriptor.tiled(out, box=(8, 8)) for out in outs])
    move[1](src, dst, dev.array(which, ox.i32), False)
    for out, i in zip(outs, which, strict=True):
        wanted = np.zeros(out.shape, np.int32)
        (r, c), box = np.minimum(np.minimum(out.shape, SHAPES[i]), 8), xs[i]
        wanted[:r, :c] = box[:r, :c]
        assert (out.numpy() == wanted).all()


def test_reductions_take_their_entry() -> None:
    which = np.array([0, 1, 0, 1], np.int32)
    outs = [DEV.zeros((8, 8), ox.i32) for _ in range(2)]
    dst = ox.DescriptorTable([ox.TmaDescriptor.tiled(out, box=(8, 8)) for out in outs])
    of = arrays()
    move[1](table(of), dst, DEV.array(which, ox.i32), True)
    for out, a in zip(outs, of, strict=False):
        box = a.numpy()[:8, :8]
        assert (out.numpy()[: len(box)] == 2 * box).all()


def test_what_is_read_is_below_the_bound() -> None:
    of = arrays()
    outs = [DEV.zeros((8, 8), ox.i32) for _ in range(4)]
    dst = ox.DescriptorTable([ox.TmaDescriptor.tiled(out, box=(8, 8)) for out in outs])
    with pytest.raises(ExecutionError) as caught:
        move[1](table(of), dst, DEV.array(np.array([0, 3, 0, 0], np.int32), ox.i32), False)
    assert "below 3" in str(caught.value) or "0 to 2" in str(caught.value)


@pytest.mark.parametrize("way", ["load", "store"])
def test_beside_the_table_the_hardware_faults(way: str) -> None:
    @ox.pipeline(threads=32)
    def beside(cta: ox.Cta, src: Table, way: str) -> None:
        tile, full = cta.shared(src[0]), cta.barrier().init(1)
        i = cta.block_idx.x * 2
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src[i if way == "load" else 0].g2s(leader, tile, (0, 0), token)
            full.wait_phase(0)
            if way == "store":
                src[i].s2g(leader, tile, (0, 0))

    good, broken = (beside[blocks].bind(table(arrays()), way) for blocks in (2, 3))
    explore(good.program, good.bindings, hazards=False).check()
    found = explore(broken.program, broken.bindings, hazards=False)
    assert (found.outcome, found.code) == ("fault", 715)
    assert found.diagnostics[0].got == "entry 4 of 'src'"
    with pytest.raises(DeviceFaultError):
        found.check()
