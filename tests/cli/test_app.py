"""The command as a whole: version, help, missing packages, errors in process."""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest

import oxidecopy.cli
from oxidecopy import __version__
from oxidecopy.cli import bench, check, demo, doctor, explain, invoke, main, run, show, show_descriptor, show_tile
from oxidecopy.errors import UsageError
from tests.helpers.command import command


def test_version() -> None:
    assert command("--version").stdout == f"oxidecopy {__version__}\n"


@pytest.mark.parametrize("of", [(), ("run",), ("show", "tile"), ("bench", "gpu"), ("conformance",)])
def test_help_has_a_short_name(of: tuple[str, ...]) -> None:
    short, long = command(*of, "-h"), command(*of, "--help")
    assert (short.exit_code, short.stdout) == (0, long.stdout)


@pytest.mark.parametrize(
    ("arguments", "examples"),
    [
        (("run",), run.EXAMPLES),
        (("demo",), demo.EXAMPLES),
        (("check",), check.EXAMPLES),
        (("explain",), explain.EXAMPLES),
        (("doctor",), doctor.EXAMPLES),
        (("show", "program"), show.EXAMPLES),
        (("show", "tile"), show_tile.EXAMPLES),
        (("show", "descriptor"), show_descriptor.EXAMPLES),
        (("bench", "sim"), bench.EXAMPLES),
    ],
)
def test_every_help_has_its_examples(arguments: tuple[str, ...], examples: tuple[str, ...]) -> None:
    result = command(*arguments, "--help")
    assert result.exit_code == 0
    for example in examples:
        assert f"$ {example}" in result.stdout


def test_help_lists_all_commands_and_exit_codes() -> None:
    words = command("--help").stdout
    assert all(name in words for name in ("run", "demo", "check", "explain", "doctor", "show", "bench", "Exit status"))


def test_help_loads_nothing_that_draws_or_computes() -> None:
    script = "import sys, oxidecopy.cli.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    slow = ("numpy", "matplotlib", "mypy", "cuda", "oxidecopy.draw", "oxidecopy.maps", "oxidecopy.program", "oxidecopy.engines")
    assert not [name for name in loaded if name in slow or name.startswith(tuple(f"{each}." for each in slow))]


def test_unknown_command() -> None:
    result = command("ruun")
    assert result.exit_code == 2
    assert "run" in result.stderr


@pytest.mark.parametrize("missing", [("typer",), ("rich",), ("typer", "rich")])
def test_without_its_packages_it_says_how_to_get_them(
    missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(oxidecopy.cli, "find_spec", lambda name: None if name in missing else object())
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"the command line needs {', '.join(missing)}: pip install 'oxidecopy[cli]'\n"


def test_main_runs_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["oxidecopy", "--version"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 0
    assert __version__ in capsys.readouterr().out


def test_an_interrupt_while_starting(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("oxidecopy.cli.app.app", interrupted)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 130
    assert capsys.readouterr().err == "stopped\n"


def test_an_interrupt_inside_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "sections", interrupted)
    result = command("doctor")
    assert result.exit_code == 130
    assert result.stderr == "stopped\n"


def test_invoke_raises_and_prints_nothing_of_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError) as caught:
        invoke("run", "nowhere.py")
    assert caught.value.rules == ("OX6001",)
    assert capsys.readouterr().err == ""
    assert command("run", "nowhere.py").exit_code == 2


def test_the_package_is_the_command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["oxidecopy", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("oxidecopy", run_name="__main__")
    assert not ended.value.code
    assert capfd.readouterr().out == f"oxidecopy {__version__}\n"
