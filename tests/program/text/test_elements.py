"""Element expressions as text: what each looks like, what is refused, and how deep one may be."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oxidecopy.errors import ProgramTextError, Site
from oxidecopy.isa.elem import Along, Binary, Cast, Compare, CompareOp, Elem, ElemOp, Fn, Input, Neg, Number, Parameter, Select, Unary
from oxidecopy.program.nesting import NESTING_MAX
from oxidecopy.program.text.cursor import Cursor
from oxidecopy.program.text.elements import format_elem, read_elem
from oxidecopy.program.text.lexer import tokenize

PLACE = Site("a.txt", 1)
X, Y = Input(0, "f32"), Input(1, "f32")
ADD, SUB, MUL, DIV = ElemOp.ADD, ElemOp.SUB, ElemOp.MUL, ElemOp.DIV


def read(text: str) -> Elem:
    cursor = Cursor(tokenize(text, PLACE)[0], PLACE)
    e = read_elem(cursor)
    cursor.end()
    return e


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (X, "x0:f32"),
        (Cast(Binary(MUL, X, Parameter("alpha", "f32")), "bf16"), "cast(x0:f32 * alpha:f32, bf16)"),
        (Binary(SUB, Binary(SUB, X, Y), X), "x0:f32 - x1:f32 - x0:f32"),
        (Binary(SUB, X, Binary(SUB, Y, X)), "x0:f32 - (x1:f32 - x0:f32)"),
        (Binary(MUL, Binary(ADD, X, Y), X), "(x0:f32 + x1:f32) * x0:f32"),
        (Binary(DIV, X, Binary(DIV, X, Y)), "x0:f32 / (x0:f32 / x1:f32)"),
        (Binary(SUB, X, Number(-2.0, "f32")), "x0:f32 - -2.0:f32"),
        (Neg(X), "-x0:f32"),
        (Neg(Neg(X)), "--x0:f32"),
        (Neg(Number(2, "i32")), "-(2:i32)"),
        (Neg(Number(-2, "i32")), "-(-2:i32)"),
        (Neg(Binary(MUL, X, Y)), "-(x0:f32 * x1:f32)"),
        (Binary(MUL, Neg(X), Y), "-x0:f32 * x1:f32"),
        (Number(float("-inf"), "f16"), "-inf:f16"),
        (Number(1e-30, "f64"), "1e-30:f64"),
        (Number((1 << 64) - 1, "u64"), "18446744073709551615:u64"),
        (Parameter("x0", "f32"), '"x0":f32'),
        (Parameter("cast", "f32"), '"cast":f32'),
        (Parameter("inf", "f32"), '"inf":f32'),
        (Parameter("two words", "f32"), '"two words":f32'),
        (Parameter("x", "f32"), "x:f32"),
        (Parameter("max", "f32"), "max:f32"),
        (Binary(ElemOp.MAX, X, Number(0.0, "f32")), "max(x0:f32, 0.0:f32)"),
        (Binary(ElemOp.SHL, Input(0, "u8"), Number(2, "u8")), "shl(x0:u8, 2:u8)"),
        (Unary(Fn.GELU, Binary(ADD, X, Y)), "gelu(x0:f32 + x1:f32)"),
        (Neg(Unary(Fn.ABS, X)), "-abs(x0:f32)"),
        (Input(1, "f16", Along.ROW), "row(x1:f16)"),
        (Binary(MUL, X, Input(1, "f32", Along.COLUMN)), "x0:f32 * column(x1:f32)"),
        (Select(Unary(Fn.NOT, Compare(CompareOp.LE, X, Y)), X, Y), "select(invert(le(x0:f32, x1:f32)), x0:f32, x1:f32)"),
    ],
    ids=str,
)
def test_forms(e: Elem, text: str) -> None:
    assert format_elem(e) == text
    assert read(text) == e


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x0",
        "x0:",
        "x0:f32 +",
        "x0:f32 x1:f32",
        "cast(x0:f32)",
        "cast(x0:f32, bf16",
        "max(x0:f32)",
        "select(x0:f32, x1:f32)",
        "exp(x0:f32, x1:f32)",
        "(x0:f32",
        "2",
        "x0:f32 // x1:f32",
        "-",
        "cast:f32)",
    ],
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        read(text)
    assert caught.value.rules == ("OX1901",)


NEST: dict[str, Callable[[Elem], Elem]] = {
    "neg": Neg,
    "cast": lambda e: Cast(e, "f32"),
    "left": lambda e: Binary(ADD, e, X),
    "right": lambda e: Binary(SUB, X, e),
}


def nested(make: str, levels: int) -> Elem:
    e: Elem = X
    for _ in range(levels - 1):
        e = NEST[make](e)
    return e


@pytest.mark.parametrize("make", NEST)
def test_the_deepest_comes_back_and_one_more_is_refused(make: str) -> None:
    deepest = nested(make, NESTING_MAX)
    assert read(format_elem(deepest)) == deepest
    with pytest.raises(ProgramTextError) as caught:
        read(format_elem(nested(make, NESTING_MAX + 1)))
    assert caught.value.rules == ("OX1903",)


def test_a_negated_number_may_be_deepest() -> None:
    e: Elem = Neg(Number(2.0, "f32"))
    for _ in range(NESTING_MAX - 2):
        e = Binary(SUB, X, e)
    assert read(format_elem(e)) == e


@pytest.mark.parametrize("text", ["(" * 20_000, "-" * 20_000, "cast(" * 20_000, "x0:f32 + " * 20_000, "-(" * 20_000])
def test_no_line_is_too_much(text: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        read(text + "x0:f32")
    assert caught.value.rules == ("OX1903",)
