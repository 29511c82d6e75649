"""The plugin's own section, the tested range, and its digest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from mypy.build import build
from mypy.modulefinder import BuildSource
from mypy.nodes import MypyFile

from oxidecopy.mypy_plugin import _config
from oxidecopy.mypy_plugin._plugin import OxidecopyPlugin
from tests.mypy_plugin.analysed import ROOT, Kept, options_of

if TYPE_CHECKING:
    from mypy.checker import TypeChecker
    from mypy.options import Options

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


def said(tmp_path: Path, options: Options, version: str) -> list[str]:
    """What mypy says of a file with a mistake of types and one of moves, with this version of it."""
    options.cache_dir = str(tmp_path / "cache")
    plugin = OxidecopyPlugin(options, version)
    return [
        line.removeprefix("one.py:") for line in build([BuildSource("one.py", "one", USER)], options=options, extra_plugins=[plugin]).errors
    ]


def test_outside_the_range_it_says_so_and_types_are_still_checked(tmp_path: Path) -> None:
    first, *rest = said(tmp_path, options_of(tmp_path), "2.9.0")
    assert first.startswith("1: error: ")
    assert first.endswith("[oxidecopy-plugin]")
    assert "tested with mypy 2.2 to 2.4, not 2.9.0" in first
    assert not any("[oxidecopy-moved]" in line for line in rest)
    assert any("[assignment]" in line for line in rest)


def told(tmp_path: Path, section: str, version: str) -> Kept:
    """What the plugin says of itself, twice asked."""
    (tmp_path / "mypy.ini").write_text(section)
    options = options_of(tmp_path)
    options.config_file = str(tmp_path / "mypy.ini")
    plugin, listener = OxidecopyPlugin(options, version), Kept(MypyFile([], []), {})
    plugin._tell(cast("TypeChecker", listener))
    plugin._tell(cast("TypeChecker", listener))
    return listener


def test_outside_the_range_a_note_may_do(tmp_path: Path) -> None:
    listener = told(tmp_path, "[oxidecopy-mypy]\nunsupported_mypy = note\n", "2.9.0")
    assert listener.found == set()
    assert len(listener.texts) == 1


def test_inside_the_range_an_ignore_of_the_code_silences_one_error(tmp_path: Path) -> None:
    options = options_of(tmp_path)
    options.warn_unused_ignores = True
    lines = said(tmp_path, options, "2.4.1")
    assert [line.partition(":")[0] for line in lines if "error" in line] == ["5", "7"]


def test_a_wrong_option_is_reported_once(tmp_path: Path) -> None:
    listener = told(tmp_path, "[oxidecopy-mypy]\nleeks = on\n", "2.4.1")
    assert listener.found == {(1, "oxidecopy-plugin")}
    assert len(listener.texts) == 1
