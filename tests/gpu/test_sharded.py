"""Arrays in parts on two GPUs, a process for each, with NCCL between them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oxidecopy.host.device import Device

pytestmark = pytest.mark.gpu
SCRIPT = """
import torch
from oxidecopy.frameworks.sharded import bounds, copy, torch_group, transform

torch.distributed.init_process_group("nccl")
rank = torch.distributed.get_rank()
torch.cuda.set_device(rank)
group = torch_group()
for dtype, shape in ((torch.float32, (1024, 768)), (torch.bfloat16, (64, 33, 128)), (torch.uint8, (513, 4096))):
    x = torch.arange(0, torch.Size(shape).numel(), device="cuda").remainder(251).to(dtype).reshape(shape)
    mine = x[bounds(group, shape[0])]
    columns = copy(group, mine, axis=0, to=1)
    assert torch.equal(columns, x[:, bounds(group, shape[1])])
    assert torch.equal(copy(group, columns, axis=1, to=0), mine)
    assert torch.equal(copy(group, mine, axis=0, to=None), x)
y = torch.randn(512, 512, device="cuda")
assert torch.equal(transform(group, lambda a: a * 2.0, y), y * 2)
torch.distributed.destroy_process_group()
"""


def test_two_gpus(dev: Device, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip(f"no second GPU beside {dev.name}")
    root, script = Path(__file__).parents[2], tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    for each in (script, root / "examples" / "ranks.py"):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(each)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
