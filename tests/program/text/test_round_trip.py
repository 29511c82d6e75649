"""`from_text(to_text(p)) == p` for every program, and every other text is refused with a line number and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oxidecopy.errors import ProgramTextError
from oxidecopy.isa import ops
from oxidecopy.isa.ops import Choice, Imm, Instr, Kind
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import Program
from oxidecopy.program.text import from_text, to_text
from oxidecopy.program.text.operands import FORMS
from tests.helpers.program_strategy import KINDS, programs

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

slow = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@slow
@given(programs())
def test_every_program_comes_back(program: Program) -> None:
    assert check_operands(program) == []
    text = to_text(program)
    again = from_text(text)
    assert again == program
    assert to_text(again) == text


@pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.__name__)
def test_every_op_comes_back(op: type[Instr]) -> None:
    @settings(slow, max_examples=5)
    @given(programs(max_steps=0, holding=op))
    def comes_back(program: Program) -> None:
        assert any(isinstance(step.op, op) for step in program.walk())
        assert check_operands(program) == []
        assert from_text(to_text(program)) == program

    comes_back()


def test_every_kind_has_a_form_and_a_strategy() -> None:
    kinds = {kind for op in ops.OPS for _, kind in ops.operands(op)}
    assert {k for k in kinds if isinstance(k, Kind)} == FORMS.keys() == KINDS.keys()
    assert all(isinstance(k, Imm | Choice | Kind) for k in kinds)


# ---- malformed texts
PIECES = st.sampled_from(
    [
        *(
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "->",
            "-",
            "%",
            "%0",
            "?0",
            "..",
            "@9",
            ".part(",
            "#",
            '"',
            '"\\',
            "~",
            "min(",
            "mbarrier.init",
        ),
        *("\t", "\r", "\n", "  ", "\x00", "\ud800", "é", "¹", "1e999", "9" * 30, "-1", "0", "nan"),
        *("when true:\n", "program p threads=1 cluster=(1, 1, 1) shared=0:\n"),
    ]
)


@st.composite
def mutated(draw: DrawFn) -> str:
    """The text of a valid program with a few edits: cut, inserted, repeated and swapped pieces and lines."""
    text = to_text(draw(programs(max_steps=4)))
    for _ in range(draw(st.integers(1, 4))):
        start, stop = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        match draw(st.integers(0, 4)):
            case 0:
                text = text[:start] + text[min(stop, start + 8) :]
            case 1:
                text = text[:start] + draw(PIECES) + text[start:]
            case 2:
                text = text[:start] + draw(st.text(max_size=3)) + text[start + 1 :]
            case 3:
                lines = text.split("\n")
                text = "\n".join(draw(st.permutations(lines)))
            case _:
                text = text[:stop] + text[start : min(stop, start + 40)] + text[stop:]
    return text


def outcome(text: str) -> Program | ProgramTextError:
    try:
        return from_text(text, "a.txt")
    except ProgramTextError as error:
        return error


def parses_or_is_refused(text: str) -> None:
    found = outcome(text)
    if isinstance(found, Program):
        assert check_operands(found) == []
        shown = to_text(found)
        assert to_text(from_text(shown)) == shown  # texts: not-a-number fills do not compare equal
        return
    assert found.diagnostics
    lines = text.count("\n") + 1
    for diagnostic in found.diagnostics:
        assert diagnostic.site is not None
        assert diagnostic.site.file == "a.txt"
        assert 1 <= diagnostic.site.line <= lines
        assert diagnostic.rule.startswith("OX19")


@slow
@given(mutated())
def test_a_damaged_text_is_refused_by_line(text: str) -> None:
    parses_or_is_refused(text)


@slow
@given(st.text() | st.lists(PIECES).map("".join))
def test_any_text_is_refused_by_line(body: str) -> None:
    parses_or_is_refused(body)
    parses_or_is_refused(f"program p threads=64 cluster=(1, 1, 1) shared=0:\n  idx n\n  {body}")
    parses_or_is_refused(f"program p threads=64 cluster=(1, 1, 1) shared=0:\n  idx n\n  when {body}:")


HEADER = "program p threads=64 cluster=(1, 1, 1) shared=0:\n  idx n\n"


@pytest.mark.parametrize(
    "line",
    [
        "when " + "(" * 20_000 + "n",
        "when " + "(" * 50 + "n" + ")" * 50 + " < 1:",
        "when " + "-" * 20_000 + "n < 1:",
        "when " + "~" * 20_000 + "true:",
        "when " + " + ".join(["n"] * 20_000) + " < 1:",
        "when " + "min(n, " * 20_000,
        "when " + "min(n, " * 60 + "n" + ")" * 60 + " < 1:",
        "when n[" * 20_000,
        "loop i, start=" + "9" * 99_999,
        "when " + '"' * 99_999,
        "when " + "\\" * 99_999,
        "scope elect {" + "0, " * 20_000 + "}:",
    ],
    ids=lambda line: f"{line[:12]}..{len(line)}",
)
def test_no_line_is_too_much(line: str) -> None:
    parses_or_is_refused(HEADER + "  " + line + "\n")


def test_deep_blocks_are_refused_and_64_are_not() -> None:
    def nested(count: int) -> str:
        return HEADER + "".join("  " * n + "when true:\n" for n in range(1, count + 1))

    assert to_text(from_text(nested(64))).count("when") == 64
    refused(nested(65), ["OX1903"])
    parses_or_is_refused(nested(3000))


def refused(text: str, rules: Sequence[str]) -> None:
    with pytest.raises(ProgramTextError) as caught:
        from_text(text)
    assert list(caught.value.rules) == list(rules)
