"""Arrays in parts on GPUs: ranks as threads of one GPU, one rank of NCCL, and two processes on two GPUs with NCCL between them.

The tests of two GPUs go up one layer at a time, so that the first one that fails tells which: NCCL alone with what `copy` would send, the
agreement of ranks, copies, products, the example. Every wait is bounded: NCCL's by the group's timeout, a rank's by its own clock, which
shows where all of its threads are, and the processes by the test's, which ends all of them and shows what they said.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from oxidecopy.frameworks import sharded
from oxidecopy.frameworks.sharded import Group, bounds
from oxidecopy.host.device import Device
from tests.helpers.rank_threads import RANK, RankThread, on_ranks

pytestmark = pytest.mark.gpu
EXAMPLE = Path(__file__).parents[2] / "examples" / "ranks.py"
SECONDS = 75  # for processes, more than a rank gives itself
SHAPES = (("float32", (1024, 768)), ("bfloat16", (64, 33, 128)), ("uint8", (513, 4096)))

# Said at once, by each rank: how far it came.
BEGIN = """
import datetime, os, torch
from oxidecopy.errors import ArgumentError
from oxidecopy.frameworks.sharded import bounds, copy, joined, matmul, transform

def say(*words):
    print("rank", os.environ["RANK"], *words, flush=True)

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
torch.distributed.init_process_group("nccl", timeout=datetime.timedelta(seconds=30))
say("has a group, on", torch.cuda.current_device(), torch.cuda.get_device_name())
def example(dtype, shape):
    x = torch.arange(0, torch.Size(shape).numel(), device="cuda").remainder(251)
    return x.to(getattr(torch, dtype)).reshape(shape)
"""
SCRIPTS = {
    "NCCL alone": f"""
rank = torch.distributed.get_rank()
for dtype, shape in {SHAPES!r}:
    for first in (2, 3):  # halves, then unequal ones
        x = example(dtype, shape).flatten()
        cut = x.numel() // first
        counts = [cut, x.numel() - cut]
        out = torch.empty(counts[rank] * 2, dtype=x.dtype, device="cuda")
        torch.distributed.all_to_all_single(out.view(torch.uint8), x.view(torch.uint8), [counts[rank] * x.element_size()] * 2,
                                            [n * x.element_size() for n in counts])
        torch.cuda.synchronize()
        mine = x[:cut] if rank == 0 else x[cut:]
        assert torch.equal(out, torch.cat([mine, mine]))
        say("sent", dtype, counts)
""",
    "agreement": """
with joined() as group:
    assert group.agree([group.rank, 7]) == [[0, 7], [1, 7]]
    try:  # what one rank refuses all refuse: nobody waits
        copy(group, torch.ones(2, 2, device="cuda") if group.rank else None, axis=0, to=1)
    except ArgumentError as problem:
        assert problem.rules == ("OX5054",)
    else:
        raise AssertionError("nothing was refused")
""",
    "functions": """
with joined() as group:  # nothing is sent
    y = torch.randn(512, 512, device="cuda")
    assert torch.equal(transform(group, lambda a: a * 2.0, y), y * 2)
""",
    "copies": f"""
with joined() as group:
    for dtype, shape in {SHAPES!r}:
        x = example(dtype, shape)
        mine = x[bounds(group, shape[0])]
        columns = copy(group, mine, axis=0, to=1)
        say("has columns of", dtype)
        assert torch.equal(columns, x[:, bounds(group, shape[1])])
        assert torch.equal(copy(group, columns, axis=1, to=0), mine)
        assert torch.equal(copy(group, mine, axis=0, to=None), x)
        say("has all of", dtype)
""",
    "products": """
with joined() as group:
    torch.manual_seed(0)  # the same matrices on all ranks; their products are exact
    a, b = (torch.randint(-2, 3, shape, device="cuda").to(torch.bfloat16) for shape in ((1000, 512), (512, 768)))
    right = (a.float() @ b.float()).to(torch.bfloat16)
    cut = lambda x, axis: x if axis is None else x[(slice(None),) * axis + (bounds(group, x.shape[axis]),)]
    for axes, to in (((0, None), 0), ((None, 1), 1), ((1, 0), 0), ((1, 0), 1), ((0, 1), None)):
        found = matmul(group, cut(a, axes[0]), cut(b, axes[1]), axes=axes, to=to)
        say("has the product", axes, to)
        assert torch.equal(found, cut(right, to)), (axes, to)
""",
}


@pytest.fixture
def rank(tmp_path: Path) -> str:
    """A script that runs another one as a rank."""
    path = tmp_path / "rank.py"
    path.write_text(RANK, encoding="utf-8")
    return str(path)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Those that a test started: none of them outlives it, nor what they started."""
    running: list[subprocess.Popen[str]] = []
    yield running
    for each in running:
        end(each)


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def run(processes: list[subprocess.Popen[str]], command: Sequence[str], **environment: str) -> subprocess.Popen[str]:
    """In a session of its own; NCCL says what it cannot do. What is set for it on this machine stays set."""
    started = subprocess.Popen(
        command,
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"NCCL_DEBUG": "WARN"} | environment,
        start_new_session=True,
    )
    processes.append(started)
    return started


def finished(process: subprocess.Popen[str]) -> str:
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        end(process)
        said, _ = process.communicate(timeout=10)
        pytest.fail(f"not done in {SECONDS} s; until then:\n{said}")
    assert process.returncode == 0, said
    return said


def torchrun(size: int, *what: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), *what]


# ---- on one GPU
class OnOneGpu(RankThread):
    """A rank that is a thread, over torch's tensors of one GPU: everything but NCCL."""

    def empty(self, shape: Sequence[int], like: Any, dtype: str = "") -> Any:
        import torch  # type: ignore[import-not-found,unused-ignore]

        return torch.empty(tuple(shape), dtype=getattr(torch, dtype) if dtype else like.dtype, device=like.device)

    def exchange(self, out: Any, sent: Any, received: Sequence[int], given: Sequence[int]) -> None:
        import torch  # type: ignore[import-not-found,unused-ignore]

        pieces = []
        for flat, counts in self._all((sent, given)):
            end = list(accumulate(counts))[self.rank]
            pieces.append(flat[end - counts[self.rank] : end])
        out.copy_(torch.cat(pieces))
        torch.cuda.synchronize()
        self._all(None)  # nobody lets go of what others still read

    def stream(self, like: Any) -> int:
        return 1


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_as_threads(dev: Device, size: int) -> None:
    """What ranks pack, unpack and multiply, by the kernels that they have on GPUs of their own."""
    torch: Any = pytest.importorskip("torch")

    def work(group: Group) -> bool:
        right = []
        for dtype, shape in SHAPES:
            x = torch.arange(0, torch.Size(shape).numel(), device=dev.name).remainder(251).to(getattr(torch, dtype)).reshape(shape)
            mine = x[bounds(group, shape[0])]
            columns = sharded.copy(group, mine, axis=0, to=1)
            right += [
                torch.equal(columns, x[:, bounds(group, shape[1])]),
                torch.equal(sharded.copy(group, columns, axis=1, to=0), mine),
                torch.equal(sharded.copy(group, mine, axis=0, to=None), x),
            ]
        a, b = (torch.arange(m * n, device=dev.name).remainder(5).to(torch.bfloat16).reshape(m, n) for m, n in ((250, 128), (128, 192)))
        rows = sharded.matmul(group, a[bounds(group, 250)], b[:, bounds(group, 192)], axes=(0, 1), to=0)
        summed = sharded.matmul(group, a[:, bounds(group, 128)], b[bounds(group, 128)], axes=(1, 0), to=1, dtype="float32")
        product = a.float() @ b.float()
        right += [torch.equal(rows, product.to(torch.bfloat16)[bounds(group, 250)]), torch.equal(summed, product[:, bounds(group, 192)])]
        return all(right)

    assert on_ranks(size, work, OnOneGpu) == [True] * size


def test_one_rank_of_nccl(dev: Device, rank: str, processes: list[subprocess.Popen[str]]) -> None:
    pytest.importorskip("torch")
    assert "rank 0 of 1: equal to numpy" in finished(run(processes, torchrun(1, rank, str(EXAMPLE))))


# ---- on two
@pytest.fixture
def two_gpus(dev: Device) -> None:
    if pytest.importorskip("torch").cuda.device_count() < 2:
        pytest.skip(f"no second GPU beside {dev.name}")


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("script", SCRIPTS)
def test_two_ranks(rank: str, processes: list[subprocess.Popen[str]], script: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(f"{BEGIN}{SCRIPTS[script]}\ntorch.distributed.destroy_process_group()\nsay('is done')\n", encoding="utf-8")
    said = finished(run(processes, torchrun(2, rank, str(path))))
    assert all(f"rank {number} is done" in said for number in range(2))


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("host", [[], ["--host"]])
def test_the_example(rank: str, processes: list[subprocess.Popen[str]], host: list[str]) -> None:
    said = finished(run(processes, torchrun(2, rank, str(EXAMPLE), *host)))
    assert all(f"rank {number} of 2: equal to numpy" in said for number in range(2))


@pytest.mark.usefixtures("two_gpus")
def test_ranks_that_mpi_names(rank: str, processes: list[subprocess.Popen[str]]) -> None:
    """Started by hand, with the variables that mpirun of Open MPI sets."""
    names = ("RANK", "LOCAL_RANK")
    size = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MASTER_PORT": "29511"}
    command = [sys.executable, rank, str(EXAMPLE)]
    running = [run(processes, command, **size, **{f"OMPI_COMM_WORLD_{name}": str(number) for name in names}) for number in range(2)]
    for number, each in enumerate(running):
        assert f"rank {number} of 2: equal to numpy" in finished(each)
