"""`Device.open`: names, what was found, and lazy imports."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import DeviceError, UsageError
from tests.helpers.memory_engine import memory_device


def test_default_is_the_simulator_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    dev = ox.Device.open()
    assert (dev.name, dev.sm) == ("sim", 90)
    assert dev.why.startswith("sim: this version runs on the simulator only; found: ")
    assert "\n" not in dev.why
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["sim", "sim-fast"])
def test_simulators_by_name(name: str) -> None:
    dev = ox.Device.open(name)
    assert (dev.name, dev.why) == (name, f"{name}: asked for by name")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert (dev.array(x).numpy() == x).all()
    assert (dev.array(x, pad=True).numpy() == x).all()


def test_checked_simulator() -> None:
    assert ox.Device.open("sim", checked=True).name == "sim"
    with pytest.raises(UsageError) as caught:
        ox.Device.open("sim-fast", checked=True)
    assert caught.value.rules == ("OX5014",)


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:7"])
def test_cuda_is_not_part_of_this_version(name: str) -> None:
    with pytest.raises(DeviceError) as caught:
        ox.Device.open(name)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.rule == "OX5013"
    assert name in diagnostic.what
    assert diagnostic.got
    assert "CUDA engine" in diagnostic.required


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("Sim", '"sim"'),
        ("cuda0", '"cuda:0"'),
        ("tpu", "Device.open()"),
        ("", "Device.open()"),
        ("cuda:", '"cuda:0"'),
        ("cuda:x", '"cuda:0"'),
    ],
)
def test_unknown_names(name: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        ox.Device.open(name)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.rule == "OX5012"
    assert diagnostic.required == "sim, sim-fast, cuda:0"
    assert fix in diagnostic.fix
    assert diagnostic.site is not None
    assert diagnostic.site.file == __file__


def test_a_name_is_a_string() -> None:
    with pytest.raises(UsageError) as caught:
        ox.Device.open(0)  # type: ignore[arg-type]  # the mistake
    assert caught.value.rules == ("OX5012",)


def test_buffers_live_as_long_as_their_arrays() -> None:
    import gc
    import weakref

    dev = ox.Device.open("sim")
    a = dev.empty((4, 4), ox.f32)
    seen = weakref.ref(a.buffer)
    gc.collect()
    assert seen() is not None
    del a
    gc.collect()
    assert seen() is None


def test_importing_the_host_side_imports_neither_numpy_nor_cuda() -> None:
    modules = ("host.device", "host.npy", "engines.cuda.probe", "typed.tiled_map", "rules.host", "rules.descriptor")
    code = f"import sys, {', '.join('oxidecopy.' + m for m in modules)}; print(sorted({{'numpy', 'cuda', 'ml_dtypes'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_memory_has_no_bound_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> int:
        raise ValueError

    monkeypatch.setattr("os.sysconf", unknown)
    dev, engine = memory_device()
    assert dev.empty((4,), ox.f32).shape == (4,)
    assert engine.buffers[0].nbytes == 16
    assert repr(dev) == "Device('memory', sm=90)"
