"""`oxidecopy show program`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oxidecopy.errors import DeviceCodeError, Diagnostic
from oxidecopy.program.binary import from_bytes
from oxidecopy.program.text import from_text, to_text
from tests.helpers.command import TILES, TWIN, command, json_of


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(TWIN)
    return path


def test_the_text_parses_back(file: Path) -> None:
    result = command("show", "program", file)
    assert result.exit_code == 0
    assert from_text(result.stdout).name == "tiles"


RING = str(Path(__file__).parents[2] / "examples" / "10_ring.py")
LOADS = "    # thread 128 (producer): fused (produce)"
READS = "    # threads 1-127 (consumers): op by op: 127 threads run it together; a fused loop is one thread's"


def test_each_loop_says_how_a_gpu_runs_it() -> None:
    text = command("show", "program", f"{RING}:prefetch").stdout
    plain = json_of(command("show", "program", f"{RING}:prefetch", "--json"))["text"]
    assert {LOADS, READS} <= {"    " + line.strip() for line in text.splitlines()}
    assert LOADS not in plain
    assert from_text(text) == from_text(plain)


def test_a_program_without_device_code_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise DeviceCodeError(Diagnostic(rule="OX5506", what="too long"))

    monkeypatch.setattr("oxidecopy.cli.show_device.encode_program", refuse)
    text = command("show", "program", file).stdout
    assert text.endswith("# no device code: too long [OX5506]\n")
    assert from_text(text).name == "tiles"
    assert "[OX5506]" in command("show", "program", file, "--device").stderr


def test_device_code(file: Path) -> None:
    listing = command("show", "program", f"{RING}:prefetch", "--device").stdout
    assert "produce" in listing
    assert "ring0_full[0]" in listing
    data = json_of(command("show", "program", f"{RING}:prefetch", "--device", "--json"))
    assert data["device"] == listing
    assert {loop["fused"] for loop in data["loops"]} == {"produce", ""}
    command("show", "program", file, "--binary", "x.oxp")
    assert "[OX6003]" in command("show", "program", "x.oxp", "--device").stderr
    assert "fused" not in command("show", "program", "x.oxp").stdout


@pytest.mark.parametrize(("lesson", "family"), [("30_matmul", "product_m64n128"), ("10_ring", "")])
def test_a_program_that_one_kernel_runs_says_so(lesson: str, family: str) -> None:
    name = {"30_matmul": "linear", "10_ring": "prefetch"}[lesson]
    text = command("show", "program", f"{RING.replace('10_ring', lesson)}:{name}").stdout
    assert ("run as a whole" in text) == bool(family)
    if family:
        assert text.endswith(f"# run as a whole, by a kernel for such programs: family {family}\n")
        assert "op by op" not in text
    from_text(text)


def test_a_product_says_why_it_is_left_to_the_interpreter() -> None:
    experts = RING.replace("10_ring", "31_expert_products")
    line = "left to the interpreter: load_index beside loads and contractions (31_expert_products.py:36)\n"
    text = command("show", "program", experts).stdout
    assert text.endswith(f"# {line}")
    from_text(text)
    assert f"  {line}" in command("show", "program", experts, "--device").stdout


def test_a_refused_program_can_be_looked_at(file: Path) -> None:
    assert from_text(command("show", "program", f"{file}:twin").stdout).name == "twin"


def test_json_and_input(file: Path) -> None:
    np.save("x.npy", np.ones(64, np.float32))
    data = json_of(command("show", "program", file, "--input", "x.npy", "--json"))
    assert (data["pipeline"], data["recipe"]) == ("tiles", "whole")
    assert from_text(data["text"]).threads == 32


def test_a_binary_program_is_written_and_read(file: Path) -> None:
    text = command("show", "program", file).stdout
    result = command("show", "program", file, "--binary", "x.oxp")
    assert (result.exit_code, result.stdout) == (0, "")
    assert to_text(from_bytes(Path("x.oxp").read_bytes())) == text
    assert command("show", "program", "x.oxp").stdout == text
    data = json_of(command("show", "program", "x.oxp", "--json", "--binary", "y.oxp"))
    assert data == {"pipeline": "tiles", "recipe": None, "text": text, "binary": "y.oxp"}
    assert Path("y.oxp").read_bytes() == Path("x.oxp").read_bytes()


def test_binary_programs_that_cannot_be(file: Path) -> None:
    command("show", "program", file, "--binary", "x.oxp")
    damaged = Path("x.oxp").read_bytes()[:-1]
    Path("x.oxp").write_bytes(damaged)
    result = command("show", "program", "x.oxp")
    assert result.exit_code == 1
    assert "x.oxp, byte" in result.stderr
    assert "[OX1964]" in result.stderr
    assert "[OX6005]" in command("show", "program", "x.oxp", "--input", "x.npy").stderr
    assert command("show", "program", file, "--binary", "no/where.oxp").stderr.startswith("no/where.oxp cannot be written [OX5027]")


def test_what_the_recorder_refuses(file: Path) -> None:
    file.write_text(TILES.replace("    full.inval()\n", "    full.inval()\n    full.inval()\n"))
    result = command("show", "program", file)
    assert result.exit_code == 1
    assert "[OX1003]" in result.stderr


def test_usage() -> None:
    assert command("show", "program", "nowhere.py").exit_code == 2
    assert command("show").exit_code == 2
