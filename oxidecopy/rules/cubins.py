"""Rules of own kernels: the cubin, its declaration, and its launches."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import Twins, scripts

_FORM: Final = "the ELF-64 format, and NVIDIA's sections as ptxas of CUDA 12.9 and 13.0 writes them"
_TABLE: Final = "the parameter table of the cubin (EIATTR_KPARAM_INFO)"
_LAUNCH: Final = "CUDA driver API, cuLaunchKernelEx; CUDA Programming Guide, technical specifications"
_MODEL: Final = "how own kernels are declared: `@cubin.kernel(name, threads=)` over a typed signature"
# The kernel of lesson 16: scale(map src, float* out, int rows, int cols, float alpha), at most 128 threads.
_CUBIN: Final = (
    "from oxidecopy.typed.sites import LESSON_PLACES\n\n"
    "folder = next(place for place in LESSON_PLACES if place.is_dir()) / 'kernels'\n"
    "cubin = ox.Cubin(folder / 'scale.sm_90a.cubin')\n\n"
)
_OUT: Final = "out: ox.GlobalArray[ox.f32, ox.D2]"
_SRC: Final = f"src: ox.TmaDescriptor[ox.f32, ox.D2], {_OUT}"
_DEF: Final = f"def scale({_SRC}, rows: ox.Idx, cols: ox.Idx, alpha: ox.Scalar[ox.f32]) -> None: ...\n"
_DECLARED: Final = f"{_CUBIN}@cubin.kernel('scale', threads=128, shared_bytes=16_392)\n{_DEF}"
_ARGUMENTS: Final = "out = dev.empty((64, 64), ox.f32)\nsrc = ox.TmaDescriptor.tiled(out, box=(64, 64))\n"


def _rule(number: int, error: str, title: str, why: str, source: str, shown: Twins | None = None) -> Rule:
    wrong, right = (shown.wrong, shown.right) if shown else ("", "")
    return Rule(id=f"OX54{number:02}", title=title, error=error, why=why, source=source, wrong=wrong, right=right)


def _declaration(decorator: str, body: str = _DEF) -> str:
    return f"{_CUBIN}@cubin.kernel({decorator})\n{body}"


def _signature(parameters: str, body: str = "...") -> str:
    return _declaration("'scale', threads=128", f"def scale({parameters}) -> None: {body}\n")


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        1,
        "InputError",
        "a cubin is a file that can be read, or bytes",
        "There is nothing to launch otherwise.",
        _MODEL,
        scripts(f"{_CUBIN}ox.Cubin(folder / <gap>)\n", "'scale.sm_99.cubin'", "'scale.sm_90a.cubin'"),
    ),
    _rule(
        2,
        "CubinError",
        "a cubin is a linked ELF file of machine code for one architecture",
        "A fatbin holds several, and a host object holds fatbins: which part would be launched is not for a library to guess. PTX and "
        "LTO-IR are still to be compiled, which needs a compiler at run time; a relocatable cubin lacks what it refers to.",
        _FORM,
        scripts(f"{_CUBIN}ox.Cubin(<gap>)\n", "(folder / 'scale.cu').read_bytes()", "(folder / 'scale.sm_90a.cubin').read_bytes()"),
    ),
    _rule(
        3,
        "CubinError",
        "a cubin is whole",
        "A file that was cut or changed on its way would be refused by the driver without a reason, or, worse, launched.",
        _FORM,
        scripts(f"{_CUBIN}data = (folder / 'scale.sm_90a.cubin').read_bytes()\nox.Cubin(<gap>)\n", "data[:3000]", "data"),
    ),
    _rule(
        4,
        "CubinError",
        "the cubin has the kernel",
        'A kernel goes by its symbol. C++ mangles the names of functions, and `extern "C"` keeps it from doing so.',
        _TABLE,
        scripts(_declaration("<gap>, threads=128"), "'scales'", "'scale'"),
    ),
    _rule(
        5,
        "CubinError",
        "a kernel is declared by a function of parameters that have a width, and no body",
        "The declaration says how to call what is in the cubin; nobody would run code in it. A plain int of Python has no width.",
        _MODEL,
        scripts(_signature(f"{_SRC}, rows: <gap>, cols: ox.Idx, alpha: ox.Scalar[ox.f32]"), "int", "ox.Idx"),
    ),
    _rule(
        6,
        "CubinError",
        "a declaration has as many parameters as the kernel",
        "The kernel would read what nobody has written.",
        _TABLE,
        scripts(_signature(f"{_SRC}, <gap>alpha: ox.Scalar[ox.f32]"), "", "rows: ox.Idx, cols: ox.Idx, "),
    ),
    _rule(
        7,
        "CubinError",
        "each parameter has the size and the alignment that it has in the kernel",
        "The kernel would take bytes of one parameter for another's. A tensor map is 128 bytes, by value, at a multiple of 64: the "
        "hardware reads it among the parameters. An array is the 8 bytes of its address, an Idx 4 or 8 bytes, a scalar those of its type.",
        _TABLE,
        scripts(_signature(f"{_SRC}, rows: ox.Idx, cols: ox.Idx, alpha: ox.Scalar[<gap>]"), "ox.f64", "ox.f32"),
    ),
    _rule(
        8,
        "CubinError",
        "block, cluster and shared memory are what the kernel can be launched with",
        "A kernel is compiled for a bound on its threads, with registers for each of them, and perhaps for one block or cluster. The "
        "driver refuses everything else at the launch, with `invalid argument` or `too many resources requested` and no word of which.",
        _LAUNCH,
        scripts(_declaration("'scale', threads=<gap>"), "256", "128"),
    ),
    _rule(
        9,
        "DeviceError",
        "an own kernel runs on a GPU",
        "It is machine code. The simulator runs programs that were recorded, and knows what each operation does.",
        _MODEL,
        scripts(
            f"{_DECLARED}\n{_ARGUMENTS}if <gap>:\n    scale[1](src, out, 64, 64, 2.0)\n", "cubin.arch == 'sm_90a'", "cubin.runs_on(dev)"
        ),
    ),
    _rule(
        10,
        "DeviceError",
        "an own kernel is compiled for the GPU that it is launched on",
        "Machine code of sm_90a runs on compute capability 9.0 alone; without the letter it runs on later minors of the same major, too.",
        "CUDA C++ Programming Guide, binary compatibility",
    ),
    _rule(
        11,
        "ArgumentError",
        "the grid is a whole number of clusters",
        "The driver refuses the launch otherwise.",
        _LAUNCH,
        scripts(f"{_CUBIN}@cubin.kernel('scale', threads=128, cluster=(2, 1))\n{_DEF}\nscale[<gap>]\n", "3", "4"),
    ),
    _rule(
        12,
        "ArgumentError",
        "an index fits the integer that the kernel has for it",
        "Its upper half would be lost, and the kernel would read somewhere else.",
        _TABLE,
        scripts(
            f"{_DECLARED}\n{_ARGUMENTS}if <gap>:\n    scale[1](src, out, rows, 64, 2.0)\n",
            "rows := 1 << 40",
            "(rows := 64) and cubin.runs_on(dev)",
        ),
    ),
)
