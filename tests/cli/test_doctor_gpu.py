"""The GPU half of `oxidecopy doctor`, for machines that have what this one may not."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oxidecopy.cli import doctor_gpu, nvidia_tools
from oxidecopy.cli.facts import Fact, safely
from oxidecopy.engines.cuda import module
from oxidecopy.engines.cuda import probe as probe_module
from oxidecopy.engines.cuda.abi_header import abi_hash
from oxidecopy.engines.cuda.probe import CudaFacts, Gpu
from oxidecopy.errors import DeviceError, Diagnostic
from oxidecopy.host import opening
from oxidecopy.host.settings import Settings

OLD = Gpu(ordinal=0, name="Old", sm=80, memory_bytes=40 << 30)
NEW = Gpu(
    ordinal=1,
    name="New",
    sm=90,
    memory_bytes=141 << 30,
    sms=132,
    threads_per_sm=2048,
    shared_bytes_block=232_448,
    shared_bytes_sm=233_472,
    l2_bytes=60 << 20,
    clusters=True,
    pools=True,
    bus_id="0000:1b:00",
)
TOOLS: dict[str, Any] = {"driver_version": "", "toolkit": ("", ""), "processes": {}, "used_bytes": {}, "mig_modes": {}}


class Engine:
    """Opens when it is told to."""

    problem: Exception | None = None
    closed = 0

    def __init__(self, ordinal: int, sm: int, found: Settings) -> None:
        if Engine.problem is not None:
            raise Engine.problem
        self.sm = sm
        self.code_file = SimpleNamespace(file="sm_90a.cubin")

    def close(self) -> None:
        Engine.closed += 1


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Two GPUs, no tools of NVIDIA's, an engine that opens."""
    for name, answer in TOOLS.items():
        monkeypatch.setattr(nvidia_tools, name, lambda answer=answer: answer)
    for name in doctor_gpu.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(probe_module, "probe", lambda: CudaFacts(driver="13.0", gpus=(OLD, NEW)))
    monkeypatch.setattr(opening, "_cuda_engine", Engine)
    monkeypatch.setattr(Engine, "problem", None)
    monkeypatch.setattr(Engine, "closed", 0)
    return monkeypatch


def facts() -> dict[str, Fact]:
    return {fact.topic: fact for fact in [*doctor_gpu.gpu_facts(), *doctor_gpu.open_facts()]}


def test_gpus_and_their_limits(there: pytest.MonkeyPatch) -> None:
    found = facts()
    assert found["NVIDIA driver"] == Fact(topic="NVIDIA driver", value="CUDA 13.0", state="ok")
    assert (found["cuda:0"].state, found["cuda:0"].note) == ("missing", "has no tensor maps: they came with 9.0")
    assert found["cuda:1"] == Fact(topic="cuda:1", value="New, compute capability 9.0, 141 GiB", state="ok")
    assert found["cuda:1 has"].value == (
        "132 SMs of 2,048 threads, shared memory 227 KiB per CTA (228 KiB per SM), L2 60 MiB, "
        "clusters of up to 8 CTAs, 16 where it is asked for, stream-ordered allocation"
    )
    assert found["cuda:1 has"].note == "0000:1b:00"
    assert "cuda:1 used by" not in found
    assert found["CUDA toolkit"].value == "none"
    assert "environment" not in found


def test_what_opens_and_what_does_not(there: pytest.MonkeyPatch) -> None:
    found = facts()
    assert found["runs on sim"].value == found["runs on sim-fast"].value == "yes"
    assert found["runs on cuda:1"] == Fact(topic="runs on cuda:1", value="yes", state="ok", note="by sm_90a.cubin")
    assert found["runs on cuda:0"].value == "no"
    assert found["runs on cuda:0"].note.startswith("needs a GPU of compute capability 9.0")
    assert found["by default"] == Fact(topic="by default", value="cuda:1", note="cuda:1 New (compute capability 9.0): the first usable GPU")
    assert Engine.closed == 2


@pytest.mark.parametrize(
    ("problem", "note"),
    [
        (DeviceError(Diagnostic(rule="OX5334", what="no code", got="9.0", required="sm_100f")), "needs sm_100f"),
        (DeviceError(Diagnostic(rule="OX5334", what="no code", got="9.0")), "no code: 9.0"),
        (DeviceError(Diagnostic(rule="OX5334", what="no code")), "no code"),
        (ImportError("half an install"), "half an install"),
        (RuntimeError("whatever"), "RuntimeError: whatever"),
    ],
)
def test_what_does_not_open_says_why(there: pytest.MonkeyPatch, problem: Exception, note: str) -> None:
    there.setattr(Engine, "problem", problem)
    assert facts()["runs on cuda:1"] == Fact(topic="runs on cuda:1", value="no", state="missing", note=note)


def test_a_simulator_that_does_not_load_is_broken(there: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ImportError("numpy is half there")

    there.setattr(opening, "_simulator", broken)
    assert facts()["runs on sim"] == Fact(topic="runs on sim", value="no", state="broken", note="numpy is half there")


def test_others_on_the_gpu(there: pytest.MonkeyPatch) -> None:
    there.setattr(nvidia_tools, "processes", lambda: {NEW.bus_id: [17, 18]})
    there.setattr(nvidia_tools, "used_bytes", lambda: {NEW.bus_id: 3 << 29})
    there.setattr(nvidia_tools, "mig_modes", lambda: {NEW.bus_id: "Enabled"})
    busy = Gpu(ordinal=1, name="New", sm=90, memory_bytes=1 << 37, sms=132, bus_id=NEW.bus_id, in_use=True, exclusive="one process")
    there.setattr(probe_module, "probe", lambda: CudaFacts(driver="13.0", gpus=(busy,)))
    found = facts()
    assert found["cuda:1 used by"] == Fact(
        topic="cuda:1 used by",
        value="another library in this process has a context on it, which is shared; 2 other processes (17, 18); "
        "1.5 GiB of its memory in use; it is split into instances (MIG); compute mode: one process",
    )
    assert "no clusters, plain allocation" in found["cuda:1 has"].value
    there.setattr(nvidia_tools, "processes", lambda: {NEW.bus_id: [17]})
    assert "1 other process (17)" in facts()["cuda:1 used by"].value


def test_software(there: pytest.MonkeyPatch) -> None:
    there.setattr(nvidia_tools, "driver_version", lambda: "580.82.07")
    there.setattr(nvidia_tools, "toolkit", lambda: ("13.0", "/opt/cuda/bin/nvcc"))
    there.setenv("CUDA_VISIBLE_DEVICES", "1")
    there.setenv("OXIDECOPY_CHECKED", "1")
    found = facts()
    assert found["NVIDIA driver"].note == "version 580.82.07"
    assert (found["CUDA toolkit"].value, found["CUDA toolkit"].note) == ("13.0", "/opt/cuda/bin/nvcc")
    assert found["environment"].value == "CUDA_VISIBLE_DEVICES=1, OXIDECOPY_CHECKED=1"


def test_settings_that_mean_nothing(there: pytest.MonkeyPatch) -> None:
    there.setenv("OXIDECOPY_CHECKED", "perhaps")
    fact = facts()["environment"]
    assert (fact.value, fact.state) == ("OXIDECOPY_CHECKED=perhaps", "missing")
    assert fact.note == "OXIDECOPY_CHECKED is neither a yes nor a no ('perhaps'; it takes 0, false, no, off, 1, true, yes, on): ignored"


def test_without_a_driver_and_bindings(there: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise PackageNotFoundError

    there.setattr(doctor_gpu, "version", absent)
    there.setattr(probe_module, "probe", lambda: CudaFacts(reason="nobody answers"))
    found = facts()
    assert found["cuda-python"].value == "not installed"
    assert found["NVIDIA driver"] == Fact(topic="NVIDIA driver", value="none", state="missing", note="nobody answers")
    assert found["runs on cuda:0"].value == "no"
    assert (found["by default"].value, found["by default"].note) == ("sim", "no GPU can be used: nobody answers")


def test_kernels(there: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good = module.CodeFile(file="sm_90a.cubin", target="sm_90a", sha256="0" * 64)
    ptx = module.CodeFile(file="compute_90.ptx", target="compute_90", sha256="0" * 64)
    there.setattr(module, "read_manifest", lambda _: module.Manifest(abi=abi_hash(), toolkit="12.9", files=(good, ptx)))
    there.setattr(module, "read_code", lambda *_: b"")
    found = facts()
    assert (found["kernels"].value, found["kernels"].note) == ("sm_90a, compute_90", "12.9")
    assert (found["kernels of cuda:1"].value, found["kernels of cuda:1"].note) == ("sm_90a.cubin", "")
    assert "kernels of cuda:0" not in found
    there.setattr(module, "choose", lambda *_: ptx)
    assert facts()["kernels of cuda:1"].note == "compiled by the driver when it is loaded"

    def none_fits(*_: object) -> None:
        raise DeviceError(Diagnostic(rule="OX5334", what="no code", got="9.0"))

    there.setattr(module, "choose", none_fits)
    assert facts()["kernels of cuda:1"] == Fact(topic="kernels of cuda:1", value="none", state="missing", note="no code: 9.0")
    there.setattr(module, "read_manifest", none_fits)
    assert facts()["kernels"] == Fact(topic="kernels", value="none", state="missing", note="no code: 9.0")


def test_an_answer_comes_whatever_breaks(there: pytest.MonkeyPatch) -> None:
    def breaks() -> Any:
        raise ValueError("first\nsecond")

    there.setattr(nvidia_tools, "toolkit", breaks)
    assert facts()["CUDA toolkit"] == Fact(topic="CUDA toolkit", value="cannot be asked", state="missing", note="ValueError: first")

    def mute() -> Any:
        raise KeyError

    assert safely("x", mute) == [Fact(topic="x", value="cannot be asked", state="missing", note="KeyError")]
