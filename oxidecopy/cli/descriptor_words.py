"""A tensor map in words: each parameter, and what follows from it for a copy. Dimensions are outermost first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import TENSOR_SMEM_ALIGN
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.program.tensor_map import TILE, tile_shape

if TYPE_CHECKING:
    from oxidecopy.program.map_bytes import DecodedMap
    from oxidecopy.program.program import MapParam
    from oxidecopy.program.tensor_map import TensorMap


@final
@dataclass(frozen=True, slots=True)
class Row:
    """A parameter, its value, and what that means."""

    name: str
    value: str
    remark: str = ""


def words(of: TensorMap, param: MapParam | None = None) -> list[Row]:
    """All of a map; `param` is what a pipeline knows it as."""
    kind = "im2col" if of.mode != TILE else "tiled"
    rows = [Row("kind", f"{kind}, rank {of.rank}", "" if param is None or param.entries is None else f"a table of {param.entries}")]
    rows += [_dtype(of.dtype), _extents(of), _strides(of), *_box(of), *_steps(of)]
    rows += [_swizzle(of.swizzle)]
    if of.interleave != "none":
        rows.append(Row("interleave", of.interleave, "one copy moves one slice of channels"))
    rows.append(Row("L2 promotion", f"{of.l2_promotion} bytes" if of.l2_promotion else "none", "speed only"))
    rows.append(Row("fill", "NaN" if of.oob_fill == "nan" else "zeros", "what loads put outside the array"))
    return [*rows, *_copy(of)]


def parameter_words(param: MapParam) -> list[Row]:
    """What is known of a map before a launch binds it: all but extents and strides."""
    kind = "im2col" if param.mode != TILE else "tiled"
    rows = [Row("kind", f"{kind}, rank {param.rank}", "" if param.entries is None else f"a table of {param.entries}"), _dtype(param.dtype)]
    return [*rows, *_box(param), _swizzle(param.swizzle), *_copy(param), Row("extents", "?", "known when a launch binds it")]


def decoded_words(one: DecodedMap) -> list[Row]:
    """A map from its bytes; field by field where the bytes are no map's."""
    address = Row("address", f"{one.address:#x}", "" if one.address % 16 == 0 else "no multiple of 16: every copy faults")
    if one.tensor_map is None:
        return [address, *(Row(f.name, f.meaning) for f in one.fields if f.name != "address")]
    kind, *others = words(one.tensor_map)
    return [kind, address, *others]


def _times(extents: Sequence[int]) -> str:
    return " x ".join(f"{n:,}" for n in extents)


def _dtype(name: str) -> Row:
    info = DTYPES[name]
    if info.packed:
        return Row("elements", name, f"{info.bits} bits each, packed; 16 are {info.group_bytes} bytes in shared memory")
    alike = [other.name for other in DTYPES.values() if other.driver_enum == info.driver_enum and other.name != name]
    remark = f"{info.nbytes} byte{'' if info.nbytes == 1 else 's'} each" + (f"; {', '.join(alike)} carry the same number" if alike else "")
    return Row("elements", name, remark)


def _extents(of: TensorMap) -> Row:
    return Row("extents", _times(of.global_dim), "elements, outermost first")


def _strides(of: TensorMap) -> Row:
    if not of.global_strides:
        return Row("strides", "none", "one dense dimension")
    dense = of.dtype_info.bits * of.global_dim[-1] // 8
    last = of.global_strides[-1]
    rows = "dense rows" if last == dense else f"{last - dense:,} bytes between rows" if last > dense else "rows overlap"
    return Row("strides", f"{_times(of.global_strides)} bytes".replace(" x ", ", "), f"outermost first; {rows}" if last else "rows repeat")


def _box(of: TensorMap | MapParam) -> Iterator[Row]:
    if of.mode == TILE:
        yield Row(
            "box", _times(of.box_dim), "elements of one copy" if set(of.element_strides) == {1} else "elements, before element strides"
        )
        return
    yield Row("box", _times(of.box_dim), "pixels x channels of one copy")
    lower, upper = getattr(of, "lower", ()), getattr(of, "upper", ())
    if lower:
        yield Row("filter bases", f"{lower} to {upper}", "from the first, and from the last element of each spatial dimension")


def _steps(of: TensorMap) -> Iterator[Row]:
    if set(of.element_strides) == {1}:
        return
    if of.interleave != "none":
        yield Row("element strides", ", ".join(map(str, of.element_strides)), "in slice pixels")
        return
    remark = "every s-th pixel" if of.mode != TILE else f"so a copy moves {_times(tile_shape(of.box_dim, of.element_strides))}"
    if of.element_strides[-1] != 1:
        remark += "; the hardware ignores the innermost one"
    yield Row("element strides", ", ".join(map(str, of.element_strides)), remark)


def _swizzle(name: str) -> Row:
    mode = EVERY_SWIZZLE[name]
    if not mode.span_bytes:
        return Row("swizzle", "none", "rows follow each other")
    return Row("swizzle", name, f"rows {mode.span_bytes} bytes apart; the pattern repeats every {mode.repeat_bytes:,} bytes")


def _copy(of: TensorMap | MapParam) -> Iterator[Row]:
    """What one copy costs and asks for."""
    info = DTYPES[of.dtype]
    layout, align = of.layout, max(TENSOR_SMEM_ALIGN, EVERY_SWIZZLE[of.swizzle].repeat_bytes)
    yield Row("one copy", f"{layout.nbytes:,} bytes", "what its barrier is told, whatever lies outside the array")
    yield Row("shared memory", f"{layout.footprint_bytes:,} bytes", f"at a multiple of {align:,}")
    if of.interleave == "none":
        yield Row("coordinates", f"multiples of {info.grid}", "the innermost one; any others" if of.mode == TILE else "the channel")
