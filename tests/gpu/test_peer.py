"""Memory of one GPU in pipelines of another one, both ways."""

from __future__ import annotations

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import DeviceError
from oxidecopy.host.device import Device

pytestmark = pytest.mark.gpu
MiB = 1 << 20


@pytest.fixture
def other(dev: Device) -> Device:
    try:
        return ox.Device.open("cuda:1")
    except DeviceError as problem:
        pytest.skip(f"no second GPU beside {dev.name}: {problem.diagnostics[0].got}")


@ox.pipeline(threads=32)
def copy(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for at in cta.tiles(src, order=ox.order.once):
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
            full.wait(token)
            dst.s2g(leader, tile, at)
            leader.commit_group()
            leader.wait_group(0)


def box(a: ox.GlobalArray[ox.f32, ox.D2]) -> ox.TmaDescriptor[ox.f32, ox.D2]:
    return ox.TmaDescriptor.tiled(a, box=(16, 64))


def test_loads_and_stores_across(dev: Device, other: Device) -> None:
    x = np.random.default_rng(0).standard_normal((256, 1024)).astype(np.float32)
    theirs, mine, back = other.array(x), dev.empty((256, 1024), ox.f32), other.zeros((256, 1024), ox.f32)
    copy[16 * 16](box(dev.peer(theirs)), box(mine))
    assert np.array_equal(mine.numpy(), x)
    copy[16 * 16](box(mine), box(dev.peer(back)))
    assert np.array_equal(back.numpy(), x)


def test_streams_of_both_order_each_other(dev: Device, other: Device) -> None:
    x = np.random.default_rng(1).standard_normal((4096, 4096)).astype(np.float32)
    source, middle, out = other.array(x), other.zeros((4096, 4096), ox.f32), dev.zeros((4096, 4096), ox.f32)
    here, there = ox.Stream(dev), ox.Stream(other)
    grid = 256 * 64
    copy[grid].on(there)(box(source), box(middle))
    seen = dev.peer(middle)  # waits for what uses it now
    copy[grid].on(there)(box(source), box(middle))
    here.wait(there.record())
    copy[grid].on(here)(box(seen), box(out))
    assert np.array_equal(out.numpy(), x)
