"""The driver layer with other versions of the bindings: what is installed where, what is run, what it says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oxidecopy._tools import bindings, environments
from oxidecopy._tools.bindings import main
from oxidecopy._tools.environments import ROOT
from tests.helpers.tool_runs import Recorder


def test_each_version_is_installed_apart_and_tested(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PYTHONPATH", "mine")
    monkeypatch.setattr(environments, "cores", lambda: 1)  # one after the other
    run = Recorder()
    assert main([], run) == 0
    assert len(run.commands) == 3 * len(bindings.VERSIONS)
    install, look, test = run.commands[:3]
    folder = install[install.index("--target") + 1]
    assert install[-1] == "cuda-bindings==12.9.0"
    assert folder in look[-1]
    tests = bindings.PACKAGE.tests
    assert test[-len(tests) :] == tests
    assert all((ROOT / name).is_file() for name in tests)
    assert run.paths[1].split(os.pathsep) == [folder, "mine"]
    assert not Path(folder).exists()
    assert capsys.readouterr().out == "cuda-bindings 12.9.0: ok\ncuda-bindings 13.*: ok\n"


@pytest.mark.parametrize(
    ("failing", "words"), [("pip", "cannot be installed"), ("import", "is not what is imported"), ("pytest", "fails the tests")]
)
def test_what_fails_is_said(failing: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["12.9.3", "13.1.*"], Recorder(failing)) == 1
    assert capsys.readouterr().out == f"cuda-bindings 12.9.3: {words}\ncuda-bindings 13.1.*: {words}\n"


def test_the_versions_are_the_ends_of_what_is_allowed() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"cuda-python>=12.9,<14;' in project
    assert bindings.VERSIONS == ("12.9.0", "13.*")
