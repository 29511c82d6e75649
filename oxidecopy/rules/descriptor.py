"""Rules of the descriptor: what `TmaDescriptor.tiled` refuses."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_API: Final = "CUDA driver API, cuTensorMapEncodeTiled"
_BOTH: Final = f"{_API}; measured on an H200"
_MEASURED: Final = "measured on an H200"


def _rule(number: int, title: str, why: str, source: str, wrong: str = "", right: str = "") -> Rule:
    return Rule(id=f"OX2{number:03}", title=title, error="DescriptorError", why=why, source=source, wrong=wrong, right=right)


def _tiled(shape: str, dtype: str, arguments: str) -> str:
    return f"a = dev.empty({shape}, ox.{dtype})\nox.TmaDescriptor.tiled(a, {arguments})\n"


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        1,
        "A tensor map has rank 1 to 5.",
        "The map has room for five extents. No script shows this rule: `dev.array` and `dev.empty` refuse such arrays first (OX5007).",
        f"{_API}; PTX ISA 5.5",
    ),
    _rule(
        2,
        "No dimension is empty.",
        "The driver refuses extent 0. No script shows this rule: `dev.array` and `dev.empty` refuse such arrays first (OX5006).",
        _BOTH,
    ),
    _rule(
        3,
        "An extent is at most 2^32 elements.",
        "The map holds extent - 1 in 32 bits. No script shows this rule: it takes an array of more than 4 GiB.",
        _BOTH,
    ),
    _rule(
        4,
        "On compute capability 9.0 an extent is at most 2^31 elements.",
        "Longer dimensions encode, and then every load and store through the map faults (CUresult 715), even at coordinate 0. No script "
        "shows this rule: it takes an array of more than 2 GiB.",
        _MEASURED,
    ),
    _rule(
        5,
        "The elements of the innermost dimension follow each other in memory.",
        "A map has no stride for it: a copy would read the bytes in between as elements. No script shows this rule: `dev.array` makes "
        "every upload contiguous.",
        _API,
    ),
    _rule(
        6,
        "All other strides are multiples of 16 bytes.",
        "The map holds strides in units of 16 bytes, so rows must start 16 bytes apart or a multiple of it.",
        _BOTH,
        _tiled("(100, 50)", "f32", "box=(32, 32)"),
        "a = dev.array(np.zeros((100, 50), np.float32), pad=True)\nox.TmaDescriptor.tiled(a, box=(32, 32))\n",
    ),
    _rule(
        7,
        "The innermost extent of the box is a multiple of 16 bytes.",
        "Copies move whole 16-byte chunks of a row.",
        _BOTH,
        _tiled("(64, 64)", "f32", "box=(8, 6)"),
        _tiled("(64, 64)", "f32", "box=(8, 8)"),
    ),
    _rule(
        8,
        "A stride is at least 0 and less than 2^40 bytes.",
        "The map holds it in 36 bits, in units of 16 bytes. No script shows this rule: it takes an array of a terabyte.",
        _BOTH,
    ),
    _rule(
        9,
        "The array starts at a multiple of 16 bytes.",
        "The hardware reads whole 16-byte chunks. No script shows this rule: devices place every array at a multiple of 16 bytes.",
        _BOTH,
    ),
    _rule(
        10,
        "The array starts below address 2^57.",
        "The driver refuses larger addresses. No script shows this rule: no device places arrays there.",
        _MEASURED,
    ),
    _rule(
        11,
        "The box is a tuple of integers, or a box type with literal extents.",
        "Its extents are part of the map, which is made on the host.",
        _API,
        _tiled("(64, 64)", "f32", "box=(64 / 2, 32)"),
        _tiled("(64, 64)", "f32", "box=(64 // 2, 32)"),
    ),
    _rule(
        12,
        "The box has the rank of the array.",
        "A copy takes one extent for each dimension; a flat box has extent 1 there.",
        _API,
        _tiled("(4, 64, 64)", "f32", "box=(32, 32)"),
        _tiled("(4, 64, 64)", "f32", "box=(1, 32, 32)"),
    ),
    _rule(
        13,
        "A box extent is 1 to 256 elements.",
        "The map holds extent - 1 in 8 bits; it counts before element strides shrink the box.",
        _BOTH,
        _tiled("(512, 64)", "f32", "box=(257, 4)"),
        _tiled("(512, 64)", "f32", "box=(256, 4)"),
    ),
    _rule(
        14,
        "A row of the box is at most as wide as the swizzle span.",
        "A swizzle permutes 16-byte chunks inside a span of 32, 64 or 128 bytes.",
        _BOTH,
        _tiled("(64, 64)", "f32", "box=(64, 64), swizzle=ox.Swizzle128B"),
        _tiled("(64, 64)", "f32", "box=(64, 32), swizzle=ox.Swizzle128B"),
    ),
    _rule(
        15,
        "A box holds at most 233,472 bytes.",
        "That is the shared memory of one multiprocessor (228 KiB); the driver refuses larger boxes.",
        _MEASURED,
        _tiled("(256, 256)", "f32", "box=(256, 256)"),
        _tiled("(256, 256)", "f32", "box=(128, 256)"),
    ),
    _rule(
        16,
        "The element strides are a tuple of integers.",
        "They are part of the map, which is made on the host.",
        _API,
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2.0, 1)"),
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2, 1)"),
    ),
    _rule(
        17,
        "There is one element stride for each dimension.",
        "The driver reads as many entries as the rank.",
        _API,
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2,)"),
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2, 1)"),
    ),
    _rule(
        18,
        "The innermost element stride is 1.",
        "Without interleave the hardware ignores it: the copy would be dense and not what was asked for.",
        f"PTX ISA 5.5.3.2; {_MEASURED}",
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(1, 2)"),
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(2, 1)"),
    ),
    _rule(
        19,
        "An element stride is 1 to 8.",
        "The map holds stride - 1 in 3 bits.",
        _BOTH,
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(9, 1)"),
        _tiled("(64, 64)", "f32", "box=(32, 32), element_strides=(8, 1)"),
    ),
    _rule(
        20,
        'The fill of elements outside the array is "zero" or "nan".',
        "The hardware knows no other fill.",
        _API,
        _tiled("(64, 64)", "f32", "box=(32, 32), oob_fill='one'"),
        _tiled("(64, 64)", "f32", "box=(32, 32), oob_fill='nan'"),
    ),
    _rule(
        21,
        "Only float types are filled with NaN.",
        "Integers have none; the driver refuses the map.",
        _BOTH,
        _tiled("(64, 64)", "i32", "box=(32, 32), oob_fill='nan'"),
        _tiled("(64, 64)", "i32", "box=(32, 32), oob_fill='zero'"),
    ),
    _rule(
        22,
        "The device has the element type.",
        "The packed 4-bit and 6-bit types came with compute capability 10.0; a 9.0 driver refuses the map. No script shows this rule: "
        "`dev.array` and `dev.empty` refuse such arrays first (OX5010).",
        _BOTH,
    ),
    _rule(
        23,
        "The L2 promotion is 0, 64, 128 or 256 bytes.",
        "Those are the granules that L2 can fetch from memory.",
        _API,
        _tiled("(64, 64)", "f32", "box=(32, 32), l2_promotion=512"),
        _tiled("(64, 64)", "f32", "box=(32, 32), l2_promotion=256"),
    ),
    _rule(
        24,
        "The device has the swizzle mode.",
        "The modes with wider atoms came with compute capability 10.0; a 9.0 driver refuses the map. No script shows this rule: the modes "
        "of this version exist on every device with tensor maps.",
        _BOTH,
    ),
)

SOURCES: Final = {r.id: r.source for r in RULES}
