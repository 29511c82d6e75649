"""Deadlock between two rings.

The producer fills the first ring before it turns to the second, the consumer wants a stage of each in turn: with fewer stages than tiles,
one waits for room and the other for a tile, for ever.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3030"
SIMULATOR = ("OX4001",)


@ox.pipeline(warps=ox.roles(producer=1, consumers=1))
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
    a, b = cta.ring(stages=2, tiles=(src,)), cta.ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        # broken: for order in ((0,), (1,)):
        for order in ((0, 1),):
            for i in cta.range(n):
                for which in order:
                    with (a, b)[which].produce(leader) as (slot,):
                        slot.load(src, (i * 8, which * 32))
    with cta.consumers() as group:
        for i in cta.range(n):
            with a.consume(group) as (tile,):
                cta.store(out, tile, (i * 8, 0))
            with b.consume(group) as (tile,):
                cta.store(out, tile, (i * 8, 32))


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out, 8), outputs={"out": out}, expected={"out": x})
