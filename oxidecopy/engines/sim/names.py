"""The user's names for shared addresses."""

from __future__ import annotations

from oxidecopy.isa.limits import MBARRIER_BYTES, SHARED_BASE
from oxidecopy.program.program import Program


def barrier_name(program: Program, address: int) -> str:
    """`full[2]` for the barrier at a shared address of the window."""
    for decl in program.barriers:
        index, rest = divmod(address - SHARED_BASE - decl.offset, MBARRIER_BYTES)
        if 0 <= index < decl.stages and not rest:
            return f"{decl.name}[{index}]" if decl.stages > 1 else decl.name
    return f"the barrier at shared address {address:#x}"


def tile_name(program: Program, low: int, high: int) -> str:
    """`tile[1]` for the tile that holds the shared bytes `low` to `high`-1, or the bytes when no tile does."""
    for decl in program.tiles:
        start = low - SHARED_BASE - decl.offset
        index = start // decl.stage_bytes if decl.stage_bytes else 0
        if start >= 0 and index < decl.stages:
            return f"{decl.name}[{index}]" if decl.stages > 1 else decl.name
    return f"shared bytes {low:#x} to {high - 1:#x}"
