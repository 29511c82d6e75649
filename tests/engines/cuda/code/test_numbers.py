"""Numbers on the host are rounded as the simulator rounds them, for every element type."""

from __future__ import annotations

import math
import struct
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.engines.sim.elements import constant
from oxidecopy.engines.sim.lower_access import bits_of as filled
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import ELEMENT_TYPES, INTEGERS

if TYPE_CHECKING:
    from collections.abc import Iterator

EDGES = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1e9, 464.0, 465.0, 57344.0, 61440.0, 61441.0, 65504.0, 65519.0, 65520.0, 3.4028236e38]
NEAR = [1 + i / 64 + d for i in range(64) for d in (0.0, 2.0**-40, -(2.0**-40), 2.0**-26)]


def numbers(dtype: str) -> Iterator[float]:
    random = Random(dtype)
    if dtype in INTEGERS:
        yield from (0, 1, -1, (1 << 64) - 1, -(1 << 63), 300, 2.7, -2.7)
        yield from (random.randrange(-(1 << 70), 1 << 70) for _ in range(50))
        return
    yield from EDGES
    yield from (x * 2.0**e for x in NEAR for e in (-24, -10, -6, 0, 8))
    yield from (x for x in (struct.unpack("<d", random.randbytes(8))[0] for _ in range(300)) if not math.isnan(x))
    yield from (x for x in (struct.unpack("<f", random.randbytes(4))[0] for _ in range(300)) if not math.isnan(x))


@pytest.mark.parametrize("dtype", sorted(ELEMENT_TYPES))
def test_as_the_simulator_rounds(dtype: str) -> None:
    for value in numbers(dtype):
        with np.errstate(all="ignore"):
            stored = filled(np.array([value], dtype=object if isinstance(value, int) else np.float64), DTYPES[dtype])
            cast = constant(value, dtype)
        assert bits_of(value, dtype, cast=False) == int(stored[0]), f"fill {value!r}"
        assert bits_of(value, dtype, cast=True) == int(cast[0]), f"constant {value!r}"
