"""How a tool is run for another version; what is installed and tested is in the tests of the tools that use it."""

from __future__ import annotations

import sys
from pathlib import Path

from oxidecopy._tools import environments


def test_commands_run_in_the_checkout(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = f"import os; open({str(seen)!r}, 'w').write(os.getcwd() + os.environ['MARK'])"
    assert environments.run_command((sys.executable, "-c", code), {"MARK": "!", "PATH": ""}) == 0
    assert seen.read_text() == f"{environments.ROOT}!"
    assert environments.run_command((sys.executable, "-c", "raise SystemExit(3)"), {}) == 3
