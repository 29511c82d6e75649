"""Loads through maps of the matrix: which ones, what runs on a GPU in their place, and the worker that runs them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from oxidecopy.conformance import descriptor_loads, descriptor_worker
from oxidecopy.conformance.descriptor_loads import (
    FAULTS,
    IGNORED,
    IM2COL,
    INTERLEAVED,
    LOADS,
    fault_code,
    make,
    map_of,
)
from oxidecopy.engines.cuda import driver, encode_call
from oxidecopy.engines.cuda.encode_call import EncodeCalls
from oxidecopy.errors import DeviceFaultError, Diagnostic
from oxidecopy.host.device import Device
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import validate
from tests.helpers.descriptor_matrix import loads, matrix
from tests.helpers.fake_driver import FakeDriver
from tests.helpers.fake_engine import fake_device
from tests.helpers.fake_library import FakeLibrary


def test_the_sample_has_usable_maps_and_what_is_not() -> None:
    assert len(loads()) == LOADS + IM2COL + INTERLEAVED + IGNORED + FAULTS
    assert sum(case.parameters.kind == "im2col" and not case.parameters.interleave for case in loads()) == IM2COL
    assert sum(case.parameters.interleave > 0 for case in loads()) == INTERLEAVED
    for case in loads():
        verdict = validate(case.parameters)
        assert verdict.encodes
        assert verdict.usable == case.name.startswith("usable")
        assert case.faults == (not verdict.usable and verdict.errors[0].rule == "OX2004")
    assert any(max(case.parameters.global_dim or ()) >= (1 << 31) - 1 for case in loads() if not case.faults)


@pytest.mark.parametrize("number", range(0, LOADS + IM2COL + INTERLEAVED + IGNORED, 20))
def test_the_simulator_says_what_a_load_brings(number: int) -> None:
    case = loads()[number]
    made = make(case.parameters, Device.open("sim"))
    made.launch()
    assert made.outputs["out"].shape == map_of(case.parameters).tile_shape


def test_on_a_gpu_the_real_bytes_go_in_the_place_of_a_harmless_map(tmp_path: Path) -> None:
    """The map that engines see ends where the box does; what the kernel is given is encoded from the real extents."""
    device, engine, _ = fake_device(tmp_path)
    case = next(case for case in loads() if case.faults)
    made = make(case.parameters, device)
    (bound,) = [m for name, m in made.launch.launch.maps if name == "src"]
    assert max(bound.global_dim) <= 256 < max(map_of(case.parameters).global_dim)
    with engine.context:
        engine._room.encoder.encode(bound, 0x1000)
        template = engine._room.encoder._templates[bound]
    assert template.arguments[2] == map_of(case.parameters).global_dim[::-1]  # type: ignore[attr-defined]  # the fake's


def test_a_fault_is_told_by_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    case, simulator = loads()[0], Device.open("sim-fast")
    assert fault_code(case.parameters, simulator) == 0

    def faulted(*_: object) -> None:
        raise DeviceFaultError(Diagnostic(rule="OX4001", what="a fault"), code=715)

    monkeypatch.setattr(descriptor_loads, "make", faulted)
    assert fault_code(case.parameters, simulator) == 715


# ---- the worker
def written(folder: Path, wanted: Sequence[MapParameters]) -> str:
    path = folder / "sets.json"
    path.write_text(json.dumps([parameters.as_data() for parameters in wanted]))
    return str(path)


def test_loads_are_answered_by_a_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, [case.parameters for case in loads()[:5]])
    assert descriptor_worker.work(["load", "sim-fast", file, "2"]) == 0
    assert [json.loads(line[2:]) for line in capsys.readouterr().out.splitlines()] == ["", "", ""]


def test_a_load_that_differs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    results = iter([b"abcd", b"abXX"])
    monkeypatch.setattr(descriptor_worker, "_bytes", lambda _: next(results))
    descriptor_worker.work(["load", "sim-fast", written(tmp_path, [loads()[0].parameters]), "0"])
    assert capsys.readouterr().out == '> "2 of 4 bytes differ"\n'


def test_a_load_that_is_refused_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in loads() if case.faults)
    descriptor_worker.work(["load", "sim-fast", written(tmp_path, [case.parameters]), "0"])
    assert "OX3075" in capsys.readouterr().out


def test_encodings_are_answered_by_a_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(driver, "load_driver", FakeDriver)
    monkeypatch.setattr(encode_call, "load_calls", lambda: EncodeCalls(FakeLibrary(refuse=lambda name, _: name.endswith("Tiled"))))
    wanted = [case.parameters for case in matrix()[-40:]]
    assert descriptor_worker.work(["encode", "cuda:0", written(tmp_path, wanted), "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 40
    for line, parameters in zip(lines, wanted, strict=True):
        code, _, data = line[2:].partition(" ")
        assert (code == "1") == (parameters.kind == "tiled")
        assert len(data) == (0 if code == "1" else 256)


def test_faults_are_answered_by_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[MapParameters] = []

    def code(parameters: MapParameters, _: Device) -> int:
        asked.append(parameters)
        return 715

    monkeypatch.setattr(descriptor_worker, "fault_code", code)
    assert descriptor_worker.work(["fault", "sim-fast", written(tmp_path, [loads()[-1].parameters]), "0"]) == 0
    assert capsys.readouterr().out == "> 715\n"
    assert asked == [loads()[-1].parameters]
