"""Tensor maps as the driver takes them: its order, its enumerators, its addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from oxidecopy.engines.cuda import tensor_map
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.tensor_map import MapEncoder, encode_arguments
from oxidecopy.errors import DriverError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.typed.tiled_rules import L2_PROMOTIONS, OOB_FILLS
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
    of = encode_arguments(MAP)
    assert (of.dtype, of.rank) == (7, 3)
    assert of.global_dim == (50, 100, 7)
    assert of.global_strides == (208, 208 * 100)
    assert of.box_dim == (16, 8, 1)
    assert of.element_strides == (1, 3, 2)
    assert (of.interleave, of.swizzle, of.l2_promotion, of.oob_fill) == (0, 2, 3, 1)


def test_one_dimension_has_a_stride_that_nobody_reads() -> None:
    flat = TensorMap(dtype="u8", global_dim=(64,), global_strides=(), box_dim=(16,), element_strides=(1,))
    assert encode_arguments(flat).global_strides == (0,)


def test_every_choice_has_an_enumerator(driver: FakeDriver) -> None:
    for promotion in L2_PROMOTIONS:
        driver.CUtensorMapL2promotion(encode_arguments(replace(MAP, l2_promotion=promotion)).l2_promotion)
    for fill in OOB_FILLS:
        driver.CUtensorMapFloatOOBfill(encode_arguments(replace(MAP, oob_fill=fill)).oob_fill)
    for swizzle in SWIZZLES:
        driver.CUtensorMapSwizzle(encode_arguments(replace(MAP, swizzle=swizzle)).swizzle)
    for dtype in DTYPES:
        driver.CUtensorMapDataType(encode_arguments(replace(MAP, dtype=dtype)).dtype)


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
