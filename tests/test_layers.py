"""Each contract between the rooms fires: a copy of the package with one import too many is refused by the contract that forbids it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oxidecopy._tools.check import LINT_IMPORTS

ROOT = Path(__file__).parents[1]

VIOLATIONS = [
    ("layers", "newroom/__init__.py", ""),
    ("layers", "isa/intruder.py", "import oxidecopy.program.program"),
    ("layers", "typed/intruder.py", "import oxidecopy"),
    ("layers", "cli/intruder.py", "import oxidecopy.bench"),
    ("layers", "host/intruder.py", "import oxidecopy.oneliners.copying"),
    ("engines", "engines/sim/intruder.py", "import oxidecopy.engines.cuda"),
    ("engines", "engines/third.py", ""),
    ("oracles", "verify/intruder.py", "import oxidecopy.engines.sim"),
    ("oracles", "engines/sim/intruder.py", "import oxidecopy.verify"),
    ("cuda", "host/intruder.py", "from cuda.bindings import driver"),
    ("terminal", "bench/intruder.py", "import rich"),
]


def verdict(folder: Path, contract: str) -> subprocess.CompletedProcess[str]:
    """What import-linter says of the package in `folder`, held against one contract of the project's configuration."""
    command = [sys.executable, "-c", LINT_IMPORTS, "--config", str(ROOT / "pyproject.toml"), "--contract", contract, "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("contract", "path", "line"), VIOLATIONS)
def test_contract_refuses(contract: str, path: str, line: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "oxidecopy", tmp_path / "oxidecopy", ignore=shutil.ignore_patterns("__pycache__"))
    intruder = tmp_path / "oxidecopy" / path
    intruder.parent.mkdir(exist_ok=True)
    intruder.write_text(f"{line}\n", encoding="utf-8")
    result = verdict(tmp_path, contract)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Contracts: 0 kept, 1 broken." in result.stdout
    named = "newroom" if "newroom" in path else Path(path).stem
    assert named in result.stdout


@pytest.mark.parametrize("contract", sorted({contract for contract, _, _ in VIOLATIONS}))
def test_contract_accepts_the_package(contract: str) -> None:
    result = verdict(ROOT, contract)
    assert result.returncode == 0, result.stdout + result.stderr
