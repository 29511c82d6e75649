"""Store: threads write a tile, a fence and a sync hand it to the copy engine, which writes it out.

Each thread writes its index along a row into a tile of 8 rows, and the tile is stored over the first 8 rows of the array: a ruler. The
rest of the array must keep what it held. One twin is broken on purpose: it leaves out the fence.

    python examples/02_store.py --input x.npy --output y.npy       # any 2-D int32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

BOX = (8, 64)
Target = ox.TmaDescriptor[ox.i32, ox.D2]
Array = npt.NDArray[np.int32]


# Ordinary instructions and the copy engine see shared memory by different paths: the generic proxy and the async proxy. What a thread has
# written by an ordinary store is not yet there for the engine. Three steps make it so, and each has its own reason:
#
#   1. every thread that wrote: `fence_proxy_async`   its writes become visible to the async proxy
#   2. all threads: `sync`                            the one that issues knows that all others have written and fenced
#   3. one thread: `s2g`, `commit_group`, `wait_group_read`
#
# Stores report to no mbarrier. They go into a group of the thread that issued them, `commit_group` closes it, and `wait_group_read(0)`
# waits until the engine has read the tile. Before that the tile may not be overwritten and the CTA may not end. (`wait_group(0)` also
# waits until the result is written; the end of the launch does so anyway.)
@ox.pipeline(threads=128)
def ruler(cta: ox.Cta, dst: Target) -> None:
    tile = cta.shared(dst)
    cta.iota(tile, axis=1)  # every element becomes its index along axis 1: 0, 1, ... 63 in each row
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        # A store writes only inside the array: columns and rows of the box beyond the edge are left out.
        dst.s2g(leader, tile, (0, cta.block_idx.x * 64))
        leader.commit_group()
        leader.wait_group_read(0)


@ruler.recipe
def ruler_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    if x is None:
        x = np.full((32, 200), -1, dtype=np.int32)
    out = dev.array(x, ox.i32, pad=True)
    dst = ox.TmaDescriptor.tiled(out, box=BOX)
    _, cols = x.shape
    expected = x.copy()
    expected[:8] = np.arange(cols, dtype=np.int32) % 64
    # One CTA for each 64 columns; -(-a // b) rounds up.
    return ox.Recipe(launch=ruler[-(-cols // 64)].bind(dst), outputs={"out": out}, expected={"out": expected})


# ---- broken on purpose: no fence
# Without it the engine may read what the tile held before. On an H200 a single thread that wrote a tile and issued its store with no fence
# stored 1.3 % of the words stale; with a sync in between no stale word was seen, which proves nothing. The verifier keeps the two proxies
# apart and asks for the fence of each writer. So does the simulator, without knowing of the verifier.
@ox.pipeline(threads=128)
def broken_fence(cta: ox.Cta, dst: Target) -> None:
    tile = cta.shared(dst)
    cta.iota(tile, axis=1)
    # the edit: no `cta.fence_proxy_async()`
    cta.sync()
    with cta.elect() as leader:
        dst.s2g(leader, tile, (0, cta.block_idx.x * 64))
        leader.commit_group()
        leader.wait_group_read(0)


@broken_fence.recipe(refused="OX3046")
def broken_fence_recipe(dev: ox.Device) -> ox.Recipe:
    out = dev.zeros((8, 64), ox.i32)
    return ox.Recipe(launch=broken_fence[1].bind(ox.TmaDescriptor.tiled(out, box=BOX)), outputs={"out": out})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, ruler, broken_fence, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
