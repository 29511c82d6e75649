"""`TensorMap` and an address -> the driver's 128 bytes. The driver counts dimensions from the innermost one: that order exists here only.

Encoding costs microseconds, and the bytes differ by architecture in what the address is not: so each map is encoded once per engine, by
its parameters, and pointed elsewhere by cuTensorMapReplaceAddress.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final, final

from oxidecopy.engines.cuda.abi import MAP_BYTES
from oxidecopy.engines.cuda.driver import check
from oxidecopy.program.tensor_map import TensorMap

if TYPE_CHECKING:
    from cuda.bindings.driver import CUtensorMap

    from oxidecopy.engines.cuda.driver import Driver

# Names of this package -> enumerators of the driver API (cuda.h, CUtensorMapInterleave and the like).
INTERLEAVES: Final = {"none": 0, "16B": 1, "32B": 2}
PROMOTIONS: Final = {0: 0, 64: 1, 128: 2, 256: 3}
FILLS: Final = {"zero": 0, "nan": 1}
TEMPLATES_MAX: Final = 1024  # encoded maps kept per engine, 128 bytes each; far more than a process has kinds of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeArguments:
    """The arguments of cuTensorMapEncodeTiled but for the address, as the driver takes them: innermost dimension first."""

    dtype: int
    rank: int
    global_dim: tuple[int, ...]
    global_strides: tuple[int, ...]
    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: int
    swizzle: int
    l2_promotion: int
    oob_fill: int


def encode_arguments(tensor_map: TensorMap) -> EncodeArguments:
    # The driver wants a pointer to strides for rank 1, too, though it reads none (measured: null is INVALID_VALUE).
    strides = tensor_map.global_strides[::-1] or (0,)
    return EncodeArguments(
        dtype=tensor_map.dtype_info.driver_enum,
        rank=tensor_map.rank,
        global_dim=tensor_map.global_dim[::-1],
        global_strides=strides,
        box_dim=tensor_map.box_dim[::-1],
        element_strides=tensor_map.element_strides[::-1],
        interleave=INTERLEAVES[tensor_map.interleave],
        swizzle=tensor_map.swizzle_info.driver_enum,
        l2_promotion=PROMOTIONS[tensor_map.l2_promotion],
        oob_fill=FILLS[tensor_map.oob_fill],
    )


@final
class MapEncoder:
    """Encodes maps for one device; its context must be current (measured: INVALID_CONTEXT without one)."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._templates: dict[TensorMap, CUtensorMap] = {}
        self._lock = Lock()  # a template is written and read out as one step

    def encode(self, tensor_map: TensorMap, address: int) -> bytes:
        """The 128 bytes of `tensor_map` over memory at `address` (a multiple of 16, not null)."""
        with self._lock:
            template = self._templates.get(tensor_map)
            if template is None:
                if len(self._templates) >= TEMPLATES_MAX:
                    self._templates.clear()
                template = self._templates[tensor_map] = self._encoded(encode_arguments(tensor_map), address)
            else:
                check(self._driver.cuTensorMapReplaceAddress(template, address), "cuTensorMapReplaceAddress")
            return ctypes.string_at(int(template.getPtr()), MAP_BYTES)

    def _encoded(self, of: EncodeArguments, address: int) -> CUtensorMap:
        driver = self._driver
        wide, narrow = driver.cuuint64_t, driver.cuuint32_t
        answer = driver.cuTensorMapEncodeTiled(
            driver.CUtensorMapDataType(of.dtype),
            of.rank,
            address,
            [wide(n) for n in of.global_dim],
            [wide(n) for n in of.global_strides],
            [narrow(n) for n in of.box_dim],
            [narrow(n) for n in of.element_strides],
            driver.CUtensorMapInterleave(of.interleave),
            driver.CUtensorMapSwizzle(of.swizzle),
            driver.CUtensorMapL2promotion(of.l2_promotion),
            driver.CUtensorMapFloatOOBfill(of.oob_fill),
        )
        return check(answer, "cuTensorMapEncodeTiled", f"{of}")
