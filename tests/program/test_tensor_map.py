"""What one copy through a map leaves in shared memory: tiled, interleaved, im2col."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oxidecopy.program.program import MapParam
from oxidecopy.program.tensor_map import TensorMap, TileLayout, tile_layout

TILED = TensorMap(
    dtype="f16",
    global_dim=(4, 8, 9, 64),
    global_strides=(9216, 1152, 128),
    box_dim=(2, 3, 4, 16),
    element_strides=(1, 2, 3, 1),
    swizzle="64B",
)
IM2COL = replace(TILED, mode="im2col", box_dim=(14, 16), lower=(-1, -1), upper=(-1, -1))


def test_box_is_shrunk_by_element_strides() -> None:
    assert TILED.tile_shape == (2, 2, 2, 16)
    assert TILED.layout == TileLayout(shape=(2, 2, 2, 16), element_bytes=2, swizzle="64B")
    assert TILED.layout.pitch_bytes == 64


@pytest.mark.parametrize("mode", ["im2col", "im2col_w", "im2col_w128"])
def test_im2col_moves_rows_of_channels_whatever_the_steps(mode: str) -> None:
    made = replace(IM2COL, mode=mode)
    assert made.rank == 4
    assert made.tile_shape == (14, 16)
    assert (made.layout.nbytes, made.layout.pitch_bytes) == (14 * 32, 64)


@pytest.mark.parametrize(("interleave", "elements"), [("16B", 8), ("32B", 16)])
def test_interleaved_copies_move_one_slice_in_dense_rows(interleave: str, elements: int) -> None:
    """Measured: dimension 1 counts slices and one is moved; the innermost element stride counts; no row is padded to the span."""
    made = replace(TILED, interleave=interleave, element_strides=(1, 1, 3, 2), box_dim=(2, 3, 4, 6))
    assert made.tile_shape == (2, 1, 2, 3 * elements)
    assert made.layout.pitch_bytes == made.layout.row_bytes == 3 * elements * 2
    assert made.layout.nbytes == 2 * 1 * 2 * 3 * elements * 2


def test_interleaved_im2col_moves_slice_pixels() -> None:
    assert replace(IM2COL, interleave="32B").tile_shape == (14, 16)
    assert replace(IM2COL, interleave="16B").layout == TileLayout(shape=(14, 8), element_bytes=2, swizzle="64B", dense=True)


@pytest.mark.parametrize("tensor", [TILED, IM2COL, replace(TILED, interleave="16B")])
def test_a_parameter_has_the_image_and_the_rank_of_its_map(tensor: TensorMap) -> None:
    param = MapParam(
        name="x",
        dtype=tensor.dtype,
        box_dim=tensor.box_dim,
        element_strides=tensor.element_strides,
        interleave=tensor.interleave,
        swizzle=tensor.swizzle,
        mode=tensor.mode,
    )
    assert param.rank == tensor.rank == 4
    assert param.layout == tensor.layout == tile_layout(param)
