"""Device code does what its program says: examples, and random programs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.code import encode
from oxidecopy.host.pipeline import Pipeline
from tests.helpers.device_agreement import compare, deal

EXAMPLES = Path(__file__).parents[4] / "examples"


def recipes() -> Iterator[Any]:
    """Every recipe of the examples that is not one to be refused."""
    for path in sorted(EXAMPLES.glob("[0-9]*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, pipeline in vars(module).items():
            if isinstance(pipeline, Pipeline):
                yield from (pytest.param(r.fn, id=f"{path.stem}:{name}:{r.name}") for r in pipeline.recipes if not r.refused)


@pytest.mark.parametrize("recipe", list(recipes()))
def test_examples(recipe: Any) -> None:
    verified = recipe(ox.Device.open("sim")).launch.verify()
    image = encode(verified)
    program, launch = verified.program, verified.assumptions.launch
    if not image.counted:
        compare(program, launch, image)
        return
    for seed in range(5):
        compare(program, launch, image, deal(program, launch, seed))
