"""Interleaved descriptors in pipelines: one slice of channels per copy, any start, dense rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxidecopy as ox

Map = ox.TmaDescriptor[Any, ox.D4, Any, Any]


@ox.pipeline(threads=32)
def load(cta: ox.Cta, src: Map, out: ox.GlobalArray[Any, ox.D4], w: int) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (1, 2, 1, w), token)
    full.wait(token)
    cta.store(out, tile, (0, 0, 0, 0))


@pytest.mark.parametrize("swizzle", [ox.SwizzleNone, ox.Swizzle32B, ox.Swizzle64B, ox.Swizzle128B])
@pytest.mark.parametrize("w", [0, 3, 8, -2, 11])
@pytest.mark.parametrize(("dtype", "channels"), [(ox.f16, 8), (ox.f16, 16), (ox.f32, 4), (ox.f32, 8), (ox.u8, 16), (ox.u8, 32)])
def test_a_copy_moves_one_slice_from_any_pixel_on(dtype: Any, channels: int, w: int, swizzle: Any) -> None:
    dev = ox.Device.open("sim")
    x = (np.arange(2 * 3 * 5 * 16 * channels) % 251).reshape(2, 3, 5, 16, channels).astype(dtype.info.numpy)
    factory: Any = ox.TmaDescriptor.interleaved
    src = factory(dev.array(x, dtype), box=(1, 1, 2, 16), swizzle=swizzle)
    out = dev.zeros((1, 1, 2, 16 * channels), dtype)
    load[1](src, out, w)
    wanted = np.zeros((2, 16, channels), x.dtype)
    inside = [i for i in range(16) if 0 <= w + i < 16]
    wanted[:, inside] = x[1, 2, 1:3, w + inside[0] : w + inside[-1] + 1]
    assert np.array_equal(out.numpy().reshape(2, 16, channels), wanted)
