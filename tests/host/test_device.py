"""`Device.open`: names, what was found, and lazy imports."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import InputError, UsageError
from tests.helpers.memory_engine import memory_device


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
    modules = (
        "host.device",
        "host.opening",
        "engines.cuda.context",
        "engines.cuda.memory",
        "engines.cuda.stream",
        "host.npy",
        "engines.cuda.probe",
        "typed.tiled_map",
        "rules.host",
        "rules.descriptor",
    )
    code = f"import sys, {', '.join('oxidecopy.' + m for m in modules)}; print(sorted({{'numpy', 'cuda', 'ml_dtypes'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_engine_says_how_much_fits() -> None:
    dev, engine = memory_device()
    engine.room = 16
    assert dev.empty((4,), ox.f32).shape == (4,)
    with pytest.raises(InputError) as caught:
        dev.empty((5,), ox.f32)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.rule, diagnostic.required) == ("OX5011", "at most 16 bytes")
    assert "the memory of memory" in diagnostic.what
    assert engine.buffers[0].nbytes == 16
    assert (repr(dev), dev.why) == ("Device('memory', sm=90)", "memory: asked for by name")


def test_the_simulator_has_no_bound_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> int:
        raise ValueError

    engine = ox.Device.open("sim").engine
    assert engine.room_bytes() < 1 << 62
    with pytest.raises(MemoryError):
        engine.allocate(engine.room_bytes() + 1)
    monkeypatch.setattr("os.sysconf", unknown)
    assert engine.room_bytes() == 1 << 62


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("simulator", '"sim"'),
        ("gpu", '"cuda"'),
        (0, '"cuda:0"'),
        ("cuda0", '"cuda:0"'),
        ("cuda:O", '"cuda:0"'),
        ("smi", '"sim"'),
        ("?", ""),
    ],
)
def test_the_name_that_was_meant(name: Any, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        ox.Device.open(name)
    assert caught.value.diagnostics[0].fix.startswith(f"Device.open({fix})")


@pytest.mark.parametrize("given", [(), ("sim",)])
def test_a_device_is_opened(given: Any) -> None:
    with pytest.raises(UsageError) as caught:
        ox.Device(*given)
    assert caught.value.rules == ("OX5012",)
    assert caught.value.diagnostics[0].fix == f"ox.Device.open({', '.join(map(repr, given))})"
