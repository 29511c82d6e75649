"""The 128 bytes that a driver of compute capability 9.0 makes of a map's arguments, and what tensormap.replace makes of them.

Written from the measured table of places, in the driver's order (innermost dimension first), and not from the decoder
(`program.map_bytes`): the simulator writes with the one and reads with the other. No map of a GPU is made here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.tensor_map import TensorMap

MAP_BYTES: Final = 128
# By CUtensorMapDataType: PTX elemtype number, whether loads round to tf32, bytes of an element.
TYPES: Final = [
    *((0, 0, 1), (1, 0, 2), (2, 0, 4), (3, 0, 4), (4, 0, 8), (5, 0, 8), (6, 0, 2), (7, 0, 4)),
    *((9, 0, 8), (10, 0, 2), (8, 0, 4), (7, 1, 4), (8, 1, 4)),
]
ALIGNMENTS: Final = (16, 256, 512, 1024)
CORNER_BITS: Final = {3: 16, 4: 8, 5: 5}


def packed(
    data_type: int,
    rank: int,
    address: int,
    dims: Sequence[int],
    strides: Sequence[int],
    steps: Sequence[int],
    options: Sequence[int],
    *,
    box: Sequence[int] = (),
    im2col: Sequence[int] = (),
) -> bytes:
    """`options` are interleave, swizzle, promotion and fill; `im2col` the lower corner, the upper one, channels and pixels."""
    number, rounds, size = TYPES[data_type]
    interleave, swizzle, promotion, fill = options
    head = bool(im2col) | (rank - 1) << 4 | number << 7 | interleave << 11 | swizzle << 13 | fill << 15 | rounds << 16 | promotion << 17
    units = [*(s >> 4 for s in strides[: rank - 1]), *(0,) * (5 - rank)]
    upper = sum((u >> 32) << 4 * i for i, u in enumerate(units))
    words = [u & 0xFFFFFFFF for u in units][:4]
    out = struct.pack("<QI4II", address, head, *words, upper)
    out += struct.pack("<5I", *[d - 1 for d in dims[:rank]], *[0] * (5 - rank))
    out += sum((s - 1) << 3 * i for i, s in enumerate(steps[:rank])).to_bytes(3, "little")
    counts = [b // s for b, s in zip(box, steps, strict=False)]
    if im2col:
        bits, (channels, pixels) = CORNER_BITS[rank], im2col[-2:]
        lower, higher = im2col[: rank - 2], im2col[rank - 2 : -2]
        corners = [sum((c & (1 << bits) - 1) << bits * i for i, c in enumerate(corner)) for corner in (lower, higher)]
        out += struct.pack("<BHHHH", channels - 1, *corners, pixels - 1, 0)
        counts = [channels, pixels]
    else:
        out += bytes([*(b - 1 for b in box[:rank]), *(0,) * (5 - rank)]) + bytes(4)
    nbytes = size
    for n in counts:
        nbytes *= n
    return out + struct.pack("<QQ", nbytes, ALIGNMENTS[swizzle]) + bytes(48)


def encoded(of: TensorMap, address: int) -> bytes:
    """The bytes of a map by its parameters."""
    options = (
        ("none", "16B", "32B").index(of.interleave),
        ("none", "32B", "64B", "128B").index(of.swizzle),
        (0, 64, 128, 256).index(of.l2_promotion),
        int(of.oob_fill == "nan"),
    )
    turned = (of.global_dim[::-1], of.global_strides[::-1], of.element_strides[::-1])
    data_type = DTYPES[of.dtype].driver_enum
    if of.mode == "tile":
        return packed(data_type, of.rank, address, *turned, options, box=of.box_dim[::-1])
    return packed(data_type, of.rank, address, *turned, options, im2col=(*of.lower[::-1], *of.upper[::-1], *of.box_dim[::-1]))


# ---- tensormap.replace
class _Bits(NamedTuple):
    """Where a field lies: `bits` bits from bit `shift` of byte `offset` on, each further entry `step` bits behind; `less` is taken off."""

    offset: int
    shift: int
    bits: int
    step: int = 0
    less: int = 0


_FIELDS: Final = {
    "global_address": _Bits(0x00, 0, 64),
    "rank": _Bits(0x08, 4, 3),
    "elemtype": _Bits(0x08, 7, 4),
    "interleave_layout": _Bits(0x08, 11, 2),
    "swizzle_mode": _Bits(0x08, 13, 2),
    "fill_mode": _Bits(0x08, 15, 1),
    "global_dim": _Bits(0x20, 0, 32, 32, 1),
    "element_stride": _Bits(0x34, 0, 3, 3, 1),
    "box_dim": _Bits(0x37, 0, 8, 8, 1),
}
_ROUNDS: Final = _Bits(0x08, 16, 1)
_TF32: Final = {11: (7, 1), 12: (8, 1)}  # elemtypes tf32 and tf32_ftz: f32 and f32_ftz with the rounding bit, as the host call has them
_STRIDE_LOW: Final = _Bits(0x0C, 0, 32, 32)
_STRIDE_HIGH: Final = _Bits(0x1C, 0, 4, 4)
_STRIDE_UNIT: Final = 4  # bits: strides are counted in units of 16 bytes


def replaced(data: bytes, field: str, ord_: int, value: int) -> bytes:
    """The map after one instruction, which checks nothing: what does not fit its field is cut off (measured).

    Args:
        data: 128 bytes.
        field: one of `isa.ops.MAP_FIELDS`.
        ord_: of fields with an entry for each dimension which one, innermost first.
        value: bytes of an address or stride, else as PTX has it: of a rank one less.
    """
    word = int.from_bytes(data, "little")
    if field == "elemtype":
        number, rounds = _TF32.get(value, (value, 0))
        word = _put(_put(word, _FIELDS[field], 0, number), _ROUNDS, 0, rounds)
    elif field == "global_stride":
        word = _put(word, _STRIDE_LOW, ord_, value >> _STRIDE_UNIT)
        word = _put(word, _STRIDE_HIGH, ord_, value >> _STRIDE_UNIT + 32)
    else:
        word = _put(word, _FIELDS[field], ord_, value)
    return word.to_bytes(MAP_BYTES, "little")


def _put(word: int, at: _Bits, ord_: int, value: int) -> int:
    place, mask = 8 * at.offset + at.shift + at.step * ord_, (1 << at.bits) - 1
    return word & ~(mask << place) | (value - at.less & mask) << place
