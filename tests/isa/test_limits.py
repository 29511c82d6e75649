"""Bounds that are named in more than one place agree, and each is the number of its source."""

from __future__ import annotations

from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.ops import Imm
from oxidecopy.isa.swizzle import SWIZZLES


def bound(op: type[ops.Instr], field: str) -> tuple[int, int]:
    kind = dict(ops.operands(op))[field]
    assert isinstance(kind, Imm)
    return kind.low, kind.high


def test_tensor_maps() -> None:
    assert (limits.MAX_RANK, limits.BOX_DIM_MAX, limits.ELEMENT_STRIDE_MAX) == (5, 256, 8)
    assert limits.BOX_BYTES_MAX == 228 * 1024
    assert limits.GLOBAL_DIM_MAX == 2 * limits.GLOBAL_DIM_USABLE_SM90 == 2**32
    assert (limits.COORD_MIN, limits.COORD_MAX) == (-(2**31), 2**31 - 1)
    assert limits.GLOBAL_STRIDE_LIMIT == 2**40
    assert limits.GLOBAL_ADDRESS_LIMIT == 2**57


def test_mbarriers() -> None:
    assert bound(ops.MbarrierInit, "count") == (1, 2**20 - 1)
    assert bound(ops.MbarrierArriveExpectTx, "nbytes") == (0, 2**20 - 1)
    assert limits.MBARRIER_BYTES == 8


def test_launches() -> None:
    assert bound(ops.BarSync, "number") == (0, 15)
    assert bound(ops.BarSync, "threads") == (1, 1024)
    assert bound(ops.WaitGroup, "pending") == bound(ops.WaitGroupRead, "pending") == (0, 15)
    assert bound(ops.Iota, "axis") == (0, limits.MAX_RANK - 1)
    assert limits.CLUSTER_PORTABLE_MAX == 8
    assert limits.CLUSTER_MAX == 16
    assert limits.THREADS_MAX % limits.WARP == 0
    assert (limits.GRID_X_MAX, limits.GRID_YZ_MAX) == (2**31 - 1, 2**16 - 1)


def test_shared_memory() -> None:
    assert limits.SHARED_BYTES_MAX[90] == 227 * 1024
    assert limits.SHARED_BYTES_MAX[120] == 99 * 1024
    assert max(limits.SHARED_BYTES_MAX.values()) + limits.SHARED_BASE < limits.CTA_WINDOW_BYTES
    # A box that the driver encodes can still be larger than what one block has.
    assert limits.SHARED_BYTES_MAX[90] < limits.BOX_BYTES_MAX


def test_every_capability_of_the_tables_has_a_shared_size() -> None:
    used = {op.min_sm for op in ops.OPS} | {d.min_sm for d in DTYPES.values()} | {s.min_sm for s in SWIZZLES.values()}
    assert used <= limits.SHARED_BYTES_MAX.keys()


def test_patterns_are_aligned_as_tensor_copies_need() -> None:
    assert all(s.repeat_bytes % limits.TENSOR_SMEM_ALIGN == 0 for s in SWIZZLES.values())
