"""Every lesson on the GPU, on its own data and on a user's: byte for byte what numpy says, or within what the lesson allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxidecopy.host.compare import difference
from oxidecopy.host.device import Device
from oxidecopy.host.recipe import RecipeFunction
from tests.test_examples import CASES, GOOD, TWINS, Case, example, recipes

pytestmark = pytest.mark.gpu
LESSONS = [pytest.param(recipe, id=f"{path.stem}-{recipe.name}") for path, recipe in GOOD]
ON_USERS_DATA = [pytest.param(case, shape, id=f"{case.lesson}-{case.pipeline}-{shape}") for case in CASES for shape in case.shapes]


@pytest.mark.parametrize("recipe", LESSONS)
def test_on_its_own_data(dev: Device, recipe: RecipeFunction) -> None:
    for _ in range(2):  # once more on the same device: counters and reports start anew
        made = recipe(dev)
        made.launch()
        for name, array in made.outputs.items():
            assert difference(name, array.numpy(), made.expected[name], made.within.get(name, 0.0)) is None


@pytest.mark.parametrize(("case", "shape"), ON_USERS_DATA)
def test_on_a_users_data(dev: Device, case: Case, shape: tuple[int, ...]) -> None:
    x: Any = (np.random.default_rng(sum(shape)).standard_normal(shape) * 99).astype(case.dtype)
    (recipe,) = [recipe for name, recipe in recipes(example(case.lesson)) if name == case.pipeline and not recipe.refused]
    made = recipe(dev, x)
    made.launch()
    first = next(iter(made.outputs))
    assert difference(first, made.outputs[first].numpy(), case.result(x), made.within.get(first, 0.0)) is None


@pytest.mark.parametrize("twin", [pytest.param(recipe, id=f"{path.stem}-{recipe.name}") for path, recipe in TWINS])
def test_twins_are_refused_before_they_reach_the_device(dev: Device, twin: RecipeFunction) -> None:
    from oxidecopy.errors import OxidecopyError

    with pytest.raises(OxidecopyError) as caught:
        twin(dev).launch()
    assert twin.refused in caught.value.rules


def test_there_are_lessons() -> None:
    assert len(LESSONS) > 20
    assert all(isinstance(path, Path) for path, _ in GOOD)
