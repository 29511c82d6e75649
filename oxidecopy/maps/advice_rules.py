"""Advice: what encodes and works, and is almost surely not what was meant, or slow. Asked only of maps that encode."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import gcd, prod
from typing import Final

from oxidecopy.isa import limits
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.maps.enumerators import PROMOTION_OF, PROMOTIONS
from oxidecopy.maps.facts import Facts, replaced, up
from oxidecopy.maps.rule import Breach, MapRule

_LINE: Final = 128  # bytes: one row of all 32 banks, and the alignment of a tensor copy in shared memory
_CHUNK: Final = 16  # bytes: what a lane reads at once, and the grain of swizzles and of stores
_PHASE: Final = 8  # lanes of 16 bytes that read shared memory in one cycle
_SECTOR: Final = 32  # bytes: narrower rows halve the bandwidth (measured)
_ONE_SWIZZLE: Final = 1  # of 32 bytes, by its enumerator


# ---- the box against the array
def _box_beyond(f: Facts) -> Iterator[Breach]:
    if f.interleaved or not f.box:
        return
    for axis, (box, extent) in enumerate(zip(f.box, f.dims, strict=True)):
        step = 128 if f.padded else _CHUNK * 8 // gcd(f.bits, _CHUNK * 8)
        needed = up(extent, step) if axis == len(f.dims) - 1 else extent
        if box > needed:
            yield Breach(
                what=f"the box is larger than {f.array} in dimension {axis}: that part is filled by every load, and never stored",
                got=f"{box} of {extent}",
                fix=f"box {replaced(f.box, axis, needed)}",
                mended=f.but(box_dim=replaced(f.box, axis, needed)),
            )


def _step_beyond(f: Facts) -> Iterator[Breach]:
    for axis, (step, extent) in enumerate(zip(f.steps, f.dims, strict=True)):
        if step > extent:
            mended = replaced(f.steps, axis, 1)
            what = f"the element stride of dimension {axis} is longer than {f.array}: one element at most is taken"
            yield Breach(what=what, got=f"{step} of {extent}", fix=f"element_strides={mended}", mended=f.but(element_strides=mended))


def _corner_beyond(f: Facts) -> Iterator[Breach]:
    for axis, entry, lower, _ in f.corners:
        if entry is not None and lower >= f.dims[axis]:
            mended = f.but(lower=replaced(f.p.lower or (), entry, 0))
            what = f"all filter bases lie behind the end of dimension {axis}: every pixel is filled"
            yield Breach(what=what, got=f"lower corner {lower} of {f.dims[axis]}", fix="lower corner 0", mended=mended)


# ---- the array in memory
def _null(f: Facts) -> Iterator[Breach]:
    if f.p.global_address == 0:
        fix = "pass the address of the array; a template is pointed elsewhere before its first copy"
        yield Breach(what="the map points to no memory: copies through it fault (CUresult 700)", got="address 0", fix=fix)


def _broadcast(f: Facts) -> Iterator[Breach]:
    for axis, stride in enumerate(f.strides):
        if stride == 0 and f.dims[axis] > 1:
            what = f"all {f.dims[axis]:,} indices of dimension {axis} are one place in memory: stores through the map race with themselves"
            yield Breach(what=what, got="stride 0", fix="load only through this map; reduce add is exact (measured)")


def _overlap(f: Facts) -> Iterator[Breach]:
    sizes = (*f.strides, f.slice_bytes or f.bits / 8)
    rows = sorted((s, n, axis) for axis, (s, n) in enumerate(zip(sizes, f.dims, strict=True)) if n > 1 and s)
    for (inner, extent, below), (stride, _, axis) in pairwise(rows):
        if stride < inner * extent:
            yield Breach(
                what=f"indices of dimension {axis} overlap in memory with those of dimension {below}: stores race with themselves",
                got=f"stride {stride:,} bytes under {extent:,} x {inner:g}",
                fix="load only through this map, or pass the strides in bytes",
            )


def _base(f: Facts) -> Iterator[Breach]:
    address = f.p.global_address
    if f.p.swizzle and address % _LINE:
        yield Breach(
            what=f"{f.array} starts inside a 128-byte line: rows of a swizzled box touch two lines each",
            got=f"{address:#x}, {address % _LINE} bytes past a multiple of {_LINE}",
            fix=f"start it {_LINE - address % _LINE} bytes later, or upload a copy with dev.array",
            mended=f.but(global_address=up(address, _LINE)),
        )


def _edge(f: Facts) -> Iterator[Breach]:
    nbytes = -(-f.dims[-1] * f.bits // 8)
    behind = -nbytes % _CHUNK
    if f.interleaved or not behind or nbytes + behind in f.strides:  # rows follow each other along any dimension, in permuted views
        return
    per_chunk = _CHUNK * 8 // gcd(f.bits, _CHUNK * 8)
    longer = up(f.dims[-1], per_chunk)
    padded = "give the array padded rows: dev.empty(shape, dtype, pad=True)" if f.strides else f"make the array {longer:,} elements long"
    yield Breach(
        what=f"stores at the edge of a row of {f.array} write {behind} bytes behind it",
        got=f"{nbytes:,} bytes = {nbytes // _CHUNK:,} x {_CHUNK} + {nbytes % _CHUNK}",
        fix=f"load only through this map, or {padded}",
    )


# ---- the tile in shared memory
def _layout(f: Facts) -> tuple[int, int]:
    """Rows of one copy, and bytes from one to the next."""
    rows = prod(-(-b // s) for b, s in zip(f.box[:-1], f.steps[:-1], strict=True)) if f.tiled else f.p.pixels
    span = f.swizzle.span_bytes if f.swizzle else 0
    return rows, span or f.row_bytes


def _too_large(f: Facts) -> Iterator[Breach]:
    most = limits.SHARED_BYTES_MAX.get(f.sm, limits.BOX_BYTES_MAX)
    if f.interleaved:
        return
    rows, pitch = _layout(f)
    footprint = pitch * (rows - 1) + f.row_bytes
    if footprint > most:
        yield Breach(
            what="a tile of this map does not fit into the shared memory of one block",
            got=f"{rows} rows, {pitch} bytes apart: {footprint:,} bytes",
            fix="a smaller box; with a swizzle, rows as wide as its span",
        )


def _gaps(f: Facts) -> Iterator[Breach]:
    span = f.swizzle.span_bytes if f.swizzle else 0
    if f.interleaved or f.row_bytes >= span:
        return
    fitting = next((mode for mode in SWIZZLES.values() if mode.span_bytes == f.row_bytes), None)
    wider = span * 16 // f.group_bytes
    others = ", ".join(
        f"{mode.span_bytes * 16 // f.group_bytes} with ox.Swizzle{mode.name}"
        for mode in SWIZZLES.values()
        if mode.name in ("32B", "64B", "128B") and mode.span_bytes != span
    )
    yield Breach(
        what=f"rows of the tile lie {span} bytes apart and hold less: the rest of each is lost",
        got=f.row,
        fix=f"swizzle=ox.Swizzle{fitting.name}" if fitting else f"{f.inner_name} {wider}; or {others}",
        mended=f.but(swizzle=fitting.driver_enum) if fitting else f.with_inner(wider),
    )


def _banks(f: Facts) -> Iterator[Breach]:
    if f.interleaved or f.p.swizzle:
        return
    rows, pitch = _layout(f)
    ways = gcd(_PHASE, pitch // _CHUNK)
    if ways < 4 or rows < _PHASE:
        return
    fitting = next((m for m in SWIZZLES.values() if m.span_bytes >= pitch), SWIZZLES["128B"])
    inner = min(f.inner, fitting.span_bytes * 16 // f.group_bytes)
    yield Breach(
        what=f"a column of the tile lies in few banks: reading it by 16 bytes a lane takes {ways} times as long",
        got=f"rows {pitch} bytes apart",
        fix=f"swizzle=ox.Swizzle{fitting.name}" + (f" and {f.inner_name} {inner}" if inner != f.inner else ""),
    )


# ---- speed of global memory
def _narrow(f: Facts) -> Iterator[Breach]:
    nbytes = f.inner * f.bits // 8
    if not f.interleaved and nbytes < _SECTOR <= f.dims[-1] * f.bits // 8:
        wider = f.inner * _SECTOR // nbytes
        what = "rows of the box are half a sector: copies reach half of the bandwidth"
        yield Breach(what=what, got=f.row, fix=f"{f.inner_name} {wider} or more")


def _promotion(f: Facts) -> Iterator[Breach]:
    """What is fetched beyond a row of the array is nobody's; beyond a row of the box it is the next box's, and soon used."""
    fetched, nbytes = PROMOTION_OF[f.p.l2_promotion], -(-f.dims[-1] * f.bits // 8)
    apart = min((stride for stride, extent in zip(f.strides, f.dims, strict=False) if stride and extent > 1), default=0)
    least = up(nbytes, 64)
    best = max(n for n in PROMOTIONS if n and up(nbytes, n) == least)
    if not f.interleaved and fetched <= apart and fetched and up(nbytes, fetched) > least:
        yield Breach(
            what=f"L2 fetches {fetched} bytes for each row of {f.array}, which end before that and lie alone",
            got=f"rows of {nbytes} bytes, {apart:,} bytes apart",
            fix=f"l2_promotion={best}",
            mended=f.but(l2_promotion=PROMOTIONS[best]),
        )


# ---- interleave
def _slices(f: Facts) -> Iterator[Breach]:
    if f.interleaved and f.tiled and f.box[1] > 1:
        box = replaced(f.box, 1, 1)
        what = "one copy moves one slice, whatever the box says"
        yield Breach(what=what, got=f"{f.box[1]} slices in the box", fix=f"box {box}", mended=f.but(box_dim=box))


def _slice_swizzle(f: Facts) -> Iterator[Breach]:
    if f.slice_bytes == _SECTOR and f.p.swizzle != _ONE_SWIZZLE:
        what = "the driver's text wants the 32B swizzle with interleave 32B; other modes encode and work"
        yield Breach(what=what, got=f.swizzle_name, fix="swizzle=ox.Swizzle32B", mended=f.but(swizzle=_ONE_SWIZZLE))


RULES: Final = (
    MapRule(id="OX2101", gate="advice", bound="at most the extent of the array", check=_box_beyond, kinds=("tiled",)),
    MapRule(id="OX2102", gate="advice", bound="at most the shared memory of one block, 227 KiB on 9.0", check=_too_large),
    MapRule(id="OX2103", gate="advice", bound="at least stride x extent of the dimension below", check=_overlap, when="stored through"),
    MapRule(id="OX2104", gate="advice", bound="no stride 0 where the map is stored through", check=_broadcast, when="stored through"),
    MapRule(id="OX2105", gate="advice", bound="at most the extent of the array", check=_step_beyond),
    MapRule(id="OX2106", gate="advice", bound="a multiple of 128 bytes with a swizzle", check=_base),
    MapRule(id="OX2107", gate="advice", bound="rows as wide as the span of the swizzle", check=_gaps),
    MapRule(id="OX2108", gate="advice", bound="rows an odd number of 16 bytes apart, or a swizzle", check=_banks, when="read by columns"),
    MapRule(id="OX2109", gate="advice", bound="no promotion beyond the bytes of the array's rows", check=_promotion),
    MapRule(id="OX2110", gate="advice", bound="at least 32 bytes", check=_narrow),
    MapRule(id="OX2111", gate="advice", bound="the 32B swizzle with interleave 32B", check=_slice_swizzle),
    MapRule(id="OX2112", gate="advice", bound="rows of a multiple of 16 bytes, or padded to one", check=_edge, when="stored through"),
    MapRule(id="OX2113", gate="advice", bound="1 slice", check=_slices, kinds=("tiled",)),
    MapRule(id="OX2114", gate="advice", bound="less than the extent", check=_corner_beyond, kinds=("im2col", "im2col_wide")),
    MapRule(id="OX2115", gate="advice", bound="an address", check=_null),
)
