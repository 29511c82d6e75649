"""What im2col copies can be told (PTX 5.5.4)."""

from __future__ import annotations

from typing import Final

# By spatial dimensions: the bits of each offset operand. More are not diagnosed: they are cut, or spill into the next one (measured).
OFFSET_BITS: Final = {1: 16, 2: 8, 3: 5}
