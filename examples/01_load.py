"""Load: announce the bytes of a tile, issue the copy, wait until they have landed, use them.

The kernel of the cuda-oxide book's chapter on TMA, twice: with a barrier that one thread arrives at, and with one that every thread
arrives at. Two twins are broken on purpose: one announces too few bytes, one initialises its barrier twice.

    python examples/01_load.py --input x.npy --output y.npy        # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

# A copy through a tensor map moves a box: here 64 rows of 64 elements. The types of a pipeline's parameters say what it takes: element type
# and rank. Launching it with anything else is a type error, and without a type checker an error at the launch.
BOX = (64, 64)
Source = ox.TmaDescriptor[ox.f32, ox.D2]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- one thread arrives
# The function below is not run by the GPU. It is recorded: each call on `cta`, a barrier or a descriptor adds an operation to a program,
# which is verified before the first launch and then run by all threads of all thread blocks (CTAs).
@ox.pipeline(threads=128)
def tma_load(cta: ox.Cta, src: Source, out: Result) -> None:
    # Shared memory for one box, aligned as tensor copies need it.
    tile = cta.shared(src)

    # An mbarrier. Its type is `ManagedBarrier[Uninit, TmaBarrier]`, and the only thing to do with one is to initialise it. `init(1)` says
    # that one arrival per phase is expected; it includes the sync that lets the other threads see it. The result has the state `Ready`.
    bar = cta.barrier()
    full = bar.init(1)

    # Coordinates are elements, never boxes, outermost dimension first. `block_idx` is symbolic: arithmetic on it is recorded as well.
    y, x = cta.block_idx.y * 64, cta.block_idx.x * 64

    # One thread issues the copy. `arrive_expect_tx` does two things in one step: it is the one arrival, and it announces the bytes that
    # must land before the phase is over. Without the token that it returns there is no copy: the order is in the types. (Given the tile in
    # place of a number, `arrive_expect_tx(leader, tile)`, it counts by itself; the twin below needs the number.)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (y, x), token)

    # All threads wait for the phase that the token names. After it the tile is in shared memory, visible to everybody who waited.
    full.wait(token)

    # Plain stores, by all threads together. What lies outside `out` is left out.
    cta.store(out, tile, (y, x))

    # The end of the barrier's life: its memory may be used for something else. `inval` syncs first, so that nobody is still waiting.
    full.inval()


# A recipe says how to launch: from a device and (optionally) the user's array to descriptors, grid, results, and what they must be. The
# command line uses it (`oxidecopy run examples/01_load.py:tma_load`), and so does `main` at the end of this file.
@tma_load.recipe
def load_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out, grid = arguments(dev, x)
    return ox.Recipe(launch=tma_load[grid].bind(src, out), outputs={"out": out}, expected={"out": x})


def arguments(dev: ox.Device, x: Array | None) -> tuple[Array, Source, Result, ox.Grid]:
    """What all pipelines of this lesson are launched with: one CTA per box, the last in each row and column reaching over the edge."""
    if x is None:
        x = np.arange(128 * 256, dtype=np.float32).reshape(128, 256)
    # `pad=True` starts rows a multiple of 16 bytes apart, which a tensor map needs; lesson 05 is about that.
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=BOX)
    out = dev.empty(x.shape, ox.f32)
    rows, cols = x.shape
    return x, src, out, ox.Grid(x=-(-cols // 64), y=-(-rows // 64))  # x, y, z as in CUDA; -(-a // b) rounds up


# ---- every thread arrives
# The other classic form: the barrier counts all 128 threads. One of them announces the bytes with its arrival, the others just arrive.
# It costs more arrivals, and orders more: a thread that waits knows that all others have come this far, too.
@ox.pipeline(threads=128)
def everyone_arrives(cta: ox.Cta, src: Source, out: Result) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init_by(128, 0)  # thread 0 initialises
    y, x = cta.block_idx.y * 64, cta.block_idx.x * 64

    with cta.thread(0) as leader:
        mine = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (y, x), mine)
    with cta.threads_except(0):
        others = full.arrive()  # one arrival by each of the other 127

    # Both tokens name the same phase; each thread holds one of them. A token that is never waited for is a mistake, so both are passed.
    full.wait(mine, others)
    cta.store(out, tile, (y, x))
    full.inval_by(0)


@everyone_arrives.recipe
def everyone_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out, grid = arguments(dev, x)
    return ox.Recipe(launch=everyone_arrives[grid].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: half the bytes
# The barrier is told of half the tile, so its phase may be over while the other half is still on its way. On hardware this kernel gives
# right results on some days, wrong ones on others, and sometimes hangs. The verifier adds up what is announced and what is issued.
@ox.pipeline(threads=128)
def broken_bytes(cta: ox.Cta, src: Source, out: Result) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 64, cta.block_idx.x * 64
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes // 2)  # the edit: `// 2`
        src.g2s(leader, tile, (y, x), token)
    full.wait(token)
    cta.store(out, tile, (y, x))
    full.inval()


@broken_bytes.recipe(refused="OX3021")
def broken_bytes_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out, grid = arguments(dev, None)
    return ox.Recipe(launch=broken_bytes[grid].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: a handle used twice
# `init` gives a new handle and takes the old one. Plain mypy does not see that `bar` is gone (types do not know what happened to a
# variable), so the recorder does: it names this line and the line that took the handle.
@ox.pipeline(threads=128)
def broken_init(cta: ox.Cta, src: Source, out: Result) -> None:
    tile = cta.shared(src)
    bar = cta.barrier()
    full = bar.init(1)
    bar.init(1)  # type: ignore[oxidecopy-moved]  # the edit: this line
    y, x = cta.block_idx.y * 64, cta.block_idx.x * 64
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (y, x), token)
    full.wait(token)
    cta.store(out, tile, (y, x))
    full.inval()


@broken_init.recipe(refused="OX1003")
def broken_init_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out, grid = arguments(dev, None)
    return ox.Recipe(launch=broken_init[grid].bind(src, out), outputs={"out": out}, expected={"out": x})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, tma_load, everyone_arrives, broken_bytes, broken_init, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
