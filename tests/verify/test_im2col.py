"""im2col copies: what the hardware faults on, or cuts without a word, is refused; one step less is accepted and runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import VerificationError

DEV = ox.Device.open("sim")


def conv(step: int, blocks: int, scale: int) -> None:
    """Loads that start `step` rows apart, from an offset of `scale` for each block of the grid."""

    @ox.pipeline(threads=32)
    def kernel(cta: ox.Cta, src: ox.Im2colDescriptor[ox.f32, ox.D4]) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, cta.block_idx.x * step, 0, 0), token, offsets=(cta.grid_dim.x * scale, 0))
        full.wait(token)

    a = DEV.array(np.ones((2, 8, 8, 16), np.float32))
    kernel[blocks](ox.TmaDescriptor.im2col(a, lower=(0, 0), upper=(-2, -2), channels=16, pixels=32))


def stored(lower: tuple[int, int]) -> None:
    @ox.pipeline(threads=32)
    def kernel(cta: ox.Cta, dst: ox.Im2colDescriptor[ox.f32, ox.D4]) -> None:
        tile = cta.shared(dst)
        cta.fill(tile, 1.0)
        cta.fence_proxy_async()
        cta.sync()
        with cta.elect() as leader:
            dst.s2g(leader, tile, (0, 0, 0, 0))
            leader.commit_group()
            leader.wait_group(0)

    a = DEV.array(np.zeros((2, 8, 8, 16), np.float32))
    kernel[1](ox.TmaDescriptor.im2col(a, lower=lower, upper=(0, 0), channels=16, pixels=32))
    assert a.numpy().sum() == 16 * 32


@pytest.mark.parametrize(
    ("rule", "wrong", "right"),
    [
        ("OX3095", lambda: conv(2, 4, 0), lambda: conv(2, 3, 0)),
        ("OX3095", lambda: conv(6, 2, 0), lambda: conv(5, 2, 0)),
        ("OX3096", lambda: stored((-1, 0)), lambda: stored((0, 0))),
        ("OX3097", lambda: conv(0, 1, 256), lambda: conv(0, 1, 255)),
        ("OX3097", lambda: conv(0, 2, 128), lambda: conv(0, 1, 128)),
    ],
)
def test_starts_stores_and_offsets(rule: str, wrong: Callable[[], None], right: Callable[[], None]) -> None:
    with pytest.raises(VerificationError) as caught:
        wrong()
    assert caught.value.rules == (rule,)
    right()
