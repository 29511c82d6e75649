"""Rules about the array: rank, element type, extents, address, strides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oxidecopy.isa import limits
from oxidecopy.maps.enumerators import U4_ALIGN8B
from oxidecopy.maps.facts import Facts, capability, clamped, split, up
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.rule import Breach, MapRule

_PARTS: Final = "view the array with one more dimension, or make one descriptor for each part of it"


def _arrays(f: Facts) -> Iterator[Breach]:
    """Each array is there, and as long as the rank says."""
    p = f.p
    wanted = {"global_dim": (p.global_dim, p.rank), "global_strides": (p.global_strides, max(p.rank - 1, 0))}
    for name, (value, count) in wanted.items():
        if value is None or len(value) != count:
            yield Breach(
                what=f"`{name}` does not fit the rank of the map",
                got="a null pointer" if value is None else f"{len(value)} entries",
                required=f"{count} entries",
                fix=f"pass {count} of them; for rank 1 the driver wants a pointer all the same",
            )


def _rank(f: Facts) -> Iterator[Breach]:
    rank = f.p.rank
    if f.p.global_dim is not None and not 1 <= rank <= limits.MAX_RANK:
        fix = "merge neighbouring dimensions with reshape" if rank else "x.reshape(1)"
        yield Breach(what=f"{f.array} has a rank that no map has", got=f"rank {rank}", fix=fix)


def _im2col_rank(f: Facts) -> Iterator[Breach]:
    if f.p.global_dim is not None and not 3 <= f.p.rank <= limits.MAX_RANK:
        fix = "shape it as (n, w, c), (n, h, w, c) or (n, d, h, w, c); extents of 1 are fine"
        yield Breach(what=f"{f.array} has no spatial dimension, or too many", got=f"rank {f.p.rank}", fix=fix)


def _interleaved_rank(f: Facts) -> Iterator[Breach]:
    if f.tiled and f.interleaved and f.p.global_dim is not None and not 3 <= f.p.rank <= limits.MAX_RANK:
        yield Breach(
            what=f"{f.array} has no dimension of slices",
            got=f"rank {f.p.rank}",
            fix='interleave="none", or shape it as (batch, slices, ..., pixels)',
            mended=f.but(interleave=0),
        )


def _known_type(f: Facts) -> Iterator[Breach]:
    if f.info is None:
        yield Breach(what="the element type is unknown", got=str(f.p.dtype), fix="a value of CUtensorMapDataType: 7 is f32")


def _type_on_device(f: Facts) -> Iterator[Breach]:
    if f.info is not None and 90 <= f.sm < f.info.min_sm:
        yield Breach(
            what=f"{f.name} does not exist on this device",
            got=f"compute capability {capability(f.sm)}",
            required=f"{capability(f.info.min_sm)} or newer",
            fix="unpack the values into u8 before the upload",
        )


def _not_empty(f: Facts) -> Iterator[Breach]:
    for axis, extent in enumerate(f.dims):
        if extent < 1:
            fix = "skip the launch when there is nothing to copy"
            yield Breach(what=f"dimension {axis} of {f.array} is empty", got=str(extent), fix=fix)


def _extent(f: Facts) -> Iterator[Breach]:
    for axis, extent in enumerate(f.dims):
        if extent > limits.GLOBAL_DIM_MAX:
            mended = f.but(global_dim=tuple(min(n, limits.GLOBAL_DIM_USABLE_SM90) for n in f.dims))
            yield Breach(what=f"dimension {axis} of {f.array} is too long", got=f"{extent:,}", fix=_PARTS, mended=mended)


def _usable_extent(f: Facts) -> Iterator[Breach]:
    for axis, extent in enumerate(f.dims):
        if limits.GLOBAL_DIM_USABLE_SM90 < extent <= limits.GLOBAL_DIM_MAX and f.sm < 100:
            what = f"dimension {axis} of {f.array} is too long for compute capability 9.0: the map encodes, then every copy faults"
            mended = f.but(global_dim=tuple(min(n, limits.GLOBAL_DIM_USABLE_SM90) for n in f.dims))
            yield Breach(what=what, got=f"{extent:,}", fix=_PARTS, mended=mended)


def _packed_extent(f: Facts) -> Iterator[Breach]:
    step = 128 if f.padded else 2 if f.p.dtype == U4_ALIGN8B else 1
    if f.dims and f.dims[-1] % step:
        extent, longer = f.dims[-1], up(f.dims[-1], step)
        yield Breach(
            what=f"the innermost dimension of {f.array} cuts a group of packed values",
            got=f"{extent:,} = {extent // step:,} x {step} + {extent % step}",
            required=f"a multiple of {step} elements",
            fix=f"pad the row to {longer:,} values",
            mended=f.but(global_dim=(*f.dims[:-1], longer)),
        )


def _address(f: Facts) -> Iterator[Breach]:
    address, unit = f.p.global_address, limits.GLOBAL_ADDRESS_ALIGN
    if over := address % unit:
        yield Breach(
            what=f"{f.array} starts at a misaligned address",
            got=f"{address:#x}, {over} bytes past a multiple of {unit}",
            fix=f"start it {unit - over} bytes later, or upload a copy with dev.array",
            mended=f.but(global_address=up(address, unit)),
        )


def _wide_address(f: Facts) -> Iterator[Breach]:
    address = f.p.global_address
    if f.unit == 32 and address % 32 and address % 16 == 0:
        yield Breach(
            what=f"{f.array} starts at a multiple of 16 bytes, which is too little for {_why_32(f)}",
            got=f"{address:#x}",
            fix="start it 16 bytes later, or upload a copy with dev.array",
            mended=f.but(global_address=up(address, 32)),
        )


def _why_32(f: Facts) -> str:
    return f.name if f.padded else "interleave 32B"


def _address_range(f: Facts) -> Iterator[Breach]:
    if not 0 <= f.p.global_address < limits.GLOBAL_ADDRESS_LIMIT:
        what = f"{f.array} lies beyond the addresses a map can hold"
        yield Breach(what=what, got=f"{f.p.global_address:#x}", fix="upload a copy with dev.array")


def _stride_range(f: Facts) -> Iterator[Breach]:
    for axis, stride in enumerate(f.strides):
        if not 0 <= stride < limits.GLOBAL_STRIDE_LIMIT:
            dense = f.padded_strides()
            yield Breach(
                what=f"the stride of dimension {axis} of {f.array} is out of range",
                got=f"{stride:,} bytes",
                fix="upload a copy: dev.array(np.ascontiguousarray(x))",
                mended=f.but(global_strides=dense) if dense else None,
            )


def _stride(f: Facts) -> Iterator[Breach]:
    unit = limits.GLOBAL_STRIDE_ALIGN
    for axis, stride in enumerate(f.strides):
        if stride % unit:
            what = f"the stride of dimension {axis} of {f.array} is no multiple of {unit} bytes"
            fix = f"pad the row{_to(f)}: dev.array(x, pad=True), or dev.empty(shape, dtype, pad=True)"
            yield Breach(what=what, got=split(stride, unit), fix=fix, mended=_padded(f, unit))


def _wide_stride(f: Facts) -> Iterator[Breach]:
    for axis, stride in enumerate(f.strides):
        if f.unit == 32 and stride % 32 and stride % 16 == 0:
            what = f"the stride of dimension {axis} of {f.array} is no multiple of 32 bytes, which {_why_32(f)} needs"
            yield Breach(what=what, got=split(stride, 32), fix=f"pad the row{_to(f)}", mended=_padded(f, 32))


def _to(f: Facts) -> str:
    # Of a view that was cut from wider rows, those have to be padded.
    row = f.slice_bytes or -(-f.dims[-1] * f.bits // 8) if f.dims else 0
    cut_from = min((stride for stride in f.strides if stride >= row), default=0)
    pitch = max(f.row_pitch, up(cut_from, f.unit)) if row else 0
    return f" to {pitch} bytes" if pitch else ""


def _padded(f: Facts, unit: int) -> MapParameters:
    """Dense strides of padded rows, or where those are out of range each stride rounded for itself."""
    below = limits.GLOBAL_STRIDE_LIMIT - unit
    return f.but(global_strides=f.padded_strides() or clamped(tuple(up(s, unit) for s in f.strides), 0, below))


RULES: Final = (
    MapRule(id="OX2025", gate="encodes", bound="an array of each, one entry per dimension", check=_arrays),
    MapRule(id="OX2001", gate="encodes", bound=f"1 to {limits.MAX_RANK}", check=_rank, kinds=("tiled",)),
    MapRule(id="OX2034", gate="encodes", bound=f"rank 3 to {limits.MAX_RANK}", check=_im2col_rank, kinds=("im2col", "im2col_wide")),
    MapRule(id="OX2033", gate="encodes", bound=f"rank 3 to {limits.MAX_RANK} with interleave", check=_interleaved_rank, kinds=("tiled",)),
    MapRule(id="OX2043", gate="encodes", bound="0 to 15", check=_known_type),
    MapRule(id="OX2022", gate="encodes", bound="compute capability 10.0 for packed types", check=_type_on_device),
    MapRule(id="OX2002", gate="encodes", bound="at least 1 element", check=_not_empty),
    MapRule(id="OX2003", gate="encodes", bound=f"at most {limits.GLOBAL_DIM_MAX:,} elements", check=_extent),
    MapRule(id="OX2004", gate="usable", bound=f"at most {limits.GLOBAL_DIM_USABLE_SM90:,} elements", check=_usable_extent),
    MapRule(id="OX2036", gate="encodes", bound="a multiple of 2 (u4x16_align8b) or 128 (other packed types)", check=_packed_extent),
    MapRule(id="OX2009", gate="encodes", bound=f"a multiple of {limits.GLOBAL_ADDRESS_ALIGN} bytes", check=_address),
    MapRule(id="OX2035", gate="encodes", bound="a multiple of 32 bytes", check=_wide_address),
    MapRule(id="OX2010", gate="encodes", bound="0 up to, not including, 2^57", check=_address_range),
    MapRule(id="OX2006", gate="encodes", bound=f"a multiple of {limits.GLOBAL_STRIDE_ALIGN} bytes", check=_stride),
    MapRule(id="OX2037", gate="encodes", bound="a multiple of 32 bytes", check=_wide_stride),
    MapRule(id="OX2008", gate="encodes", bound="0 up to, not including, 2^40 bytes", check=_stride_range),
)
