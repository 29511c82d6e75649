"""Plain values from outside a pipeline function are part of its recording: when one changes, the next launch records again."""

from __future__ import annotations

from typing import Any

import numpy as np

import oxidecopy as ox
from oxidecopy.host.captured import captured

LEVEL = 1.0
SHIFT = 1


@ox.pipeline(threads=32)
def fill(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
    tile = cta.shared(ox.f32, (32,), align=ox.A128)
    cta.fill(tile, LEVEL)
    cta.sync()
    cta.store(out, tile, (0,))


def test_a_global_that_changes_is_recorded_again(monkeypatch: Any) -> None:
    out = ox.Device.open("sim").zeros((32,), ox.f32)
    fill[1](out)
    np.testing.assert_array_equal(out.numpy(), 1)
    monkeypatch.setitem(globals(), "LEVEL", 2.0)
    fill[1](out)
    np.testing.assert_array_equal(out.numpy(), 2)


def test_a_closure_value_that_changes_is_recorded_again() -> None:
    level = 3.0

    @ox.pipeline(threads=32)
    def closed(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
        tile = cta.shared(ox.f32, (32,), align=ox.A128)
        cta.fill(tile, level)
        cta.sync()
        cta.store(out, tile, (0,))

    out = ox.Device.open("sim").zeros((32,), ox.f32)
    for wanted in (3.0, 4.0):
        level = wanted
        closed[1](out)
        np.testing.assert_array_equal(out.numpy(), wanted)


def test_what_is_captured() -> None:
    flag, nothing = True, object()

    def fn() -> object:
        def inner() -> int:
            return SHIFT

        return [flag, nothing, inner, np]

    assert captured(fn) == (("SHIFT", ("int", 1)), ("flag", ("bool", True)))
    assert captured(len) == ()


def test_a_closure_that_is_not_assigned_yet() -> None:
    def fn() -> int:
        return later

    assert captured(fn) == ()
    later = 1
    assert captured(fn) == (("later", ("int", 1)),)


def test_the_same_values_share_one_recording() -> None:
    out = ox.Device.open("sim").zeros((32,), ox.f32)
    assert fill[1].bind(out).program is fill[1].bind(out).program
