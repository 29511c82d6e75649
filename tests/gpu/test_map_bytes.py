"""The driver's own bytes, read back: `oxidecopy show descriptor` knows where this device's driver puts what."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.tensor_map import MapEncoder
from oxidecopy.engines.sim.map_image import encoded
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.map_bytes import decode
from oxidecopy.program.tensor_map import TensorMap

pytestmark = pytest.mark.gpu
ADDRESS = 0x7F00_1234_5600


def maps() -> Iterator[TensorMap]:
    """Every type, rank, swizzle, fill and promotion that 9.0 has, with extents, strides and steps that differ."""
    names = [name for name, info in DTYPES.items() if info.driver_enum <= 12 and name not in ("e4m3", "e5m2")]
    for number, (name, rank) in enumerate(product(names, range(1, 6))):
        inner = 16 // DTYPES[name].nbytes * 2  # 32 bytes fit every span
        yield TensorMap(
            dtype=name,
            global_dim=(*(3 + 7 * number + i for i in range(rank - 1)), 1000 + number),
            global_strides=tuple(16 * (1 << (9 + 6 * i)) + 16 * number for i in reversed(range(rank - 1))),
            box_dim=(*(1 + (number + i) % 5 for i in range(rank - 1)), inner),
            element_strides=(*(1 + (number + i) % 8 for i in range(rank - 1)), 1),
            swizzle=("none", "32B", "64B", "128B")[number % 4],
            l2_promotion=(0, 64, 128, 256)[number // 2 % 4],
            oob_fill="nan" if DTYPES[name].is_float and number % 3 else "zero",
        )


def test_what_the_driver_encodes_is_read_back(engine: CudaEngine) -> None:
    encoder = MapEncoder(engine.context.driver)
    with engine.context:
        for of in maps():
            data = encoder.encode(of, ADDRESS)
            found = decode(data)
            assert (found.tensor_map, found.address) == (of, ADDRESS)
            assert (found.unknown, found.oddities) == ((), ())
            assert data == encoded(of, ADDRESS)
