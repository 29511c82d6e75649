from __future__ import annotations

import json
from pathlib import Path

import pytest

from oxidecopy._tools import sanitize


def fake(tmp_path: Path, body: str) -> str:
    """A sanitizer that says what it is told, instead of running anything."""
    script = tmp_path / "compute-sanitizer"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("body", "clean", "said"),
    [
        ('echo "========= ERROR SUMMARY: 0 errors"', True, "ERROR SUMMARY: 0 errors"),
        (
            'echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"',
            True,
            "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)",
        ),
        ('echo "========= ERROR SUMMARY: 3 errors"; exit 99', False, "ERROR SUMMARY: 3 errors"),
        ('echo "========= ERROR SUMMARY: 0 errors"; exit 1', False, "ERROR SUMMARY: 0 errors"),  # the lesson's own check failed
        ("echo Device not supported; exit 1", False, "Device not supported"),
    ],
)
def test_verdicts(tmp_path: Path, body: str, clean: bool, said: str) -> None:
    verdict = sanitize.check(fake(tmp_path, body), Path("examples/01_load.py"), "memcheck")
    assert (verdict.lesson, verdict.clean, verdict.said) == ("01_load", clean, said)


def test_every_lesson_under_every_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake(tmp_path, 'echo "========= ERROR SUMMARY: 0 errors"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert sanitize.main(["--output", str(tmp_path / "r.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    lessons = list((sanitize.ROOT / "examples").glob("[0-9]*.py"))
    assert len(lines) == len(lessons) * len(sanitize.TOOLS)
    assert json.loads((tmp_path / "r.json").read_text())["clean"] is True


def test_without_a_sanitizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert sanitize.main([]) == 2
