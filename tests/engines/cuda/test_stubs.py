"""The stub, the protocol and the fake say of `cuda.bindings.driver` what the installed module holds to."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from oxidecopy.engines.cuda.bindings import Driver
from tests.helpers.fake_driver import FakeDriver
from tests.helpers.fake_gpu import ENUMS

ROOT = Path(__file__).parents[3]
STUBS = ROOT / "stubs" / "cuda"
TREE = ast.parse((STUBS / "bindings" / "driver.pyi").read_text(encoding="utf-8"))
FUNCTIONS = {node.name: [arg.arg for arg in node.args.args] for node in TREE.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}
CONSTANTS = [node.target.id for node in TREE.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
MEMBERS = [(enum, member.name, member.value) for enum, members in ENUMS.items() for member in members]


def has_bindings() -> bool:
    try:
        return importlib.util.find_spec("cuda.bindings.driver") is not None
    except ImportError:  # not even the folder above it
        return False


needs_bindings = pytest.mark.skipif(not has_bindings(), reason="cuda-python is not installed")


@pytest.fixture(scope="module")
def driver() -> ModuleType:
    return import_module("cuda.bindings.driver")


def test_no_stub_package_hides_cuda_core() -> None:
    assert not (STUBS / "__init__.pyi").exists()
    assert (STUBS / "bindings" / "__init__.pyi").exists()


def test_the_stub_was_read() -> None:
    assert {"cuInit", "cuDeviceGetAttribute"} <= FUNCTIONS.keys()
    assert ("CUresult", "CUDA_SUCCESS", 0) in MEMBERS
    assert CONSTANTS == ["CU_MEMHOSTALLOC_PORTABLE", "CU_MEMHOSTALLOC_DEVICEMAP"]


@needs_bindings
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function_has_these_parameters(driver: ModuleType, name: str) -> None:
    assert list(inspect.signature(getattr(driver, name)).parameters) == FUNCTIONS[name]


@needs_bindings
@pytest.mark.parametrize("name", sorted(CLASSES))
def test_class_exists_with_its_members(driver: ModuleType, name: str) -> None:
    real = getattr(driver, name)
    assert isinstance(real, type)
    for item in CLASSES[name].body:
        if isinstance(item, ast.FunctionDef):
            assert hasattr(real, item.name)
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            assert hasattr(real(), item.target.id)


@needs_bindings
@pytest.mark.parametrize(("enum", "member", "value"), MEMBERS)
def test_member_has_this_value(driver: ModuleType, enum: str, member: str, value: int) -> None:
    assert int(getattr(getattr(driver, enum), member)) == value


@needs_bindings
def test_stubtest_agrees() -> None:
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "cuda.bindings.driver",
        "--ignore-missing-stub",
        "--ignore-positional-only",
        "--concise",
    ]
    done = subprocess.run(
        command, cwd=STUBS.parent, env={**os.environ, "MYPYPATH": "."}, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout.strip()) == (0, "")


def test_stub_protocol_and_fake_have_the_same_names() -> None:
    protocol = {name for name in dir(Driver) if name.startswith(("cu", "CU"))}
    values = {name for name in protocol if name.startswith(("CU", "cuuint"))}
    assert protocol - values == FUNCTIONS.keys()
    assert values <= CLASSES.keys() | set(CONSTANTS)
    assert all(hasattr(FakeDriver, name) for name in protocol)


def test_every_call_of_the_protocol_is_made() -> None:
    own = Path(inspect.getfile(Driver))
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "oxidecopy").rglob("*.py") if path != own)
    asked_by_tests = {"cuCtxGetCurrent"}  # whether a context was put back
    assert [name for name in FUNCTIONS if name not in asked_by_tests and f".{name}" not in code] == []


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_protocol_and_fake_have_these_parameters(name: str) -> None:
    for owner in (Driver, FakeDriver):
        assert list(inspect.signature(getattr(owner, name)).parameters)[1:] == FUNCTIONS[name]
