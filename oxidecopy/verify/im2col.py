"""Where im2col copies start, what they add, and which may store: elsewhere the hardware faults, or takes other offsets (measured)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from oxidecopy.isa import ops
from oxidecopy.isa.im2col import OFFSET_BITS, WIDE_OFFSET_MAX
from oxidecopy.program.tensor_map import IM2COL_WIDE, TILE, TensorMap
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.affine import Range, range_of

Broken: TypeAlias = tuple[str, str, str, str, str]  # rule, sentence, got, required, fix
_AXES = ("d", "h", "w")


def im2col_faults(op: ops.TensorCopy | ops.TensorPrefetch, name: str, bound: TensorMap, env: Mapping[str, Range]) -> Iterator[Broken]:
    """What is wrong with a copy through an im2col map; nothing for other maps."""
    if bound.mode != TILE:
        yield from (_wide_faults if bound.mode in IM2COL_WIDE else _walk_faults)(op, name, bound, env)


def _walk_faults(op: ops.TensorCopy | ops.TensorPrefetch, name: str, bound: TensorMap, env: Mapping[str, Range]) -> Iterator[Broken]:
    """Of a walk over all spatial dimensions."""
    spatial = len(bound.lower)
    first = 1 if bound.interleave == "none" else 2  # behind the batch, and the slices
    corners = zip(_AXES[-spatial:], op.coords[first:], bound.lower, bound.global_dim[first:], bound.upper, strict=False)
    for axis, e, low, extent, up in corners:
        at, high = range_of(e, env), extent - 1 + up
        if at.lo < low or at.hi > high:
            yield (
                ids.IM2COL_START,
                f"a copy through {name!r} starts outside the box of filter bases, where the hardware faults",
                f"{axis} = {at.lo if at.lo < low else at.hi}",
                f"{low} to {high}, between the map's corners",
                "start at bases only: their number along an axis is (extent + upper - lower - 1) // stride + 1",
            )
    if isinstance(op, ops.TensorStore):
        if min(bound.lower) < 0 or max(bound.upper) > 0:
            yield (
                ids.IM2COL_STORE,
                f"a store goes through {name!r}, whose box of bases leaves the tensor: the hardware faults",
                f"corners {bound.lower} and {bound.upper}",
                "lower corners of 0 or more, upper ones of 0 or less",
                "make a descriptor of its own for the store: `lower=(0, ...)`, `upper=(0, ...)`",
            )
        return
    top = (1 << OFFSET_BITS[spatial]) - 1
    for axis, e in zip(_AXES[-spatial:], getattr(op, "offsets", ()), strict=False):
        at = range_of(e, env)
        if at.lo < 0 or at.hi > top:
            yield (
                ids.IM2COL_OFFSET,
                f"an offset of a load through {name!r} has more bits than the hardware looks at",
                f"{axis}: {at.lo if at.lo < 0 else at.hi}",
                f"0 to {top} in {spatial} spatial dimension{'s' if spatial > 1 else ''}",
                "an offset is that of a filter tap: its number times the dilation",
            )


def _wide_faults(op: ops.TensorCopy | ops.TensorPrefetch, name: str, bound: TensorMap, env: Mapping[str, Range]) -> Iterator[Broken]:
    """Of a copy along w alone (PTX 5.5.5, not measured): it may start before the box of bases, not behind it."""
    if isinstance(op, ops.TensorStore):
        yield (
            ids.IM2COL_STORE,
            f"a store goes through {name!r}, a map of wide im2col copies, which only load",
            bound.mode,
            "a tiled or an im2col map",
            "make a descriptor of its own for the store",
        )
        return
    at, high = range_of(op.coords[-2], env), bound.global_dim[-2] - 1 + bound.upper[0]
    if at.hi > high:
        yield (
            ids.IM2COL_START,
            f"a copy through {name!r} starts behind the box of filter bases",
            f"w = {at.hi}",
            f"at most {high}, the map's upper corner",
            "start at bases only: their number along w is (extent + upper - lower - 1) // stride + 1",
        )
    moved = range_of(op.offsets[0], env) if getattr(op, "offsets", ()) else None  # type: ignore[union-attr]
    if moved is not None and not 0 <= moved.lo <= moved.hi <= WIDE_OFFSET_MAX:
        yield (
            ids.IM2COL_OFFSET,
            f"the offset of a load through {name!r} is out of range",
            f"{moved.lo if moved.lo < 0 else moved.hi}",
            f"0 to {WIDE_OFFSET_MAX}",
            "an offset is that of a filter tap along w",
        )
