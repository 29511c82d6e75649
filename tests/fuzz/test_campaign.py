"""Campaigns: the same seeds give the same counts, in one process or in several; what is disagreed about is kept and made small."""

from __future__ import annotations

import json
from itertools import count

import pytest

from oxidecopy.fuzz import campaign
from oxidecopy.fuzz.campaign import judge_seeds, program, programs, run_jobs
from oxidecopy.fuzz.case import Case
from oxidecopy.fuzz.judge import NOT_SHOWN, Verdict
from oxidecopy.fuzz.result import as_data
from oxidecopy.fuzz.shrink import shrunk
from oxidecopy.fuzz.tally import Tally
from oxidecopy.isa import ops
from oxidecopy.program.text import from_text
from oxidecopy.verify import inspect


def test_a_number_names_a_program() -> None:
    for number, case in programs(3):
        again = program(3, number)
        assert (again.program, again.label) == (case.program, case.label)
        assert bool(case.edits) == (number > 0)
    missing = next((seed, n) for seed in count() for n in range(1, 8) if n not in dict(programs(seed)))
    with pytest.raises(ValueError, match="no program"):
        program(*missing)


def test_counts_add_up_and_go_through_json() -> None:
    tally = judge_seeds(range(2), 100, 1e6)
    numbers = tally.numbers
    assert numbers["programs"] == numbers["accepted"] + numbers["refused"] == numbers["well_formed"] + numbers["mutants"] > 10
    assert (numbers["seeds"], numbers["well_formed"]) == (2, 2)
    assert tally.problems == []
    again = Tally.of(json.loads(json.dumps(tally.as_data())))
    assert again.as_data() == tally.as_data()
    again.add(tally)
    assert again.numbers["programs"] == 2 * numbers["programs"]
    result = as_data(tally, "oxidecopy conformance fuzz", "verifier and simulator", "none", 1.0)
    assert result["disagreements"] == 0
    assert result["not_shown"].keys() == tally.unshown.keys() & NOT_SHOWN.keys()


def test_several_processes_judge_what_one_does() -> None:
    assert run_jobs(2, 0, 12).as_data()["scenes"] == (judge_seeds([0], 6, 1e6).scenes + judge_seeds([1], 6, 1e6).scenes)


def test_it_ends_at_its_bounds() -> None:
    assert judge_seeds(count(), 3, 1e6).numbers["programs"] == 3
    assert not judge_seeds(count(), 10, -1).numbers


# ---- disagreements
def lying(case: Case, **_: object) -> Verdict:
    """Takes every program with a loop for one that goes wrong."""
    bad = any(isinstance(step.op, ops.Loop) for step in case.program.walk())
    return Verdict(accepted=True, problem="it has a loop" if bad else "", runs=1)


def test_a_disagreement_is_kept_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "judge", lying)
    seed = next(seed for seed in count() if lying(program(seed, 0)).problem)
    whole, small = (judge_seeds([seed], 1, 1e6, shrink=shrink).problems for shrink in (False, True))
    assert [p["problem"] for p in (*whole, *small)] == ["it has a loop"] * 2
    assert (small[0]["seed"], small[0]["mutant"]) == (seed, 0)
    kept = from_text(small[0]["program"])
    assert [type(step.op) for step in kept.walk()] == [ops.Loop]
    assert len(list(from_text(whole[0]["program"]).walk())) > 1


def test_a_well_formed_program_must_be_accepted() -> None:
    tally, case = Tally(), program(0, 0)
    tally.judged(case, Verdict(accepted=False, rules=("OX3012",), shown=True, runs=1), 0, 0)
    assert [p["problem"] for p in tally.problems] == ["refused, though it is well formed"]


def test_what_is_cut_stays_interesting() -> None:
    """A mutant that the verifier refuses is cut to a few ops that it refuses by the same rule."""
    seed, number = next(
        (s, n) for s in count() for n, c in programs(s) if {d.rule for d in inspect(c.program, c.launch()).violations} == {"OX3012"}
    )

    def interesting(case: Case) -> bool:
        return {d.rule for d in inspect(case.program, case.launch()).violations} == {"OX3012"}

    case = program(seed, number)
    small = shrunk(case, interesting)
    assert interesting(small)
    assert len(list(small.program.walk())) < len(list(case.program.walk()))
    assert shrunk(small, interesting).program == small.program
