"""`ox.transform`, with numpy as the oracle: arithmetic, vectors, numbers, layouts, in place, and what is refused."""

from __future__ import annotations

import math
import random
import sys
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, DTypeError, OxidecopyError, RecordError, ShapeError
from oxidecopy.oneliners import computing, transforming

Array = npt.NDArray[Any]
FACTOR = 3.0


@pytest.fixture(scope="module")
def dev() -> ox.Device:
    return ox.Device.open("sim")


def values(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def test_two_arrays_to_another_type(dev: ox.Device) -> None:
    x, y = values(70, 33), values(70, 33)
    out = ox.transform(lambda a, b: (a * 2 - b).maximum(0).cast(ox.f16), dev.array(x), dev.array(y))
    assert (out.numpy() == np.maximum(x * np.float32(2) - y, 0).astype(np.float16)).all()


def test_vectors_are_repeated_as_numpy_repeats_them(dev: ox.Device) -> None:
    x, row, column = values(40, 64), values(64), values(40, 1)
    said = ox.transform(lambda v, r, c: v * c + r, dev.array(x), dev.array(row), dev.array(column), explain=True)
    assert (said.out.numpy() == x * column + row).all()
    assert not said.temporaries  # both are loaded as one row for a box


def test_a_vector_of_no_row_is_written_out(dev: ox.Device) -> None:
    x, slow = values(3, 4, 5, 16), values(3, 1, 5, 1)
    said = ox.transform(lambda v, s: v + s, dev.array(x), dev.array(slow), explain=True)
    assert (said.out.numpy() == x + slow).all()
    assert said.temporaries


def test_four_inputs_and_a_repeated_first_one(dev: ox.Device) -> None:
    one, x, y, z = values(1, 32), values(6, 32), values(6, 32), values(6, 32)
    out = ox.transform(lambda a, b, c, d: a + b * c - d, *(dev.array(each) for each in (one, x, y, z)))
    assert (out.numpy() == one + x * y - z).all()


def test_layouts_do_not_matter(dev: ox.Device) -> None:
    x, y = values(20, 30), values(30, 20)
    out = dev.empty((20, 30), ox.f32)
    assert (ox.transform(lambda a, b: a - b, dev.array(x, pad=True), dev.array(y).T, out=out).numpy() == x - y.T).all()
    wide = dev.zeros((20, 40), ox.f32)
    ox.transform(lambda a: a, dev.array(x), out=wide[:, 3:33])
    assert (wide.numpy() == np.pad(x, ((0, 0), (3, 7)))).all()


@pytest.mark.parametrize("shape", [None, *computing.SHAPES], ids=lambda shape: "" if shape is None else "-".join(map(str, shape)))
def test_rows_of_odd_lengths_have_room(shape: computing.Shape | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes of whole rows, whose stages are padded: none of them is larger than what a block has."""
    if shape is not None:
        monkeypatch.setattr(computing, "_usual", lambda *_: shape)
    dev = ox.Device.open("sim-fast")
    for dtype, rows, inner, count in ((np.float64, 256, 63, 2), (np.float32, 400, 127, 4), (np.float64, 400, 33, 3)):
        arrays = [dev.array(np.full((rows, inner), i + 1, dtype), pad=True) for i in range(count)]
        assert (ox.transform(lambda *v: sum(v[1:], v[0]), *arrays).numpy() == sum(range(count + 1))).all()


def test_in_place(dev: ox.Device) -> None:
    x = values(9, 64)
    a = dev.array(x)
    assert ox.transform(lambda v: v * v, a, out=a) is a
    assert (a.numpy() == x * x).all()


def test_a_long_row_in_place_and_what_is_left_of_it(dev: ox.Device) -> None:
    x = values(16_500)
    a = dev.array(x)
    said = ox.transform(lambda v: v + v, a, out=a, explain=True)
    assert len(said.launches) == 2
    assert (a.numpy() == x + x).all()  # each element once


def test_numbers_of_the_call(dev: ox.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x = values(9, 64)
    a, out = dev.array(x), dev.empty((9, 64), ox.f32)

    def scaled(number: float) -> Array:
        return ox.transform(lambda v, s: s - v, a, ox.value(number, ox.f32), out=out).numpy()

    assert (scaled(2) == 2 - x).all()
    monkeypatch.setattr("oxidecopy.oneliners.calls.made_ready", None)  # nothing is recorded again
    assert (scaled(-0.5) == np.float32(-0.5) - x).all()


def test_a_method_is_no_global_of_the_same_name(dev: ox.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module may have imported a `relu` that nobody knows: functions are told by what they look up, not by all names in them."""
    monkeypatch.setitem(globals(), "relu", object())
    a, out = dev.array(values(4, 64)), dev.empty((4, 64), ox.f32)

    def turned() -> Array:
        return ox.transform(lambda v: v.relu(), a, out=out).numpy()

    first = turned()
    monkeypatch.setattr("oxidecopy.oneliners.transforming._checked", None)  # nothing is traced again
    assert (turned() == first).all()


def test_what_a_function_takes_from_outside_is_part_of_what_is_recorded(dev: ox.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x = values(4, 64)
    a, out = dev.array(x), dev.empty((4, 64), ox.f32)

    def times(number: float) -> Array:
        return ox.transform(lambda v: v * number, a, out=out).numpy()

    def with_global() -> Array:
        return ox.transform(lambda v: v * FACTOR, a, out=out).numpy()

    def with_function(f: Any) -> Array:
        return ox.transform(lambda v: f(v), a, out=out).numpy()  # noqa: PLW0108  # one code, several functions

    assert (times(2) == x * 2).all()
    assert not np.signbit(times(0.0)[x > 0]).any()
    assert np.signbit(times(-0.0)[x > 0]).all()  # equal, and not the same
    assert (times(5) == x * 5).all()
    assert (with_global() == x * 3).all()
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    assert (with_global() == x * 7).all()
    assert (with_function(lambda v: -v) == -x).all()
    assert (with_function(abs) == abs(x)).all()


class Factor(float):
    """A number that says the same of itself whatever it is, and has more to it."""

    bias = 0.0

    def __repr__(self) -> str:
        return "factor"


def test_numbers_of_other_classes_than_pythons_own_are_asked_each_time(dev: ox.Device) -> None:
    x = values(4, 64)
    a, out = dev.array(x), dev.empty((4, 64), ox.f32)
    for number in (2.0, 5.0):
        factor = Factor(number)
        assert (ox.transform(lambda v: v * factor, a, out=out).numpy() == x * np.float32(number)).all()  # noqa: B023
    for Factor.bias in (1.0, 3.0):
        assert (ox.transform(lambda v: v + factor.bias, a, out=out).numpy() == x + np.float32(Factor.bias)).all()


def test_which_of_two_globals_there_is(dev: ox.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one value, under one name or the other."""

    def either(v: ox.Elem[ox.f32]) -> ox.Elem[ox.f32]:
        try:
            return v * THIS  # type: ignore[name-defined, no-any-return]
        except NameError:
            return v / THAT  # type: ignore[name-defined, no-any-return]  # noqa: F821

    x = values(4, 64)
    a, out = dev.array(x), dev.empty((4, 64), ox.f32)
    for name, wanted in (("THIS", x * 2), ("THAT", x / 2)):
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, 2.0)
            assert (ox.transform(either, a, out=out).numpy() == wanted).all()


def test_what_a_bound_method_records_may_change(dev: ox.Device) -> None:
    class Scale:
        factor = 2.0

        def by(self, v: ox.Elem[ox.f32]) -> ox.Elem[ox.f32]:
            return v * self.factor

    x, scale = values(4, 8), Scale()
    a, out = dev.array(x), dev.empty((4, 8), ox.f32)
    for scale.factor in (2.0, 5.0):
        assert (ox.transform(scale.by, a, out=out).numpy() == x * np.float32(scale.factor)).all()


@pytest.mark.parametrize("by_name", [False, True])
def test_what_is_left_out_may_change(dev: ox.Device, *, by_name: bool) -> None:
    def by(number: float) -> Any:
        return (lambda v, *, w=number: v * w) if by_name else (lambda v, w=number: v * w)

    x, y = values(4, 8), values(4, 8) + 1
    a, b, out = dev.array(x), dev.array(y), dev.empty((4, 8), ox.f32)
    for number in (2.0, 5.0):
        assert (ox.transform(by(number), a, out=out).numpy() == x * np.float32(number)).all()
        if not by_name:
            assert (ox.transform(by(number), a, b, out=out).numpy() == x * y).all()


def test_collected_inputs_are_counted(dev: ox.Device) -> None:
    sums: Any = lambda *inputs: inputs[0] + inputs[-1]  # noqa: E731
    x, y = values(4, 8), values(4, 8) + 1
    a, b, out = dev.array(x), dev.array(y), dev.empty((4, 8), ox.f32)
    for _ in range(2):
        assert (ox.transform(sums, a, out=out).numpy() == x + x).all()
        assert (ox.transform(sums, a, b, out=out).numpy() == x + y).all()


def test_what_a_function_imports_may_change(dev: ox.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_of = ModuleType("settings_of_a_function")
    monkeypatch.setitem(sys.modules, settings_of.__name__, settings_of)

    def scaled(v: ox.Elem[ox.f32]) -> ox.Elem[ox.f32]:
        from settings_of_a_function import factor  # type: ignore[import-not-found]  # made above

        return v * factor  # type: ignore[no-any-return]

    x = values(4, 8)
    a, out = dev.array(x), dev.empty((4, 8), ox.f32)
    for number in (2.0, 5.0):
        settings_of.__dict__["factor"] = number
        assert (ox.transform(scaled, a, out=out).numpy() == x * np.float32(number)).all()


def test_what_modules_and_classes_hold_may_change(dev: ox.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    class Holder:
        factor = 2.0

    module = ModuleType("settings")
    x = values(4, 8)
    a, out = dev.array(x), dev.empty((4, 8), ox.f32)
    for holder in (Holder, module):
        for factor in (2.0, 5.0):
            monkeypatch.setattr(holder, "factor", factor, raising=False)
            assert (ox.transform(lambda v: v * holder.factor, a, out=out).numpy() == x * np.float32(factor)).all()  # noqa: B023
    assert transforming._is_told(math)
    assert transforming._is_told(math.sqrt)
    assert transforming._is_told(ox)
    assert not transforming._is_told(random.random)


def test_errors_of_the_function_itself_pass(dev: ox.Device) -> None:
    def wrong(v: ox.Elem[ox.f32]) -> ox.Elem[ox.f32]:
        return len(3)  # type: ignore[arg-type,return-value]  # the caller's mistake, and Python's word for it

    with pytest.raises(TypeError, match="has no len"):
        ox.transform(wrong, dev.array(values(4, 8)))


def test_arrays_of_numpy() -> None:
    x, out = values(5, 7), np.zeros((5, 7), np.float32)
    assert ox.transform(lambda v: v + 1, x, out=out) is out
    assert (out == x + 1).all()


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    shape=st.lists(st.sampled_from((1, 2, 5, 16)), min_size=1, max_size=4),
    ones=st.lists(st.booleans(), min_size=4, max_size=4),
    cut=st.integers(0, 2),
    pad=st.booleans(),
)
def test_any_shapes_are_repeated_as_numpy_does(shape: list[int], ones: list[bool], cut: int, pad: bool) -> None:
    dev = ox.Device.open("sim")
    other = [1 if one else n for n, one in zip(shape, ones, strict=False)][min(cut, len(shape) - 1) :]
    x, y = values(*shape), values(*other)
    out = ox.transform(lambda a, b: a * 2 + b, dev.array(x, pad=pad), dev.array(y))
    assert (out.numpy() == x * np.float32(2) + y).all()


def refused(rule: str, error: type[OxidecopyError], *args: Any, **options: Any) -> None:
    with pytest.raises(error) as caught:
        ox.transform(*args, **options)
    assert rule in caught.value.rules
    assert caught.value.diagnostics[0].site is not None
    assert caught.value.diagnostics[0].site.file == __file__


def test_what_is_refused(dev: ox.Device) -> None:
    a = dev.array(values(8, 64))
    refused("OX1200", ShapeError, lambda v, w: v + w, a, dev.array(values(7, 64)))
    refused("OX1200", ShapeError, lambda v: v, a, out=dev.empty((64, 8), ox.f32))
    refused("OX1201", DTypeError, lambda v: v, a, out=dev.empty((8, 64), ox.f16))
    refused("OX1202", ArgumentError, lambda v: v, a[1:], out=a[:-1])
    refused("OX1204", ArgumentError, lambda v, w: v + w, a, [1.0])
    refused("OX1205", ArgumentError, lambda: None)
    refused("OX1205", ArgumentError, a, lambda v: v)
    refused("OX1205", ArgumentError, lambda v, w: v + w, a, 2.0)
    refused("OX1205", ArgumentError, lambda v, w: v + w, a, np.float32(2))
    refused("OX1205", ArgumentError, lambda v: v, ox.value(2.0, ox.f32))
    refused("OX1205", ArgumentError, lambda *v: v[0], *([a] * 5))
    refused("OX1125", RecordError, lambda v, w: v, a)
    refused("OX1009", RecordError, lambda v: v**2, a)
    refused("OX1009", RecordError, np.exp, a)
    refused("OX1123", DTypeError, lambda v, w: v + w, a, dev.array(values(8, 64).astype(np.float16)))
    with pytest.raises(ArgumentError):
        ox.value("x", ox.f32)  # type: ignore[arg-type]
    assert repr(ox.value(1.5, ox.f32)) == "ox.value(1.5, ox.f32)"


def test_what_a_function_evaluates_may_change(dev: ox.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    a = dev.array(np.ones((2, 4), np.float32))
    for fn in (lambda v: v * globals()["FACTOR"], lambda v: v * eval("FACTOR")):
        for factor in (2.0, 3.0):
            monkeypatch.setitem(globals(), "FACTOR", factor)
            assert (ox.transform(fn, a).numpy() == factor).all()
