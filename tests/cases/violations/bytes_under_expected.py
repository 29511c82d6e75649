"""Bytes under-expected.

The phase ends when the announced bytes have landed: the second tile is read before it is there, in some runs. The surplus is owed by the
next phase.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3021"
SIMULATOR = ("OX4102", "OX4001")


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    left, right = cta.shared(src), cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        # broken: token = full.arrive_expect_tx(leader, left)
        token = full.arrive_expect_tx(leader, left, right)
        src.g2s(leader, left, (0, 0), token)
        src.g2s(leader, right, (0, 32), token)
    full.wait(token)
    cta.store(out, left, (0, 0))
    cta.store(out, right, (0, 32))


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(8 * 64, dtype=np.float32).reshape(8, 64)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out), outputs={"out": out}, expected={"out": x})
