"""`run_recipes`: what a script of pipelines prints, writes, and ends with."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typing_extensions import override

import oxidecopy as ox

X = np.arange(64, dtype=np.float32)


@ox.pipeline(threads=32)
def good(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D1], out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (0,), token)
    full.wait(token)
    cta.store(out, tile, (0,))
    full.inval()


@ox.pipeline(threads=32)
def off_by_one(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D1], out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes + 16)
        src.g2s(leader, tile, (0,), token)
    full.wait(token)
    cta.store(out, tile, (0,))
    full.inval()


Pipe = ox.Pipeline[[ox.TmaDescriptor[ox.f32, ox.D1], ox.GlobalArray[ox.f32, ox.D1]]]


@pytest.fixture(autouse=True)
def _no_recipes() -> None:
    good.recipes.clear()
    off_by_one.recipes.clear()


def declare(pipe: Pipe, *, refused: str = "", wanted: npt.NDArray[Any] | None = X, name: str = "made") -> None:
    """A recipe of `pipe` that takes one array or makes its own; `wanted` of None leaves the result unchecked."""

    def recipe(dev: ox.Device, x: npt.NDArray[np.float32] | None = None) -> ox.Recipe:
        a = dev.array(X if x is None else x, ox.f32)
        out = dev.empty(a.shape, ox.f32)
        expected = {} if wanted is None else {"out": wanted}
        return ox.Recipe(launch=pipe[1].bind(ox.TmaDescriptor.tiled(a, box=(64,)), out), outputs={"out": out}, expected=expected)

    recipe.__name__ = name
    if refused:
        pipe.recipe(refused=refused)(recipe)
    else:
        pipe.recipe(recipe)


def test_a_result_that_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    declare(good)
    assert ox.run_recipes("What it is.", good, argv=[]) == 0
    assert "good: out float32 (64,) equal to numpy's" in capsys.readouterr().out


def test_a_result_that_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    declare(good, wanted=X + (X == 5))
    assert ox.run_recipes(None, good, argv=[]) == 1
    assert "WRONG: out differs in 1 of 64 elements, first at [5]: got 5.0, expected 6.0" in capsys.readouterr().out


def test_a_result_that_nothing_is_expected_of(capsys: pytest.CaptureFixture[str]) -> None:
    declare(good, wanted=None)
    assert ox.run_recipes(None, good, argv=[]) == 0
    assert "not checked" in capsys.readouterr().out


def test_input_and_output(tmp_path: Path) -> None:
    given, made = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(given, X)
    declare(good)
    assert ox.run_recipes(None, good, argv=["--input", str(given), "--output", str(made), "--device", "sim-fast"]) == 0
    assert np.array_equal(np.load(made), X)


def test_only_one_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    declare(good)
    declare(off_by_one, refused="OX3020")
    assert ox.run_recipes(None, good, off_by_one, argv=["--pipeline", "good"]) == 0
    assert "off_by_one" not in capsys.readouterr().out


# ---- twins
def test_a_twin_is_refused_and_its_error_shown(capsys: pytest.CaptureFixture[str]) -> None:
    declare(off_by_one, refused="OX3020")
    assert ox.run_recipes(None, off_by_one, argv=[]) == 0
    printed = capsys.readouterr().out
    assert "off_by_one: refused, as it should be, by OX3020" in printed
    assert f"    {__file__}:" in printed


def test_a_twin_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    declare(good, refused="OX3020")
    assert ox.run_recipes(None, good, argv=[]) == 1
    assert "good: WRONG: it runs, and OX3020 should refuse it" in capsys.readouterr().out


def test_a_twin_that_another_rule_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    declare(off_by_one, refused="OX3021")
    assert ox.run_recipes(None, off_by_one, argv=[]) == 1
    assert "off_by_one: WRONG: refused, but not by OX3021" in capsys.readouterr().out


def test_a_twin_beside_a_good_recipe_has_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    declare(good)
    declare(good, refused="OX3020", name="twin")
    ox.run_recipes(None, good, argv=[])
    printed = capsys.readouterr().out
    assert "good: out" in printed
    assert "twin: WRONG" in printed


# ---- what cannot be used
def test_an_unknown_device(capsys: pytest.CaptureFixture[str]) -> None:
    declare(good)
    assert ox.run_recipes(None, good, argv=["--device", "simm"]) == 2
    assert capsys.readouterr().err.startswith("no device has this name [OX5012]")


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declare(good)
    assert ox.run_recipes(None, good, argv=["--input", str(tmp_path / "none.npy")]) == 2
    assert "[OX5020]" in capsys.readouterr().err


def test_an_array_that_does_not_fit_says_which_pipeline_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "x.npy"
    np.save(given, X.reshape(8, 8))
    declare(good)
    declare(off_by_one)
    assert ox.run_recipes(None, good, off_by_one, argv=["--input", str(given)]) == 1
    complaint = capsys.readouterr().err
    assert "[OX2012]" in complaint
    assert complaint.endswith("this was good; --pipeline NAME runs only one of good, off_by_one\n")


def test_output_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    declare(good)
    assert ox.run_recipes(None, good, argv=["--output", str(tmp_path / "none" / "y.npy")]) == 2


def test_more_arrays_than_the_recipe_takes(capsys: pytest.CaptureFixture[str]) -> None:
    declare(good)
    with pytest.raises(SystemExit) as ended:
        ox.run_recipes(None, good, argv=["--input", "a.npy", "--input", "b.npy"])
    assert ended.value.code == 2
    assert "good takes 0 to 1 arrays by --input (x), got 2" in capsys.readouterr().err


def test_a_program_that_is_refused() -> None:
    declare(off_by_one)
    assert ox.run_recipes(None, off_by_one, argv=[]) == 1


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(name: str | None) -> ox.Device:
        raise KeyboardInterrupt

    declare(good)
    monkeypatch.setattr(ox.Device, "open", staticmethod(stop))
    assert ox.run_recipes(None, good, argv=[]) == 130
    assert capsys.readouterr().err == "stopped\n"


def test_a_reader_that_has_seen_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.TextIOWrapper):
        @override
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    declare(good)
    with (tmp_path / "stdout").open("wb") as file, Closed(file) as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert ox.run_recipes(None, good, argv=[]) == 1
        os.write(closed.fileno(), b"flushed at the end")
    assert not (tmp_path / "stdout").read_bytes(), "what is still to come goes nowhere"


def test_help_shows_the_docstring(capsys: pytest.CaptureFixture[str]) -> None:
    declare(good)
    with pytest.raises(SystemExit) as ended:
        ox.run_recipes("What it is.\n\n    python it.py", good, argv=["--help"])
    assert ended.value.code == 0
    assert "What it is.\n\n    python it.py" in capsys.readouterr().out
