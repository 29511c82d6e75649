"""Device code does what its program says: examples, and random programs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import encode, encode_program
from oxidecopy.engines.cuda.code.agents import Cast
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.host.pipeline import Pipeline
from tests.helpers.device_agreement import compare, deal
from tests.helpers.device_emulator import fields
from tests.helpers.device_machine import StuckError, run

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
    lines = listing(image).splitlines()
    assert sum(line.startswith("  ") and line.split()[0].isdigit() for line in lines) == len(image.sites)
    if image.family in abi.PRODUCT_FAMILIES:
        image = encode_program(program, launch, whole=False)
    for seed in range(3):
        dealt = deal(program, launch, seed) if image.counted else None
        compare(program, launch, image, dealt)
        if image.family == abi.MMA_FAMILY:
            break  # `run` knows nothing of the barriers that a contraction waits for in its loop
        run(program, launch, image, dealt, seed)


def test_every_register_that_a_lane_can_compute() -> None:
    """Images whose extents divide nothing keep 32 registers busy: the last one is a record's sign."""
    (fn,) = [p.values[0] for p in recipes() if p.id == "32_convolution_product:convolution:convolution_recipe"]
    verified = fn(ox.Device.open("sim"), np.ones((1, 8, 9, 70), np.float32)).launch.verify()
    program, launch, image = verified.program, verified.assumptions.launch, encode(verified)
    compare(program, launch, image, None)
    records = [fields(image.code, abi.RECORD, pc * abi.RECORD_BYTES) for pc in image.sites]
    assert any(record["op"] == abi.DeviceOp.PLACE and record["imm"][1] < 0 for record in records)


def ring() -> Any:
    """A launch of the ring example: mbarriers, named barriers, several warps per agent."""
    (fn,) = [p.values[0] for p in recipes() if p.id == "10_ring:prefetch:prefetch_recipe"]
    return fn(ox.Device.open("sim")).launch.verify()


@pytest.mark.parametrize("by", [-32, 32])
def test_a_wrong_count_of_threads_at_a_barrier_is_noticed(by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    verified, counts = ring(), Cast.lanes_at
    monkeypatch.setattr(Cast, "lanes_at", lambda *args: counts(*args) + by)
    image = encode(verified)
    with pytest.raises(StuckError):
        run(verified.program, verified.assumptions.launch, image)
    with pytest.raises(AssertionError):
        compare(verified.program, verified.assumptions.launch, image)


def test_a_warp_that_stands_for_a_thread_too_few_is_noticed() -> None:
    def recipe(path: str) -> Any:
        return next(p.values[0] for p in recipes() if p.id.startswith(path))

    verified = recipe("06_prefetch:producer_consumers")(ox.Device.open("sim")).launch.verify()
    image = encode(verified)
    run(verified.program, verified.assumptions.launch, image)
    warps = [warp._replace(threads=31) if warp.threads == 32 else warp for warp in image.warps]
    with pytest.raises(StuckError):
        run(verified.program, verified.assumptions.launch, replace(image, warps=tuple(warps)))


@pytest.mark.unmeasured  # a bound of time
def test_encoding_a_ring_takes_milliseconds() -> None:
    verified = ring()
    times = []
    for _ in range(20):
        start = process_time()
        encode(verified)
        times.append(process_time() - start)
    assert min(times) < 0.005
