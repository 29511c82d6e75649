"""docs/rosetta.md: its programs are typed and run on the simulator, and the names it gives for ours exist."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import oxidecopy as ox
from oxidecopy import reduce
from oxidecopy._tools import docs

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "rosetta.md").read_text()
PROGRAMS = docs.programs(PAGE)
# What the page calls the handles whose methods it names.
HANDLES: dict[str, tuple[type, ...]] = {
    "desc": (ox.TmaDescriptor,),
    "conv": (ox.Im2colDescriptor,),
    "bar": (ox.ManagedBarrier,),
    "full": (ox.ManagedBarrier,),
    "leader": (ox.ClusterLeader,),
    "cta": (ox.Cta, ox.ClusterCta),
    "group": (ox.Group,),
    "tile": (ox.SharedArray,),
    "ring": (ox.Ring,),
    "slot": (ox.TensorMapSlot,),
    "draft": (ox.TensorMapDraft,),
    "released": (ox.ReleasedTensorMap,),
}


def ours() -> Iterator[str]:
    """The first column of every table."""
    for line in PAGE.splitlines():
        if line.startswith("| ") and not line.startswith("| here"):
            yield line.split(" | ")[0].removeprefix("| ")


def test_every_source_has_a_port() -> None:
    assert set(PROGRAMS) == {"ptx.py", "guide.py", "cutlass.py", "oxide.py", "cuda_core.py", "triton.py", "gluon.py"}


def test_the_programs_are_typed(tmp_path: Path) -> None:
    for name, body in PROGRAMS.items():
        (tmp_path / name).write_text(body)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'readme'}", *PROGRAMS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_run(name: str, tmp_path: Path) -> None:
    """On the simulator, wherever the tests run; the arrays at their ends are asserted by the programs themselves."""
    body = PROGRAMS[name]
    assert body.count("ox.Device.open()") == 1
    assert "\nassert " in body
    path = tmp_path / name
    path.write_text(body.replace("ox.Device.open()", 'ox.Device.open("sim")'))
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "port"})


def test_the_names_given_for_ours_exist() -> None:
    column = "\n".join(ours())
    public = re.findall(r"\box\.(\w+)(?:\.(\w+))?", column)
    methods = re.findall(r"`(\w+)\.(\w+)", column)
    assert len(public) > 8
    assert len(methods) > 25
    for name, inner in public:
        assert name == "reduce" or hasattr(ox, name), name
        if inner:
            assert hasattr(reduce if name == "reduce" else getattr(ox, name), inner), f"{name}.{inner}"
    for handle, method in methods:
        if handle != "ox":
            assert any(hasattr(kind, method) for kind in HANDLES[handle]), f"{handle}.{method}"


def test_the_tables_are_whole() -> None:
    """Each row has the columns of its heading."""
    columns = 0
    for line in PAGE.splitlines():
        cells = line.count(" | ") if line.startswith("| ") else -1
        if line.startswith("| here"):
            columns = cells
        elif cells >= 0:
            assert cells == columns, line
