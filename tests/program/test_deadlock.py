"""One report of a deadlock, whoever met it: verifier, simulator and the watchdog's words on one set of programs."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oxidecopy.cli.report import diagnostic_json
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import ReportKind
from oxidecopy.engines.cuda.code import Image, encode_program
from oxidecopy.engines.cuda.report import Facts, failure
from oxidecopy.errors import DeadlockError
from oxidecopy.isa.limits import SHARED_BASE
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.deadlock import Deadlock, Why, classes, thread_words
from oxidecopy.verify import inspect
from tests.engines.sim.harness import Rig
from tests.helpers import deadlocks
from tests.helpers.deadlocks import BARRIERS, BYTES, SYNCS, Make, explanation, seen_by_a_gpu
from tests.helpers.programs import Builder

MEASURED = Path(__file__).parents[2] / "docs" / "results" / "deadlocks.json"
every = pytest.mark.parametrize("make", [*BARRIERS, *SYNCS], ids=lambda make: make.__name__)


def simulated(make: Make, seed: int = 0) -> Deadlock:
    result = Rig(make()).explore(seed=seed)
    assert result.outcome == "deadlock"
    return explanation(result.diagnostics)


@every
def test_verifier_and_simulator_say_the_same(make: Make) -> None:
    b = make()
    assert explanation(inspect(b.program(), b.launch()).violations) == simulated(make)


@every
def test_schedules_do_not_change_it(make: Make) -> None:
    assert len({simulated(make, seed) for seed in range(4)}) == 1


# ---- the watchdog
def word(parity: int, pending: int, tx: int) -> int:
    """A barrier's bits as an arrive of nobody returns them on compute capability 9.0: the lower 32 are not there."""
    return (parity << 63 | (-pending % (1 << 20)) << 43 | (-tx % (1 << 21)) << 21) >> 32 << 32


def reported(make: Make, image: Image, waits: list[dict[str, Any]]) -> bytes:
    """What the device writes of some waits."""
    b = make()
    offsets = {f"{d.name}[{i}]" if d.stages > 1 else d.name: d.offset + 8 * i for d in b.bars for i in range(d.stages)}
    rows: list[bytes] = []
    for wait in waits:
        sites = [(pc, where) for pc, where in image.sites.items() if where.site and where.site.line == wait["line"]]
        agent = next(i for i, agent in enumerate(image.agents) if agent.words == wait["threads"])
        state = word(wait["parity"], wait["arrivals_missing"], wait["bytes_missing"])
        values = {
            "kind": int(ReportKind.TOLD if rows else ReportKind.TIMEOUT),
            "cta": wait["cta_rank"],
            "warp": next(i for i, warp in enumerate(image.warps) if warp.agent == agent),
            "pc": min(pc for pc, where in sites if where.op is not None and "wait" in where.op.mnemonic),
            "barrier": SHARED_BASE + offsets[wait["barrier"]],
            "parity": wait["parity"],
            "state_low": state & 0xFFFFFFFF,
            "state_high": state >> 32,
        }
        rows.append(struct.pack("<12I", *(values.get(name, 0) for name, _, _ in abi.REPORT_ENTRY)))
    return (struct.pack("<4I", 1, len(rows), 0, 0) + b"".join(rows)).ljust(abi.REPORT_BYTES, b"\0")


def stuck(make: Make) -> list[dict[str, Any]]:
    """The waits as the simulator has them, with all bytes."""
    rows = []
    for wait in simulated(make).waiting:
        have, need = wait.nbytes or (0, 0)
        rows.append(
            {
                "cta_rank": wait.rank,
                "threads": wait.threads,
                "line": wait.site.line if wait.site else 0,
                "barrier": wait.target.strip("`"),
                "parity": wait.parity,
                "arrivals_missing": wait.arrivals[1] - wait.arrivals[0] if wait.arrivals else 0,
                "bytes_missing": need - have,
            }
        )
    return rows


def measured(make: Make) -> list[dict[str, Any]]:
    """The waits as an H200 reported them."""
    rows: list[dict[str, Any]] = json.loads(MEASURED.read_text())["programs"]
    waits: list[dict[str, Any]] = next(row["waits"] for row in rows if row["program"] == make.__name__)
    return waits


@pytest.mark.parametrize("waits", [stuck, measured], ids=lambda waits: waits.__name__)
@pytest.mark.parametrize("make", BARRIERS, ids=lambda make: make.__name__)
def test_the_watchdog_says_the_same(make: Make, waits: Callable[[Make], list[dict[str, Any]]]) -> None:
    b = make()
    image = encode_program(b.program(), b.launch())
    raw = reported(make, image, waits(make))
    facts = Facts(image=image, grid=b.grid, limit_us=1000, sm=90, constants=b.launch().environment())
    error = failure(raw, facts)
    assert isinstance(error, DeadlockError)
    assert seen_by_a_gpu(explanation(error.diagnostics)) == seen_by_a_gpu(simulated(make))
    elsewhere = failure(raw, replace(facts, sm=100))
    assert elsewhere is not None
    assert elsewhere.diagnostics[0].explanation is None  # the word's layout is known for 9.0 only


def test_bytes_that_the_program_does_not_tell_are_said_to_be_about() -> None:
    """In a loop nobody knows how often bytes were announced, and the device tells them in steps of 2,048."""
    b = Builder(grid=(1, 1, 1), threads=64)
    b.map(box=(8, 32), dims=(8, 32))
    b.tile(shape=(8, 32))
    b.bar("full")
    b.bar("after")
    b.init(0, sync=False)
    b.init(1, count=64)
    with b.elect(0), b.loop(1):
        b.arm(BYTES + 16)
        b.g2s()
    with b.elect(32):
        b.wait_phase(0, tag="wait")
        b.arrive(1)
    image = encode_program(b.program(), b.launch())
    wait = {"cta_rank": 0, "threads": "thread 32 (elect)", "line": b.tags["wait"], "barrier": "full", "parity": 0}
    raw = reported(lambda: b, image, [{**wait, "arrivals_missing": 0, "bytes_missing": 16}])
    error = failure(raw, Facts(image=image, grid=b.grid, limit_us=1000, sm=90, constants=b.launch().environment()))
    assert isinstance(error, DeadlockError)
    assert "up to 2048 announced bytes not landed" in error.diagnostics[0].got
    assert "up to 2048 announced bytes have not landed" in str(error)


# ---- what it says
def test_a_ring_of_waits_is_drawn() -> None:
    told = simulated(deadlocks.opposite_order)
    assert told.cycle == (1, 2)
    lines = told.lines()
    assert "  cycle: [1] -> [2] -> [1]" in lines
    assert any("waits for phase 0 of `right`" in line for line in lines)
    assert any("waits itself, at [2]" in line for line in lines)
    assert "in one order in all roles" in told.fix
    assert simulated(deadlocks.chain_of_three).cycle == (1, 3, 2) or simulated(deadlocks.chain_of_three).cycle == (1, 2, 3)


def test_bytes_have_and_need() -> None:
    (wait,) = simulated(deadlocks.too_few_bytes).waiting
    assert (wait.arrivals, wait.nbytes) == ((), (BYTES, BYTES + 16))
    (supplier,) = wait.suppliers
    assert (supplier.does, supplier.why) == ("brings bytes", Why.DONE)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (deadlocks.role_never_runs, Why.CONDITION),
        (deadlocks.no_iterations, Why.EMPTY),
        (deadlocks.too_few_iterations, Why.DONE),
        (deadlocks.missing_peer, Why.CONDITION),
        (deadlocks.opposite_order, Why.WAITS),
        (deadlocks.named_count, Why.ELSEWHERE),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_why_it_was_not_supplied(make: Make, why: Why) -> None:
    if make is deadlocks.named_count:
        assert simulated(make).waiting[0].arrivals == (64, 96)
        return
    assert why in {s.why for s in simulated(make).waiting[0].suppliers}


def test_roots_come_before_those_that_wait_for_them() -> None:
    told = simulated(deadlocks.behind_another)
    assert [wait.target for wait in told.waiting] == ["`first`", "`second`"]
    assert told.cycle == ()
    assert not told.waiting[0].suppliers
    assert "no op of the program supplies it" in "\n".join(told.lines())


def test_bytes_of_a_multicast_that_went_elsewhere() -> None:
    told = simulated(deadlocks.expect_here_bytes_there)
    here, there = sorted(told.waiting, key=lambda wait: wait.rank)
    assert (here.arrivals, here.nbytes) == ((), (0, BYTES))
    assert not here.suppliers  # the copy's mask leaves CTA 0 out
    assert (there.arrivals, there.nbytes) == ((0, 1), (BYTES, 0))
    assert {s.why for s in there.suppliers} == {Why.CONDITION}


def test_a_wait_two_phases_late_says_so() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    b.arrive()
    b.arrive()
    b.wait_phase(0)
    told = explanation(Rig(b).explore().diagnostics)
    assert "phase 2" in told.waiting[0].beside
    assert "every phase in turn" in told.fix


def test_a_token_that_nobody_makes() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    b.wait(7)
    told = explanation(Rig(b).explore().diagnostics)
    assert (told.waiting[0].target, told.waiting[0].beside) == ("token 7", "nobody made it")


@every
def test_json_holds_all_of_it(make: Make) -> None:
    told = simulated(make)
    data = json.loads(json.dumps(told.as_json()))
    assert len(data["waiting"]) == len(told.waiting)
    assert data["cycle"] == list(told.cycle)
    assert data["fix"] == told.fix
    assert [len(w["suppliers"]) for w in data["waiting"]] == [len(w.suppliers) for w in told.waiting]


def test_errors_print_it_once_and_programs_get_it() -> None:
    diagnostics = Rig(deadlocks.opposite_order()).explore().diagnostics
    text = str(DeadlockError(*diagnostics))
    assert len(diagnostics) == 2
    assert text.count("who waits for whom") == 1
    assert diagnostic_json(diagnostics[0])["deadlock"] == explanation(diagnostics).as_json()


@every
def test_classes_share_out_all_threads(make: Make) -> None:
    program = make().program()
    assert sum(map(len, classes(program).values())) == program.threads


def test_threads_in_words() -> None:
    assert thread_words(ThreadSet(((0, 1),)), ("elect",)) == "thread 0 (elect)"
    assert thread_words(ThreadSet(((1, 32), (40, 41)))) == "threads 1-31, 40"
