"""Targets, and what counts as a file's pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy.cli.files import choose, load, split_target
from oxidecopy.errors import UsageError
from tests.helpers.command import TILES


@pytest.mark.parametrize(
    ("target", "path", "name"),
    [
        ("a/x.py", "a/x.py", ""),
        ("a/x.py:load", "a/x.py", "load"),
        ("C:\\x.py", "C:\\x.py", ""),
        ("C:\\x.py:load", "C:\\x.py", "load"),
        ("x.py:", "x.py:", ""),
        ("x.py:not a name", "x.py:not a name", ""),
    ],
)
def test_targets(target: str, path: str, name: str) -> None:
    assert split_target(target) == (Path(path), name)


def test_a_file_with_a_colon_in_its_name_is_a_file(tmp_path: Path) -> None:
    odd = tmp_path / "x:y"
    odd.touch()
    assert split_target(str(odd)) == (odd, "")


def test_a_recipe_is_named_with_its_pipeline(tmp_path: Path) -> None:
    """As `run` prints it, and as test runners have it."""
    path = tmp_path / "x.py"
    path.write_text(TILES)
    assert split_target(f"{path}:tiles:whole") == (path, "tiles:whole")
    assert split_target(f"{path}::tiles") == (path, "tiles")
    assert split_target(f"{path}:not a name:whole") == (Path(f"{path}:not a name"), "whole")
    assert choose(load(path), "tiles:whole").name == "tiles:whole"


def test_what_is_asked_for_has_no_recipe(tmp_path: Path) -> None:
    """The pipeline that was named is told, not the first one."""
    path = tmp_path / "x.py"
    path.write_text(TILES.partition("@tiles.recipe")[0] + TILES.partition("@tiles.recipe")[0].replace("def tiles", "def others"))
    file = load(path)
    for name, rule, words in (("", "OX6003", "@tiles.recipe"), ("others", "OX6003", "@others.recipe"), ("other", "OX6004", "x.py:others")):
        with pytest.raises(UsageError) as caught:
            choose(file, name)
        assert caught.value.rules == (rule,)
        assert words in caught.value.diagnostics[0].fix


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path)
    assert caught.value.diagnostics[0].fix == f"name files: {tmp_path}/*.py"


def test_a_pipeline_with_two_names_is_one(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(TILES + "alias = tiles\n")
    assert list(load(path).pipelines) == ["tiles"]


def test_two_recipes_of_a_pipeline_are_told_apart_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(TILES + TILES.partition("@tiles.recipe")[2].replace("def whole", "@tiles.recipe\ndef again"))
    file = load(path)
    assert choose(file, "again").name == "tiles:again"
    for name in ("", "tiles"):
        with pytest.raises(UsageError) as caught:
            choose(file, name)
        assert caught.value.diagnostics[0].got == "whole, again"


def test_each_load_is_a_module_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(TILES)
    first, second = load(path), load(path)
    assert first.pipelines["tiles"] is not second.pipelines["tiles"]


def test_an_error_of_ours_while_loading_keeps_its_rule(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(TILES.replace("threads=32", "threads=0"))
    with pytest.raises(UsageError) as caught:
        load(path)
    assert caught.value.rule == "OX1031"
