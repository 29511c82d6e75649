"""Rules of the descriptor: what its factories and `ox.validate` refuse, and what they warn of."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules import map_advice, map_parameters
from oxidecopy.rules.map_scripts import API, BOTH, MEASURED, judged
from oxidecopy.rules.rule import Rule


def _rule(number: int, title: str, why: str, source: str, wrong: str = "", right: str = "") -> Rule:
    return Rule(id=f"OX2{number:03}", title=title, error="DescriptorError", why=why, source=source, wrong=wrong, right=right)


def _tiled(shape: str, dtype: str, arguments: str) -> str:
    return f"a = dev.empty({shape}, ox.{dtype})\nox.TmaDescriptor.tiled(a, {arguments})\n"


_OWN: Final[tuple[Rule, ...]] = (
    judged(
        2001,
        "A tensor map has rank 1 to 5.",
        "The map has room for five extents. `dev.array` and `dev.empty` refuse such arrays first (OX5007).",
        f"{API}; PTX ISA 5.5",
        {"global_dim": (1,) * 6, "global_strides": (16,) * 5, "box_dim": (1,) * 5 + (4,), "element_strides": (1,) * 6},
        {"global_dim": (1,) * 5, "global_strides": (16,) * 4, "box_dim": (1,) * 4 + (4,), "element_strides": (1,) * 5},
    ),
    judged(
        2002,
        "No dimension is empty.",
        "The driver refuses extent 0. `dev.array` and `dev.empty` refuse such arrays first (OX5006).",
        BOTH,
        {"global_dim": (0, 64)},
        {"global_dim": (1, 64)},
    ),
    judged(
        2003,
        "An extent is at most 2^32 elements.",
        "The map holds extent - 1 in 32 bits.",
        BOTH,
        {"global_dim": ((1 << 32) + 1, 64)},
        {"global_dim": (1 << 32, 64)},
        arch=100,
    ),
    judged(
        2004,
        "On compute capability 9.0 an extent is at most 2^31 elements.",
        "Longer dimensions encode, and then every load and store through the map faults (CUresult 715), even at coordinate 0.",
        MEASURED,
        {"global_dim": ((1 << 31) + 1, 64)},
        {"global_dim": (1 << 31, 64)},
    ),
    _rule(
        5,
        "The elements of the innermost dimension follow each other in memory.",
        "A map has no stride for it: a copy would read the bytes in between as elements. Views may step or be turned, uploads are dense.",
        API,
        "a = dev.empty((64, 64), ox.f32)\nox.TmaDescriptor.tiled(a.T, box=(32, 32))\n",
        "a = dev.empty((64, 64), ox.f32)\nox.TmaDescriptor.tiled(a, box=(32, 32))\n",
    ),
    _rule(
        6,
        "All other strides are multiples of 16 bytes.",
        "The map holds strides in units of 16 bytes, so rows must start 16 bytes apart or a multiple of it.",
        BOTH,
        _tiled("(100, 50)", "f32", "box=(32, 32)"),
        "a = dev.array(np.zeros((100, 50), np.float32), pad=True)\nox.TmaDescriptor.tiled(a, box=(32, 32))\n",
    ),
    _rule(
        7,
        "The innermost extent of the box is a multiple of 16 bytes.",
        "Copies move whole 16-byte chunks of a row.",
        BOTH,
        _tiled("(64, 64)", "f32", "box=(8, 6)"),
        _tiled("(64, 64)", "f32", "box=(8, 8)"),
    ),
    judged(
        2008,
        "A stride is at least 0 and less than 2^40 bytes.",
        "The map holds it in 36 bits, in units of 16 bytes.",
        BOTH,
        {"global_strides": (1 << 40,)},
        {"global_strides": ((1 << 40) - 16,)},
    ),
    judged(
        2009,
        "The array starts at a multiple of 16 bytes.",
        "The hardware reads whole 16-byte chunks.",
        BOTH,
        {"global_address": 0x1008},
        {"global_address": 0x1010},
    ),
    judged(
        2010,
        "The array starts below address 2^57.",
        "The driver refuses larger addresses.",
        MEASURED,
        {"global_address": 1 << 57},
        {"global_address": (1 << 57) - 16},
    ),
    _rule(
        11,
        "The box is a tuple of integers, or a box type with literal extents.",
        "Its extents are part of the map, which is made on the host.",
        API,
        _tiled("(64, 64)", "f32", "box=(64 / 2, 32)"),
        _tiled("(64, 64)", "f32", "box=(64 // 2, 32)"),
    ),
    _rule(
        12,
        "The box has the rank of the array.",
        "A copy takes one extent for each dimension; a flat box has extent 1 there.",
        API,
        _tiled("(4, 64, 64)", "f32", "box=(32, 32)"),
        _tiled("(4, 64, 64)", "f32", "box=(1, 32, 32)"),
    ),
    _rule(
        13,
        "A box extent is 1 to 256 elements.",
        "The map holds extent - 1 in 8 bits; it counts before element strides shrink the box.",
        BOTH,
        _tiled("(512, 64)", "f32", "box=(257, 4)"),
        _tiled("(512, 64)", "f32", "box=(256, 4)"),
    ),
    _rule(
        14,
        "A row of the box is at most as wide as the swizzle span.",
        "A swizzle permutes 16-byte chunks inside a span of 32, 64 or 128 bytes.",
        BOTH,
        _tiled("(64, 64)", "f32", "box=(64, 64), swizzle=ox.Swizzle128B"),
        _tiled("(64, 64)", "f32", "box=(64, 32), swizzle=ox.Swizzle128B"),
    ),
    _rule(
        15,
        "A box holds at most 233,472 bytes.",
        "That is the shared memory of one multiprocessor (228 KiB); the driver refuses larger boxes.",
        MEASURED,
        _tiled("(256, 256)", "f32", "box=(256, 256)"),
        _tiled("(256, 256)", "f32", "box=(128, 256)"),
    ),
    _rule(
        16,
        "The element strides are a tuple of integers.",
        "They are part of the map, which is made on the host.",
        API,
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2.0, 1)"),
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2, 1)"),
    ),
    _rule(
        17,
        "There is one element stride for each dimension.",
        "The driver reads as many entries as the rank.",
        API,
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2,)"),
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2, 1)"),
    ),
    _rule(
        18,
        "The innermost element stride is 1.",
        "Without interleave the hardware ignores it: the copy would be dense and not what was asked for.",
        f"PTX ISA 5.5.3.2; {MEASURED}",
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(1, 2)"),
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2, 1)"),
    ),
    _rule(
        19,
        "An element stride is 1 to 8.",
        "The map holds stride - 1 in 3 bits.",
        BOTH,
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(9, 1)"),
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(8, 1)"),
    ),
    _rule(
        20,
        'The fill of elements outside the array is "zero" or "nan".',
        "The hardware knows no other fill.",
        API,
        _tiled("(64, 64)", "f32", "box=(32, 32), oob_fill='one'"),
        _tiled("(64, 64)", "f32", "box=(32, 32), oob_fill='nan'"),
    ),
    _rule(
        21,
        "Only float types are filled with NaN.",
        "Integers have none; the driver refuses the map.",
        BOTH,
        _tiled("(64, 64)", "i32", "box=(32, 32), oob_fill='nan'"),
        _tiled("(64, 64)", "i32", "box=(32, 32), oob_fill='zero'"),
    ),
    judged(
        2022,
        "The device has the element type.",
        "The packed 4-bit and 6-bit types came with compute capability 10.0; the driver refuses the map on 9.0.",
        BOTH,
        {"dtype": 13, "arch": 90},
        {"dtype": 13, "arch": 100},
    ),
    _rule(
        23,
        "The L2 promotion is 0, 64, 128 or 256 bytes.",
        "Those are the granules that L2 can fetch from memory.",
        API,
        _tiled("(64, 64)", "f32", "box=(32, 32), l2_promotion=512"),
        _tiled("(64, 64)", "f32", "box=(32, 32), l2_promotion=256"),
    ),
    judged(
        2024,
        "The device has the swizzle mode.",
        "The modes with wider atoms came with compute capability 10.0; the driver refuses the map on 9.0.",
        BOTH,
        {"swizzle": 4, "arch": 90},
        {"swizzle": 4, "arch": 100},
    ),
)

RULES: Final[tuple[Rule, ...]] = (*_OWN, *map_parameters.RULES, *map_advice.RULES)
SOURCES: Final = {r.id: r.source for r in RULES}
