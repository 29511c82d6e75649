"""What is said of a tile in words, the same in a terminal and in a picture."""

from __future__ import annotations

from collections.abc import Mapping

from oxidecopy.draw.reads import Read
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.isa.swizzle import EVERY_SWIZZLE


def facts(tile: PlacedTile) -> list[str]:
    """What it is; how its rows lie; what is odd about it."""
    shape = " x ".join(map(str, tile.shape))
    plural = "" if tile.rows == 1 else "s"
    size = f"{tile.footprint_bytes:,} bytes of shared memory"
    lines = [
        f"box {shape} of {tile.dtype}, swizzle {tile.swizzle}, at {tile.address:#x}",
        f"{tile.rows} row{plural} of {tile.row_bytes} bytes, {tile.pitch_bytes} bytes apart; {size}",
    ]
    if len(tile.shape) > 2:
        last = ", ".join(map(str, tile.coordinates(tile.rows - 1)))
        lines.append(f"rows are counted through the outer dimensions: row {tile.rows - 1} is ({last})")
    if tile.info.group_bytes:
        lines.append(_packed(tile))
    if tile.row_bytes < tile.pitch_bytes:
        lines.append(f"rows are narrower than the span: {tile.pitch_bytes - tile.row_bytes} bytes behind each stay unused")
    if not tile.aligned:
        lines.append(f"not at a multiple of {tile.mode.repeat_bytes}: a rotated pattern, refused in pipelines (OX1010)")
    if tile.mode.flip_8b:
        lines.append("on odd lines (assumed) the 8-byte halves of each 16 bytes are swapped")
    if tile.mode.min_sm > tile.info.min_sm or tile.info.min_sm > 90:
        sm = max(tile.mode.min_sm, tile.info.min_sm)
        lines.append(f"needs compute capability {sm // 10}.{sm % 10}; drawn from the PTX ISA, not measured")
    return lines


def _packed(tile: PlacedTile) -> str:
    """How sixteen elements lie."""
    if tile.stored and tile.info.bits == 6:
        return "as stores read it: one element in the low 6 bits of each byte"
    data = 16 * tile.info.bits // 8
    gap = tile.info.group_bytes - data
    return f"each 16 elements are {data} bytes" + (f", then a gap of {gap}" if gap else "")


def read_words(read: Read) -> str:
    """How a warp reads, without the result."""
    return f"{read.name} {read.lanes} x {read.nbytes} B"


def conflict_rows(by_swizzle: Mapping[str, tuple[Read, ...]]) -> list[tuple[str, str, str, str]]:
    """A heading, then one row for each swizzle: the degree of each read; a dash where the box cannot lie so, or cannot be read so."""
    widest = max(by_swizzle.values(), key=len)
    by_name = {read.name: read_words(read) for read in widest}
    heading = ("swizzle", *(by_name.get(name, name) for name in ("row", "column", "ldmatrix")))
    rows: list[tuple[str, str, str, str]] = [(heading[0], heading[1], heading[2], heading[3])]
    for name in EVERY_SWIZZLE:
        degrees = {read.name: read.degree for read in by_swizzle[name]}
        rows.append((name, degrees.get("row", "-"), degrees.get("column", "-"), degrees.get("ldmatrix", "-")))
    return rows
