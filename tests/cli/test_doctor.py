"""`oxidecopy doctor`."""

from __future__ import annotations

import socket
import sys
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import TYPE_CHECKING

from oxidecopy import __version__
from oxidecopy.cli import doctor
from oxidecopy.cli.facts import Fact
from tests.helpers.command import command, json_of

if TYPE_CHECKING:
    import pytest


def by_topic() -> dict[str, Fact]:
    return {fact.topic: fact for fact in doctor.facts()}


def test_it_says_what_is_here() -> None:
    result = command("doctor")
    assert result.exit_code == 0
    for word in (__version__, "numpy", "ml_dtypes", "NVIDIA driver", "runs on sim", "by default", sys.executable):
        assert word in result.stdout


def test_json() -> None:
    data = json_of(command("doctor", "--json"))
    assert data["ok"] is True
    assert {"section": "installed", "topic": "numpy", "value": version("numpy"), "state": "ok", "note": ""} in data["facts"]
    assert list(dict.fromkeys(fact["section"] for fact in data["facts"])) == ["installed", "type checkers", "NVIDIA", "works here"]


def test_it_asks_nothing_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object, **__: object) -> None:
        raise AssertionError

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, asked)
    assert not any("AssertionError" in fact.note for fact in doctor.facts())


def test_libraries_that_lend_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "other libraries" not in by_topic()
    there = [SimpleNamespace(name=name) for name in ("torch", "cupy-cuda13x", "torchaudio", "numpy")]
    monkeypatch.setattr(doctor, "distributions", lambda: there)
    monkeypatch.setattr(doctor, "version", lambda _: "2.0")
    assert by_topic()["other libraries"].value == "cupy-cuda13x 2.0, torch 2.0"


def test_a_needed_package_that_does_not_load_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    result = command("doctor")
    assert result.exit_code == 1
    assert by_topic()["ml_dtypes"].state == "broken"
    assert json_of(command("doctor", "--json"))["ok"] is False


def test_extras_and_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = [
        "numpy>=1",
        "rich>=13 ; extra == 'cli'",
        "no-such-package>=1 ; (python_version > '3') and extra == 'plot'",
        'oxidecopy[cli] ; extra == "dev"',
    ]
    monkeypatch.setattr(doctor, "requires", lambda _: needed)
    facts = by_topic()
    assert facts["extra cli"].value == "complete"
    assert facts["extra dev"].value == "complete"
    assert (facts["extra plot"].value, facts["extra plot"].state) == ("without no-such-package", "missing")


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> list[str]:
        raise PackageNotFoundError

    monkeypatch.setattr(doctor, "requires", absent)
    assert "not installed" in by_topic()["extras"].value


def test_an_old_python_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PYTHON_MIN", (9, 0))
    assert by_topic()["python"].state == "broken"
