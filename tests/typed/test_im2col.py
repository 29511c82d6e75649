"""Descriptors of im2col maps on the host: their factories, and what they have in common with all descriptors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import DescriptorError, ScopeError
from oxidecopy.maps.parameters import MapParameters

Factory = Callable[..., Any]


def images(shape: tuple[int, ...] = (2, 9, 10, 64), arch: int = 90) -> Any:
    return ox.Device.open("sim", arch=arch).zeros(shape, ox.f16)


@pytest.mark.parametrize(
    ("shape", "corners"), [((2, 9, 64), (-1,)), ((2, 9, 10, 64), (-1, -2)), ((2, 5, 9, 10, 64), (-1, -2, -3))], ids=["3-D", "4-D", "5-D"]
)
def test_a_descriptor_for_each_rank(shape: tuple[int, ...], corners: tuple[int, ...]) -> None:
    factory: Factory = ox.TmaDescriptor.im2col
    array = images(shape)
    made = factory(array, lower=corners, upper=corners, channels=64, pixels=32, swizzle=ox.Swizzle128B, oob_fill="nan")
    assert isinstance(made, ox.Im2colDescriptor)
    assert made.shape == shape
    assert made.array is array
    m = made.tensor_map
    assert (m.mode, m.lower, m.upper, m.box_dim, m.tile_shape) == ("im2col", corners, corners, (32, 64), (32, 64))
    assert (m.swizzle, m.oob_fill, m.element_strides) == ("128B", "nan", (1,) * len(shape))


def test_a_size_1_dimension_needs_no_stride() -> None:
    one = images((1, 9, 1, 64))
    one.strides_bytes = (3, *one.strides_bytes[1:])
    made = ox.TmaDescriptor.im2col(one, lower=(0, 0), upper=(0, 0), channels=8, pixels=8)
    assert all(stride % 16 == 0 for stride in made.tensor_map.global_strides)


def test_wide_descriptors() -> None:
    array = images(arch=100)
    made = ox.TmaDescriptor.im2col_wide(array, lower=-1, upper=-2, channels=64, mode="w128", swizzle=ox.Swizzle128BAtom32B)
    assert isinstance(made, ox.Im2colWideDescriptor)
    m = made.tensor_map
    assert (m.mode, m.lower, m.upper, m.box_dim, m.swizzle) == ("im2col_w128", (-1,), (-2,), (128, 64), "128B_ATOM_32B")
    with pytest.raises(DescriptorError) as caught:
        ox.TmaDescriptor.im2col_wide(array, lower=-1, upper=-2, channels=64, mode="w256", swizzle=ox.Swizzle128B)  # type: ignore[arg-type]
    assert caught.value.rules == ("OX2050",)


@pytest.mark.parametrize("made", [ox.TmaDescriptor, ox.Im2colDescriptor, ox.Im2colWideDescriptor])
def test_none_is_constructed_directly(made: Any) -> None:
    with pytest.raises(ScopeError) as caught:
        made(images())
    assert caught.value.rules == ("OX1045",)
    assert "ox.TmaDescriptor." in caught.value.diagnostics[0].fix


def test_a_descriptor_knows_its_parameters_and_its_verdict() -> None:
    array = images()
    made = ox.TmaDescriptor.im2col(array, lower=(-1, -1), upper=(-1, -1), channels=32, pixels=32)
    assert made.parameters == MapParameters.of(made.tensor_map, array.buffer.address + array.offset_bytes)
    assert made.verdict.usable
    assert [d.rule for d in made.verdict.warnings] == []
    assert [d.rule for d in made.verdict.hints] == ["OX2108"]  # 64-byte rows without a swizzle
    good = ox.TmaDescriptor.im2col(array, lower=(-1, -1), upper=(-1, -1), channels=64, pixels=32, swizzle=ox.Swizzle128B)
    assert not good.verdict.findings
    tiled = ox.TmaDescriptor.tiled(array, box=(1, 1, 8, 64), swizzle=ox.Swizzle128B)
    assert not tiled.verdict.findings
