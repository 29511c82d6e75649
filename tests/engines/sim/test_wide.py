"""Wide im2col copies on the simulator of compute capability 10.0, against a walk written down here."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy.engines.sim import explore
from oxidecopy.errors import DescriptorError, ShapeError, VerificationError

DEV = ox.Device.open("sim", arch=100)
SHAPE = (3, 2, 9, 64)
maps: Any = ox.TmaDescriptor


def loader(at: tuple[int, ...], halo: int, offset: int) -> Any:
    @ox.pipeline(threads=32)
    def load(cta: ox.Cta, src: ox.Im2colWideDescriptor[Any, Any, Any, Any], out: ox.GlobalArray[Any, ox.D2]) -> None:
        tile = cta.shared(src, halo=halo)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            src.prefetch(leader, at, halo=halo, offset=offset)
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, at, token, halo=halo, offset=offset)
        full.wait(token)
        cta.store(out, tile, (0, 0))
        full.inval()

    return load


def walk(x: npt.NDArray[Any], at: tuple[int, int, int], lower: int, upper: int, step: int, count: int, offset: int) -> npt.NDArray[Any]:
    """Pixels one after the other along w, and from image to image."""
    n, h, w = at
    out = np.zeros((count, x.shape[-1]), x.dtype)
    for i in range(count):
        if 0 <= n < x.shape[0] and 0 <= h < x.shape[1] and 0 <= w + offset < x.shape[2]:
            out[i] = x[n, h, w + offset]
        w += step
        if w > x.shape[2] - 1 + upper:
            n, w = n + 1, lower
    return out


@pytest.mark.parametrize("seed", range(12))
def test_pixels_and_halo_follow_the_walk(seed: int) -> None:
    random = Random(seed)
    x = np.random.default_rng(seed).integers(0, 1 << 16, SHAPE).astype(np.uint16)
    lower, upper, step = random.randint(-2, 1), random.randint(-2, 2), random.randint(1, 3)
    at = (random.randint(-1, 2), random.randint(-1, 2), random.randint(lower - 3, SHAPE[2] - 1 + upper))
    mode = random.choice(("w", "w128"))
    halo, offset = random.randint(0, 5), random.choice((0, 1, 7))
    pixels = 128 if mode == "w128" else random.randint(1, 40)
    desc = maps.im2col_wide(
        DEV.array(x),
        lower=lower,
        upper=upper,
        channels=64,
        pixels=pixels,
        mode=mode,
        swizzle=ox.Swizzle128B,
        element_strides=(1, 1, step, 1),
    )
    all_of_it = walk(x, at, lower, upper, step, pixels + halo, offset)
    wanted = all_of_it if mode == "w" else np.concatenate([all_of_it[i : i + 32 + halo] for i in range(0, 128, 32)])
    out = DEV.zeros(wanted.shape, ox.u16)
    loader((*at, 0), halo, offset)[1](desc, out)
    assert np.array_equal(out.numpy(), wanted), (lower, upper, step, at, mode, halo, offset)


def test_the_example_of_the_documentation() -> None:
    """PTX 5.5.5.4, example 2: three buffers of a filter of three taps and a stride of three, one by offset each."""
    x = np.arange(64 * 7 * 7).reshape(64, 7, 7, 1).repeat(64, 3).astype(np.uint16)
    desc = maps.im2col_wide(DEV.array(x), lower=-1, upper=-1, channels=64, pixels=128, swizzle=ox.Swizzle128B, element_strides=(1, 1, 3, 1))
    for offset in range(3):
        out = DEV.zeros((128, 64), ox.u16)
        loader((7, 2, -1, 0), 0, offset)[1](desc, out)
        taps = [(7 + i // 3, 3 * (i % 3) - 1 + offset) for i in range(128)]  # three outputs of each image
        assert out.numpy()[:, 0].tolist() == [int(x[n, 2, w, 0]) if n < 64 and 0 <= w < 7 else 0 for n, w in taps]


# ---- refusals, each with its right twin
def desc(mode: str = "w", pixels: int = 16) -> Any:
    return maps.im2col_wide(DEV.zeros(SHAPE, ox.f16), lower=0, upper=-1, channels=64, pixels=pixels, mode=mode, swizzle=ox.Swizzle128B)


def test_it_may_start_before_the_box_and_not_behind_it() -> None:
    for w, rules in ((-5, ()), (7, ()), (8, ("OX3095", "OX3095"))):
        bound = loader((0, 0, w, 0), 0, 0)[1].bind(desc(), DEV.zeros((16, 64), ox.f16))
        ran = explore(bound.program, bound.bindings)
        assert ran.code == (715 if rules else 0)
        if rules:
            with pytest.raises(VerificationError) as caught:
                bound.verify()
            assert caught.value.rules == rules
        else:
            bound.verify()


@pytest.mark.parametrize(
    ("mode", "halo", "good"), [("w", 511, True), ("w", 512, False), ("w128", 31, True), ("w128", 32, False), ("w", -1, False)]
)
def test_a_halo_has_its_bounds(mode: str, halo: int, good: bool) -> None:
    made = desc(mode)
    rows = 16 + halo if mode == "w" else 4 * (32 + halo)
    out = DEV.zeros((max(rows, 1), 64), ox.f16)
    if good:
        loader((0, 0, 0, 0), halo, 0)[1].bind(made, out).verify()
        return
    with pytest.raises(ShapeError) as caught:
        loader((0, 0, 0, 0), halo, 0)[1].bind(made, out)
    assert caught.value.rules == ("OX1166",)


def test_an_offset_has_five_bits() -> None:
    with pytest.raises(ShapeError) as caught:
        loader((0, 0, 0, 0), 0, 32)[1].bind(desc(), DEV.zeros((16, 64), ox.f16))
    assert caught.value.rules == ("OX1164",)

    @ox.pipeline(threads=32)
    def load(cta: ox.Cta, src: ox.Im2colWideDescriptor[Any, Any, Any, Any], out: ox.GlobalArray[Any, ox.D2]) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, 0, 0, 0), token, offset=cta.block_idx.x)
        full.wait(token)
        cta.store(out, tile, (cta.block_idx.x * 16, 0))
        full.inval()

    load[32].bind(desc(), DEV.zeros((33 * 16, 64), ox.f16)).verify()
    with pytest.raises(VerificationError) as refused:
        load[33].bind(desc(), DEV.zeros((33 * 16, 64), ox.f16)).verify()
    assert refused.value.rules == ("OX3097",)


def test_older_and_smaller_devices_have_none() -> None:
    with pytest.raises(DescriptorError) as caught:
        maps.im2col_wide(ox.Device.open("sim").zeros(SHAPE, ox.f16), lower=0, upper=0, channels=64, pixels=8, swizzle=ox.Swizzle128B)
    assert caught.value.rules == ("OX2052",)
    small = ox.Device.open("sim", arch=120)
    for mode, rules in (("w", ()), ("w128", ("OX3074",))):
        made = maps.im2col_wide(small.zeros(SHAPE, ox.f16), lower=0, upper=-1, channels=64, pixels=16, mode=mode, swizzle=ox.Swizzle128B)
        rows = 16 if mode == "w" else 128
        bound = loader((0, 0, 0, 0), 0, 0)[1].bind(made, small.zeros((rows, 64), ox.f16))
        if rules:
            with pytest.raises(VerificationError) as refused:
                bound.verify()
            assert refused.value.rules == rules
        else:
            bound.verify()
