"""Arrays and tiles of packed elements: what numpy holds, what memory holds, views as bytes, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, DTypeError, ExportError, InputError, OxidecopyError, ShapeError, UsageError
from oxidecopy.typed.packed import pack, unpack

DEV = ox.Device.open("sim", arch=100)
Map = Any


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([4, 6]), st.integers(1, 40), st.integers(1, 3), st.integers(0, 1 << 30))
def test_rows_of_bits(bits: int, extent: int, rows: int, seed: int) -> None:
    """Element i is bits `bits * i` and up of its row, as one large number has them."""
    x = np.random.default_rng(seed).integers(0, 1 << bits, (rows, extent), np.uint8)
    data = pack(x, bits)
    assert data.shape == (rows, -(-extent * bits // 8))
    for row, packed in zip(x, data, strict=True):
        assert int.from_bytes(packed.tobytes(), "little") == sum(int(v) << bits * i for i, v in enumerate(row))
    assert np.array_equal(unpack(data, extent, bits), x)


@pytest.mark.parametrize(("dtype", "bits"), [(ox.u4x16_align8b, 4), (ox.u4x16_align16b, 4), (ox.u6x16_align16b, 6)])
@pytest.mark.parametrize("pad", [False, True])
def test_arrays_go_and_come_back(dtype: Any, bits: int, pad: bool) -> None:
    x = np.random.default_rng(bits).integers(0, 1 << bits, (3, 5, 128), np.uint8)
    a = DEV.array(x, dtype, pad=pad)
    assert (a.shape, a.dtype, a.strides_bytes[-1]) == ((3, 5, 128), dtype, 1)
    assert a.numpy().dtype == np.uint8
    assert np.array_equal(a.numpy(), x)
    assert np.array_equal(a.bytes.numpy(), pack(x, bits))
    assert a.bytes.buffer is a.buffer
    assert np.array_equal(a.bytes.packed(dtype).numpy(), x)
    assert DEV.empty_like(a).strides_bytes == a.strides_bytes
    assert not DEV.zeros((3, 128), dtype).numpy().any()
    assert not a.overlapping


def test_views_are_those_of_the_bytes() -> None:
    x = np.random.default_rng(0).integers(0, 16, (4, 6, 64), np.uint8)
    a = DEV.array(x, ox.u4x16_align8b)
    assert np.array_equal(a.bytes.permute(1, 0, 2).packed(ox.u4x16_align8b).numpy(), x.transpose(1, 0, 2))
    assert np.array_equal(a.bytes[1:3, :, 8:].packed(ox.u4x16_align8b).numpy(), x[1:3, :, 16:])
    assert np.array_equal(a.bytes.select(0, 2).packed(ox.u4x16_align8b).numpy(), x[2])
    spread = a.bytes[:1].broadcast_to((3, 6, 32)).packed(ox.u4x16_align8b)
    assert np.array_equal(spread.numpy(), np.broadcast_to(x[:1], (3, 6, 64)))
    assert spread.overlapping


def test_the_bytes_of_other_libraries() -> None:
    x = np.random.default_rng(1).integers(0, 16, (4, 64), np.uint8)
    lent = pack(x, 4)
    assert np.array_equal(DEV.borrow(lent, ox.u8).packed(ox.u4x16_align8b).numpy(), x)
    assert np.array_equal(np.from_dlpack(DEV.array(x, ox.u4x16_align8b).bytes), lent)


def refused(error: type[OxidecopyError], rule: str, use: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        use()
    assert caught.value.rules[0] == rule
    assert type(caught.value) is error
    return str(caught.value)


def test_what_is_no_packed_array_is_refused() -> None:
    four: Any = ox.u4x16_align8b
    a, other = DEV.zeros((4, 64), four), DEV.zeros((4, 30), ox.u8)
    assert "16 at (1, 2)" in refused(InputError, "OX5018", lambda: DEV.array(np.array([[1, 2, 3], [4, 5, 16]], np.uint8), four))
    assert "does not hold" in refused(InputError, "OX5004", lambda: DEV.array(np.zeros((4, 64), np.float32), four))
    assert "a.bytes[...].packed(ox.u4x16_align8b)" in refused(UsageError, "OX5044", lambda: a[1:])
    refused(UsageError, "OX5044", lambda: a.T)
    refused(UsageError, "OX5044", lambda: DEV.zeros((4, 4), ox.f32).bytes)
    refused(UsageError, "OX5044", lambda: DEV.zeros((4, 4), ox.f32).packed(four))  # type: ignore[misc]  # as checkers say
    refused(UsageError, "OX5044", lambda: other.packed(ox.f32))  # type: ignore[type-var]  # as checkers say
    assert "a multiple of 3 bytes" in refused(UsageError, "OX5044", lambda: other[:, :16].packed(ox.u6x16_align16b))
    refused(UsageError, "OX5044", lambda: other.T.packed(four))
    assert "dev.borrow(x, ox.u8, rank=...)" in refused(InputError, "OX5032", lambda: DEV.borrow(np.zeros((4, 64), np.uint8), four))
    refused(InputError, "OX5032", lambda: DEV.borrow_pointer(4096, (4, 64), four, owner=a))
    assert "a.bytes" in refused(ExportError, "OX5039", lambda: np.from_dlpack(a))  # type: ignore[arg-type,unused-ignore]


def test_no_pipeline_takes_an_array_of_them() -> None:
    @ox.pipeline(threads=32)
    def kernel(cta: ox.Cta, out: ox.GlobalArray[Any, ox.D2]) -> None:
        cta.sync()

    assert "a.bytes" in refused(ArgumentError, "OX1053", lambda: kernel[1].bind(DEV.zeros((4, 64), ox.u4x16_align8b)))


# ---- tiles
def shapes(cta: ox.Cta, src: Map) -> None:
    tile = cta.shared(src)
    assert (tile.shape, tile.nbytes) == ((4, 128), 256)
    assert tile.bytes.shape == (4, 64)
    assert tile.part(1, of=2).bytes.shape == (2, 64)
    assert cta.shared(src, stages=2)[0].shape == (4, 128)
    assert cta.shared(ox.u6x16_align16b, (2, 128), align=ox.A1024).bytes.shape == (2, 128)


def test_a_tile_counts_elements_and_its_bytes_bytes() -> None:
    @ox.pipeline(threads=32)
    def kernel(cta: ox.Cta, src: ox.TmaDescriptor[Any, ox.D2, Any, Any]) -> None:
        shapes(cta, src)

    maps: Any = ox.TmaDescriptor
    kernel[1].bind(maps.tiled(DEV.zeros((4, 128), ox.u4x16_align8b), box=(4, 128)))


@pytest.mark.parametrize(
    ("dtype", "rule", "error", "use"),
    [
        (ox.u4x16_align8b, "OX1049", DTypeError, lambda cta, tile, src, leader: cta.fill(tile, 0)),
        (ox.u4x16_align8b, "OX1049", DTypeError, lambda cta, tile, src, leader: cta.iota(tile, 0)),
        (ox.u4x16_align8b, "OX1049", DTypeError, lambda cta, tile, src, leader: tile.bytes.bytes),
        (ox.u4x16_align8b, "OX1011", DTypeError, lambda cta, tile, src, leader: src.s2g(leader, tile.bytes, (0, 0))),
        (ox.u4x16_align8b, "OX1016", DTypeError, lambda cta, tile, src, leader: src.reduce(ox.reduce.add, leader, tile, (0, 0))),
        (ox.u4x16_align16b, "OX1165", DTypeError, lambda cta, tile, src, leader: src.s2g(leader, tile, (0, 0))),
        (ox.u6x16_align16b, "OX1011", DTypeError, lambda cta, tile, src, leader: src.s2g(leader, tile, (0, 0))),
        (ox.u6x16_align16b, "", None, lambda cta, tile, src, leader: src.s2g(leader, tile.bytes, (0, 0))),
        (ox.u4x16_align8b, "", None, lambda cta, tile, src, leader: src.s2g(leader, tile, (0, 0))),
        (ox.u4x16_align8b, "OX1057", ShapeError, lambda cta, tile, src, leader: cta.shared(ox.u4x16_align8b, (4, 40), align=ox.A128)),
    ],
)
def test_uses_of_a_tile(dtype: Any, rule: str, error: Any, use: Callable[..., object]) -> None:
    @ox.pipeline(threads=32)
    def kernel(cta: ox.Cta, src: ox.TmaDescriptor[Any, ox.D2, Any, Any]) -> None:
        tile = cta.shared(src)
        if rule == "OX1057":
            use(cta, tile, src, None)
        with cta.elect() as leader:
            use(cta, tile, src, leader)
            leader.commit_group()
            leader.wait_group(0)

    maps: Any = ox.TmaDescriptor
    desc = maps.tiled(DEV.zeros((4, 128), dtype), box=(4, 128))
    if rule:
        refused(error, rule, lambda: kernel[1].bind(desc))
    else:
        kernel[1].bind(desc)
