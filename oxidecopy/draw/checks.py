"""Which tiles can be drawn: those that a copy can write, and where it can write them.

The rules of boxes are the descriptor's own; only what it does not judge yet, packed types and shared addresses, has rules here.
"""

from __future__ import annotations

from typing import Final

from oxidecopy.draw.tile import PlacedTile
from oxidecopy.errors import Diagnostic
from oxidecopy.isa import limits
from oxidecopy.isa.swizzle import SwizzleInfo
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import validate

_NEWEST_SM: Final = 103  # every type and swizzle exists: a drawing has no device
_ADDRESS: Final = 1 << 24  # the window of one CTA
# Elements of a box's rows: the driver API on the packed types (T4, T8 and T9 of the encode call).
_PACKED_ROW: Final = {"u4x16_align8b": (32, limits.BOX_DIM_MAX), "u4x16_align16b": (128, 128), "u6x16_align16b": (128, 128)}
_ATOM_32B, _ATOM_64B = "128B_ATOM_32B", "128B_ATOM_64B"
_PACKED_SWIZZLES: Final = {
    ("u4x16_align16b", False): ("none", "128B", _ATOM_32B),
    ("u6x16_align16b", False): ("none", "128B", _ATOM_32B),
    ("u6x16_align16b", True): ("none", "128B", _ATOM_32B, _ATOM_64B),
}


def tile_faults(tile: PlacedTile) -> list[Diagnostic]:
    """Everything that is wrong with a tile that a tensor copy is to write; empty when it can be drawn."""
    boxes = _packed_faults(tile) if tile.info.group_bytes else _box_faults(tile)
    return [*boxes, *swizzle_faults(tile), *address_faults(tile.address, limits.TENSOR_SMEM_ALIGN)]


def swizzle_faults(tile: PlacedTile) -> list[Diagnostic]:
    """What keeps the box's rows from lying under its swizzle."""
    span, allowed = tile.mode.span_bytes, _PACKED_SWIZZLES.get((tile.dtype, tile.stored))
    if allowed is not None and tile.swizzle not in allowed:
        return [
            Diagnostic(
                rule="OX6024",
                what=f"{tile.dtype} is not {'stored' if tile.stored else 'loaded'} under the {tile.swizzle} swizzle",
                got=tile.swizzle,
                required=f"one of {', '.join(allowed)} (CUDA driver API, cuTensorMapEncodeTiled)",
                fix=f"--swizzle {allowed[1]}",
            )
        ]
    if span and tile.row_bytes > span:
        return [_too_wide(tile, tile.mode)]
    return []


def address_faults(address: int, align: int) -> list[Diagnostic]:
    """A shared address is in a CTA's window, and aligned for the copy."""
    if address % align == 0 and 0 <= address < _ADDRESS:
        return []
    down = max(address, 0) // align * align
    fix = f"--at {min(down, _ADDRESS - align):#x}" + (f" or {down + align:#x}" if 0 <= address < _ADDRESS - align else "")
    return [
        Diagnostic(
            rule="OX6021",
            what="no copy has its tile at this shared address",
            got=f"{address:#x}" if address >= 0 else str(address),
            required=f"a multiple of {align} bytes below {_ADDRESS:#x} (measured)",
            fix=fix,
        )
    ]


def _box_faults(tile: PlacedTile) -> list[Diagnostic]:
    """What the driver says of the box, over an array of just its size; its word on the swizzle is left to `swizzle_faults`."""
    strides, step = [], max(tile.shape[-1] if tile.shape else 1, 1) * tile.info.nbytes
    for extent in reversed(tile.shape[1:]):
        strides.append(-(-step // limits.GLOBAL_STRIDE_ALIGN) * limits.GLOBAL_STRIDE_ALIGN % limits.GLOBAL_STRIDE_LIMIT)
        step = strides[-1] * max(extent, 1)
    parameters = MapParameters(
        dtype=tile.info.driver_enum,
        global_address=0,
        global_dim=tuple(max(extent, 1) for extent in tile.shape),
        global_strides=tuple(reversed(strides)),
        box_dim=tile.shape,
        element_strides=(1,) * len(tile.shape),
        swizzle=tile.mode.driver_enum,
        element=tile.dtype,
    )
    return [fault for fault in validate(parameters, arch=_NEWEST_SM).errors if fault.rule != "OX2014"]


def _packed_faults(tile: PlacedTile) -> list[Diagnostic]:
    step, most = _PACKED_ROW[tile.dtype]
    faults: list[Diagnostic] = []
    if not 1 <= len(tile.shape) <= limits.MAX_RANK or not all(1 <= extent <= limits.BOX_DIM_MAX for extent in tile.shape[:-1]):
        what, required = "this is no box", f"1 to {limits.MAX_RANK} extents of 1 to {limits.BOX_DIM_MAX} elements"
        faults.append(Diagnostic(rule="OX6024", what=what, got=_words(tile.shape), required=required, fix="--box 64,128"))
    elif tile.nbytes > limits.BOX_BYTES_MAX:
        required = f"at most {limits.BOX_BYTES_MAX:,} bytes"
        faults.append(Diagnostic(rule="OX6024", what="the box is too large", got=f"{tile.nbytes:,} bytes", required=required))
    inner = tile.shape[-1] if tile.shape else 0
    if inner % step or not step <= inner <= most:
        required = f"{step} elements" if step == most else f"a multiple of {step} elements, at most {most}"
        what, got = f"the rows of a box of {tile.dtype} have another width", f"{inner} elements"
        source = "CUDA driver API, cuTensorMapEncodeTiled"
        faults.append(
            Diagnostic(rule="OX6024", what=what, got=got, required=f"{required} ({source})", fix=f"--box {_words(tile.shape[:-1], step)}")
        )
    return faults


def _too_wide(tile: PlacedTile, mode: SwizzleInfo) -> Diagnostic:
    elements, nbytes = tile.group
    return Diagnostic(
        rule="OX2014",
        what=f"the rows of the box are wider than the span of the {mode.name} swizzle",
        got=f"{tile.shape[-1]} elements of {tile.dtype} = {tile.row_bytes} bytes",
        required=f"at most {mode.span_bytes} bytes",
        fix=f"--box {_words(tile.shape[:-1], mode.span_bytes // nbytes * elements)}, or --swizzle none",
    )


def _words(shape: tuple[int, ...], *more: int) -> str:
    return ",".join(map(str, (*shape, *more)))
