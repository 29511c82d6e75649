"""Machine code: which file fits which GPU, what is refused before the driver sees it, and what a launch is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.module import CodeFile, Manifest, Module, choose, describe, interpreter, read_code, read_manifest, targets
from oxidecopy.errors import DeviceError, DriverError, ExecutionError, OxidecopyError
from tests.helpers.fake_driver import FakeDriver, FakeImage, FakeKernel
from tests.helpers.fake_kernels import CODE, interpreter_image, write_kernels

TARGETS = ("sm_90a", "sm_100f", "sm_110f", "sm_120f", "compute_90")


def code(target: str) -> CodeFile:
    return CodeFile(file=f"{target}.bin", target=target, sha256="")


def manifest(*names: str, abi_hash: str | None = None) -> Manifest:
    from oxidecopy.engines.cuda.abi_header import abi_hash as current

    return Manifest(abi=current() if abi_hash is None else abi_hash, toolkit="12.9", files=tuple(map(code, names)))


def refused(rule: str, use: Callable[[], object], error: type[OxidecopyError] = DeviceError) -> str:
    with pytest.raises(error) as caught:
        use()
    assert caught.value.rules == (rule,)
    assert caught.value.diagnostics[0].fix
    return str(caught.value)


# ---- which file
@pytest.mark.parametrize(
    ("sm", "target"),
    [(90, "sm_90a"), (100, "sm_100f"), (103, "sm_100f"), (110, "sm_110f"), (120, "sm_120f"), (121, "sm_120f"), (130, "compute_90")],
)
def test_the_file_for_a_gpu(sm: int, target: str) -> None:
    assert choose(manifest(*TARGETS), sm).target == target
    assert choose(manifest(*reversed(TARGETS)), sm).target == target


@pytest.mark.parametrize(
    ("target", "sm", "runs"),
    [
        ("sm_90a", 90, True),
        ("sm_90a", 100, False),
        ("sm_90", 90, True),
        ("sm_90", 100, False),
        ("sm_100f", 103, True),
        ("sm_103f", 100, False),
        ("sm_103f", 103, True),
        ("sm_100f", 110, False),
        ("compute_90", 90, True),
        ("compute_90", 121, True),
        ("compute_90", 89, False),
        ("compute_90a", 100, False),
        ("something", 90, False),
    ],
)
def test_binary_compatibility(target: str, sm: int, runs: bool) -> None:
    assert code(target).runs_on(sm) is runs


def test_code_for_one_gpu_goes_before_code_for_its_family_and_ptx_comes_last() -> None:
    assert choose(manifest("compute_90", "sm_90", "sm_90a"), 90).target == "sm_90a"
    assert choose(manifest("compute_90", "sm_100", "sm_100f"), 100).target == "sm_100f"
    assert choose(manifest("compute_90", "sm_90"), 90).target == "sm_90"


def test_ptx_says_that_it_is_a_fallback() -> None:
    assert "PTX" in describe(choose(manifest(*TARGETS), 130), 130)
    assert "PTX" not in describe(choose(manifest(*TARGETS), 90), 90)


def test_a_gpu_without_code() -> None:
    said = refused("OX5334", lambda: choose(manifest("sm_90a", "sm_100f"), 120))
    assert "12.0" in said
    assert "sm_90a, sm_100f" in said
    refused("OX5334", lambda: choose(manifest(), 90))
    assert targets(manifest(*TARGETS)) == list(TARGETS)


def test_code_of_another_version() -> None:
    refused("OX5335", lambda: choose(manifest(*TARGETS, abi_hash="0" * 64), 90))


# ---- files
def test_files_are_read_as_they_were_built(tmp_path: Path) -> None:
    folder = write_kernels(tmp_path)
    found = choose(read_manifest(folder), 90)
    assert read_code(folder, found) == CODE
    (folder / found.file).write_bytes(CODE + b"!")
    assert "sha256" in refused("OX5335", lambda: read_code(folder, found))
    (folder / found.file).unlink()
    refused("OX5335", lambda: read_code(folder, found))


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"abi": "", "toolkit": "", "files": [{}]}'])
def test_manifests_that_are_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    refused("OX5335", lambda: read_manifest(tmp_path))


# ---- in the driver
def loaded(tmp_path: Path, **attributes: int) -> tuple[Module, FakeDriver, PrimaryContext]:
    image = FakeImage(CODE, (FakeKernel("one", ((0, 8),), attributes=attributes),))
    driver = FakeDriver(images=[image])
    context = PrimaryContext(driver, 0)
    with context:
        return Module(driver, CODE, 232_448, "test.cubin"), driver, context


def test_the_interpreter_is_loaded_with_all_its_entry_points(tmp_path: Path) -> None:
    driver = FakeDriver(images=[interpreter_image()])
    with PrimaryContext(driver, 0):
        found = interpreter(driver, 90, 232_448, write_kernels(tmp_path))
        assert found.code.target == "sm_90a"
        assert not found.programmatic
        assert interpreter(driver, 90, 232_448, write_kernels(tmp_path, programmatic=True)).programmatic
        assert driver.calls["cuModuleLoadData"] == 2  # one each: a part is loaded when it is first asked for
        for name in abi.ENTRY_POINTS:
            assert found.kernel(name) is found.kernel(name)
        assert driver.calls["cuModuleLoadData"] == 1 + len(abi.PARTS)  # that of the second interpreter, and all of the first
        assert driver.calls["cuModuleGetFunction"] == len(abi.ENTRY_POINTS)
        with pytest.raises(DriverError):
            found.kernel("another")
        found.module().unload()
        assert driver.calls["cuModuleUnload"] == 1


def test_ptx_is_read_to_its_terminating_zero() -> None:
    driver = FakeDriver(images=[FakeImage(b".version 8.8\0", ())])
    with PrimaryContext(driver, 0):
        Module(driver, b".version 8.8", 0, "x.ptx")


def test_shared_memory_is_asked_for_once(tmp_path: Path) -> None:
    module, driver, context = loaded(tmp_path)
    with context:
        kernel = module.kernel("one")
        kernel.allow(threads=1024, shared_bytes=49_152, cluster_size=8)
        assert driver.calls["cuFuncSetAttribute"] == 0
        for _ in range(2):
            kernel.allow(threads=1024, shared_bytes=49_153, cluster_size=1)
            kernel.allow(threads=1024, shared_bytes=232_448, cluster_size=16)
        assert driver.calls["cuFuncSetAttribute"] == 2
        said = refused("OX5336", lambda: kernel.allow(threads=1024, shared_bytes=232_449, cluster_size=1), ExecutionError)
        assert "232,448" in said


def test_static_shared_memory_leaves_less(tmp_path: Path) -> None:
    module, _, context = loaded(tmp_path, SHARED_SIZE_BYTES=1024)
    with context:
        kernel: Any = module.kernel("one")
        refused("OX5336", lambda: kernel.allow(threads=1024, shared_bytes=232_448, cluster_size=1), ExecutionError)
        kernel.allow(threads=1024, shared_bytes=231_424, cluster_size=1)


def test_registers_leave_room_for_fewer_threads(tmp_path: Path) -> None:
    module, _, context = loaded(tmp_path, MAX_THREADS_PER_BLOCK=896)
    with context:
        kernel = module.kernel("one")
        kernel.allow(threads=896, shared_bytes=0, cluster_size=1)
        said = refused("OX5336", lambda: kernel.allow(threads=897, shared_bytes=0, cluster_size=1), ExecutionError)
        assert "896" in said
        with pytest.raises(ExecutionError) as caught:
            kernel.allow(threads=1024, shared_bytes=1 << 20, cluster_size=1)
        assert caught.value.rules == ("OX5336", "OX5336")  # all that is wrong at once


def test_the_helpers_manifest_has_the_fields_of_a_real_one(tmp_path: Path) -> None:
    assert set(json.loads((write_kernels(tmp_path) / "manifest.json").read_text())) == {"abi", "toolkit", "files"}
