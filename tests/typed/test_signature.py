"""What annotations say about parameters, and which functions are pipelines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np  # noqa: TC002  # annotations are read at run time
import numpy.typing as npt  # noqa: TC002  # as above
import pytest

import oxidecopy as ox
from oxidecopy.errors import ClusterError, OxidecopyError
from oxidecopy.typed.signature import Formal, formals
from tests.helpers.recordings import marked_line

DT = TypeVar("DT", bound=ox.DType)
Boxed = ox.TmaDescriptor[ox.bf16, ox.D2, ox.Swizzle128B, ox.Box2[Literal[64], Literal[32]]]


def parameters(fn: Callable[..., Any], *, clustered: bool = False) -> list[Formal]:
    return list(formals(fn, clustered=clustered)[1])


def test_what_is_read() -> None:
    def pipe(
        cta: ox.Cta, a: Boxed, b: ox.TmaDescriptor[ox.f32, ox.D1], c: ox.TmaDescriptor[Any, Any],
        d: ox.TmaDescriptor[ox.f16, ox.D5, ox.AnySwizzle, Any], e: ox.GlobalArray[ox.u8, ox.D3],
        f: ox.GlobalArray[DT, Any], g: ox.Idx, h: ox.Scalar[ox.tf32], i: int, j: bool, k: str,
    ) -> None: ...  # fmt: skip

    a, b, c, d, e, f, g, h, i, j, k = parameters(pipe)
    assert a == Formal(name="a", kind="map", dtype="bf16", rank=2, swizzle="128B", box=(64, 32))
    assert b == Formal(name="b", kind="map", dtype="f32", rank=1)
    assert c == Formal(name="c", kind="map")
    assert d == Formal(name="d", kind="map", dtype="f16", rank=5)
    assert e == Formal(name="e", kind="array", dtype="u8", rank=3)
    assert f == Formal(name="f", kind="array")
    assert g == Formal(name="g", kind="idx")
    assert h == Formal(name="h", kind="scalar", dtype="tf32")
    assert [x.plain for x in (i, j, k)] == [int, bool, str]
    assert [str(x) for x in (a, b, c, e, g, h, i)] == [
        "TmaDescriptor[bf16, D2, swizzle 128B, box (64, 32)]",
        "TmaDescriptor[f32, D1]",
        "TmaDescriptor[?, ?]",
        "GlobalArray[u8, D3]",
        "Idx",
        "Scalar[tf32]",
        "int",
    ]


def test_boxes_that_are_not_literal_stay_open() -> None:
    def pipe(cta: ox.Cta, a: ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[int, int]]) -> None: ...

    assert parameters(pipe)[0].box is None


def local_names() -> Callable[..., None]:
    Local = ox.GlobalArray[ox.f64, ox.D4]  # noqa: N806  # an alias

    @ox.pipeline(threads=32)
    def pipe(cta: ox.Cta, out: Local) -> None: ...

    return pipe._parameters[1]  # type: ignore[return-value]  # what was read


def test_aliases_of_the_function_around() -> None:
    assert [str(formal) for formal in local_names()] == ["GlobalArray[f64, D4]"]  # type: ignore[attr-defined]  # as above


def test_names_that_come_later_in_the_file() -> None:
    @ox.pipeline(threads=32)
    def pipe(cta: ox.Cta, out: Later) -> None: ...

    assert pipe.signature.parameters.keys() == {"out"}
    assert pipe._parameters[1] == (Formal(name="out", kind="array", dtype="u8", rank=1),)


Later = ox.GlobalArray[ox.u8, ox.D1]


# ---- what is refused
def refuses(fn: Callable[..., Any], rule: str, *, clustered: bool = False) -> str:
    with pytest.raises(OxidecopyError) as caught:
        formals(fn, clustered=clustered)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.rule == rule
    assert diagnostic.fix
    return str(caught.value)


def none(cta: ox.Cta, a) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def numpy(cta: ox.Cta, a: npt.NDArray[np.float32]) -> None: ...
def number(cta: ox.Cta, a: float) -> None: ...
def open_scalar(cta: ox.Cta, a: ox.Scalar[DT]) -> None: ...
def symbol(cta: ox.Cta, a: ox.SymIdx) -> None: ...
def tile(cta: ox.Cta, a: ox.SharedArray[ox.f32]) -> None: ...
def unknown(cta: ox.Cta, a: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def broken(cta: ox.Cta, a: ox.GlobalArray[ox.f32, ox.D9]) -> None: ...  # type: ignore[name-defined]


@pytest.mark.parametrize("fn", [none, numpy, number, open_scalar, symbol, tile, unknown, broken])
def test_annotations_that_mean_nothing(fn: Any) -> None:
    assert f"test_signature.py:{fn.__code__.co_firstlineno}: " in refuses(fn, "OX1036")


def numpys(cta: ox.Cta, a: ox.TmaDescriptor[np.float32, ox.D2]) -> None: ...  # type: ignore[type-var]
def pythons(cta: ox.Cta, a: ox.GlobalArray[float, ox.D2]) -> None: ...  # type: ignore[type-var]
def swapped(cta: ox.Cta, a: ox.TmaDescriptor[ox.D2, ox.f32]) -> None: ...  # type: ignore[type-var]
def dimensions(cta: ox.Cta, a: ox.TmaDescriptor[ox.f32, 2]) -> None: ...  # type: ignore[valid-type]
def no_shape(cta: ox.Cta, a: ox.GlobalArray[ox.f32, ox.f32]) -> None: ...  # type: ignore[type-var]
def span(cta: ox.Cta, a: ox.TmaDescriptor[ox.f32, ox.D2, 128]) -> None: ...  # type: ignore[valid-type]
def no_box(cta: ox.Cta, a: ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.f32]) -> None: ...  # type: ignore[type-var]
def table(cta: ox.Cta, a: ox.DescriptorTable[np.float16, ox.D2]) -> None: ...  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("fn", "what", "fix"),
    [
        (numpys, "no element type", "write ox.f32"),
        (pythons, "no element type", "write ox.f32"),
        (swapped, "no element type", "write a class such as ox.f32"),
        (dimensions, "no shape", "write ox.D1, ox.D2"),
        (no_shape, "no shape", "write ox.D1, ox.D2"),
        (span, "no swizzle", "ox.Swizzle128B"),
        (no_box, "no box", "ox.Box2[Literal[64], Literal[32]]"),
        (table, "no element type", "write ox.f16"),
    ],
)
def test_what_stands_in_the_brackets_is_of_its_kind(fn: Any, what: str, fix: str) -> None:
    """It would be taken for `Any` otherwise, and arguments of any type would pass."""
    text = refuses(fn, "OX1036")
    assert f"names {what}" in text
    assert fix in text
    assert "oxidecopy.typed" not in text


def nothing() -> None: ...
def keyword(*, cta: ox.Cta) -> None: ...
def many(cta: ox.Cta, *arrays: Any) -> None: ...
def named(cta: ox.Cta, **arrays: Any) -> None: ...
def first(n: int, cta: ox.Cta) -> None: ...
def rank(cta: ox.Cta, cta_rank: ox.Idx) -> None: ...
def unshown(src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None: ...


def test_annotations_are_shown_as_they_are_written() -> None:
    assert "TmaDescriptor[f32, D2, " in refuses(unshown, "OX1067")


def method(self, cta: ox.Cta, a: ox.Idx) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def second(out, cta: ox.Cta) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001


def test_a_method_is_told_that_it_is_one() -> None:
    assert "@staticmethod" in refuses(method, "OX1067")
    assert "@staticmethod" not in refuses(second, "OX1067")


class Callee:
    def __call__(self, cta: ox.Cta) -> None: ...


@pytest.mark.parametrize(
    "fn", [nothing, keyword, many, named, first, rank, Callee(), Callee().__call__, functools.partial(first, 1), print, ox.Cta, 3]
)
def test_functions_that_are_no_pipelines(fn: Any) -> None:
    refuses(fn, "OX1067")


def test_a_body_may_use_what_the_function_around_assigns_later() -> None:
    @ox.pipeline(threads=32)
    def pipe(cta: ox.Cta, out: ox.GlobalArray[ox.u8, ox.D1]) -> None:
        cta.range(times)

    assert pipe.signature.parameters.keys() == {"out"}
    times = 3


def test_a_cluster_cta_needs_a_cluster() -> None:
    def pipe(cta: ox.ClusterCta) -> None: ...
    def plain(cta: ox.Cta) -> None: ...
    def bare(cta) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001

    with pytest.raises(ClusterError):
        formals(pipe, clustered=False)
    for fn in (pipe, plain, bare):
        formals(fn, clustered=True)


def test_a_pipeline_is_refused_where_it_is_defined() -> None:
    def define() -> None:
        @ox.pipeline(threads=32)  # here
        def pipe(cta: ox.Cta, a: float) -> None: ...

    with pytest.raises(ox.errors.RecordError) as caught:
        define()
    site = caught.value.diagnostics[0].site
    assert site is not None
    assert site.line == marked_line(define)
