"""mypy's cache and its daemon: a file whose dependency was edited is looked at again, and the daemon says what a batch run says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mypy_plugin.analysed import ROOT
from tests.mypy_plugin.project import Project, findings

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
MOVED = "user.py:6: error: Use of moved barrier"


@pytest.fixture
def project(new: Callable[..., Project]) -> Project:
    return new({"user.py": USER, "helper.py": BORROWS})


def test_an_edit_of_a_dependency_is_seen_through_the_cache(project: Project) -> None:
    assert "error" not in project.batch()
    project.write("helper.py", TAKES)
    assert MOVED in project.batch()
    assert MOVED in project.batch(), "the error is kept with the cache"
    project.write("helper.py", BORROWS)
    assert "error" not in project.batch()


def test_an_edit_of_the_plugin_is_seen_through_the_cache(new: Callable[..., Project], tmp_path: Path) -> None:
    """Mypy itself compares only the file that the configuration names, which does not change here."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "oxidecopy", copy / "oxidecopy", ignore=shutil.ignore_patterns("__pycache__", "kernels", "_examples"))
    project = new({"user.py": USER, "helper.py": TAKES}, first=(str(copy),))
    assert "oxidecopy took" not in project.batch()
    messages = copy / "oxidecopy" / "mypy_plugin" / "_messages.py"
    messages.write_text(messages.read_text().replace("Use of moved", "Use of quite moved"))
    assert "Use of quite moved barrier" in project.batch()


STATES = """\
import oxidecopy as ox
from typing import Literal as L
S64 = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[64], L[64]]]
N32 = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[64], L[32]]]
def narrow(src: N32) -> None: ...
def f(cta: ox.Cta, s64: S64) -> None:
    bar = cta.barrier()
    bar.arrive()
    narrow(s64)
"""
PLAIN = ('"bar" is not initialised yet', "moves boxes of 64 x 64", "[oxidecopy-box]")
# Mypy's own errors in plain words, and which of them stand.
WORDS = {
    STATES: PLAIN,
    STATES.replace("    bar.arrive()\n", "    ready = bar.init(1)\n    ready.init(2)\n"): ('"ready" is Ready already', *PLAIN[1:]),
    STATES.replace("narrow(s64)", "narrow(s64)  # type: ignore[oxidecopy-box]"): PLAIN[:1],
    f"{STATES}# edited\n": PLAIN,
}

# What the files are, one after the other: each edit is what somebody does in an editor.
EDITS: tuple[tuple[str, str], ...] = (
    ("helper.py", TAKES),
    ("helper.py", BORROWS),
    ("user.py", USER.replace("    helper(r)\n", "    r.inval()\n")),
    ("user.py", USER + "def g(cta: ox.Cta) -> None:\n    bar = cta.barrier()\n    bar.init(1)\n    bar.init(1)\nG = g\n"),
    ("helper.py", TAKES + "def other() -> int:\n    return 1\n"),
    ("helper.py", "import oxidecopy as ox\nhelper = 3\n"),
    ("helper.py", "def helper(b:\n"),
    ("helper.py", TAKES),
    ("user.py", USER.replace("    r.arrive()\n", "    n: int = ''\n")),
    ("user.py", USER.replace("    helper(r)\n", "    helper(r)  # type: ignore[oxidecopy-moved]\n")),
    ("user.py", USER.replace("    r.arrive()\n", "    r.arrive()  # type: ignore[oxidecopy-moved]\n")),
    ("user.py", USER + "c: ox.Cta\nbar = c.barrier()\nbar.init(1)\nbar.init(1)\n"),
    ("helper.py", TAKES.replace("print(b)", "b.inval()\n    b.inval()")),
    (
        "user.py",
        USER.replace("def f", "LATER = int('1')\ndef f").replace("r.arrive()", "print(BELOW)\n    r.arrive()") + "BELOW = int('2')\n",
    ),
    ("user.py", "import oxidecopy as ox\n"),
    ("user.py", USER),
    *(("user.py", text) for text in WORDS),
    ("user.py", USER),
)


def test_the_daemon_says_what_batch_says_after_each_edit(project: Project) -> None:
    output = project.asked()
    assert findings(output) == []
    for n, (name, text) in enumerate(EDITS):
        project.write(name, text)
        output = project.asked()
        assert findings(output) == findings(project.batch()), f"edit {n} of {name}"
        wanted = WORDS.get(text, ())
        assert all(word in output for word in wanted), output
        assert not wanted or not any(word in output for word in PLAIN if word not in wanted), output
    assert findings(output) == findings(project.asked()), "nothing changed, and the answer stays"


MISTAKES = USER.replace("    helper(r)\n", "    r.inval()\n") + "n: int = ''\n"


@pytest.mark.parametrize(
    ("section", "moved"),
    [
        ("[mypy-user]\nignore_errors = True\n", False),
        ("[mypy-user]\ndisable_error_code = oxidecopy-moved\n", False),
        ("[mypy-helper]\ndisable_error_code = oxidecopy-moved\n", True),
    ],
)
def test_modules_have_settings_of_their_own(new: Callable[..., Project], section: str, *, moved: bool) -> None:
    project = new({"user.py": MISTAKES, "helper.py": BORROWS}, sections=section)
    output = project.batch()
    assert (MOVED in output) == moved
    assert ("[assignment]" in output) == ("ignore_errors" not in section)


def test_a_module_a_package_a_text_and_a_shadow(new: Callable[..., Project], tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    project = new({"user.py": MISTAKES, "helper.py": BORROWS, "pack/inner.py": MISTAKES, "clean.py": USER})
    moved = "Use of moved barrier"
    assert moved in project.run("mypy", "-m", "user")
    assert moved in project.run("mypy", "-p", "pack")
    assert moved in project.run("mypy", "-c", MISTAKES)
    hook = ("--ignore-missing-imports", "--scripts-are-modules", "--cache-dir=hook")  # other options, so nothing in the cache holds
    assert moved in project.run("mypy", *hook, "user.py"), "pre-commit's hook"
    assert moved not in project.run("mypy", "clean.py")
    assert f"clean.py:6: error: {moved}" in project.run("mypy", "--shadow-file", "clean.py", "user.py", "clean.py"), "an editor's buffer"
