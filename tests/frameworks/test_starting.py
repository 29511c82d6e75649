"""Ranks that torchrun, MPI and Slurm start: what their variables say, and the process group that comes of it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from oxidecopy.errors import UsageError
from oxidecopy.frameworks import sharded
from oxidecopy.frameworks.starting import Started, started

HERE = "127.0.0.1"
TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "a0", "MASTER_PORT": "1234"}
OPEN_MPI = {f"OMPI_COMM_WORLD_{name}": n for name, n in (("RANK", "1"), ("SIZE", "2"), ("LOCAL_RANK", "1"), ("LOCAL_SIZE", "2"))}
HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "3", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "3"}
SRUN = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "5", "SLURM_STEP_NUM_NODES": "1"}


def told(by: str, rank: int, size: int, local: int, address: str = HERE, port: str = "29500") -> Started:
    return Started(by=by, rank=rank, size=size, local=local, address=address, port=port)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, None),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),  # a batch script: one process, whatever its steps will be
        (TORCHRUN, told("torchrun", 3, 4, 1, "a0", "1234")),
        (OPEN_MPI, told("mpirun of Open MPI", 1, 2, 1)),
        (HYDRA, told("mpirun of MPICH or Intel MPI", 0, 3, 0)),
        (SRUN, told("srun", 5, 8, 5)),
        ({**SRUN, **OPEN_MPI}, told("mpirun of Open MPI", 1, 2, 1)),  # the last one that was asked
        ({**SRUN, **OPEN_MPI, **TORCHRUN}, told("torchrun", 3, 4, 1, "a0", "1234")),
        ({**SRUN, "SLURM_STEP_NUM_NODES": "2", "MASTER_ADDR": "a0"}, told("srun", 5, 8, 5, "a0")),
        ({**OPEN_MPI, "MASTER_PORT": "7"}, told("mpirun of Open MPI", 1, 2, 1, HERE, "7")),
    ],
)
def test_what_launchers_say(said: dict[str, str], found: Started | None) -> None:
    assert started(said) == found


@pytest.mark.parametrize(
    ("said", "got"),
    [
        ({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "2"}, "OMPI_COMM_WORLD_RANK=2, OMPI_COMM_WORLD_SIZE=2"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "two"}, "OMPI_COMM_WORLD_SIZE='two'"),
        ({**SRUN, "SLURM_STEP_NUM_NODES": "2"}, "no MASTER_ADDR, and not all of 8 ranks on this host"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MASTER_ADDR": "a0"}, "no MPI_LOCALRANKID"),
        ({**HYDRA, "MPI_LOCALNRANKS": "2"}, "no MASTER_ADDR, and 2 of 3 ranks on this host"),
    ],
)
def test_what_does_not_say_enough(said: dict[str, str], got: str) -> None:
    with pytest.raises(UsageError) as caught:
        started(said)
    (problem,) = caught.value.diagnostics
    assert (problem.rule, problem.got) == ("OX5055", got)


class FakeTorch(ModuleType):
    """As much of torch as joining takes: it notes what it is asked."""

    def __init__(self) -> None:
        super().__init__("torch")
        self.asked: list[Any] = []
        self.cuda = ModuleType("torch.cuda")
        self.distributed: Any = ModuleType("torch.distributed")
        self.made = False
        vars(self.cuda).update(device_count=lambda: 2, set_device=lambda n: self.asked.append(("set_device", n)))
        vars(self.distributed).update(
            is_available=lambda: True,
            is_initialized=lambda: self.made,
            init_process_group=self._begin,
            destroy_process_group=lambda: self.asked.append("end"),
            get_rank=lambda _: 1,
            get_world_size=lambda _: 2,
        )

    def _begin(self, backend: str, **where: Any) -> None:
        self.asked.append((backend, where))
        self.made = True


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    fake = FakeTorch()
    for name, module in (("torch", fake), ("torch.distributed", fake.distributed)):
        monkeypatch.setitem(sys.modules, name, module)
    for name in (*TORCHRUN, *OPEN_MPI, *HYDRA, *SRUN):
        monkeypatch.delenv(name, raising=False)
    return fake


def test_nobody_started_ranks(torch: FakeTorch) -> None:
    with sharded.joined() as group:
        assert np.array_equal(sharded.copy(group, np.ones((2, 3)), axis=0, to=None), np.ones((2, 3)))
    assert torch.asked == []


def test_ranks_of_mpi(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in OPEN_MPI.items():
        monkeypatch.setenv(name, value)
    with sharded.joined() as group:
        assert (group.rank, group.size) == (1, 2)
    meet = {"init_method": "tcp://127.0.0.1:29500", "rank": 1, "world_size": 2}
    assert torch.asked == [("set_device", 1), ("nccl", meet), "end"]


def test_a_rank_without_a_gpu_is_refused_before_it_waits_for_others(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**HYDRA, "PMI_RANK": "2", "MPI_LOCALRANKID": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError) as caught, sharded.joined():
        pass
    (problem,) = caught.value.diagnostics
    assert (problem.rule, problem.got) == ("OX5056", "2 that torch can use here; the rank is number 2 of this host, from 0")
    assert torch.asked == []


def test_a_rank_that_is_shown_one_gpu_takes_it(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SRUN, "CUDA_VISIBLE_DEVICES": "5"}.items():
        monkeypatch.setenv(name, value)
    vars(torch.cuda)["device_count"] = lambda: 1
    with sharded.joined():
        pass
    assert torch.asked[0] == ("set_device", 0)


def test_ranks_of_torchrun_on_the_host(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    with sharded.joined(host=True):
        pass
    assert torch.asked == [("gloo", {}), "end"]


def test_an_error_is_seen_before_the_other_ranks_are_waited_for(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in OPEN_MPI.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RuntimeError), sharded.joined(host=True):
        raise RuntimeError
    assert "end" not in torch.asked


def test_a_process_group_that_exists_is_left(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in OPEN_MPI.items():
        monkeypatch.setenv(name, value)
    torch.made = True
    with sharded.joined(host=True):
        pass
    assert torch.asked == []
