"""One row per element type a tensor map can have: driver enumerator, size, numpy storage, reductions.

The classes users write (`ox.f32`) are in `oxidecopy.typed`; they name a row of this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from oxidecopy.isa.limits import COORD_INNER_ALIGN

ReduceOpName = str
REDUCE_OPS: Final = ("add", "min", "max", "inc", "dec", "bit_and", "bit_or", "bit_xor")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DTypeInfo:
    """An element type.

    Attributes:
        name: as users write it.
        driver_enum: value of CUtensorMapDataType.
        ptx: the PTX type name.
        bits: size of one element in global memory.
        numpy: name of the dtype that stores it; names of the ml_dtypes package where numpy has none.
        is_float: NaN fill is legal (API).
        min_sm: first compute capability with the type.
        reduce: operations of cp.reduce.async.bulk.tensor that do not fault (measured table).
        group_bytes: of packed types, what 16 elements take in shared memory, with the gap behind them (PTX 5.5.1.1); else 0.
        stored: tensor copies store it, too.
    """

    name: str
    driver_enum: int
    ptx: str
    bits: int
    numpy: str
    is_float: bool = False
    min_sm: int = 90
    reduce: frozenset[ReduceOpName] = frozenset()
    group_bytes: int = 0
    stored: bool = True

    @property
    def packed(self) -> bool:
        """Elements are parts of bytes. In shared memory they are then taken as the bytes that they lie in."""
        return self.bits % 8 != 0

    @property
    def padded(self) -> bool:
        """A packed type that has gaps in shared memory: copies move rows of 128 elements, which are 128 bytes there."""
        return self.packed and self.group_bytes * 8 != self.bits * 16

    @property
    def in_shared(self) -> str:
        """The element type of its tiles."""
        return "u8" if self.packed else self.name

    @property
    def grid(self) -> int:
        """Elements that the innermost coordinate of a copy is a multiple of: 16 bytes (measured), of padded types a row (PTX)."""
        return 128 if self.padded else 8 * COORD_INNER_ALIGN // self.bits

    def shared_bytes(self, elements: int) -> int:
        """Bytes of a row of a tile, gaps of padded types included."""
        return elements * self.group_bytes // 16 if self.packed else elements * self.nbytes

    def row_bytes(self, elements: int) -> int:
        """Bytes of a row in global memory, where packed types have no gaps."""
        return -(-elements * self.bits // 8)

    @property
    def nbytes(self) -> int:
        """Bytes of one element; packed types (less than a byte) have none and raise."""
        if self.packed:
            raise ValueError(f"{self.name} elements are {self.bits} bits")
        return self.bits // 8


_BITS = frozenset({"bit_and", "bit_or", "bit_xor"})
_ADD = frozenset({"add"})
_MINMAX = frozenset({"min", "max"})

_ROWS = (
    DTypeInfo(name="u8", driver_enum=0, ptx="u8", bits=8, numpy="uint8"),
    DTypeInfo(name="u16", driver_enum=1, ptx="u16", bits=16, numpy="uint16"),
    DTypeInfo(name="u32", driver_enum=2, ptx="u32", bits=32, numpy="uint32", reduce=_ADD | _MINMAX | _BITS | {"inc", "dec"}),
    DTypeInfo(name="i32", driver_enum=3, ptx="s32", bits=32, numpy="int32", reduce=_ADD | _MINMAX | _BITS),
    DTypeInfo(name="u64", driver_enum=4, ptx="u64", bits=64, numpy="uint64", reduce=_ADD | _MINMAX | _BITS),
    DTypeInfo(name="i64", driver_enum=5, ptx="s64", bits=64, numpy="int64", reduce=_MINMAX),
    DTypeInfo(name="f16", driver_enum=6, ptx="f16", bits=16, numpy="float16", is_float=True, reduce=_ADD | _MINMAX),
    DTypeInfo(name="f32", driver_enum=7, ptx="f32", bits=32, numpy="float32", is_float=True, reduce=_ADD),
    DTypeInfo(name="f64", driver_enum=8, ptx="f64", bits=64, numpy="float64", is_float=True, reduce=_ADD),
    DTypeInfo(name="bf16", driver_enum=9, ptx="bf16", bits=16, numpy="bfloat16", is_float=True, reduce=_ADD | _MINMAX),
    DTypeInfo(name="f32_ftz", driver_enum=10, ptx="f32.ftz", bits=32, numpy="float32", is_float=True, reduce=_ADD),
    DTypeInfo(name="tf32", driver_enum=11, ptx="tf32", bits=32, numpy="float32", is_float=True, reduce=_ADD),
    DTypeInfo(name="tf32_ftz", driver_enum=12, ptx="tf32.ftz", bits=32, numpy="float32", is_float=True, reduce=_ADD),
    # fp8 has no driver name: the map carries bytes.
    DTypeInfo(name="e4m3", driver_enum=0, ptx="u8", bits=8, numpy="float8_e4m3fn"),
    DTypeInfo(name="e5m2", driver_enum=0, ptx="u8", bits=8, numpy="float8_e5m2"),
    DTypeInfo(name="u4x16_align8b", driver_enum=13, ptx="b4x16", bits=4, numpy="uint8", min_sm=100, group_bytes=8),
    DTypeInfo(name="u4x16_align16b", driver_enum=14, ptx="b4x16_p64", bits=4, numpy="uint8", min_sm=100, group_bytes=16, stored=False),
    DTypeInfo(name="u6x16_align16b", driver_enum=15, ptx="b6x16_p32", bits=6, numpy="uint8", min_sm=100, group_bytes=16),
)

VALUE_A_BYTE: Final = "u6x16_align16b"  # its stores take one value from each byte, where loads leave packed groups (PTX 5.5.1.1)
DTYPES: Final[dict[str, DTypeInfo]] = {row.name: row for row in _ROWS}
