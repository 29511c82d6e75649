"""A role that never runs, and others wait for it.

The producer's loop has no iteration in this launch, the consumers' has: they wait for ever.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3012"
SIMULATOR = ("OX4001",)


@ox.pipeline(warps=ox.roles(producer=1, consumers=1))
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        # broken: for i in cta.range(n - 8):
        for i in cta.range(n):
            with ring.produce(leader) as (slot,):
                slot.load(src, (i * 8, 0))
    with cta.consumers() as group:
        for i in cta.range(n):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, (i * 8, 0))


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out, 8), outputs={"out": out}, expected={"out": x})
