"""Packed 4- and 6-bit elements on the simulator of compute capability 10.0, against a model that thinks in single bits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy.engines.sim import explore
from oxidecopy.engines.sim.packed import GAP
from oxidecopy.errors import VerificationError

Values = npt.NDArray[np.uint8]
Map = Any  # descriptors of types that are told by parameters

DEV = ox.Device.open("sim", arch=100)
TYPES: tuple[Any, ...] = (ox.u4x16_align8b, ox.u4x16_align16b, ox.u6x16_align16b)
SWIZZLES: dict[Any, tuple[Any, ...]] = {
    ox.u4x16_align8b: (ox.SwizzleNone, ox.Swizzle64B, ox.Swizzle128B),
    ox.u4x16_align16b: (ox.SwizzleNone, ox.Swizzle128B, ox.Swizzle128BAtom32B),
    ox.u6x16_align16b: (ox.SwizzleNone, ox.Swizzle128B, ox.Swizzle128BAtom32B),
}
maps: Any = ox.TmaDescriptor


def bits_of(dtype: Any) -> int:
    found: int = dtype.info.bits
    return found


def random_values(dtype: Any, shape: tuple[int, ...], seed: int) -> Values:
    return np.random.default_rng(seed).integers(0, 1 << bits_of(dtype), shape, np.uint8)


def image(dtype: Any, row: Values) -> list[int]:
    """A row of a tile in shared memory, byte by byte: groups of 16 elements, lowest bits first, and their gaps."""
    out: list[int] = []
    for group in row.reshape(-1, 16):
        number = sum(int(v) << bits_of(dtype) * i for i, v in enumerate(group))
        data = list(number.to_bytes(bits_of(dtype) * 2, "little"))
        out += data + [GAP] * (dtype.info.group_bytes - len(data))
    return out


def box_of(x: Values, at: tuple[int, ...], box: tuple[int, ...]) -> Values:
    """The elements of a box, zeros outside."""
    out = np.zeros(box, np.uint8)
    for index in np.ndindex(*box):
        where = tuple(a + i for a, i in zip(at, index, strict=True))
        if all(0 <= w < n for w, n in zip(where, x.shape, strict=True)):
            out[index] = x[where]
    return out


def loader(at: tuple[int, ...]) -> Any:
    @ox.pipeline(threads=64)
    def load(cta: ox.Cta, src: ox.TmaDescriptor[Any, Any, Any, Any], out: ox.GlobalArray[ox.u8, Any]) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, at, token)
        full.wait(token)
        cta.store(out, tile.bytes, tuple(0 for _ in at))
        full.inval()

    return load


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_loads_bring_groups_gaps_and_zeros(dtype: Any) -> None:
    random, grid = Random(dtype.__name__), dtype.info.grid
    for number, (rank, swizzle) in enumerate(product((1, 2, 3), SWIZZLES[dtype])):
        inner = 128 if dtype is not ox.u4x16_align8b or swizzle is not ox.SwizzleNone else 96
        shape = (*(random.randint(1, 5) for _ in range(rank - 1)), random.choice((128, 256, 384)))
        box = (*(random.randint(1, 4) for _ in range(rank - 1)), inner)
        at = (*(random.randint(-2, 5) for _ in range(rank - 1)), grid * random.randint(-2, 384 // grid))
        x = random_values(dtype, shape, number)
        desc = maps.tiled(DEV.array(x, dtype, pad=True), box=box, swizzle=swizzle)
        out = DEV.zeros((*box[:-1], inner * dtype.info.group_bytes // 16), ox.u8)
        loader(at)[1](desc, out)
        wanted = [image(dtype, row) for row in box_of(x, at, box).reshape(-1, inner)]
        assert out.numpy().reshape(len(wanted), -1).tolist() == wanted, (shape, box, at, swizzle)


def copier(at: tuple[int, ...]) -> Any:
    @ox.pipeline(threads=32)
    def copy(cta: ox.Cta, src: ox.TmaDescriptor[Any, Any, Any, Any], dst: ox.TmaDescriptor[Any, Any, Any, Any]) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, 0), token)
            full.wait(token)
            dst.s2g(leader, tile, at)
            leader.commit_group()
            leader.wait_group(0)

    return copy


@pytest.mark.parametrize(("swizzle", "column"), [(ox.SwizzleNone, 32), (ox.Swizzle64B, 128), (ox.Swizzle128B, 224)])
def test_four_bit_elements_come_back_as_they_were(swizzle: Any, column: int) -> None:
    x, before = random_values(ox.u4x16_align8b, (6, 128), 1), random_values(ox.u4x16_align8b, (9, 288), 2)
    src, dst = DEV.array(x, ox.u4x16_align8b), DEV.array(before, ox.u4x16_align8b, pad=True)
    copier((5, column))[1](*(maps.tiled(a, box=(6, 128), swizzle=swizzle) for a in (src, dst)))
    wanted = before.copy()
    rows, columns = min(6, 9 - 5), min(128, 288 - column)
    wanted[5 : 5 + rows, column : column + columns] = x[:rows, :columns]
    assert np.array_equal(dst.numpy(), wanted)


@pytest.mark.parametrize("swizzle", [ox.SwizzleNone, ox.Swizzle128B, ox.Swizzle128BAtom64B])
def test_stores_of_six_bits_take_one_value_from_each_byte(swizzle: Any) -> None:
    x = np.random.default_rng(3).integers(0, 256, (6, 128), np.uint8)  # the two high bits are ignored
    dst = DEV.zeros((4, 256), ox.u6x16_align16b, pad=True)
    copier((1, 128))[1](maps.tiled(DEV.array(x), box=(6, 128), swizzle=swizzle), maps.tiled(dst, box=(6, 128), swizzle=swizzle))
    wanted = np.zeros((4, 256), np.uint8)
    wanted[1:, 128:] = x[:3] & 63
    assert np.array_equal(dst.numpy(), wanted)


@ox.pipeline(threads=32)
def rows(cta: ox.Cta, src: ox.TmaDescriptor[Any, ox.D2, Any, Any], out: ox.GlobalArray[ox.u8, ox.D2], dtype: str, n: int) -> None:
    tile = cta.shared(getattr(ox, dtype), (4, n), align=ox.A1024)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.gather4(leader, tile, (2, -1, 0, 2), 128, token)
    full.wait(token)
    cta.store(out, tile.bytes, (0, 0))
    full.inval()


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_four_rows_are_gathered(dtype: Any) -> None:
    x = random_values(dtype, (3, 256), 5)
    out = DEV.zeros((4, 8 * dtype.info.group_bytes), ox.u8)
    rows[1](maps.tiled(DEV.array(x, dtype), box=(1, 128), swizzle=SWIZZLES[dtype][1]), out, dtype.__name__, 128)
    wanted = [image(dtype, row) for row in (x[2, 128:], np.zeros(128, np.uint8), x[0, 128:], x[2, 128:])]
    assert out.numpy().tolist() == wanted


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_pixels_of_a_convolution(dtype: Any) -> None:
    @ox.pipeline(threads=32)
    def pixels(cta: ox.Cta, src: ox.Im2colDescriptor[Any, ox.D4, Any, Any], out: ox.GlobalArray[ox.u8, ox.D2]) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, -1, -1, 0), token, offsets=(1, 2))
        full.wait(token)
        cta.store(out, tile.bytes, (0, 0))
        full.inval()

    x = random_values(dtype, (2, 3, 4, 128), 6)
    desc = maps.im2col(DEV.array(x, dtype), lower=(-1, -1), upper=(-1, -1), channels=128, pixels=14, swizzle=ox.Swizzle128B)
    out = DEV.zeros((14, 8 * dtype.info.group_bytes), ox.u8)
    pixels[1](desc, out)
    walk = [(n, h, w) for n in range(2) for h in range(-1, 2) for w in range(-1, 3)][:14]
    wanted = [image(dtype, box_of(x, (n, h + 1, w + 2, 0), (1, 1, 1, 128)).reshape(128)) for n, h, w in walk]
    assert out.numpy().tolist() == wanted


# ---- what the hardware refuses
def outcome(made: Callable[[], Any]) -> tuple[str, int]:
    bound = made()
    ran = explore(bound.program, bound.bindings)
    return ran.outcome, ran.code


@pytest.mark.parametrize(("dtype", "column", "code"), [(TYPES[0], 16, 715), (TYPES[0], 32, 0), (TYPES[1], 64, 715), (TYPES[2], 128, 0)])
def test_boxes_start_on_the_grid_of_the_type(dtype: Any, column: int, code: int) -> None:
    desc = maps.tiled(DEV.zeros((4, 256), dtype, pad=True), box=(4, 128), swizzle=ox.SwizzleNone)
    bound = loader((0, column))[1].bind(desc, DEV.zeros((4, 8 * dtype.info.group_bytes), ox.u8))
    assert outcome(lambda: bound) == ("fault" if code else "ok", code)
    if code:
        with pytest.raises(VerificationError) as caught:
            bound.verify()
        assert caught.value.rules == ("OX3080",)
    else:
        bound.verify()


@pytest.mark.parametrize(("swizzle", "code"), [(ox.Swizzle128BAtom32BFlip8B, 715), (ox.Swizzle128BAtom32B, 0)])
def test_no_store_flips(swizzle: Any, code: int) -> None:
    a, b = DEV.zeros((4, 128), ox.u8), DEV.zeros((4, 128), ox.u8)
    bound = copier((0, 0))[1].bind(*(maps.tiled(x, box=(4, 128), swizzle=swizzle) for x in (a, b)))
    assert outcome(lambda: bound) == ("fault" if code else "ok", code)
