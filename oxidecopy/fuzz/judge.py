"""The verifier and the simulator's `explore` against each other, on one program at a time.

Neither may know of the other, and both follow the same theory, so each is the other's oracle:
a program that is accepted must end well under every schedule with the same bytes, and one that is refused must go wrong under some
schedule, unless its rule is one of those that a schedule need not show (`NOT_SHOWN`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from oxidecopy.engines.sim import Schedules, SimEngine, explore_all
from oxidecopy.errors import Diagnostic
from oxidecopy.fuzz.case import MAX_STEPS, Case, Run, run
from oxidecopy.isa import ops
from oxidecopy.program.program import Program
from oxidecopy.verify import inspect
from oxidecopy.verify import rule_ids as ids

# Rules that a refused program may break without any schedule going wrong: why each of them is right all the same.
_BESIDE = "what lies beside the array is another barrier or tile, which may happen to take the access"
_UNDEFINED = "undefined by PTX, but the model of it here ends well"
_RANGE = "taken over the range of its form, or of all that an index may be: no block of this launch need come to what is wrong there"
_BOUND = "a bound of the proof, not a fault of the program"
_DECLARED = "judged where it is declared, also if no copy and no thread ever comes to it"
_TOLERANT = "no device could be asked for it; the simulator runs it all the same"
_OF_THE_LAUNCH = "of how a launch is bound, which a program cannot show"
NOT_SHOWN: Final[dict[str, str]] = {
    ids.WAIT_BEHIND: "a waiter must be overtaken by a whole phase before anything shows: few schedules do that",
    ids.EXPECT_LATE: "bytes announced earlier, and copied later by the same thread, can hold the phase open; the rule asks for an arrival",
    ids.GUARDED: "what hangs on the answer of a test may be harmless in this program; the theory wants none of it",
    ids.ANSWER: "an answer that was not asked for is an unset register, which is a no here",
    ids.BARRIER_INDEX: _BESIDE,
    ids.TILE_INDEX: _BESIDE,
    ids.DROP_TO_ZERO: _UNDEFINED,
    ids.SYNC_COUNT: _UNDEFINED,
    ids.COPY_THREADS: "the recorder asks for a Leader; copies issued anew by each thread may still agree with the bytes announced by each",
    ids.BULK_SIZE: "a copy of no bytes at all does nothing; the rule asks for what was meant",
    ids.BULK_BOUNDS: "behind the array other memory of the same allocation may lie, which the copy then takes",
    ids.SWIZZLE_DIFFERS: "the copy runs, but its rows do not lie where the tile's layout says",
    ids.TILE_SMALL: "the copy runs into the padding behind the tile, where nothing may lie in this program",
    ids.COORD_INNER: "judged for every copy of the program, also for one that no block reaches",
    ids.SYNC_NOT_REACHED: "threads that have exited count as arrived at the cluster barrier (PTX), but the design asks all to come",
    ids.STORES_MEET: "stores of one cluster's CTAs may be ordered by syncs, which the comparison of whole launches does not look at",
    ids.LOAD_OF_STORED: "as with stores that meet: syncs of a cluster are not looked at",
    ids.STORE_OF_LOADED: "a load that lands late takes what the store left, or not: the simulator does not hold the two against each other",
    ids.IM2COL_START: _RANGE,
    ids.INDEX_SOURCE: _DECLARED,
    ids.IM2COL_OFFSET: "the hardware takes some of its bits: the load brings what another tap would, where the filter may not tell",
    ids.ENTRY_RANGE: _RANGE,
    ids.COORD_RANGE: "so many blocks or turns as it takes to get there, nobody waits for",
    ids.BULK_DENSE: "the copy runs: between the elements it moves what lies there",
    ids.TILE_ALIGN: _DECLARED,
    ids.BARRIER_ALIGN: _DECLARED,
    ids.OVERLAP: _DECLARED,
    ids.SHARED_TOTAL: _TOLERANT,
    ids.GRID: _TOLERANT,
    ids.THREADS: _TOLERANT,
    ids.ARCH: _TOLERANT,
    ids.EXTENT: "the fault is that of a copy, and memory of such an extent is not made for it",
    ids.BINDING: _OF_THE_LAUNCH,
    ids.REQUIREMENT: "asked for by a call of the recorder, whose sense it is; what is recorded runs without",
    ids.OVERLAPPING_VIEWS: _OF_THE_LAUNCH,
    ids.STORE_OVER: _OF_THE_LAUNCH,
    ids.MAP_PLACE: _DECLARED,
    ids.MAP_WINDOW: "the hardware checks no address that a map is pointed at: what lies behind the array may be memory, too",
    ids.MAP_DIFFERS: _DECLARED,
    ids.MAP_SHARED: "memory for maps that is also used otherwise goes wrong only where both uses come together",
    ids.STORED_AS_LOADED: "both copies run; what is stored are other values than those that were loaded",
    ids.CONTRACT_OPERANDS: "descriptors of operands that do not fit are read as others: the simulator reads tiles by their own layout",
    ids.CONTRACT_ARRAYS: _OF_THE_LAUNCH,
    ids.CONTRACT_GROUP: "the simulator multiplies with any threads; wgmma is an instruction of four warps that are aligned",
    ids.CONTRACT_ARCH: _TOLERANT,
    ids.COUNTER: _BOUND,
    ids.PIECES: _BOUND,
    ids.STEPS: _BOUND,
}
# The same for what is wrong only for some number of tiles that a counter may give a block: the verifier asks for each, the simulator's
# seeds deal a few of them, and to the one block of a launch always all.
SHARE_OF: Final = "when the counter gives this CTA"
_MEETINGS: Final = {"OX4117", "OX4118"}
# An index that is read may be out of its bounds: that is looked at while the program runs, and ends the launch by an error.
INDEX_RANGE: Final = frozenset({"OX4015", "OX5332"})  # of the simulator, and of a GPU
STATES: Final = 600  # that an exhaustive search goes on from; three of four accepted programs have no more
SECONDS: Final = 5.0  # for it; hardly ever reached before the states
GOOD_SEEDS: Final = range(4)
BAD_SEEDS: Final = range(12)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the two say about a program.

    Attributes:
        accepted: by the verifier.
        rules: of the verifier that a refused program breaks, and of the simulator for an accepted one that went wrong.
        problem: how the two disagree; empty where they agree.
        shown: a refusal was seen to go wrong.
        runs: schedules that were run one by one.
        exhaustive: "complete" where every schedule was explored, "bounded" where that was given up, empty where it was not asked for.
        stopped: an accepted program that ended, as it should, by the error of an index that was read and is out of its bounds.
        loose: schedules may leave different bytes, by design (stores that may meet, plain stores under the answer of a test).
        contents: bytes that the first schedule of an accepted program left behind.
        detail: the diagnostics behind a problem.
    """

    accepted: bool
    rules: tuple[str, ...] = ()
    problem: str = ""
    shown: bool = False
    runs: int = 0
    exhaustive: str = ""
    stopped: bool = False
    loose: bool = False
    contents: dict[str, bytes] | None = None
    detail: str = ""


def judge(case: Case, *, good_seeds: Iterable[int] = GOOD_SEEDS, bad_seeds: Iterable[int] = BAD_SEEDS, exhaustive: bool = False) -> Verdict:
    """What the two say about `case`.

    Accepted programs run under all `good_seeds` and, with `exhaustive`, under every schedule there is, within bounds. Refused ones run
    until a run of `bad_seeds` goes wrong; where none does, every schedule is looked at, too, unless one of the rules need not show.
    """
    report = inspect(case.program, case.launch())
    if report.violations:
        return _refused(case, report.violations, bad_seeds)
    verdict = _accepted(case, good_seeds, report.warnings)
    return _every_schedule(case, verdict, report.warnings) if exhaustive and not verdict.problem and not verdict.stopped else verdict


def _refused(case: Case, violations: Sequence[Diagnostic], seeds: Iterable[int]) -> Verdict:
    rules = tuple(sorted({d.rule for d in violations}))
    detail = "\n".join(map(str, violations))
    count = 0
    for seed in seeds:
        count += 1
        if not run(case, seed).clean:
            return Verdict(accepted=False, rules=rules, shown=True, runs=count)
    # Rules cascade: one of these can bring others with it.
    excused = any(rule in NOT_SHOWN for rule in rules) or all(SHARE_OF in d.what for d in violations)
    if excused:
        return Verdict(accepted=False, rules=rules, runs=count, detail=detail)
    found = _explored(case)
    if not found.clean:
        return Verdict(accepted=False, rules=rules, shown=True, runs=count)
    problem = "refused, but no schedule went wrong" + ("" if found.complete else f" ({found.bound})")
    return Verdict(accepted=False, rules=rules, problem=problem, runs=count, detail=detail)


def _explored(case: Case) -> Schedules:
    engine = SimEngine(sm=case.sm)
    bindings, _ = case.on(engine)
    return explore_all(case.program, bindings, states=STATES, seconds=SECONDS, max_steps=MAX_STEPS)


def _every_schedule(case: Case, verdict: Verdict, warnings: Iterable[Diagnostic]) -> Verdict:
    """An accepted program under all schedules: each ends well, with the same bytes."""
    found = _explored(case)
    rules = {d.rule for d in (*found.findings, *found.diagnostics)} - (_MEETINGS if _undecided(warnings) else set())
    problem = ""
    if rules or not found.outcomes <= {"ok"}:
        problem = f"accepted, but of all schedules some end in {', '.join(sorted(found.outcomes))}"
    elif len(found.endings) > 1 and not verdict.loose:
        problem = "accepted, but of all schedules some leave other bytes"
    how = "complete" if found.complete else "bounded"
    detail = "\n".join(map(str, (*found.diagnostics, *found.findings))) if problem else ""
    return replace(verdict, exhaustive=how, rules=tuple(sorted(rules)), problem=problem, detail=detail)


def _accepted(case: Case, seeds: Iterable[int], warnings: Sequence[Diagnostic]) -> Verdict:
    undecided, loose = _undecided(warnings), is_loose(case, warnings)
    runs = [run(case, 0, hazards=False), *(run(case, seed) for seed in seeds)]
    if all(stopped(r) for r in runs):
        return Verdict(accepted=True, runs=len(runs), stopped=True, loose=loose)
    for r in runs:
        wrong = _wrong(r, runs[0], undecided=undecided, loose=loose)
        if wrong:
            detail = "\n".join(map(str, (*r.diagnostics, *r.findings)))
            rules = tuple(sorted(r.rules))
            return Verdict(accepted=True, rules=rules, problem=wrong, runs=len(runs), loose=loose, detail=detail)
    for name, wanted in case.expected.items():
        got = case.memory[name].view(bytearray(runs[0].contents[name]))
        if not np.array_equal(got, wanted):
            problem = f"accepted, but {name} is not as expected"
            return Verdict(accepted=True, problem=problem, runs=len(runs), loose=loose, detail=f"{got}\n{wanted}")
    return Verdict(accepted=True, runs=len(runs), loose=loose, contents=runs[0].contents)


def _wrong(r: Run, first: Run, *, undecided: bool, loose: bool) -> str:
    """How a run of an accepted program went wrong, if it did."""
    if r.outcome != "ok" or r.rules - (_MEETINGS if undecided else set()):
        return f"accepted, but seed {r.seed} ends in {r.outcome}"
    if r.contents != first.contents and not loose:
        changed = [name for name in r.contents if r.contents[name] != first.contents[name]]
        return f"accepted, but seed {r.seed} leaves other bytes in {changed}"
    return ""


def stopped(r: Run) -> bool:
    """The launch ended because an index that it read is out of its bounds, and was fine up to there."""
    return r.outcome == "fault" and bool(r.rules) and r.rules <= INDEX_RANGE


def _undecided(warnings: Iterable[Diagnostic]) -> bool:
    """The verifier warns that stores may meet, so that they may."""
    return any(w.rule == ids.MEETING_UNDECIDED for w in warnings)


def is_loose(case: Case, warnings: Iterable[Diagnostic]) -> bool:
    """Whether an accepted program may leave other bytes from one schedule to the next."""
    return (_undecided(warnings) and not case.apart) or _asks(case.program)


def _asks(program: Program) -> bool:
    """True when something hangs on the answer of a test: what plain stores write may then differ from schedule to schedule, as designed."""
    return any(isinstance(step.op, ops.MbarrierTestToken | ops.MbarrierTestParity) for step in program.walk())
