"""Advice on tensor maps: what encodes and works, and is almost surely not what was meant, or slow. `desc.verdict.warnings` has it."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.map_scripts import API, MEASURED, judged
from oxidecopy.rules.rule import Rule

_WIDE_ROWS: Final = {"swizzle": 3}  # the parameters that no advice is about: 128-byte rows, swizzled

RULES: Final[tuple[Rule, ...]] = (
    judged(
        2101,
        "The box is not larger than the array.",
        "Loads fill what lies outside, stores leave it out: shared memory and time are spent on nothing.",
        MEASURED,
        {**_WIDE_ROWS, "global_dim": (20, 64)},
        {**_WIDE_ROWS, "global_dim": (32, 64)},
        warnings=True,
    ),
    judged(
        2102,
        "A tile fits into the shared memory of one block.",
        "The driver encodes boxes of up to 228 KiB of elements, a block has 227 KiB; swizzled rows take a whole span each.",
        f"{MEASURED}; CUDA Programming Guide, technical specifications",
        {"box_dim": (256, 8), "swizzle": 3, "global_dim": (256, 256, 64), "global_strides": (65536, 256)}
        | {"box_dim": (16, 256, 8), "element_strides": (1, 1, 1)},
        {"global_dim": (256, 256, 64), "global_strides": (65536, 256), "box_dim": (4, 256, 32), "element_strides": (1, 1, 1), "swizzle": 3},
        warnings=True,
    ),
    judged(
        2103,
        "Rows that are stored do not overlap.",
        "Loads through overlapping rows work. Stores race with themselves: which row is left is not defined. Reduce add is exact.",
        MEASURED,
        {**_WIDE_ROWS, "global_strides": (128,)},
        {**_WIDE_ROWS, "global_strides": (256,)},
        warnings=True,
    ),
    judged(
        2104,
        "A dimension of stride 0 is not stored through.",
        "It is one row seen many times. Loads broadcast it; stores race with themselves. Reduce add is exact.",
        MEASURED,
        {**_WIDE_ROWS, "global_strides": (0,)},
        {**_WIDE_ROWS, "global_strides": (256,)},
        warnings=True,
    ),
    judged(
        2105,
        "An element stride is not longer than the array.",
        "At most one element of the dimension is taken then, which a box extent of 1 says more clearly.",
        MEASURED,
        {**_WIDE_ROWS, "global_dim": (4, 64), "box_dim": (4, 32), "element_strides": (8, 1)},
        {**_WIDE_ROWS, "global_dim": (4, 64), "box_dim": (4, 32), "element_strides": (1, 1)},
        warnings=True,
    ),
    judged(
        2106,
        "A swizzled array starts at a multiple of 128 bytes.",
        "16 bytes are enough for every swizzle to be right, since it acts on shared addresses alone. But rows of 128 bytes then lie in two "
        "lines of L2 each.",
        f"CUDA Programming Guide, swizzle modes; {MEASURED}",
        {**_WIDE_ROWS, "global_address": 0x1010},
        {**_WIDE_ROWS, "global_address": 0x1080},
        warnings=True,
    ),
    judged(
        2107,
        "Rows of a swizzled tile are as wide as the span.",
        "Each row starts a whole span after the one before. The rest of a shorter row is lost, and a buffer of the announced bytes is too "
        "small for the tile.",
        MEASURED,
        {"swizzle": 3, "box_dim": (32, 16), "l2_promotion": 1},
        {"swizzle": 2, "box_dim": (32, 16), "l2_promotion": 1},
        warnings=True,
    ),
    judged(
        2108,
        "Columns of the tile do not lie in few banks.",
        "Eight lanes read 16 bytes each in one cycle when these lie in different banks. In a column of 128-byte rows they lie in the same.",
        "CUDA Programming Guide, shared memory",
        {},
        _WIDE_ROWS,
        warnings=True,
    ),
    judged(
        2109,
        "L2 does not fetch more than a row of the array for a row of it.",
        "With a promotion of 128 bytes a row of 64 bytes that lies alone costs 128 bytes of DRAM traffic. Boxes that are narrower than the "
        "array's rows are no matter: their neighbours use the rest.",
        f"{MEASURED}: DRAM bytes read per isolated row",
        {"swizzle": 2, "global_dim": (64, 16), "box_dim": (32, 16), "l2_promotion": 2},
        {"swizzle": 2, "global_dim": (64, 16), "box_dim": (32, 16), "l2_promotion": 1},
        warnings=True,
    ),
    judged(
        2110,
        "Rows of the box are at least 32 bytes.",
        "Memory moves in sectors of 32 bytes: boxes of 16-byte rows reach 2.1 TB/s, of 32-byte rows 3.3, of 128-byte rows 4.1.",
        f"{MEASURED}: read bandwidth by box shape",
        {"box_dim": (32, 4), "l2_promotion": 1},
        {"box_dim": (32, 8), "swizzle": 1, "l2_promotion": 1},
        warnings=True,
    ),
    judged(
        2111,
        "Interleave 32B goes with the 32B swizzle.",
        "The driver's text says so; the driver and the H200 take every mode. Another device may not.",
        f"{API}; {MEASURED}",
        {"swizzle": 0},
        {"swizzle": 1},
        base="interleaved",
        warnings=True,
    ),
    judged(
        2112,
        "Rows end at a multiple of 16 bytes, or in padding.",
        "Stores are clipped in steps of 16 bytes at the inner edge, so up to 15 bytes behind a row are written: nothing is lost in padded "
        "rows, but a view of a wider array has live data there.",
        f"{MEASURED}: 929 stores",
        {**_WIDE_ROWS, "global_dim": (64, 61), "global_strides": (512,)},
        {**_WIDE_ROWS, "global_dim": (64, 61), "global_strides": (256,)},
        warnings=True,
    ),
    judged(
        2113,
        "The box of an interleaved map has one slice.",
        "One copy moves one slice of channels, whatever the box says: the others have to be asked for by their coordinate.",
        MEASURED,
        {"box_dim": (1, 8, 64)},
        {"box_dim": (1, 1, 64)},
        base="interleaved",
        warnings=True,
    ),
    judged(
        2114,
        "Filter bases lie inside the array somewhere.",
        "A lower corner behind the last element encodes; every pixel is then filled.",
        MEASURED,
        {**_WIDE_ROWS, "lower": (-1, 9), "upper": (-1, 9)},
        {**_WIDE_ROWS, "lower": (-1, 8), "upper": (-1, 9)},
        base="im2col",
        warnings=True,
    ),
    judged(
        2115,
        "A map that copies go through points to memory.",
        "Address 0 encodes, as a template for cuTensorMapReplaceAddress. Copies through it fault.",
        MEASURED,
        {**_WIDE_ROWS, "global_address": 0},
        _WIDE_ROWS,
        warnings=True,
    ),
)
