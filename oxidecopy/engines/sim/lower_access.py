"""Plain accesses by all threads in scope, fences, and barriers of threads.

A cooperative access is shared out: each class does its part of the outermost dimension, in proportion to its threads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from oxidecopy.engines.sim.agents import BLOCKED, Agent, Op, ThreadBarrier, Wait
from oxidecopy.engines.sim.faults import INVALID_VALUE, Refused
from oxidecopy.engines.sim.ledger import Region
from oxidecopy.engines.sim.lower_copies import Images
from oxidecopy.engines.sim.memory import ELEMENT, Array, unmapped
from oxidecopy.engines.sim.tma import round_tf32
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES, DTypeInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oxidecopy.engines.base import BoundArray
    from oxidecopy.engines.sim.clocks import Clocks
    from oxidecopy.engines.sim.lower_ops import Make
    from oxidecopy.engines.sim.lowering import Lowering, Share
    from oxidecopy.engines.sim.memory import GlobalMemory


# ---- elements as bits
def bits_of(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], row: DTypeInfo) -> Array:
    """Numbers rounded to an element type, as unsigned integers of its size; integers wrap around."""
    if not row.is_float and not row.numpy.startswith("float8"):
        wrapped = [int(v) % (1 << row.bits) for v in values.reshape(-1).tolist()]
        return np.array(wrapped, ELEMENT[row.nbytes]).reshape(values.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = values.astype(np.float64)
        if hasattr(ml_dtypes, row.numpy):
            wide = wide.astype(np.float32)  # the rule, whatever ml_dtypes does: from 0.6 on it rounds f64 to fp8 once
        out = np.ascontiguousarray(wide.astype(numpy_type(row))).view(ELEMENT[row.nbytes])
    if row.name.startswith("tf32"):
        round_tf32(out)
    return out


def numpy_type(row: DTypeInfo) -> np.dtype[np.generic]:
    """The numpy (or ml_dtypes) type that stores an element type."""
    extra = getattr(ml_dtypes, row.numpy, None)
    return np.dtype(row.numpy if extra is None else extra)


def _tile_values(low: Lowering, op: ops.Fill | ops.Iota, shape: tuple[int, ...], row: DTypeInfo) -> Array:
    if isinstance(op, ops.Iota):
        if op.axis >= len(shape):
            raise Refused(INVALID_VALUE, "iota along an axis that the tile does not have", got=str(op.axis), required=f"below {len(shape)}")
        along = np.arange(shape[op.axis], dtype=np.int64).reshape([-1 if i == op.axis else 1 for i in range(len(shape))])
        return bits_of(np.broadcast_to(along, shape), row)
    value = low.bound.scalars[op.value.name] if isinstance(op.value, ops.ScalarRef) else op.value
    if isinstance(value, float) and not row.is_float and not row.numpy.startswith("float8") and not math.isfinite(value):
        raise Refused(INVALID_VALUE, f"{value} is no {row.name}", got=str(value), required="a finite number", fix="pass an integer")
    one = np.array([value], dtype=object if isinstance(value, int) else np.float64)
    return np.broadcast_to(bits_of(one, row), shape)


def write_tile(low: Lowering, op: ops.Fill | ops.Iota) -> list[Make]:
    layout, row = low.tile_layout(op.tile), DTYPES[low.tile(op.tile).dtype]
    tile_at, clocks, site = low.tile_address(op.tile), low.clocks, low.site
    values = np.ascontiguousarray(_tile_values(low, op, layout.shape, row))
    images = Images(layout)
    share = low.share
    start, stop = share.rows(layout.rows)
    alone = share.high - share.low == share.total
    loops = tuple(low.loops)
    if start >= stop and clocks is None:
        return []

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            image = images.at(agent.cta, tile_at(agent.env))
            if clocks is not None:
                clocks.write(agent, image, op, tuple([agent.env[slot] for slot in loops]), site, alone=alone)
            if start < stop:
                image.put_elements(values, start, stop)
            return nxt

        return run

    return [make]


# ---- global arrays
def array_view(array: BoundArray, memory: GlobalMemory) -> Array:
    """The whole array as unsigned integers of its element size; faults where it is not mapped."""
    info = array.info
    item = DTYPES[info.dtype].nbytes
    address = array.buffer.address + array.offset_bytes
    view = memory.box(address, info.shape, info.strides_bytes, item)
    if view is None:
        raise unmapped(address, item)
    return view


class StoreTarget:
    """Where a plain store goes: its array, the coordinates of its tile, and the part of the tile that a class does."""

    def __init__(self, low: Lowering, op: ops.StoreGlobal, shape: tuple[int, ...]) -> None:
        self._array = low.bound.arrays[op.array.name]
        self._coords = [low.value(e) for e in op.coords]
        self._memory, self._clocks, self._site = low.bound.memory, low.clocks, low.site
        if not len(self._coords) == len(shape) == len(self._array.info.shape):
            raise Refused(INVALID_VALUE, "tile, coordinates and array of a plain store do not fit each other", got=repr(op))
        first, last = low.share.rows(shape[0]) if len(shape) > 1 else _all_or_nothing(low.share, shape[0])
        self.empty = first >= last
        self._limits = [(first, last), *((0, n) for n in shape[1:])]
        self._view: Array | None = None

    def _boxes(self, agent: Agent) -> tuple[Box, Box] | None:
        return clipped([value(agent.env) for value in self._coords], self._limits, self._array.info.shape)

    def regions(self, agent: Agent) -> list[Region]:
        """The bytes of global memory that the class stores to."""
        boxes = None if self.empty else self._boxes(agent)
        return [] if boxes is None else [region_of(self._array, boxes[1])]

    def put(self, agent: Agent, tile: Array) -> None:
        """Stores what is inside the array."""
        boxes = self._boxes(agent)
        if boxes is None:
            return
        if self._view is None:
            self._view = array_view(self._array, self._memory)
        source, target = boxes
        self._view[target] = tile[source]
        if self._clocks is not None:
            self._clocks.ledger.plain(agent, region_of(self._array, target), self._site)


def store_global(low: Lowering, op: ops.StoreGlobal) -> list[Make]:
    layout = low.tile_layout(op.tile)
    tile_at, clocks, site, images = low.tile_address(op.tile), low.clocks, low.site, Images(layout)
    if DTYPES[low.bound.arrays[op.array.name].info.dtype].nbytes != layout.element_bytes:
        raise Refused(INVALID_VALUE, "tile and array of a plain store have elements of different sizes", got=repr(op))
    target = StoreTarget(low, op, layout.shape)
    if target.empty and clocks is None:
        return []

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            image = images.at(agent.cta, tile_at(agent.env))
            if clocks is not None:
                clocks.read(agent, image, op, site)
            if not target.empty:
                target.put(agent, image.elements())
            return nxt

        return run

    return [make]


def _all_or_nothing(share: Share, elements: int) -> tuple[int, int]:
    """A single row is not shared out: the class whose part ends the threads in scope does all of it."""
    low, high = share.rows(1)
    return low * elements, high * elements


Box = tuple[slice, ...]


def clipped(coords: list[int], limits: list[tuple[int, int]], extents: Sequence[int]) -> tuple[Box, Box] | None:
    """The tile's elements within `limits` (per dimension) and where they go in an array at `coords`; None when none is inside it."""
    source, target = [], []
    for c, (lo, hi), extent in zip(coords, limits, extents, strict=True):
        if c + lo < 0 or c + hi > extent:
            lo, hi = max(lo, -c), min(hi, extent - c)  # noqa: PLW2901 - clipped
            if lo >= hi:
                return None
        source.append(slice(lo, hi))
        target.append(slice(c + lo, c + hi))
    return tuple(source), tuple(target)


def region_of(array: BoundArray, box: Box) -> Region:
    strides = array.info.strides_bytes
    first = array.buffer.address + array.offset_bytes + sum(part.start * s for part, s in zip(box, strides, strict=True))
    return Region(first, tuple(part.stop - part.start for part in box), strides, DTYPES[array.info.dtype].nbytes)


# ---- fences and barriers of threads
def fence(low: Lowering, op: ops.FenceProxyAsync | ops.FenceMbarrierInit) -> list[Make]:
    clocks = low.clocks
    if clocks is None:
        return []  # without clocks every write is visible at once
    proxy = isinstance(op, ops.FenceProxyAsync)

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            clocks.fence(agent, proxy=proxy)
            return nxt

        return run

    return [make]


def bar_sync(low: Lowering, op: ops.BarSync) -> list[Make]:
    number, wanted, machine, clocks = op.number, op.threads, low.machine, low.clocks

    def make_arrive(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            bar = agent.cta.thread_bars.get(number)
            if bar is None:
                bar = agent.cta.thread_bars[number] = ThreadBarrier()
            if clocks is not None:
                clocks.sync_arrive(agent, bar)
            agent.synced = bar.generation
            bar.wanted = wanted
            bar.arrived += agent.threads
            if bar.arrived >= wanted:
                bar.arrived -= wanted
                machine.sync_over(bar)
                if clocks is None:
                    return nxt + 1  # nothing to wait for
            return nxt

        return run

    return [make_arrive, _waiter(clocks, "bar", number, lambda agent: agent.cta.thread_bars[number])]


def cluster_sync(low: Lowering) -> list[Make]:
    machine, clocks = low.machine, low.clocks

    def make_arrive(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            bar = machine.cluster_barrier
            if clocks is not None:
                clocks.sync_arrive(agent, bar)
            agent.synced = bar.generation
            bar.arrived += agent.threads
            machine.check_cluster_barrier()
            return nxt

        return run

    return [make_arrive, _waiter(clocks, "cluster", 0, lambda _agent: machine.cluster_barrier)]


def _waiter(clocks: Clocks | None, kind: str, number: int, barrier: Callable[[Agent], ThreadBarrier]) -> Make:
    """Waits until the generation the agent arrived in is over."""

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            bar = barrier(agent)
            if bar.generation == agent.synced:
                bar.waiters.append(agent)
                agent.wait = Wait(kind, detail=number)
                return BLOCKED
            if clocks is not None:
                clocks.sync_acquire(agent, bar, agent.synced)
            return nxt

        return run

    return make
