"""`oxidecopy run`: results, exit codes, and bad input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.helpers.command import TILES, TWIN, command, json_of, line_of


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(TILES)
    return path


def test_a_launch_runs_on_its_own_data(file: Path) -> None:
    result = command("run", file)
    assert result.exit_code == 0
    assert "tiles:whole  grid (4, 1, 1) on sim" in result.stdout
    assert "out: float32 (256,)  OK" in result.stdout
    assert result.stderr == ""


def test_input_and_output(file: Path) -> None:
    x = np.linspace(-1, 1, 100, dtype=np.float32)
    np.save("x.npy", x)
    result = command("run", file, "--input", "x.npy", "--output", "y.npy")
    assert result.exit_code == 0
    assert np.load("y.npy").tobytes() == x.tobytes()
    assert "out written to y.npy" in result.stdout


def test_json(file: Path) -> None:
    data = json_of(command("run", file, "--json", "--device", "sim-fast"))
    assert data["ok"] is True
    assert (data["pipeline"], data["recipe"], data["device"], data["grid"]) == ("tiles", "whole", "sim-fast", [4, 1, 1])
    assert data["outputs"] == [{"name": "out", "dtype": "float32", "shape": [256], "checked": True}]


def test_a_wrong_result_is_shown_and_still_written(file: Path) -> None:
    file.write_text(TILES.replace('{"out": flat})', '{"out": np.where(flat == 70, 0, flat).astype(np.float32)})'))
    result = command("run", file, "--output", "y.npy")
    assert result.exit_code == 1
    assert "MISMATCH" in result.stdout
    assert "out differs in 1 of 256 elements, first at [70]: got 70.0, expected 0.0 [OX6007]" in result.stderr
    assert "within=" in result.stderr
    assert Path("y.npy").exists()
    data = json_of(command("run", file, "--json"))
    assert data["ok"] is False
    assert data["differences"][0]["index"] == [70]


def test_a_result_of_another_type_is_no_matter_of_rounding(file: Path) -> None:
    file.write_text(TILES.replace('{"out": flat})', '{"out": flat.astype(np.float64)})'))
    result = command("run", file)
    assert "out is float32 (256,), expected float64 (256,) [OX6007]" in result.stderr
    assert "within=" not in result.stderr


def test_a_refused_program_ends_with_one_and_names_the_line(file: Path) -> None:
    source = TILES.replace("tile.nbytes", "tile.nbytes - 16")
    file.write_text(source)
    result = command("run", file, "--output", "y.npy")
    assert result.exit_code == 1
    assert f"mine.py:{line_of(source, 'src.g2s')}: " in result.stderr
    assert "[OX3021]" in result.stderr
    assert not Path("y.npy").exists()
    data = json_of(command("run", file, "--json"))
    assert (data["ok"], data["error"], data["diagnostics"][0]["rule"]) == (False, "VerificationError", "OX3021")


def test_a_twin_is_left_out_unless_named(file: Path) -> None:
    file.write_text(TWIN)
    assert "tiles:whole" in command("run", file).stdout
    refused = command("run", f"{file}:twin")
    assert refused.exit_code == 1
    assert "[OX3021]" in refused.stderr


def test_a_twin_that_runs_is_wrong(file: Path) -> None:
    file.write_text(TWIN.replace("tile.nbytes - 16", "tile.nbytes"))
    result = command("run", f"{file}:twin")
    assert result.exit_code == 1
    assert "[OX6010]" in result.stderr


@pytest.mark.parametrize("name", ["mine.py:tiles", "mine.py:whole"])
def test_a_launch_is_named_by_pipeline_or_recipe(file: Path, name: str) -> None:
    assert command("run", name).exit_code == 0


# ---- usage: exit code 2, the rule, and what it says
def refused(rule: str, *arguments: str | Path) -> str:
    result = command("run", *arguments)
    assert result.exit_code == 2
    assert f"[{rule}]" in result.stderr
    assert f"oxidecopy explain {rule} says why" in result.stderr
    assert len(result.stderr.splitlines()) < 25
    assert "Traceback" not in result.stderr
    assert "typer" not in result.stderr, "a line of the CLI library is no place in the user's source"
    return result.stderr


def test_no_such_file() -> None:
    assert "cannot read" in refused("OX6001", "no_such.py")


def test_a_folder_is_no_file(file: Path) -> None:
    refused("OX6001", file.parent)


def test_a_name_of_nothing(file: Path) -> None:
    assert "fix: mine.py:tiles" in refused("OX6004", f"{file}:tile")


def test_several_launches_need_a_name(file: Path) -> None:
    file.write_text(TWIN.replace('(refused="OX3021")', ""))
    assert "got: tiles, twin" in refused("OX6004", file)


def test_syntax_error_with_its_line(file: Path) -> None:
    file.write_text(TILES + "def broken(:\n")
    assert f"mine.py:{len(TILES.splitlines()) + 1}: mine.py is not valid Python" in refused("OX6002", file)


def test_null_bytes(file: Path) -> None:
    file.write_bytes(b"x = 1\0\n")
    refused("OX6002", file)


@pytest.mark.parametrize(
    ("line", "got"),
    [("import no_such_package", "ModuleNotFoundError"), ("1 / 0", "ZeroDivisionError"), ("raise SystemExit(3)", "SystemExit: 3")],
)
def test_a_file_that_fails_with_its_line(file: Path, line: str, got: str) -> None:
    file.write_text(TILES + line + "\n")
    words = refused("OX6002", file)
    assert f"mine.py:{len(TILES.splitlines()) + 1}: " in words
    assert got in words


def test_a_file_that_fails_inside_the_standard_library_is_blamed_on_its_own_line(file: Path) -> None:
    file.write_text(TILES + "import json\njson.loads('{')\n")
    assert f"mine.py:{len(TILES.splitlines()) + 2}: " in refused("OX6002", file)


def test_a_file_without_a_pipeline(file: Path) -> None:
    file.write_text("x = 1\n")
    assert "has no pipeline" in refused("OX6003", file)


def test_a_pipeline_without_a_recipe(file: Path) -> None:
    file.write_text(TILES.replace("@tiles.recipe", ""))
    assert "@tiles.recipe" in refused("OX6003", file)
    assert "has no recipe" in refused_with_another(file)


def refused_with_another(file: Path) -> str:
    file.write_text(TWIN.replace("@tiles.recipe", ""))
    return refused("OX6004", f"{file}:tiles")


def test_too_many_inputs(file: Path) -> None:
    np.save("x.npy", np.ones(64, np.float32))
    assert "required: 0 to 1: x" in refused("OX6005", file, "-i", "x.npy", "-i", "x.npy")


def test_too_few_inputs(file: Path) -> None:
    file.write_text(TILES.replace("np.float32] | None = None", "np.float32]"))
    assert "one --input FILE.npy for each" in refused("OX6005", file)


def test_a_recipe_that_fails_with_its_line(file: Path) -> None:
    source = TILES.replace("x.reshape(-1)", "x.reshape(7, 3)")
    file.write_text(source)
    np.save("x.npy", np.ones(64, np.float32))
    words = refused("OX6006", file, "-i", "x.npy")
    assert f"mine.py:{line_of(source, 'x.reshape')}: " in words
    assert "ValueError" in words


def test_a_recipe_that_returns_something_else(file: Path) -> None:
    file.write_text(TILES.replace("return ox.Recipe", "return dict"))
    assert "got: dict" in refused("OX6006", file)


def test_a_recipe_that_expects_what_is_no_output(file: Path) -> None:
    file.write_text(TILES.replace('expected={"out"', 'expected={"result"'))
    assert "got: result" in refused("OX6006", file)


def test_output_into_no_folder(file: Path) -> None:
    refused("OX6008", file, "-o", "nowhere/y.npy")


def test_output_over_a_folder(file: Path) -> None:
    refused("OX5027", file, "-o", file.parent)


def test_output_of_a_recipe_without_any(file: Path) -> None:
    file.write_text(TILES.replace('outputs={"out": out}, expected={"out": flat}', "outputs={}"))
    refused("OX6006", file, "-o", "y.npy")
    assert not Path("y.npy").exists()


def test_unknown_device(file: Path) -> None:
    assert "sim" in refused("OX5012", file, "--device", "gpu")


def test_missing_input(file: Path) -> None:
    refused("OX5020", file, "-i", "x.npy")


def test_all_bad_inputs_are_told_at_once(file: Path) -> None:
    Path("x.npy").write_bytes(b"not an array")
    words = refused("OX5023", file, "-i", "x.npy", "-i", "y.npy")
    assert "[OX5020]" in words


def test_corrupt_input(file: Path) -> None:
    np.save("x.npy", np.ones(64, np.float32))
    Path("x.npy").write_bytes(Path("x.npy").read_bytes()[:-8])
    refused("OX5025", file, "-i", "x.npy")


def test_empty_array(file: Path) -> None:
    np.save("x.npy", np.ones((0, 4), np.float32))
    refused("OX5006", file, "-i", "x.npy")


def test_input_of_a_type_that_copies_do_not_have(file: Path) -> None:
    np.save("x.npy", np.ones(64, np.complex64))
    refused("OX5002", file, "-i", "x.npy")


def test_input_of_another_type_than_the_pipeline_takes(file: Path) -> None:
    np.save("x.npy", np.ones(64, np.float64))
    refused("OX1053", file, "-i", "x.npy")


def test_a_grid_of_zero(file: Path) -> None:
    source = TILES.replace("tiles[-(-flat.size // 64)]", "tiles[0]")
    file.write_text(source)
    assert f"mine.py:{line_of(source, 'tiles[0]')}: " in refused("OX1034", file)


@pytest.mark.parametrize(
    ("part", "instead", "words"),
    [
        ("launch=launch", "launch=lambda: None", "has no launch"),
        ('outputs={"out": out}', 'outputs={"out": flat}', "got: out: ndarray"),
        ('outputs={"out": out}', "outputs=[out]", "got: list"),
        ('expected={"out": flat}', "expected=flat", "got: ndarray"),
        ("    src, out =", "    raise SystemExit(0)\n    src, out =", "SystemExit: 0"),
    ],
)
def test_a_recipe_that_makes_no_sense(file: Path, part: str, instead: str, words: str) -> None:
    file.write_text(TILES.replace(part, instead))
    assert words in refused("OX6006", file)


# ---- odd but right
def test_what_the_file_prints_stays_out_of_the_document(file: Path) -> None:
    file.write_text("print('loading')\n" + TILES)
    assert "loading" in command("run", file).stdout
    result = command("run", file, "--json")
    assert json_of(result)["ok"] is True
    assert result.stderr == "loading\n"


def test_bf16_from_a_file_is_compared_by_its_bytes(file: Path) -> None:
    file.write_text(TILES.replace("ox.f32", "ox.bf16").replace("dev.array(flat)", "dev.array(flat, ox.bf16)"))
    np.save("x.npy", np.ones(64, ml_dtypes.bfloat16))
    result = command("run", file, "-i", "x.npy")
    assert "out: bfloat16 (64,)  OK" in result.stdout


def test_an_output_nothing_is_expected_of_is_said_to_be_unchecked(file: Path) -> None:
    file.write_text(TILES.replace(', expected={"out": flat}', ""))
    result = command("run", file)
    assert result.exit_code == 0
    assert "not checked" in result.stdout


def test_siblings_of_the_file_can_be_imported_but_replace_nothing_of_pythons(file: Path) -> None:
    (file.parent / "my_sibling_of_mine.py").write_text("SIZE = 64\n")
    (file.parent / "colorsys.py").write_text("raise RuntimeError\n")
    file.write_text("import colorsys\nfrom my_sibling_of_mine import SIZE\n" + TILES)
    assert command("run", file).exit_code == 0


def test_the_users_folder_stays_clean(file: Path) -> None:
    assert command("run", file).exit_code == 0
    assert [p.name for p in file.parent.iterdir()] == ["mine.py"]


def test_dataclasses_and_annotations_of_the_file_resolve(file: Path) -> None:
    extra = "\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Size:\n    n: int = 64\n"
    file.write_text("from __future__ import annotations\n" + TILES + extra)
    assert command("run", file).exit_code == 0


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_an_interrupt_leaves_nothing_half_written(file: Path) -> None:
    file.write_text(TILES.replace("    src, out", "    print('ready', flush=True)\n    import time\n    time.sleep(60)\n    src, out"))
    # A shell that runs the tests in the background has them, and all that they start, ignore SIGINT.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = [sys.executable, "-c", f"{heed}; from oxidecopy.cli import main; main()", "run", str(file), "--output", "y.npy"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(root)}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in words
    assert [p.name for p in file.parent.iterdir()] == ["mine.py"]
