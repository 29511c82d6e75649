"""A mypy outside the tested range: the pass is off, one error or note says so in every run, and types are checked as ever."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from mypy.version import __version__ as MYPY  # noqa: N812

from oxidecopy.mypy_plugin import _config
from tests.mypy_plugin.project import CONFIG, Project, findings

USER = """\
import oxidecopy as ox
def f(cta: ox.Cta) -> None:
    cta.shared(ox.f32, (64, 32), align=ox.A1024)  # overloaded: errors that are reported meanwhile are taken for a variant's
    bar = cta.barrier()
    bar.init(1)
    bar.init(1)
    n: int = "a"
"""
# A plugin is given the version of the mypy that loads it: this one says another.
STRANGE = "from oxidecopy import mypy_plugin\ndef plugin(version): return mypy_plugin.plugin('2.9.0')\n"
FAKED = "[mypy]\nplugins = strange.py\n"


@pytest.fixture
def faked(new: Callable[..., Project]) -> Callable[..., Project]:
    return partial(new, config=FAKED, plugins={"strange.py": STRANGE})


TWO = {"one.py": USER, "two.py": USER}


def codes(output: str) -> list[str]:
    """The codes of all errors, whatever the file."""
    return sorted(line.rpartition("[")[2].rstrip("]") for line in findings(output) if ": error: " in line)


ONE_ERROR = ["assignment", "assignment", "oxidecopy-plugin"]


def test_every_run_says_it_once(faked: Callable[..., Project]) -> None:
    project = faked(TWO)
    first = project.batch()
    assert codes(first) == ONE_ERROR
    assert "is tested with mypy 2.2 to 2.4, not 2.9.0: moves and scopes are not checked" in first
    assert codes(project.batch()) == ONE_ERROR, "all in the cache"
    for name in ("one.py", "two.py"):
        project.write(name, f"{USER}# edited\n")
        assert codes(project.batch()) == ONE_ERROR, f"{name} edited"


def test_one_of_parallel_workers_says_it(faked: Callable[..., Project]) -> None:
    project = faked({f"file{n}.py": USER for n in range(4)})
    for _ in range(2):
        assert codes(project.batch("-n", "2")) == [*["assignment"] * 4, "oxidecopy-plugin"]


def test_the_daemon_says_it_too(faked: Callable[..., Project]) -> None:
    project = faked(TWO)
    assert codes(project.asked()) == ONE_ERROR
    project.write("two.py", f"{USER}# edited\n")
    assert codes(project.asked()) == ONE_ERROR


def test_a_note_may_do(faked: Callable[..., Project]) -> None:
    output = faked(TWO, sections="[oxidecopy-mypy]\nunsupported_mypy = note\n").batch()
    assert codes(output) == ["assignment", "assignment"]
    assert [line.split(": ")[1] for line in findings(output) if "is tested with mypy" in line] == ["note"]


def test_a_wrong_option_is_said_in_every_run(new: Callable[..., Project]) -> None:
    project = new(TWO, sections="[oxidecopy-mypy]\nleeks = on\n")
    wanted = [*ONE_ERROR[:2], "oxidecopy-moved", "oxidecopy-moved", "oxidecopy-plugin"]
    assert codes(project.batch()) == wanted
    assert codes(project.batch()) == wanted
    project.write("one.py", f"{USER}# edited\n")
    output = project.batch()
    assert codes(output) == wanted
    assert "[oxidecopy-mypy] has no option 'leeks' = 'on'" in output


@pytest.mark.skipif(_config.tested(MYPY), reason="the mypy here is one that the plugin works with")
def test_a_mypy_of_another_version(new: Callable[..., Project]) -> None:
    """`python -m oxidecopy._tools.plugin_versions` installs one: this one is not told a wrong number."""
    project = new(TWO)
    for _ in range(2):
        output = project.batch()
        assert codes(output) == ONE_ERROR
        assert f"is tested with mypy 2.2 to 2.4, not {MYPY}: moves and scopes are not checked" in output
    project.write("mypy.ini", CONFIG + "[oxidecopy-mypy]\nunsupported_mypy = note\n")
    assert codes(project.batch()) == ONE_ERROR[:2]


@pytest.mark.parametrize("silent", ["x = 1\n", "import oxidecopy\n"])
def test_files_that_use_nothing_of_the_library_are_left_alone(faked: Callable[..., Project], silent: str) -> None:
    assert codes(faked({"one.py": silent}).batch()) == []
