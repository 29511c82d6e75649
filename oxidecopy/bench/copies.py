"""Copies that are measured on a GPU: the three schedules, for any element type, rank, box, swizzle and number of stages."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, final

import oxidecopy as ox
from oxidecopy.isa.dtypes import DTYPES

if TYPE_CHECKING:
    from oxidecopy.host.bound import BoundLaunch
    from oxidecopy.host.device import Device

Map = ox.TmaDescriptor[Any, Any, Any, Any]
Schedule = Literal["one-shot", "counter", "persistent"]
SHARED_SM: Final = 227 << 10
CTA_BYTES: Final = 2 << 10  # what a CTA takes beside its tiles: barriers, and what the system keeps


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One way to copy an array.

    Attributes:
        dtype: of its elements, `oxidecopy`'s class.
        shape: elements, outermost first; every extent a multiple of the box's.
        box: elements.
        stages: of the ring; a one-shot copy has none.
        per_sm: CTAs for each multiprocessor; of a one-shot copy, which has a CTA for each box, the most that run at once (0: any number).
        l2_promotion: bytes that L2 fetches at least.
    """

    schedule: Schedule
    shape: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: type[ox.AnySwizzle] = ox.SwizzleNone
    stages: int = 4
    per_sm: int = 1
    l2_promotion: int = 0
    dtype: type[ox.DType] = ox.f32

    @property
    def element_bytes(self) -> int:
        return DTYPES[self.dtype.__name__].nbytes

    @property
    def box_bytes(self) -> int:
        return self.element_bytes * prod(self.box)

    @property
    def nbytes(self) -> int:
        return self.element_bytes * prod(self.shape)

    @property
    def described(self) -> str:
        """Stages and CTAs in words."""
        if self.schedule == "one-shot":
            return f"a CTA for each box, {self.per_sm or 'as many as fit'} at once on an SM"
        return f"{self.stages} stages, {self.per_sm} CTAs per SM"

    @property
    def _padding(self) -> int:
        """Shared memory of a one-shot CTA beside its tile, so that no more than `per_sm` fit."""
        return padding(self.box_bytes, self.per_sm)

    def bind(self, dev: Device, src: ox.GlobalArray[Any, Any], dst: ox.GlobalArray[Any, Any], multiprocessors: int) -> BoundLaunch:
        """The launch that copies `src` to `dst`, both of `shape`."""
        maps: Any = ox.TmaDescriptor.tiled
        source, target = (maps(a, box=self.box, swizzle=self.swizzle, l2_promotion=self.l2_promotion) for a in (src, dst))
        if self.schedule == "one-shot":
            return one_shot(self._padding)[prod(n // b for n, b in zip(self.shape, self.box, strict=True))].bind(source, target)
        return _ring(self.stages, self.schedule)[self.per_sm * multiprocessors].bind(source, target)


def padding(tile_bytes: int, per_sm: int) -> int:
    """Shared memory beside a CTA's tile, so that no more than `per_sm` fit on a multiprocessor (0: any number)."""
    return max(0, SHARED_SM // per_sm - CTA_BYTES - tile_bytes) // 128 * 128 if per_sm else 0


def one_shot(beside: int) -> ox.Pipeline[...]:
    """A CTA for each box, with so many bytes of shared memory beside it."""

    @ox.pipeline(threads=32)
    def copy_once(cta: ox.Cta, src: Map, dst: Map) -> None:
        tile = cta.shared(src)
        if beside:
            cta.shared(ox.u8, (beside,), align=ox.A128)  # memory is what bounds the CTAs of a multiprocessor
        full = cta.barrier().init(1)
        for at in cta.tiles(src, order=ox.order.once):
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, at, token)
                full.wait(token)
                dst.s2g(leader, tile, at)
                leader.commit_group()
                leader.wait_group_read(0)

    return copy_once


def _ring(stages: int, schedule: Schedule) -> ox.Pipeline[...]:
    # Stores that are under way when the stage before them is let go of. With a counter as few as hide a store, as all others are loading;
    # a fixed order is the faster, the more of each are under way.
    pending = min(1, stages - 1) if schedule == "counter" else stages // 2

    @ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
    def copy_ring(cta: ox.Cta, src: Map, dst: Map) -> None:
        ring = cta.ring(stages=stages, tiles=(src,))
        work = cta.schedule(src, order=ox.order.counter() if schedule == "counter" else ox.order.linear)
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.storer() as leader:
            for at in ring.visits(leader, work):
                ring.forward(leader, dst, at, pending=pending)

    return copy_ring


def box_of(nbytes: int, rank: int, inner_bytes: int) -> tuple[int, ...] | None:
    """An f32 box of `nbytes` with rows of `inner_bytes`, its outer extents as equal as powers of two can be; None when there is none."""
    rows = nbytes // inner_bytes
    if rows < 1 or (rank == 1 and rows > 1):
        return None
    outer = [1] * (rank - 1)
    for i in range(rows.bit_length() - 1):
        outer[-1 - i % (rank - 1)] *= 2
    return None if any(n > 256 for n in outer) else (*outer, inner_bytes // 4)


def shape_of(nbytes: int, box: tuple[int, ...]) -> tuple[int, ...]:
    """An f32 array of `nbytes` (a power of two) that the box divides, about as many boxes along each dimension."""
    left = nbytes // 4 // prod(box)
    counts = [1] * len(box)
    for i in range(left.bit_length() - 1):
        counts[-1 - i % len(box)] *= 2
    return tuple(n * b for n, b in zip(counts, box, strict=True))
