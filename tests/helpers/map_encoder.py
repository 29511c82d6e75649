"""The 128 bytes that a driver of compute capability 9.0 makes of a map's arguments: a partner for the decoder's tests, and what the fake
driver encodes. Written from the measured table of places, in the driver's order (innermost dimension first), not from the decoder."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.tensor_map import TensorMap

# By CUtensorMapDataType: PTX elemtype number, whether loads round to tf32, bytes of an element.
TYPES = [
    *((0, 0, 1), (1, 0, 2), (2, 0, 4), (3, 0, 4), (4, 0, 8), (5, 0, 8), (6, 0, 2), (7, 0, 4)),
    *((9, 0, 8), (10, 0, 2), (8, 0, 4), (7, 1, 4), (8, 1, 4)),
]
ALIGNMENTS = (16, 256, 512, 1024)
CORNER_BITS = {3: 16, 4: 8, 5: 5}


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
