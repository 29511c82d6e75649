"""Recipes stay the functions they are, and are found by their pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import oxidecopy as ox
from oxidecopy.host.recipe import RecipeFunction

DEV = ox.Device.open("sim")


@ox.pipeline(threads=32)
def pipe(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None: ...


@pipe.recipe
def plain(dev: ox.Device) -> ox.Recipe:
    out = dev.empty((8,), ox.f32)
    return ox.Recipe(launch=pipe[1].bind(out), outputs={"out": out})


@pipe.recipe(refused="OX3004")
def broken(dev: ox.Device, x: npt.NDArray[Any] | None = None) -> ox.Recipe:
    assert x is not None
    return plain(dev)


def test_recipes_of_a_pipeline() -> None:
    assert [(r.name, r.inputs, r.refused) for r in pipe.recipes] == [("plain", 0, ""), ("broken", 1, "OX3004")]
    assert all(isinstance(r, RecipeFunction) for r in pipe.recipes)


def test_recipes_can_be_called() -> None:
    assert plain(DEV).expected == {}
    assert pipe.recipes[1](DEV, np.zeros(3)).outputs.keys() == {"out"}
