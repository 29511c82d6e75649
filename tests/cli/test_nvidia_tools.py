"""NVIDIA's programs, played by scripts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from oxidecopy.cli import nvidia_tools

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")

SMI = """#!/bin/sh
case "$1" in
  --query-gpu=driver_version) echo "580.82.07"; echo "580.82.07" ;;
  --query-gpu=pci.bus_id,memory.used) echo "00000000:1B:00.0, 1536"; echo "00000000:2C:00.0, [N/A]" ;;
  --query-gpu=pci.bus_id,mig.mode.current) echo "00000000:1B:00.0, Enabled" ;;
  --query-compute-apps=gpu_bus_id,pid) echo "00000000:1B:00.0, 17"; echo "00000000:1B:00.0, $PPID"; echo "broken line" ;;
esac
"""
NVCC = "#!/bin/sh\necho 'Cuda compilation tools, release 12.9, V12.9.86'\n"


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)


def test_nothing_is_there() -> None:
    assert (nvidia_tools.driver_version(), nvidia_tools.used_bytes(), nvidia_tools.processes(), nvidia_tools.mig_modes()) == (
        "",
        {},
        {},
        {},
    )
    assert nvidia_tools.toolkit() == ("", "")


def test_what_nvidia_smi_says(tmp_path: Path) -> None:
    program(tmp_path, "nvidia-smi", SMI)
    assert nvidia_tools.driver_version() == "580.82.07"
    assert nvidia_tools.used_bytes() == {"0000:1b:00": 1536 << 20}
    assert nvidia_tools.mig_modes() == {"0000:1b:00": "Enabled"}
    assert nvidia_tools.processes() == {"0000:1b:00": [17]}, f"and not {os.getpid()}, which is this one"


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 9\n", "#!/bin/sh\nprintf '\\377\\n'\n", "no program\0", "#!/no/such/shell\n"])
def test_programs_that_fail_say_nothing(tmp_path: Path, text: str) -> None:
    program(tmp_path, "nvidia-smi", text)
    program(tmp_path, "nvcc", text)
    assert (nvidia_tools.driver_version(), nvidia_tools.toolkit()) == ("", ("", ""))


def test_a_program_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "nvidia-smi", "#!/bin/sh\nwhile :; do :; done\n")
    monkeypatch.setattr(nvidia_tools, "_TIMEOUT_SECONDS", 0.2)
    assert nvidia_tools.driver_version() == ""


@pytest.mark.parametrize("place", ["path", "CUDA_HOME", "CUDA_PATH"])
def test_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "cuda").mkdir()
    folder = tmp_path if place == "path" else tmp_path / "cuda" / "bin"
    found = program(folder, "nvcc", NVCC)
    if place != "path":
        monkeypatch.setenv(place, str(tmp_path / "cuda"))
    assert nvidia_tools.toolkit() == ("12.9", str(found))


@pytest.mark.parametrize(("text", "bus"), [("00000000:1B:00.0", "0000:1b:00"), ("0001:AF:10.0", "0001:af:10")])
def test_bus_ids(text: str, bus: str) -> None:
    assert nvidia_tools.bus_id(text) == bus
