"""Words of the environment: each of those that are known, and nothing else."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda.wait_limit import LIMIT_VARIABLE
from oxidecopy.errors import UsageError
from oxidecopy.host.settings import CHECKED_VARIABLE, environment_flag, settings

NAME = "OXIDECOPY_TEST_WORD"


@pytest.mark.parametrize("word", ["1", "true", "True", "YES", "on", " on "])
def test_yes(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv(NAME, word)
    assert environment_flag(NAME)


@pytest.mark.parametrize("word", ["", "0", "false", "FALSE", "no", "Off", None])
def test_no(monkeypatch: pytest.MonkeyPatch, word: str | None) -> None:
    monkeypatch.delenv(NAME, raising=False)
    if word is not None:
        monkeypatch.setenv(NAME, word)
    assert not environment_flag(NAME)


@pytest.mark.parametrize("word", ["2", "-1", "y", "t", "none", "False!", "checked", "0x1"])
def test_anything_else(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv(NAME, word)
    with pytest.raises(UsageError) as caught:
        environment_flag(NAME)
    (said,) = caught.value.diagnostics
    assert (said.rule, said.got, said.required) == ("OX5017", repr(word), "0, false, no, off, 1, true, yes, on")
    assert NAME in said.fix


def test_all_that_is_wrong_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKED_VARIABLE, "perhaps")
    monkeypatch.setenv(LIMIT_VARIABLE, "soon")
    found = settings(checked=True)
    assert (found.checked, found.limit_us) == (True, 1_000_000)
    assert len(found.notes()) == 2
    with pytest.raises(UsageError) as caught:
        found.require_all()
    assert caught.value.rules == ("OX5017", "OX5337")


def test_an_argument_is_not_undone_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    monkeypatch.setenv(CHECKED_VARIABLE, "off")
    assert settings(checked=True).checked
    monkeypatch.setenv(CHECKED_VARIABLE, "on")
    assert settings(checked=False).checked
