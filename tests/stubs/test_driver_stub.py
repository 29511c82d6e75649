"""The stub says nothing of `cuda.bindings.driver` that the installed module does not hold to: names, parameters, enum values."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

STUBS = Path(__file__).parents[2] / "stubs" / "cuda"
TREE = ast.parse((STUBS / "bindings" / "driver.pyi").read_text(encoding="utf-8"))
FUNCTIONS = {node.name: [arg.arg for arg in node.args.args] for node in TREE.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
MEMBERS = [
    (name, item.targets[0].id, item.value.value)
    for name, node in CLASSES.items()
    for item in node.body
    if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name) and isinstance(item.value, ast.Constant)
]


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


@needs_bindings
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function_has_these_parameters(driver: ModuleType, name: str) -> None:
    assert list(inspect.signature(getattr(driver, name)).parameters) == FUNCTIONS[name]


@needs_bindings
@pytest.mark.parametrize("name", sorted(CLASSES))
def test_class_exists_with_its_methods(driver: ModuleType, name: str) -> None:
    real = getattr(driver, name)
    assert isinstance(real, type)
    for item in CLASSES[name].body:
        if isinstance(item, ast.FunctionDef):
            assert callable(getattr(real, item.name))


@needs_bindings
@pytest.mark.parametrize(("enum", "member", "value"), MEMBERS)
def test_member_has_this_value(driver: ModuleType, enum: str, member: str, value: object) -> None:
    assert getattr(getattr(driver, enum), member) == value
