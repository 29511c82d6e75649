"""Diagnostics on one screen, places said from here, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy import errors
from oxidecopy.cli import report
from oxidecopy.errors import Cause, Diagnostic, Site

ONE = Diagnostic(
    rule="OX3001", what="it hangs", got="1", required="2", fix="wait", site=Site("/far/x.py", 7), causes=(Cause("made", None),)
)


def shown(*diagnostics: Diagnostic, capsys: pytest.CaptureFixture[str]) -> list[str]:
    report.print_diagnostics(report.out(), diagnostics)
    return capsys.readouterr().out.splitlines()


def test_a_diagnostic_reads_as_its_own_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(ONE, capsys=capsys) == [*str(ONE).splitlines(), "oxidecopy explain OX3001 says why"]


@pytest.mark.parametrize("n", [1, 2, 7, 20, 35, 36, 37, 200])
def test_any_number_fits_on_a_screen_and_none_goes_unsaid(n: int, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(*[ONE] * n, capsys=capsys)
    assert len(lines) <= 38
    said = sum("it hangs" in line for line in lines)
    more = [line for line in lines if line.startswith("and ")]
    assert said + sum(int(line.split()[1]) for line in more) == n


def test_the_page_named_is_of_a_rule_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    types = Diagnostic(rule="arg-type", what="no", site=Site("x.py", 1))
    assert shown(types, ONE, capsys=capsys)[-1] == "oxidecopy explain OX3001 says why"
    assert shown(types, capsys=capsys) == ["x.py:1: no [arg-type]"]


def test_markup_in_a_users_text_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    odd = Diagnostic(rule="OX1", what="tile[red] and [/bold]")
    assert shown(odd, capsys=capsys)[0] == "tile[red] and [/bold] [OX1]"


def test_long_lines_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    long = Diagnostic(rule="OX1", what="word " * 100)
    assert len(shown(long, capsys=capsys)[0]) > 400


def test_places_are_said_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert report.relative(str(tmp_path / "a" / "x.py")) == str(Path("a") / "x.py")
    assert report.relative("/elsewhere/x.py") == "/elsewhere/x.py"
    assert report.site_words(None) == ""


def test_several_get_a_headline(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_error(errors.VerificationError(ONE, ONE))
    assert capsys.readouterr().err.startswith("program refused: 2 rules broken\n")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("UsageError", 2),
        ("InputError", 2),
        ("ArgumentError", 2),
        ("DeviceError", 2),
        ("VerificationError", 1),
        ("RecordError", 1),
        ("DeadlockError", 1),
        ("DescriptorError", 1),
    ],
)
def test_exit_codes(name: str, code: int) -> None:
    assert report.exit_code(getattr(errors, name)(ONE)) == code


def test_counted() -> None:
    assert [report.counted(n, "error") for n in (0, 1, 2)] == ["no errors", "1 error", "2 errors"]
