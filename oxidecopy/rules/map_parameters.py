"""Rules of the descriptor's parameters that only some maps have: interleave, packed types, im2col, and calls written by hand."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.map_scripts import API, API_IM2COL, API_WIDE, BOTH, MEASURED, judged
from oxidecopy.rules.rule import Rule

_IM2COL: Final = f"{API_IM2COL}; {MEASURED}"
_PACKED: Final = "No device of compute capability 9.0 has packed types, so this was not measured."
_IMAGES: Final = "a = dev.empty((4, 9, 9, 64), ox.f32)\nox.TmaDescriptor.im2col(a, {})\n"
_SLICES: Final = "a = dev.empty((4, 8, 64, {}), ox.f16)\nox.TmaDescriptor.interleaved(a, {})\n"


def _typed(number: int, title: str, why: str, source: str, wrong: str, right: str) -> Rule:
    scripts = [_IMAGES.format(arguments) for arguments in (wrong, right)]
    return Rule(id=f"OX{number}", title=title, error="DescriptorError", why=why, source=source, wrong=scripts[0], right=scripts[1])


RULES: Final[tuple[Rule, ...]] = (
    judged(
        2025,
        "The arrays of a call have one entry for each dimension.",
        "The driver reads as many entries as the rank says: of a shorter array it reads what lies behind. A null pointer it refuses, for "
        "the strides of rank 1 too, though it reads none; null corners of an im2col map crash it.",
        BOTH,
        {"global_strides": ()},
    ),
    _typed(
        2026,
        "The corners of an im2col map are tuples of integers.",
        "They are part of the map, which is made on the host.",
        API_IM2COL,
        "lower=(-1.0, -1), upper=(-1, -1), channels=32, pixels=64",
        "lower=(-1, -1), upper=(-1, -1), channels=32, pixels=64",
    ),
    _typed(
        2027,
        "The channels and pixels of an im2col map are integers.",
        "They are part of the map, which is made on the host.",
        API_IM2COL,
        "lower=(-1, -1), upper=(-1, -1), channels=64 / 2, pixels=64",
        "lower=(-1, -1), upper=(-1, -1), channels=64 // 2, pixels=64",
    ),
    Rule(
        id="OX2028",
        title="An interleaved array ends in slices of 16 or 32 bytes.",
        error="DescriptorError",
        why="The map counts pixels of one slice of channels, and knows two widths of them.",
        source=f"PTX ISA 5.5.6; {MEASURED}",
        wrong=_SLICES.format(12, "box=(1, 1, 8)"),
        right=_SLICES.format(8, "box=(1, 1, 8)"),
    ),
    Rule(
        id="OX2029",
        title="Rows of an interleaved tile fill whole spans of its swizzle.",
        error="DescriptorError",
        why="The hardware packs rows of slice pixels, whatever their length. In other tiles a row begins a span, shared arrays included.",
        source=MEASURED,
        wrong=_SLICES.format(8, "box=(1, 1, 8), swizzle=ox.Swizzle128B, element_strides=(1, 1, 2)"),
        right=_SLICES.format(8, "box=(1, 1, 16), swizzle=ox.Swizzle128B, element_strides=(1, 1, 2)"),
    ),
    judged(
        2033,
        "An interleaved map has rank 3 to 5.",
        "Beside a batch it has a dimension of slices and one of pixels.",
        BOTH,
        {"interleave": 1},
        {"interleave": 0},
    ),
    judged(
        2034,
        "An im2col map has rank 3 to 5.",
        "It is an array of (n, w, c), (n, h, w, c) or (n, d, h, w, c): with fewer dimensions there is nothing to walk over.",
        _IM2COL,
        {"global_dim": (9, 64), "global_strides": (256,), "element_strides": (1, 1), "lower": (), "upper": ()},
        base="im2col",
    ),
    judged(
        2035,
        "Packed 16-byte types and interleave 32B start at a multiple of 32 bytes.",
        "Their smallest unit of memory is 32 bytes.",
        BOTH,
        {"global_address": 0x1010},
        {"global_address": 0x1020},
        base="interleaved",
    ),
    judged(
        2036,
        "The innermost extent of a packed type is whole groups.",
        f"Values lie in groups: u4x16_align8b counts pairs, the other packed types 128. {_PACKED}",
        API,
        {"global_dim": (64, 500)},
        {"global_dim": (64, 512)},
        base="packed",
        arch=100,
    ),
    judged(
        2037,
        "Packed 16-byte types and interleave 32B have strides of a multiple of 32 bytes.",
        "Their smallest unit of memory is 32 bytes.",
        BOTH,
        {"global_strides": (16384, 2064)},
        {"global_strides": (16384, 2080)},
        base="interleaved",
    ),
    judged(
        2038,
        "A row of a packed 16-byte type is 128 elements.",
        f"That is one swizzle span of shared memory, gaps included. {_PACKED}",
        API,
        {"box_dim": (32, 64)},
        base="packed",
        arch=100,
    ),
    judged(
        2039,
        "u6x16_align16b is not interleaved.",
        f"Slices of channels are made of whole bytes. {_PACKED}",
        API,
        {"dtype": 15, "interleave": 1, "global_dim": (2, 64, 512), "global_strides": (24576, 384), "box_dim": (1, 1, 128)}
        | {"element_strides": (1, 1, 1)},
        {"dtype": 15, "global_dim": (2, 64, 512), "global_strides": (24576, 384), "box_dim": (1, 1, 128), "element_strides": (1, 1, 1)},
        base="packed",
        arch=100,
    ),
    judged(
        2040,
        "A packed 16-byte type goes with the swizzles that it has.",
        f"Its groups of 16 bytes move as a whole: none, 128B and 128B_ATOM_32B do that; u6x16_align16b is also stored with "
        f"128B_ATOM_64B. {_PACKED}",
        API,
        {"swizzle": 2},
        {"swizzle": 3},
        base="packed",
        arch=100,
    ),
    judged(2041, "The interleave is none, 16B or 32B.", "The hardware knows no other.", BOTH, {"interleave": 3}),
    judged(2042, "The swizzle is one of the seven modes.", "The driver's enumerators are 0 to 6.", BOTH, {"swizzle": 7}),
    judged(2043, "The element type is one of the sixteen.", "The driver's enumerators are 0 to 15.", BOTH, {"dtype": 16}),
    judged(
        2044,
        "Corners have one entry for each spatial dimension.",
        "The driver reads rank - 2 entries, of a wide map one: of a shorter array it reads what lies behind, and null crashes it.",
        _IM2COL,
        {"lower": (-1,)},
        base="im2col",
    ),
    judged(
        2045,
        "Corners fit into the bits that a map has for them.",
        "32 bits hold a corner's entries together: 16 bits for one, 8 for each of two, 5 for each of three.",
        _IM2COL,
        {"lower": (-129, -1)},
        {"lower": (-128, -1)},
        base="im2col",
    ),
    judged(
        2046,
        "There is a filter base between the corners.",
        "Bases run from the lower corner to the last element plus the upper corner, in each spatial dimension.",
        _IM2COL,
        {"lower": (0, -1), "upper": (-9, -1)},
        {"lower": (0, -1), "upper": (-8, -1)},
        base="im2col",
    ),
    judged(
        2047,
        "A spatial dimension ends before position 2^31.",
        "Positions are signed 32-bit numbers.",
        MEASURED,
        {"global_dim": (4, 9, 1 << 31, 64), "upper": (-1, 0)},
        {"global_dim": (4, 9, 1 << 31, 64), "upper": (-1, -1)},
        base="im2col",
    ),
    judged(
        2048,
        "A copy takes 1 to 256 channels of a pixel.",
        "The map holds channels - 1 in 8 bits.",
        _IM2COL,
        {"channels": 260},
        {"channels": 256},
        base="im2col",
    ),
    judged(
        2049,
        "A copy takes 1 to 1024 pixels.",
        "The map holds pixels - 1 in 10 bits.",
        _IM2COL,
        {"channels": 4, "pixels": 1025},
        {"channels": 4, "pixels": 1024},
        base="im2col",
    ),
    judged(
        2050,
        "A wide map has mode w or w128.",
        "The driver's enumerators are 0 and 1.",
        API_WIDE,
        {"wide_mode": 2},
        base="im2col_wide",
        arch=100,
    ),
    judged(
        2051,
        "The device has tensor maps.",
        "They came with compute capability 9.0; on older devices the driver answers CUDA_ERROR_NOT_SUPPORTED.",
        API,
        {"arch": 86},
        {"arch": 90},
    ),
    judged(
        2052,
        "The device has wide im2col copies.",
        "They came with compute capability 10.0. On 9.0 the map encodes, as an im2col map without corners along h; no wide copy exists.",
        f"{API_WIDE}; {MEASURED}",
        {"arch": 90},
        {"arch": 100},
        base="im2col_wide",
    ),
    judged(
        2053,
        "A wide im2col map has a swizzle of 64 or 128 bytes.",
        "The driver's text lists 64B, 128B and 128B_ATOM_32B; others encode on an H200.",
        API_WIDE,
        {"swizzle": 0},
        {"swizzle": 3},
        base="im2col_wide",
        arch=100,
    ),
    judged(
        2054,
        "A wide im2col map is not interleaved.",
        "The copies .im2col::w and .im2col::w::128 do not exist for interleaved maps.",
        "PTX ISA 5.5.6",
        {"interleave": 1},
        base="im2col_wide",
        arch=100,
    ),
    Rule(
        id="OX2055",
        title="The architecture of a verdict is a compute capability.",
        error="UsageError",
        why="What a map may be depends on the device: 9.0 has fewer element types and swizzles than 10.0.",
        source="`ox.validate`",
        wrong='desc = ox.TmaDescriptor.tiled(dev.empty((64,), ox.f32), box=(64,))\nox.validate(desc.parameters, arch="hopper")\n',
        right='desc = ox.TmaDescriptor.tiled(dev.empty((64,), ox.f32), box=(64,))\nox.validate(desc.parameters, arch="sm_90")\n',
    ),
    Rule(
        id="OX2056",
        title="What would crash the driver's call never reaches it.",
        error="UsageError",
        why="Null corners of an im2col map end the process, and of arrays shorter than the rank the driver reads what lies behind. "
        "`oxidecopy conformance descriptors` passes parameters on; its own are made to be passed.",
        source=MEASURED,
    ),
    Rule(
        id="OX2057",
        title="What is judged are the parameters of a map.",
        error="UsageError",
        why="The validator judges the numbers that the driver is called with, however wrong. A descriptor has a verdict of its own.",
        source="`ox.validate`",
        wrong="desc = ox.TmaDescriptor.tiled(dev.empty((64,), ox.f32), box=(64,))\nox.validate(desc)\n",
        right="desc = ox.TmaDescriptor.tiled(dev.empty((64,), ox.f32), box=(64,))\nox.validate(desc.parameters)\n",
    ),
)
