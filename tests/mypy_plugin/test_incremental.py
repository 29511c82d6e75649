"""mypy's cache and its daemon: a file whose dependency was edited is looked at again, and the daemon says what a batch run says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mypy_plugin.analysed import ROOT

HELPER = "import oxidecopy as ox\nR = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]\ndef helper(b: {}) -> None:\n    print(b)\n"
USER = """\
import oxidecopy as ox
from helper import helper
def f(cta: ox.Cta) -> None:
    r = cta.barrier().init(1)
    helper(r)
    r.arrive()
"""
BORROWS, TAKES = HELPER.format("R"), HELPER.format("ox.Owned[R]")
CONFIG = "[mypy]\nplugins = oxidecopy.mypy_plugin\n"
MOVED = "user.py:6: error: Use of moved barrier"


class Project:
    """Two files in a folder, and mypy there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("mypy.ini", CONFIG)
        self.write("helper.py", BORROWS)
        self.write("user.py", USER)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def _run(self, *command: str) -> str:
        env = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-m", *command], cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.stdout

    def batch(self) -> str:
        return self._run("mypy", "user.py", "helper.py")

    def daemon(self, *command: str) -> str:
        return self._run("mypy.dmypy", "--status-file", "status.json", *command)

    def asked(self) -> str:
        return self.daemon("run", "--", "user.py", "helper.py")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    if (tmp_path / "status.json").exists():
        made.daemon("kill")


def test_an_edit_of_a_dependency_is_seen_through_the_cache(project: Project) -> None:
    assert "error" not in project.batch()
    project.write("helper.py", TAKES)
    assert MOVED in project.batch()
    assert MOVED in project.batch(), "the error is kept with the cache"
    project.write("helper.py", BORROWS)
    assert "error" not in project.batch()


def test_the_daemon_says_what_batch_says(project: Project) -> None:
    assert "error" not in project.asked()
    project.write("helper.py", TAKES)
    assert MOVED in project.asked()
    assert MOVED in project.asked(), "nothing changed, and the error stays"
    project.write("helper.py", BORROWS)
    assert "error" not in project.asked()
    project.write("user.py", USER.replace("    helper(r)\n", "    r.inval()\n"))
    said = project.asked()
    assert MOVED in said
    assert sorted(said.splitlines()[:-1]) == sorted(project.batch().splitlines()[:-1])
