"""The probe against a driver that is missing, broken, old, empty or fine."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda.driver import Driver, load_driver
from oxidecopy.engines.cuda.probe import CudaFacts, Gpu, probe
from oxidecopy.errors import DeviceError, Diagnostic
from tests.helpers.fake_driver import FakeDriver, FakeGpu

OLD = FakeGpu("Old", 86, 1 << 34)


def test_usable_gpu() -> None:
    facts = probe(lambda: FakeDriver([OLD, FakeGpu()]))
    assert facts.driver == "12.9"
    assert facts.reason == ""
    assert facts.gpus[1] == Gpu(
        ordinal=1,
        name="NVIDIA H200",
        sm=90,
        memory_bytes=150_000_000_000,
        sms=132,
        threads_per_sm=2048,
        shared_bytes_block=232_448,
        shared_bytes_sm=233_472,
        l2_bytes=62_914_560,
        clusters=True,
        pools=True,
        bus_id="0000:1b:00",
    )
    assert [gpu.usable for gpu in facts.gpus] == [False, True]
    assert str(facts) == "cuda:0 Old (compute capability 8.6), cuda:1 NVIDIA H200 (compute capability 9.0), driver for CUDA 12.9"


@pytest.mark.parametrize(("mode", "words"), [(0, ""), (2, "none allowed"), (3, "one process"), (9, "")])
def test_compute_mode(mode: int, words: str) -> None:
    assert probe(lambda: FakeDriver([FakeGpu(attributes={"COMPUTE_MODE": mode})])).gpus[0].exclusive == words


def test_a_context_of_another_library_shows() -> None:
    driver = FakeDriver()
    assert not probe(lambda: driver).gpus[0].in_use
    driver.cuDevicePrimaryCtxRetain(0)
    assert probe(lambda: driver).gpus[0].in_use


def test_only_old_gpus() -> None:
    assert probe(lambda: FakeDriver([OLD])).reason == "no GPU has compute capability 9.0"


def test_an_old_driver() -> None:
    assert probe(lambda: FakeDriver(version=11080)).reason == "the driver is for CUDA 11.8, older than 12.0"


def test_a_driver_older_than_its_questions() -> None:
    gpu = FakeGpu(unknown=frozenset({"CLUSTER_LAUNCH", "MEMORY_POOLS_SUPPORTED"}))
    facts = probe(lambda: FakeDriver([gpu], version=11020))
    assert facts.reason == "the driver is for CUDA 11.2, older than 12.0"
    assert (facts.gpus[0].clusters, facts.gpus[0].pools, facts.gpus[0].sms) == (False, False, 132)
    facts = probe(lambda: FakeDriver([FakeGpu(unknown=frozenset({"COMPUTE_CAPABILITY_MINOR"}))]))
    assert facts.reason.startswith("cuDeviceGetAttribute: CUDA_ERROR_INVALID_VALUE (1); COMPUTE_CAPABILITY_MINOR")


def test_no_gpu() -> None:
    assert str(probe(lambda: FakeDriver([]))) == "the NVIDIA driver shows no GPU"


@pytest.mark.parametrize("call", ["cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute"])
def test_a_failing_call_is_named(call: str) -> None:
    driver = FakeDriver()
    driver.fail[call] = "CUDA_ERROR_NO_DEVICE"
    facts = probe(lambda: driver)
    assert facts.gpus == ()
    assert facts.reason.startswith(f"{call}: CUDA_ERROR_NO_DEVICE (100)")


def test_a_driver_that_does_not_start() -> None:
    driver = FakeDriver()
    driver.fail["cuInit"] = "CUDA_ERROR_NO_DEVICE"
    assert probe(lambda: driver).reason == "no NVIDIA driver answers (cuInit: CUDA_ERROR_NO_DEVICE)"


@pytest.mark.parametrize(("problem", "reason"), [(RuntimeError("first\nsecond"), "first"), (OSError(), "OSError")])
def test_a_driver_that_is_not_there(problem: Exception, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise problem

    driver = FakeDriver()
    monkeypatch.setattr(driver, "cuInit", raises)
    assert probe(lambda: driver).reason == f"no NVIDIA driver answers ({reason})"
    monkeypatch.undo()
    monkeypatch.setattr(driver, "cuDeviceGetCount", raises)
    assert probe(lambda: driver).reason == f"no NVIDIA driver answers ({reason})"


def test_bindings_that_do_not_load_give_their_reason() -> None:
    reason = "cuda-python is not installed (really)"

    def load() -> Driver:
        raise DeviceError(Diagnostic(rule="OX5305", what="CUDA cannot be used here", got=reason))

    assert probe(load) == CudaFacts(reason=reason)


def test_this_machine_gets_an_answer() -> None:
    facts = probe()
    assert bool(facts.reason) != any(gpu.usable for gpu in facts.gpus)
    assert str(facts)


def test_the_bindings_are_what_the_probe_loads_by_itself() -> None:
    pytest.importorskip("cuda.bindings.driver")
    assert callable(load_driver().cuInit)
