"""The verifier and the simulator are two oracles that know nothing of each other: on random programs they must agree.

A program that the verifier accepts ends well under every schedule of the simulator, with the same bytes, and for a well-formed one with
numpy's. A program that it refuses goes wrong under some schedule, unless its rule is one of those that a schedule need not show. The slice
run here is the same every time; `AGREEMENT_PIPELINES=2000 pytest tests/test_agreement.py -n auto` runs more.
"""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxidecopy.fuzz import judge as judges
from oxidecopy.fuzz.case import Case, run
from oxidecopy.fuzz.judge import NOT_SHOWN, Verdict, judge
from oxidecopy.fuzz.mutants import EDITS, mutants
from oxidecopy.fuzz.pipelines import pipeline
from oxidecopy.verify import Report

PIPELINES = int(os.environ.get("AGREEMENT_PIPELINES", "30"))
CHUNK = 10
MUTANTS = 4
chunks = pytest.mark.parametrize("first", range(0, PIPELINES, CHUNK))


def words(label: str, verdict: Verdict) -> str:
    return f"{label}: {verdict.problem} {verdict.rules}\n{verdict.detail}"


@chunks
def test_well_formed_pipelines_are_accepted_and_do_what_numpy_says(first: int) -> None:
    for seed in range(first, first + CHUNK):
        case = pipeline(seed)
        verdict = judge(case)
        assert verdict.accepted, words(case.label, verdict)
        assert not verdict.problem, words(case.label, verdict)


@chunks
def test_mutants_are_judged_alike(first: int) -> None:
    for seed in range(first, first + CHUNK):
        for mutant in mutants(pipeline(seed), seed, MUTANTS):
            verdict = judge(mutant)
            assert not verdict.problem, words(mutant.label, verdict)


@settings(max_examples=8)
@given(st.integers(0, 1 << 32), st.integers(0, 1 << 32))
def test_any_pipeline_and_any_mutant(seed: int, edit: int) -> None:
    case = pipeline(seed)
    verdict = judge(case)
    assert verdict.accepted, words(case.label, verdict)
    assert not verdict.problem, words(case.label, verdict)
    for mutant in mutants(case, edit, 1):
        verdict = judge(mutant)
        assert not verdict.problem, words(mutant.label, verdict)


# ---- that the comparison can fail
def test_wrong_bytes_are_noticed() -> None:
    case = pipeline(0)
    wrong = {name: np.full_like(data, 111) for name, data in case.expected.items()}
    assert "not as expected" in judge(replace(case, expected=wrong)).problem


def test_a_refused_program_is_seen_to_go_wrong() -> None:
    """Most refusals are shown, and nothing else is."""
    seen = 0
    for seed in range(15):
        for mutant in mutants(pipeline(seed), seed, 3):
            verdict = judge(mutant)
            seen += verdict.shown
            assert verdict.shown <= (not verdict.accepted)
    assert seen > 10


def test_schedules_differ() -> None:
    """Some broken program ends in more than one way: the seeds are no idle loop."""
    broken = [m for seed in range(30) for m in mutants(pipeline(seed), seed, 1)]
    assert any(len({(r.outcome, r.findings) for r in (run(m, seed) for seed in range(6))}) > 1 for m in broken)


# ---- that the generator reaches what it should
def test_every_edit_is_used() -> None:
    programs = [pipeline(seed).program for seed in range(12)]
    for edit in EDITS:
        made = (made for program in programs for i in range(4) if (made := edit(Random(i), program)) is not None and made[0] != program)
        assert next(made, None) is not None, edit


# ---- every schedule, not some
def test_accepted_programs_under_every_schedule() -> None:
    """Small ones of one CTA, for most of which the search ends."""
    small = [case for case in map(pipeline, range(60)) if case.grid == (1, 1, 1) and len(list(case.program.walk())) < 25][:6]
    every = [judge(case, good_seeds=(), exhaustive=True) for case in small]
    assert [v.problem for v in every] == [""] * 6
    assert [v.exhaustive for v in every].count("complete") >= 4


@pytest.fixture(scope="module")
def unwaited() -> Case:
    """A tile is read without waiting for its load: fast copies hide it, and so may a slow one by luck."""
    every = (m for seed in range(60) for m in mutants(pipeline(seed), seed, 7) if "drop mbarrier.wait" in m.label)
    return next(m for m in every if judge(m).shown and not NOT_SHOWN.keys() & judge(m).rules and run(m, 0, hazards=False).clean)


def test_a_schedule_that_no_seed_draws_is_found(unwaited: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the verifier accepted it."""
    monkeypatch.setattr(judges, "inspect", lambda program, launch: Report((), ()))
    assert not judge(unwaited, good_seeds=()).problem
    assert "of all schedules some" in judge(unwaited, good_seeds=(), exhaustive=True).problem


def test_a_refusal_that_no_seed_shows_is_looked_for_in_every_schedule(unwaited: Case) -> None:
    verdict = judge(unwaited, bad_seeds=())
    assert verdict.shown
    assert not verdict.problem
