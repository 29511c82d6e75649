"""Element expressions on arrays against the exact model: every operation of every type, every cast, and whole expressions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxidecopy.engines.sim.elements import cast, combine, constant, evaluate, negate
from oxidecopy.engines.sim.memory import ELEMENT, Array
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import (
    ELEMENT_TYPES,
    FLOATS,
    INTEGERS,
    Along,
    Binary,
    Cast,
    Compare,
    CompareOp,
    Elem,
    ElemOp,
    Fn,
    Input,
    Neg,
    Number,
    Parameter,
    Select,
    Unary,
    domain,
    integer_range,
    pair_problem,
)
from tests.helpers import elem_model as model

few = settings(max_examples=8, deadline=None)
TYPES = sorted(ELEMENT_TYPES)
PAIRS = [(a, b) for a, b in product(TYPES, TYPES) if a != b]


def edges(dtype: str) -> list[int]:
    """Bits around everything that rounds, overflows or means something else, of both signs."""
    n = DTYPES[dtype].bits
    near = {0, 1, 2, 3, (1 << (n - 1)) - 1, (1 << (n - 1)) - 2}
    if dtype not in INTEGERS:
        f = model.FORMATS[dtype.replace("tf32", "f32")]
        for e in (1, f.bias, f.bias + 1, (1 << f.exponent) - 2, (1 << f.exponent) - 1):
            near |= {(e << f.fraction) + d for d in (-1, 0, 1)} | {(e << f.fraction) + (1 << (f.fraction - 1))}
    near |= {1 << k for k in range(n - 1)} | {(1 << k) - 1 for k in range(n - 1)}
    return sorted(near | {b ^ (1 << (n - 1)) for b in near})


def patterns(dtype: str) -> st.SearchStrategy[int]:
    return st.sampled_from(edges(dtype)) | st.integers(0, (1 << DTYPES[dtype].bits) - 1)


def array(bits: list[int], dtype: str) -> Array:
    return np.array(bits, ELEMENT[DTYPES[dtype].nbytes])


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda x: x)
def test_casts(source: str, target: str) -> None:
    def check(bits: list[int]) -> None:
        with np.errstate(all="ignore"):
            found = cast(array(bits, source), source, target)
        assert [hex(b) for b in found.tolist()] == [hex(model.cast(b, source, target)) for b in bits]
        assert found.dtype.itemsize == DTYPES[target].nbytes

    check(edges(source))
    few(given(st.lists(patterns(source), min_size=1, max_size=30))(check))()


def exact(bits: int, dtype: str) -> Fraction:
    value = model.decode(bits, dtype)
    assert value is not None
    assert isinstance(value[1], Fraction)
    return value[1]


def ties(source: str, target: str) -> list[int]:
    """Values halfway between two numbers of `target`, and just beside: where rounding twice goes wrong."""
    f = model.FORMATS[target]
    made = []
    for exponent in (f.bias, f.bias + 3, 1):
        for fraction in (0, 1, 2):
            below, above = (exact((exponent << f.fraction) + fraction + d, target) for d in (0, 1))
            half = model.encode((False, (below + above) / 2), source)
            made += [half - 1, half, half + 1]
    return made


@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "e4m3", "e5m2"])
def test_casts_from_f64_round_once(target: str) -> None:
    bits = ties("f64", target)
    with np.errstate(all="ignore"):
        assert cast(array(bits, "f64"), "f64", target).tolist() == [model.cast(b, "f64", target) for b in bits]


def test_integers_to_narrow_floats_round_once() -> None:
    value = (1 << 40) + (1 << 32) + 1  # above the middle of two bf16 numbers, but on it as f32
    assert cast(array([value], "u64"), "u64", "bf16").tolist() == [model.cast(value, "u64", "bf16")] == [0x5381]


@pytest.mark.parametrize("target", ["f32", "bf16", "f16", "tf32"])
@pytest.mark.parametrize(("source", "sign"), [("u64", 1), ("i64", 1), ("i64", -1)])
def test_large_integers_round_once(source: str, sign: int, target: str) -> None:
    """Just above and below the middle of two numbers, by less than f64 can tell."""
    f = model.FORMATS[target]
    middle = (1 << 62) + (1 << (61 - f.fraction))
    bits = [model.wrap(sign * (middle + d), source) for d in (-1, 0, 1)]
    with np.errstate(all="ignore"):
        assert cast(array(bits, source), source, target).tolist() == [model.cast(b, source, target) for b in bits]


# ---- operations
@pytest.mark.parametrize("op", ElemOp)
@pytest.mark.parametrize("dtype", sorted(FLOATS | INTEGERS))
def test_operations(dtype: str, op: ElemOp) -> None:
    if pair_problem(op, dtype, dtype):
        return
    x, y = Input(0, dtype), Input(1, dtype)

    def check(pairs: list[tuple[int, int]]) -> None:
        a, b = array([p for p, _ in pairs], dtype), array([q for _, q in pairs], dtype)
        with np.errstate(all="ignore"):
            found = combine(op, a, b, dtype)
        assert [hex(n) for n in found.tolist()] == [hex(model.evaluate(Binary(op, x, y), [p, q], {})) for p, q in pairs]

    some = edges(dtype)[:: 3 if op in (ElemOp.ADD, ElemOp.MUL, ElemOp.DIV) else 7]
    check([(a, b) for a in some for b in some])
    few(given(st.lists(st.tuples(patterns(dtype), patterns(dtype)), min_size=1, max_size=30))(check))()


@pytest.mark.parametrize("op", CompareOp)
@pytest.mark.parametrize("dtype", sorted(FLOATS | INTEGERS))
def test_comparisons_and_what_they_select(dtype: str, op: CompareOp) -> None:
    some = edges(dtype)[::9]
    a, b = (array(list(row), dtype) for row in zip(*[(p, q) for p in some for q in some], strict=True))
    x, y = Input(0, dtype), Input(1, dtype)
    for e in (Select(Compare(op, x, y), x, y), Select(Unary(Fn.NOT, Compare(op, x, y)), x, y)):
        wanted = [model.evaluate(e, [p, q], {}) for p in some for q in some]
        assert evaluate(e, [a, b], {}).tolist() == wanted


@pytest.mark.parametrize("fn", [Fn.ABS, Fn.NOT, Fn.SQRT])
@pytest.mark.parametrize("dtype", sorted(FLOATS | INTEGERS))
def test_exact_functions(dtype: str, fn: Fn) -> None:
    if dtype not in domain(fn):
        return
    bits = edges(dtype)
    e = Unary(fn, Input(0, dtype))
    assert evaluate(e, [array(bits, dtype)], {}).tolist() == [model.evaluate(e, [b], {}) for b in bits]


@pytest.mark.parametrize(
    ("fn", "x", "wanted"),
    [
        (Fn.EXP, 1.0, 2.7182817),
        (Fn.EXP, 100.0, float("inf")),
        (Fn.LOG, 10.0, 2.3025851),
        (Fn.LOG, 0.0, float("-inf")),
        (Fn.RSQRT, 4.0, 0.5),
        (Fn.TANH, 0.5, 0.46211717),
        (Fn.SIGMOID, -100.0, 3.7835059e-44),
        (Fn.SIGMOID, 1.0, 0.7310586),
        (Fn.GELU, 1.0, 0.84134477),
        (Fn.GELU, -1.0, -0.15865526),
        (Fn.GELU, float("-inf"), -0.0),
    ],
)
def test_functions_are_those_of_mathematics_rounded(fn: Fn, x: float, wanted: float) -> None:
    found = evaluate(Unary(fn, Input(0, "f32")), [np.array([x], np.float32).view(np.uint32)], {})
    assert found.view(np.float32).tolist() == [np.float32(wanted)]
    nan = np.array([0x7FC00001], np.uint32)
    assert evaluate(Unary(fn, Input(0, "f32")), [nan], {}).tolist() == [0x7FFFFFFF]


def test_vectors_are_spread_over_rows_and_columns() -> None:
    e = Binary(ElemOp.ADD, Input(0, "i32", Along.ROW), Input(1, "i32", Along.COLUMN))
    rows, columns = array([1, 2], "i32").reshape(2, 1), array([10, 20, 30], "i32").reshape(1, 3)
    assert evaluate(e, [rows, columns], {}).tolist() == [[11, 21, 31], [12, 22, 32]]


@pytest.mark.parametrize("dtype", sorted(FLOATS | INTEGERS))
def test_negation(dtype: str) -> None:
    bits = edges(dtype)
    with np.errstate(all="ignore"):
        assert negate(array(bits, dtype), dtype).tolist() == [model.negate(b, dtype) for b in bits]


@pytest.mark.parametrize("dtype", TYPES)
def test_constants(dtype: str) -> None:
    if dtype in INTEGERS:
        low, high = integer_range(dtype)
        values: list[float] = [low, high, 0, 1]
    else:
        values = [0.0, -0.0, 0.1, 1 / 3, 1e-40, 1e38, -1e300, float("inf"), float("-inf"), float("nan"), 450.0, 57345.0]
    with np.errstate(all="ignore"):
        assert [constant(v, dtype).tolist() for v in values] == [[model.constant(v, dtype)] for v in values]


# ---- what the rules say, written out by hand
@pytest.mark.parametrize(
    ("value", "target", "bits"),
    [
        (2.5, "i32", 2),
        (-2.5, "i32", 0xFFFFFFFE),
        (-2.5, "u32", 0),
        (3e9, "i32", 0x7FFFFFFF),
        (300.0, "u8", 255),
        (float("nan"), "i32", 0),
        (float("inf"), "i64", (1 << 63) - 1),
        (449.0, "e4m3", 0x7E),  # 448
        (float("-inf"), "e4m3", 0xFE),
        (1e6, "e5m2", 0x7B),  # 57344
        (float("nan"), "e4m3", 0x7F),
        (65520.0, "f16", 0x7C00),  # infinity
        (1.0 + 2.0**-8, "bf16", 0x3F80),  # halfway, to even
        (1.0 + 3 * 2.0**-8, "bf16", 0x3F82),
        (1e-40, "f32_ftz", 0),
        (-1e-40, "f32_ftz", 0x80000000),
        (1.0 + 2.0**-11, "tf32", 0x3F800000),
        (float("nan"), "tf32", 0x7FFFE000),
    ],
)
def test_casts_by_hand(value: float, target: str, bits: int) -> None:
    with np.errstate(all="ignore"):
        assert cast(constant(value, "f64"), "f64", target).tolist() == [bits]


def test_integers_wrap() -> None:
    assert cast(array([0xFFFF_FFFF], "i32"), "i32", "u64").tolist() == [(1 << 64) - 1]
    assert cast(array([0x1_0000_0102], "i64"), "i64", "u8").tolist() == [2]
    assert combine(ElemOp.MUL, array([0x8000_0001], "i32"), array([2], "i32"), "i32").tolist() == [2]


def test_f16_sums_are_not_those_of_f32() -> None:
    """Each operation rounds: 2048 + 1 is 2048 in f16, so adding 1 twice changes nothing."""
    one: Elem = Number(1.0, "f16")
    twice = Binary(ElemOp.ADD, Binary(ElemOp.ADD, Input(0, "f16"), one), one)
    x = np.array([2048.0], np.float16).view(np.uint16)
    assert evaluate(twice, [x], {}).view(np.float16).tolist() == [2048.0]


def test_nothing_is_fused() -> None:
    x, y = np.float32(1 + 2**-12), np.float32(-1)
    fma = Binary(ElemOp.ADD, Binary(ElemOp.MUL, Input(0, "f32"), Input(0, "f32")), Input(1, "f32"))
    found = evaluate(fma, [np.array([x]).view(np.uint32), np.array([y]).view(np.uint32)], {})
    assert found.view(np.float32)[0] == x * x + y != np.float32(float(x) * float(x) + float(y))


def test_a_copy_keeps_every_bit() -> None:
    signalling = array([0x7F800001, 0xFFC00000, 0x80000000], "f32")
    assert evaluate(Input(0, "f32"), [signalling], {}).tolist() == signalling.tolist()
    assert evaluate(Cast(Input(0, "f32"), "f32"), [signalling], {}).tolist() == signalling.tolist()


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_against_numpy(dtype: str) -> None:
    """The usual case by the libraries that users compare with."""
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bf16" else np.dtype(DTYPES[dtype].numpy)
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal(2000).astype(kind), rng.standard_normal(2000).astype(kind)
    bits = ELEMENT[DTYPES[dtype].nbytes]
    for op, wanted in ((ElemOp.ADD, a + b), (ElemOp.SUB, a - b), (ElemOp.MUL, a * b), (ElemOp.DIV, a / b)):
        assert (combine(op, a.view(bits), b.view(bits), dtype) == wanted.view(bits)).all()


# ---- whole expressions
@st.composite
def cases(draw: st.DrawFn) -> tuple[Elem, list[str]]:
    inputs = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4))

    def tree(dtype: str, depth: int) -> Elem:
        choice = draw(st.integers(0, 5)) if depth else 0
        if choice == 4 and dtype in FLOATS | INTEGERS:
            cond = Compare(draw(st.sampled_from(CompareOp)), tree(dtype, depth - 1), tree(dtype, 0))
            return Select(cond, tree(dtype, depth - 1), tree(dtype, 0))
        if choice == 5 and dtype in domain(Fn.ABS):
            return Unary(Fn.ABS, tree(dtype, depth - 1))
        if choice == 1:
            return Cast(tree(draw(st.sampled_from(TYPES)), depth - 1), dtype)
        if choice > 1 and dtype in FLOATS | INTEGERS:
            a = tree(dtype, depth - 1)
            known = [op for op in ElemOp if not pair_problem(op, dtype, dtype)]
            return Neg(a) if choice == 2 else Binary(draw(st.sampled_from(known)), a, tree(dtype, depth - 1))
        leaves: list[Elem] = [Input(i, d) for i, d in enumerate(inputs) if d == dtype]
        leaves.append(Parameter("beta" if dtype in INTEGERS else "alpha", dtype))
        leaves.append(Number(3 if dtype in INTEGERS else 0.1, dtype))
        return draw(st.sampled_from(leaves))

    return tree(draw(st.sampled_from(TYPES)), 5), inputs


@settings(max_examples=300, deadline=None)
@given(cases(), st.data())
def test_expressions(case: tuple[Elem, list[str]], data: st.DataObject) -> None:
    e, dtypes = case
    rows = [data.draw(st.lists(patterns(d), min_size=4, max_size=4)) for d in dtypes]
    scalars: dict[str, float] = {"alpha": -2.7, "beta": 5}
    found = evaluate(e, [array(r, d) for r, d in zip(rows, dtypes, strict=True)], scalars)
    wanted = [model.evaluate(e, [r[i] for r in rows], scalars) for i in range(4)]
    assert np.broadcast_to(found, 4).tolist() == wanted


def test_shared_parts_are_evaluated_once() -> None:
    e: Elem = Input(0, "i32")
    for _ in range(60):  # 2 ** 60 nodes, were they not shared
        e = Binary(ElemOp.ADD, e, e)
    assert evaluate(e, [array([1, 3], "i32")], {}).tolist() == [0, 0]
