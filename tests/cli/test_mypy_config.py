"""The configuration that mypy is given: the user's own with the plugin added, and what it must not take over."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy.cli.mypy_config import PLUGIN, sections_of, user_config, written


def test_strict_where_there_is_none() -> None:
    assert written(None, plugin=True).split() == f"[mypy] strict = True follow_imports = silent plugins = {PLUGIN}".split()
    assert "plugins" not in written(None, plugin=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def read_back(path: Path, text: str, *, plugin: bool = True) -> dict[str, dict[str, str]]:
    path.write_text(text)
    other = path.with_name("made.ini")
    other.write_text(written(path, plugin=plugin))
    return sections_of(other)


def test_an_ini_file_is_kept(folder: Path) -> None:
    text = "[mypy]\nfiles = a, b\nexclude = x\nwarn_unreachable = True\nenable_error_code =\n    deprecated,\n    truthy-bool\n"
    text += "mypy_path = $MYPY_CONFIG_FILE_DIR/stubs\nplugins = ./mine.py:make, other.plugin\n"
    text += "[mypy-a.*]\nignore_errors = True\n[oxidecopy-mypy]\nleaks = note\n[tool:pytest]\nx = 1\n"
    made = read_back(folder / "mypy.ini", text)
    assert made.keys() == {"mypy", "mypy-a.*", "oxidecopy-mypy"}
    assert made["mypy"] == {
        "warn_unreachable": "True",
        "enable_error_code": "deprecated,\ntruthy-bool",
        "mypy_path": f"{folder}/stubs",
        "plugins": f"{folder}/mine.py:make, other.plugin, {PLUGIN}",
        "follow_imports": "silent",
    }
    assert made["mypy-a.*"] == {"ignore_errors": "True"}
    assert made["oxidecopy-mypy"] == {"leaks": "note"}


def test_a_toml_file_is_kept(folder: Path) -> None:
    text = f"""
[tool.mypy]
strict = true
packages = ["mine"]
follow_imports = "normal"
plugins = ["{PLUGIN}"]
disable_error_code = ["misc", "no-any-return"]
[[tool.mypy.overrides]]
module = ["a.*", "b"]
ignore_missing_imports = true
[[tool.mypy.overrides]]
module = "b"
ignore_errors = true
[tool.oxidecopy-mypy]
leaks = "error"
"""
    made = read_back(folder / "pyproject.toml", text)
    assert made["mypy"] == {
        "strict": "True",
        "follow_imports": "normal",
        "plugins": PLUGIN,
        "disable_error_code": "misc, no-any-return",
    }
    assert made["mypy-a.*"] == {"ignore_missing_imports": "True"}
    assert made["mypy-b"] == {"ignore_missing_imports": "True", "ignore_errors": "True"}
    assert made["oxidecopy-mypy"] == {"leaks": "error"}


def test_found_where_mypy_looks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    inner = folder / "repo" / "sub"
    inner.mkdir(parents=True)
    (folder / "repo" / ".git").mkdir()
    (folder / "mypy.ini").write_text("[mypy]\n")  # above the repository: not read
    assert user_config(inner) is None
    (folder / "home").mkdir()
    (folder / "home" / ".mypy.ini").write_text("[mypy]\n")
    assert user_config(inner) == folder / "home" / ".mypy.ini"
    (inner / "pyproject.toml").write_text("[tool.ruff]\n")  # says nothing of mypy
    (folder / "repo" / "setup.cfg").write_text("[mypy]\n")
    assert user_config(inner) == folder / "repo" / "setup.cfg"
    (folder / "repo" / "mypy.ini").write_text("")
    assert user_config(inner) == folder / "repo" / "mypy.ini"


@pytest.mark.parametrize(("name", "text"), [("mypy.ini", "[mypy\n"), ("pyproject.toml", "[tool.mypy")])
def test_a_file_that_is_none_raises(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(Exception, match=r"header|Expected"):
        written(folder / name, plugin=True)
