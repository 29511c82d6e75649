"""Parameter sets of tensor maps, legal and not: each field of many legal maps at and beyond its bounds, and seeded random ones.

All can be passed to the driver: values that do not fit their C types are not among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any, Final, final

from oxidecopy.isa import limits
from oxidecopy.maps.enumerators import DTYPE_OF
from oxidecopy.maps.parameters import KINDS, Kind, MapParameters

SEED: Final = 1
BASE: Final = 0x7F12_3456_8000  # an address as devices have them; the driver asks no further
RANDOM: Final = 3000
_HOPPER_TYPES: Final = 13  # enumerators below it exist on every device with tensor maps
_U64, _U32 = (1 << 64) - 1, (1 << 32) - 1
_SHAPES: Final = (1, 2, 3, 7, 8, 40, 64, 100, 256, 1000)

_EXTENTS: Final = (0, 1, 2, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, _U32, 1 << 32, (1 << 32) + 1, 1 << 40, _U64)
_STRIDES: Final = (0, 1, 8, 16, 24, 31, 32, 48, 64, (1 << 40) - 32, (1 << 40) - 16, (1 << 40) - 8, 1 << 40, (1 << 40) + 16, _U64 - 15)
_BOXES: Final = (0, 1, 2, 3, 4, 7, 8, 15, 16, 24, 32, 33, 64, 96, 128, 144, 255, 256, 257, 264, 512, 1 << 16, _U32)
_STEPS: Final = (0, 1, 2, 3, 7, 8, 9, 16, 1 << 31, _U32)
_ADDRESSES: Final = (1, 2, 4, 8, 16, 24, 32, 48, 64, 128)
_FAR: Final = (0, 1 << 44, 1 << 49, (1 << 56) + 16, (1 << 57) - 32, (1 << 57) - 16, 1 << 57, (1 << 57) + 32, 1 << 63, _U64 - 31)
_CORNERS: Final = (
    -(1 << 31),
    -32769,
    -32768,
    -129,
    -128,
    -65,
    -64,
    -17,
    -16,
    -8,
    -1,
    0,
    1,
    10,
    15,
    16,
    127,
    128,
    32767,
    32768,
    (1 << 31) - 1,
)
_CHANNELS: Final = (0, 1, 2, 4, 8, 15, 16, 17, 32, 64, 65, 128, 255, 256, 257, _U32)
_PIXELS: Final = (0, 1, 2, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 1 << 16, _U32)
_DTYPES: Final = (*range(17), 31, _U32)
_OPTIONS: Final = {
    "interleave": (0, 1, 2, 3, _U32),
    "swizzle": (*range(8), _U32),
    "l2_promotion": (*range(5), _U32),
    "oob_fill": (0, 1, 2, _U32),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorCase:
    """One set; `group` says how it was made."""

    group: str
    parameters: MapParameters


def cases(seed: int = SEED) -> list[DescriptorCase]:
    """All sets, each once, in an order that depends on the seed alone."""
    found: dict[MapParameters, str] = {}
    for group, made in (("single faults", _single()), ("pairs of options", _pairs()), ("random", _random(Random(seed)))):
        for parameters in made:
            found.setdefault(parameters, f"{parameters.kind}, {group}")
    return [DescriptorCase(group=group, parameters=parameters) for parameters, group in found.items()]


# ---- legal maps
def _legal(kind: Kind, dtype: int, rank: int, interleave: int = 0, swizzle: int = 0) -> MapParameters:
    """A map that encodes, of small extents."""
    nbytes = _nbytes(dtype)
    inner = 32 // nbytes if interleave or swizzle else 64 // nbytes
    unit = 32 if interleave == 2 else 16
    dims = (*(3 + 2 * i for i in range(rank - 1)), 100)
    strides, pitch = [], -(-100 * (unit if interleave else nbytes) // unit) * unit
    for extent in reversed(dims[:-1]):
        strides.append(pitch)
        pitch *= extent
    return _with_copy(
        MapParameters(
            kind=kind,
            dtype=dtype,
            global_address=BASE,
            global_dim=dims,
            global_strides=tuple(reversed(strides)),
            element_strides=(1,) * rank,
            interleave=interleave,
            swizzle=swizzle,
        ),
        inner,
    )


def _with_copy(of: MapParameters, inner: int) -> MapParameters:
    if of.kind == "tiled":
        return replace(of, box_dim=(*(2 for _ in range(of.rank - 1)), inner))
    corners = 1 if of.kind == "im2col_wide" else of.rank - 2
    return replace(of, lower=(-1,) * corners, upper=(-1,) * corners, channels=inner, pixels=20)


def _nbytes(dtype: int) -> int:
    """For a type without whole bytes 1: its maps are refused on 9.0 whatever they hold."""
    return max(DTYPE_OF[dtype].bits // 8, 1)


def _bases() -> Iterator[MapParameters]:
    """One of each rank and kind, and beside them every type, interleave and swizzle once."""
    for kind in KINDS:
        ranks = range(1, 6) if kind == "tiled" else range(3, 6)
        yield from (_legal(kind, 7, rank) for rank in ranks)
        yield from (_legal(kind, dtype, 4, swizzle=dtype % 4) for dtype in range(_HOPPER_TYPES))
        yield from (_legal(kind, 6, 4, interleave, swizzle) for interleave, swizzle in product((0, 1, 2), range(4)))


def _but(of: MapParameters, changes: dict[str, Any]) -> MapParameters:
    return replace(of, **changes)


# ---- one field at a time
def _single() -> Iterator[MapParameters]:
    for kind in KINDS:
        for rank, dtype in ((3, 1), (4, 7), (5, 0)) + (((1, 2), (2, 6)) if kind == "tiled" else ()):
            yield from _faults(_legal(kind, dtype, rank))
    for kind, interleave in product(KINDS, (1, 2)):
        yield from _faults(_legal(kind, 6, 4, interleave, 1))
    for base in _bases():
        yield base
        yield from (_but(base, {name: value}) for name, values in _OPTIONS.items() for value in values)
    yield from (replace(base, dtype=dtype) for base in (_legal(kind, 7, 3) for kind in KINDS) for dtype in _DTYPES)
    yield from _ranks()
    yield from _footprints()


def _faults(base: MapParameters) -> Iterator[MapParameters]:
    """Each field, and each entry of each array, at its boundary values."""
    arrays: dict[str, tuple[int, ...]] = {"global_dim": _EXTENTS, "global_strides": _STRIDES, "box_dim": _BOXES, "element_strides": _STEPS}
    arrays |= {"lower": _CORNERS, "upper": _CORNERS}
    for name, values in arrays.items():
        given: tuple[int, ...] = getattr(base, name)
        for axis, value in product(range(len(given)), values):
            yield _but(base, {name: (*given[:axis], value, *given[axis + 1 :])})
    yield from (replace(base, global_address=at) for at in (*(BASE + n for n in _ADDRESSES), *_FAR))
    if base.kind != "tiled":
        yield from (replace(base, channels=n) for n in _CHANNELS)
        yield from (replace(base, pixels=n) for n in _PIXELS)
        yield from _far_corners(base)
    if base.kind == "im2col_wide":
        yield from (replace(base, wide_mode=mode, pixels=pixels) for mode, pixels in product((0, 1, 2, _U32), (0, 20, 128, 1025)))


def _far_corners(base: MapParameters) -> Iterator[MapParameters]:
    """Both corners and the extent move together: empty boxes, boxes behind the end, positions at 2^31."""
    count, dims = len(base.lower or ()), base.global_dim or ()
    for lower, upper in product((-16, -1, 0, 6, 15), (-16, -9, -5, -1, 0, 15)):
        yield replace(base, lower=(lower,) * count, upper=(upper,) * count)
    for axis, extent, upper in product(range(len(dims)), range((1 << 31) - 3, (1 << 31) + 4), (-2, -1, 0, 1)):
        yield replace(base, global_dim=(*dims[:axis], extent, *dims[axis + 1 :]), upper=(upper,) * count)
    for axis, extent, lower, upper in product(range(len(dims)), range(_U32 - 1, _U32 + 2), (-3, -1, 0, 3), (-3, -1, 0, 1, 2, 5)):
        yield replace(base, global_dim=(*dims[:axis], extent, *dims[axis + 1 :]), lower=(lower,) * count, upper=(upper,) * count)


def _ranks() -> Iterator[MapParameters]:
    """Every rank from 0 to 6, with every interleave."""
    for kind, rank, interleave in product(KINDS, range(7), range(3)):
        base = replace(_legal("tiled", 6, max(rank, 1), interleave), kind=kind)
        corners = 1 if kind == "im2col_wide" else max(rank - 2, 0)
        copied: dict[str, Any] = (
            {} if kind == "tiled" else {"box_dim": (), "lower": (0,) * corners, "upper": (0,) * corners, "channels": 16, "pixels": 8}
        )
        whole: dict[str, Any] = {"global_dim": (3,) * (rank - 1) + (100,), "global_strides": (4096,) * (rank - 1)}
        if not rank:
            whole = {"global_dim": (), "global_strides": (), "element_strides": (), "box_dim": ()}
        yield _but(base, copied | whole)


def _footprints() -> Iterator[MapParameters]:
    """Boxes around 228 KiB, with element strides and interleave."""
    for dtype, (rows, inner, step) in product((0, 1, 7, 8), product(range(220, 257, 3), (16, 128, 256), (1, 2, 3))):
        for outer in {1, 2, 4, 16, -(-limits.BOX_BYTES_MAX // (_nbytes(dtype) * inner * -(-rows // step))) % 257}:
            base = replace(_legal("tiled", dtype, 3), global_dim=(256, 256, 256), global_strides=(1 << 20, 1 << 11))
            yield replace(base, box_dim=(outer, rows, inner), element_strides=(1, step, 1))
    for dtype, rows, step in product((0, 7), (1, 2, 3, 4, 7, 8, 9), (1, 2, 4, 8)):  # a stride longer than the box
        base = replace(_legal("tiled", dtype, 3), global_dim=(256, 256, 256), global_strides=(1 << 20, 1 << 13))
        yield from (replace(base, box_dim=(rows, 256, n), element_strides=(step, 1, 1)) for n in (16, 64, 128, 224, 256))
    for inner_step, interleave in product((1, 2, 4, 8), (0, 1, 2)):
        base = replace(_legal("tiled", 7, 3, interleave), global_dim=(256, 256, 256), global_strides=(1 << 20, 1 << 13))
        yield from (replace(base, box_dim=(1, n, 256), element_strides=(1, 1, inner_step)) for n in (227, 228, 229, 256))
    for kind, mode, dtype in product(KINDS[1:], (0, 1), (0, 7, 8)):
        base = replace(_legal("im2col", dtype, 4), kind=kind)
        base = replace(base, lower=(-1,), upper=(-1,), wide_mode=mode) if kind == "im2col_wide" else base
        most = limits.BOX_BYTES_MAX // (256 * _nbytes(dtype))
        for pixels in {*range(most - 2, min(most, 1023) + 3), 1022, 1023, 1024}:
            yield replace(base, channels=256, pixels=pixels)


# ---- options by options
def _pairs() -> Iterator[MapParameters]:
    """Interleave, swizzle and the bytes of a row; fill and type."""
    for kind, (interleave, swizzle, row) in product(KINDS, product(range(3), range(7), (8, 16, 32, 48, 64, 96, 128, 144, 256))):
        base = _legal(kind, 6, 4, interleave, swizzle)
        yield _with_copy(base, row // 2)
    for kind, dtype, fill in product(KINDS, _DTYPES[:16], (0, 1)):
        yield replace(_legal(kind, dtype, 3), oob_fill=fill)
    for dtype, swizzle in product((13, 14, 15), range(7)):
        base = replace(_legal("tiled", 0, 2), dtype=dtype, swizzle=swizzle, global_dim=(8, 256), global_strides=(192,))
        yield from (replace(base, box_dim=(4, inner)) for inner in (32, 64, 128, 256))


# ---- anything
def _random(random: Random) -> Iterator[MapParameters]:
    """Fields near their bounds, so that about half of the sets encode."""
    for _ in range(RANDOM):
        kind = random.choice((*KINDS, "tiled"))
        rank = random.randint(1 if kind == "tiled" else 3, 5)
        base = _legal(kind, random.randrange(_HOPPER_TYPES), rank, random.choice((0, 0, 0, 1, 2)) if rank > 2 else 0, random.randrange(4))
        for name in random.sample(sorted(_DRAWN), random.randint(0, 3)):
            base = _but(base, _DRAWN[name](random, base))
        yield base


def _entries(name: str, values: tuple[int, ...], usual: tuple[int, ...]) -> Any:
    """Draws an array anew: mostly usual entries, now and then one at a bound."""

    def draw(random: Random, base: MapParameters) -> dict[str, Any]:
        count = len(getattr(base, name))
        return {name: tuple(random.choice(values if random.random() < 0.15 else usual) for _ in range(count))}

    return draw


def _one(name: str, values: tuple[int, ...]) -> Any:
    return lambda random, _: {name: random.choice(values)}


_DRAWN: Final[dict[str, Any]] = {
    "global_dim": _entries("global_dim", _EXTENTS, _SHAPES),
    "global_strides": _entries("global_strides", _STRIDES, (0, 16, 32, 64, 96, 128, 208, 4096, 1 << 20, 1 << 39)),
    "box_dim": _entries("box_dim", _BOXES, (1, 2, 4, 8, 16, 32, 64, 128)),
    "element_strides": _entries("element_strides", _STEPS, (1, 1, 2, 3, 8)),
    "lower": _entries("lower", _CORNERS, (-16, -3, -1, 0, 1)),
    "upper": _entries("upper", _CORNERS, (-4, -3, -1, 0, 1, 15)),
    "global_address": _one("global_address", (*(BASE + n for n in _ADDRESSES), *_FAR)),
    "channels": _one("channels", _CHANNELS),
    "pixels": _one("pixels", _PIXELS),
    "dtype": _one("dtype", _DTYPES),
    **{name: _one(name, values) for name, values in _OPTIONS.items()},
}
