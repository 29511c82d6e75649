"""Tensor maps as the driver takes them: its order, its enumerators, its addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from oxidecopy.engines.cuda import tensor_map
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.tensor_map import MapEncoder, driver_arguments
from oxidecopy.errors import DriverError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.maps.enumerators import FILLS, INTERLEAVES, PROMOTIONS
from oxidecopy.program.map_bytes import decode
from oxidecopy.program.tensor_map import TensorMap
from tests.helpers.fake_driver import FakeDriver

MAP = TensorMap(
    dtype="f32",
    global_dim=(7, 100, 50),
    global_strides=(208 * 100, 208),
    box_dim=(1, 8, 16),
    element_strides=(2, 3, 1),
    swizzle="64B",
    l2_promotion=256,
    oob_fill="nan",
)


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    driver = FakeDriver()
    with PrimaryContext(driver, 0):
        yield driver


def test_the_driver_counts_from_the_innermost_dimension() -> None:
    of = driver_arguments(MAP, 0x1000)
    assert (of.dtype, of.rank, of.global_address) == (7, 3, 0x1000)
    assert of.global_dim == (50, 100, 7)
    assert of.global_strides == (208, 208 * 100)
    assert of.box_dim == (16, 8, 1)
    assert of.element_strides == (1, 3, 2)
    assert (of.interleave, of.swizzle, of.l2_promotion, of.oob_fill) == (0, 2, 3, 1)


def test_one_dimension_has_a_stride_that_nobody_reads() -> None:
    flat = TensorMap(dtype="u8", global_dim=(64,), global_strides=(), box_dim=(16,), element_strides=(1,))
    assert driver_arguments(flat, 0).global_strides == (0,)


def test_every_choice_has_an_enumerator(driver: FakeDriver) -> None:
    for promotion in PROMOTIONS:
        driver.CUtensorMapL2promotion(driver_arguments(replace(MAP, l2_promotion=promotion), 0).l2_promotion)
    for fill in FILLS:
        driver.CUtensorMapFloatOOBfill(driver_arguments(replace(MAP, oob_fill=fill), 0).oob_fill)
    for swizzle in EVERY_SWIZZLE:
        driver.CUtensorMapSwizzle(driver_arguments(replace(MAP, swizzle=swizzle), 0).swizzle)
    for interleave in INTERLEAVES:
        driver.CUtensorMapInterleave(driver_arguments(replace(MAP, interleave=interleave), 0).interleave)
    for dtype in DTYPES:
        driver.CUtensorMapDataType(driver_arguments(replace(MAP, dtype=dtype), 0).dtype)


IM2COL = replace(
    MAP,
    mode="im2col",
    global_dim=(4, 8, 9, 64),
    global_strides=(18432, 2304, 256),
    box_dim=(14, 16),
    element_strides=(1, 2, 3, 1),
    lower=(-1, -2),
    upper=(-3, -4),
)


def test_an_im2col_map_has_its_own_call(driver: FakeDriver) -> None:
    """w comes first in the corners as in all arrays."""
    of = driver_arguments(IM2COL, 0x1000)
    assert (of.kind, of.rank, of.lower, of.upper, of.channels, of.pixels) == ("im2col", 4, (-2, -1), (-4, -3), 16, 14)
    encoder = MapEncoder(driver)
    assert len(encoder.encode(IM2COL, 0x1000)) == 128
    assert driver.calls["cuTensorMapEncodeIm2col"] == 1
    (made,) = encoder._templates.values()
    dims, strides, steps, corners = (64, 9, 8, 4), (256, 2304, 18432), (1, 3, 2, 1), (-2, -1, -4, -3)
    assert made.arguments == (7, 4, dims, strides, steps, *corners, 16, 14, 0, 2, 3, 1)  # type: ignore[attr-defined]  # the fake's


@pytest.mark.parametrize(
    "of", [MAP, replace(MAP, dtype="tf32", swizzle="128B", oob_fill="zero", l2_promotion=0), IM2COL], ids=["tiled", "tf32", "im2col"]
)
def test_the_bytes_say_what_was_encoded(driver: FakeDriver, of: TensorMap) -> None:
    """Through the driver's order and back: no argument changes places."""
    decoded = decode(MapEncoder(driver).encode(of, 0x7F00_0000_1000))
    assert (decoded.tensor_map, decoded.address, decoded.unknown, decoded.oddities) == (of, 0x7F00_0000_1000, (), ())


@pytest.mark.parametrize(("mode", "enumerator"), [("im2col_w", 0), ("im2col_w128", 1)])
def test_a_wide_map_has_its_own_call(driver: FakeDriver, mode: str, enumerator: int) -> None:
    encoder = MapEncoder(driver)
    encoder.encode(replace(IM2COL, mode=mode, lower=(-2,), upper=(-4,)), 0x1000)
    assert driver.calls["cuTensorMapEncodeIm2colWide"] == 1
    (made,) = encoder._templates.values()
    dims, strides, steps = (64, 9, 8, 4), (256, 2304, 18432), (1, 3, 2, 1)
    assert made.arguments == (7, 4, dims, strides, steps, -2, -4, 16, 14, 0, enumerator, 2, 3, 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("mode", "call"), [("im2col", "Im2col"), ("im2col_w", "Im2colWide")])
def test_a_refusal_names_the_call(driver: FakeDriver, mode: str, call: str) -> None:
    with pytest.raises(DriverError) as caught:
        MapEncoder(driver).encode(replace(IM2COL, mode=mode), 0x1001)
    assert caught.value.call == f"cuTensorMapEncode{call}"


def test_a_map_is_encoded_once_and_pointed_elsewhere_after_that(driver: FakeDriver) -> None:
    encoder = MapEncoder(driver)
    one, other = encoder.encode(MAP, 0x1000), encoder.encode(MAP, 0x2000)
    assert len(one) == len(other) == 128
    assert (one[:8], other[:8]) == (bytes([0, 0x10, *bytes(6)]), bytes([0, 0x20, *bytes(6)]))
    assert one[8:] == other[8:]
    assert encoder.encode(MAP, 0x1000) == one
    assert driver.calls["cuTensorMapEncodeTiled"] == 1
    assert driver.calls["cuTensorMapReplaceAddress"] == 2
    assert encoder.encode(replace(MAP, l2_promotion=0), 0x1000)[8:] != one[8:]
    assert driver.calls["cuTensorMapEncodeTiled"] == 2


def test_what_was_read_out_is_a_copy(driver: FakeDriver) -> None:
    encoder = MapEncoder(driver)
    first = encoder.encode(MAP, 0x1000)
    before = bytes(first)
    encoder.encode(MAP, 0x3000)
    assert first == before


def test_templates_do_not_grow_without_bound(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_map, "TEMPLATES_MAX", 2)
    encoder = MapEncoder(driver)
    for extent in (16, 32, 48, 64, 80):
        encoder.encode(replace(MAP, global_dim=(7, 100, extent)), 0x1000)
    assert len(encoder._templates) <= 2


@pytest.mark.parametrize("address", [0, 8, 0x1001])
def test_addresses_that_the_driver_refuses(driver: FakeDriver, address: int) -> None:
    encoder = MapEncoder(driver)
    with pytest.raises(DriverError) as caught:
        encoder.encode(MAP, address)
    assert "cuTensorMapEncodeTiled" in str(caught.value)
    encoder.encode(MAP, 0x1000)
    with pytest.raises(DriverError) as caught:
        encoder.encode(MAP, address)
    assert "cuTensorMapReplaceAddress" in str(caught.value)
