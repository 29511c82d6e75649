"""An array in parts on several processes: cut along rows, then along columns, computed on, and whole again; and a product of it.

python examples/ranks.py                                                    one process, on the simulator
torchrun --nproc-per-node 2 examples/ranks.py                               a GPU for each rank, NCCL between them
torchrun --nproc-per-node 2 examples/ranks.py --host                        ranks on the simulator, gloo between them
mpirun -n 2 python examples/ranks.py                                        ranks started by MPI, or by Slurm's srun
python examples/ranks.py --input x.npy                                      your own f32 matrix
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from oxidecopy.frameworks.sharded import Group, bounds, copy, joined, matmul, transform
from oxidecopy.frameworks.starting import started


def arrays(*, host: bool) -> Callable[[Any], Any]:
    """How a numpy array becomes one of the group's: as it is where nobody started ranks, else a tensor."""
    if started() is None:
        return lambda x: x
    import torch  # type: ignore[import-not-found,unused-ignore]

    return torch.from_numpy if host else lambda x: torch.from_numpy(x).cuda()


def normalised(group: Group, rows: Any) -> Any:
    """Doubles what this rank has in columns, so nothing is sent for it, and gives all of it back on every rank."""
    columns = copy(group, rows, axis=0, to=1)
    doubled = transform(group, lambda a: a * 2.0 + 1.0, columns)
    return copy(group, doubled, axis=1, to=None)


def multiplied(group: Group, rows: Any, columns: Any) -> Any:
    """All of the product of a matrix in rows by one in columns: each rank is sent all of the second one, and multiplies its rows."""
    return matmul(group, rows, columns, axes=(0, 1), to=None)


def equal(found: Any, right: Any) -> bool:
    """What the ranks computed is numpy's, element for element."""
    return np.array_equal(np.asarray(found.cpu() if hasattr(found, "cpu") else found), right)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--input", metavar="X.npy", help="a matrix of f32")
    parser.add_argument("--host", action="store_true", help="ranks in host memory, on the simulator")
    options = parser.parse_args(arguments)
    x = np.load(options.input) if options.input else np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)
    small = np.random.default_rng(1).integers(-4, 5, (48, 32)).astype(np.float16)  # products of these are exact in f16
    with joined(host=options.host) as group:
        theirs = arrays(host=options.host)
        whole = normalised(group, theirs(x[bounds(group, len(x))].copy()))
        square = multiplied(group, theirs(small[bounds(group, 48)].copy()), theirs(small.T[:, bounds(group, 48)].copy()))
        right = equal(whole, x * np.float32(2) + np.float32(1)) and equal(square, small @ small.T)
        said = f"rank {group.rank} of {group.size}: {'equal to numpy' if right else 'NOT EQUAL to numpy'}\n"
        print(said, end="", flush=True)  # in one piece: ranks share the terminal
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
