"""Epilogues that are compiled: what is recognised, in which order of operands, and that the record says what the expression does."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import FinishFn, FinishOf, FinishOp
from oxidecopy.engines.cuda.code.finish import BYTES, finish_of
from oxidecopy.engines.cuda.code.words import Words
from oxidecopy.engines.sim import elements
from oxidecopy.isa.elem import Along, Binary, Cast, Elem, ElemOp, Fn, Input, Neg, Number, Parameter, Unary
from oxidecopy.program.program import Launch
from tests.helpers.device_emulator import fields

Bits = npt.NDArray[Any]
S: Final = Input(0, "f32")
COLUMN: Final = Input(1, "f32", Along.COLUMN)
ROW: Final = Input(2, "bf16", Along.ROW)
LIKE: Final = Input(3, "f16")
SOURCES: Final = (20, 40, 60)
FORMS: Final = {abi.ElementForm.BITS32: "f32", abi.ElementForm.F16: "f16", abi.ElementForm.BF16: "bf16"}
FNS: Final = {FinishFn.GELU: Fn.GELU, FinishFn.SIGMOID: Fn.SIGMOID, FinishFn.TANH: Fn.TANH, FinishFn.EXP: Fn.EXP}
OPS: Final = {
    FinishOp.ADD: ElemOp.ADD, FinishOp.MUL: ElemOp.MUL, FinishOp.SUB: ElemOp.SUB, FinishOp.RSUB: ElemOp.SUB,
    FinishOp.MIN: ElemOp.MIN, FinishOp.MAX: ElemOp.MAX,
}  # fmt: skip


def add(a: Elem, b: Elem) -> Elem:
    return Binary(ElemOp.ADD, a, b)


def mul(a: Elem, b: Elem) -> Elem:
    return Binary(ElemOp.MUL, a, b)


def relu(a: Elem) -> Elem:
    return Binary(ElemOp.MAX, a, Number(0.0, a.dtype))


def gelu(a: Elem) -> Elem:
    return Unary(Fn.GELU, a)


def words() -> Words:
    return Words(Launch(grid=(1, 1, 1)), ())


def read(e: Elem, given: Words | None = None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The record, as fields."""
    data = finish_of(e, SOURCES, given or words())
    assert data is not None
    assert len(data) == BYTES
    head = fields(data, abi.FINISH)
    return head, [fields(data, abi.FINISH_STEP, abi.FINISH_BYTES + i * abi.FINISH_STEP_BYTES) for i in range(head["count"])]


# ---- the record as the device runs it
def rounded(bits: Bits, form: int) -> Bits:
    """A NaN is that of the narrow type, widened."""
    if not form:
        return bits
    dtype = FORMS[abi.ElementForm(form)]
    made = elements.cast(elements.cast(bits, "f32", dtype), dtype, "f32")
    return np.where(np.isnan(made.view(np.float32)), np.uint32(0x7FFF0000 if dtype == "bf16" else 0x7FFFE000), made)


def operand(step: dict[str, Any], inputs: dict[int, tuple[Bits, str]], size: int, scalars: dict[int, int]) -> Bits:
    if step["of"] == FinishOf.NUMBER:
        bits = scalars[step["source"]] if step["flags"] & abi.FINISH_ARGUMENT else step["source"]
        return np.full(size, bits, np.uint32)
    bits, dtype = inputs[step["source"]]
    assert FORMS[abi.ElementForm(step["form"])] == dtype
    made = elements.cast(bits, dtype, "f32")
    if step["flags"] & abi.FINISH_SCALED:
        scale = scalars[step["scale"]] if step["flags"] & abi.FINISH_SCALE_ARGUMENT else step["scale"]
        made = elements.combine(ElemOp.MUL, made, np.full(size, scale, np.uint32), "f32")
    return made


def function(fn: int, v: Bits) -> Bits:
    if fn == FinishFn.NONE:
        return v
    if fn == FinishFn.RELU:
        return elements.combine(ElemOp.MAX, v, np.zeros_like(v), "f32")
    if fn == FinishFn.SILU:
        return elements.combine(ElemOp.MUL, v, elements.unary(Fn.SIGMOID, v, "f32"), "f32")
    return elements.unary(FNS[FinishFn(fn)], v, "f32")


def run(e: Elem, sums: Bits, inputs: dict[int, tuple[Bits, str]], given: Words, scalars: dict[int, int]) -> Bits:
    head, steps = read(e, given)
    v = rounded(sums, head["round"])
    for i in range(head["count"] + 1):
        if i == head["before"]:
            with np.errstate(all="ignore"):
                v = rounded(function(head["fn"], v), head["fn_round"])
        if i < head["count"]:
            x, op = operand(steps[i], inputs, len(v), scalars), FinishOp(steps[i]["op"])
            v = elements.combine(OPS[op], *((x, v) if op is FinishOp.RSUB else (v, x)), "f32")
            v = rounded(v, steps[i]["round"])
    return elements.cast(v, "f32", e.dtype)


GATES: Final[tuple[Callable[[Elem], Elem], ...]] = (
    lambda u: u, relu, gelu, lambda u: Unary(Fn.SIGMOID, u), lambda u: Unary(Fn.TANH, u), lambda u: mul(u, Unary(Fn.SIGMOID, u)),
)  # fmt: skip
ALPHA: Final = Parameter("alpha", "f32")


def some_operand(chance: random.Random, dtype: str) -> Elem:
    """What a step may read, as `dtype`."""
    if dtype == "bf16":
        return chance.choice((ROW, Number(0.5, "bf16"), Number(-1.25, "bf16")))
    array = chance.choice((COLUMN, Cast(ROW, "f32"), Cast(LIKE, "f32")))
    return chance.choice((array, array, Neg(array), mul(Number(2.5, "f32"), array), mul(array, ALPHA), ALPHA, Number(3.0, "f32")))


def some(chance: random.Random) -> Elem:
    """An expression of the kind that is recognised."""
    v: Elem = S
    at = chance.randrange(5)
    for i in range(5):
        if i == at or chance.random() < 0.2:
            v = Cast(v, "f32" if i == at else chance.choice(("bf16", "f32")))
        if i == at:
            v = chance.choice(GATES)(v)
        elif chance.random() < 0.7:
            x = some_operand(chance, v.dtype)
            op = chance.choice((ElemOp.ADD, ElemOp.ADD, ElemOp.MUL, ElemOp.SUB, ElemOp.MAX, ElemOp.MIN))
            v = Binary(op, v, x) if chance.random() < 0.5 else Binary(op, x, v)
    return Cast(v, chance.choice((v.dtype, "bf16")))


def test_the_record_computes_what_the_expression_says() -> None:
    chance, numbers = random.Random(7), np.random.default_rng(3)
    size, seen = 64, set()
    sums, column = (numbers.normal(0, 3, size).astype(np.float32).view(np.uint32) for _ in range(2))
    sums[:6] = (0x7F800000, 0xFF800000, 0x7FC00001, 0, 0x80000000, 1)
    row, like = (elements.cast(numbers.normal(0, 2, size).astype(np.float32).view(np.uint32), "f32", dtype) for dtype in ("bf16", "f16"))
    inputs = {20: (column, "f32"), 40: (row, "bf16"), 60: (like, "f16")}
    recognised = 0
    for _ in range(150):
        e, given = some(chance), words()
        if finish_of(e, SOURCES, given) is None:
            continue
        recognised += 1
        scalars = {word.word: int(np.float32(0.75).view(np.uint32)) for word in given.scalars.values()}
        expected = elements.evaluate(e, [sums, column, row, like], {"alpha": 0.75})
        np.testing.assert_array_equal(run(e, sums, inputs, given, scalars), expected, str(e))
        seen.add(read(e)[0]["fn"])
    assert recognised > 130
    assert len(seen) >= 5


# ---- what is recognised, however it is written
@pytest.mark.parametrize("e", [gelu(add(S, COLUMN)), Cast(gelu(add(COLUMN, S)), "bf16"), Cast(gelu(Cast(add(S, COLUMN), "f32")), "f16")])
def test_bias_and_gelu_is_straight(e: Elem) -> None:
    head, steps = read(e)
    assert (head["fn"], head["before"], head["count"], head["biased"], head["straight"]) == (FinishFn.GELU, 1, 1, 1, 1)
    assert (steps[0]["op"], steps[0]["of"], steps[0]["source"]) == (FinishOp.ADD, FinishOf.COLUMN, 20)


@pytest.mark.parametrize(
    "e",
    [
        Cast(gelu(Cast(add(S, COLUMN), "bf16")), "f16"),  # rounded to bf16, and once more
        gelu(Cast(add(S, COLUMN), "bf16")),  # rounded before the function
        add(gelu(add(S, COLUMN)), Cast(LIKE, "f32")),  # a step behind it
        Cast(Unary(Fn.TANH, add(S, COLUMN)), "bf16"),
    ],
)
def test_what_is_not_straight(e: Elem) -> None:
    data = finish_of(e, SOURCES, words())
    assert data is None or fields(data, abi.FINISH)["straight"] == 0


@pytest.mark.parametrize("e", [add(S, Cast(ROW, "f32")), mul(S, COLUMN), add(Cast(S, "bf16"), ROW), add(S, Neg(COLUMN))])
def test_what_is_no_bias(e: Elem) -> None:
    assert read(e)[0]["biased"] == 0


def test_the_last_rounding_is_the_stores() -> None:
    assert read(Cast(gelu(S), "bf16"))[0]["fn_round"] == 0
    kept = Cast(Cast(gelu(S), "bf16"), "f32")
    assert read(kept)[0]["fn_round"] == abi.ElementForm.BF16


@pytest.mark.parametrize("stored", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize(
    "last",
    [
        lambda s: s,
        lambda s: add(s, Number(1.0, s.dtype)),
        lambda s: mul(Number(-2.0, s.dtype), s),
        lambda s: Binary(ElemOp.SUB, Number(0.0, s.dtype), s),
        lambda s: Binary(ElemOp.MIN, s, Number(6.0, s.dtype)),
        Neg,
        relu,
        gelu,
        lambda s: Unary(Fn.SIGMOID, s),
        lambda s: Unary(Fn.TANH, s),
        lambda s: Unary(Fn.EXP, s),
        lambda s: add(gelu(s), Number(0.5, s.dtype)),
    ],
)
def test_a_nan_that_is_stored_is_the_one_of_its_type(last: Callable[[Elem], Elem], dtype: str, stored: str) -> None:
    e, given = Cast(last(Cast(S, dtype)), stored), words()
    if finish_of(e, SOURCES, given) is None:
        assert {dtype, stored} == {"bf16", "f16"}  # rounded twice
        return
    sums = np.array([0x7FC00001, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x80000000, 0, 1, 0x807FFFFF, 0x3F8ABCDE, 0xC7800000], np.uint32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(e, sums, {}, given, {}), elements.evaluate(e, [sums], {}))


def test_a_chain_with_no_step_left_for_that_is_left_to_the_machine() -> None:
    e: Elem = Cast(S, "bf16")
    for _ in range(abi.FINISH_STEPS):
        e = add(e, Number(1.0, "bf16"))
    assert read(e)[0]["count"] == abi.FINISH_STEPS
    assert finish_of(Cast(e, "f32"), SOURCES, words()) is None


def test_clamped() -> None:
    head, steps = read(Binary(ElemOp.MIN, relu(S), Number(6.0, "f32")))
    assert (head["fn"], head["before"], steps[0]["op"], steps[0]["source"]) == (FinishFn.RELU, 0, FinishOp.MIN, 0x40C00000)


DEEP = S
for _ in range(2000):
    DEEP = add(DEEP, Number(1.0, "f32"))  # type: ignore[assignment]  # one after the other


@pytest.mark.parametrize(
    "e",
    [
        mul(S, S),
        add(S, Unary(Fn.SIGMOID, S)),
        mul(S, Unary(Fn.SIGMOID, add(S, COLUMN))),
        mul(Cast(S, "bf16"), Unary(Fn.SIGMOID, Cast(S, "bf16"))),
        Binary(ElemOp.DIV, S, COLUMN),
        gelu(Unary(Fn.TANH, S)),
        Unary(Fn.SQRT, S),
        add(S, mul(COLUMN, Cast(ROW, "f32"))),
        add(S, Unary(Fn.EXP, COLUMN)),
        Cast(Cast(Cast(S, "bf16"), "f32"), "f16"),
        Cast(S, "i32"),
        COLUMN,
        Number(1.0, "f32"),
        DEEP,
    ],
    ids=lambda e: type(e).__name__,
)
def test_what_is_left_to_the_machine(e: Elem) -> None:
    assert finish_of(e, SOURCES, words()) is None
