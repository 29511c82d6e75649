"""Edges touching neighbours: a store to a view whose rows end in the middle of a 16-byte unit.

A store is clipped at the inner edge in steps of 16 bytes: the elements behind each row, which belong to the array that the view is a part
of, are overwritten.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3205"
SIMULATOR = ("OX4131",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    tile = cta.shared(dst)
    cta.iota(tile, axis=1)
    cta.fence_proxy_async()
    cta.sync()

    with cta.elect() as leader:
        dst.s2g(leader, tile, (0, 0))
        leader.commit_group()
        leader.wait_group(0)


def launch(dev: ox.Device) -> ox.Recipe:
    out = dev.zeros((8, 32), ox.f32)
    # broken: columns = 30
    columns = 28
    expected = np.zeros((8, 32), np.float32)
    expected[:, :columns] = np.arange(columns)
    desc = ox.TmaDescriptor.tiled(out[:, :columns], box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(desc), outputs={"out": out}, expected={"out": expected})
