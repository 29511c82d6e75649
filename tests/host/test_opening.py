"""What `Device.open` takes: by name, by what there is, and why."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda import probe as probe_module
from oxidecopy.engines.cuda.probe import CudaFacts, Gpu
from oxidecopy.engines.cuda.wait_limit import LIMIT_VARIABLE
from oxidecopy.errors import DeviceError, Diagnostic, DriverError
from oxidecopy.host import opening
from oxidecopy.host.settings import CHECKED_VARIABLE, Settings

OLD = Gpu(ordinal=0, name="Old", sm=80, memory_bytes=40 << 30)
NEW = Gpu(ordinal=1, name="New", sm=90, memory_bytes=141 << 30)
BOTH = CudaFacts(driver="13.0", gpus=(OLD, NEW))
NOTHING = CudaFacts(reason="no NVIDIA driver answers (nobody is there)")


class Engine:
    """What was asked for; `problem` is raised instead."""

    problem: ox.errors.OxidecopyError | None = None

    def __init__(self, ordinal: int, sm: int, found: Settings) -> None:
        if Engine.problem is not None:
            raise Engine.problem
        self.ordinal, self.sm, self.checked, self.name = ordinal, sm, found.checked, f"cuda:{ordinal}"
        self.limit_us = found.limit_us


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An old and a new GPU, and an engine that notes what it is asked for."""
    monkeypatch.delenv(CHECKED_VARIABLE, raising=False)
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    monkeypatch.setattr(probe_module, "probe", lambda: BOTH)
    monkeypatch.setattr(opening, "_cuda_engine", Engine)
    monkeypatch.setattr(Engine, "problem", None)
    return monkeypatch


def engine_of(dev: ox.Device) -> Any:
    return dev.engine


def refused(name: str) -> Diagnostic:
    with pytest.raises(DeviceError) as caught:
        ox.Device.open(name)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.site is None or diagnostic.site.file == __file__
    return diagnostic


def test_the_first_usable_gpu_is_taken(gpus: pytest.MonkeyPatch) -> None:
    dev = ox.Device.open()
    assert (dev.name, dev.sm, engine_of(dev).ordinal, engine_of(dev).checked) == ("cuda:1", 90, 1, False)
    assert dev.why == "cuda:1 New (compute capability 9.0): the first usable GPU"
    assert (ox.Device.open("cuda").name, ox.Device.open("cuda").why) == ("cuda:1", "cuda:1 New (compute capability 9.0): asked for by name")
    assert ox.Device.open("cuda:1").name == "cuda:1"
    assert ox.Device.open("cuda:01").name == "cuda:1"


@pytest.mark.parametrize(("value", "checked"), [("1", True), ("YES", True), ("0", False), ("false", False), ("", False)])
def test_checks_are_asked_for_by_the_environment(gpus: pytest.MonkeyPatch, value: str, *, checked: bool) -> None:
    gpus.setenv(CHECKED_VARIABLE, value)
    assert engine_of(ox.Device.open()).checked is checked
    assert engine_of(ox.Device.open("cuda:1")).checked is checked
    assert engine_of(ox.Device.open("cuda:1", checked=True)).checked
    assert ox.Device.open("sim-fast").name == "sim-fast"  # only asking by argument is refused there


@pytest.mark.parametrize(
    ("name", "rule", "said"),
    [
        (
            CHECKED_VARIABLE,
            "OX5017",
            "OXIDECOPY_CHECKED is neither a yes nor a no ('maybe'; it takes 0, false, no, off, 1, true, yes, on): ignored",
        ),
        (LIMIT_VARIABLE, "OX5337", "OXIDECOPY_WAIT_LIMIT_MS is no limit for waits ('maybe'; it takes milliseconds, 1 to 4194304): ignored"),
    ],
)
def test_a_setting_that_means_nothing(gpus: pytest.MonkeyPatch, name: str, rule: str, said: str) -> None:
    """By name it is an error; `Device.open()` goes on without it, and says so in one line."""
    gpus.setenv(name, "maybe")
    with pytest.raises(ox.errors.UsageError) as caught:
        ox.Device.open("cuda:1")
    assert caught.value.rules == (rule,)
    with pytest.warns(RuntimeWarning) as warned:
        dev = ox.Device.open()
    assert [(str(each.message), each.filename) for each in warned] == [(said, __file__)]
    assert (dev.name, engine_of(dev).checked, engine_of(dev).limit_us) == ("cuda:1", False, 4_000_000)
    assert dev.why.endswith(f"the first usable GPU; {said}")
    assert "\n" not in dev.why
    gpus.setattr(probe_module, "probe", lambda: NOTHING)
    with pytest.warns(RuntimeWarning):
        assert ox.Device.open().name == "sim"
    assert ox.Device.open("sim").name == "sim"  # which has no use for them


def test_a_limit_reaches_the_engine(gpus: pytest.MonkeyPatch) -> None:
    gpus.setenv(LIMIT_VARIABLE, "250")
    assert engine_of(ox.Device.open()).limit_us == 250_000
    gpus.delenv(LIMIT_VARIABLE)
    gpus.setenv(CHECKED_VARIABLE, "on")
    assert engine_of(ox.Device.open("cuda:1")).limit_us == 1_000_000


@pytest.mark.parametrize("word", ["yes", 1, 0, None])
def test_checked_is_true_or_false(word: Any) -> None:
    with pytest.raises(ox.errors.ArgumentError) as caught:
        ox.Device.open("sim", checked=word)
    assert caught.value.rules == ("OX5016",)


def test_without_a_driver_it_is_the_simulator(gpus: pytest.MonkeyPatch) -> None:
    gpus.setattr(probe_module, "probe", lambda: NOTHING)
    dev = ox.Device.open()
    assert (dev.name, dev.why) == ("sim", "sim: no GPU can be used: no NVIDIA driver answers (nobody is there)")


@pytest.mark.parametrize("error", [DeviceError, lambda d: DriverError(d, name="CUDA_ERROR_OUT_OF_MEMORY", code=2, call="cuX")])
def test_a_gpu_that_does_not_open_is_passed_over_with_its_reason(gpus: pytest.MonkeyPatch, error: Any) -> None:
    gpus.setattr(Engine, "problem", error(Diagnostic(rule="OX5301", what="no\nluck", got="cuX: CUDA_ERROR")))
    dev = ox.Device.open()
    assert (dev.name, dev.why) == ("sim", "sim: no GPU can be used: cuda:1 New (compute capability 9.0): no luck (cuX: CUDA_ERROR)")
    gpus.setattr(Engine, "problem", error(Diagnostic(rule="OX5301", what="no luck")))
    assert ox.Device.open().why == "sim: no GPU can be used: cuda:1 New (compute capability 9.0): no luck"


def test_by_name_its_error_is_raised(gpus: pytest.MonkeyPatch) -> None:
    gpus.setattr(Engine, "problem", DeviceError(Diagnostic(rule="OX5334", what="no code")))
    assert refused("cuda:1").rule == "OX5334"
    gpus.setattr(Engine, "problem", DriverError(Diagnostic(rule="OX5301", what="no luck", got="cuX"), name="N", code=1, call="cuX"))
    diagnostic = refused("cuda:1")
    assert (diagnostic.rule, diagnostic.got) == ("OX5013", "cuda:1 New (compute capability 9.0): no luck (cuX)")
    assert diagnostic.required == "a driver that opens it"


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:7"])
def test_by_name_without_a_driver(gpus: pytest.MonkeyPatch, name: str) -> None:
    gpus.setattr(probe_module, "probe", lambda: NOTHING)
    diagnostic = refused(name)
    assert (diagnostic.rule, diagnostic.what) == ("OX5013", f"{name} cannot be used")
    assert diagnostic.got == NOTHING.reason
    assert diagnostic.required == "a GPU of compute capability 9.0 or newer with a driver for CUDA 12.0 or newer"
    assert 'Device.open("sim")' in diagnostic.fix


def test_by_name_an_old_gpu_and_one_that_is_not_there(gpus: pytest.MonkeyPatch) -> None:
    old, absent = refused("cuda:0"), refused("cuda:7")
    assert old.got == absent.got == str(BOTH)
    assert old.required == "a GPU of compute capability 9.0 or newer with a driver for CUDA 12.0 or newer"
    assert absent.required == "a GPU that the driver shows (CUDA_VISIBLE_DEVICES hides others)"
    assert old.fix == absent.fix == 'Device.open("cuda:1")'


def test_by_name_with_old_gpus_only(gpus: pytest.MonkeyPatch) -> None:
    gpus.setattr(probe_module, "probe", lambda: CudaFacts(driver="12.9", gpus=(OLD,), reason="no GPU has compute capability 9.0"))
    assert refused("cuda").got == "no GPU has compute capability 9.0: cuda:0 Old (compute capability 8.0), driver for CUDA 12.9"
    assert ox.Device.open().why == "sim: no GPU can be used: no GPU has compute capability 9.0"


def test_with_an_old_driver_no_gpu_is_tried(gpus: pytest.MonkeyPatch) -> None:
    gpus.setattr(probe_module, "probe", lambda: CudaFacts(driver="11.8", gpus=(NEW,), reason="the driver is for CUDA 11.8"))
    assert ox.Device.open().why == "sim: no GPU can be used: the driver is for CUDA 11.8"
    for name in ("cuda", "cuda:1"):
        assert refused(name).got == "the driver is for CUDA 11.8: cuda:1 New (compute capability 9.0), driver for CUDA 11.8"


def modules(monkeypatch: pytest.MonkeyPatch, asked: list[object]) -> None:
    def engine(ordinal: int, *, checked: bool, limit_us: int) -> str:
        asked.append((ordinal, checked, limit_us))
        return "engine"

    module, engines = ModuleType("module"), ModuleType("engine")
    vars(module).update(choose=lambda *a: asked.append(a), kernels_folder=lambda: "folder", read_manifest=lambda folder: f"of {folder}")
    vars(engines)["CudaEngine"] = engine
    monkeypatch.setitem(sys.modules, "oxidecopy.engines.cuda.module", module)
    monkeypatch.setitem(sys.modules, "oxidecopy.engines.cuda.engine", engines)


def test_machine_code_is_looked_for_before_a_context_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    modules(monkeypatch, asked)
    made: object = opening._cuda_engine(3, 90, Settings(checked=True, limit_us=7))
    assert (made, asked) == ("engine", [("of folder", 90), (3, True, 7)])


def test_an_engine_that_does_not_load_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "oxidecopy.engines.cuda.engine", None)
    with pytest.raises(DeviceError) as caught:
        opening._cuda_engine(0, 90, Settings(checked=False, limit_us=7))
    assert caught.value.rule == "OX5013"
    assert "the CUDA engine does not load" in caught.value.diagnostics[0].got
