"""The validator held against a driver: what agreement is, what a lost process costs, and what is written down."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oxidecopy.conformance import descriptors
from oxidecopy.conformance.descriptor_cases import SEED
from oxidecopy.conformance.descriptors import CRASHED, Judged, Loaded, Result, as_data, ask_all, bits, bytes_data, digest, judge_all
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import validate
from tests.helpers.descriptor_matrix import loads, matrix, some, verdicts

MEASURED = Path(__file__).parents[2] / "docs" / "results" / "conformance_descriptors.json"
LEGAL = MapParameters(dtype=7, global_address=64, global_dim=(8, 8), global_strides=(32,), box_dim=(8, 8), element_strides=(1, 1))
BROKEN = replace(LEGAL, box_dim=(8, 7))


def judged(parameters: MapParameters, code: int | None, data: str = "") -> Judged:
    return Judged(group="g", verdict=validate(parameters), code=code, data=data)


def test_the_committed_result_is_all_agreement_and_todays_validator_gives_the_same_answers() -> None:
    """What the driver of an H200 said to each set of the matrix, kept as a bit each."""
    result = json.loads(MEASURED.read_text())
    sets = [case.parameters for case in matrix()]
    assert result["seed"] == SEED
    assert result["sets"] == result["agree"] == len(sets) >= 5000
    assert result["loads"] == result["loads_as_said"] >= 200
    assert not result["disagreements"]
    assert not result["failures"]
    assert digest(sets) == result["digest"], "another matrix: run `oxidecopy conformance descriptors --device cuda:0` again"
    assert bits(verdict.encodes for verdict in verdicts()) == result["answers"]


@pytest.mark.parametrize(
    ("parameters", "code", "agrees"),
    [(LEGAL, 0, True), (LEGAL, 1, False), (BROKEN, 1, True), (BROKEN, 0, False), (BROKEN, CRASHED, False), (LEGAL, None, True)],
)
def test_agreement(parameters: MapParameters, code: int | None, agrees: bool) -> None:
    assert judged(parameters, code).agrees == agrees


def test_a_lost_process_costs_the_set_that_it_was_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "WORKER", "tests.helpers.dying_worker")
    progress: list[int] = []
    lines = list(descriptors._spoken("encode", "cuda:0", [LEGAL] * 10, lambda done, _: progress.append(done)))
    assert lines == ["0", "1", "2", None, "4", "5", "6", None, "8", "9"]
    assert progress == [1, 2, 3, 5, 6, 7, 9, 10]


def test_after_several_lost_processes_the_rest_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "WORKER", "no.such.module")
    monkeypatch.setattr(descriptors, "_DEATHS_MAX", 2)
    assert list(descriptors._spoken("encode", "cuda:0", [LEGAL] * 4, lambda *_: None)) == [None] * 4


def test_all_is_asked_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that says yes to everything, and loads of which one goes wrong."""
    said = {"encode": "0 ab", "load": '""', "fault": "700"}
    monkeypatch.setattr(descriptors, "_spoken", lambda task, _, wanted, __: iter([said[task]] * len(wanted)))
    monkeypatch.setattr(descriptors, "cases", lambda _: some())
    monkeypatch.setattr(descriptors, "load_cases", lambda *_: loads())
    result = ask_all("cuda:0", 90, lambda *_: None)
    assert (len(result.judged), len(result.loaded)) == (len(some()), len(loads()))
    assert {j.verdict.encodes for j in result.disagreements} == {False}
    assert result.judged[0].data == "ab"
    assert [row.problem for row in result.failures] == ["ended with 700, not with the fault 715"] * 6
    assert not ask_all("cuda:0", 100, lambda *_: None).loaded


def test_what_is_written_down() -> None:
    rows = (judged(LEGAL, 0, "5a" * 128), judged(BROKEN, 1), judged(BROKEN, 0), judged(replace(LEGAL, box_dim=(8, 4)), CRASHED))
    result = Result(device="cuda:0", sm=90, seed=1, judged=rows, loaded=(Loaded(name="a", problem=""), Loaded(name="b", problem="p")))
    data: dict[str, Any] = as_data(result, "why")
    assert (data["sets"], data["agree"], data["loads"], data["loads_as_said"]) == (4, 2, 2, 1)
    assert data["groups"] == {"g": {"sets": 4, "encode": 2, "usable": 2, "agree": 2}}
    assert data["rules"] == {"OX2007": 2}
    assert [d["code"] for d in data["disagreements"]] == [0, CRASHED]
    assert data["disagreements"][0]["rules"] == ["OX2007"]
    assert MapParameters.from_data(json.loads(json.dumps(data["disagreements"][0]["parameters"]))) == BROKEN
    assert data["answers"] == bits([True, False, True, False]) == "a"
    assert data["failures"] == [{"name": "b", "problem": "p"}]
    assert bytes_data(result)["maps"] == [{**LEGAL.as_data(), "bytes": "5a" * 128}]


def test_bits_are_padded_at_their_end() -> None:
    assert bits([True, True, False, False, True]) == "c8"
    assert bits([False] * 9) == "000"


def test_without_a_driver_the_sets_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "cases", lambda _: some())
    result = judge_all()
    assert len(result.judged) == len(some())
    assert not result.device
    assert not result.disagreements
    data = as_data(result, "none")
    assert data["answers"] == ""
    assert data["command"] == "oxidecopy conformance descriptors --no-driver"


def test_parameters_survive_as_data() -> None:
    for case in some():
        assert MapParameters.from_data(json.loads(json.dumps(case.parameters.as_data()))) == case.parameters
