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
