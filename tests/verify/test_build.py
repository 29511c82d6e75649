"""What a launch leaves of a program before it is walked."""

from __future__ import annotations

import pytest

from oxidecopy.isa.expr import Const, Expr
from oxidecopy.verify.build import compile_program
from oxidecopy.verify.report import Collector
from tests.helpers.programs import BX, Builder, add, div, mod, mul


@pytest.mark.parametrize(
    ("start", "stop", "step", "kept"),
    [
        (Const(0), Const(0), 1, False),
        (Const(0), Const(1), 1, True),
        (Const(2), Const(2), -1, False),
        (Const(2), Const(1), -1, True),
        (Const(0), div(add(mul(BX, -1), 3), 4), 1, False),  # none for each of the four blocks
        (Const(0), div(add(mul(BX, -1), 4), 4), 1, True),  # one for block 0
        (Const(0), mod(BX, 0), 1, True),  # what is wrong with it is for the walk to say
    ],
)
def test_loops_that_no_block_comes_into_are_left_out(start: Expr, stop: Expr, step: int, *, kept: bool) -> None:
    b = Builder()
    b.fence()
    with b.loop(stop, start, step), b.loop(3):
        b.fence()
    program = b.program()
    found = compile_program(program, b.launch(), Collector()).program
    assert len(list(found.walk())) == (4 if kept else 1)
    assert found.steps[0] is program.steps[0]


def test_a_loop_that_hangs_on_a_counter_stays() -> None:
    b = Builder()
    with b.loop(3) as i, b.loop(i):
        b.fence()
    assert len(list(compile_program(b.program(), b.launch(), Collector()).program.walk())) == 3
