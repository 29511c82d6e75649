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


def run(command: list[str], **environment: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | environment)


def finished(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


@pytest.fixture
def torch(dev: Device) -> Any:
    found = pytest.importorskip("torch")
    if found.cuda.device_count() < 2:
        pytest.skip(f"no second GPU beside {dev.name}")
    return found


def test_ranks_of_torchrun(torch: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    running = [run([*start, *each]) for each in ([str(script)], [str(EXAMPLE)], [str(EXAMPLE), "--host"])]
    said = [finished(each) for each in running]
    assert all(f"rank {rank} of 2: equal to numpy" in each for rank in range(2) for each in said[1:])


def test_ranks_that_mpi_names(torch: Any) -> None:
    """Started by hand, with the variables that mpirun of Open MPI sets."""
    names = ("RANK", "LOCAL_RANK")
    size = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MASTER_PORT": "29511"}
    running = [run([sys.executable, str(EXAMPLE)], **size, **{f"OMPI_COMM_WORLD_{name}": str(rank) for name in names}) for rank in range(2)]
    for rank, each in enumerate(running):
        assert f"rank {rank} of 2: equal to numpy" in finished(each)
