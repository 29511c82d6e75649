"""Cubins as users hold them: what they tell, how kernels are declared, and what of it is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.nvrtc import compile_cubin, find_library
from oxidecopy.errors import CubinError, InputError, OxidecopyError, RecordError
from tests.helpers.cubin_files import LESSON, SM90, SM100, noting_device

Map = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]
CUBIN = ox.Cubin(SM90)


# ---- what it tells
def test_a_path_and_bytes_are_the_same() -> None:
    by_path, by_text, by_bytes = ox.Cubin(SM90), ox.Cubin(str(SM90)), ox.Cubin(SM90.read_bytes())
    assert by_path.kernels == by_text.kernels == by_bytes.kernels
    assert by_path.arch == "sm_90a"
    assert (by_path.name, by_bytes.name) == (SM90.name, "cubin")


def test_a_kernel_tells_what_it_takes() -> None:
    scale = CUBIN.kernels["scale"]
    assert (scale.arch, scale.registers, scale.shared_bytes, scale.max_threads) == ("sm_90a", 16, 128, 128)
    assert scale.parameters[0] == ox.ParameterInfo(offset=48, size=128, alignment=64)
    with pytest.raises(TypeError):
        CUBIN.kernels["mine"] = scale  # type: ignore[index]  # that is the point


def test_it_shows_what_it_holds() -> None:
    shown = repr(CUBIN).splitlines()
    assert shown[0] == f"Cubin('{SM90.name}', sm_90a, {SM90.stat().st_size:,} bytes)"
    assert "  scale: 16 registers, 128 bytes of shared memory, parameters of 128 + 8 + 4 + 8 + 1 + 2 bytes" in shown
    assert "  nothing: 4 registers, 0 bytes of shared memory, parameters of no bytes" in shown
    assert any(line.startswith("  _Z7mangledi5Threed: ") and "400 bytes of local memory" in line for line in shown)
    assert len(shown) == 1 + len(CUBIN.kernels)


def test_where_it_runs() -> None:
    gpu, blackwell = noting_device()[0], noting_device(100)[0]
    assert [CUBIN.runs_on(dev) for dev in (gpu, blackwell, ox.Device.open("sim"))] == [True, False, False]
    assert [ox.Cubin(SM100).runs_on(dev) for dev in (gpu, blackwell)] == [False, True]


def test_it_needs_no_gpu_and_no_numpy() -> None:
    script = f"import oxidecopy as ox\nox.Cubin({str(SM90)!r})\nimport sys\nprint({{'numpy', 'cuda'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_lessons_cubin_is_made_from_the_source_beside_it() -> None:
    library = find_library(12)
    if library is None:
        pytest.skip("no NVRTC 12 is installed")
    assert compile_cubin((LESSON.parent / "scale.cu").read_text(), library=library).cubin == LESSON.read_bytes()


# ---- files
def refused(run: Callable[[], object], error: type[OxidecopyError], *rules: str) -> OxidecopyError:
    with pytest.raises(error) as caught:
        run()
    assert type(caught.value) is error
    assert caught.value.rules == rules
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.site is not None
        assert diagnostic.site.file == __file__
        assert diagnostic.got
        assert diagnostic.required
        assert diagnostic.fix
    return caught.value


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    error = refused(lambda: ox.Cubin(tmp_path / "none.cubin"), InputError, "OX5401")
    assert "No such file" in error.diagnostics[0].got
    error = refused(lambda: ox.Cubin(tmp_path), InputError, "OX5401")
    assert error.diagnostics[0].got == "a directory"
    os.mkfifo(tmp_path / "pipe")
    error = refused(lambda: ox.Cubin(tmp_path / "pipe"), InputError, "OX5401")
    assert error.diagnostics[0].got == "a device or pipe"
    refused(lambda: ox.Cubin("a\0b"), InputError, "OX5401")
    number: Any = 3
    error = refused(lambda: ox.Cubin(number), InputError, "OX5401")
    assert error.diagnostics[0].got == "3 (int)"


def test_a_sparse_file_that_is_no_cubin_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    refused(lambda: ox.Cubin(tmp_path / "huge"), InputError, "OX5401")


def test_a_file_that_is_no_cubin(tmp_path: Path) -> None:
    (tmp_path / "k.fatbin").write_bytes(b"\x50\xed\x55\xba" + bytes(60))
    error = refused(lambda: ox.Cubin(tmp_path / "k.fatbin"), CubinError, "OX5402")
    assert "k.fatbin" in error.diagnostics[0].what
    refused(lambda: ox.Cubin(SM90.read_bytes()[:5000]), CubinError, "OX5403")


# ---- names
def test_a_kernel_that_is_not_there() -> None:
    error = refused(lambda: CUBIN.kernel("scales", threads=32), CubinError, "OX5404")
    assert error.diagnostics[0].fix == "name it 'scale'"
    assert "clustered" in error.diagnostics[0].required


def test_a_mangled_kernel_is_found_by_its_symbol_alone() -> None:
    error = refused(lambda: CUBIN.kernel("mangled", threads=32), CubinError, "OX5404")
    assert "'_Z7mangledi5Threed'" in error.diagnostics[0].fix
    assert 'extern "C"' in error.diagnostics[0].fix
    anything: Any = ["scale"]
    refused(lambda: CUBIN.kernel(anything, threads=32), CubinError, "OX5404")


# ---- declarations
def test_a_declaration_that_fits() -> None:
    @CUBIN.kernel("scale", threads=128)
    def scale(src: Map, out: Out, alpha: ox.Scalar[ox.f32], n: ox.Idx, c: ox.Scalar[ox.u8], h: ox.Scalar[ox.u16]) -> None:
        """What it does."""

    assert scale.info is CUBIN.kernels["scale"]
    assert scale.__name__ == "scale"
    assert scale.__doc__ == "What it does."
    assert scale.__module__ == __name__


def test_a_kernel_without_parameters() -> None:
    @CUBIN.kernel("nothing", threads=1)
    def nothing() -> None: ...

    assert nothing.info.parameters == ()


def test_a_declaration_on_another_architecture_has_other_offsets() -> None:
    @ox.Cubin(SM100).kernel("clustered", threads=32)
    def clustered(out: Out, src: Map) -> None: ...

    assert [p.offset for p in clustered.info.parameters] == [0, 64]


def test_names_of_the_function_around_may_be_used() -> None:
    Local = ox.GlobalArray[ox.f32, ox.D1]  # noqa: N806  # a type

    @CUBIN.kernel("bounded", threads=32)
    def bounded(out: Local) -> None: ...

    assert bounded.info.max_cluster == 8


def test_what_is_no_declaration() -> None:
    declare: Any = CUBIN.kernel("bounded", threads=32)
    refused(lambda: declare(3), CubinError, "OX5405")
    refused(lambda: declare(print), CubinError, "OX5405")

    def several(*out: Out) -> None: ...

    def body(out: Out) -> None:
        out.numpy()

    def value(out: Out) -> int:
        return out.shape[0] + 1  # type: ignore[return-value]  # a body is what is wrong

    def plain(n: int) -> None: ...

    def text(n: str) -> None: ...

    def packed(n: ox.Scalar[ox.u4x16_align8b]) -> None: ...

    for fn in (several, body, value, plain, text, packed):
        refused(lambda fn=fn: declare(fn), CubinError, "OX5405")  # type: ignore[misc]  # bound here


def test_everything_wrong_with_a_declaration_is_said_at_once() -> None:
    def bad(n: int, s: str) -> None:
        n.bit_length()
        s.upper()

    declare: Any = CUBIN.kernel("bounded", threads=32)
    error = refused(lambda: declare(bad), CubinError, "OX5405", "OX5405", "OX5405")
    assert "'n'" in str(error)
    assert "'s'" in str(error)


def test_annotations_that_mean_nothing() -> None:
    def bare(out) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001  # that is the mistake

    def unknown(out: "Elsewhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

    declare: Any = CUBIN.kernel("bounded", threads=32)
    for fn in (bare, unknown):
        with pytest.raises(RecordError) as caught:
            declare(fn)
        assert caught.value.rules == ("OX1036",)


def test_options_and_signature_are_checked_together() -> None:
    declare: Any = CUBIN.kernel("scale", threads=256, cluster=32, shared_bytes=1 << 20)

    def scale(src: Map, out: Out, alpha: ox.Scalar[ox.f64]) -> None: ...

    error = refused(lambda: declare(scale), CubinError, "OX5408", "OX5408", "OX5408", "OX5406", "OX5407")
    assert str(error).startswith("own kernel refused: 5 rules broken\n")
