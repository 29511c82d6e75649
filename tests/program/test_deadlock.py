"""One report of a deadlock, whoever met it: verifier, simulator and the watchdog's words on one set of programs."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

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
    """A barrier's bits as an arrive of nobody returns them on compute capability 9.0: the expected count is not there."""
    return parity << 63 | (-pending % (1 << 20)) << 43 | (-tx % (1 << 21)) << 21


def entries(make: Make, image: Image) -> list[bytes]:
    """What the device would write, from where the simulator's agents stand."""
    b, told = make(), simulated(make)
    names = {f"{d.name}[{i}]" if d.stages > 1 else d.name: d.offset + 8 * i for d in b.bars for i in range(d.stages)}
    made: list[bytes] = []
    for wait in told.waiting:
        need = wait.arrivals[1] - wait.arrivals[0] if wait.arrivals else 0
        lacking = wait.nbytes[1] - wait.nbytes[0] if wait.nbytes and wait.nbytes[1] >= 0 else -wait.nbytes[0] if wait.nbytes else 0
        pc = min(
            pc for pc, where in image.sites.items() if where.op is not None and where.site == wait.site and "wait" in where.op.mnemonic
        )
        agent = next(i for i, agent in enumerate(image.agents) if agent.words == wait.threads)
        state = word(wait.parity, need, lacking)
        values = {
            "kind": int(ReportKind.TOLD if made else ReportKind.TIMEOUT),
            "cta": wait.rank,
            "warp": next(i for i, warp in enumerate(image.warps) if warp.agent == agent),
            "pc": pc,
            "barrier": SHARED_BASE + names[wait.target.strip("`")],
            "parity": wait.parity,
            "state_low": state & 0xFFFFFFFF,
            "state_high": state >> 32,
        }
        made.append(struct.pack("<12I", *(values.get(name, 0) for name, _, _ in abi.REPORT_ENTRY)))
    return made


@pytest.mark.parametrize("make", BARRIERS, ids=lambda make: make.__name__)
def test_the_watchdog_says_the_same(make: Make) -> None:
    b = make()
    image = encode_program(b.program(), b.launch())
    rows = entries(make, image)
    raw = (struct.pack("<4I", 1, len(rows), 0, 0) + b"".join(rows)).ljust(abi.REPORT_BYTES, b"\0")
    facts = Facts(image=image, grid=b.grid, limit_us=1000, sm=90, constants=b.launch().environment())
    error = failure(raw, facts)
    assert isinstance(error, DeadlockError)
    assert seen_by_a_gpu(explanation(error.diagnostics)) == seen_by_a_gpu(simulated(make))
    elsewhere = failure(raw, replace(facts, sm=100))
    assert elsewhere is not None
    assert elsewhere.diagnostics[0].explanation is None  # the word's layout is known for 9.0 only


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
