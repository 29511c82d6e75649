"""Ranks that have parts of arrays: what is asked of the library that sends between them, and the groups that there are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, final

from oxidecopy.errors import ArgumentError, UsageError
from oxidecopy.frameworks.starting import Started, started
from oxidecopy.host.arrays import refusal
from oxidecopy.typed.refusal import described

NO_GROUP: Final = "OX5053"
PARTS: Final = "OX5054"
NO_GPU: Final = "OX5056"

# (Any: tensors of torch, or arrays of whatever library the group's processes use; the package depends on none of them.)
Part = Any


class Group(Protocol):
    """Processes that know each other by rank, and what they need of a library that sends."""

    @property
    def rank(self) -> int:
        """This process."""

    @property
    def size(self) -> int:
        """How many there are."""

    def empty(self, shape: Sequence[int], like: Part, dtype: str = "") -> Part:
        """New memory, contents undefined, on the device of `like`, row by row; of its element type, or of the one that numpy calls so."""

    def agree(self, numbers: Sequence[int]) -> list[list[int]]:
        """What every rank says; all say equally many numbers, of 64 bits."""

    def exchange(self, out: Part, sent: Part, received: Sequence[int], given: Sequence[int]) -> None:
        """The i-th piece of every rank's `sent`, in order of ranks, comes into the `out` of rank i; pieces are elements of flat arrays."""

    def stream(self, like: Part) -> int | None:
        """The stream on which `exchange` follows and precedes the caller's work; None in host memory."""


@final
class _Alone:
    """A group of one."""

    rank: Final = 0
    size: Final = 1

    def empty(self, shape: Sequence[int], like: Part, dtype: str = "") -> Part:
        import numpy as np

        if not isinstance(like, np.ndarray):
            raise wrong(described(like), "numpy arrays, which the group of one process is over", "torch_group() is over tensors")
        return np.empty(tuple(shape), dtype or like.dtype)

    def agree(self, numbers: Sequence[int]) -> list[list[int]]:
        return [list(numbers)]

    def exchange(self, out: Part, sent: Part, received: Sequence[int], given: Sequence[int]) -> None:
        out[...] = sent

    def stream(self, like: Part) -> int | None:
        return None


def alone() -> Group:
    """A group of this process alone, over numpy arrays: what a program does on one rank, anywhere."""
    return _Alone()


@final
class _TorchGroup:
    """A process group of torch, over its tensors: NCCL between GPUs, gloo between host memories."""

    def __init__(self, torch: Any, group: Any) -> None:
        self._torch, self._group = torch, group
        self.rank: Final[int] = torch.distributed.get_rank(group)
        self.size: Final[int] = torch.distributed.get_world_size(group)

    def empty(self, shape: Sequence[int], like: Part, dtype: str = "") -> Part:
        if not isinstance(like, self._torch.Tensor):
            raise wrong(described(like), "tensors of torch, which its process groups are over", "torch.from_numpy(x)")
        return self._torch.empty(tuple(shape), dtype=getattr(self._torch, dtype) if dtype else like.dtype, device=like.device)

    def agree(self, numbers: Sequence[int]) -> list[list[int]]:
        torch = self._torch
        device = "cuda" if "nccl" in str(torch.distributed.get_backend(self._group)) else "cpu"
        mine = torch.tensor(list(numbers), dtype=torch.int64, device=device)
        found = [torch.empty_like(mine) for _ in range(self.size)]
        torch.distributed.all_gather(found, mine, group=self._group)
        return [[int(n) for n in each.tolist()] for each in found]

    def exchange(self, out: Part, sent: Part, received: Sequence[int], given: Sequence[int]) -> None:
        size, raw = sent.element_size(), self._torch.uint8  # as bytes: libraries that send do not know all element types
        counts = [[n * size for n in each] for each in (received, given)]
        self._torch.distributed.all_to_all_single(out.view(raw), sent.view(raw), *counts, group=self._group)

    def stream(self, like: Part) -> int | None:
        if like.device.type != "cuda":
            return None
        return int(self._torch.cuda.current_stream(like.device).cuda_stream) or 1


def torch_group(group: Any = None) -> Group:
    """A process group of torch.distributed, the default one when none is given.

    Raises:
        UsageError: torch is not installed, or there is no process group (OX5053).
    """
    torch = _torch()
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        raise no_group("no process group", "`with joined() as group`, under torchrun, mpirun or srun; alone() for one process")
    try:
        return _TorchGroup(torch, group)
    except (ValueError, TypeError) as problem:  # torch's word for what is no group
        raise no_group(f"{described(group)}: {problem}", "torch.distributed.new_group(ranks), or nothing for all of them") from problem


@contextmanager
def joined(*, host: bool = False) -> Iterator[Group]:
    """The ranks that torchrun, mpirun (Open MPI, MPICH, Intel MPI) or srun started, as a group of torch; `alone()` where none of them did.

    A GPU for each rank and NCCL between them. Ranks of several hosts meet at MASTER_ADDR, which torchrun sets and the others leave to
    you. A process group that exists is taken as it is, and left as it is; one that was made here is gone at the end, but for an error's.

    Args:
        host: the ranks are over host memory, on the simulator, with gloo between them.

    Raises:
        UsageError: the environment does not say which rank this is (OX5055), torch is not installed (OX5053), or there is no GPU for
            this rank (OX5056).
    """
    said = started()
    if said is None:
        yield alone()
        return
    torch = _torch()
    ours = not torch.distributed.is_initialized()
    if not host:
        _take_gpu(torch, said)
    if ours:
        _begin(torch, said, host=host)
    yield torch_group()
    if ours:  # not behind an error: this rank would wait for what the others do, and the error would not be seen
        torch.distributed.destroy_process_group()


def _take_gpu(torch: Any, said: Started) -> None:
    """The rank's GPU becomes torch's current one: that of its number on this host, or the only one that its launcher shows it."""
    there = int(torch.cuda.device_count())
    number = 0 if there == 1 and os.environ.get("CUDA_VISIBLE_DEVICES") else said.local
    if number >= there:
        what = f"there is no GPU for rank {said.rank}, which {said.by} started"
        got = f"{there} that torch can use here; the rank is number {number} of this host, from 0"
        fix = "no more ranks on a host than GPUs; joined(host=True) for ranks on the simulator (examples/ranks.py --host)"
        raise UsageError(refusal(NO_GPU, what, got=got, required="a GPU for each rank", fix=fix))
    torch.cuda.set_device(number)


def _begin(torch: Any, said: Started, *, host: bool) -> None:
    """Makes the process group; torch meets in its own way where torchrun started the rank, since that listens already."""
    where: dict[str, Any] = {}
    if said.by != "torchrun":
        where = {"init_method": f"tcp://{said.address}:{said.port}", "rank": said.rank, "world_size": said.size}
    torch.distributed.init_process_group("gloo" if host else "nccl", **where)


def _torch() -> Any:
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
        import torch.distributed  # type: ignore[import-not-found,unused-ignore]
    except ImportError as problem:
        raise no_group(f"torch is not installed ({problem})", "pip install torch; alone() for one process") from problem
    return torch


def wrong(got: str, required: str, fix: str) -> ArgumentError:
    """For parts of an array that do not fit together."""
    return ArgumentError(refusal(PARTS, "the parts of an array do not fit together", got=got, required=required, fix=fix))


def no_group(got: str, fix: str) -> UsageError:
    """For what needs a group and has none."""
    return UsageError(refusal(NO_GROUP, "there are no processes to share an array with", got=got, required="a process group", fix=fix))
