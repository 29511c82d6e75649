"""Stage numbers: whatever loops are nested, the recorded expression is the count of stages taken before, in program order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.errors import RecordError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Bool, Sym, SymKind, evaluate
from oxidecopy.isa.ops import BarrierRef
from oxidecopy.program.program import IdxParam, Step
from oxidecopy.tiles.cursor import Conditions, Cursor
from oxidecopy.typed.cta import Cta
from oxidecopy.typed.recorder import Recorder
from oxidecopy.typed.symbolic import Idx, Pred, SymIdx

ENV: Final = {"n": 3, "m": 0}


@dataclass
class Nest:
    """A loop with what its body does: take a stage, or another loop."""

    bounds: tuple[int | str, int | str, int]
    body: list[Nest | None] = field(default_factory=list)


BOUND = st.one_of(st.integers(0, 4), st.sampled_from(["n", "m"]))
LOOP = st.builds(lambda a, b, s: (a, b, s), st.integers(0, 2), BOUND, st.sampled_from([1, 1, 2, 3]))
DOWN = st.builds(lambda a, b, s: (a, b, s), BOUND, st.integers(0, 1), st.sampled_from([-1, -2]))
NESTS: st.SearchStrategy[list[Nest | None]] = st.recursive(
    st.lists(st.none(), max_size=2),
    lambda inner: st.lists(st.one_of(st.none(), st.builds(Nest, st.one_of(LOOP, DOWN), inner)), max_size=3),
    max_leaves=6,
)


def record(nest: list[Nest | None]) -> tuple[Step, ...]:
    """Each stage taken becomes an op whose barrier index is the stage's number."""
    recorder = Recorder("f", 32, (1, 1, 1), None)
    recorder.params += [IdxParam(name=name) for name in ENV]
    recorder.add_barrier("TmaBarrier", 1, "bar")
    cta, cursor = Cta(recorder), Cursor(recorder, "ring")

    def bound(value: int | str) -> Idx:
        return value if isinstance(value, int) else SymIdx(Sym(value, SymKind.PARAM), recorder)

    def walk(items: list[Nest | None]) -> None:
        for item in items:
            if item is None:
                recorder.emit(ops.MbarrierInval(bar=BarrierRef(0, cursor.take())))
            else:
                start, stop, step = item.bounds
                for _ in cta.range(bound(start), bound(stop), step):
                    walk(item.body)

    walk(nest)
    return recorder.finish().steps


def numbers(steps: tuple[Step, ...], env: dict[str, int]) -> list[int]:
    """Runs the program and reads each stage's number where it is used."""
    out: list[int] = []
    for step in steps:
        op = step.op
        if isinstance(op, ops.MbarrierInval):
            out.append(evaluate(op.bar.index, env))
        else:
            assert isinstance(op, ops.Loop)
            for i in range(evaluate(op.start, env), evaluate(op.stop, env), op.step):
                out += numbers(step.body, {**env, op.counter: i})
    return out


@given(NESTS)
def test_numbers_are_the_count_of_stages_before(nest: list[Nest | None]) -> None:
    found = numbers(record(nest), dict(ENV))
    assert found == list(range(len(found)))


def test_a_single_loop_counts_with_its_counter() -> None:
    (loop,) = record([Nest((0, "n", 1), [None])])
    (step,) = loop.body
    assert isinstance(step.op, ops.MbarrierInval)
    assert step.op.bar.index == Sym("i0", SymKind.LOOP)


Taken: TypeAlias = Callable[[Cta, Cursor, Cursor], None]


def under(condition: Callable[[Cta], Pred], *, loop: bool = False, first: bool = True, second: bool = True) -> Taken:
    """Two roles of a ring take a stage, each under a condition where asked to, with a loop around the condition or in it."""

    def record_it(cta: Cta, one: Cursor, other: Cursor) -> None:
        for cursor, conditional in ((one, first), (other, second)):
            for _ in cta.range(2) if loop else [0]:
                with cta.when(condition(cta) if conditional else True):
                    for _ in cta.range(3):
                        cursor.take()

    return record_it


def refusal(taken: Taken) -> str:
    recorder, conditions = Recorder("f", 32, (1, 1, 1), None), Conditions()
    one, other = (Cursor(recorder, name, conditions) for name in ("ring.produce", "ring.consume"))
    try:
        taken(Cta(recorder), one, other)
    except RecordError as error:
        return error.rule
    return ""


def first_blocks(cta: Cta) -> Pred:
    return cta.block_idx.x < 2


def test_a_condition_around_all_roles_is_none_of_the_count() -> None:
    assert refusal(under(first_blocks)) == ""


@pytest.mark.parametrize(
    "taken",
    [
        under(first_blocks, second=False),
        under(first_blocks, first=False),
        under(first_blocks, loop=True),
        under(lambda cta: cta.block_idx.x < len(cta._recorder.frames[0].steps) + 1),  # another condition in each role
    ],
)
def test_conditions_that_set_the_counts_apart_are_refused(taken: Taken) -> None:
    assert refusal(taken) == "OX1105"


def test_a_condition_on_an_answer_is_none_that_roles_share() -> None:
    def taken(cta: Cta, one: Cursor, other: Cursor) -> None:
        full = cta.barrier().init(1)
        for cursor in (one, other):
            with cta.when(full.try_wait_parity(0)):
                cursor.take()

    assert refusal(taken) == "OX1105"


def test_a_condition_that_is_decided_is_none() -> None:
    recorder = Recorder("f", 32, (1, 1, 1), None)
    cta, cursor = Cta(recorder), Cursor(recorder, "ring")
    with cta.when(True):
        cursor.take()
    assert isinstance(recorder.frames[0].steps[0].op, ops.When)
    assert recorder.frames[0].steps[0].op.cond == Bool(value=True)


def test_a_trip_count_that_changes_during_the_launch_may_not_be_nested() -> None:
    recorder = Recorder("f", 32, (1, 1, 1), None)
    cta, cursor = Cta(recorder), Cursor(recorder, "ring")

    def nested() -> None:
        for _ in cta.range(4):
            for _ in cta.range(cta.block_idx.x):
                cursor.take()

    with pytest.raises(RecordError) as refused:
        nested()
    assert refused.value.rule == "OX1106"
