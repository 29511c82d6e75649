"""The build of the interpreter's machine code: what is committed is what the committed sources make."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from oxidecopy._tools import build_cubins as tool
from oxidecopy._tools.build_cubins import (
    KERNELS,
    MANIFEST,
    TARGETS,
    Built,
    Resources,
    Target,
    different,
    files_of,
    main,
    resources,
    sources,
)
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi_header import abi_hash
from oxidecopy.engines.cuda.code.contract import GROUPS_MAX
from oxidecopy.engines.cuda.code.image import PARAMETER_BYTES
from oxidecopy.engines.cuda.elf import read_cubin
from oxidecopy.isa import limits

ENTRY_POINTS = set(abi.ENTRY_POINTS)
MANIFEST_DATA = json.loads((KERNELS / MANIFEST).read_text())
ROWS = {(row["target"], row["part"]): row for row in MANIFEST_DATA["files"]}
LOG = """\
ptxas info    : Compiling entry function 'one' for 'sm_90a'
ptxas info    : Function properties for one
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8 bytes cumulative stack size, 256 bytes smem
ptxas info    : Compiling entry function 'two' for 'sm_90a'
ptxas info    : Function properties for two
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
"""


# ---- what is committed
def test_the_manifest_speaks_of_the_files_that_are_there() -> None:
    assert list(ROWS) == [(t.arch, t.part) for t in TARGETS]
    for row in ROWS.values():
        assert hashlib.sha256((KERNELS / row["file"]).read_bytes()).hexdigest() == row["sha256"]
    assert {p.name for p in (KERNELS / "cubins").iterdir()} == {Path(row["file"]).name for row in ROWS.values()}


def test_the_manifest_speaks_of_the_sources_that_are_there() -> None:
    assert MANIFEST_DATA["abi"] == abi_hash()
    assert MANIFEST_DATA["sources"] == {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sources().items()}


@pytest.mark.parametrize("target", [t for t in TARGETS if t.arch.startswith("sm_")], ids=lambda t: f"{t.arch} {t.part}")
def test_cubins_hold_every_entry_point_with_the_parameter_it_is_given(target: Target) -> None:
    kernels = read_cubin((KERNELS / target.file).read_bytes()).kernels
    rows = ROWS[target.arch, target.part]["kernels"]
    assert set(kernels) == {name for name in ENTRY_POINTS if abi.part_of(name) == target.part} == set(rows)
    for name, kernel in kernels.items():
        (parameter,) = kernel.parameters
        assert parameter.size == PARAMETER_BYTES[name.rsplit("_", 1)[1]]
        row = rows[name]
        assert kernel.registers == row["registers"]
        assert row["shared"] == kernel.shared_bytes == 0  # all of it is the user's, from an aligned start
        threads, local, stores, loads = bounds(target, name)
        assert row["registers"] * threads <= 1 << 16
        assert row["local"] <= local
        assert row["spill_stores"] <= stores
        assert row["spill_loads"] <= loads


# Threads of a CTA that must find room, bytes of stack, and bytes that spills store and load. By part: where the work is long, what is kept
# aside is a loop's plan or what an epilogue needs after its products. A kernel that grows beyond a bound is measured before the bound is.
PART_BOUNDS = {
    abi.COMPUTE_FAMILY: (limits.WARP * abi.COMPUTE_WARPS, 256, 896, 1216),
    abi.APPLY_FAMILY: (limits.WARP * abi.COMPUTE_WARPS, 256, 576, 960),
    abi.RESHAPE_FAMILY: (limits.WARP * abi.RESHAPE_WARPS, 192, 640, 768),
    abi.MMA_FAMILY: (limits.WARP * 4 * (GROUPS_MAX + 1), 256, 1536, 3584),  # warpgroups that contract, and one for all others
    abi.PRODUCT_FAMILY: (limits.WARP * 4 * (GROUPS_MAX + 1), 64, 192, 128),
    abi.TIMED_FAMILY: (1024, 128, 512, 768),  # stamps push other values out of registers, in a kernel that nobody's results wait for
}
# What was measured: beside three stages, a spilled register of a map's loop takes 2.5 KB of a multiprocessor's 28 (docs/performance.md).
MEASURED_BOUNDS = {
    ("sm_90a", abi.COMPUTE_FAMILY): (limits.WARP * abi.COMPUTE_WARPS, 176, 128, 128),
    ("sm_90a", abi.APPLY_FAMILY): (limits.WARP * abi.COMPUTE_WARPS, 128, 0, 0),  # two vectors of an expression, and nothing else
}


def bounds(target: Target, kernel: str) -> tuple[int, int, int, int]:
    """What this kernel may take: threads that its registers must leave room for, stack, spill stores and spill loads (bytes)."""
    if target.part:
        return MEASURED_BOUNDS.get((target.arch, target.part)) or PART_BOUNDS[target.part]
    if kernel in (f"{abi.KERNEL_PREFIX}{family}_global" for family in (abi.WIDE_FAMILY, abi.MANY_FAMILY)):
        return 1024, 704, 512, 704  # of programs that are rare, and slow whatever their registers
    if target.arch == "sm_120f":
        return 1024, 64, 160, 608
    rare = kernel.startswith((f"{abi.KERNEL_PREFIX}map", f"{abi.KERNEL_PREFIX}{abi.FULL_FAMILY}"))
    return (1024, 32, 96, 448) if rare else (1024, 0, 0, 0)


def test_copies_run_with_few_registers() -> None:
    for form in ("small", "large"):
        assert ROWS["sm_90a", ""]["kernels"][f"{abi.KERNEL_PREFIX}move_{form}"]["registers"] <= 56
        assert ROWS["sm_90a", ""]["kernels"][f"{abi.KERNEL_PREFIX}once_{form}"]["registers"] <= 32


def test_unaligned_barriers_have_constant_numbers() -> None:
    """Those in registers are aligned ones for synccheck: the assembler's list of the others names another instruction."""
    assert re.findall(r'"barrier\.sync %0, %1;" ::"(\w)"', sources()["ptx.cuh"]) == ["n"]


def test_nothing_of_the_machine_that_built_it_is_in_the_code() -> None:
    for row in ROWS.values():
        data = (KERNELS / row["file"]).read_bytes()
        assert b"/home" not in data
        assert b"/tmp" not in data
        assert str(KERNELS.parents[1]).encode() not in data


# ---- the tool
def test_resources_are_read_from_the_log() -> None:
    assert resources(LOG) == {
        "one": Resources(registers=40, shared=256, local=8, spill_stores=4, spill_loads=12),
        "two": Resources(registers=24, shared=0, local=0, spill_stores=0, spill_loads=0),
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels of its own, small enough to be compiled twice."""
    (tmp_path / "interpreter.cu").write_text('#include "twice.cuh"\nextern "C" __global__ void one(int* p) { *p = twice(*p); }\n')
    (tmp_path / "twice.cuh").write_text("static __device__ int twice(int x) { return 2 * x; }\n")
    monkeypatch.setattr(tool, "TARGETS", (Target("sm_90a", 12, "525.60.13"), Target("compute_90", 12, "575.51.03")))
    return tmp_path


def test_what_was_built_is_what_is_built_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"], folder) == 1
    assert "manifest.json is not what is built" in capsys.readouterr().err
    assert main([], folder) == 0
    assert main(["--check"], folder) == 0
    assert "1 arch" not in capsys.readouterr().err
    (folder / "twice.cuh").write_text("static __device__ int twice(int x) { return 3 * x; }\n")
    assert main(["--check", "--arch", "sm_90a"], folder) == 1
    assert "sm_90a.cubin is not what is built" in capsys.readouterr().err


def test_code_does_not_depend_on_the_folder(folder: Path, tmp_path: Path) -> None:
    target = Target("sm_90a", 12, "525.60.13")
    other = tmp_path / "elsewhere"
    other.mkdir()
    for name, text in sources(folder).items():
        (other / name).write_text(text)
    assert tool.build(target, sources(folder)) == tool.build(target, sources(other))


def test_a_source_that_does_not_compile_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "twice.cuh").write_text("nonsense\n")
    assert main([], folder) == 1
    assert "twice.cuh" in capsys.readouterr().err
    assert not (folder / MANIFEST).exists()


def test_another_compiler_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "version", lambda _name: "12.4.1")
    with pytest.raises(tool.WrongCompilerError, match=r"12\.9\.86 is needed, 12\.4\.1 is installed"):
        tool.build(Target("sm_90a", 12, "525.60.13"), sources(folder))


def test_stale_files_are_found(tmp_path: Path) -> None:
    built = Built(target=Target("sm_90a", 12, "525"), code=b"code", kernels={})
    files = files_of([built], {"interpreter.cu": ""})
    assert set(different(files, tmp_path)) == {MANIFEST, "cubins/sm_90a.cubin"}
    (tmp_path / "cubins").mkdir()
    (tmp_path / "cubins" / "sm_90a.cubin").write_bytes(b"code")
    assert different(files, tmp_path) == [MANIFEST]
