"""Reads alone and writes alone, and copies by maps of other ranks and swizzles beside the plain 2-D one."""

from __future__ import annotations

from math import prod
from statistics import median
from typing import TYPE_CHECKING, Any, Final, cast

import oxidecopy as ox
from oxidecopy.bench.copies import Copy, Map, padding
from oxidecopy.bench.gpu import AT_ONCE, COLUMNS, Bench, rate, shaped
from oxidecopy.bench.measure import Floor, Measured
from oxidecopy.engines.cuda.driver import check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PEAK_TB_S: Final = 4.81  # the H200's data sheet
_BOX: Final = (16, 256)
_OF_PEAK: Final = 0.90
_OF_MEMSET: Final = 0.97
_OF_PLAIN: Final = 0.99
_SPLIT: Final = 4  # how many rows each dimension between the first and the last has
_WRITTEN_BOX: Final = (32, 256)  # 32 KiB, of which six fit on an SM; filled once, stored twice
_WRITTEN_BOXES: Final = 2
_WRITERS: Final = 6


def one_way_rows(bench: Bench, runs: int, say: Callable[[str], None]) -> Iterator[Measured]:
    """Reads of all of the array against the memory's peak, writes of it against the driver's own."""
    nbytes, maps = bench.src.buffer.nbytes, cast("Any", ox.TmaDescriptor.tiled)
    plain = _copy((nbytes // 4 // COLUMNS, COLUMNS), _BOX)
    src = maps(shaped(bench, bench.src, plain), box=_BOX)
    dst = maps(shaped(bench, bench.dst, plain), box=_WRITTEN_BOX)
    say("reads alone")
    times = _times(bench, reader[nbytes // plain.box_bytes].bind(src), runs)
    yield Measured(
        what="reads alone, of the memory's peak", unit="x", samples=tuple(nbytes / t / 1e9 / PEAK_TB_S for t in times),
        target=_OF_PEAK, better="higher",
        of=f"one-shot loads of 16 KiB boxes, {nbytes >> 30} GiB: {nbytes / median(times) / 1e9:.3f} of {PEAK_TB_S} TB/s",
        floor=Floor("the memory's peak", nbytes / median(times) / 1e9 / PEAK_TB_S),
    )  # fmt: skip
    say("writes alone")
    driver = median(bench.times_ms(lambda: _memset(bench), runs))
    boxes = nbytes // (4 * prod(_WRITTEN_BOX))
    times = _times(bench, writer[boxes // _WRITTEN_BOXES].bind(dst, 0.5), runs)
    yield Measured(
        what="writes alone, of cuMemsetD32", unit="x", samples=tuple(driver / t for t in times), target=_OF_MEMSET, better="higher",
        of=f"stores to all of {nbytes >> 30} GiB, a CTA for every two boxes of 32 KiB, {_WRITERS} at once on an SM: "
        f"{nbytes / median(times) / 1e9:.3f} TB/s; "
        f"cuMemsetD32Async {nbytes / driver / 1e9:.3f}",
        floor=Floor("cuMemsetD32", driver / median(times)),
    )  # fmt: skip


def like_plain_rows(bench: Bench, runs: int, say: Callable[[str], None]) -> Iterator[Measured]:
    """Copies by maps of other ranks and swizzles, each with the plain 2-D copy measured just before it."""
    plain, *others = like_plain(bench.src.buffer.nbytes)
    for words, copy in others:
        say(words)
        first, second = rate(bench, plain[1], runs), rate(bench, copy, runs)
        yield Measured(
            what=f"{words}, of the plain 2-D copy", unit="x", samples=tuple(median(first.times_ms) / t for t in second.times_ms),
            target=_OF_PLAIN, better="higher",
            of=f"one-shot boxes of {copy.box_bytes >> 10} KiB ({'x'.join(map(str, copy.box))} f32), {second.tb_s:.3f} TB/s; "
            f"2-D, of 16 KiB, {first.tb_s:.3f}",
            floor=Floor("the plain 2-D copy", second.tb_s / first.tb_s),
        )  # fmt: skip


def like_plain(nbytes: int) -> tuple[tuple[str, Copy], ...]:
    """The plain 2-D copy, then those of other ranks, and swizzled ones, whose rows are as long as the swizzle's span.

    Rows so short want an array that is not much wider, and boxes of 32 KiB where those exist (docs/performance.md). 1-D boxes of 4 KiB do
    not, and boxes with the 32-byte swizzle are bound by the copy engine, which takes a row of 32 bytes at a time.
    """
    rows = nbytes // 4 // COLUMNS
    named = [("2-D", _copy((rows, COLUMNS), _BOX))]
    for rank in (3, 4, 5):
        between = (_SPLIT,) * (rank - 3)
        named.append((f"{rank}-D", _copy((rows // 64 // prod(between), *between, 64, COLUMNS), (*(1,) * (rank - 2), *_BOX))))
    named.append(("swizzle 128B", _copy((nbytes // 4 // 1024, 1024), (256, 32), ox.Swizzle128B, l2_promotion=256)))
    named.append(("swizzle 64B", _copy((nbytes // 4 // 16, 16), (256, 16), ox.Swizzle64B)))
    return tuple(named)


def _copy(shape: tuple[int, ...], box: tuple[int, ...], swizzle: type[ox.AnySwizzle] = ox.SwizzleNone, l2_promotion: int = 0) -> Copy:
    per_sm = AT_ONCE[4 * prod(box)]
    return Copy(schedule="one-shot", shape=shape, box=box, per_sm=per_sm, swizzle=swizzle, l2_promotion=l2_promotion)


def _times(bench: Bench, bound: Any, runs: int) -> tuple[float, ...]:
    launch = bench.engine.prepare(bound.verify(), bound.bindings, stream=bench.stream)
    times = bench.times_ms(launch, runs)
    launch.end()
    return times


def _memset(bench: Bench) -> None:
    driver, dst = bench.engine.context.driver, bench.dst.buffer
    with bench.engine.context:
        check(driver.cuMemsetD32Async(dst.address, 0x3F000000, dst.nbytes // 4, bench.stream.handle), "cuMemsetD32Async")


@ox.pipeline(threads=32)
def reader(cta: ox.Cta, src: Map) -> None:
    """A CTA for each box, which loads it and waits for it."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for at in cta.tiles(src, order=ox.order.once):
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
            full.wait(token)


@ox.pipeline(threads=256)
def writer(cta: ox.Cta, dst: ox.TmaDescriptor[ox.f32, ox.D2], value: ox.Scalar[ox.f32]) -> None:
    """A CTA for every two boxes, one below the other: it fills a tile and stores it to both."""
    tile = cta.shared(dst)
    cta.shared(ox.u8, (padding(tile.nbytes, _WRITERS),), align=ox.A128)
    rows, columns = _WRITTEN_BOX
    cta.fill(tile, value)
    cta.fence_proxy_async()
    cta.sync()
    for row, column in cta.tiles(dst, box=(_WRITTEN_BOXES * rows, columns), order=ox.order.once):
        with cta.elect() as leader:
            for i in range(_WRITTEN_BOXES):
                dst.s2g(leader, tile, (row + i * rows, column))
            leader.commit_group()
            leader.wait_group_read(0)
