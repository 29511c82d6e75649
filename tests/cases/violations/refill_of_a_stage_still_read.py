"""Refill of a stage still read.

A slow reader gets the next tile's elements.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3044"
SIMULATOR = ("OX4106",)

STAGES = 2


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
    full = cta.barriers(STAGES).init(1)
    tiles = cta.shared(src, stages=STAGES)
    for i in cta.range(n):
        stage = i % STAGES
        with cta.elect() as leader:
            src.g2s(leader, tiles[stage], (i * 8, 0), full[stage].arrive_expect_tx(leader, tiles[stage].nbytes))
        full[stage].wait_phase(i // STAGES)
        cta.store(out, tiles[stage], (i * 8, 0))
        # broken: -
        cta.sync()


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out, 8), outputs={"out": out}, expected={"out": x})
