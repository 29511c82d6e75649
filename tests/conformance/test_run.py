from __future__ import annotations

import json
from pathlib import Path

import oxidecopy as ox
from oxidecopy.conformance import run
from oxidecopy.conformance.case import Case, Made
from oxidecopy.host.npy import write_json
from oxidecopy.isa import ops
from oxidecopy.program.expansion import expanded


def test_every_case_is_verified_and_equal_to_itself() -> None:
    device = ox.Device.open("sim-fast")
    for case in run.cases()[::17]:
        verdict = run.run_case(case, device, device)
        assert verdict.problem == "", verdict


def test_names_are_their_own() -> None:
    names = [(case.group, case.name) for case in run.cases()]
    assert len(names) == len(set(names)) > 1000


MORE = ("plain bulk copies", "between CTAs", "cache hints")


def test_cases_hold_every_op() -> None:
    device = ox.Device.open("sim-fast")
    held = set()
    for group in (
        "barriers",
        "indices",
        "fill",
        "maps: map f32",
        "clusters",
        "counters",
        "reduce add f32",
        "plain stores: unload f32",
        "replaced maps",
        "contractions: bf16 128x64",
        "transpose u8",
        "sum of f32 axis 1 kept",
        "stencil one 20 by 40",
        *MORE,
    ):
        for case in run.cases(group):
            held |= {type(step.op) for step in expanded(case.make(device).launch.program).walk()}
    newer = {ops.TensorGather4, ops.TensorScatter4}  # compute capability 10.0 alone
    refused = {ops.TensormapReplace}  # by the verifier: tests/gpu/test_replaced_maps.py has all that was measured of it
    assert set(ops.OPS) - set(ops.STAGES) - newer - refused == held


def _wrong(case: Case) -> Case:
    calls = []

    def make(dev: ox.Device) -> Made:
        made = case.make(dev)
        calls.append(dev)
        if len(calls) % 2:
            return made
        return Made(launch=made.launch, outputs={name: dev.zeros(a.shape, a.dtype) for name, a in made.outputs.items()})

    return Case(name=case.name, group=case.group, make=make)


def test_a_difference_is_told() -> None:
    device = ox.Device.open("sim-fast")
    verdict = run.run_case(_wrong(run.cases("gathered")[0]), device, device)
    assert "bytes differ, first at" in verdict.problem


def test_the_result_is_written_whole(tmp_path: Path) -> None:
    verdicts = [run.Verdict(name="a", group="g"), run.Verdict(name="b", group="g", problem="out: differs")]
    data = run.as_data("sim-fast", "g", verdicts)
    write_json(tmp_path / "r.json", data)
    read = json.loads((tmp_path / "r.json").read_text())
    assert (read["cases"], read["equal"], read["groups"]["g"]) == (2, 1, {"cases": 2, "equal": 1})
    assert read["failures"] == [{"name": "b", "group": "g", "problem": "out: differs"}]
    assert "left" not in read
    assert run.as_data("sim-fast", "g", verdicts, left=3)["left"] == 3
