"""Which versions of mypy the plugin is tested with: all minor versions of its range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oxidecopy._tools import environments, plugin_versions
from oxidecopy._tools.environments import ROOT
from oxidecopy.mypy_plugin import _config
from tests.helpers.tool_runs import Recorder

if TYPE_CHECKING:
    import pytest


def test_each_is_installed_with_what_it_needs_and_tested(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(environments, "cores", lambda: 1)  # one after the other
    run = Recorder()
    assert plugin_versions.main([], run) == 0
    install, _, test = run.commands[:3]
    assert install[-1] == "mypy==2.2.*"
    assert "--no-deps" not in install
    assert test[-len(plugin_versions.PACKAGE.tests) :] == plugin_versions.PACKAGE.tests
    assert run.commands[-1][-1:] == plugin_versions.OTHER.tests
    for name in (*plugin_versions.PACKAGE.tests, *plugin_versions.OTHER.tests):
        file, _, test = name.partition("::")
        assert f"def {test}" in (ROOT / file).read_text()
    assert capsys.readouterr().out == "mypy 2.2.*: ok\nmypy 2.3.*: ok\nmypy 1.15.*: ok\n"


def test_a_named_one_is_tested_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert plugin_versions.main(["2.4.*"], Recorder()) == 0
    assert capsys.readouterr().out == "mypy 2.4.*: ok\n"


def test_the_versions_are_those_of_the_range_but_for_the_newest() -> None:
    (major, first), (same, last) = _config.TESTED
    assert major == same
    assert [f"{major}.{minor}.*" for minor in range(first, last)] == list(plugin_versions.VERSIONS)
    assert len(plugin_versions.VERSIONS) >= 2
