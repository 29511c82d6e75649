"""Index expressions as C++: the same number, in 32 bits where it fits, and no slower than by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.engines.cuda.emit.exprs import Exprs
from oxidecopy.engines.cuda.emit.ranges import Span, span
from oxidecopy.errors import DeviceCodeError
from oxidecopy.isa.expr import Add, And, Answer, Bool, Cmp, CmpOp, Const, Expr, Max, Min, Mul, Not, Or, Sym, SymKind, evaluate
from oxidecopy.isa.expr import FloorDiv as Div
from oxidecopy.isa.expr import Mod as Rem
from tests.helpers.program_strategy import expressions

LOOP, N, B = Sym("i", SymKind.LOOP), Sym("n", SymKind.PARAM), Sym("block_idx.x", SymKind.BLOCK)


def writer(i: tuple[int, int] = (0, 99), n: tuple[int, int] = (7, 7)) -> Exprs:
    made = Exprs()
    made.bind("i", "i", Span(*i))
    made.bind("n", "n", Span(*n))
    made.bind("block_idx.x", "block_x", Span(0, 1023))
    return made


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (Add(Mul(B, Const(64)), LOOP), "block_x * 64 + i"),
        (Mul(Add(B, Const(-1)), Const(64)), "(block_x - 1) * 64"),
        (Add(B, Mul(LOOP, Const(-1))), "block_x - i"),
        (Add(B, Mul(LOOP, Const(-3))), "block_x - i * 3"),
        (Add(B, Mul(Add(LOOP, N), Const(-1))), "block_x - (i + n)"),
        (Div(LOOP, N), "i / n"),
        (Rem(Add(LOOP, N), N), "(i + n) % n"),
        (Div(LOOP, Const(4)), "i >> 2"),
        (Rem(LOOP, Const(4)), "i & 3"),
        (Mul(Rem(LOOP, Const(4)), Const(8)), "(i & 3) * 8"),
        (Add(Div(LOOP, Const(3)), Const(-1)), "i / 3 - 1"),
        (Div(Add(LOOP, Const(-1)), Const(4)), "(i - 1) >> 2"),
        (Div(Add(LOOP, Const(-1)), N), "floor_div<int>(i - 1, n)"),
        (Rem(Mul(LOOP, Const(-1)), N), "floor_mod<int>(-i, n)"),
        (Min(LOOP, N), "minimum<int>(i, n)"),
        (Max(LOOP, Mul(LOOP, Const(1 << 40))), "maximum<i64>(i, i * 1099511627776ll)"),
        (Const(-(1 << 63)), "(-9223372036854775807ll - 1)"),
    ],
)
def test_text(e: Expr, text: str) -> None:
    assert writer().text(e) == text


def test_wide_factors_are_widened_first() -> None:
    exprs = writer(i=(0, 1 << 20), n=(1 << 20, 1 << 20))
    assert exprs.text(Mul(LOOP, N)) == "(i64)i * n"
    assert exprs.narrow(Mul(LOOP, N)) == "(int)((i64)i * n)"


def test_more_than_64_bits_are_refused() -> None:
    with pytest.raises(DeviceCodeError) as caught:
        writer(n=(1 << 62, 1 << 62)).text(Mul(LOOP, N))
    assert caught.value.rules == ("OX5510",)
    assert writer(n=(1 << 62, 1 << 62)).text(N) == "n"


def test_conditions() -> None:
    below = Cmp(CmpOp.LT, LOOP, N)
    cond = Or(And(below, Not(Answer(3))), And(Bool(value=True), Cmp(CmpOp.NE, Add(LOOP, N), Const(2))))
    assert writer().cond(cond) == "(i < n && !answer3) || (true && i + n != 2)"


@given(expressions((LOOP, N)), st.integers(-5, 5), st.integers(-3, 8), st.integers(0, 3))
def test_spans_hold_every_value(e: Expr, low: int, width: int, n: int) -> None:
    spans = {"i": Span(low, low + max(width, 0)), "n": Span(n, n + 2)}
    bounds = span(e, spans)
    for i in range(spans["i"].lo, spans["i"].hi + 1):
        for k in range(n, n + 3):
            try:
                value = evaluate(e, {"i": i, "n": k})
            except ZeroDivisionError:
                continue
            assert bounds.lo <= value <= bounds.hi


@given(expressions((LOOP, N)), st.integers(-50, 50), st.integers(1, 9))
def test_the_text_has_the_value(e: Expr, i: int, n: int) -> None:
    """Read as Python, where `/` of what is not negative is `//`, the text gives the number."""
    exprs = writer((i, i), (n, n))
    try:
        text, wanted = exprs.text(e), evaluate(e, {"i": i, "n": n})
    except (DeviceCodeError, ZeroDivisionError):
        return
    assert python_value(text, {"i": i, "n": n}) == wanted


def python_value(text: str, env: Mapping[str, int]) -> int:
    for old in ("<int>", "<i64>", "(i64)", "ll"):
        text = text.replace(old, "")
    functions = {
        "floor_div": lambda a, b: a // b, "floor_mod": lambda a, b: a % b, "minimum": min, "maximum": max,
    }  # fmt: skip
    return int(eval(text.replace("/", "//"), {"__builtins__": {}}, {**functions, **env}))
