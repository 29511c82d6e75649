"""Reductions against exact arithmetic on random operands; the measured table is in test_vectors.py."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.engines.sim.memory import GlobalMemory
from oxidecopy.engines.sim.reduce import combiner, reduce_box
from oxidecopy.engines.sim.tma import TensorPlan
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.tensor_map import TensorMap

WORD = {16: np.uint16, 32: np.uint32, 64: np.uint64}
LEGAL = [(op, name) for name, row in DTYPES.items() for op in sorted(row.reduce)]


def combine(op: str, dtype: str, old: int, src: int) -> int:
    kind = WORD[DTYPES[dtype].bits]
    return int(combiner(op, dtype)(np.array([old], kind), np.array([src], kind))[0])


@pytest.mark.parametrize(("op", "dtype"), LEGAL)
def test_every_legal_pair_keeps_its_type(op: str, dtype: str) -> None:
    kind = WORD[DTYPES[dtype].bits]
    a = np.arange(6, dtype=kind)
    out = combiner(op, dtype)(a, a[::-1].copy())
    assert (out.dtype, out.shape) == (a.dtype, a.shape)
    assert (a == np.arange(6)).all()  # operands stay


@given(st.sampled_from(["u32", "i32", "u64"]), st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
def test_integers(dtype: str, old: int, src: int) -> None:
    bits = DTYPES[dtype].bits
    old, src = old % (1 << bits), src % (1 << bits)
    assert combine("add", dtype, old, src) == (old + src) % (1 << bits)
    signed = (lambda v: v - (1 << bits) if v >> (bits - 1) else v) if dtype == "i32" else (lambda v: v)
    assert combine("min", dtype, old, src) == min(old, src, key=signed)
    assert combine("max", dtype, old, src) == max(old, src, key=signed)
    assert combine("bit_and", dtype, old, src) == old & src
    assert combine("bit_or", dtype, old, src) == old | src
    assert combine("bit_xor", dtype, old, src) == old ^ src


@given(st.integers(0, 9), st.integers(0, 9))
def test_counters(old: int, src: int) -> None:
    assert combine("inc", "u32", old, src) == (0 if old >= src else old + 1)
    assert combine("dec", "u32", old, src) == (src if old == 0 or old > src else old - 1)


@given(st.sampled_from(["f16", "bf16"]), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_half_sums_round_once(dtype: str, old: int, src: int) -> None:
    kind = np.dtype(np.float16 if dtype == "f16" else ml_dtypes.bfloat16)
    a, b = (float(np.array([w], np.uint16).view(kind)[0]) for w in (old, src))
    got = combine("add", dtype, old, src)
    if not (np.isfinite(a) and np.isfinite(b)):
        wanted = 0x7FFF if np.isnan(a + b) else int(np.array([a + b]).astype(kind).view(np.uint16)[0])
        assert got == wanted
        return
    value = float(np.array([got], np.uint16).view(kind)[0])
    if not np.isfinite(value):
        assert abs(a + b) > {"f16": 65504.0, "bf16": 3.3895e38}[dtype]
        return
    exact = Fraction(a) + Fraction(b)
    off = abs(Fraction(value) - exact)
    for near in (got + 1, got - 1):
        other = float(np.array([near & 0xFFFF], np.uint16).view(kind)[0])
        if np.isfinite(other):
            rival = abs(Fraction(other) - exact)
            assert off < rival or (off == rival and got % 2 == 0) or other == value


@given(st.sampled_from(["f16", "bf16"]), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_half_min_and_max(dtype: str, old: int, src: int) -> None:
    kind = np.dtype(np.float16 if dtype == "f16" else ml_dtypes.bfloat16)
    values = [float(np.array([w], np.uint16).view(kind)[0]) for w in (old, src)]
    numbers = [(v, w < 0x8000, w) for v, w in zip(values, (old, src), strict=True) if not np.isnan(v)]
    low = min(numbers)[2] if numbers else 0x7FFF
    high = max(numbers)[2] if numbers else 0x7FFF
    assert combine("min", dtype, old, src) == low
    assert combine("max", dtype, old, src) == high


def test_flush() -> None:
    tiny, small = 0x00000001, 0x80800001
    assert combine("add", "f32", tiny, 0) == tiny
    assert combine("add", "f32_ftz", tiny, 0) == 0
    assert combine("add", "f32_ftz", 0x80000001, 0x80000000) == 0x80000000
    assert combine("add", "f32", small, 0x00800000) == 0x80000001
    assert combine("add", "tf32_ftz", small, 0x00800000) == 0x80000000


def test_f64_nan() -> None:
    nan, signalling, inf = 0x7FF8000000000001, 0x7FF0000000000001, 0x7FF0000000000000
    assert combine("add", "f64", nan, 0) == nan
    assert combine("add", "f64", 0, signalling) == signalling
    assert combine("add", "f64", nan, signalling) == signalling
    assert combine("add", "f64", inf, inf | 1 << 63) == 0xFFF8000000000000


@pytest.mark.parametrize(("stride", "overlaps"), [(0, True), (16, True), (32, False), (48, False)])
def test_rows_that_overlap_are_all_summed(stride: int, overlaps: bool) -> None:
    memory = GlobalMemory()
    buffer = memory.allocate(1024)
    buffer.data[:] = 0
    tensor = TensorMap(dtype="u32", global_dim=(5, 8), global_strides=(stride,), box_dim=(5, 8), element_strides=(1, 1))
    plan = TensorPlan(tensor, buffer.address, memory)
    assert plan.overlaps is overlaps
    reduce_box(plan, (0, 0), np.ones(40, np.uint32).view("V16").reshape(5, 2), "add")
    assert buffer.data.view(np.uint32).sum() == 40


def test_a_box_outside_changes_nothing() -> None:
    memory = GlobalMemory()
    buffer = memory.allocate(512)
    tensor = TensorMap(dtype="u32", global_dim=(2, 4), global_strides=(16,), box_dim=(2, 4), element_strides=(1, 1))
    before = buffer.data.copy()
    reduce_box(TensorPlan(tensor, buffer.address, memory), (2, 0), np.ones(8, np.uint32).view("V16").reshape(2, 1), "add")
    assert (buffer.data == before).all()
