"""Where im2col copies start, what they add, and which may store: elsewhere the hardware faults, or takes other offsets (measured)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from oxidecopy.isa import ops
from oxidecopy.isa.im2col import OFFSET_BITS
from oxidecopy.program.tensor_map import TILE, TensorMap
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.affine import Range, range_of

Broken: TypeAlias = tuple[str, str, str, str, str]  # rule, sentence, got, required, fix
_AXES = ("d", "h", "w")


def im2col_faults(op: ops.TensorCopy | ops.TensorPrefetch, name: str, bound: TensorMap, env: Mapping[str, Range]) -> Iterator[Broken]:
    """What is wrong with a copy through an im2col map; nothing for other maps."""
    if bound.mode == TILE:
        return
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
