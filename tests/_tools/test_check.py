"""The one command for all checks: which steps run, what is shown, which exit code."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import IO

import pytest

from oxidecopy._tools import check


class Recorder:
    """Stands in for running a tool: notes the commands, prints to a file it is given, answers 1 to those with a word of `failing`."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.commands: list[check.Command] = []

    def __call__(self, command: check.Command, output: IO[bytes] | None = None) -> int:
        self.commands.append(command)
        if output is not None:
            output.write(f"said by {command[2].split()[0]}\n".encode())
        return int(any(word in command for word in self.failing))


def test_all_steps_run_and_pass(capsys: pytest.CaptureFixture[str]) -> None:
    run = Recorder()
    assert check.main([], run) == 0
    assert sorted(run.commands) == sorted(command for step in check.steps(check.parsed([])[1]) for command in step.commands)
    out = capsys.readouterr().out
    assert out.endswith("all checks passed\n")
    assert all(f"{step.name}" in out for step in check.steps(0))


def test_steps_after_a_failed_one_still_run(capsys: pytest.CaptureFixture[str]) -> None:
    run = Recorder("mypy", "format")
    assert check.main([], run) == 1
    assert any("pytest" in command for command in run.commands)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 of 11 checks failed"
    assert [line.split()[:2] for line in lines[-12:-1]] == [
        ["format", "FAILED"],
        ["lint", "ok"],
        ["types", "FAILED"],
        ["imports", "ok"],
        ["generators", "ok"],
        ["package", "ok"],
        ["docs", "ok"],
        ["frameworks", "ok"],
        ["tests", "ok"],
        ["bindings", "ok"],
        ["plugin", "ok"],
    ]


def test_what_could_not_be_done_is_no_failure_and_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    def run(command: check.Command, _output: IO[bytes] | None) -> int:
        return check.SKIPPED if "mypy" in command else 0

    assert check.main(["lint", "types"], run) == 0
    *_, lint, types, last = capsys.readouterr().out.splitlines()
    assert (lint.split()[1], types.split()[1]) == ("ok", "SKIPPED")
    assert last == "all checks passed, but types could not be done here: see above"


def test_named_steps_only_in_the_usual_order() -> None:
    run = Recorder()
    assert check.main(["tests", "lint", "-n", "1"], run) == 0
    assert [command[2] for command in run.commands] == ["ruff", "pytest"]


def test_what_runs_side_by_side_is_shown_in_the_usual_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["imports", "lint", "types", "-n", "3"], Recorder("mypy")) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("==", "said"))]
    assert [line.split()[-1] if line.startswith("said") else line.split()[1] for line in lines] == [
        "lint:",
        "ruff",
        "types:",
        "mypy",
        "imports:",
        "import",
    ]


def test_tools_that_use_one_core_run_at_the_same_time() -> None:
    together = threading.Barrier(2, timeout=10)

    def run(_command: check.Command, _output: IO[bytes] | None) -> int:
        together.wait()
        return 0

    assert check.main(["lint", "format", "-n", "2"], run) == 0


def test_an_unknown_step_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    run = Recorder()
    with pytest.raises(SystemExit) as caught:
        check.main(["lint", "tets"], run)
    assert caught.value.code == 2
    assert "unknown step tets" in capsys.readouterr().err
    assert run.commands == []


@pytest.mark.parametrize(("workers", "parallel"), [(0, False), (1, False), (2, True)])
def test_workers_reach_pytest(workers: int, parallel: bool) -> None:
    run = Recorder()
    check.main(["tests", "-n", str(workers)], run)
    (command,) = run.commands
    assert ("-n" in command) is parallel


def test_the_exit_status_of_a_tool_is_kept() -> None:
    assert check.run_command((sys.executable, "-c", "raise SystemExit(3)")) == 3
    assert check.run_command((sys.executable, "-c", "import sys; sys.exit(len(sys.stdin.read()))")) == 0


def test_what_a_tool_prints_goes_to_the_file(tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as output:
        check.run_command((sys.executable, "-c", "import sys; print(1, flush=True); print(2, file=sys.stderr)"), output)
    assert (tmp_path / "output").read_text() == "1\n2\n"


def test_without_a_checkout_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.main([], Recorder()) == 2
    assert "clone" in capsys.readouterr().err
