"""Builds the interpreter's machine code: `oxidecopy/kernels/cubins/` and `manifest.json`, bit for bit the same on every machine.

The compilers are NVRTC wheels of one version each (the extra `kernels`), the sources include nothing from outside their folder, and no path
or time goes into the result. `--check` builds everything and compares it with what is committed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Final, final

from oxidecopy.engines.cuda import nvrtc
from oxidecopy.engines.cuda.abi_header import abi_hash

KERNELS: Final = Path(__file__).resolve().parents[1] / "kernels"
# Each target is built in parts: a file with kernels, its source, and the options for it. Records, and the instructions of a map's machine,
# are large switches, which jump tables make up to twice as fast. "apply" has the machine alone, with all of its cases; "product" neither.
SOURCES: Final = {
    "": "interpreter.cu",
    "compute": "compute.cu",
    "apply": "apply.cu",
    "reshape": "reshape.cu",
    "timed": "timed.cu",
    "mma": "mma.cu",
    "product": "product.cu",
}
ONLY: Final = {"mma": ("sm_90a",), "product": ("sm_90a",)}  # parts whose instructions other architectures do not have
MANIFEST: Final = "manifest.json"
OPTIONS: Final = ("--std=c++17", "--fmad=false", "--ptxas-options=-v")
_TABLE: Final = ("--jump-table-density=20",)  # percent of the numbers between a switch's least and greatest case
_DENSE: Final = ("--jump-table-density=100",)
MORE_OPTIONS: Final = {"": _TABLE, "compute": _TABLE, "apply": _DENSE, "reshape": _TABLE, "timed": _TABLE, "mma": _TABLE, "product": ()}
_WHEELS: Final = {12: ("nvidia-cuda-nvrtc-cu12", "12.9.86"), 13: ("nvidia-cuda-nvrtc", "13.0.88")}
_ENTRY: Final = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?Function properties for (?P=name)\s+ptxas\s+\.\s+"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads\s+"
    r".*?Used (?P<registers>\d+) registers(?P<more>[^\n]*)",
    re.DOTALL,
)


@final
@dataclass(frozen=True, slots=True)
class Target:
    """An architecture, the major release of the compiler for it, the oldest driver that loads the result, and a part of the kernels."""

    arch: str
    release: int
    min_driver: str
    part: str = ""

    @property
    def file(self) -> str:
        """Where the result lies in the kernels' folder."""
        name = f"{self.arch}_{self.part}" if self.part else self.arch
        return f"cubins/{name}.{'ptx' if self.arch.startswith('compute_') else 'cubin'}"


# Minor-version compatibility lets drivers from 525 on run cubins of any CUDA 12; family targets came with 12.9, sm_110 with 13.0.
_ARCHITECTURES: Final = (
    ("sm_90a", 12, "525.60.13"),
    ("sm_100f", 12, "575.51.03"),
    ("sm_110f", 13, "580.65.06"),
    ("sm_120f", 12, "575.51.03"),
    ("compute_90", 12, "575.51.03"),
)
TARGETS: Final = tuple(Target(*row, part) for row in _ARCHITECTURES for part in SOURCES if row[0] in ONLY.get(part, (row[0],)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What ptxas says of one kernel, in bytes but for `registers`. Local memory is its stack frame, spills are part of that."""

    registers: int
    shared: int
    local: int
    spill_stores: int
    spill_loads: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """One target's result."""

    target: Target
    code: bytes
    kernels: Mapping[str, Resources]


class WrongCompilerError(RuntimeError):
    """A compiler is missing, or not of the version that the committed files were built with."""


def sources(folder: Path = KERNELS) -> dict[str, str]:
    """The text of each source by name."""
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.suffix in {".cu", ".cuh", ".h"}}


def build(target: Target, texts: Mapping[str, str]) -> Built:
    """Compiles for one target.

    Raises:
        CompileError: with the compiler's log.
        WrongCompilerError: where the pinned wheel is not installed.
    """
    library = nvrtc.find_library(target.release)
    wheel, wanted = _WHEELS[target.release]
    found = _installed(wheel)
    if library is None or found != wanted:
        raise WrongCompilerError(f"{wheel} {wanted} is needed, {found or 'none'} is installed: pip install 'oxidecopy[kernels]'")
    source, options = SOURCES[target.part], (*OPTIONS, *MORE_OPTIONS[target.part])
    headers = {name: text for name, text in texts.items() if name not in SOURCES.values()}
    made = nvrtc.compile_cubin(texts[source], name=source, arch=target.arch, options=options, headers=headers, library=library)
    return Built(target=target, code=made.cubin, kernels=resources(made.log))


def _installed(wheel: str) -> str | None:
    try:
        return version(wheel)
    except PackageNotFoundError:
        return None


def resources(log: str) -> dict[str, Resources]:
    """What the log of `--ptxas-options=-v` says of each entry point."""
    found = {}
    for m in _ENTRY.finditer(log):
        shared = re.search(r"(\d+) bytes smem", m["more"])
        found[m["name"]] = Resources(
            registers=int(m["registers"]),
            shared=int(shared[1]) if shared else 0,
            local=int(m["stack"]),
            spill_stores=int(m["stores"]),
            spill_loads=int(m["loads"]),
        )
    return dict(sorted(found.items()))


def build_all(targets: Sequence[Target], texts: Mapping[str, str]) -> list[Built]:
    """All targets, in processes side by side."""
    workers = min(len(targets), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:  # a fork of a process with threads may hang
        return list(pool.map(build, targets, [dict(texts)] * len(targets)))


def files_of(built: Sequence[Built], texts: Mapping[str, str]) -> dict[str, bytes]:
    """The files to commit, by name below the kernels' folder: code, and the manifest of it."""
    rows = [
        {
            "file": b.target.file,
            "target": b.target.arch,
            "part": b.target.part,
            "sha256": hashlib.sha256(b.code).hexdigest(),
            "compiler": " ".join(_WHEELS[b.target.release]),
            "min_driver": b.target.min_driver,
            "kernels": {name: asdict(r) for name, r in b.kernels.items()},
        }
        for b in built
    ]
    manifest = {
        "abi": abi_hash(),
        "toolkit": ", ".join(" ".join(wheel) for wheel in _WHEELS.values()),
        "options": list(OPTIONS),
        "more_options": {part: list(options) for part, options in MORE_OPTIONS.items() if options},
        "programmatic": True,  # the kernels wait for the grid before them themselves
        "sources": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
        "files": rows,
    }
    return {MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()} | {b.target.file: b.code for b in built}


def table(built: Sequence[Built]) -> str:
    """Registers and local memory of each kernel."""
    lines = [
        f"{b.target.arch:<11}{name:<28}{r.registers:>4} registers{r.local:>5} bytes local" for b in built for name, r in b.kernels.items()
    ]
    return "\n".join(lines + [f"{b.target.file:<26}{len(b.code):>9,} bytes" for b in built])


def different(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Which of the files are not in the folder as they are here."""
    return [name for name, data in files.items() if not (folder / name).is_file() or (folder / name).read_bytes() != data]


def main(arguments: Sequence[str] | None = None, folder: Path = KERNELS) -> int:
    """Builds and writes, or with `--check` builds and compares: 1 when something committed is not what is built."""
    parser = argparse.ArgumentParser(prog="python -m oxidecopy._tools.build_cubins", description="Builds the interpreter's machine code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a committed file is not what is built")
    parser.add_argument(
        "--arch", action="append", choices=list(dict.fromkeys(t.arch for t in TARGETS)), help="build only this one, and write nothing else"
    )
    parser.add_argument("--part", action="append", choices=list(SOURCES), help="build only this part, and write nothing else")
    options = parser.parse_args(arguments)
    texts = sources(folder)
    chosen = [t for t in TARGETS if (not options.arch or t.arch in options.arch) and (not options.part or t.part in options.part)]
    try:
        built = build_all(chosen, texts)
    except (nvrtc.CompileError, nvrtc.NoCompilerError, WrongCompilerError) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(table(built))
    files = files_of(built, texts)
    if options.arch or options.part:
        del files[MANIFEST]  # it speaks of all of them
    stale = different(files, folder)
    if options.check:
        for name in stale:
            print(f"kernels/{name} is not what is built here: python -m oxidecopy._tools.build_cubins", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(files[name])
        print(f"wrote {folder / name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
