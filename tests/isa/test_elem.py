"""Element expressions: the type of each node, and which nodes mean nothing."""

from __future__ import annotations

import pytest

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import (
    ELEMENT_TYPES,
    FLOATS,
    FP8_MAX,
    INTEGERS,
    Binary,
    Cast,
    Elem,
    ElemOp,
    Input,
    Neg,
    Number,
    Parameter,
    elements,
    integer_range,
    pair_problem,
    problem,
)

X = Input(0, "f32")


def test_types_go_up() -> None:
    assert Binary(ElemOp.MUL, Neg(X), Parameter("a", "f32")).dtype == "f32"
    assert Neg(Cast(Binary(ElemOp.ADD, X, X), "bf16")).dtype == "bf16"
    deep: Elem = X
    for _ in range(100_000):
        deep = Neg(deep)
    assert deep.dtype == "f32"


def test_elements_come_left_to_right() -> None:
    e = Binary(ElemOp.SUB, Cast(X, "f16"), Neg(Number(2.0, "f16")))
    assert list(elements(e)) == [e, e.a, X, e.b, Number(2.0, "f16")]


def test_every_type_is_calculated_with_or_only_cast() -> None:
    assert FLOATS | INTEGERS | FP8_MAX.keys() | {"tf32", "tf32_ftz", "f32_ftz"} == ELEMENT_TYPES
    assert {name for name, row in DTYPES.items() if row.bits % 8 == 0} == ELEMENT_TYPES
    assert integer_range("u8") == (0, 255)
    assert integer_range("i64") == (-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (Number(255, "u8"), Number(256, "u8")),
        (Number(-(1 << 31), "i32"), Number(-(1 << 31) - 1, "i32")),
        (Number(1, "i32"), Number(1.0, "i32")),
        (Number(1, "i32"), Number(True, "i32")),
        (Number(1.0, "f32"), Number(1, "f32")),
        (Number(1.0, "e4m3"), Number(1, "e4m3")),
        (Neg(X), Neg(Input(0, "e4m3"))),
        (Neg(Input(0, "u8")), Neg(Input(0, "tf32"))),
        (Cast(X, "e5m2"), Cast(X, "u4x16_align8b")),
        (X, Input(0, "f33")),
        (Binary(ElemOp.DIV, X, X), Binary(ElemOp.DIV, Input(0, "i32"), Input(0, "i32"))),
        (Binary(ElemOp.ADD, X, X), Binary(ElemOp.ADD, X, Input(1, "f16"))),
        (Binary(ElemOp.ADD, X, X), Binary(ElemOp.ADD, Input(0, "f32_ftz"), Input(0, "f32_ftz"))),
    ],
    ids=str,
)
def test_problems(good: Elem, bad: Elem) -> None:
    assert problem(good) == ""
    assert problem(bad) != ""


def test_pairs() -> None:
    assert pair_problem(ElemOp.MUL, "i64", "i64") == ""
    assert "division" in pair_problem(ElemOp.DIV, "i64", "i64")
    assert "arithmetic" in pair_problem(ElemOp.ADD, "e4m3", "e4m3")
    assert "combined" in pair_problem(ElemOp.ADD, "f32", "bf16")
