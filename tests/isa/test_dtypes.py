"""The table of element types against known numbers, each written out by hand.

Driver enumerators: CUtensorMapDataType of cuda.h 13.0. Reductions: PTX 9.7.9.27 and what was measured on an H200, where every other pair
of operation and type ends the kernel with an illegal instruction.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES, REDUCE_OPS

#                 enum, PTX name, bits, float
DRIVER = {
    "u8": (0, "u8", 8, False),
    "u16": (1, "u16", 16, False),
    "u32": (2, "u32", 32, False),
    "i32": (3, "s32", 32, False),
    "u64": (4, "u64", 64, False),
    "i64": (5, "s64", 64, False),
    "f16": (6, "f16", 16, True),
    "f32": (7, "f32", 32, True),
    "f64": (8, "f64", 64, True),
    "bf16": (9, "bf16", 16, True),
    "f32_ftz": (10, "f32.ftz", 32, True),
    "tf32": (11, "tf32", 32, True),
    "tf32_ftz": (12, "tf32.ftz", 32, True),
    "e4m3": (0, "u8", 8, False),  # the driver has no fp8: it carries bytes
    "e5m2": (0, "u8", 8, False),
    "u4x16_align8b": (13, "b4x16", 4, False),
    "u4x16_align16b": (14, "b4x16_p64", 4, False),
    "u6x16_align16b": (15, "b6x16_p32", 6, False),
}
LEGAL = {
    "add": {"u32", "i32", "u64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"},
    "min": {"u32", "i32", "u64", "i64", "f16", "bf16"},
    "max": {"u32", "i32", "u64", "i64", "f16", "bf16"},
    "inc": {"u32"},
    "dec": {"u32"},
    "bit_and": {"u32", "i32", "u64"},
    "bit_or": {"u32", "i32", "u64"},
    "bit_xor": {"u32", "i32", "u64"},
}
PACKED = {"u4x16_align8b", "u4x16_align16b", "u6x16_align16b"}


def test_rows() -> None:
    assert {n: (d.driver_enum, d.ptx, d.bits, d.is_float) for n, d in DTYPES.items()} == DRIVER
    assert all(name == info.name for name, info in DTYPES.items())


def test_every_driver_type_has_a_row() -> None:
    assert {d.driver_enum for d in DTYPES.values()} == set(range(16))


@pytest.mark.parametrize("op", REDUCE_OPS)
def test_reductions(op: str) -> None:
    assert {name for name, info in DTYPES.items() if op in info.reduce} == LEGAL[op]


def test_the_legal_pairs_are_33_of_the_driver_types() -> None:
    """As many as were measured to work; 71 others of the 13 types of compute capability 9.0 fault."""
    pairs = {(op, info.driver_enum) for info in DTYPES.values() for op in info.reduce}
    assert len(pairs) == 33
    assert 13 * len(REDUCE_OPS) - len(pairs) == 71


def test_the_op_table_has_the_same_reductions() -> None:
    assert ops.REDUCE.words == REDUCE_OPS == tuple(LEGAL)


@pytest.mark.parametrize("name", [n for n in DTYPES if n not in PACKED])
def test_numpy_can_store_it(name: str) -> None:
    info = DTYPES[name]
    dtype = np.dtype(getattr(ml_dtypes, info.numpy, None) or info.numpy)
    assert dtype.name == info.numpy
    assert dtype.itemsize == info.nbytes == info.bits // 8


@pytest.mark.parametrize("name", sorted(PACKED))
def test_packed_types_have_no_bytes_per_element(name: str) -> None:
    assert DTYPES[name].min_sm == 100
    with pytest.raises(ValueError, match=f"{name} elements are"):
        _ = DTYPES[name].nbytes


def test_everything_else_is_there_on_compute_capability_9() -> None:
    assert {n for n, d in DTYPES.items() if d.min_sm > 90} == PACKED
