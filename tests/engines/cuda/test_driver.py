"""What the driver answers becomes values or errors; bindings and driver that are not there are explained."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType
from typing import Any

import pytest

from oxidecopy.engines.cuda import driver as door
from oxidecopy.engines.cuda.driver import check, load_driver, name_of, start, version_of
from oxidecopy.engines.cuda.faults import MEANINGS, is_lost
from oxidecopy.errors import DeviceError, DeviceFaultError, DriverError, EarlierFaultError, OutOfMemoryError, OxidecopyError
from tests.helpers.fake_driver import FakeDriver
from tests.helpers.fake_gpu import ENUMS

CODES: Any = ENUMS["CUresult"]
OK: Any = CODES.CUDA_SUCCESS


def failed(code: str, about: str = "") -> OxidecopyError:
    with pytest.raises(OxidecopyError) as caught:
        check((CODES[code],), "cuSomething", about)
    return caught.value


def test_values_are_given_bare() -> None:
    assert check((OK,), "cuX") is None
    assert check((OK, 5), "cuX") == 5
    assert check((OK, 5, "a"), "cuX") == (5, "a")


def test_the_usual_failure() -> None:
    error = failed("CUDA_ERROR_INVALID_HANDLE", "stream 0x5")
    assert type(error) is DriverError
    assert (error.rule, error.name, error.code, error.call) == ("OX5301", "CUDA_ERROR_INVALID_HANDLE", 400, "cuSomething")
    (diagnostic,) = error.diagnostics
    assert diagnostic.got == "cuSomething: CUDA_ERROR_INVALID_HANDLE (400); stream 0x5"
    assert "handle" in diagnostic.what


def test_out_of_memory_is_a_memory_error_too() -> None:
    error = failed("CUDA_ERROR_OUT_OF_MEMORY")
    assert type(error) is OutOfMemoryError
    assert isinstance(error, MemoryError)
    assert isinstance(error, DriverError)
    assert error.rule == "OX5302"


@pytest.mark.parametrize("code", [code for code in MEANINGS if is_lost(f"CUDA_ERROR_{code}")])
def test_a_lost_context_is_a_fault(code: str) -> None:
    error = failed(f"CUDA_ERROR_{code}")
    assert type(error) is DeviceFaultError
    assert (error.rule, error.code) == ("OX5304", CODES[f"CUDA_ERROR_{code}"])
    assert MEANINGS[code].what in error.diagnostics[0].what


def test_faults_of_kernels_are_known_as_such() -> None:
    sticky = ("ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED")
    assert all(is_lost(f"CUDA_ERROR_{code}") for code in sticky)
    assert not any(is_lost(f"CUDA_ERROR_{code}") for code in ("INVALID_VALUE", "NOT_READY", "OUT_OF_MEMORY", "STREAM_CAPTURE_IMPLICIT"))
    assert not is_lost("error 4242")


def test_each_meaning_is_of_a_code_and_each_code_has_one() -> None:
    assert {f"CUDA_ERROR_{code}" for code in MEANINGS} == {code.name for code in CODES} - {"CUDA_SUCCESS"}
    assert all(meaning.what and not meaning.what.endswith(".") for meaning in MEANINGS.values())


def test_a_code_that_the_bindings_do_not_know() -> None:
    code: Any = 4242
    assert name_of(code) == "error 4242"
    with pytest.raises(DriverError) as caught:
        check((code,), "cuX")
    assert caught.value.diagnostics[0].got == "cuX: error 4242 (4242)"


def test_fault_classes() -> None:
    assert issubclass(EarlierFaultError, DeviceFaultError)


def test_start() -> None:
    driver = FakeDriver(version=13020)
    start(driver)
    start(driver)
    assert driver.initialised
    assert version_of(driver) == (13, 2)
    driver.fail["cuInit"] = "CUDA_ERROR_NO_DEVICE"
    with pytest.raises(DeviceError) as caught:
        start(driver)
    assert caught.value.rule == "OX5305"
    assert caught.value.diagnostics[0].got == "no NVIDIA driver answers (cuInit: CUDA_ERROR_NO_DEVICE)"


def test_start_in_a_forked_child() -> None:
    driver = FakeDriver()
    driver.fail["cuInit"] = "CUDA_ERROR_NOT_INITIALIZED"
    with pytest.raises(DeviceError) as caught:
        start(driver)
    assert caught.value.rule == "OX5305"
    assert caught.value.diagnostics[0].got.startswith("CUDA was used before this process was forked")
    assert "spawn" in caught.value.diagnostics[0].fix


class DynamicLibNotFoundError(RuntimeError):
    """As cuda-pathfinder calls it."""


@pytest.mark.parametrize(
    ("problem", "words"),
    [(DynamicLibNotFoundError("a long story"), "libcuda was not found"), (RuntimeError("no libcuda.so.1"), "no libcuda.so.1")],
)
def test_a_driver_that_is_not_there(monkeypatch: pytest.MonkeyPatch, problem: Exception, words: str) -> None:
    def absent(_: int) -> None:
        raise problem

    driver = FakeDriver()
    monkeypatch.setattr(driver, "cuInit", absent)
    with pytest.raises(DeviceError) as caught:
        start(driver)
    assert (caught.value.rule, caught.value.diagnostics[0].got) == ("OX5305", f"no NVIDIA driver answers ({words})")


def test_bindings_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "cuda" or name.startswith("cuda.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cuda", None)
    with pytest.raises(DeviceError) as caught:
        load_driver()
    assert caught.value.rule == "OX5305"
    assert caught.value.diagnostics[0].got.startswith("cuda-python is not installed (")
    assert "pip install" in caught.value.diagnostics[0].fix


@pytest.mark.parametrize(("problem", "words"), [(RuntimeError("first\nsecond"), "first"), (OSError(), "OSError")])
def test_bindings_that_break(monkeypatch: pytest.MonkeyPatch, problem: Exception, words: str) -> None:
    real = builtins.__import__

    def broken(name: str, *rest: Any) -> ModuleType:
        if name.startswith("cuda"):
            raise problem
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(DeviceError) as caught:
        door.load_driver()
    assert caught.value.diagnostics[0].got == f"cuda-python does not load ({words})"


def test_the_bindings_are_what_is_loaded() -> None:
    bindings = pytest.importorskip("cuda.bindings.driver")
    loaded: object = load_driver()
    assert loaded is bindings
