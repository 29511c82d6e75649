"""Random maps over rings: what is recognised as a whole does what the program does, event by event; and what is not says why.

More with another seed: `RANDOM_MAPS=1000:500 pytest tests/engines/cuda/code/test_random_maps.py` draws 500 from seed 1000 on.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any, Final

import pytest

import oxidecopy as ox
from oxidecopy.conformance.applied import Plan, made
from oxidecopy.engines.cuda.code import encode
from oxidecopy.errors import DescriptorError
from tests.helpers.device_agreement import compare, deal

FIRST, COUNT = (int(n) for n in os.environ.get("RANDOM_MAPS", "0:30").split(":"))
TYPES: Final = (ox.f32, ox.f16, ox.bf16, ox.i32, ox.u8)
SHARED: Final = 227 << 10
APPLIES: Final = 8_192  # bytes of a stage from which on programs are recognised
RARE: Final = 0.03  # what is not recognised is drawn more often by far


def added(out: type[Any]) -> Any:
    """A function of any number of elements, and a scalar."""

    def fn(*v: Any) -> Any:
        *parts, scale = v
        total = parts[0].cast(ox.f32) * scale
        for part in parts[1:]:
            total += part.cast(ox.f32)
        return total.cast(out)

    return fn


def drawn(seed: int) -> tuple[Plan, int]:
    """A plan that fits into shared memory, and the bytes of a stage."""
    random = Random(seed)
    while True:
        rank = random.choice((1, 2, 2, 2, 3, 4, 5))
        inner = random.choice((16, 32, 64, 128, 256))
        box = (*(random.choice((1, 2, 3, 8, 12, 16, 24, 33)) for _ in range(rank - 1)), inner)
        shape = tuple(n * random.randrange(1, 4) + random.choice((0, 0, 3)) for n in box[:-1])
        inputs = tuple(random.choice(TYPES) for _ in range(random.choice((1, 1, 2, 2, 3))))
        spread = tuple(random.choice(("", "", "column")) if i and rank > 1 else "" for i in range(len(inputs)))
        row = inner * random.randrange(1, 4) + random.choice((0, 16))
        out = random.choice(TYPES)
        plan = Plan(
            fn=added(out), inputs=inputs, out=out, box=box, shape=(*shape, row), stages=random.choice((1, 2, 2, 3, 5)),
            staged=random.choice((1, 2, 3)), warps=random.choice((1, 2, 3, 8, 12)), spread=spread,
        )  # fmt: skip
        elements = [inner if way else _product(box) for way in spread]
        stage = sum(n * t.info.nbytes for n, t in zip(elements, inputs, strict=True))
        padded = sum(-(-n * t.info.nbytes // 1024) for n, t in zip(elements, inputs, strict=True)) * 1024
        out_tile = -(-_product(box) * out.info.nbytes // 1024) * 1024
        fits = padded * plan.stages + out_tile * plan.staged + 1024 <= SHARED and out_tile <= 64 << 10
        if fits and ((stage >= APPLIES and plan.stages > 1) or random.random() < RARE):
            return plan, stage


def _product(numbers: tuple[int, ...]) -> int:
    total = 1
    for n in numbers:
        total *= n
    return total


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_what_is_recognised_is_the_program(seed: int) -> None:
    plan, stage = drawn(seed)
    try:
        proof = made(plan, ox.Device.open("sim-fast")).launch.verify()
    except DescriptorError:  # boxes and rows that are no multiples of 16 bytes, and the like
        return
    image, launch = encode(proof), proof.assumptions.launch
    dealt = set(image.shares.values()) == {"counter"}  # not where there is one tile
    whole = dealt and stage >= APPLIES and plan.stages > 1
    assert (image.family == "apply", bool(image.left)) == (whole, dealt and not whole), image.left
    if whole:
        for number in (0, seed + 1):
            compare(proof.program, launch, image, deal(proof.program, launch, number))
