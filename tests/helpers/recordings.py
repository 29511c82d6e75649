"""Records small pipelines from their functions alone: what a parameter is follows from its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from oxidecopy.errors import Diagnostic, OxidecopyError
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import ArrayParam, IdxParam, MapParam, Program, ScalarParam, Step
from oxidecopy.typed.recording import ArgumentSpec, record

PARAMS: Final[dict[str, ArgumentSpec]] = {
    "src": MapParam(name="src", dtype="f32", box_dim=(64, 32), element_strides=(1, 1)),
    "dst": MapParam(name="dst", dtype="f32", box_dim=(64, 32), element_strides=(1, 1), swizzle="128B"),
    "cube": MapParam(name="cube", dtype="i32", box_dim=(2, 4, 8), element_strides=(1, 1, 1)),
    "out": ArrayParam(name="out", dtype="f32", rank=2),
    "n": IdxParam(name="n"),
    "i0": IdxParam(name="i0"),
    "alpha": ScalarParam(name="alpha", dtype="f32"),
    "count": ScalarParam(name="count", dtype="i32"),
}


def recorded(fn: Callable[..., Any], *, threads: int = 128, cluster: tuple[int, int, int] | None = None, **given: ArgumentSpec) -> Program:
    """The program of `fn`, which is well-formed: the op table's generic check finds nothing in any recording."""
    names = list(inspect.signature(fn).parameters)[1:]
    program = record(fn, threads=threads, cluster=cluster, arguments={name: given.get(name, PARAMS.get(name, 0)) for name in names})
    assert check_operands(program) == []
    return program


def refused(
    fn: Callable[..., Any], rule: str, *, threads: int = 128, cluster: tuple[int, int, int] | None = None, **given: ArgumentSpec
) -> Diagnostic:
    """The one diagnostic that recording `fn` is refused with, at its line marked `# here`."""
    with pytest.raises(OxidecopyError) as caught:
        recorded(fn, threads=threads, cluster=cluster, **given)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.rule == rule, str(diagnostic)
    assert diagnostic.fix
    assert diagnostic.site is not None
    assert (diagnostic.site.file, diagnostic.site.line) == (inspect.getsourcefile(fn), marked_line(fn))
    return diagnostic


def marked_line(fn: Callable[..., Any], mark: str = "# here") -> int:
    """The line of `fn`'s source with a mark."""
    lines, start = inspect.getsourcelines(fn)
    (found,) = (number for number, line in enumerate(lines, start) if mark in line)
    return found


def without_sites(program: Program) -> Program:
    """The program as it would come from a text without comments."""
    return replace(
        program,
        site=None,
        steps=tuple(_bare(step) for step in program.steps),
        tiles=tuple(replace(tile, site=None) for tile in program.tiles),
        barriers=tuple(replace(barrier, site=None) for barrier in program.barriers),
    )


def _bare(step: Step) -> Step:
    return Step(step.op, None, tuple(_bare(inner) for inner in step.body))
