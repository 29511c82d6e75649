"""The plugin's own section, the tested range, and its digest."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy.build import build
from mypy.modulefinder import BuildSource
from mypy.plugin import ReportConfigContext

from oxidecopy.mypy_plugin import _config
from oxidecopy.mypy_plugin._told import Told
from tests.mypy_plugin.analysed import ROOT, Caching, only_here, options_of

USER = """\
import oxidecopy as ox
def f(cta: ox.Cta) -> None:
    bar = cta.barrier()
    bar.init(1)
    bar.init(1)
    bar.init(1)  # type: ignore[oxidecopy-moved]
    n: int = "a"
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mypy.ini", "[mypy]\n[oxidecopy-mypy]\nunsupported_mypy = note\n"),
        ("setup.cfg", "[mypy]\nx = %(y)\n[oxidecopy-mypy]\nunsupported_mypy = note\n"),
        ("pyproject.toml", '[tool.oxidecopy-mypy]\nunsupported_mypy = "note"\n'),
    ],
)
def test_the_section_is_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert _config.read(str(tmp_path / name)) == _config.Config(unsupported_mypy="note")


def test_without_a_section_the_defaults_hold(tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    assert _config.read(None) == _config.read(str(tmp_path / "mypy.ini")) == _config.Config()


def test_a_wrong_option_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text("[oxidecopy-mypy]\nunsupported_mypy = maybe\nleeks = on\n")
    config = _config.read(str(tmp_path / "mypy.ini"))
    assert config.unsupported_mypy == "error"
    assert [problem.split("'")[1] for problem in config.problems] == ["unsupported_mypy", "leeks"]


@pytest.mark.parametrize(
    ("version", "good"), [("2.2.0", True), ("2.4.1", True), ("2.4.0+dev.abc", True), ("2.1.9", False), ("2.5.0", False), ("x", False)]
)
def test_the_tested_range(version: str, good: bool) -> None:
    assert _config.tested(version) == good


def test_the_extra_names_the_tested_range() -> None:
    first, last = _config.TESTED
    wanted = f'mypy = ["mypy>={first[0]}.{first[1]},<{last[0]}.{last[1] + 1}"]'
    assert wanted in (ROOT / "pyproject.toml").read_text()


def test_another_plugin_has_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(_config.__file__).parent
    for path in here.rglob("*.py"):
        copy = tmp_path / path.relative_to(here)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    real = _config.digest()
    monkeypatch.setattr(_config, "__file__", str(tmp_path / "_config.py"))
    _forget()
    assert _config.digest() == real
    (tmp_path / "_features" / "tokens.py").write_text("# another\n")
    _forget()
    assert _config.digest() != real
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    """A digest that was kept."""
    clear = getattr(_config.digest, "cache_clear", None)
    if clear is not None:
        clear()


@pytest.mark.parametrize(
    ("path", "anew"),
    [("mine.py", True), (str(ROOT / "oxidecopy" / "isa" / "ops.py"), False), ("/x/site-packages/numpy/__init__.pyi", False)],
)
def test_while_there_is_something_to_say_the_users_files_are_checked_anew(path: str, *, anew: bool) -> None:
    ctx = ReportConfigContext("module", path, is_check=False)
    assert Told(("words",)).data(ctx) == Told((), ("words",)).data(ctx) == anew
    assert not Told().data(ctx)


def test_an_ignore_of_the_code_silences_one_error(cache: Path) -> None:
    options = options_of(cache)
    only_here(options, "one", warn_unused_ignores=True)
    lines = build([BuildSource("one.py", "one", USER)], options=options, extra_plugins=[Caching(options)]).errors
    assert [line.split(":")[1] for line in lines if "error" in line] == ["5", "7"]
