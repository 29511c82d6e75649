"""The launch through the driver API that stands below each kernel."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import oxidecopy as ox
from oxidecopy.conformance.lessons import cases
from oxidecopy.engines.cuda.emit import Emitted, emitted

# Just enough of cuda.h for the snippet: names and shapes as the driver API has them.
CUDA_H = """
typedef int CUresult; typedef struct F* CUfunction; typedef struct S* CUstream; typedef unsigned long long CUdeviceptr;
struct CUtensorMap { alignas(64) unsigned long long opaque[16]; };
enum { CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4 };
enum { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14 };
struct CUlaunchAttribute { int id; union { struct { unsigned x, y, z; } clusterDim; } value; };
struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream; CUlaunchAttribute* attrs; unsigned numAttrs;
};
CUresult cuFuncSetAttribute(CUfunction, int, int);
CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void**, void**);
"""
TYPES = (
    "using i64 = long long; using u8 = unsigned char; using u16 = unsigned short; using u32 = unsigned; using u64 = unsigned long long;\n"
)


def lessons() -> list[Emitted]:
    dev = ox.Device.open("sim")
    return [emitted(case.make(dev).launch.verify()) for case in cases() if case.emitted]


def host_part(made: Emitted) -> str:
    return made.source[made.source.index("#ifdef OXIDECOPY_HOST") :]


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_every_lessons_launch_compiles(tmp_path: Path) -> None:
    (tmp_path / "cuda.h").write_text("#pragma once\n" + CUDA_H)
    parts = "\n".join(f"namespace n{i} {{\n{re.sub('#include <cuda.h>', '', host_part(made))}\n}}" for i, made in enumerate(lessons()))
    (tmp_path / "host.cpp").write_text(f"#include <cuda.h>\n{TYPES}{parts}")
    command = [
        "g++",
        "-std=c++17",
        "-Wall",
        "-Werror",
        "-fsyntax-only",
        "-DOXIDECOPY_HOST",
        "-I",
        str(tmp_path),
        str(tmp_path / "host.cpp"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_asks_for_what_the_kernel_needs() -> None:
    for made in lessons():
        text = host_part(made)
        assert f"config.sharedMemBytes = {made.shared_bytes};" in text
        assert f"config.blockDimX = {made.threads}," in text
        assert ("CLUSTER_DIMENSION" in text) == (made.cluster != (1, 1, 1))
        assert ("MAX_DYNAMIC_SHARED" in text) == (made.shared_bytes > 48 * 1024)
        arguments = re.search(r"arguments\[\] = \{(.*)\};", text)
        assert (arguments[1].count("&") if arguments else 0) == len(made.parameters)
