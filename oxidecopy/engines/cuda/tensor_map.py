"""`TensorMap` and an address -> the driver's 128 bytes. The driver counts dimensions from the innermost one: that order exists here only.

Encoding costs microseconds, and the bytes differ by architecture in what the address is not: so each map is encoded once per engine, by
its parameters, and pointed elsewhere by cuTensorMapReplaceAddress.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Final, final

from oxidecopy.engines.cuda.abi import MAP_BYTES
from oxidecopy.engines.cuda.driver import check
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.program.tensor_map import TensorMap

if TYPE_CHECKING:
    from cuda.bindings.driver import CUtensorMap

    from oxidecopy.engines.cuda.driver import Driver

_CALLS: Final = {"tiled": "cuTensorMapEncodeTiled", "im2col": "cuTensorMapEncodeIm2col", "im2col_wide": "cuTensorMapEncodeIm2colWide"}
_WORD: Final = 8
TEMPLATES_MAX: Final = 1024  # encoded maps kept per engine, 128 bytes each; far more than a process has kinds of


def driver_arguments(tensor_map: TensorMap, address: int) -> MapParameters:
    """The arguments as the driver takes them: innermost dimension first."""
    given = MapParameters.of(tensor_map, address).turned()
    # The driver wants a pointer to strides for rank 1, too, though it reads none (measured: null is INVALID_VALUE).
    return given if given.global_strides else replace(given, global_strides=(0,))


@final
class MapEncoder:
    """Encodes maps for one device; its context must be current (measured: INVALID_CONTEXT without one)."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._templates: dict[TensorMap, CUtensorMap] = {}
        self._plain: dict[TensorMap, bool] = {}
        self._lock = Lock()  # a template is written and read out as one step

    def encode(self, tensor_map: TensorMap, address: int) -> bytes:
        """The 128 bytes of `tensor_map` over memory at `address` (a multiple of 16, not null)."""
        with self._lock:
            template = self._templates.get(tensor_map)
            if template is None:
                if len(self._templates) >= TEMPLATES_MAX:
                    self._templates.clear()
                template = self._templates[tensor_map] = self._encoded(driver_arguments(tensor_map, address))
            else:
                check(self._driver.cuTensorMapReplaceAddress(template, address), "cuTensorMapReplaceAddress")
            return ctypes.string_at(int(template.getPtr()), MAP_BYTES)

    def begins_with_address(self, tensor_map: TensorMap, address: int) -> bool:
        """In its 128 bytes the address is the first word, and nothing else depends on it: seen by encoding it for three addresses."""
        known = self._plain.get(tensor_map)
        if known is None:
            tried = [address, 0x1234_5678_9AB0, 0x7F00_0000_0010]
            found = [(at, self.encode(tensor_map, at)) for at in tried]
            known = len({data[_WORD:] for _, data in found}) == 1 and all(
                data[:_WORD] == at.to_bytes(_WORD, "little") for at, data in found
            )
            if len(self._plain) >= TEMPLATES_MAX:
                self._plain.clear()
            self._plain[tensor_map] = known
        return known

    def _encoded(self, of: MapParameters) -> CUtensorMap:
        driver = self._driver
        dtype, swizzle = driver.CUtensorMapDataType(of.dtype), driver.CUtensorMapSwizzle(of.swizzle)
        interleave, promotion = driver.CUtensorMapInterleave(of.interleave), driver.CUtensorMapL2promotion(of.l2_promotion)
        fill = driver.CUtensorMapFloatOOBfill(of.oob_fill)
        dims, strides = [driver.cuuint64_t(n) for n in of.global_dim or ()], [driver.cuuint64_t(n) for n in of.global_strides or ()]
        box, steps = [driver.cuuint32_t(n) for n in of.box_dim or ()], [driver.cuuint32_t(n) for n in of.element_strides or ()]
        lower, upper = of.lower or (), of.upper or ()
        at, channels, pixels = of.global_address, of.channels, of.pixels
        if of.kind == "tiled":
            answer = driver.cuTensorMapEncodeTiled(dtype, of.rank, at, dims, strides, box, steps, interleave, swizzle, promotion, fill)
        elif of.kind == "im2col":
            answer = driver.cuTensorMapEncodeIm2col(
                dtype, of.rank, at, dims, strides, lower, upper, channels, pixels, steps, interleave, swizzle, promotion, fill
            )
        else:
            mode = driver.CUtensorMapIm2ColWideMode(of.wide_mode)
            answer = driver.cuTensorMapEncodeIm2colWide(
                dtype, of.rank, at, dims, strides, lower[0], upper[0], channels, pixels, steps, interleave, mode, swizzle, promotion, fill
            )
        return check(answer, _CALLS[of.kind], f"{of}")
