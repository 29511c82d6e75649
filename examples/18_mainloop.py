"""A product's mainloop: one warp feeds both operands, one of them by multicast, and a warpgroup uses them.

This is how CUTLASS feeds the tensor cores of a Hopper GPU (warp-specialised, clusters of 2 x 1): the CTAs of a cluster work below each
other, so each needs rows of A for itself, and both need the same rows of B, of which each loads half for both. Tensor cores are not used
here: this "product" multiplies element by element and sums over slabs of columns. Three twins are broken on purpose: the peer's bytes are
not announced, a stage is given back to the own CTA only, and a CTA leaves while its peer still sends.

    python examples/18_mainloop.py --input x.npy --output y.npy        # any 2-D float32 array: both operands
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

CLUSTER = 2
STAGES = 4
ROWS, DEPTH = 64, 32  # of a tile
Operand = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Array = npt.NDArray[np.float32]


# ---- stages
# CUTLASS calls this PipelineTmaAsync. `full` counts one arrival, that of the own producer, and the bytes of both tiles, whoever sends them.
# `empty` counts the consumers of both CTAs: half of B goes to the peer as well, so the peer must be done with its stage, too. Where CUTLASS
# carries a PipelineState (index and phase bit) along, step k uses stage `k % STAGES` for the `k // STAGES`-th time.
#
# The three numbers that people get wrong are parameters: how many halves of B are announced, how many CTAs are told that a stage is free,
# and whether the cluster meets at the end.
def body(cta: ox.ClusterCta, a: Operand, b: Operand, dst: Operand, *, halves: int = 2, told: int = 2, meet: bool = True) -> None:
    rank, row, column = cta.cta_rank, cta.block_idx.x * ROWS, cta.block_idx.y * ROWS
    left, sums = cta.shared(a, stages=STAGES), cta.shared(dst, name="sums")
    right = cta.shared(
        ox.f32, (STAGES * ROWS, DEPTH), align=ox.A1024, name="b_tile"
    )  # all stages, one below the other: halves of them have names
    full, empty = cta.barriers(STAGES, name="full").init(1), cta.barriers(STAGES, name="empty").init(told)
    steps = (a.shape[1] + DEPTH - 1) // DEPTH
    cta.cluster_sync()  # the peer's barriers are initialised, too

    with cta.producer() as leader:
        for k in cta.range(steps):
            stage = k % STAGES
            empty[stage].wait_phase(k // STAGES - 1)  # phase -1 is over from the start: the first stages are free
            half = right.part(stage * CLUSTER + rank, of=STAGES * CLUSTER)
            token = full[stage].arrive_expect_tx(leader, left[stage], halves * half.nbytes)
            a.g2s(leader, left[stage], (row, k * DEPTH), token)
            b.g2s_multicast(leader, half, (column + rank * (ROWS // CLUSTER), k * DEPTH), token, cta_mask=0b11)

    with cta.consumers() as group:
        group.fill(sums, 0)
        group.sync()
        for k in cta.range(steps):
            stage = k % STAGES
            full[stage].wait_phase(k // STAGES)
            group.map(lambda s, u, v: s + u * v, sums, left[stage], right.part(stage, of=STAGES), out=sums)
            group.sync()
            with group.elect():
                for other in range(told):  # 0 is this CTA
                    empty[stage].arrive_remote((rank + other) % CLUSTER)
        group.store(dst, sums, (row, cta.block_idx.y * DEPTH))

    if meet:
        cta.cluster_sync()  # nobody leaves while its peer may still send to it, or arrive at its barriers


@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)
def mainloop(cta: ox.ClusterCta, a: Operand, b: Operand, dst: Operand) -> None:
    body(cta, a, b, dst)


@mainloop.recipe
def mainloop_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, mainloop)


# ---- by a ring
# All of that is a ring's business: `tiles` are those that the cluster shares, and of which each CTA loads its slice, `own` those that each
# CTA loads for itself.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)
def with_ring(cta: ox.ClusterCta, a: Operand, b: Operand, dst: Operand) -> None:
    ring, sums = cta.multicast_ring(stages=STAGES, tiles=(b,), own=(a,)), cta.shared(dst, name="sums")
    row, column = cta.block_idx.x * ROWS, cta.block_idx.y * ROWS
    steps = (a.shape[1] + DEPTH - 1) // DEPTH
    with cta.producer() as leader:
        for k in cta.range(steps):
            with ring.produce(leader) as (right, left):
                right.load(b, (column, k * DEPTH))  # the corner of the whole tile
                left.load(a, (row, k * DEPTH))
    with cta.consumers() as group:
        group.fill(sums, 0)
        group.sync()
        for _ in cta.range(steps):
            with ring.consume(group) as (right, left):
                group.map(lambda s, u, v: s + u * v, sums, left, right, out=sums)
        group.store(dst, sums, (row, cta.block_idx.y * DEPTH))


@with_ring.recipe
def with_ring_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, with_ring)


def recipe(dev: ox.Device, x: Array | None, pipeline: ox.Pipeline[Operand, Operand, Operand]) -> ox.Recipe:
    """Rows i of `x` times rows j, for all blocks of 64 rows: tile (i, j) of the result is the sum over their slabs of 32 columns."""
    if x is None:
        x = np.random.default_rng(18).standard_normal((150, 200), dtype=np.float32)
    array = dev.array(x, ox.f32, pad=True)
    a = ox.TmaDescriptor.tiled(array, box=(ROWS, DEPTH), swizzle=ox.Swizzle128B)
    b = ox.TmaDescriptor.tiled(array, box=(ROWS // CLUSTER, DEPTH), swizzle=ox.Swizzle128B)
    blocks = -(-x.shape[0] // ROWS)
    out = dev.empty((x.shape[0], blocks * DEPTH), ox.f32, pad=True)
    dst = ox.TmaDescriptor.tiled(out, box=(ROWS, DEPTH), swizzle=ox.Swizzle128B)
    launch = pipeline[-(-blocks // CLUSTER) * CLUSTER, blocks].bind(a, b, dst)
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": product(x)})


def product(x: Array) -> Array:
    rows, columns = x.shape
    padded = np.pad(x, ((0, -rows % ROWS), (0, -columns % DEPTH))).reshape(-1, ROWS, -(-columns // DEPTH), DEPTH)
    sums = np.zeros((len(padded), ROWS, len(padded), DEPTH), np.float32)
    for k in range(padded.shape[2]):  # in the order of the steps: a sum of floats depends on it
        sums += padded[:, :, None, k] * padded[:, :, k].transpose(1, 0, 2)
    return sums.reshape(-1, len(padded) * DEPTH)[:rows]


# ---- broken on purpose: bytes of the peer
# `full` is told of what this CTA sends itself, and ends its phase when half of B may be missing: what is multiplied is not there yet.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)
def broken_bytes(cta: ox.ClusterCta, a: Operand, b: Operand, dst: Operand) -> None:
    body(cta, a, b, dst, halves=1)  # the edit: not 2: the peer sends one


@broken_bytes.recipe(refused="OX3021")
def broken_bytes_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_bytes)


# ---- broken on purpose: a stage that the peer still reads
# Each producer knows of its own consumers only that a stage is free, and writes its half of B over what the peer's are reading.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)
def broken_release(cta: ox.ClusterCta, a: Operand, b: Operand, dst: Operand) -> None:
    body(cta, a, b, dst, told=1)  # the edit: not 2


@broken_release.recipe(refused="OX3044")
def broken_release_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_release)


# ---- broken on purpose: the first to leave
# The CTA that is done ends, and its shared memory goes to the next one; the peer, a step behind, arrives at barriers that are gone.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)
def broken_tail(cta: ox.ClusterCta, a: Operand, b: Operand, dst: Operand) -> None:
    body(cta, a, b, dst, meet=False)  # the edit: not True


@broken_tail.recipe(refused="OX3052")
def broken_tail_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_tail)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, mainloop, with_ring, broken_bytes, broken_release, broken_tail, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
