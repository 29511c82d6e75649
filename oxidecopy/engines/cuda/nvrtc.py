"""CUDA C++ to cubin by NVRTC from the package index: no toolkit, no GPU.

The wheels `nvidia-cuda-nvrtc-cu12` and `nvidia-cuda-nvrtc` (the extra `kernels`) may both be installed. Sources include nothing but what
NVRTC has built in and the headers given with them.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, final

# Where each major release's wheel puts the library, below `site-packages/nvidia`.
FOLDERS: Final = {12: "cuda_nvrtc/lib", 13: "cu13/lib"}


class CompileError(RuntimeError):
    """NVRTC refused the source; the message is its log."""


class NoCompilerError(RuntimeError):
    """No NVRTC is installed."""


@final
@dataclass(frozen=True, slots=True)
class Compiled:
    """A cubin (PTX for a virtual architecture) with what the compiler (and ptxas, where asked for `--ptxas-options=-v`) said."""

    cubin: bytes = field(repr=False)
    log: str


def find_library(major: int | None = None) -> Path | None:
    """The installed NVRTC of this major release, or the oldest one; None without any."""
    spec = importlib.util.find_spec("nvidia")
    places = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    for release, folder in FOLDERS.items():
        found = [path for place in places for path in sorted((place / folder).glob("libnvrtc.so.*"))]
        if found and major in (None, release):
            return found[0]
    return None


def compile_cubin(
    source: str,
    *,
    name: str = "source.cu",
    arch: str = "sm_90a",
    options: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    library: Path | None = None,
) -> Compiled:
    """Compiles `source` for the real architecture `arch`.

    Args:
        source: one translation unit.
        name: its name in messages and line information.
        arch: such as ``sm_90a``; for a virtual one, such as ``compute_90``, the result is PTX.
        options: further ones, such as ``-DNAME`` or ``--std=c++17``.
        headers: what it includes, by the name in the ``#include``.
        library: the ``libnvrtc.so`` to use; by default the oldest installed.

    Raises:
        CompileError: with the log.
        NoCompilerError: no library is installed.
    """
    nvrtc = _library(str(library or _required()))
    given = headers or {}
    names, texts = (_strings([item[i] for item in given.items()]) for i in (0, 1))
    program = ctypes.c_void_p()
    nvrtc("CreateProgram", ctypes.byref(program), source.encode(), name.encode(), len(given), texts, names)
    try:
        flags = _strings([f"--gpu-architecture={arch}", *options])
        failed = nvrtc.status("CompileProgram", program, len(flags), flags)
        log = _blob(nvrtc, "ProgramLog", program).rstrip(b"\0").decode(errors="replace").strip()
        if failed:
            raise CompileError(log or nvrtc.words(failed))
        made = _blob(nvrtc, "PTX", program).rstrip(b"\0") if arch.startswith("compute_") else _blob(nvrtc, "CUBIN", program)
        return Compiled(made, log)
    finally:
        nvrtc("DestroyProgram", ctypes.byref(program))


def version(library: Path | None = None) -> tuple[int, int]:
    """Major and minor release of the library."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library(str(library or _required()))("Version", ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def _required() -> Path:
    found = find_library()
    if found is None:
        raise NoCompilerError("NVRTC is not installed: pip install 'oxidecopy[kernels]'")
    return found


@final
class _Nvrtc:
    """The library's functions by name; a call raises what the library says."""

    __slots__ = ("_dll",)

    def __init__(self, path: str) -> None:
        for builtins in Path(path).parent.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(builtins))  # found by name once it is loaded; the 13.0 wheel does not look beside itself
        self._dll = ctypes.CDLL(path)
        self._dll.nvrtcGetErrorString.restype = ctypes.c_char_p

    def status(self, function: str, *args: object) -> int:
        call: Callable[..., int] = getattr(self._dll, f"nvrtc{function}")
        return call(*args)

    def __call__(self, function: str, *args: object) -> None:
        failed = self.status(function, *args)
        if failed:
            raise CompileError(f"nvrtc{function}: {self.words(failed)}")

    def words(self, status: int) -> str:
        text: bytes = self._dll.nvrtcGetErrorString(status)
        return text.decode()


@cache
def _library(path: str) -> _Nvrtc:
    return _Nvrtc(path)


def _strings(values: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(values))(*(v.encode() for v in values))


def _blob(nvrtc: _Nvrtc, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    nvrtc(f"Get{what}Size", program, ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    nvrtc(f"Get{what}", program, data)
    return data.raw
