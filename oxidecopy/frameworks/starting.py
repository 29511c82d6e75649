"""Ranks, however they were started: what torchrun, MPI and Slurm say in the environment, and a process group of torch made of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from oxidecopy.errors import Diagnostic, UsageError
from oxidecopy.typed.sites import caller_site

UNCLEAR: Final = "OX5055"
_THIS_HOST: Final = "127.0.0.1"
_PORT: Final = "29500"  # torch's own choice


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a launcher said of this process.

    Attributes:
        by: its name.
        rank, size: this process, and how many there are.
        local: this process among those of its host: the GPU it takes.
        address, port: where rank 0 listens, as torch.distributed asks.
    """

    by: str
    rank: int
    size: int
    local: int
    address: str
    port: str


@final
@dataclass(frozen=True, slots=True)
class _Launcher:
    """How a launcher tells its processes who they are: names of variables. `hosts` or `local_size` tells whether all are on one host."""

    name: str
    rank: str
    size: str
    local: str
    local_size: str = ""
    hosts: str = ""


# In this order: mpirun inside of a job of Slurm, and torchrun inside of either, start what was asked for last. Slurm's are those of a step
# (`srun`): its batch script has a SLURM_PROCID too, and is one process.
_LAUNCHERS: Final = (
    _Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", local_size="LOCAL_WORLD_SIZE"),
    _Launcher("mpirun of Open MPI", *(f"OMPI_COMM_WORLD_{n}" for n in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))),
    _Launcher("mpirun of MPICH or Intel MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", local_size="MPI_LOCALNRANKS"),
    _Launcher("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", hosts="SLURM_STEP_NUM_NODES"),
)


def started(environ: Mapping[str, str] | None = None) -> Started | None:
    """What the environment says of this process; None where nobody started ranks.

    Raises:
        UsageError: it says one thing and not the other, or several hosts and not where rank 0 is (OX5055).
    """
    said = os.environ if environ is None else environ
    for launcher in _LAUNCHERS:
        if launcher.rank in said and launcher.size in said:
            return _told(launcher, said)
    return None


def _told(launcher: _Launcher, said: Mapping[str, str]) -> Started:
    rank, size = (_number(launcher, said, name) for name in (launcher.rank, launcher.size))
    if not 0 <= rank < size:
        raise _unclear(launcher, f"{launcher.rank}={rank}, {launcher.size}={size}", "a rank from 0 to the size - 1")
    hosts = _number(launcher, said, launcher.hosts) if launcher.hosts in said else None
    here = _number(launcher, said, launcher.local_size) if launcher.local_size in said else size if hosts == 1 else None
    local = _number(launcher, said, launcher.local) if launcher.local in said else rank if here == size else None
    if local is None:
        raise _unclear(launcher, f"no {launcher.local}", "the number of the process on its host, by which it takes a GPU")
    if "MASTER_ADDR" not in said and here != size:
        got = f"no MASTER_ADDR, and {'not all' if here is None else here} of {size} ranks on this host"
        raise _unclear(launcher, got, "where rank 0 is", "export MASTER_ADDR=<host of rank 0> MASTER_PORT=29500 on all ranks")
    address = said.get("MASTER_ADDR", _THIS_HOST)
    return Started(by=launcher.name, rank=rank, size=size, local=local, address=address, port=said.get("MASTER_PORT", _PORT))


def _number(launcher: _Launcher, said: Mapping[str, str], name: str) -> int:
    if not said[name].isdecimal():
        raise _unclear(launcher, f"{name}={said[name]!r}", "a number")
    return int(said[name])


def _unclear(launcher: _Launcher, got: str, required: str, fix: str = "") -> UsageError:
    fix = fix or "start the ranks by torchrun, mpirun or srun, or unset these variables for one process"
    what = f"the environment says that {launcher.name} started this process, and not as what"
    return UsageError(Diagnostic(rule=UNCLEAR, what=what, got=got, required=required, fix=fix, site=caller_site()))
