"""Runs the marked lines of `tests/typing/contract` without any checker, one at a time, as a user would meet them.

A file is loaded with all marked lines but one taken out, so that each of several mistakes in one function is reached. What a function takes
is made for it: handles of a recording with one thread per CTA (there every thread is a leader, and all of them), or objects of the host.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.pipeline import Pipeline
from oxidecopy.program.program import ArrayParam, IdxParam, MapParam, Program, ScalarParam
from oxidecopy.typed import dtypes
from oxidecopy.typed.geometry import Swizzle32B, Swizzle64B, Swizzle128B, SwizzleNone, box_extents
from oxidecopy.typed.recording import ArgumentSpec, record
from oxidecopy.typed.signature import Formal, _formal
from tests.helpers.foreign import producer_of

FOLDER = Path(__file__).parents[1] / "typing" / "contract"
_MARK = re.compile(r"#\s*E\b\s*(?P<note>.*)")
_MODES = {mode.info.name: mode for mode in (SwizzleNone, Swizzle32B, Swizzle64B, Swizzle128B)}

_TENSORS = {"t": (128, 512), "half": (128, 512), "cube": (2, 128, 512)}


@dataclass(frozen=True)
class Mark:
    """A marked line, with the function it stands in (`Class.method` for methods)."""

    file: str
    line: int
    note: str
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def marks(file: str) -> list[Mark]:
    """The marked lines of a file, in order."""
    found: list[Mark] = []
    function = owner = ""
    for number, text in enumerate((FOLDER / f"{file}.py").read_text().splitlines(), 1):
        if header := re.match(r"(?P<indent>\s*)(?P<kind>def|class)\s+(?P<name>\w+)", text):
            if not header["indent"]:
                owner = header["name"] if header["kind"] == "class" else ""
                function = header["name"]
            elif owner and len(header["indent"]) == 4 and header["kind"] == "def":
                function = f"{owner}.{header['name']}"
        if mark := _MARK.search(text):
            found.append(Mark(file, number, mark["note"], function))
    return found


def load(mark: Mark) -> ModuleType:
    """The file as a module, all other marked lines taken out."""
    path = FOLDER / f"{mark.file}.py"
    lines = path.read_text().splitlines()
    for other in marks(mark.file):
        if other.line != mark.line:
            lines[other.line - 1] = _harmless(lines[other.line - 1])
    module = ModuleType(f"contract_{mark.file}_{mark.line}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile("\n".join(lines) + "\n", str(path), "exec"), module.__dict__)
    return module


def _harmless(line: str) -> str:
    """`line` without its effect; a block's header keeps its block."""
    indent = line[: len(line) - len(line.lstrip())]
    code = line.split("#", maxsplit=1)[0].rstrip()
    if loop := re.match(r"\s*for (?P<name>\w+) in ", code):
        return f"{indent}for {loop['name']} in cta.range(2):"
    return indent + ("if True:" if code.endswith(":") else "pass")


def run(mark: Mark) -> Program | None:
    """Runs the function that a mark stands in; for a recorded one gives the program."""
    module = load(mark)
    name, _, method = mark.function.partition(".")
    fn: Any = getattr(module, name)
    if method:
        cls = fn

        def call(cta: ox.Cta) -> None:
            made = cls(cta)
            if method != "__init__":
                getattr(made, method)()

        fn = call
    if isinstance(fn, Pipeline):
        fn = fn._fn
    parameters = inspect.signature(fn).parameters
    if {"cta", "leader", "tile", "token"} & parameters.keys():
        return _recorded(fn)
    fn(*(_host(p) for p in _formals(fn, parameters)))
    return None


def site_of(error: OxidecopyError) -> tuple[str, int]:
    """File and line of the first broken rule."""
    site = error.diagnostics[0].site
    assert site is not None
    return Path(site.file).name, site.line


# ---- arguments
def _formals(fn: Callable[..., Any], names: typing.Iterable[str]) -> Iterator[tuple[str, Any]]:
    hints = typing.get_type_hints(fn)
    return ((name, hints.get(name)) for name in names)


def _understood(hint: Any) -> Formal | None:
    try:
        return _formal(_formals, "p", hint)
    except OxidecopyError:
        return None


def _box(formal: Formal) -> tuple[int, ...]:
    """The box that the annotation names, else one of 64 by 64 in the innermost dimensions."""
    rank = formal.rank or 2
    return formal.box or (1,) * (rank - 2) + (64,) * min(rank, 2)


def _recorded(fn: Callable[..., Any]) -> Program:
    parameters = dict(_formals(fn, inspect.signature(fn).parameters))
    arguments: dict[str, ArgumentSpec] = {}
    for name, hint in parameters.items():
        formal = _understood(hint)
        if formal is not None and formal.kind != "plain":
            arguments[name] = _spec(name, formal)

    def body(cta: ox.Cta, **handles: Any) -> None:
        full = cta.barrier().init(1)
        with ExitStack() as blocks:
            leader = blocks.enter_context(cta.elect()) if "leader" in parameters or "token" in parameters else None
            values = {name: _value(name, hint, cta, leader, full, blocks) for name, hint in parameters.items() if name not in handles}
            fn(**values, **handles)

    cluster = (2, 1, 1) if parameters.get("cta") is ox.ClusterCta else None
    return record(body, threads=1, cluster=cluster, arguments=arguments)


def _spec(name: str, formal: Formal) -> ArgumentSpec:
    dtype = formal.dtype or "f32"
    match formal.kind:
        case "map" | "table":
            box, entries = _box(formal), None if formal.kind == "map" else 2
            ones = (1,) * len(box)
            return MapParam(name=name, dtype=dtype, box_dim=box, element_strides=ones, swizzle=formal.swizzle or "none", entries=entries)
        case "array":
            return ArrayParam(name=name, dtype=dtype, rank=formal.rank or 2)
        case "idx":
            return IdxParam(name=name)
        case _:
            return ScalarParam(name=name, dtype=dtype)


def _value(name: str, hint: Any, cta: ox.Cta, leader: Any, full: Any, blocks: ExitStack) -> Any:
    if name == "cta":
        return cta
    if name == "leader":
        return leader
    if name == "group":
        return blocks.enter_context(cta.warps(0, 1))
    if name == "token":
        armed = typing.get_origin(hint) is ox.TxToken
        return full.arrive_expect_tx(leader, 0) if armed else full.arrive()
    if name == "tile":
        box: Any = box_extents(typing.get_args(hint)[1]) or (64, 64)
        return cta.shared(ox.f32, box, align=ox.A1024)
    return {"xs": [1, 2, 3], "n": 4, "c": True, "keep": [], "use": range(4).__getitem__}[name]


def _host(parameter: tuple[str, Any]) -> Any:
    name, hint = parameter
    dev = _device()
    if name == "dev":
        return dev
    if name == "x":
        return np.zeros((128, 512), np.float32)
    if name == "y":
        return np.zeros((4, 4), np.complex64)
    if name in _TENSORS and hint.__name__ == "Tensor":
        return producer_of(np.zeros(_TENSORS[name], np.float16 if name == "half" else np.float32))
    if hint is ox.Stream:
        return ox.Stream(dev)
    formal = _understood(hint)
    assert formal is not None, f"no value for {name}: {hint}"
    box: Any = _box(formal)
    shape = (*box[:-2], 128, 512) if len(box) > 1 else (512,)
    array: ox.GlobalArray[Any, Any] = dev.empty(shape, getattr(dtypes, formal.dtype or "f32"))
    if formal.kind == "array":
        return array
    return ox.TmaDescriptor.tiled(array, box=box, swizzle=_MODES[formal.swizzle or "none"])


_DEVICES: list[ox.Device] = []


def _device() -> ox.Device:
    """One for all: arrays of two devices do not go into one launch."""
    if not _DEVICES:
        _DEVICES.append(ox.Device.open("sim"))
    return _DEVICES[0]
