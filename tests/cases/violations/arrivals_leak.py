"""Arrivals leaking into a later phase: 4 iterations pass, 64 hang.

Two threads release each stage, and its barrier counts one: the second arrival ends the next phase. No stage is filled twice in 4
iterations, so nothing shows. Once the ring wraps, the parities that the producer reads are two phases ahead, and it hangs.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3011"
SIMULATOR = ("OX4109",)

STAGES = 4


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
    full = cta.barriers(STAGES).init(1)
    # broken: empty = cta.barriers(STAGES).init(1)
    empty = cta.barriers(STAGES).init(2)
    tiles = cta.shared(src, stages=STAGES)
    with cta.thread(0) as leader:
        for i in cta.range(n):
            stage = i % STAGES
            empty[stage].wait_phase(i // STAGES - 1)
            src.g2s(leader, tiles[stage], (i * 8, 0), full[stage].arrive_expect_tx(leader, tiles[stage].nbytes))
    with cta.thread(32):
        for i in cta.range(n):
            full[i % STAGES].wait_phase(i // STAGES)
            cta.store(out, tiles[i % STAGES], (i * 8, 0))
            empty[i % STAGES].arrive()
    with cta.thread(33):
        for i in cta.range(n):
            full[i % STAGES].wait_phase(i // STAGES)
            empty[i % STAGES].arrive()


def launch(dev: ox.Device, n: int = 64) -> ox.Recipe:
    x = np.arange(n * 8 * 32, dtype=np.float32).reshape(n * 8, 32)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out, n), outputs={"out": out}, expected={"out": x})
