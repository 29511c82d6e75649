"""An array in parts on several processes: cut along rows, then along columns, computed on, and whole again.

python examples/ranks.py                                                    one process, on the simulator
torchrun --nproc-per-node 2 examples/ranks.py                               a GPU for each rank, NCCL between them
torchrun --nproc-per-node 2 examples/ranks.py --host                        ranks on the simulator, gloo between them
python examples/ranks.py --input x.npy                                      your own f32 matrix
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import numpy as np

from oxidecopy.frameworks.sharded import Group, alone, bounds, copy, torch_group, transform


def joined(*, host: bool) -> tuple[Group, Any]:
    """The ranks that torchrun started, and how a numpy array becomes one of theirs; one rank without it."""
    if "RANK" not in os.environ:
        return alone(), lambda x: x
    import torch  # type: ignore[import-not-found,unused-ignore]

    if host:
        torch.distributed.init_process_group("gloo")
        return torch_group(), torch.from_numpy
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    torch.distributed.init_process_group("nccl")
    return torch_group(), lambda x: torch.from_numpy(x).cuda()


def normalised(group: Group, rows: Any) -> Any:
    """Doubles what this rank has in columns, so nothing is sent for it, and gives all of it back on every rank."""
    columns = copy(group, rows, axis=0, to=1)
    doubled = transform(group, lambda a: a * 2.0 + 1.0, columns)
    return copy(group, doubled, axis=1, to=None)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--input", metavar="X.npy", help="a matrix of f32")
    parser.add_argument("--host", action="store_true", help="ranks in host memory, on the simulator")
    options = parser.parse_args(arguments)
    x = np.load(options.input) if options.input else np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)
    group, theirs = joined(host=options.host)
    whole = normalised(group, theirs(x[bounds(group, len(x))].copy()))
    right = np.array_equal(np.asarray(whole.cpu() if hasattr(whole, "cpu") else whole), x * np.float32(2) + np.float32(1))
    print(f"rank {group.rank} of {group.size}: {'equal to numpy' if right else 'NOT EQUAL to numpy'}")
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
