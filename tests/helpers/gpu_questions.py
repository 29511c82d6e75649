"""What the documents leave open and a GPU can be asked: each in a process of its own, by programs that nobody proves.

`python -m tests.helpers.gpu_questions` prints the answers of cuda:0 as JSON; `docs/hardware.md` says what they were.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

import oxidecopy as ox
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import DeadlockError, DeviceFaultError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import ZERO
from oxidecopy.isa.ops import MapRef, TileRef
from oxidecopy.program.tensor_map import TensorMap
from tests.helpers import forked
from tests.helpers.gpu_vectors import GpuBench
from tests.helpers.unproven import unproven

Src = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]
CLUSTERS: Final = 64
RUNS: Final = 40
BOX: Final = (64, 32)


# ---- exits with copies in flight
@ox.pipeline(threads=32, cluster=(2, 1, 1))
def sender_leaves(cta: ox.ClusterCta, src: Src, out: Out) -> None:
    """CTA 0 multicasts to both and is gone; CTA 1 waits, and stores what came."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    cta.cluster_sync()
    at = (cta.block_idx.x // 2 * BOX[0], 0)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        with cta.when(cta.cta_rank == 0):
            src.g2s_multicast(leader, tile, at, token, cta_mask=3)
    with cta.when(cta.cta_rank == 1):
        full.wait(token)
        cta.store(out, tile, at)


@ox.pipeline(threads=32, cluster=(2, 1, 1))
def receiver_leaves(cta: ox.ClusterCta, src: Src, out: Out) -> None:
    """CTA 1 is gone when CTA 0, after a few loads of its own, multicasts to it alone; what CTA 0 loaded is stored."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    other = cta.barrier().init(1)
    cta.cluster_sync()
    at = (cta.block_idx.x // 2 * BOX[0], 0)
    with cta.when(cta.cta_rank == 0):
        with cta.elect() as leader:
            for i in cta.range(8):
                token = full.arrive_expect_tx(leader, tile)
                src.g2s(leader, tile, at, token)
                full.wait_phase(i)
            late = other.arrive_expect_tx(leader, tile)
            src.g2s_multicast(leader, tile, at, late, cta_mask=2)
        cta.sync()
        cta.store(out, tile, at)


@ox.pipeline(threads=32, cluster=(2, 1, 1))
def loader_leaves(cta: ox.ClusterCta, src: Src, out: Out) -> None:
    """CTA 0 loads for itself and is gone; CTA 1 works as usual."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    cta.cluster_sync()
    at = (cta.block_idx.x // 2 * BOX[0], 0)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, at, token)
    with cta.when(cta.cta_rank == 1):
        full.wait(token)
        cta.store(out, tile, at)


def leaving(pipe: Any) -> dict[str, Any]:
    """Runs it often; how many runs ended how, and in how many the result was not that of the copy."""
    dev = ox.Device.open("cuda:0")
    assert isinstance(dev.engine, CudaEngine)
    values = np.arange(CLUSTERS * BOX[0] * BOX[1], dtype=np.float32).reshape(-1, BOX[1])
    src, out = dev.array(values), dev.zeros(values.shape, ox.f32)
    bound = pipe[2 * CLUSTERS].bind(ox.TmaDescriptor.tiled(src, box=BOX), out)
    proof, wrong = unproven(bound), 0
    for done in range(RUNS):
        try:
            dev.engine.fill(out.buffer, 0, out.buffer.nbytes, 0)
            dev.engine.run(proof, bound.bindings)
            wrong += not np.array_equal(out.numpy(), values)
        except DeviceFaultError as fault:
            return {"runs": done, "wrong": wrong, "ended": f"fault {fault.code}"}
        except DeadlockError:
            return {"runs": done, "wrong": wrong, "ended": "a wait that did not end"}
    return {"runs": RUNS, "wrong": wrong, "ended": "well"}


# ---- NaNs of f64 reduce add
NANS: Final = (
    0x7FF8000000000000, 0x7FF8000000000001, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000001, 0x7FF4000000000123, 0x7FF7FFFFFFFFFFFF,
    0xFFF8000000000000, 0xFFF8000000000BAD, 0xFFF0000000000002, 0xFFFFFFFFFFFFFFFF,
)  # fmt: skip
OTHERS: Final = (0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x0000000000000001)


def nan_pairs() -> tuple[Any, Any]:
    """Every pair of two values, one of which at least is a NaN or an infinity: what memory holds, and what is added."""
    every = (*NANS, *OTHERS)
    values = np.array(every, np.uint64)
    return np.repeat(values, len(every)), np.tile(values, len(every))


def nan_sums(bench: GpuBench) -> list[int]:
    """The bits that f64 reduce add leaves."""
    old, added = nan_pairs()
    target = bench.memory(old.view(np.uint8))
    n = len(old)
    tensor = TensorMap(dtype="f64", global_dim=(n,), global_strides=(), box_dim=(n,), element_strides=(1,))
    name = bench.map(tensor, target)
    bench.preload(added.view(np.uint8), 0)
    tile = TileRef(bench.tile("f64", (n,), 0), ZERO)
    copy = ops.TensorReduce(op="add", map=MapRef(name), tile=tile, coords=(ZERO,))
    bench.leader(copy, ops.CommitGroup(), ops.WaitGroup(pending=0))
    bench.run()
    return [int(x) for x in bench.read(target).view(np.uint64)]


def nans() -> dict[str, Any]:
    """Three runs, so that what is not stable shows."""
    engine = ox.Device.open("cuda:0").engine
    assert isinstance(engine, CudaEngine)
    runs = [nan_sums(GpuBench(engine)) for _ in range(3)]
    return {"stable": runs[0] == runs[1] == runs[2], "sums": [f"{x:016x}" for x in runs[0]]}


QUESTIONS: Final[dict[str, Callable[[], Any]]] = {
    "the sender of a multicast leaves": lambda: leaving(sender_leaves),
    "the receiver of a multicast leaves": lambda: leaving(receiver_leaves),
    "a CTA leaves with a load of its own in flight": lambda: leaving(loader_leaves),
    "NaNs of f64 reduce add": nans,
}


def _answer(ask: Callable[[], Any]) -> Iterator[Any]:
    yield ask()


def main(arguments: Sequence[str]) -> int:
    """Asks those whose name holds the argument, or all."""
    for name, ask in QUESTIONS.items():
        if not arguments or arguments[0] in name:
            told = forked.told(partial(_answer, ask), seconds=30)
            sys.stdout.write(json.dumps({name: told[0] if told else "the process ended, or took too long"}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
