"""Which phase a token names: exact forms, refusals beside accepted twins, and the simulator, which knows the truth, as judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings

import oxidecopy as ox
from oxidecopy.fuzz.case import run
from oxidecopy.fuzz.mutants import mutants
from oxidecopy.fuzz.pipelines import pipeline
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const, Expr, Sym, SymKind, evaluate, floordiv
from oxidecopy.program.phases import token_phases
from oxidecopy.program.program import Launch, Program
from oxidecopy.verify import inspect
from tests.helpers.program_strategy import programs
from tests.helpers.programs import Builder, add, div, lt, mod, mul
from tests.helpers.true_phases import disagreements, noted
from tests.test_examples import EXAMPLES, recipes

PIPELINES = 40


def phases(b: Builder) -> dict[int, Expr]:
    found = token_phases(b.program(), b.launch())
    assert not found.unknown
    return found.known


def refusal(b: Builder) -> str:
    """Why it is not told of the first token that it is not told of."""
    return next(iter(token_phases(b.program(), b.launch()).unknown.values()))


def loop_counter(number: int = 1) -> Sym:
    return Sym(f"i{number}", SymKind.LOOP)


# ---- one thread
def test_straight_line_tokens_are_numbered() -> None:
    b = Builder()
    b.bar()
    b.init()
    tokens = []
    for _ in range(3):
        with b.elect():
            tokens.append(b.arrive())
        b.wait(tokens[-1])
    assert phases(b) == {t: Const(i) for i, t in enumerate(tokens)}


def test_tokens_that_nobody_uses_need_no_phase() -> None:
    b = Builder()
    b.bar()
    b.init()
    b.arrive()
    assert phases(b) == {}


def test_a_phase_per_iteration() -> None:
    b = Builder()
    b.bar()
    b.init()
    with b.elect():
        first = b.arrive()
        b.wait(first)
        with b.loop(5) as i:
            token = b.arrive()
            b.wait(token)
        after = b.arrive()
        b.wait(after)
    assert phases(b) == {first: Const(0), token: add(i, 1), after: Const(6)}


def test_two_phases_per_iteration() -> None:
    b = Builder()
    b.bar()
    b.init()
    with b.elect(), b.loop(5) as i:
        one = b.arrive()
        b.wait(one)
        two = b.arrive()
        b.wait(two)
    assert phases(b) == {one: mul(i, 2), two: add(mul(i, 2), 1)}


def test_two_arrivals_per_phase() -> None:
    b = Builder()
    b.bar()
    b.init(count=2)
    with b.elect(), b.loop(5) as i:
        b.arrive()
        token = b.arrive()
        b.wait(token)
    assert phases(b) == {token: i}


def test_a_count_that_does_not_divide() -> None:
    b = Builder()
    b.bar()
    b.init(count=2)
    with b.elect(), b.loop(6) as i:
        token = b.arrive()
        b.test_token(token, 0)
    assert phases(b) == {token: floordiv(i, Const(2))}


@pytest.mark.parametrize(("start", "step", "at", "expected"), [(3, 1, 3, 0), (3, 1, 7, 4), (0, 2, 6, 3), (9, -3, 9, 0), (9, -3, 3, 2)])
def test_any_start_and_step(start: int, step: int, at: int, expected: int) -> None:
    b = Builder()
    b.bar()
    b.init()
    with b.elect(), b.loop(-1 if step < 0 else 12, start, step):
        token = b.arrive()
        b.wait(token)
    assert value(phases(b)[token], at) == expected


def value(e: Expr, *counters: int) -> int:
    """The builder numbers its loops from 1, outermost first."""
    return evaluate(e, {f"i{n}": v for n, v in enumerate(counters, 1)})


def test_nested_loops() -> None:
    b = Builder()
    b.bar()
    b.init()
    with b.elect(), b.loop(3), b.loop(4):
        token = b.arrive()
        b.wait(token)
    assert [value(phases(b)[token], o, i) for o in range(3) for i in range(4)] == list(range(12))


def test_a_loop_that_gets_longer_is_refused() -> None:
    b = Builder()
    b.bar()
    b.init()
    with b.elect(), b.loop(3) as outer, b.loop(outer):
        b.wait(b.arrive())
    assert "trip count" in refusal(b)


def test_an_earlier_loop_of_symbolic_length() -> None:
    b = Builder()
    n = b.index("n", 7)
    b.bar()
    b.init()
    with b.elect():
        with b.loop(n):
            b.wait(b.arrive())
        token = b.arrive()
        b.wait(token)
    assert [evaluate(phases(b)[token], {"n": k}) for k in (-3, 0, 5)] == [0, 0, 5]


# ---- arrays
def ring(b: Builder, index: Callable[[Expr], Expr], stages: int = 4, trips: int = 12) -> int:
    b.bar(stages=stages)
    b.init()
    with b.elect(), b.loop(trips) as i:
        token = b.arrive(0, index(i))
        b.wait(token, i=index(i))
    return token


@pytest.mark.parametrize(
    ("index", "stages"), [(lambda i: mod(i, 4), 4), (lambda i: mod(add(i, 3), 4), 4), (lambda i: mod(mul(i, 3), 4), 4), (lambda i: i, 12)]
)
def test_rings(index: Callable[[Expr], Expr], stages: int) -> None:
    b = Builder()
    token = ring(b, index, stages)
    period = 4 if stages == 4 else 12
    assert [value(phases(b)[token], i) for i in range(12)] == [i // period for i in range(12)]


def test_an_even_step_goes_round_faster() -> None:
    b = Builder()
    token = ring(b, lambda i: mod(mul(i, 2), 4))
    assert phases(b)[token] == floordiv(loop_counter(), Const(2))


def test_an_index_that_is_no_ring_is_refused() -> None:
    b = Builder()
    ring(b, lambda i: mod(div(i, 2), 4))
    assert "index" in refusal(b)


def test_two_arrivals_on_a_ring_some_turns_apart() -> None:
    b = Builder()
    b.bar(stages=4)
    b.init(count=2)
    with b.elect(), b.loop(12) as i:
        b.arrive(0, mod(add(i, 1), 4))
        token = b.arrive(0, mod(i, 4))
        b.test_token(token, 0, i=mod(i, 4))
    # Element 0 misses the first of the early arrivals; each other one has had one more than i // 4 full turns.
    for n in range(12):
        before = sum((j + 1) % 4 == n % 4 for j in range(n + 1)) + sum(j % 4 == n % 4 for j in range(n))
        assert value(phases(b)[token], n) == before // 2


def test_a_ring_in_a_loop() -> None:
    b = Builder()
    b.bar(stages=4)
    b.init()
    with b.elect(), b.loop(3), b.loop(8) as i, b.loop(2):
        token = b.arrive(0, mod(i, 4))
        b.wait(token, i=mod(i, 4))
    seen = [0] * 4
    for o in range(3):
        for i_ in range(8):
            for j in range(2):
                assert value(phases(b)[token], o, i_, j) == seen[i_ % 4]
                seen[i_ % 4] += 1


def test_a_ring_that_stops_in_the_middle_of_a_pass_is_refused() -> None:
    b = Builder()
    b.bar(stages=4)
    b.init()
    with b.elect(), b.loop(3), b.loop(7) as i:
        b.wait(b.arrive(0, mod(i, 4)), i=mod(i, 4))
    assert "whole number of times" in refusal(b)


def test_elements_with_numbers_of_their_own() -> None:
    b = Builder()
    b.bar(stages=2)
    b.init()
    with b.elect():
        b.wait(b.arrive(0, 0), i=0)
        one = b.arrive(0, 1)
        b.wait(one, i=1)
        two = b.arrive(0, 0)
        b.wait(two, i=0)
    assert {k: v for k, v in phases(b).items() if k in (one, two)} == {one: Const(0), two: Const(1)}


# ---- several threads
def everybody(b: Builder, count: int, *, wait_by_all: bool = True, sync: bool = False) -> int:
    b.bar()
    b.init(count=count)
    with b.loop(4):
        token = b.arrive()
        if wait_by_all:
            b.wait(token)
        else:
            with b.elect():
                b.wait(token)
        if sync:
            b.sync()
    return token


def test_rounds_of_all_threads() -> None:
    b = Builder()
    token = everybody(b, b.threads)
    assert phases(b)[token] == loop_counter()


def test_one_thread_waits_and_a_sync_tells_the_others() -> None:
    b = Builder()
    token = everybody(b, b.threads, wait_by_all=False, sync=True)
    assert phases(b)[token] == loop_counter()


def test_nobody_tells_the_others() -> None:
    b = Builder()
    everybody(b, b.threads, wait_by_all=False)
    assert "do not wait" in refusal(b)


def test_a_round_that_is_not_the_count() -> None:
    b = Builder()
    everybody(b, b.threads // 2)
    assert "arrivals between two waits" in refusal(b)


def test_two_groups_make_a_round() -> None:
    b = Builder()
    b.bar()
    b.init(count=b.threads)
    with b.loop(4) as i:
        with b.elect():
            one = b.arrive()
        with b.others():
            two = b.arrive()
        b.wait(one, two)
    assert phases(b) == {one: i, two: i}


def test_arrivals_that_drop_out() -> None:
    b = Builder()
    b.bar()
    b.init(count=b.threads)
    with b.others():
        b.arrive_drop()
    with b.elect():
        first = b.arrive()
    b.wait(first)
    b.sync()
    with b.elect():
        last = b.arrive()
    b.wait(last)
    assert phases(b) == {first: Const(0), last: Const(1)}


def test_one_thread_that_drops_an_arrival() -> None:
    b = Builder()
    b.bar()
    b.init(count=2)
    with b.elect():
        tokens = [b.arrive_drop(), b.arrive(), b.arrive(), b.arrive()]
        for t in tokens:
            b.test_token(t, t)
    assert list(phases(b).values()) == [Const(n) for n in (0, 0, 1, 2)]


# ---- branches, lifetimes, clusters
def branch(b: Builder, *, always: bool) -> int:
    b.bar()
    b.init()
    with b.elect(), b.loop(4) as i, b.when(lt(Sym("block_idx.x", SymKind.BLOCK) if always else i, 2)):
        token = b.arrive()
        b.wait(token)
    return token


def test_a_branch_that_a_block_takes_always() -> None:
    b = Builder()
    token = branch(b, always=True)
    assert phases(b)[token] == loop_counter()


def test_a_branch_that_is_taken_in_some_iterations() -> None:
    b = Builder()
    branch(b, always=False)
    assert "not taken in every iteration" in refusal(b)


def test_an_earlier_arrival_in_a_branch() -> None:
    b = Builder()
    b.bar()
    b.init()
    with b.elect():
        with b.when(lt(Sym("block_idx.x", SymKind.BLOCK), 2)):
            b.wait(b.arrive())
        b.wait(b.arrive())
    assert "stands in a branch" in refusal(b)


def test_a_branch_that_the_launch_decides() -> None:
    b = Builder()
    n = b.index("n", 3)
    b.bar()
    b.init()
    with b.elect():
        with b.when(lt(n, 2)):
            b.wait(b.arrive())
        token = b.arrive()
        b.wait(token)
    assert phases(b)[token] == Const(0)


def test_another_init_starts_again() -> None:
    b = Builder()
    b.bar()
    tokens = []
    for _ in range(2):
        b.init()
        with b.elect():
            tokens.append(b.arrive())
        b.wait(tokens[-1])
        b.inval()
    assert phases(b) == dict.fromkeys(tokens, Const(0))


@pytest.mark.parametrize("count", [64, 128])
def test_the_next_life_may_count_otherwise(count: int) -> None:
    b = Builder()
    b.bar()
    first = twice(b, b.threads)
    b.inval()
    then = twice(b, count)
    assert phases(b) == dict(zip((*first, *then), map(Const, (0, 1, 0, 1)), strict=True))


def twice(b: Builder, count: int) -> tuple[int, int]:
    b.init(count=count)
    with b.scope((0, count)):
        first = b.arrive()
        b.wait(first)
        then = b.arrive()
        b.wait(then)
    return first, then


def test_a_life_that_goes_on_behind_its_loop_is_refused() -> None:
    b = Builder()
    b.bar()
    with b.loop(1):
        b.init(count=2)
        with b.elect():
            b.wait(b.arrive())
    with b.scope((32, 33)):
        b.arrive()
    assert "behind the loop" in refusal(b)


def test_an_init_in_the_loop_starts_again_each_time() -> None:
    b = Builder()
    b.bar()
    with b.loop(3):
        b.init()
        with b.elect():
            token = b.arrive()
        b.wait(token)
        b.inval()
    assert phases(b) == {token: Const(0)}


def test_an_array_that_is_initialised_in_part_is_refused() -> None:
    b = Builder()
    b.bar(stages=2)
    with b.elect():
        b.op(ops.MbarrierInit(bar=ops.BarrierRef(0, Const(0)), count=1))
    b.sync()
    with b.elect(), b.loop(4) as i:
        b.wait(b.arrive(0, mod(i, 2)), i=mod(i, 2))
    assert "initialised" in refusal(b)


def remote(b: Builder, count: int, times: int) -> int:
    b.bar()
    b.init(count=count)
    b.cluster_sync()
    with b.elect():
        b.arrive_remote(0)
        token = b.arrive()
        for _ in range(times - 1):
            b.arrive()
    b.wait(token)
    return token


def test_arrivals_from_the_cluster_that_fit_one_phase() -> None:
    b = Builder(cluster=(2, 1, 1))
    token = remote(b, 3, 1)
    assert phases(b) == {token: Const(0)}


def test_more_arrivals_from_the_cluster_are_refused() -> None:
    b = Builder(cluster=(2, 1, 1))
    remote(b, 3, 2)
    assert "cluster" in refusal(b)


# ---- the simulator knows
def test_pipelines_and_their_mutants() -> None:
    seen = 0
    for seed in range(PIPELINES):
        for case in (pipeline(seed), *mutants(pipeline(seed), seed, 2)):
            if inspect(case.program, case.launch()).violations:
                continue
            found, unknown = token_phases(case.program, case.launch())
            assert not unknown or case.label.count(":")  # a mutant: every pipeline of the generator is told
            with noted() as notes:
                run(case, 0)
                run(case, 1)
            assert not disagreements(notes, case.program, case.launch(), found), case.label
            seen += len(found)
    assert seen > 20


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    dev = ox.Device.open("sim")
    for _, recipe in recipes(path):
        if recipe.refused:
            continue
        launch = recipe.fn(dev).launch
        found, unknown = token_phases(launch.program, launch.launch)
        assert not unknown
        with noted() as notes:
            launch()
        assert not disagreements(notes, launch.program, launch.launch, found)


@settings(max_examples=50)
@given(programs())
def test_every_token_of_any_program_is_told_or_it_is_said_why_not(program: Program) -> None:
    found = token_phases(program, Launch(grid=(1, 1, 1)))
    assert not found.known.keys() & found.unknown.keys()
    assert all(found.unknown.values())
