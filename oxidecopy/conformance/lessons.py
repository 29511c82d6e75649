"""The lessons that come with the package, as cases: each launch that must run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from runpy import run_path
from typing import TYPE_CHECKING

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made
from oxidecopy.typed.sites import LESSON_PLACES

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.host.recipe import RecipeFunction


def cases() -> Iterator[Case]:
    """All of this module."""
    paths = next((found for place in LESSON_PLACES if (found := sorted(place.glob("[0-9]*.py")))), [])
    for path in paths:
        emitted = ".contract(" not in path.read_text(encoding="utf-8")  # contractions are a kernel of their own
        for name, value in run_path(str(path)).items():
            if isinstance(value, ox.Pipeline):
                good = [recipe for recipe in value.recipes if not recipe.refused]
                for recipe in good:
                    words = f"{path.stem}: {name}" + (f" {recipe.name}" if len(good) > 1 else "")
                    yield Case(name=words, group="lessons", make=partial(_made, recipe), whole=False, emitted=emitted)


def _made(recipe: RecipeFunction, dev: Device) -> Made:
    made = recipe(dev)
    return Made(launch=made.launch, outputs=dict(made.outputs), within=made.within)
