"""A slice of the corpus in every run; the whole of it is `python -m tests.mypy_plugin.corpus`."""

from __future__ import annotations

import pytest

from tests.mypy_plugin.corpus import ALL, SLICE, installed, read, run, written


@pytest.mark.parametrize(("names", "leaks"), [(SLICE[:2], True), (SLICE[2:], False)], ids=["leaks", "none"])
def test_a_slice_of_other_peoples_code(names: tuple[str, ...], *, leaks: bool) -> None:
    result = run(installed(names), timeout=300, leaks=leaks)
    assert result.ok, result.summary()
    assert result.functions > 100, result.summary()
    assert result.functions > 0.9 * written(installed(names)), "functions are not reached any more, or mypy skips many"
    assert result.functions < 1.1 * written(installed(names)), "functions are counted twice"
    assert result.pass_seconds / result.functions < 0.02, result.summary()


def test_the_whole_is_more() -> None:
    assert len(ALL) > len(SLICE)


ALARM = 'a/b.py:3: error: Use of moved value "x"  [oxidecopy-moved]'
SURPRISE = 'a/b.py:9: error: The pass failed on "f"  [oxidecopy-plugin]'


def test_what_counts() -> None:
    result = read(f"{ALARM}\n{SURPRISE}\na.py:1: error: Other  [misc]\n#time a.b 0.5 20\n#time c 0.1 0\n#done\n", 1, 2.0)
    assert (result.alarms, result.crashes) == ((ALARM,), (SURPRISE,))
    assert (result.functions, result.pass_seconds, result.slowest) == (20, 0.6, (("a.b", 0.5, 20),))
    assert not result.ok
    assert "oxidecopy-moved: 1" in result.summary()


def test_an_early_end_is_a_crash() -> None:
    assert read("Traceback\nValueError: x\n", 1, 1.0).crashes == ("the run ended with 1: ValueError: x",)
    assert read("x.py: error: INTERNAL ERROR -- Please try\n#done", 2, 1.0).crashes


def test_nothing_looked_at_is_not_right() -> None:
    assert not read("#done\n", 0, 1.0).ok
    assert read("#time a 0.1 1\n#done\n", 0, 1.0).ok
