"""The drawings of the docs are those that are made now, and lanes do not overlap."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy._tools import drawings


def test_they_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert drawings.main(["--check"]) == 0, capsys.readouterr().err


def test_what_is_out_of_date_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drawings.main(["--check"], tmp_path) == 1
    assert "phases.svg" in capsys.readouterr().err
    assert drawings.main([], tmp_path) == 0
    assert drawings.main(["--check"], tmp_path) == 0
    (tmp_path / "proxies.svg").write_text("<svg/>")
    capsys.readouterr()
    assert drawings.main(["--check"], tmp_path) == 1
    assert capsys.readouterr().err == f"proxies.svg out of date: {drawings.COMMAND}\n"


@pytest.mark.parametrize("name", ["phases", "proxies", "multicast"])
def test_boxes_do_not_lie_on_each_other_and_are_inside(name: str) -> None:
    scene = drawings.DRAWINGS[name]()
    for i, a in enumerate(scene.boxes):
        assert a.x >= 0
        assert a.x + a.width <= scene.width
        assert a.y + a.height <= scene.height
        for b in scene.boxes[:i]:
            assert a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
