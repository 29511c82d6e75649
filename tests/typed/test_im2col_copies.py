"""Copies through im2col descriptors as they are recorded, and the mistakes that a checker would have refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from oxidecopy.program.program import MapParam
from oxidecopy.program.text import from_text, to_text
from tests.helpers.recordings import recorded, refused, without_sites


def pixels(rank: int = 4) -> MapParam:
    return MapParam(name="conv", dtype="f16", box_dim=(32, 64), element_strides=(1,) * rank, swizzle="128B", mode="im2col")


def test_what_is_recorded() -> None:
    def pipe(cta: ox.ClusterCta, conv: Any) -> None:
        tile = cta.shared(conv)
        assert tile.shape == (32, 64)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            conv.prefetch(leader, (0, 1, 2, 0), offsets=(1, 2))
            conv.g2s(leader, tile, (0, 1, 2, 0), token, offsets=(1, 2), cache_hint=ox.cache.evict_last)
            conv.g2s_multicast(leader, tile, (0, 1, 2, 0), token, offsets=(0, cta.block_idx.z), cta_mask=3)
            conv.s2g(leader, tile, (0, 1, 2, 0))
            conv.reduce(ox.reduce.max, leader, tile, (0, 1, 2, 0))

    program = recorded(pipe, cluster=(2, 1, 1), conv=pixels())
    found: list[Any] = [s.op for s in program.walk() if isinstance(s.op, ops.Copy)]
    assert [op.offsets for op in found[:2]] == [(Const(1), Const(2))] * 2
    assert found[1].hint == ops.CacheHint("evict_last")
    assert len(found[2].offsets) == 2
    assert all(not getattr(op, "offsets", ()) for op in found[3:])
    assert without_sites(from_text(to_text(program))) == without_sites(program)


# ---- in rings
ROLES = ox.roles(producer=1, consumers=1)


@pytest.fixture
def dev() -> ox.Device:
    return ox.Device.open("sim")


@ox.pipeline(warps=ROLES)
def shifted(cta: ox.Cta, conv: ox.Im2colDescriptor[ox.f32, ox.D4], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=2, tiles=(conv,))
    with cta.producer() as leader:
        for column in cta.range(3):
            with ring.produce(leader) as (slot,):
                slot.load(conv, (0, -1, -1, 0), offsets=(1, column))
    with cta.consumers() as group:
        for column in cta.range(3):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, (column * 16, 0))


def test_a_slot_is_loaded_with_offsets(dev: ox.Device) -> None:
    x = np.random.default_rng(0).random((1, 4, 4, 8), np.float32)
    conv = ox.TmaDescriptor.im2col(dev.array(x), lower=(-1, -1), upper=(-1, -1), channels=8, pixels=16)
    out = dev.empty((48, 8), ox.f32)
    shifted[1](conv, out)
    padded = np.pad(x[0], ((0, 0), (1, 1), (0, 0)))
    assert np.array_equal(out.numpy(), np.concatenate([padded[:, i : i + 4].reshape(16, 8) for i in range(3)]))


@pytest.mark.parametrize(
    ("offsets", "tiled", "rule"), [((0,), False, "OX1164"), ((), False, "OX1164"), ((0, 0), True, "OX1164"), ((), True, "OX1103")]
)
def test_slots_and_their_offsets(dev: ox.Device, offsets: Any, tiled: bool, rule: str) -> None:
    @ox.pipeline(warps=ROLES)
    def wrong(cta: ox.Cta, conv: ox.Im2colDescriptor[ox.f32, ox.D4], flat: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
        ring = cta.ring(stages=2, tiles=(conv,) if offsets or not tiled else (flat,))
        with cta.producer() as leader, ring.produce(leader) as (slot,):
            any_slot: Any = slot
            any_slot.load(flat if offsets and tiled else conv, (0, 0) if offsets and tiled else (0, 0, 0, 0), offsets=offsets)

    x = dev.zeros((1, 4, 4, 8), ox.f32)
    conv = ox.TmaDescriptor.im2col(x, lower=(-1, -1), upper=(-1, -1), channels=8, pixels=16)
    with pytest.raises(OxidecopyError) as caught:
        wrong[1].bind(conv, ox.TmaDescriptor.tiled(dev.zeros((32, 8), ox.f32), box=(16, 8) if offsets else (32, 8)))
    assert caught.value.rules == (rule,)


def test_a_multicast_ring_takes_boxes_only(dev: ox.Device) -> None:
    @ox.pipeline(warps=ROLES, cluster=2)
    def wrong(cta: ox.ClusterCta, conv: ox.Im2colDescriptor[ox.f32, ox.D4]) -> None:
        made: Any = cta
        made.multicast_ring(stages=2, tiles=(conv,))

    conv = ox.TmaDescriptor.im2col(dev.zeros((1, 4, 4, 8), ox.f32), lower=(-1, -1), upper=(-1, -1), channels=8, pixels=16)
    with pytest.raises(OxidecopyError) as caught:
        wrong[2].bind(conv)
    assert caught.value.rules == ("OX1009",)


@pytest.mark.parametrize(
    ("rank", "offsets", "fits"),
    [
        (3, (65535,), True), (3, (65536,), False), (3, (0, 0), False),
        (4, (255, 0), True), (4, (0, 256), False), (4, (0,), False),
        (5, (31, 0, 31), True), (5, (0, 32, 0), False), (4, (-1, 0), False), (4, [1, 1], False),
    ],
)  # fmt: skip
def test_offsets(rank: int, offsets: Any, fits: bool) -> None:
    def pipe(cta: ox.Cta, conv: Any) -> None:
        with cta.elect() as leader:
            conv.prefetch(leader, (0,) * rank, offsets=offsets)  # here

    if fits:
        recorded(pipe, conv=pixels(rank))
    else:
        refused(pipe, "OX1164", conv=pixels(rank))


def test_kinds_of_descriptors_at_a_launch() -> None:
    dev = ox.Device.open("sim")
    array = dev.array(np.zeros((1, 4, 4, 8), np.float32))
    tiled = ox.TmaDescriptor.tiled(array, box=(1, 1, 4, 8))
    conv = ox.TmaDescriptor.im2col(array, lower=(0, 0), upper=(0, 0), channels=8, pixels=4)

    @ox.pipeline(threads=32)
    def walk(cta: ox.Cta, src: ox.Im2colDescriptor[ox.f32, ox.D4]) -> None:
        with cta.elect() as leader:
            src.prefetch(leader, (0, 0, 0, 0), offsets=(0, 0))

    walk[1](conv)
    wrong: Any = tiled
    with pytest.raises(ox.errors.ArgumentError) as caught:
        walk[1](wrong)
    assert caught.value.rule == "OX1053"
    assert "im2col" in caught.value.diagnostics[0].fix
