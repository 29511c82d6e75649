"""Rules about one copy: box, channels and pixels, corners, element strides, the bytes of a row and of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, prod
from typing import Final

from oxidecopy.isa import limits
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.maps.facts import Facts, clamped, replaced
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.rule import Breach, MapRule

_UNIT: Final = limits.BOX_INNER_ALIGN
_IM2COL: Final = ("im2col", "im2col_wide")


# ---- extents
def _box_length(f: Facts) -> Iterator[Breach]:
    yield from _length(f, "box", f.p.box_dim)


def _steps_length(f: Facts) -> Iterator[Breach]:
    yield from _length(f, "element_strides", f.p.element_strides)


def _length(f: Facts, name: str, value: tuple[int, ...] | None) -> Iterator[Breach]:
    rank = f.p.rank
    if value is None or len(value) != rank:
        given = value or ((_least_inner(f),) if name == "box" else (1,))
        resized = (1,) * (rank - len(given)) + given[max(0, len(given) - rank) :]
        yield Breach(
            what=f"`{name}` has another rank than {f.array}",
            got="a null pointer" if value is None else f"{value}, of length {len(value)}",
            required=f"length {rank}, outermost first",
            fix=f"{name}={resized}",
            mended=f.but(**{"box_dim" if name == "box" else name: resized}),
        )


def _box(f: Facts) -> Iterator[Breach]:
    wrong = [axis for axis, extent in enumerate(f.box) if not 1 <= extent <= limits.BOX_DIM_MAX]
    if not wrong:
        return
    fitting = clamped(f.box, 1, limits.BOX_DIM_MAX)
    mended = (*fitting[:-1], fitting[-1] if f.inner > 0 else _least_inner(f))
    for axis in wrong:
        fix = f"box {mended}" + ("; more copies cover the rest" if f.box[axis] > 1 else "")
        got = str(f.box[axis])
        yield Breach(what=f"entry {axis} of the box is out of range", got=got, fix=fix, mended=f.but(box_dim=mended))


def _channels(f: Facts) -> Iterator[Breach]:
    channels = f.p.channels
    if not 1 <= channels <= limits.BOX_DIM_MAX:
        fitting = limits.BOX_DIM_MAX if channels > 1 else _least_inner(f)
        what = "the channels that one copy takes of a pixel are out of range"
        yield Breach(what=what, got=str(channels), fix=f"channels={fitting}", mended=f.but(channels=fitting))


def _pixels(f: Facts) -> Iterator[Breach]:
    if f.p.kind == "im2col_wide" and f.p.wide_mode == 1 and f.sm >= 100:
        return  # the copy takes 128, whatever is said here
    pixels = f.p.pixels
    if not 1 <= pixels <= limits.PIXELS_MAX:
        fitting = min(max(pixels, 1), limits.PIXELS_MAX)
        yield Breach(what="the pixels of one copy are out of range", got=str(pixels), fix=f"pixels={fitting}", mended=f.but(pixels=fitting))


def _least_inner(f: Facts) -> int:
    """The smallest row that a copy can have."""
    return 128 if f.padded else _inner_step(f)


def _inner_step(f: Facts) -> int:
    """Elements of 16 bytes; 1 when the size is unknown."""
    return _UNIT * 8 // gcd(f.bits, _UNIT * 8) if f.bits else 1


# ---- one row
def _inner_bytes(f: Facts) -> Iterator[Breach]:
    """In global memory; padded types have a rule of their own."""
    row_bits = f.inner * f.bits
    if f.inner < 1 or f.padded or not row_bits % (_UNIT * 8):
        return
    step = _inner_step(f)
    below = min(f.inner, limits.BOX_DIM_MAX) // step * step
    span = f.swizzle.span_bytes if f.swizzle and not f.interleaved else 0
    most = min(limits.BOX_DIM_MAX, span * 8 // f.bits) if span else limits.BOX_DIM_MAX
    near = [n for n in (below, below + step) if 1 <= n <= most] or [most // step * step]
    nbytes = row_bits / 8
    yield Breach(
        what=f"{'the innermost extent of the box is' if f.tiled else 'the channels of a pixel are'} no multiple of {_UNIT} bytes",
        got=f"{f.row} = {int(nbytes // _UNIT)} x {_UNIT} + {nbytes % _UNIT:g}",
        required=f"a multiple of {_UNIT} bytes: of {step} elements",
        fix=f"{f.inner_name} {' or '.join(map(str, near))}",
        mended=f.with_inner(near[0]),
    )


def _padded_inner(f: Facts) -> Iterator[Breach]:
    if f.padded and f.inner >= 1 and f.inner != 128:
        yield Breach(
            what=f"a copy of {f.name} moves rows of another length", got=str(f.inner), fix=f"{f.inner_name} 128", mended=f.with_inner(128)
        )


def _span(f: Facts) -> Iterator[Breach]:
    span = f.swizzle.span_bytes if f.swizzle else 0
    if not span or f.interleaved or f.inner < 1 or f.row_bytes <= span:
        return
    fits = span * 16 // f.group_bytes
    wider = next((name for name, mode in SWIZZLES.items() if mode.span_bytes >= f.row_bytes), "none")
    to_wider = f"swizzle=ox.Swizzle{wider.title() if wider == 'none' else wider}"
    of = "the rows of the box" if f.tiled else "the channels of a pixel"
    yield Breach(
        what=f"{of} are wider than the span of the {f.swizzle_name} swizzle",
        got=f.row,
        required=f"at most {span} bytes",
        fix=to_wider if f.padded else f"{f.inner_name} {fits}, or {to_wider}",
        mended=f.but(swizzle=SWIZZLES[wider].driver_enum) if f.padded else f.with_inner(fits),
    )


# ---- the whole copy
def _footprint(f: Facts) -> Iterator[Breach]:
    """Dense bytes of one copy as the driver counts them.

    It divides the box by the element strides and rounds down, where the hardware rounds up, and counts the innermost stride, which the
    hardware ignores (measured).
    """
    counts = _counts(f)
    nbytes = prod(counts) * f.group_bytes // 16
    if not counts or min(counts) < 1 or nbytes <= limits.BOX_BYTES_MAX:
        return
    # The fix leaves room for barriers: what the driver encodes is 1 KiB more than any block can have.
    room = limits.SHARED_BYTES_MAX.get(f.sm, limits.BOX_BYTES_MAX) - 1024
    if f.tiled:
        mended, fix = _smaller_box(f, counts, nbytes, room)
    else:
        pixels = min(max(room // f.row_bytes, 1), limits.PIXELS_MAX)
        mended, fix = f.but(pixels=pixels), f"pixels={pixels}"
    yield Breach(
        what=f"{'the box holds' if f.tiled else 'the pixels of one copy hold'} more than a block's shared memory",
        got=f"{' x '.join(map(str, counts))} x {f.size} = {nbytes:,} bytes",
        fix=fix,
        mended=mended,
    )


def _counts(f: Facts) -> tuple[int, ...]:
    """Elements in each dimension of a copy by the driver's count; nothing where that cannot be known."""
    if not f.tiled:
        return (f.p.pixels, f.p.channels)
    if not f.box or not f.steps or min(*f.box, *f.steps) < 1:
        return ()
    return tuple(b // s for b, s in zip(f.box, f.steps, strict=True))


def _smaller_box(f: Facts, counts: tuple[int, ...], nbytes: int, room: int) -> tuple[MapParameters, str]:
    """Shrinks outer dimensions until it fits; one alone where that is enough."""
    box, left = f.box, nbytes
    for axis, count in enumerate(counts[:-1]):
        if left <= room:
            break
        kept = max(min(room * count // left, count), 1)
        box = replaced(box, axis, min(kept * f.steps[axis], limits.BOX_DIM_MAX))
        left = left // count * kept
    return f.but(box_dim=box), f"box {box}"


# ---- element strides
def _steps(f: Facts) -> Iterator[Breach]:
    """The innermost one is checked as well, although it has no effect without interleave (measured)."""
    for axis, step in enumerate(f.steps):
        if not 1 <= step <= limits.ELEMENT_STRIDE_MAX:
            yield Breach(
                what=f"entry {axis} of `element_strides` is out of range",
                got=str(step),
                fix="1 takes every element; for wider steps add a dimension: view n as (n // s, s) and copy index 0 of it",
                mended=f.but(element_strides=clamped(f.steps, 1, limits.ELEMENT_STRIDE_MAX)),
            )


def _inner_step_ignored(f: Facts) -> Iterator[Breach]:
    if f.steps and not f.interleaved and 1 < f.steps[-1] <= limits.ELEMENT_STRIDE_MAX:
        mended = (*f.steps[:-1], 1)
        yield Breach(
            what="the innermost dimension cannot be strided: the hardware ignores its element stride",
            got=f"element_strides {f.steps}",
            fix=f"element_strides={mended}, and pick elements after the copy",
            mended=f.but(element_strides=mended),
        )


# ---- corners
def _corner_length(f: Facts) -> Iterator[Breach]:
    corners, zeros = {"lower": f.p.lower, "upper": f.p.upper}, (0,) * f.corner_count
    wrong = {name: value for name, value in corners.items() if value is None or len(value) != f.corner_count}
    for name, value in wrong.items():
        yield Breach(
            what=f"`{name}` has another number of entries than {f.array} has spatial dimensions",
            got="a null pointer" if value is None else f"{value}, of length {len(value)}",
            required=f"length {f.corner_count}, outermost first",
            fix=f"{name}={zeros} is the whole extent",
            mended=f.but(**dict.fromkeys(wrong, zeros)),
        )


def _corner_bounds(f: Facts) -> tuple[int, int]:
    """The least and the largest entry of a corner."""
    half = 1 << f.corner_bits - 1
    return -half, half - 1


def _corner_range(f: Facts) -> Iterator[Breach]:
    low, high = _corner_bounds(f)
    for axis, _, *corners in f.corners:
        for name, corner in zip(("lower", "upper"), corners, strict=True):
            if not low <= corner <= high:
                mended = f.but(lower=clamped(f.p.lower or (), low, high), upper=clamped(f.p.upper or (), low, high))
                yield Breach(
                    what=f"the {name} corner of dimension {axis} is out of range",
                    got=str(corner),
                    required=f"{low} to {high} in a map of rank {f.p.rank}",
                    fix=f"{name} corner {min(max(corner, low), high)}",
                    mended=mended,
                )


def _empty_corners(f: Facts) -> Iterator[Breach]:
    low, high = _corner_bounds(f)
    # What is out of range has a rule of its own, and no mend here before that one's.
    known = [c for c in f.corners if f.dims[c.axis] >= 1 and low <= c.lower <= high]
    empty = [c for c in known if c.lower >= f.dims[c.axis] + c.upper]
    least = {c.entry: max(c.lower - f.dims[c.axis] + 1, low) for c in empty}
    for axis, entry, lower, upper in empty:
        mended = f.but(upper=tuple(least.get(i, corner) for i, corner in enumerate(f.p.upper or ())))
        yield Breach(
            what=f"no filter base lies between the corners of dimension {axis}",
            got=f"{lower} to {f.dims[axis]} - 1 + {upper} = {f.dims[axis] - 1 + upper}",
            fix=f"upper corner {least[entry]} or more",
            mended=mended,
        )


def _far_corner(f: Facts) -> Iterator[Breach]:
    """The driver adds in 32 bits: an end of 2^31 or more is negative to it, one of 2^32 or more is small again (measured)."""
    far = [c for c in f.corners if (end := f.dims[c.axis] + c.upper) >= 1 << 31 and c.lower >= _wrapped(end)]
    longest = {c.axis: (1 << 31) - 1 - c.upper for c in far}
    for axis, _, _, upper in far:
        mended = f.but(global_dim=tuple(max(longest.get(i, extent), 1) for i, extent in enumerate(f.dims)))
        yield Breach(
            what=f"dimension {axis} of {f.array} ends beyond the positions that a copy can count",
            got=f"{f.dims[axis]:,} + {upper} = {f.dims[axis] + upper:,}",
            fix=f"make one descriptor for each part, of {longest[axis]:,} elements at most",
            mended=mended,
        )


def _wrapped(value: int) -> int:
    """As a signed number of 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


RULES: Final = (
    MapRule(id="OX2012", gate="encodes", bound="one entry per dimension", check=_box_length, kinds=("tiled",)),
    MapRule(id="OX2013", gate="encodes", bound=f"1 to {limits.BOX_DIM_MAX} elements", check=_box, kinds=("tiled",)),
    MapRule(id="OX2048", gate="encodes", bound=f"1 to {limits.BOX_DIM_MAX} elements", check=_channels, kinds=_IM2COL),
    MapRule(id="OX2049", gate="encodes", bound=f"1 to {limits.PIXELS_MAX} pixels", check=_pixels, kinds=_IM2COL),
    MapRule(id="OX2007", gate="encodes", bound=f"a multiple of {_UNIT} bytes", check=_inner_bytes),
    MapRule(id="OX2038", gate="encodes", bound="128 elements", check=_padded_inner),
    MapRule(id="OX2014", gate="encodes", bound="at most the span of the swizzle: 32, 64 or 128 bytes", check=_span),
    MapRule(id="OX2015", gate="encodes", bound=f"at most {limits.BOX_BYTES_MAX:,} bytes", check=_footprint),
    MapRule(id="OX2017", gate="encodes", bound="one entry per dimension", check=_steps_length),
    MapRule(id="OX2019", gate="encodes", bound=f"1 to {limits.ELEMENT_STRIDE_MAX}", check=_steps),
    MapRule(id="OX2018", gate="usable", bound="1 as the last entry", check=_inner_step_ignored),
    MapRule(id="OX2044", gate="encodes", bound="one entry per spatial dimension", check=_corner_length, kinds=_IM2COL),
    MapRule(id="OX2045", gate="encodes", bound="16, 8 or 5 signed bits with 1, 2 or 3 entries", check=_corner_range, kinds=_IM2COL),
    MapRule(id="OX2046", gate="encodes", bound="lower <= extent - 1 + upper", check=_empty_corners, kinds=_IM2COL),
    MapRule(id="OX2047", gate="encodes", bound="extent + upper < 2^31", check=_far_corner, kinds=_IM2COL),
)
