"""What plain bulk copies can do (PTX 9.7.9.25.4; each pair of operation and type confirmed by the assembler)."""

from __future__ import annotations

from typing import Final

ALIGN: Final = 16  # measured: addresses, and sizes (which the hardware rounds down)

_BITS: Final = frozenset({"bit_and", "bit_or", "bit_xor"})
_ADD: Final = frozenset({"add"})
_MINMAX: Final = frozenset({"min", "max"})
_COUNT: Final = frozenset({"inc", "dec"})

# By element type. f32 of a tf32 array is added as f32; there is no flushing form, so the _ftz types have none.
REDUCES_IN_GLOBAL: Final[dict[str, frozenset[str]]] = {
    "u32": _ADD | _MINMAX | _BITS | _COUNT,
    "i32": _ADD | _MINMAX | _BITS,
    "u64": _ADD | _MINMAX | _BITS,
    "i64": _MINMAX | _BITS,
    "f16": _ADD | _MINMAX,
    "bf16": _ADD | _MINMAX,
    "f32": _ADD,
    "tf32": _ADD,
    "f64": _ADD,
}
REDUCES_IN_SHARED: Final[dict[str, frozenset[str]]] = {
    "u32": _ADD | _MINMAX | _BITS | _COUNT,
    "i32": _ADD | _MINMAX | _BITS,
    "u64": _ADD,
}
