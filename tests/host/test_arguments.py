"""Launch arguments: each is held against its parameter, and everything that is wrong is said at once."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, Diagnostic
from tests.helpers.foreign import Producer

DEV = ox.Device.open("sim")
Boxed = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle64B, ox.Box2[Literal[16], Literal[16]]]


@ox.pipeline(threads=32)
def pipe(cta: ox.Cta, src: Boxed, out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx, k: ox.Scalar[ox.i32], flag: bool = False) -> None: ...


@ox.pipeline(threads=32)
def anything(cta: ox.Cta, src: ox.TmaDescriptor[Any, Any], out: ox.GlobalArray[Any, Any]) -> None: ...


def array(shape: tuple[int, ...] = (32, 32), dtype: Any = ox.f32) -> Any:
    return DEV.empty(shape, dtype)


def desc(a: Any = None, box: Any = (16, 16), swizzle: Any = ox.Swizzle64B) -> Any:
    return ox.TmaDescriptor.tiled(array() if a is None else a, box=box, swizzle=swizzle)


GOOD: dict[str, Any] = {"src": desc(), "out": array(), "n": 3, "k": 4}


def wrong(**given: Any) -> Diagnostic:
    """The one diagnostic of a launch with these arguments among good ones."""
    launch = cast("Any", pipe[1])
    with pytest.raises(ArgumentError) as caught:
        launch.bind(**{**GOOD, **given})
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.site is not None
    assert diagnostic.site.file == __file__
    assert diagnostic.fix
    return diagnostic


def test_good_arguments() -> None:
    bound = pipe[1].bind(**GOOD)
    assert bound.launch.idx == (("n", 3),)
    assert bound.launch.environment()["src.dim[1]"] == 32
    assert [p.name for p in bound.program.params] == ["src", "out", "n", "k"]
    assert anything[1].bind(desc(box=(8, 8), swizzle=ox.SwizzleNone), array((2, 2, 2), ox.u8)).program.params[1].name == "out"


@pytest.mark.parametrize(
    ("src", "got"),
    [
        (desc(array(dtype=ox.i32)), "i32, D2, swizzle 64B"),
        (desc(array((2, 32, 32)), box=(1, 16, 16)), "f32, D3"),
        (desc(swizzle=ox.SwizzleNone), "swizzle none"),
        (desc(box=(8, 16)), "box (8, 16)"),
        (array(), "GlobalArray"),
        (None, "None"),
        (np.zeros((32, 32)), "ndarray"),
    ],
)
def test_maps(src: Any, got: str) -> None:
    diagnostic = wrong(src=src)
    assert diagnostic.rule == "OX1053"
    assert got in diagnostic.got
    assert diagnostic.required == "TmaDescriptor[f32, D2, swizzle 64B, box (16, 16)]"


@pytest.mark.parametrize(
    ("out", "got"),
    [
        (array(dtype=ox.tf32), "GlobalArray[tf32, D2]"),
        (array((32,)), "GlobalArray[f32, D1]"),
        (desc(), "TmaDescriptor"),
        (np.zeros((32, 32), np.float32), "ndarray"),
    ],
)
def test_arrays(out: Any, got: str) -> None:
    diagnostic = wrong(out=out)
    assert (diagnostic.rule, diagnostic.got, diagnostic.required) == ("OX1053", got, "GlobalArray[f32, D2]")


def test_arrays_of_others_are_told_how_they_become_ours() -> None:
    theirs = Producer(0x7000, (4,))
    assert wrong(src=theirs).fix.startswith("pass ox.TmaDescriptor.tiled(dev.borrow(x, ox.f32, rank=")
    assert wrong(src=np.zeros((32, 32))).fix == "pass ox.TmaDescriptor.tiled(dev.array(x), box=...)"
    assert wrong(out=theirs).fix.startswith("pass dev.borrow(x, ox.f32, rank=")
    assert wrong(out=desc()).fix.startswith("pass desc.array")


def test_packed_elements_are_no_array() -> None:
    later = ox.Device.open("sim", arch=100)
    diagnostic = wrong(out=later.empty((8, 128), ox.u4x16_align8b))
    assert (diagnostic.rule, diagnostic.required) == ("OX1053", "GlobalArray[u8, D2], or another type of whole bytes")
    assert "parts of bytes" in diagnostic.got


@pytest.mark.parametrize("n", [1.0, math.nan, True, None, "3", np.float64(3), 1 << 63, -(1 << 63) - 1, np.zeros(1)])
def test_indices(n: Any) -> None:
    assert wrong(n=n).rule == "OX1053"


@pytest.mark.parametrize("n", [0, -1, (1 << 63) - 1, np.int32(7)])
def test_indices_that_are_integers(n: Any) -> None:
    assert pipe[1].bind(**{**GOOD, "n": n}).launch.idx == (("n", int(n)),)


@pytest.mark.parametrize("k", [2.5, 2.0, math.nan, math.inf, 1 << 31, True, None, "4", np.float32(4), np.zeros(3), np.zeros(1)])
def test_scalars(k: Any) -> None:
    assert wrong(k=k).rule == "OX1035"


def test_nan_is_named() -> None:
    assert "NaN" in wrong(k=math.nan).required


@pytest.mark.parametrize("flag", [1, 0, None, "True", np.bool_(True)])
def test_plain_parameters_take_their_class(flag: Any) -> None:
    diagnostic = wrong(flag=flag)
    assert (diagnostic.rule, diagnostic.required) == ("OX1053", "bool")


def test_the_number_of_arguments() -> None:
    launch = cast("Any", pipe[1])
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((GOOD["src"],), {}),
        ((*GOOD.values(), False, 1), {}),
        ((), {**GOOD, "more": 1}),
        (tuple(GOOD.values()), {"src": GOOD["src"]}),
    ]
    for positional, named in calls:
        with pytest.raises(ArgumentError) as caught:
            launch.bind(*positional, **named)
        assert caught.value.rules == ("OX1032",)
        assert "flag: bool = False" in str(caught.value)


@pytest.mark.parametrize(
    ("word", "fix"),
    [("stream", ".on(stream)"), ("grid", "in the brackets"), ("threads", "@ox.pipeline(threads=128)"), ("more", "one argument")],
)
def test_what_is_no_argument_of_a_launch(word: str, fix: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        cast("Any", pipe[1]).bind(**{**GOOD, word: 1})
    assert fix in caught.value.diagnostics[0].fix


def test_everything_wrong_at_once() -> None:
    launch = cast("Any", pipe[1])
    with pytest.raises(ArgumentError) as caught:
        launch.bind(desc(box=(8, 16)), array((3,)), 0.5, math.nan, 1)
    assert caught.value.rules == ("OX1053", "OX1053", "OX1053", "OX1035", "OX1053")
    assert [d.what.split("'")[1] for d in caught.value.diagnostics] == ["src", "out", "n", "k", "flag"]


def test_arrays_of_two_devices() -> None:
    other = ox.Device.open("sim-fast")
    assert wrong(out=other.empty((32, 32), ox.f32)).rule == "OX1050"


def test_no_array() -> None:
    @ox.pipeline(threads=32)
    def alone(cta: ox.Cta, n: ox.Idx) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        alone[1](3)
    assert caught.value.rules == ("OX1052",)
