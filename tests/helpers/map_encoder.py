"""The 128 bytes that a driver of compute capability 9.0 makes of a map's parameters, put together by number fields: a partner for the
decoder's tests, written from the measured table of places and not from the decoder."""

from __future__ import annotations

import struct

from oxidecopy.program.tensor_map import TensorMap

FORMATS = {
    "u8": 0,
    "u16": 1,
    "u32": 2,
    "i32": 3,
    "u64": 4,
    "i64": 5,
    "f16": 6,
    "f32": 7,
    "f32_ftz": 8,
    "f64": 9,
    "bf16": 10,
    "tf32": 7,
    "tf32_ftz": 8,
}
SWIZZLES = {"none": (0, 16), "32B": (1, 256), "64B": (2, 512), "128B": (3, 1024)}
SIZES = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u64": 8, "i64": 8, "f64": 8}


def encoded(of: TensorMap, address: int) -> bytes:
    im2col = of.mode == "im2col"
    dims, strides, steps = of.global_dim[::-1], of.global_strides[::-1], of.element_strides[::-1]
    swizzle, alignment = SWIZZLES[of.swizzle]
    head = im2col | (of.rank - 1) << 4 | FORMATS[of.dtype] << 7 | ("none", "16B", "32B").index(of.interleave) << 11 | swizzle << 13
    head |= (of.oob_fill == "nan") << 15 | of.dtype.startswith("tf32") << 16 | (0, 64, 128, 256).index(of.l2_promotion) << 17
    units = [s >> 4 for s in strides] + [0] * (5 - of.rank)
    upper = sum((u >> 32) << 4 * i for i, u in enumerate(units))
    words = [u & 0xFFFFFFFF for u in units][:4]
    counts = [-(-b // s) for b, s in zip(of.box_dim[::-1], steps, strict=not im2col)]
    nbytes = SIZES.get(of.dtype, 4)
    for n in of.box_dim if im2col else counts:
        nbytes *= n
    out = struct.pack("<QI4II", address, head, *words, upper)
    out += struct.pack("<5I", *[d - 1 for d in dims], *[0] * (5 - of.rank))
    out += sum((s - 1) << 3 * i for i, s in enumerate(steps)).to_bytes(3, "little")
    if im2col:
        bits = {3: 16, 4: 8, 5: 5}[of.rank]
        corners = [sum((c & (1 << bits) - 1) << bits * i for i, c in enumerate(corner[::-1])) for corner in (of.lower, of.upper)]
        pixels, channels = of.box_dim
        out += struct.pack("<BHHI", channels - 1, *corners, pixels - 1)
    else:
        out += bytes([b - 1 for b in of.box_dim[::-1]] + [0] * (5 - of.rank)) + bytes(4)
    return out + struct.pack("<QQ", nbytes, alignment) + bytes(48)
