"""Tokens that are waited for in other loops than they are made in: the iteration whose counters are the same, or nothing."""

from __future__ import annotations

import pytest

from oxidecopy.program.program import Launch
from oxidecopy.program.text import from_text
from oxidecopy.verify import inspect

PROGRAM = """\
program p threads=32 cluster=(1, 1, 1) shared=8:
  barrier b: GeneralBarrier at=0
  scope thread {{0}}:
    mbarrier.init b, count={count}
    loop i, start=0, stop=3, step=1:
      loop k, {made}:
        mbarrier.arrive b -> %1
      loop j, {waited}:
        {wait}
"""


@pytest.mark.parametrize("wait", ["mbarrier.wait b, %1", "mbarrier.test try_wait b, %1 -> ?0"])
@pytest.mark.parametrize(
    ("made", "waited", "accepted"),
    [
        ("start=0, stop=2, step=1", "start=0, stop=2, step=1", True),
        ("start=0, stop=2, step=1", "start=0, stop=1, step=1", True),
        ("start=i, stop=i + 2, step=1", "start=i, stop=i + 2, step=1", True),
        ("start=0, stop=-2, step=-1", "start=0, stop=-1, step=-1", True),
        ("start=0, stop=2, step=1", "start=1, stop=2, step=1", False),  # the same number, and another counter
        ("start=0, stop=2, step=1", "start=-1, stop=1, step=1", False),
        ("start=0, stop=2, step=1", "start=0, stop=4, step=2", False),
        ("start=0, stop=2, step=1", "start=i, stop=i + 2, step=1", False),
    ],
)
def test_loops_that_begin_and_count_alike(made: str, waited: str, wait: str, accepted: bool) -> None:
    program = from_text(PROGRAM.format(count=2, made=made, waited=waited, wait=wait))
    found = [v for v in inspect(program, Launch(grid=(1, 1, 1))).violations if v.rule == "OX3030"]
    assert not found if accepted else ["in other loops than it is made in" in v.what for v in found] == [True]
