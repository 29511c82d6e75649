"""Which tiles can be drawn: those that a copy can write, and where it can write them.

The rules of boxes are the validator's own; only what belongs to no map has rules here: shared addresses, and the direction of a copy.
"""

from __future__ import annotations

from typing import Final

from oxidecopy.draw.tile import PlacedTile
from oxidecopy.errors import Diagnostic
from oxidecopy.isa import limits
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import validate

_NEWEST_SM: Final = 103  # every type and swizzle exists: a drawing has no device
_EXTENT: Final = 128  # of the array, in each dimension: legal for every type, and a box may be larger
_SWIZZLE_RULES: Final = ("OX2014", "OX2040")  # span, packed types
_STORED_ONLY: Final = "128B_ATOM_64B"  # with 6-bit elements (CUDA driver API)


def tile_faults(tile: PlacedTile) -> list[Diagnostic]:
    """Everything that is wrong with a tile that a tensor copy is to write; empty when it can be drawn."""
    return [*_map_faults(tile), *_direction_faults(tile), *address_faults(tile.address, limits.TENSOR_SMEM_ALIGN)]


def swizzle_faults(tile: PlacedTile) -> list[Diagnostic]:
    """What keeps the box's rows from lying under its swizzle."""
    return [*(fault for fault in _map_faults(tile) if fault.rule in _SWIZZLE_RULES), *_direction_faults(tile)]


def address_faults(address: int, align: int) -> list[Diagnostic]:
    """A shared address is in a CTA's window, and aligned for the copy."""
    window = limits.CTA_WINDOW_BYTES
    if address % align == 0 and 0 <= address < window:
        return []
    down = max(address, 0) // align * align
    fix = f"--at {min(down, window - align):#x}" + (f" or {down + align:#x}" if 0 <= address < window - align else "")
    return [
        Diagnostic(
            rule="OX6021",
            what="no copy has its tile at this shared address",
            got=f"{address:#x}" if address >= 0 else str(address),
            required=f"a multiple of {align} bytes below {window:#x} (measured)",
            fix=fix,
        )
    ]


def _map_faults(tile: PlacedTile) -> tuple[Diagnostic, ...]:
    """What the driver says of such a box, over some array."""
    rank = len(tile.shape)
    parameters = MapParameters(
        dtype=tile.info.driver_enum,
        global_address=0,
        global_dim=(_EXTENT,) * rank,
        global_strides=(0,) * (rank - 1),
        box_dim=tile.shape,
        element_strides=(1,) * rank,
        swizzle=tile.mode.driver_enum,
        element=tile.dtype,
    )
    return validate(parameters, arch=_NEWEST_SM).errors


def _direction_faults(tile: PlacedTile) -> list[Diagnostic]:
    if tile.info.bits != 6 or tile.stored or tile.swizzle != _STORED_ONLY:
        return []
    return [
        Diagnostic(
            rule="OX6024",
            what=f"{tile.dtype} is not loaded under the {tile.swizzle} swizzle",
            got="a load",
            required="a store (CUDA driver API, cuTensorMapEncodeTiled)",
            fix="--stored, or --swizzle 128B",
        )
    ]
