"""What a recording contains: ops, blocks, scopes and call sites, as the text form writes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import Site
from oxidecopy.program.program import MapParam
from oxidecopy.program.text import from_text
from oxidecopy.typed import recorder
from tests.helpers.recordings import marked_line, recorded, refused, without_sites


class Full: ...


Src = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]


# ---- programs
def tma_load(cta: ox.Cta, src: Src, out: Out) -> None:
    tile = cta.shared(src)
    bar = cta.barrier()
    full = bar.init(1)
    y, x = cta.block_idx.y * 64, cta.block_idx.x * 32
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (y, x), token)
    full.wait(token)
    cta.store(out, tile, (y, x))
    full.inval()


TMA_LOAD = """\
program tma_load threads=128 cluster=(1, 1, 1) shared=8200:
  map src: f32 box=(64, 32)
  array out: f32 rank=2
  tile src_tile: f32 (64, 32) align=1024 at=0 step=8192
  barrier bar0: TmaBarrier at=8192

  scope thread {0}:
    mbarrier.init bar0, count=1
  bar.sync number=0, threads=128
  scope elect {0}:
    mbarrier.arrive.expect_tx bar0, nbytes=8192 -> %0
    cp.async.bulk.tensor.g2s src, src_tile, [block_idx.y * 64, block_idx.x * 32], bar0
  mbarrier.wait bar0, %0
  st.global.tile out, src_tile, [block_idx.y * 64, block_idx.x * 32]
  bar.sync number=0, threads=128
  scope thread {0}:
    mbarrier.inval bar0
"""


def everyone_arrives(cta: ox.Cta, src: Src) -> None:
    tile = cta.shared(ox.f32, (64, 32), align=ox.A1024)
    full = cta.barrier(brand=Full).init_by(128, 5)
    with cta.thread(0) as leader:
        token = full.arrive_expect_tx(leader, 64 * 32 * 4)
        src.g2s(leader, tile, (cta.block_idx.y * 64, cta.block_idx.x * 32), token)
    with cta.threads_except(0):
        others = full.arrive()
    full.wait(token, others)
    full.inval_by(7)


EVERYONE_ARRIVES = """\
program everyone_arrives threads=128 cluster=(1, 1, 1) shared=8200:
  map src: f32 box=(64, 32)
  tile tile: f32 (64, 32) align=1024 at=0 step=8192
  barrier full: TmaBarrier at=8192

  scope thread {5}:
    mbarrier.init full, count=128
  bar.sync number=0, threads=128
  scope thread {0}:
    mbarrier.arrive.expect_tx full, nbytes=8192 -> %0
    cp.async.bulk.tensor.g2s src, tile, [block_idx.y * 64, block_idx.x * 32], full
  scope threads_except {1..127}:
    mbarrier.arrive full -> %1
  mbarrier.wait full, (%0, %1)
  bar.sync number=0, threads=128
  scope thread {7}:
    mbarrier.inval full
"""


def store(cta: ox.Cta, dst: Src, alpha: ox.Scalar[ox.f32]) -> None:
    tile = cta.shared(dst)
    cta.fill(tile, alpha)
    cta.iota(tile, axis=0)
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        dst.s2g(leader, tile, (0, cta.grid_dim.x))
        leader.commit_group()
        leader.wait_group_read(1)
        leader.wait_group(0)


STORE = """\
program store threads=128 cluster=(1, 1, 1) shared=8192:
  map dst: f32 box=(64, 32) swizzle=128B
  scalar alpha: f32
  tile dst_tile: f32 (64, 32) align=1024 swizzle=128B at=0 step=8192

  st.shared.fill dst_tile, alpha
  st.shared.iota dst_tile, axis=0
  fence.proxy.async.shared::cta
  bar.sync number=0, threads=128
  scope elect {0}:
    cp.async.bulk.tensor.s2g dst, dst_tile, [0, grid_dim.x]
    cp.async.bulk.commit_group
    cp.async.bulk.wait_group.read pending=1
    cp.async.bulk.wait_group pending=0
"""


def accumulate(cta: ox.Cta, cube: ox.TmaDescriptor[ox.i32, ox.D3]) -> None:
    tile = cta.shared(cube)
    cta.fill(tile, 1)
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        cube.reduce(ox.reduce.add, leader, tile, (0, cube.shape[1] - 4, -1))
        cube.reduce(ox.reduce.bit_xor, leader, tile, (0, 0, 0))
        leader.commit_group()
        leader.wait_group(0)


ACCUMULATE = """\
program accumulate threads=128 cluster=(1, 1, 1) shared=256:
  map cube: i32 box=(2, 4, 8)
  tile cube_tile: i32 (2, 4, 8) align=1024 at=0 step=1024

  st.shared.fill cube_tile, 1
  fence.proxy.async.shared::cta
  bar.sync number=0, threads=128
  scope elect {0}:
    cp.reduce.async.bulk.tensor.s2g add cube, cube_tile, [0, cube.dim[1] - 4, -1]
    cp.reduce.async.bulk.tensor.s2g bit_xor cube, cube_tile, [0, 0, 0]
    cp.async.bulk.commit_group
    cp.async.bulk.wait_group pending=0
"""


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


PREFETCH = """\
program prefetch threads=128 cluster=(1, 1, 1) shared=32800:
  map src: f32 box=(64, 32)
  array out: f32 rank=2
  idx n
  tile src_tile: f32 (64, 32) align=1024 stages=4 at=0 step=8192
  barrier full: TmaBarrier stages=4 at=32768

  scope thread {0}:
    mbarrier.init full[0], count=1
    mbarrier.init full[1], count=1
    mbarrier.init full[2], count=1
    mbarrier.init full[3], count=1
  bar.sync number=0, threads=128
  loop i0, start=0, stop=min(n, 3), step=1:
    scope elect {0}:
      mbarrier.arrive.expect_tx full[i0], nbytes=8192 -> %0
      cp.async.bulk.tensor.g2s src, src_tile[i0], [block_idx.x * 64, i0 * 64], full[i0]
  loop i1, start=0, stop=n, step=1:
    scope elect {0}:
      when i1 + 3 < n:
        mbarrier.arrive.expect_tx full[(i1 + 3) % 4], nbytes=8192 -> %1
        cp.async.bulk.tensor.g2s src, src_tile[(i1 + 3) % 4], [block_idx.x * 64, (i1 + 3) * 64], full[(i1 + 3) % 4]
    mbarrier.wait.phase full[i1 % 4], phase=i1 // 4
    st.global.tile out, src_tile[i1 % 4], [block_idx.x * 64, i1 * 64]
    bar.sync number=0, threads=128
  bar.sync number=0, threads=128
  scope thread {0}:
    mbarrier.inval full[0]
    mbarrier.inval full[1]
    mbarrier.inval full[2]
    mbarrier.inval full[3]
"""


def roles(cta: ox.Cta, n: ox.Idx) -> None:
    ready = cta.barriers(2, kind=ox.TmaBarrier, brand=Full).init(32)
    done = cta.barrier(kind=ox.GeneralBarrier, brand=Full)
    x = cta.block_idx.x
    with cta.warps(0, 1) as producer:
        with producer.elect() as leader:
            ready[0].expect_tx(leader, 100, 28)
            ready[0].complete_tx(leader, 128)
        producer.sync()
        ready[0].wait(ready[0].arrive())
    with cta.warps(1, 4) as rest:
        rest.sync()
    with cta.warps(2, 4) as some:
        some.sync()
        ready[1].arrive_drop()
        ready[1].wait_parity(1)
        with cta.when(ready[1].test_wait_parity(n % 2) | (x > 3) & ~(x != 4)):
            cta.fence_proxy_async()
    with cta.warps(1, 4) as again:
        again.sync()
    with cta.warps(0, 4) as whole:
        whole.sync()
    done.init(1)
    ready.inval_by(3)


ROLES = """\
program roles threads=128 cluster=(1, 1, 1) shared=24:
  idx n
  barrier full: TmaBarrier stages=2 at=0
  barrier full1: GeneralBarrier at=16

  scope thread {0}:
    mbarrier.init full[0], count=32
    mbarrier.init full[1], count=32
  bar.sync number=0, threads=128
  scope warps {0..31}:
    scope elect {0}:
      mbarrier.expect_tx full[0], nbytes=128
      mbarrier.complete_tx full[0], nbytes=128
    bar.sync number=1, threads=32
    mbarrier.arrive full[0] -> %0
    mbarrier.wait full[0], %0
  scope warps {32..127}:
    bar.sync number=2, threads=96
  scope warps {64..127}:
    bar.sync number=3, threads=64
    mbarrier.arrive_drop full[1] -> %1
    mbarrier.wait.parity full[1], parity=1
    mbarrier.test.parity test_wait full[1], parity=n % 2 -> ?0
    when ?0 | (3 < block_idx.x) & ~(block_idx.x != 4):
      fence.proxy.async.shared::cta
  scope warps {32..127}:
    bar.sync number=2, threads=96
  scope warps {0..127}:
    bar.sync number=0, threads=128
  scope thread {0}:
    mbarrier.init full1, count=1
  bar.sync number=0, threads=128
  bar.sync number=0, threads=128
  scope thread {3}:
    mbarrier.inval full[0]
    mbarrier.inval full[1]
"""


def multicast(cta: ox.ClusterCta, half: ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone]) -> None:
    tile = cta.shared(ox.f32, (64, 32), align=ox.A128)
    full = cta.barrier().init(1)
    cta.cluster_sync()
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        part = tile.part(cta.cta_rank, of=2)
        half.g2s_multicast(leader, part, (cta.cta_rank * 32, 0), token, cta_mask=0b11)
    with cta.when(full.try_wait(token)):
        cta.sync()
    full.wait(token)
    with cta.warps(0, 1) as warp, warp.elect() as leader:
        full.arrive_remote(1 - cta.cta_rank)
        full.arrive_expect_tx_remote(leader, part, cta_rank=0)
        half.g2s_multicast(leader, part, (0, 0), full.arrive_expect_tx(leader, 0), cta_mask=cta.cluster_size)
    cta.cluster_sync()


MULTICAST = """\
program multicast threads=32 cluster=(2, 1, 1) shared=8200:
  map half: f32 box=(32, 32)
  tile tile: f32 (64, 32) align=128 at=0 step=8192
  barrier bar0: TmaBarrier at=8192

  scope thread {0}:
    mbarrier.init bar0, count=1
    fence.mbarrier_init.release.cluster
  bar.sync number=0, threads=32
  barrier.cluster.sync
  scope elect {0}:
    mbarrier.arrive.expect_tx bar0, nbytes=8192 -> %0
    cp.async.bulk.tensor.g2s.multicast half, tile.part(cta_rank, of=2), [cta_rank * 32, 0], bar0, cta_mask=3
  mbarrier.test try_wait bar0, %0 -> ?0
  when ?0:
    bar.sync number=0, threads=32
  mbarrier.wait bar0, %0
  scope warps {0..31}:
    scope elect {0}:
      mbarrier.arrive.shared::cluster bar0, rank=-cta_rank + 1
      mbarrier.arrive.expect_tx.shared::cluster bar0, nbytes=4096, rank=0
      mbarrier.arrive.expect_tx bar0, nbytes=0 -> %1
      cp.async.bulk.tensor.g2s.multicast half, tile.part(cta_rank, of=2), [0, 0], bar0, cta_mask=2
  barrier.cluster.sync
"""

HALF = MapParam(name="half", dtype="f32", box_dim=(32, 32), element_strides=(1, 1))


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (tma_load, TMA_LOAD),
        (everyone_arrives, EVERYONE_ARRIVES),
        (store, STORE),
        (accumulate, ACCUMULATE),
        (prefetch, PREFETCH),
        (roles, ROLES),
    ],
)
def test_program(fn: Callable[..., None], text: str) -> None:
    assert without_sites(recorded(fn)) == from_text(text)


def test_program_with_a_cluster() -> None:
    assert without_sites(recorded(multicast, threads=32, cluster=(2, 1, 1), half=HALF)) == from_text(MULTICAST)


def test_a_cluster_of_one_is_a_cluster() -> None:
    def alone(cta: ox.ClusterCta) -> None:
        cta.barrier().init(1)
        cta.cluster_sync()
        assert cta.cluster_size == 1

    program = recorded(alone, cluster=(1, 1, 1))
    assert [step.op.mnemonic for step in program.walk()] == [
        "scope",
        "mbarrier.init",
        "fence.mbarrier_init.release.cluster",
        "bar.sync",
        "barrier.cluster.sync",
    ]


# ---- call sites
def test_every_op_keeps_the_users_line() -> None:
    _, first = inspect.getsourcelines(tma_load)
    program = recorded(tma_load)
    assert program.site == Site(__file__, first, "tma_load")
    #       init: scope, init, sync; elect, arm, copy; wait, store; inval: sync, scope, inval
    lines = [3, 3, 3, 5, 6, 7, 8, 9, 10, 10, 10]
    assert [step.site for step in program.walk()] == [Site(__file__, first + line, "tma_load") for line in lines]
    assert [tile.site for tile in program.tiles] == [Site(__file__, first + 1, "tma_load")]
    assert [barrier.site for barrier in program.barriers] == [Site(__file__, first + 2, "tma_load")]


def test_the_site_of_a_helper_is_in_the_helper() -> None:
    def helper(cta: ox.Cta) -> None:
        cta.sync()  # here

    def pipe(cta: ox.Cta) -> None:
        helper(cta)

    (step,) = recorded(pipe).steps
    assert step.site == Site(__file__, marked_line(helper), "helper")


# ---- frozen
def test_programs_are_frozen_and_hashable() -> None:
    one, two = recorded(prefetch), recorded(prefetch)
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two, recorded(tma_load)}) == 2
    with pytest.raises(AttributeError):
        one.threads = 64  # type: ignore[misc]  # that is the test


# ---- names
def test_loop_counters_and_parameters_have_different_names() -> None:
    def pipe(cta: ox.Cta, i0: ox.Idx) -> None:
        for i in cta.range(i0):
            for k in cta.range(i):
                with cta.when(k < i0):
                    cta.sync()

    program = recorded(pipe)
    counters = [step.op.counter for step in program.walk() if step.op.mnemonic == "loop"]  # type: ignore[union-attr]  # a loop
    assert counters == ["i1", "i2"]


def test_tiles_and_barriers_have_different_names() -> None:
    class Bar1: ...

    def pipe(cta: ox.Cta, src: Src) -> None:
        for _ in range(3):
            cta.shared(src)
            cta.shared(ox.u8, (16,), align=ox.A16)
            cta.barrier(brand=Full)
        cta.barrier(brand=Bar1)
        cta.barrier()
        cta.barrier(brand=Bar1)

    program = recorded(pipe)
    assert [t.name for t in program.tiles] == ["src_tile", "tile", "src_tile1", "tile1", "src_tile2", "tile2"]
    assert [b.name for b in program.barriers] == ["full", "full1", "full2", "bar1", "bar4", "bar11"]


# ---- what the recorder refuses about the whole
def test_init_in_a_narrower_scope() -> None:
    def pipe(cta: ox.Cta) -> None:
        with cta.elect():
            cta.barrier().init(1)  # here

    assert "the block it is in" in str(refused(pipe, "OX1028"))


@pytest.mark.parametrize("threads", [1, 33])
def test_init_wherever_all_threads_are(threads: int) -> None:
    def pipe(cta: ox.Cta) -> None:
        with cta.warps(0, -(-threads // 32)):
            cta.barrier().init(1).inval()

    assert len(list(recorded(pipe, threads=threads).walk())) == 7


def test_init_under_a_condition_and_in_a_loop() -> None:
    def condition(cta: ox.Cta, n: ox.Idx) -> None:
        with cta.when(n == 0):
            cta.barrier().init(1)  # here

    def loop(cta: ox.Cta, n: ox.Idx) -> None:
        bar = cta.barrier()
        for _ in cta.range(n):
            bar.init(1)  # type: ignore[oxidecopy-moved]  # here

    def inval(cta: ox.Cta, n: ox.Idx) -> None:
        full = cta.barrier().init(1)
        for _ in cta.range(n):
            full.inval()  # type: ignore[oxidecopy-moved]  # here

    for pipe in (condition, loop, inval):
        refused(pipe, "OX1028")


def test_memory_is_set_aside_in_blocks_but_not_in_loops() -> None:
    def block(cta: ox.Cta, src: Src) -> None:
        with cta.elect():
            cta.shared(src)
            cta.barrier()

    def tile(cta: ox.Cta, src: Src, n: ox.Idx) -> None:
        for _ in cta.range(n):
            cta.shared(src)  # here

    def barrier(cta: ox.Cta, n: ox.Idx) -> None:
        for _ in cta.range(n):
            cta.barriers(2)  # here

    program = recorded(block)
    assert (len(program.tiles), len(program.barriers)) == (1, 1)
    refused(tile, "OX1069")
    refused(barrier, "OX1069")


def test_too_many_groups() -> None:
    def pipe(cta: ox.Cta, n: int) -> None:
        for warp in range(n):
            with cta.warps(warp, warp + 1) as group:
                group.sync()  # here

    numbers = {step.op.number for step in recorded(pipe, threads=512, n=15).walk() if step.op.mnemonic == "bar.sync"}  # type: ignore[union-attr]  # as asked
    assert numbers == set(range(1, 16))
    refused(pipe, "OX1040", threads=512, n=16)


def test_too_many_tokens_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_NUMBERS_MAX", 3)

    def tokens(cta: ox.Cta, n: int) -> None:
        full = cta.barrier().init(1)
        for _ in range(n):
            full.arrive()  # here

    def answers(cta: ox.Cta, n: int) -> None:
        full = cta.barrier().init(1)
        for _ in range(n):
            full.test_wait_parity(0)  # here

    for pipe in (tokens, answers):
        recorded(pipe, n=4)
        refused(pipe, "OX1058", n=5)


def test_too_deep_blocks() -> None:
    def pipe(cta: ox.Cta, n: int) -> None:
        def deeper(level: int) -> None:
            if level:
                with cta.when(True):
                    deeper(level - 1)

        deeper(n)

    recorded(pipe, n=64)
    with pytest.raises(ox.errors.RecordError) as caught:
        recorded(pipe, n=65)
    assert caught.value.rules == ("OX1058",)


def test_expressions_that_double() -> None:
    def product(cta: ox.Cta, n: ox.Idx) -> None:
        i: Any = n
        for _ in range(100):
            i = i + i
        i * 2  # here

    def use(cta: ox.Cta, n: ox.Idx) -> None:
        i: Any = n
        for _ in range(100):
            i = ox.minimum(i, i)
        with cta.when(i < 0):  # here
            pass

    refused(product, "OX1058")
    refused(use, "OX1058")
