"""Whole programs: pipelines with helpers, rings and roles, host code around them. Each accepted function has a twin with one mistake."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, NewType, Optional, TypeAlias, TypeVar, Union

import numpy as np

import oxidecopy as ox

try:
    import nothing_of_this_name as accelerated  # type: ignore[import-not-found]
except ImportError:
    accelerated = None

if TYPE_CHECKING:
    from oxidecopy import Leader

if sys.version_info >= (3, 11):
    from typing import Self
else:
    from typing_extensions import Self

log = logging.getLogger(__name__)
Barrier: TypeAlias = "ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]"
Fresh: TypeAlias = "ox.ManagedBarrier[ox.Uninit, ox.TmaBarrier]"
Token: TypeAlias = "ox.TxToken[ox.TmaBarrier]"
Box: TypeAlias = "ox.Box2[Literal[64], Literal[32]]"
Source: TypeAlias = "ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B, Box]"
Out: TypeAlias = "ox.GlobalArray[ox.f32, ox.D2]"
Tile: TypeAlias = "ox.SharedArray[ox.f32, Box, ox.A1024]"
B = TypeVar("B", bound="Barrier")
Name = NewType("Name", str)


# ---- pipelines
def fetch(leader: Leader, src: Source, tile: Tile, full: Barrier, row: ox.Idx) -> Token:
    token = full.arrive_expect_tx(leader, tile.nbytes)
    src.g2s(leader, tile, (row, 0), token)
    return token


@ox.pipeline(threads=128)
def double_buffer_ok(cta: ox.Cta, src: Source, out: Out, steps: int) -> None:
    tiles = [cta.shared(src) for _ in range(2)]
    bars = [cta.barrier().init(1) for _ in range(2)]
    with cta.elect() as leader:
        pending = fetch(leader, src, tiles[0], bars[0], 0)
    for step in range(steps):
        now, later = step % 2, (step + 1) % 2
        with cta.elect() as leader:
            following = fetch(leader, src, tiles[later], bars[later], (step + 1) * 64)
        bars[now].wait(pending)
        cta.store(out, tiles[now], (step * 64, 0))
        cta.sync()
        pending = following
    bars[steps % 2].wait(pending)
    for bar in bars:
        bar.inval()


@ox.pipeline(threads=128)
def double_buffer_bad(cta: ox.Cta, src: Source, out: Out, steps: int) -> None:
    tiles = [cta.shared(src) for _ in range(2)]
    bars = [cta.barrier().init(1) for _ in range(2)]
    with cta.elect() as leader:
        pending = fetch(leader, src, tiles[0], bars[0], 0)
    for step in range(steps):
        bars[step % 2].wait(pending)  # E: [oxidecopy-moved]
        cta.store(out, tiles[step % 2], (step * 64, 0))


@ox.pipeline(threads=128)
def double_buffer_mended_ok(cta: ox.Cta, src: Source, out: Out, steps: int) -> None:
    tiles = [cta.shared(src) for _ in range(2)]
    bars = [cta.barrier().init(1) for _ in range(2)]
    with cta.elect() as leader:
        pending = fetch(leader, src, tiles[0], bars[0], 0)
    for step in range(steps):
        bars[step % 2].wait(pending)
        with cta.elect() as leader:
            pending = fetch(leader, src, tiles[0], bars[0], 0)
        cta.store(out, tiles[step % 2], (step * 64, 0))


@ox.pipeline(threads=128)
def both_ways_ok(cta: ox.Cta, src: Source, out: Out, *, checked: bool = False) -> None:
    tile, bar = cta.shared(src), cta.barrier().init(1)
    with cta.elect() as leader:
        token = fetch(leader, src, tile, bar, cta.block_idx.x * 64)
    if checked:
        bar.wait(token)
        cta.sync()
    else:
        bar.wait(token)
    cta.store(out, tile, (cta.block_idx.x * 64, 0))
    bar.inval()


@ox.pipeline(threads=128)
def both_ways_bad(cta: ox.Cta, src: Source, out: Out, *, checked: bool = False) -> None:
    tile, bar = cta.shared(src), cta.barrier().init(1)
    with cta.elect() as leader:
        token = fetch(leader, src, tile, bar, cta.block_idx.x * 64)
    if checked:
        bar.wait(token)
    bar.wait(token)  # E: [oxidecopy-moved]
    cta.store(out, tile, (cta.block_idx.x * 64, 0))
    bar.inval()


@ox.pipeline(threads=128)
def both_ways_mended_ok(cta: ox.Cta, src: Source, out: Out, *, checked: bool = False) -> None:
    tile, bar = cta.shared(src), cta.barrier().init(1)
    with cta.elect() as leader:
        token = fetch(leader, src, tile, bar, cta.block_idx.x * 64)
    if checked:
        pass
    bar.wait(token)
    cta.store(out, tile, (cta.block_idx.x * 64, 0))
    bar.inval()


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def ring_ok(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,), outs.put(group, at) as out:
                group.map(lambda v: v + v, tile, out=out)


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def ring_bad(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                pass
            slot.load(src, at)  # E: [oxidecopy-scope]
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,), outs.put(group, at) as out:
                group.map(lambda v: v + v, tile, out=out)


@ox.pipeline(threads=256)
def roles_ok(cta: ox.Cta, src: Source, out: Out, n: ox.Idx) -> None:
    full, empty = cta.barriers(2).init(1), cta.barriers(2).init(128)
    tiles = cta.shared(src, stages=2)
    with cta.thread(0) as leader:
        for k in cta.range(n):
            empty[k % 2].wait_phase(k // 2 - 1)
            token = full[k % 2].arrive_expect_tx(leader, tiles[k % 2].nbytes)
            src.g2s(leader, tiles[k % 2], (k * 64, 0), token)
    with cta.warps(4, 8) as group:
        for k in cta.range(n):
            full[k % 2].wait_phase(k // 2)
            cta.store(out, tiles[k % 2], (k * 64, 0))
            empty[k % 2].arrive()
        group.sync()
    full.inval()
    empty.inval()


@ox.pipeline(threads=256)
def roles_bad(cta: ox.Cta, src: Source, n: ox.Idx) -> None:
    full = cta.barriers(2).init(1)
    tiles = cta.shared(src, stages=2)
    with cta.thread(0) as leader:
        for k in cta.range(n):
            if k == 0:  # E: [oxidecopy-symbolic]
                continue
            token = full[k % 2].arrive_expect_tx(leader, tiles[k % 2].nbytes)
            src.g2s(leader, tiles[k % 2], (k * 64, 0), token)
    full.inval()


@ox.pipeline(threads=256)
def roles_mended_ok(cta: ox.Cta, src: Source, n: ox.Idx) -> None:
    full = cta.barriers(2).init(1)
    tiles = cta.shared(src, stages=2)
    with cta.thread(0) as leader:
        for k in cta.range(n):
            token = full[k % 2].arrive_expect_tx(leader, tiles[k % 2].nbytes)
            src.g2s(leader, tiles[k % 2], (k * 64, 0), token)
    full.inval()


# ---- resources that are classes of the user's
class Resource:
    """Enters and leaves."""

    def __init__(self, cta: ox.Cta, *, count: int = 1) -> None:
        self._bar = cta.barrier().init(count)
        self._uses = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        log.debug("used %d times", self._uses)

    def use(self) -> Self:
        self._bar.arrive()
        self._uses += 1
        return self

    def release(self: ox.Owned[Resource]) -> None:
        self._bar.inval()


def chain_ok(cta: ox.Cta) -> None:
    with Resource(cta, count=2) as r:
        r.use().use().use()


def release_ok(cta: ox.Cta) -> None:
    r = Resource(cta)
    r.use()
    r.release()
    r = Resource(cta)
    r.release()


def release_bad(cta: ox.Cta) -> None:
    r = Resource(cta)
    r.release()
    r.use()  # E: [oxidecopy-moved]


def release_mended_ok(cta: ox.Cta) -> None:
    r = Resource(cta)
    r.use()
    r.release()


def release_in_handler_ok(cta: ox.Cta, act: Callable[[], None]) -> None:
    r = Resource(cta)
    try:
        act()
    except (OSError, ValueError) as error:
        log.warning("failed: %s", error)
        r.release()
        raise
    else:
        r.use()
    r.release()


def release_in_handler_bad(cta: ox.Cta, act: Callable[[], None]) -> None:
    r = Resource(cta)
    try:
        act()
    except (OSError, ValueError) as error:
        log.warning("failed: %s", error)
        r.release()
    r.release()  # E: [oxidecopy-moved]


def release_in_handler_mended_ok(cta: ox.Cta, act: Callable[[], None]) -> None:
    r = Resource(cta)
    try:
        act()
    except (OSError, ValueError) as error:
        log.warning("failed: %s", error)
    r.release()


class Pool(Generic[B]):
    """Barriers to lend."""

    def __init__(self, bars: Iterable[B]) -> None:
        self.bars = list(bars)

    def each(self) -> Iterator[B]:
        yield from self.bars

    def at(self, i: int) -> B:
        return self.bars[i]


def pool_ok(cta: ox.Cta) -> None:
    pool = Pool(cta.barrier().init(1) for _ in range(4))
    for bar in pool.each():
        bar.arrive()
    pool.at(0).arrive()


def old_style_ok(cta: ox.Cta, given: Optional[Barrier] = None, other: Union[Barrier, int] = 0) -> None:
    if given:
        given.arrive()
    if not isinstance(other, int):
        other.arrive()


def recursive_ok(cta: ox.Cta, depth: int) -> None:
    if depth == 0:
        return
    bar = cta.barrier().init(1)
    bar.arrive()
    recursive_ok(cta, depth - 1)
    bar.inval()


def recursive_bad(cta: ox.Cta, bar: ox.Owned[Barrier], depth: int) -> None:
    if depth > 0:
        recursive_bad(cta, bar, depth - 1)
    bar.arrive()  # E: [oxidecopy-moved]


def recursive_mended_ok(cta: ox.Cta, bar: ox.Owned[Barrier], depth: int) -> None:
    bar.arrive()
    if depth > 0:
        recursive_mended_ok(cta, bar, depth - 1)


def sorted_ok(cta: ox.Cta, names: Sequence[Name]) -> None:
    bars = [cta.barrier().init(1) for _ in sorted(names, key=lambda n: len(n))]
    for name, bar in zip(names, bars, strict=True):
        log.info("%s", name)
        bar.arrive()
    for bar in bars:
        bar.inval()


def popped_bad(cta: ox.Cta, names: Sequence[Name]) -> None:
    by_name = {name: cta.barrier().init(1) for name in names}  # E: [oxidecopy-leak]
    popped = by_name.pop(names[0])
    popped.inval()
    popped.arrive()  # E: [oxidecopy-moved]


def popped_ok(cta: ox.Cta, names: Sequence[Name]) -> None:
    by_name = {name: cta.barrier().init(1) for name in names}
    print(by_name)
    popped = by_name.pop(names[0])
    popped.inval()


@dataclass(slots=True)
class Work:
    """What a stage has."""

    tile: Tile
    full: Barrier
    token: Token | None = None


def works_ok(cta: ox.Cta, src: Source) -> None:
    work = Work(tile=cta.shared(src), full=cta.barrier().init(1))
    with cta.elect() as leader:
        work.token = fetch(leader, src, work.tile, work.full, 0)
    if work.token is not None:
        work.full.wait(work.token)
    work.full.inval()


def works_bad(cta: ox.Cta, src: Source) -> None:
    work = Work(tile=cta.shared(src), full=cta.barrier().init(1))
    with cta.elect() as leader:
        work.token = fetch(leader, src, work.tile, work.full, 0)
    if work.token is not None:
        work.full.wait(work.token)
        work.full.wait(work.token)  # E: [oxidecopy-moved]


def init_late_ok(cta: ox.Cta, count: int | None) -> Barrier:
    fresh: Fresh = cta.barrier()
    if count is None:
        ready = fresh.init(1)
    else:
        ready = fresh.init(count)
    return ready


def init_late_bad(cta: ox.Cta, count: int | None) -> Barrier:
    fresh: Fresh = cta.barrier()
    if count is not None:
        fresh.init(count)  # E: [oxidecopy-leak]
    return fresh.init(1)  # E: [oxidecopy-moved]


def init_late_mended_ok(cta: ox.Cta, count: int | None) -> Barrier:
    fresh: Fresh = cta.barrier()
    if count is not None:
        pass
    return fresh.init(1)


# ---- the host
@contextmanager
def timed(what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    log.info("%s: %.3f s", what, time.perf_counter() - start)


def main_ok(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=128)
    options = parser.parse_args(arguments)
    dev = ox.Device.open("sim")
    x = np.arange(options.rows * 256, dtype=np.float32).reshape(options.rows, 256)
    with ExitStack() as stack:
        stack.enter_context(timed("all"))
        a, out = dev.array(x), dev.empty((options.rows, 256), ox.f32)
        desc = ox.TmaDescriptor.tiled(a, box=ox.Box2[Literal[64], Literal[32]], swizzle=ox.Swizzle128B)
        for wide in (False, True):
            both_ways_ok[4, 2](desc, out, checked=wide)
    return 0 if bool((out.numpy() == x).all()) else 1


def pooled_ok(devices: Sequence[ox.Device], x: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> list[int]:
    def one(dev: ox.Device) -> int:
        return min(len(x), max(1, dev.array(x).shape[0] if accelerated else 2))

    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(one, devices))
