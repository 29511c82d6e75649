"""Maps that a program replaces on the device: which parameters they may point at, and how many places each CTA has for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oxidecopy.isa import ops
from oxidecopy.isa.expr import ZERO, Const, Expr, Sym, SymKind, add, mul
from oxidecopy.isa.ops import SlotRef
from oxidecopy.program.program import BLOCK_SYMBOLS, Program, Step, walk

SLOT_BYTES: Final = 128
SLOT_DTYPE: Final = "u8"
SLOT_RANK: Final = 2
SLOTS_MAX: Final = 64  # ours: places of a CTA in one array of maps


def slots_named(program: Program) -> Iterator[SlotRef]:
    """Every place that an op of the program names."""
    for step in program.walk():
        if isinstance(step.op, ops.TensormapCpFenceproxy | ops.FenceProxyTensormap):
            yield step.op.slot
        elif isinstance(step.op, ops.Through) and step.op.map.slot is not None:
            yield step.op.map.slot


def slots_per_cta(program: Program) -> dict[str, int]:
    """Arrays of maps, with how many rows each CTA owns."""
    found: dict[str, int] = {}
    for slot in slots_named(program):
        found[slot.array] = max(found.get(slot.array, 0), slot.number + 1)
    return found


def row_of(slot: SlotRef, count: int, grid: tuple[int, int, int]) -> Expr:
    """The row of a place, where each CTA has `count` of them: CTAs are numbered x fastest."""
    linear: Expr = ZERO
    for name, n in reversed(list(zip(BLOCK_SYMBOLS, grid, strict=True))):
        linear = add(mul(linear, Const(n)), Sym(name, SymKind.BLOCK)) if n > 1 else linear
    return add(mul(linear, Const(count)), Const(slot.number))


def pointed_at(program: Program) -> dict[SlotRef, tuple[str, ...]]:
    """Of each place, the parameters that the map there may point at: arrays that a map was pointed at, and maps as they were copied.

    Where a copied map is pointed elsewhere before it can be released, what it was is no matter.
    """
    tiles: dict[int, dict[str, None]] = {}
    sources: dict[SlotRef, dict[int, None]] = {}
    for tile, name in _exposed(program.steps):
        tiles.setdefault(tile, {})[name] = None
    for step in program.walk():
        match step.op:
            case ops.TensormapReplaceArray(array=array, tile=ref):
                tiles.setdefault(ref.tile, {})[array.name] = None
            case ops.TensormapCpFenceproxy(slot=slot, tile=ref):
                sources.setdefault(slot, {})[ref.tile] = None
            case _:
                pass
    return {slot: tuple({name: None for tile in made for name in tiles.get(tile, {})}) for slot, made in sources.items()}


def _exposed(steps: tuple[Step, ...]) -> Iterator[tuple[int, str]]:
    """Tiles with the maps that are copied there and may be released as they are."""
    for i, step in enumerate(steps):
        if isinstance(step.op, ops.TensormapCopy) and not _pointed_away(steps[i + 1 :], step.op.tile):
            yield step.op.tile.tile, step.op.map.name
        yield from _exposed(step.body)


def _pointed_away(steps: tuple[Step, ...], tile: ops.TileRef) -> bool:
    """The map in `tile` is pointed elsewhere by one of these steps, before any releases it."""
    for step in steps:
        if isinstance(step.op, ops.TensormapReplaceArray) and step.op.tile == tile:
            return True
        if any(isinstance(s.op, ops.TensormapCpFenceproxy) and s.op.tile.tile == tile.tile for s in walk((step,))):
            return False
    return False
