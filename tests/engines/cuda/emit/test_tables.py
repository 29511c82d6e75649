"""Tables of maps in emitted C++: a pointer, indexed; each entry is acquired by the block that copies through it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import oxidecopy as ox
from oxidecopy.conformance.run import cases
from oxidecopy.engines.base import BoundMap
from oxidecopy.engines.cuda.emit import Emitted, emitted, raw

if TYPE_CHECKING:
    import pytest

    from oxidecopy.host.bound import BoundLaunch

DEV = ox.Device.open("sim-fast")


def launch_of(name: str) -> BoundLaunch:
    (case,) = (case for case in cases("tables") if case.name == name)
    return case.make(DEV).launch


def made(name: str) -> Emitted:
    return emitted(launch_of(name).verify())


def test_a_table_is_a_pointer() -> None:
    emission = made("block index, five")
    assert [(p.kind, p.declaration, p.nbytes) for p in emission.parameters] == [
        ("table", "const TensorMap* src", 8),
        ("table", "const TensorMap* dst", 8),
    ]
    assert emission.source.count("ptx::tensormap_acquired(&src[block_z])") == 1
    assert emission.source.count("ptx::tensormap_acquired(&dst[block_z])") == 1
    assert emission.source.count("fence.proxy.tensormap::generic.acquire.sys [%0], 128;") == 1


def test_maps_of_their_own_are_not_acquired() -> None:
    (case, *_) = cases("loads: load f32 2-D")
    emission = emitted(case.make(DEV).launch.verify())
    assert "tensormap" not in emission.source
    assert "const __grid_constant__ TensorMap src" in emission.source


def test_extents_of_entries_are_parameters_where_they_are_used() -> None:
    names = [p.name for p in made("its extents, five").parameters]
    assert names == ["src", "dst", *(f"src{i}_dim0" for i in range(5))]


def test_the_host_is_told_what_lies_in_a_table() -> None:
    text = made("block index, one").source.partition("#ifdef OXIDECOPY_HOST")[2]
    assert "// src[0]: cuTensorMapEncodeTiled with f32" in text
    assert "// src: those maps one after the other in device memory, 128 bytes each, at a multiple of 128." in text
    assert "CUdeviceptr src, CUdeviceptr dst" in text


def test_a_compiled_one_is_given_the_entries_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = launch_of("read from a list, seventy")
    verified = bound.verify()
    emission = emitted(verified)
    places = [SimpleNamespace(offset=8 * i, size=p.nbytes) for i, p in enumerate(emission.parameters)]
    kernel = SimpleNamespace(parameters=places, parameter_bytes=8 * len(places))
    monkeypatch.setattr(raw, "read_cubin", lambda _: SimpleNamespace(kernels={emission.kernel_name: kernel}))
    counter = DEV.zeros((4,), ox.u32).buffer
    launch = raw.raw_launch(emission, b"", verified, bound.bindings, counter)
    src = next(p.value for p in launch.parameters if p.name == "src")
    assert src == tuple(bound.bindings.maps[f"src[{i}]"] for i in range(70))
    assert isinstance(src, tuple)
    assert all(isinstance(entry, BoundMap) for entry in src)
