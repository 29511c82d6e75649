"""The swizzles that device code computes itself, for plain accesses to tiles; copies leave it to the hardware."""

from __future__ import annotations

from oxidecopy.errors import DeviceCodeError, Diagnostic
from oxidecopy.isa.swizzle import EVERY_SWIZZLE


def chunk_mask(swizzle: str) -> int:
    """How many of the address bits from 7 on move chunks of 16 bytes.

    Raises:
        DeviceCodeError: for a mode that moves wider chunks, or halves of them.
    """
    mode = EVERY_SWIZZLE[swizzle]
    if mode.mask and (mode.shift != 4 or mode.flip_8b):
        raise DeviceCodeError(
            Diagnostic(
                rule="OX5530",
                what=f"device code has no plain accesses to tiles of the {swizzle} swizzle",
                got=swizzle,
                required="none, 32B, 64B or 128B",
                fix="copy the tile on, or read it on the simulator",
            )
        )
    return mode.mask
