"""Swizzles with wider atoms, on a simulator of compute capability 10.0: each byte lies where the mode says, and comes back from there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.sim.images import TileImage
from oxidecopy.engines.sim.memory import SharedMemory
from oxidecopy.errors import DescriptorError, UsageError
from oxidecopy.isa.swizzle import ATOM_SWIZZLES, EVERY_SWIZZLE
from oxidecopy.program.tensor_map import TileLayout

Map = ox.TmaDescriptor[ox.f32, ox.D2]
ATOMS = (ox.Swizzle128BAtom32B, ox.Swizzle128BAtom32BFlip8B, ox.Swizzle128BAtom64B)


@pytest.mark.parametrize("row", [128, 96, 64])
@pytest.mark.parametrize("base", [0x400, 0x480, 0x700])
@pytest.mark.parametrize("swizzle", sorted(EVERY_SWIZZLE))
def test_bytes_lie_where_the_mode_says(swizzle: str, base: int, row: int) -> None:
    span = EVERY_SWIZZLE[swizzle].span_bytes
    if span and row > span:
        row = span
    layout = TileLayout(shape=(24, row), element_bytes=1, swizzle=swizzle)
    memory = SharedMemory(1 << 14)
    image = TileImage(memory, layout, base)
    data = np.random.default_rng(1).integers(0, 256, (24, row), np.uint8)
    image.put_elements(data, 0, 24)
    assert np.array_equal(image.elements(), data)
    for y, x in ((0, 0), (1, 9), (3, 17), (7, 31), (8, 8), (23, row - 1), (10, 24)):
        address = base + y * layout.pitch_bytes + x
        assert memory.data[EVERY_SWIZZLE[swizzle].permute(address)] == data[y, x], (y, x)


@ox.pipeline(threads=32)
def copy(
    cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.TmaDescriptor[ox.f32, ox.D2], plain: ox.GlobalArray[ox.f32, ox.D2]
) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (0, 0), token)
    full.wait(token)
    cta.store(plain, tile, (0, 0))
    with cta.elect() as leader:
        out.s2g(leader, tile, (0, 0))
        leader.commit_group()
        leader.wait_group(0)


@ox.pipeline(threads=32)
def loaded(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], plain: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (0, 0), token)
    full.wait(token)
    cta.store(plain, tile, (0, 0))


@pytest.mark.parametrize("swizzle", ATOMS)
@pytest.mark.parametrize("device", ["sim", "sim-fast"])
def test_copies_and_plain_accesses_agree_on_the_tile(device: str, swizzle: type[ox.AnySwizzle]) -> None:
    dev = ox.Device.open(device, arch=100)
    x = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    out, plain = dev.zeros((16, 32), ox.f32), dev.zeros((16, 32), ox.f32)
    factory: Any = ox.TmaDescriptor.tiled
    src = factory(dev.array(x), box=(16, 32), swizzle=swizzle)
    if swizzle.info.flip_8b:  # loads alone have it
        loaded[1](src, plain)
    else:
        copy[1](src, factory(out, box=(16, 32), swizzle=swizzle), plain)
        assert np.array_equal(out.numpy(), x)
    assert np.array_equal(plain.numpy(), x)


@pytest.mark.parametrize("swizzle", ATOMS)
def test_hopper_is_said_not_to_have_them(swizzle: type[ox.AnySwizzle]) -> None:
    with pytest.raises(DescriptorError, match=r"compute capability 9\.0") as caught:
        ox.TmaDescriptor.tiled(ox.Device.open("sim").zeros((16, 32), ox.f32), box=(16, 32), swizzle=swizzle)
    assert caught.value.rules == ("OX2024",)
    assert swizzle.info.name in ATOM_SWIZZLES


def test_only_simulators_are_of_an_architecture_that_one_chooses() -> None:
    assert ox.Device.open("sim", arch="sm_120").sm == 120
    assert ox.Device.open(arch=100).why == "sim: asked for by name, with the limits of compute capability 10.0"
    for name, arch in (("cuda:0", 100), ("sim", 80), ("gpu", 90)):
        with pytest.raises(UsageError) as caught:
            ox.Device.open(name, arch=arch)
        assert caught.value.rules == ("OX5043",)
    with pytest.raises(UsageError) as caught:
        ox.Device.open("sim", arch="blackwell")
    assert caught.value.rules == ("OX2055",)


def test_wide_im2col_descriptors_are_made_for_blackwell() -> None:
    images = ox.Device.open("sim", arch=100).zeros((2, 9, 10, 64), ox.f16)
    made = ox.TmaDescriptor.im2col_wide(images, lower=-1, upper=-1, channels=64, pixels=32, swizzle=ox.Swizzle128B)
    assert (made.tensor_map.mode, made.tensor_map.box_dim) == ("im2col_w", (32, 64))
    assert made.verdict.usable
