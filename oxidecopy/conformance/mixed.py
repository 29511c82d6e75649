"""Programs made at random of what ordinary device code does not hold: thread classes, large numbers and tokens, one with the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits

if TYPE_CHECKING:
    from oxidecopy.conformance.copies import Map, Pipe
    from oxidecopy.host.device import Device

BOX: Final = (2, 32)
SEEDS: Final = 16
BLOCKS: Final = 3
TURNS: Final = 5  # of the longest loop
Out = ox.GlobalArray[ox.f32, ox.D2]
Src = ox.TmaDescriptor[ox.f32, ox.D2]
CONDITIONS: Final[tuple[Callable[[ox.SymIdx, ox.SymIdx, int], ox.Pred], ...]] = (
    lambda i, _, k: i % 3 != k % 3,
    lambda i, block, _: (i + block) % 2 == 0,
    lambda i, _, __: (i > 0) & (i < TURNS - 1),
    lambda i, block, k: (i * 3 + block + k) % 4 < 2,
    lambda i, _, __: i >= 0,
)
TRIPS: Final[tuple[Callable[[ox.SymIdx, ox.SymIdx], ox.Idx], ...]] = (
    lambda _, __: 1,
    lambda i, _: i % 3,
    lambda i, block: (block + i) % 2 + 1,
)


@final
class _Class(NamedTuple):
    """A thread that loads a stage, who waits for it and stores it, and when."""

    maker: int
    waiter: str  # "maker", "all", "other"
    other: int
    condition: int


def scene(seed: int) -> tuple[Pipe, int]:
    """A pipeline, and the large number that it is launched with."""
    random = Random(seed)
    threads = random.choice([64, 96, 128])
    count = random.choice([1, 2, 3, 20, 36, 45])
    scale = random.choice([1, (1 << 33) + 7, (1 << 45) - 1, (1 << 52) + 3])
    places = random.sample(range(threads), min(threads, 2 * count)) * 2
    kinds = ["maker", "other"] if count > 3 else ["maker", "all", "other"]
    classes = [_Class(places[2 * k], random.choice(kinds), places[2 * k + 1], random.randrange(len(CONDITIONS))) for k in range(count)]
    trips = random.choice(TRIPS)

    @ox.pipeline(threads=threads)
    def run(cta: ox.Cta, src: Src, out: Out, n: ox.Idx, turns: ox.Idx) -> None:
        tiles = cta.shared(src, stages=count)
        full = cta.barriers(count).init(1)
        block = cta.block_idx.x
        for i in cta.range(turns):
            row = block * (n + 2) // n * BOX[0] if scale > 1 else block * BOX[0]
            for _ in cta.range(trips(i, block)):
                for k, one in enumerate(classes):
                    column = (i * count * (n + 1)) // n + k if scale > 1 else i * count + k
                    with cta.when(CONDITIONS[one.condition](i, block, k)):
                        with cta.thread(one.maker) as leader:
                            token = full[k].arrive_expect_tx(leader, tiles[k].nbytes)
                            src.g2s(leader, tiles[k], (row, column * BOX[1]), token)
                        waiters = {"maker": one.maker, "other": one.other}
                        with cta.thread(waiters[one.waiter]) if one.waiter in waiters else nullcontext():
                            full[k].wait(token)
                            cta.store(out, tiles[k], (row, column * BOX[1]))
                cta.sync()

    return run, scale


def cases() -> Iterator[Case]:
    """The first seeds."""
    for seed in range(SEEDS):
        yield Case(name=f"seed {seed}", group="mixed", make=partial(made, seed))


def made(seed: int, dev: Device) -> Made:
    """The launch of one seed."""
    pipeline, scale = scene(seed)
    shape = (BLOCKS * BOX[0], TURNS * 45 * BOX[1])
    source: Map = ox.TmaDescriptor.tiled(dev.array(random_bits(ox.f32, shape, seed).view(np.float32)), box=BOX)
    out = dev.zeros(shape, ox.f32)
    return Made(launch=pipeline[BLOCKS].bind(source, out, scale, 2 + seed % (TURNS - 1)), outputs={"out": out})
