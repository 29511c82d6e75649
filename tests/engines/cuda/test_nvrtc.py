"""The NVRTC wrapper, with each release that is installed."""

from pathlib import Path

import pytest

from oxidecopy.engines.cuda import nvrtc

LIBRARIES = [path for path in map(nvrtc.find_library, nvrtc.FOLDERS) if path is not None]
needs_nvrtc = pytest.mark.skipif(not LIBRARIES, reason="NVRTC is not installed (extra `kernels`)")
EMPTY = 'extern "C" __global__ void empty(int* out) { *out = ANSWER; }'


@needs_nvrtc
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda p: p.name)
def test_a_kernel_becomes_a_cubin(library: Path) -> None:
    made = nvrtc.compile_cubin(EMPTY, name="empty.cu", arch="sm_90a", options=["-DANSWER=42"], library=library)
    assert made.cubin.startswith(b"\x7fELF")
    assert b"empty" in made.cubin
    assert nvrtc.version(library)[0] in nvrtc.FOLDERS


@needs_nvrtc
def test_the_log_of_ptxas_is_kept() -> None:
    made = nvrtc.compile_cubin(EMPTY, options=["-DANSWER=1", "--ptxas-options=-v"])
    assert "registers" in made.log


@needs_nvrtc
def test_headers_are_given_by_name() -> None:
    source = '#include "answer.h"\n' + EMPTY
    assert nvrtc.compile_cubin(source, headers={"answer.h": "#define ANSWER 1\n"}).cubin
    with pytest.raises(nvrtc.CompileError, match=r"answer\.h"):
        nvrtc.compile_cubin(source)


@needs_nvrtc
def test_errors_name_the_file_and_line() -> None:
    with pytest.raises(nvrtc.CompileError, match=r"mine\.cu\(2\)"):
        nvrtc.compile_cubin("\nwrong", name="mine.cu")


def test_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "FOLDERS", {})
    assert nvrtc.find_library() is None
    with pytest.raises(nvrtc.NoCompilerError, match="kernels"):
        nvrtc.compile_cubin(EMPTY)
