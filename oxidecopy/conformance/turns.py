"""Loops of a group that are run by records, as their ops stand in another order than straight code has; and what is behind them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits

if TYPE_CHECKING:
    from oxidecopy.host.device import Device

Map = ox.TmaDescriptor[Any, Any, Any, Any]
_BOX: Final = (32, 32)
_CTAS: Final = 3
_BODIES: Final = ("two maps", "a map and a wait", "turned", "folded")
_BEHIND: Final = ("a store", "a map", "a loop", "a fill")


def _half(v: Any) -> Any:
    return v * 0.5 + 1.0


def _body(cta: ox.Cta, kind: str, tile: Any, other: Any, sums: Any) -> None:
    """One turn: from `tile`, by way of another one, to `tile`."""
    cta.map(_half, tile, out=other)
    cta.sync()
    if kind == "turned":
        cta.transpose(other, out=tile)
    elif kind == "folded":
        cta.max(other, axis=1, out=sums)
        cta.sync()
        cta.map(lambda v, s: v + s * 0.125, other, ox.per_row(sums), out=tile)
    else:
        cta.map(lambda v: v + 0.25, other, out=tile)
    cta.sync()


def _end(cta: ox.Cta, kind: str, tile: Any, other: Any, sums: Any) -> None:
    """What is behind the loop."""
    if kind == "a map":
        cta.map(lambda v: v.maximum(-1.0), tile, out=other)
        cta.sync()
        cta.map(lambda v: v + 2.0, other, out=tile)
    elif kind == "a fill":
        with cta.thread(5):
            cta.fill(sums, 3)


def looped(body: str, behind: str, *, nested: bool) -> ox.Pipeline[...]:
    """A loop of so many turns, none for some blocks, in another loop where it is `nested`; then something else."""

    @ox.pipeline(threads=96)
    def turns(cta: ox.Cta, src: Map, dst: Map, n: ox.Idx) -> None:
        tile, other, sums = cta.shared(src), cta.shared(src, name="other"), cta.shared(ox.f32, (_BOX[0],), align=ox.A128, name="sums")
        full = cta.barriers(1).init(1)
        cta.sync()
        with cta.elect() as leader:
            token = full[0].arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, (0, cta.block_idx.x * _BOX[1]), token)
        full[0].wait_phase(0)
        for _ in cta.range(2) if nested else range(1):
            for _ in cta.range(n * cta.block_idx.x):
                _body(cta, body, tile, other, sums)
                if body == "a map and a wait":
                    full[0].wait_phase(0)
        if behind == "a loop":
            for _ in cta.range(n):
                _body(cta, body, tile, other, sums)
        else:
            _end(cta, behind, tile, other, sums)
        cta.fence_proxy_async()
        cta.sync()
        with cta.elect() as leader:
            dst.s2g(leader, tile, (0, cta.block_idx.x * _BOX[1]))
            leader.commit_group()
            leader.wait_group(0)

    return turns


def cases() -> Iterator[Case]:
    """All of this module."""
    for body, behind, nested in product(_BODIES, _BEHIND, (False, True)):
        name = f"{body}, then {behind}{', in a loop' if nested else ''}"
        yield Case(name=name, group="loops by records", make=partial(_made, body, behind, nested))


def _made(body: str, behind: str, nested: bool, dev: Device) -> Made:  # noqa: FBT001 - a case's own
    shape = (_BOX[0], _CTAS * _BOX[1])
    src, out = dev.array(random_bits(ox.f32, shape, 8), ox.f32), dev.zeros(shape, ox.f32)
    maps = [ox.TmaDescriptor.tiled(a, box=_BOX) for a in (src, out)]
    return Made(launch=looped(body, behind, nested=nested)[_CTAS].bind(*maps, 3), outputs={"out": out})
