"""Places for maps in global memory, one or more for each CTA, and the maps that copies find there."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, final

from oxidecopy.engines.sim.faults import ILLEGAL_INSTRUCTION, Fault, Refused
from oxidecopy.engines.sim.map_image import MAP_BYTES
from oxidecopy.engines.sim.packed import PackedPlan
from oxidecopy.engines.sim.pixels import PixelPlan, plan_of
from oxidecopy.engines.sim.tma import TensorPlan
from oxidecopy.program.map_bytes import decode
from oxidecopy.program.replaced import row_of, slots_per_cta

if TYPE_CHECKING:
    from collections.abc import Callable

    from oxidecopy.engines.sim.agents import Agent
    from oxidecopy.engines.sim.exprs import Value
    from oxidecopy.engines.sim.lowering import Lowering
    from oxidecopy.isa.ops import MapRef, SlotRef

CopyMap: TypeAlias = TensorPlan | PixelPlan | PackedPlan


def slot_address(low: Lowering, slot: SlotRef) -> Value:
    """Where a place of the executing CTA lies."""
    array = low.bound.arrays[slot.array]
    first, stride = array.buffer.address + array.offset_bytes, array.info.strides_bytes[0]
    constants = low.bound.constants
    grid = (constants["grid_dim.x"], constants["grid_dim.y"], constants["grid_dim.z"])
    row = low.value(row_of(slot, slots_per_cta(low.bound.program)[slot.array], grid))
    return lambda env: first + row(env) * stride


def map_of(low: Lowering, ref: MapRef) -> Callable[[Agent], CopyMap]:
    """The map that a reference names: of a table the entry that its index names now, of a place what the CTA knows to be there."""
    if ref.slot is not None:
        return _Found(low, slot_address(low, ref.slot), low.bound.program.maps[ref.name].mode).at
    table = [low.bound.plans[name] for name in low.bound.program.maps[ref.name].bound_names]
    if ref.index is None:
        (one,) = table
        return lambda _agent: one
    index_of = low.value(ref.index)

    def entry(agent: Agent) -> CopyMap:
        i = index_of(agent.env)
        if not 0 <= i < len(table):
            raise Fault(
                ILLEGAL_INSTRUCTION,
                "a copy goes through what lies beside a table of maps",
                got=f"entry {i} of {ref.name!r}",
                required=f"0 to {len(table) - 1}",
                fix="keep the index below the number of entries",
            )
        return table[i]

    return entry


@final
class _Found:
    """Maps that were found at a place, by their bytes: a CTA keeps the first that it meets there, until it acquires the place."""

    def __init__(self, low: Lowering, address_of: Value, mode: str) -> None:
        self._memory, self._address_of, self._mode = low.bound.memory, address_of, mode
        self._known: dict[bytes, CopyMap] = {}

    def at(self, agent: Agent) -> CopyMap:
        address, kept = self._address_of(agent.env), agent.cta.maps
        data = kept.get(address)
        if data is None:
            data = kept[address] = self._memory.view(address, MAP_BYTES).tobytes()
        found = self._known.get(data)
        if found is None:
            found = self._known[data] = self._plan(data)
        return found

    def _plan(self, data: bytes) -> CopyMap:
        read = decode(data)
        if read.tensor_map is None:
            raise _no_map("; ".join(read.oddities))
        try:
            return plan_of(read.tensor_map, read.address, self._memory, self._mode)
        except Refused as why:
            raise _no_map(why.got) from None


def _no_map(got: str) -> Fault:
    return Fault(
        ILLEGAL_INSTRUCTION,
        "a copy goes through bytes that are no tensor map",
        got=got,
        required="a map that was copied there (tensormap.cp_fenceproxy), with fields that go together",
        fix="start from a descriptor: `slot.edit(leader)`",
    )
