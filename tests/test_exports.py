"""The shape of the public API: one list of names, each lazily loaded from the module that defines it, and what importing it costs."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import typing
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import oxidecopy as ox

PACKAGE = Path(ox.__file__).parent
TREE = ast.parse((PACKAGE / "__init__.py").read_text())
# Classes that users (or later rooms) subclass, or that other classes of ours extend.
OPEN = {
    "CachePolicy",
    "Eviction",
    "A16", "A128", "A256", "A512", "A1024", "AnyBox", "AnySwizzle", "BarrierToken", "BoundLaunch", "Box1", "Box2", "Box3", "Box4", "Box5",
    "Cta", "DType", "Group", "HasAdd", "HasBits", "HasIncDec", "HasMinMax", "HasStore", "Kind", "Leader", "SharedArray", "State", "Work",
}  # fmt: skip
MODULES = {"cache", "errors", "order", "reduce"}


def imported() -> dict[str, str]:
    """The names that type checkers see, with the module that each comes from."""
    (block,) = (node for node in TREE.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    found: dict[str, str] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        (alias,) = node.names
        assert alias.asname == alias.name, "a name that checkers take for private"
        found[alias.name] = str(node.module)
    return found


def test_all_names_are_the_same_everywhere() -> None:
    names = imported()
    assert {*names, "__version__"} == set(ox.__all__)
    assert {name: home for name, home in names.items() if name not in MODULES} == ox._HOME
    assert ox._MODULES.keys() == MODULES
    assert len(ox.__all__) == len(set(ox.__all__))
    assert set(ox.__all__) <= set(dir(ox))


@pytest.mark.parametrize("name", sorted(set(ox.__all__) - MODULES - {"__version__"}))
def test_a_name_comes_from_where_it_is_defined(name: str) -> None:
    value: Any = getattr(ox, name)
    home = import_module(ox._HOME[name])
    assert value is getattr(home, name)
    if isinstance(value, type) or inspect.isfunction(value):
        assert value.__module__ == ox._HOME[name]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_are_exported_as_they_are(name: str) -> None:
    assert isinstance(getattr(ox, name), ModuleType)
    assert ox._MODULES[name] == f"{imported()[name]}.{name}"


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'f23'"):
        getattr(ox, "f23")  # noqa: B009  # checkers refuse the short form, as they should


@pytest.mark.parametrize("name", sorted(set(ox.__all__) - MODULES - {"__version__"}))
def test_classes_are_final_or_meant_for_subclasses(name: str) -> None:
    value: Any = getattr(ox, name)
    if not isinstance(value, type) or issubclass(value, tuple):
        return
    is_protocol = bool(getattr(value, "_is_protocol", False))
    is_final = bool(getattr(value, "__final__", False))
    assert is_protocol or is_final != (name in OPEN), f"{name}: final {is_final}"


@pytest.mark.parametrize("name", sorted(set(ox.__all__) - MODULES - {"__version__"}))
def test_every_public_class_and_function_says_what_it_is(name: str) -> None:
    value: Any = getattr(ox, name)
    if isinstance(value, type) or inspect.isfunction(value):
        assert inspect.getdoc(value)
        for member in vars(value).values():
            if inspect.isfunction(member) and not member.__name__.startswith("_"):
                assert inspect.getdoc(member), f"{name}.{member.__name__}"


def test_handles_cannot_get_new_attributes() -> None:
    given = ("BarrierToken", "ClusterCta", "Cta", "Leader", "Group", "ManagedBarrier", "ManagedBarriers", "SharedArray", "TmaDescriptor")
    for name in (*given, "TxToken", "Pred", "SymIdx", "ScalarValue", "GlobalArray"):
        for cls in getattr(ox, name).__mro__[:-1]:
            assert "__slots__" in vars(cls) or cls is typing.Generic, f"{name}: {cls}"


# ---- what an import costs
def loaded(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    command = [sys.executable, "-c", script]
    return set(subprocess.run(command, capture_output=True, text=True, check=True, cwd=PACKAGE.parent).stdout.split())


def test_importing_the_package_imports_next_to_nothing() -> None:
    modules = loaded("import oxidecopy")
    assert {name for name in modules if name.startswith("oxidecopy")} == {"oxidecopy", "oxidecopy._version"}
    assert modules.isdisjoint({"numpy", "ml_dtypes", "cuda", "typing_extensions", "typer", "rich", "mypy"})


@pytest.mark.parametrize("use", ["ox.pipeline(threads=32)", "ox.Device.open('sim').name", "ox.errors", "ox.f32, ox.Cta, ox.TmaDescriptor"])
def test_names_do_not_bring_the_gpus_or_the_command_lines_packages(use: str) -> None:
    modules = loaded(f"import oxidecopy as ox\n{use}")
    assert modules.isdisjoint({"cuda", "typer", "rich", "mypy", "matplotlib"})


def test_defining_a_pipeline_needs_no_numpy() -> None:
    assert "numpy" not in loaded("import oxidecopy as ox\n@ox.pipeline(threads=32)\ndef f(cta: ox.Cta, n: ox.Idx) -> None: ...")


# ---- who may do what
def imports(path: Path) -> set[str]:
    """Every module that a file imports, and every name it imports from one, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


def test_only_the_verifier_seals_programs() -> None:
    users = [path for path in FILES if "oxidecopy.program.verified.seal" in imports(path) or "verified.seal(" in path.read_text()]
    assert users
    assert {path.relative_to(PACKAGE).parts[0] for path in users} == {"verify"}
    makers = [path for path in FILES if "VerifiedProgram(" in path.read_text()]
    assert [path.relative_to(PACKAGE).as_posix() for path in makers] == ["program/verified.py"]


@pytest.mark.parametrize(("room", "stranger"), [("engines", "verify"), ("verify", "engines")])
def test_the_two_oracles_do_not_know_each_other(room: str, stranger: str) -> None:
    files = sorted((PACKAGE / room).rglob("*.py"))
    assert files
    for path in files:
        assert not [name for name in imports(path) if name.startswith(f"oxidecopy.{stranger}")], path


def test_a_sealed_program_cannot_be_forged() -> None:
    from oxidecopy.program.verified import VerifiedProgram

    forge: Any = VerifiedProgram
    with pytest.raises(TypeError, match="never directly"):
        forge(None, None, (), _key=object())


FIRST_LAUNCH = """
import numpy as np
import oxidecopy as ox
Map = ox.TmaDescriptor[ox.f32, ox.D2]

@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def copy(cta: ox.Cta, src: Map, dst: Map) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.storer() as leader:
        for at in cta.tiles(src):
            ring.forward(leader, dst, at)

@ox.pipeline(threads=32)
def fill(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(ox.f32, (8, 8), align=ox.A128)
    cta.fill(tile, 1.0)
    cta.sync()
    cta.store(out, tile, (cta.block_idx.x * 8, 0))

dev = ox.Device.open("sim")
src, dst = (dev.zeros((16, 8), ox.f32) for _ in range(2))
copy[2].bind(*(ox.TmaDescriptor.tiled(a, box=(8, 8)) for a in (src, dst))).verify()
fill[2].bind(dst).verify()"""


def test_a_first_proof_loads_neither_the_text_form_nor_what_only_errors_need() -> None:
    modules = loaded(FIRST_LAUNCH)
    assert {"numpy", "oxidecopy.verify.verifier", "oxidecopy.tiles.ring"} <= modules
    assert not [name for name in modules if name.startswith(("oxidecopy.program.text", "oxidecopy.program.binary"))]
    assert modules.isdisjoint({"numpy.ma", "difflib", "oxidecopy.verify.deadlock", "oxidecopy.verify.trips"})
