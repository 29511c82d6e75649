"""Arrays in parts on two GPUs, a process for each, with NCCL between them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oxidecopy.host.device import Device

pytestmark = pytest.mark.gpu
EXAMPLE = Path(__file__).parents[2] / "examples" / "ranks.py"
SCRIPT = """
import torch
from oxidecopy.errors import ArgumentError
from oxidecopy.frameworks.sharded import bounds, copy, joined, matmul, transform

with joined() as group:
    assert group.size == 2
    for dtype, shape in ((torch.float32, (1024, 768)), (torch.bfloat16, (64, 33, 128)), (torch.uint8, (513, 4096))):
        x = torch.arange(0, torch.Size(shape).numel(), device="cuda").remainder(251).to(dtype).reshape(shape)
        mine = x[bounds(group, shape[0])]
        columns = copy(group, mine, axis=0, to=1)
        assert torch.equal(columns, x[:, bounds(group, shape[1])])
        assert torch.equal(copy(group, columns, axis=1, to=0), mine)
        assert torch.equal(copy(group, mine, axis=0, to=None), x)
    y = torch.randn(512, 512, device="cuda")
    assert torch.equal(transform(group, lambda a: a * 2.0, y), y * 2)

    torch.manual_seed(0)  # the same matrices on all ranks; their products are exact
    a, b = (torch.randint(-2, 3, shape, device="cuda").to(torch.bfloat16) for shape in ((1000, 512), (512, 768)))
    right = (a.float() @ b.float()).to(torch.bfloat16)
    cut = lambda x, axis: x if axis is None else x[(slice(None),) * axis + (bounds(group, x.shape[axis]),)]
    for axes, to in (((0, None), 0), ((None, 1), 1), ((1, 0), 0), ((1, 0), 1), ((0, 1), None)):
        found = matmul(group, cut(a, axes[0]), cut(b, axes[1]), axes=axes, to=to)
        assert torch.equal(found, cut(right, to)), (axes, to)

    try:  # what one rank refuses all refuse: nobody waits
        copy(group, mine if group.rank else None, axis=0, to=1)
    except ArgumentError as problem:
        assert problem.rules == ("OX5054",)
    else:
        raise AssertionError("nothing was refused")
"""


# What a rank runs: a script, and where it is when that takes too long, since a rank that waits for another one says nothing.
RANK = """
import faulthandler, runpy, sys
faulthandler.dump_traceback_later(40, exit=True)
script, *sys.argv[1:] = sys.argv[1:]
runpy.run_path(script, run_name="__main__")
"""


@pytest.fixture
def rank(tmp_path: Path) -> str:
    """A script that runs another one as a rank."""
    path = tmp_path / "rank.py"
    path.write_text(RANK, encoding="utf-8")
    return str(path)


def run(command: list[str], **environment: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | environment)


def finished(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return said


@pytest.fixture
def torch(dev: Device) -> Any:
    found = pytest.importorskip("torch")
    if found.cuda.device_count() < 2:
        pytest.skip(f"no second GPU beside {dev.name}")
    return found


@pytest.mark.parametrize("script", ["everything", "example", "example on the host"])
def test_ranks_of_torchrun(torch: Any, rank: str, script: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    what = {"everything": [str(path)], "example": [str(EXAMPLE)], "example on the host": [str(EXAMPLE), "--host"]}[script]
    said = finished(run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", rank, *what]))
    assert script == "everything" or all(f"rank {number} of 2: equal to numpy" in said for number in range(2))


def test_ranks_that_mpi_names(torch: Any, rank: str) -> None:
    """Started by hand, with the variables that mpirun of Open MPI sets."""
    names = ("RANK", "LOCAL_RANK")
    size = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MASTER_PORT": "29511"}
    command = [sys.executable, rank, str(EXAMPLE)]
    running = [run(command, **size, **{f"OMPI_COMM_WORLD_{name}": str(number) for name in names}) for number in range(2)]
    for number, each in enumerate(running):
        assert f"rank {number} of 2: equal to numpy" in finished(each)
