"""Prepared launches: repeated, given other arguments, refused those of another shape; options reach the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.base import Bindings, EngineGraph
from oxidecopy.engines.sim import SimEngine
from oxidecopy.errors import ArgumentError, DriverError, LifetimeError, OxidecopyError
from oxidecopy.host.device import Device
from oxidecopy.program.verified import VerifiedProgram
from tests.helpers.fake_engine import fake_device
from tests.helpers.launching import copy_pipeline, descriptor, numbers

DEV = ox.Device.open("sim")


def refused(use: Callable[[], object], rule: str, error: type[OxidecopyError] = ArgumentError) -> str:
    with pytest.raises(error) as caught:
        use()
    assert rule in caught.value.rules
    site = caught.value.diagnostics[0].site
    assert site is not None
    assert site.file == __file__
    return str(caught.value)


def test_other_arguments_of_the_same_shape() -> None:
    a, b, out, other = DEV.array(numbers()), DEV.array(numbers(7)), DEV.zeros((32, 32), ox.f32), DEV.zeros((32, 32), ox.f32)
    launch = copy_pipeline()[2, 2].prepare(descriptor(a), out)
    assert isinstance(launch, ox.PreparedLaunch)
    launch()
    launch.update(descriptor(b), other)
    assert (other.numpy() == 0).all()  # an update launches nothing
    launch()
    assert (out.numpy() == numbers()).all()
    assert (other.numpy() == numbers(7)).all()
    assert launch.bindings.arrays["out"].buffer is other.buffer


def test_arguments_of_another_shape() -> None:
    a, out = DEV.array(numbers()), DEV.zeros((32, 32), ox.f32)
    launch = copy_pipeline()[2, 2].prepare(descriptor(a), out)
    tall, wide = DEV.zeros((48, 32), ox.f32), DEV.array(numbers(0, 32, 48))
    assert "(48, 32)" in refused(lambda: launch.update(descriptor(a), tall), "OX5338")
    said = refused(lambda: launch.update(descriptor(wide), out), "OX5338")
    assert "'src' global_dim (32, 48), global_strides (192,)" in said
    assert "dtype" not in said  # which is the same
    refused(lambda: launch.update(ox.TmaDescriptor.tiled(a, box=(8, 16)), out), "OX5338")
    refused(lambda: launch.update(descriptor(a)), "OX1032")  # type: ignore[call-arg]
    elsewhere = ox.Device.open("sim")
    moved = elsewhere.array(numbers())
    refused(lambda: launch.update(descriptor(moved), moved), "OX5338")
    said = refused(lambda: launch.update(descriptor(out), out), "OX5338")
    assert "one view of memory for 'out' and 'src'" in said
    assert "views of their own for 'out' and 'src'" in said
    launch()  # as before
    assert (out.numpy() == numbers()).all()


def test_index_parameters_are_part_of_the_shape() -> None:
    @ox.pipeline(threads=32)
    def first(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2], row: ox.Idx, value: ox.Scalar[ox.f32]) -> None:
        tile = cta.shared(ox.f32, (1, 32), align=ox.A16)
        cta.fill(tile, value)
        cta.sync()
        cta.store(out, tile, (row, 0))

    out = DEV.zeros((2, 32), ox.f32)
    launch = first[1].prepare(out, 0, 1.0)
    launch.update(out, 0, 2.0)  # a scalar is not
    launch()
    assert (out.numpy()[0] == 2).all()
    refused(lambda: launch.update(out, 1, 2.0), "OX5338")


# ---- options
@final
@dataclass
class Packing:
    """What an engine with streams was asked for."""

    options: dict[str, object]
    calls: list[str] = field(default_factory=list)

    @property
    def call(self) -> Callable[[], None]:
        return lambda: self.calls.append("call")

    def update(self, bindings: Bindings) -> None:
        self.calls.append("update")


@final
class StreamEngine:
    """A simulator that says that it has streams."""

    def __init__(self) -> None:
        self.made: list[Packing] = []
        self.waited = False
        self._sim = SimEngine()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sim, name)

    def prepare(self, verified: VerifiedProgram, bindings: Bindings, **options: object) -> Packing:
        self.made.append(Packing(options))
        return self.made[-1]

    def synchronize(self) -> None:
        self.waited = True

    def graph(self) -> EngineGraph:
        raise NotImplementedError


def test_options_reach_the_engine() -> None:
    engine: Any = StreamEngine()
    dev = Device("streams", engine)
    a, out = dev.array(numbers()), dev.zeros((32, 32), ox.f32)
    load = copy_pipeline()[2, 2]
    load(descriptor(a), out)
    assert engine.made == []  # the plain way
    load.on(7)(descriptor(a), out)
    load.attributes(cooperative=True).on(8).prepare(descriptor(a), out)()
    load.on(8).attributes(programmatic=True).bind(descriptor(a), out)()
    launch = load.prepare(descriptor(a), out)
    launch.update(descriptor(a), out)
    plain = {"stream": None, "cooperative": False, "programmatic": False}
    assert [each.options for each in engine.made] == [
        {**plain, "stream": 7},
        {**plain, "stream": 8, "cooperative": True},
        {**plain, "stream": 8, "programmatic": True},
        plain,
    ]
    assert [each.calls for each in engine.made] == [["call"], ["call"], ["call"], ["update"]]
    assert load.on(7) is not load
    dev.synchronize()
    assert engine.waited
    DEV.synchronize()


@pytest.mark.parametrize("name", ["cooperative", "programmatic"])
@pytest.mark.parametrize("value", ["x", "no", 1, 0, None, [], np.bool_(1)])
def test_attributes_are_true_or_false(name: str, value: Any) -> None:
    with pytest.raises(ox.errors.ArgumentError) as caught:
        copy_pipeline()[2, 2].attributes(**{name: value})
    (said,) = caught.value.diagnostics
    assert (said.rule, said.required) == ("OX5016", "True or False")
    assert said.got.startswith(f"{name}=")
    assert said.site is not None
    assert said.site.file == __file__


def test_the_simulator_takes_all_of_it() -> None:
    a, out = DEV.array(numbers()), DEV.zeros((32, 32), ox.f32)
    copy_pipeline()[2, 2].on(5).attributes(cooperative=True, programmatic=True)(descriptor(a), out)
    assert np.array_equal(out.numpy(), numbers())


def test_launches_say_what_they_are() -> None:
    out = DEV.zeros((32, 32), ox.f32)
    pipe = copy_pipeline()
    assert repr(pipe[2, 2]) == f"{pipe!r}[2, 2, 1]"
    assert repr(pipe).startswith("Pipeline(")
    name = pipe.__name__
    source = descriptor(DEV.array(numbers()))
    assert repr(pipe[2, 2].bind(source, out)) == f"BoundLaunch({name}, grid=(2, 2, 1))"
    assert repr(pipe[2, 2].prepare(source, out)) == f"PreparedLaunch({name}, grid=(2, 2, 1))"


def test_use_after_free_is_told_at_its_line() -> None:
    a, out = DEV.array(numbers()), DEV.zeros((32, 32), ox.f32)
    pipe = copy_pipeline()
    launch, prepared = pipe[2, 2].bind(descriptor(a), out), pipe[2, 2].prepare(descriptor(a), out)
    DEV.free(a)
    for use in (launch, prepared, a.numpy, a.T.numpy, lambda: DEV.free(a), lambda: np.from_dlpack(a)):
        assert "after it was freed" in refused(use, "OX5310", LifetimeError)


@pytest.mark.parametrize("way", ["launch", "prepared", "one-liner", "one-liner again", "reading"])
def test_what_the_driver_says_has_the_users_line(tmp_path: Path, way: str) -> None:
    """As when a launch without `.on` comes while a stream is captured: engines know no user."""
    dev, _, driver = fake_device(tmp_path)
    a, out = dev.array(numbers()), dev.zeros((32, 32), ox.f32)
    launch = copy_pipeline()[2, 2].prepare(descriptor(a), out)
    if way == "one-liner again":
        ox.copy(out, a)
    for call in ("cuLaunchKernelEx", "cuStreamSynchronize", "cuMemcpyDtoH"):
        driver.fail[call] = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    ways: dict[str, Callable[[], object]] = {
        "launch": lambda: copy_pipeline()[2, 2](descriptor(a), out),
        "prepared": launch,
        "one-liner": lambda: ox.copy(out, a),
        "one-liner again": lambda: ox.copy(out, a),
        "reading": out.numpy,
    }
    with pytest.raises(DriverError) as caught:
        ways[way]()
    (said,) = caught.value.diagnostics
    assert said.rule == "OX5315"
    assert ".on(stream)" in said.fix
    assert said.site is not None
    assert said.site.file == __file__
