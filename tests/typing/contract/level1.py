"""More kinds of mistakes than the other files of this folder show, each beside a line that is right.

A marked line gets an error from every type checker (but where docs/checkers.md says otherwise), no other line does. Run without a checker,
it raises an error of ours that names it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import numpy as np
import numpy.typing as npt

import oxidecopy as ox


class Full: ...


class Empty: ...


Src = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]
Tx = ox.TxToken[ox.TmaBarrier]
Wide = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[64], L[64]]]
Narrow = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[64], L[32]]]


# ---- the tutorial's pipeline by hand, and its calls
@ox.pipeline(threads=128)
def prefetch(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=4)
    full = cta.barriers(4, brand=Full).init(1)
    row = cta.block_idx.x * 64
    for j in cta.range(ox.minimum(n, 3)):
        with cta.elect() as leader:
            first = full[j].arrive_expect_tx(leader, tiles[j].nbytes)
            src.g2s(leader, tiles[j], (row, j * 64), first)
    for i in cta.range(n):
        with cta.elect() as leader, cta.when(i + 3 < n):
            s = (i + 3) % 4
            token = full[s].arrive_expect_tx(leader, tiles[s].nbytes)
            src.g2s(leader, tiles[s], (row, (i + 3) * 64), token)
        full[i % 4].wait_phase(i // 4)
        cta.store(out, tiles[i % 4], (row, i * 64))
        cta.sync()
    full.inval()
    for _k in range(n):  # E Python's range over a symbol
        pass


@ox.pipeline(threads=128)
def scalar_index(cta: ox.Cta, src: Src, n: ox.Scalar[ox.i32]) -> None:
    for i in cta.range(n):  # E Scalar[i32] is no index
        _ = i * n  # E Scalar[i32] is no index


def call(src: Src, out: Out, h: ox.TmaDescriptor[ox.f16, ox.D2]) -> None:
    prefetch[2](src, out, 7)
    prefetch[2](src, out, n=7)
    prefetch[2].bind(src, out, 7).verify()
    prepared = prefetch[2].prepare(src, out, 7)
    prepared()
    prepared.update(src, out, 7)
    prefetch[2].on(0)(src, out, 7)
    prefetch[2].on(0).attributes(cooperative=True).prepare(src, out, n=7)()
    prefetch[ox.Grid(x=2)](src, out, 7)
    prefetch[2](src, out, 7.5)  # E float for an index
    prefetch[2](h, out, 7)  # E dtype
    prefetch[2](out, src, 7)  # E swapped
    prepared.update(out, src, 7)  # E swapped
    prepared.update(src, out)  # E an argument is missing
    prefetch[2](src, out, 7, 8)  # E one argument too many
    prefetch[2](src, out, 7, stream=0)  # E no such keyword
    prefetch[2](src, out, m=7)  # E no such parameter
    prefetch[2].bind(src, out)  # E no n
    prefetch[2].on("s")(src, out, 7)  # E no stream
    prefetch[2.0](src, out, 7)  # E no grid


# ---- declarations
def declarations() -> None:
    def plain(cta: ox.Cta, n: int) -> None: ...
    def cluster(cta: ox.ClusterCta, n: int) -> None: ...
    def strange(n: int) -> None: ...

    ox.pipeline(threads=128)(plain)
    ox.pipeline(threads=128, cluster=2)(cluster)
    ox.pipeline(threads=128, cluster=(2, 1, 1))(plain)
    ox.pipeline(threads=128)(cluster)  # E no cluster
    ox.pipeline(threads=128)(strange)  # E no cta
    ox.pipeline(plain)  # E no threads
    ox.pipeline()  # E no threads
    ox.pipeline(threads="128")  # E str
    ox.pipeline(threads=128, cluster="2")  # E str


# ---- host
def hosts(dev: ox.Device, x: npt.NDArray[np.float32], a: Out, a1: ox.GlobalArray[ox.u8, ox.D1], a5: ox.GlobalArray[ox.f64, ox.D5]) -> None:
    _ = dev.array(x).numpy() + 1.0
    ox.TmaDescriptor.tiled(a1, box=(64,))
    ox.TmaDescriptor.tiled(a5, box=(1, 1, 1, 1, 64), element_strides=(1, 2, 1, 2, 1))
    ox.TmaDescriptor.tiled(a, box=ox.Box2[L[64], L[32]], swizzle=ox.Swizzle128B, l2_promotion=256, oob_fill="nan")
    ox.TmaDescriptor.tiled(x, box=(64, 64))  # E numpy array
    ox.TmaDescriptor.tiled(a1, box=(64, 64))  # E rank of box
    ox.TmaDescriptor.tiled(a5, box=(1, 1, 1, 64))  # E rank of box
    ox.TmaDescriptor.tiled(a, box=(64, 64.0))  # E float
    ox.TmaDescriptor.tiled(a, box=[64, 64])  # E list
    ox.TmaDescriptor.tiled(a, box=ox.Box3[L[1], L[64], L[32]])  # E rank of box
    ox.TmaDescriptor.tiled(a, box=(64, 64), element_strides=(1,))  # E rank of element strides
    ox.TmaDescriptor.tiled(a, box=(64, 64), l2_promotion=100)  # E no such promotion
    ox.TmaDescriptor.tiled(a, box=(64, 64), oob_fill="one")  # E no such fill
    ox.TmaDescriptor.tiled(a)  # E no box
    ox.TmaDescriptor(a, box=(64, 64))  # E no constructor
    dev.empty(64, ox.f32)  # E no tuple
    ox.Device.open(0)  # E no name


# ---- barriers
def states(cta: ox.Cta, leader: ox.Leader) -> None:
    bar = cta.barrier()
    bar.wait_phase(0)  # E before init
    bar.wait_parity(0)  # E before init
    bar.arrive()  # E before init
    bar.arrive_drop()  # E before init
    bar.expect_tx(leader, 16)  # E before init
    full = bar.init(1)
    full.init_by(1, 0)  # E initialised twice
    dead = full.inval()
    dead.wait_phase(0)  # E after inval
    dead.init(1)  # E after inval
    dead.inval()  # E after inval
    dead.arrive_expect_tx(leader, 16)  # E after inval


def arrays(cta: ox.Cta, leader: ox.Leader) -> None:
    bars = cta.barriers(4, brand=Full)
    bars[0]  # E before init
    bars.inval()  # E before init
    full = bars.init(1)
    full.init(1)  # E initialised twice
    full[0].wait(full[0].arrive())
    full["0"]  # E str index
    for bar in full:
        bar.wait_phase(0)
    full.wait_phase(0)  # E of an array
    dead = full.inval()
    dead[0]  # E after inval


def kinds(cta: ox.Cta, leader: ox.Leader) -> None:
    tma = cta.barrier(kind=ox.TmaBarrier).init(1)
    mma = cta.barrier(kind=ox.MmaBarrier).init(1)
    plain = cta.barrier(kind=ox.GeneralBarrier, brand=Full).init(1)
    tma.expect_tx(leader, 16)
    tma.complete_tx(leader, 16)
    mma.expect_tx(leader, 16)  # E counts no bytes
    mma.complete_tx(leader, 16)  # E counts no bytes
    plain.arrive_expect_tx(leader, 16)  # E counts no bytes
    cta.barrier(kind=ox.f32)  # E no kind
    cta.barrier(kind=ox.Ready)  # E no kind
    cta.barrier(brand="full")  # E no brand
    cta.barriers("4")  # E no number
    cta.barrier().init("1")  # E no count


def tokens(cta: ox.Cta, leader: ox.Leader) -> None:
    full = cta.barrier(brand=Full).init(1)
    empty = cta.barrier(brand=Empty).init(1)
    mma = cta.barrier(kind=ox.MmaBarrier, brand=Full).init(1)
    with cta.when(full.try_wait(full.arrive()) | full.test_wait(full.arrive()) & ~full.try_wait_parity(0)):
        pass
    full.wait(full.arrive(), full.arrive_expect_tx(leader, 16))
    full.wait(full.arrive(), empty.arrive())  # E brand of the second
    full.try_wait(empty.arrive())  # E brand
    full.test_wait(empty.arrive())  # E brand
    full.wait(mma.arrive())  # E kind
    full.wait(full)  # E a barrier
    full.wait(0)  # E a number
    full.wait()  # E none
    full.try_wait()  # E none
    full.wait_phase()  # E none
    full.wait_phase(0.5)  # E float
    full.wait_parity("0")  # E str
    full.try_wait_parity(0.5)  # E float
    full.arrive_expect_tx(16)  # E no leader
    full.arrive_expect_tx(leader, "16")  # E str
    full.arrive_expect_tx(leader, 16.0)  # E float


# ---- annotations that users write
def owned(bar: ox.Owned[ox.ManagedBarrier[ox.Ready]], handle: ox.TmaBarrierHandle[ox.Ready]) -> ox.ManagedBarrier[ox.Invalidated]:
    handle.wait(handle.arrive())
    return bar.inval()


def written(cta: ox.Cta) -> None:
    bar: ox.ManagedBarrier[ox.Uninit] = cta.barrier()
    full: ox.ManagedBarrier[ox.Ready, ox.TmaBarrier, ox.AnyId] = bar.init(1)
    owned(full, full)
    owned(bar, full)  # E before init
    owned(full, bar)  # E before init
    owned(cta.barrier(kind=ox.MmaBarrier).init(1), full)  # E kind
    branded: ox.ManagedBarrier[ox.Ready, ox.TmaBarrier, Full] = full  # E brand
    tile: ox.SharedArray[ox.f32] = cta.shared(ox.f32, (64, 64), align=ox.A128)
    other: ox.SharedArray[ox.f16] = tile  # E dtype
    strict: ox.SharedArray[ox.f32, ox.Box2[int, int], ox.A256] = tile  # E alignment
    wide: ox.TmaDescriptor[ox.f32, ox.D2, ox.f32]  # E no swizzle
    state: ox.ManagedBarrier[ox.f32]  # E no state


# ---- tiles
def tiles(cta: ox.Cta, src: Src, wide: Wide, narrow: Narrow, leader: ox.Leader, token: Tx) -> None:
    cta.shared(ox.bf16, (4, 4, 4, 4, 4), align=ox.A128)
    cta.shared(ox.bf16, ox.Box3[L[4], L[4], L[4]], align=ox.A512)
    cta.shared(src, stages=2)[0]
    tile = cta.shared(wide)
    wide.g2s(leader, tile, (0, 0), token)
    wide.g2s(leader, tile.part(0, of=1), (0, 0), token)
    narrow.g2s(leader, tile, (0, 0), token)  # E box
    narrow.s2g(leader, tile, (0, 0))  # E box
    narrow.reduce(ox.reduce.add, leader, tile, (0, 0))  # E box
    src.g2s(leader, tile, [0, 0], token)  # E list of coordinates
    src.g2s(leader, tile, (0, 0))  # E no token
    src.g2s(leader, cta.shared(src, stages=2), (0, 0), token)  # E an array of tiles
    cta.shared(ox.f32, (64, 64))  # E no alignment
    cta.shared(ox.f32, (64, 64), align=16)  # E no alignment
    cta.shared(ox.f32, (64, 64), align=ox.Swizzle32B)  # E no alignment
    cta.shared(np.float32, (64, 64), align=ox.A128)  # E numpy's dtype
    cta.shared(ox.f32, (64, 64.0), align=ox.A128)  # E float
    cta.shared(ox.f32, align=ox.A128)  # E no box
    cta.shared(ox.f32, (1, 1, 1, 1, 1, 1), align=ox.A128)  # E rank 6
    cta.shared(src, align=ox.A128)  # E a descriptor's tile is aligned by itself
    cta.shared(src, stages="2")  # E str
    cta.shared(64)  # E number
    tile.part(0)  # E no number of parts
    tile.nbytes = 3  # E read only


def plain_accesses(cta: ox.Cta, out: Out, src: Src, u: ox.Scalar[ox.f32], i: ox.Scalar[ox.i32]) -> None:
    tile = cta.shared(ox.f32, (8, 8), align=ox.A16)
    cta.fill(tile, 1)
    cta.fill(tile, 0.5)
    cta.fill(tile, u)
    cta.iota(tile, axis=1)
    cta.store(out, tile, (0, cta.block_idx.x * 8))
    cta.fill(tile, i)  # E dtype of the scalar
    cta.fill(tile, "1")  # E str
    cta.fill(out, 1)  # E an array
    cta.iota(tile, axis=0.5)  # E float
    cta.store(src, tile, (0, 0))  # E a descriptor
    cta.store(out, src, (0, 0))  # E a descriptor
    cta.store(out, tile, 0)  # E no tuple


# ---- who executes
def scopes(cta: ox.Cta, group: ox.Group) -> None:
    with cta.elect() as leader:
        leader.wait_group(0)
        leader.wait_group("0")  # E str
        leader.wait_group_read(0.5)  # E float
        leader.sync()  # E a leader is alone
    with cta.warps(0, 1) as warps:
        warps.sync()
        warps.commit_group()  # E a group is many
        with warps.elect() as one:
            one.commit_group()
    with cta.thread(0.5):  # E float
        pass
    with cta.threads_except("0"):  # E str
        pass
    with cta.warps(1):  # E one end
        pass
    ox.Group()  # E no constructor
    cta.cluster_sync()  # E no cluster
    _ = cta.cta_rank  # E no cluster
    cta.barrier().init(1).arrive_remote("0")  # E str


def multicast(cta: ox.ClusterCta, src: Src, token: Tx) -> None:
    tile = cta.shared(src)
    with cta.elect() as leader:
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=3 - cta.cta_rank)
        src.g2s_multicast(leader, tile, (0, 0), token)  # E no mask
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask="3")  # E str
        src.g2s_multicast(leader, tile, (0, 0, 0), token, cta_mask=3)  # E rank


# ---- symbolic integers
def symbols(cta: ox.Cta, xs: list[int], use: Callable[[int], None]) -> None:
    i = cta.block_idx.x
    _ = [64 * i, i - 1, 1 - i, i * cta.grid_dim.x, -i, i % 4, i // 2, ox.maximum(i, 0), ox.minimum(0, i)]
    with cta.when((i == 0) | (i != 1) & ~(i < 2) & True):
        pass
    _ = i + 0.5  # E float
    _ = 0.5 * i  # E float
    _ = i / i  # E true division
    _ = i**2  # E power
    _ = i << 1  # E shift
    _ = i & 1  # E bits
    _ = i + "1"  # E str
    _ = i < 0.5  # E float
    _ = float(i)  # E float()
    _ = xs[i:]  # E slice
    use(i)  # E int
    _ = ox.minimum(i, 0.5)  # E float
    _ = sum([i, i], start=0) < "3"  # E str
    cta.when(i)  # E no condition
    cta.when("i")  # E no condition
    cta.range(0.5)  # E float
    cta.range(0, i, i)  # E symbolic step
    cta.range("4")  # E str
    _ = (i == 0) & 3  # E no condition
    _ = (i == 0) + 1  # E no number
