"""Numbers that are known while recording: numpy's integers count as Python's do, recorded ones do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from tests.helpers.recordings import recorded, refused

Src = ox.TmaDescriptor[ox.f32, ox.D2]
Count = Callable[[int], Any]


def held(cta: ox.Cta, src: Src, count: Count) -> None:
    """A ring with held stages, and a store ring, in a rasterised order."""
    ring = cta.ring(stages=count(4), tiles=(src,), consumers=count(1))
    outs = cta.store_ring(src, stages=count(2))
    order = ox.order.grouped(count(2))
    with cta.producer() as leader:
        for at in cta.tiles(src, order=order, box=(count(16), count(32))):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers(count(0)) as group:
        for at in cta.tiles(src, order=order, box=(count(16), count(32))):
            with ring.consume(group, keep=count(2)) as (tile,), outs.put(group, at) as out:
                group.map(lambda v: v * 2, tile, out=out)
                tile.back(count(1))


def forwarded(cta: ox.Cta, src: Src, count: Count) -> None:
    ring = cta.ring(stages=count(4), tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.storer() as leader:
        for at in cta.tiles(src):
            ring.forward(leader, src, at, pending=count(1))


def program(body: Callable[..., None], count: Count) -> Any:
    dev = ox.Device.open("sim")
    src = ox.TmaDescriptor.tiled(dev.zeros((64, 64), ox.f32), box=(16, 32))
    four: Any = count(4)
    one: Any = count(1)
    roles = ox.roles(producer=one, consumers=four) if body is held else ox.roles(producer=one, consumers=(), store=one)

    @ox.pipeline(warps=roles)
    def pipe(cta: ox.Cta, src: Src, n: ox.Idx) -> None:
        body(cta, src, count if count is not RECORDED else lambda value: n + value)

    return pipe[2].bind(src, 1).program


RECORDED: Count = int


@pytest.mark.parametrize("body", [held, forwarded])
@pytest.mark.parametrize("numpys", [np.int64, np.uint8, np.array])
def test_numpys_integers_are_numbers(body: Callable[..., None], numpys: Count) -> None:
    def steps(count: Count) -> list[str]:
        return [repr(step.op) for step in program(body, count).walk()]

    assert steps(numpys) == steps(lambda n: n)


@pytest.mark.parametrize("body", [held, forwarded])
@pytest.mark.parametrize("wrong", [float, str, lambda n: n == 4, lambda n: np.array([n])])
def test_what_is_none(body: Callable[..., None], wrong: Count) -> None:
    with pytest.raises(OxidecopyError):
        program(body, wrong)


def test_recorded_integers_are_no_constants() -> None:
    with pytest.raises(OxidecopyError) as caught:
        program(held, RECORDED)
    assert caught.value.rules == ("OX1113",)


def test_a_recorded_step_is_no_constant() -> None:
    def pipe(cta: ox.Cta, n: Any) -> None:
        cta.range(0, 4, n)  # here

    assert refused(pipe, "OX1063").fix == "count by ones and multiply the counter"


@pytest.mark.parametrize("use", [lambda n: min(n, 3), lambda n: max(3, n), lambda n: n > 0 and n < n + 3])
def test_conditions_name_what_is_recorded(use: Callable[[Any], object]) -> None:
    def pipe(cta: ox.Cta, n: Any) -> None:
        use(n)

    with pytest.raises(OxidecopyError, match=r"`ox\.minimum`, `ox\.maximum` instead of min, max") as caught:
        recorded(pipe)
    assert caught.value.rules == ("OX1020",)
