"""Maps that a program replaces: edited in shared memory, copied to a place in global memory, acquired there, and gone through by copies.

A CTA keeps the map that it found at a place, as the hardware does: copies go on using it, whatever is written there, until the CTA
acquires the place (measured). Bytes that are no map are a fault of the copy that goes through them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from oxidecopy.engines.sim.agents import Agent, Op
from oxidecopy.engines.sim.faults import INVALID_VALUE, Refused
from oxidecopy.engines.sim.ledger import Region
from oxidecopy.engines.sim.lower_copies import Images
from oxidecopy.engines.sim.map_image import MAP_BYTES, encoded, replaced
from oxidecopy.engines.sim.memory import GRANULE
from oxidecopy.engines.sim.packed import PackedPlan
from oxidecopy.engines.sim.shares import Trap
from oxidecopy.engines.sim.slots import CopyMap, map_of, slot_address
from oxidecopy.isa import ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from oxidecopy.engines.sim.images import TileImage
    from oxidecopy.engines.sim.lower_ops import Make
    from oxidecopy.engines.sim.lowering import Lowering

EMPTY_WINDOW: Final = "OX4017"
WARP: Final = 32


# ---- in shared memory
class _Edited:
    """The tile that an op writes a map in."""

    def __init__(self, low: Lowering, ref: ops.TileRef) -> None:
        layout = low.tile_layout(ref)
        if layout.nbytes != MAP_BYTES or layout.footprint_bytes != MAP_BYTES:
            required = f"{MAP_BYTES} bytes in one run"
            raise Refused(INVALID_VALUE, "a map is edited in a tile of another size", got=repr(layout), required=required)
        self._images, self._at, self._layout = Images(layout), low.tile_address(ref), layout

    def image(self, agent: Agent) -> TileImage:
        return self._images.at(agent.cta, self._at(agent.env))

    def read(self, image: TileImage) -> bytes:
        return image.elements().tobytes()

    def write(self, image: TileImage, data: bytes) -> None:
        elements = image.elements()
        image.put_elements(np.frombuffer(data, np.uint8).view(elements.dtype).reshape(elements.shape), 0, self._layout.rows)


def edit(low: Lowering, op: ops.Edit) -> Make:
    """`TensormapCopy`, `TensormapReplace`, `TensormapReplaceArray`."""
    edited, clocks, site, threads = _Edited(low, op.tile), low.clocks, low.site, low.threads
    new, copies, loops = _bytes(low, op), isinstance(op, ops.TensormapCopy), tuple(low.loops)

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            image = edited.image(agent)
            if clocks is not None:
                clocks.edit(agent, image, op, tuple([agent.env[slot] for slot in loops]), site, reads=not copies, alone=threads == 1)
            edited.write(image, new(agent, edited.read(image)))
            return nxt

        return run

    return make


def _bytes(low: Lowering, op: ops.Edit) -> Callable[[Agent, bytes], bytes]:
    """What an edit makes of the tile's bytes."""
    match op:
        case ops.TensormapCopy():
            plan_of = map_of(low, op.map)
            return lambda agent, _: _template(plan_of(agent))
        case ops.TensormapReplace():
            value, name, ord_ = low.value(op.value), op.field, op.ord
            return lambda agent, data: replaced(data, name, ord_, value(agent.env))
        case ops.TensormapReplaceArray():
            return _window(low, op)


def _template(plan: CopyMap) -> bytes:
    what = "the bytes of such a map were not measured, so that it cannot be edited here"
    refused = Refused(INVALID_VALUE, what, got=repr(plan.map), required="a tiled map as compute capability 9.0 has them")
    if isinstance(plan, PackedPlan):
        raise refused
    try:
        return encoded(plan.map, plan.address)
    except (ValueError, IndexError):
        raise refused from None


def _window(low: Lowering, op: ops.TensormapReplaceArray) -> Callable[[Agent, bytes], bytes]:
    array = low.bound.arrays[op.array.name]
    start, strides, rank = array.buffer.address + array.offset_bytes, array.info.strides_bytes, len(array.info.shape)
    first, stop = [low.value(e) for e in op.first], [low.value(e) for e in op.stop]
    if not len(first) == len(stop) == rank:
        raise Refused(INVALID_VALUE, "a map is pointed at a window of another rank than its array's", got=repr(op))
    name = op.array.name

    def edited(agent: Agent, data: bytes) -> bytes:
        low_end, high_end = [f(agent.env) for f in first], [f(agent.env) for f in stop]
        for axis, (a, b) in enumerate(zip(low_end, high_end, strict=True)):
            if b <= a:
                raise Trap(
                    EMPTY_WINDOW,
                    f"a map is pointed at no elements of {name!r}",
                    got=f"elements {a} to {b - 1} along dimension {axis}",
                    required="one element at least: a map cannot be empty",
                    fix="leave empty pieces out of the list of work",
                )
        data = replaced(data, "global_address", 0, start + sum(a * s for a, s in zip(low_end, strides, strict=True)))
        for axis in range(rank):
            data = replaced(data, "global_dim", rank - 1 - axis, high_end[axis] - low_end[axis])
            if axis < rank - 1:
                data = replaced(data, "global_stride", rank - 2 - axis, strides[axis])
        return data

    return edited


# ---- in global memory
def release(low: Lowering, op: ops.TensormapCpFenceproxy) -> list[Make]:
    """By the first class of the warp for all of it: the instruction is the warp's, not a thread's."""
    if low.share.low:
        return []
    edited, address_of, memory = _Edited(low, op.tile), slot_address(low, op.slot), low.bound.memory
    clocks, site, total = low.clocks, low.site, low.share.total

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            image, address = edited.image(agent), address_of(agent.env)
            if clocks is not None:
                clocks.read(agent, image, op, site)
                clocks.ledger.plain(agent, Region(address, (MAP_BYTES // GRANULE,), (GRANULE,), GRANULE), site)
                clocks.maps.release(agent, address, site, warp=total == WARP and agent.kind.threads.first % WARP == 0)
            memory.view(address, MAP_BYTES)[...] = np.frombuffer(edited.read(image), np.uint8)
            return nxt

        return run

    return [make]


def acquire(low: Lowering, op: ops.FenceProxyTensormap) -> Make:
    address_of, clocks = slot_address(low, op.slot), low.clocks

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            address = address_of(agent.env)
            agent.cta.maps.pop(address, None)
            if clocks is not None:
                clocks.maps.acquire(agent, address)
            return nxt

        return run

    return make
