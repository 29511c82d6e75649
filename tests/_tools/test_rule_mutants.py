from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from oxidecopy._tools import rule_mutants
from oxidecopy._tools.rule_mutants import places, stored_text

ROOT = Path(__file__).parents[2]
TESTS = """
from tests.helpers.programs import Builder
from tests.helpers.verdicts import refused

def test_seen():
    b = Builder(threads=2000)
    refused(b, "OX3073")

def test_not_seen():
    b = Builder()
    b.bar()
    b.wait_parity(0)
    try:
        refused(b, "OX3001")
    except AssertionError:
        pass
"""


def test_places_are_calls_that_report() -> None:
    found = places()
    assert len(found) > 60
    source = (ROOT / "oxidecopy" / "verify" / "static.py").read_text().splitlines()
    assert all(".add(" in source[first - 1] for name, (first, _) in found.items() if name.startswith("static.py"))


def test_a_rule_that_no_test_misses_survives(tmp_path: Path) -> None:
    """In a process of its own, as the tool changes the verifier for good."""
    (tmp_path / "test_some.py").write_text(TESTS)
    output = tmp_path / "r.json"
    command = [sys.executable, "-m", "oxidecopy._tools.rule_mutants", str(tmp_path), "--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    data = json.loads(output.read_text())
    assert list(data["killed_by"]) == ["OX3073"]
    assert data["rules_killed"] == data["places_killed"] == 1
    assert "survived: OX3001" in done.stdout
    assert data["tests"] == 2


def test_what_is_stored_is_json() -> None:
    stored = {
        "OX3001": {"launch": {"grid": [1, 1, 1]}, "changes": {"threads": 2000}, "bounds": {}, "others": [], "program": ['a "b"', "  c"]}
    }
    assert json.loads(stored_text(stored)) == stored
    assert rule_mutants.STORED.is_file()
