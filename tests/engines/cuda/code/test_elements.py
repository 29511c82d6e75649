"""Element expressions as stack code: run on a stack of values, they give the bits that the simulator's evaluation gives."""

from __future__ import annotations

import struct
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import DTypeCode, ElemFn
from oxidecopy.engines.cuda.code.elements import DEPTH_MAX, compile_elem, depth_of, length_of
from oxidecopy.engines.cuda.code.words import Words
from oxidecopy.engines.sim.elements import cast, combine, evaluate, negate
from oxidecopy.engines.sim.memory import ELEMENT
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import (
    ELEMENT_TYPES,
    FLOATS,
    INTEGERS,
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
    integer_range,
    pair_problem,
)
from oxidecopy.program.program import Launch
from tests.helpers.device_emulator import fields

if TYPE_CHECKING:
    from oxidecopy.engines.sim.memory import Array

OPS = {ElemFn[op.name]: op for op in ElemOp}
COMPARISONS = {ElemFn[op.name]: op for op in CompareOp}
SCALARS = {"alpha": 0.3, "n": 7}
LAUNCH = Launch(grid=(1, 1, 1))
TYPES = sorted(ELEMENT_TYPES)


def made(random: Random, dtype: str, inputs: list[str], depth: int) -> Elem:
    """A random expression of a type."""
    choice = random.randrange(5) if depth else 0
    if choice == 1:
        return Cast(made(random, random.choice(TYPES), inputs, depth - 1), dtype)
    if choice > 1 and dtype in FLOATS | INTEGERS:
        if choice == 2:
            return Neg(made(random, dtype, inputs, depth - 1))
        if random.random() < 0.2:
            cond = Compare(random.choice(list(CompareOp)), made(random, dtype, inputs, 1), made(random, dtype, inputs, 1))
            return Select(Unary(Fn.NOT, cond), made(random, dtype, inputs, depth - 1), made(random, dtype, inputs, 1))
        op = random.choice([op for op in ElemOp if not pair_problem(op, dtype, dtype)])
        return Binary(op, made(random, dtype, inputs, depth - 1), made(random, dtype, inputs, depth - 1))
    if dtype in inputs and random.random() < 0.6:
        return Input(inputs.index(dtype), dtype)
    if dtype in INTEGERS:
        return Parameter("n", dtype) if random.random() < 0.3 else Number(random.randint(*integer_range(dtype)), dtype)
    return Parameter("alpha", dtype) if random.random() < 0.3 else Number(random.uniform(-8, 8), dtype)


def run(code: bytes, words: Words, inputs: list[Array]) -> tuple[Array, int]:  # noqa: C901 - one case per sort of instruction
    """The value that is left, and how deep the stack was."""
    from oxidecopy.engines.cuda.code.numbers import bits_of

    held = {s.word: bits_of(SCALARS[s.name], s.dtype, cast=s.cast) for s in words.scalars.values()}
    stack: list[Array] = []
    deepest = 0
    for at in range(0, len(code), abi.EVAL_BYTES):
        i = fields(code, abi.ELEM_INSTR, at)
        fn, dtype = ElemFn(i["fn"]), DTypeCode(i["dtype"]).name.lower()
        match fn:
            case ElemFn.INPUT:
                stack.append(inputs[i["source"]])
            case ElemFn.WORD:
                bits = held.get(i["word"], words.words[i["word"]])
                stack.append(np.full(inputs[0].shape, bits, ELEMENT[DTYPES[dtype].nbytes]))
            case ElemFn.NEG:
                stack.append(negate(stack.pop(), dtype))
            case ElemFn.CAST:
                stack.append(cast(stack.pop(), DTypeCode(i["source"]).name.lower(), dtype))
            case ElemFn.SELECT:
                other, chosen, cond = stack.pop(), stack.pop(), stack.pop()
                picked = np.where(cond != 0, chosen, other)
                stack.append(
                    evaluate(
                        Select(Compare(CompareOp.EQ, Number(0, "u8"), Number(0, "u8")), Input(0, dtype), Input(0, dtype)), [picked], {}
                    )
                )
            case ElemFn.NOT:
                stack.append(~stack.pop())
            case _ if fn in COMPARISONS:
                right, left = stack.pop(), stack.pop()
                truth = evaluate(Compare(COMPARISONS[fn], Input(0, dtype), Input(1, dtype)), [left, right], {})
                stack.append(np.where(truth, ~np.uint64(0), np.uint64(0)))
            case _:
                right, left = stack.pop(), stack.pop()
                stack.append(combine(OPS[fn], left, right, dtype))
        deepest = max(deepest, len(stack))
    (left,) = stack
    return left, deepest


@pytest.mark.parametrize("seed", range(150))
def test_same_bits_as_the_simulator(seed: int) -> None:
    random = Random(seed)
    types = [random.choice(TYPES) for _ in range(3)]
    expression = made(random, random.choice(TYPES), types, 5)
    draw = np.random.default_rng(seed)
    inputs = [draw.integers(0, 256, 32 * DTYPES[d].nbytes, np.uint8).view(ELEMENT[DTYPES[d].nbytes]) for d in types]
    words = Words(LAUNCH, ())
    code = compile_elem(expression, words)
    with np.errstate(all="ignore"):
        found, deepest = run(code, words, inputs)
        wanted = evaluate(expression, inputs, SCALARS)
    assert np.array_equal(found, np.broadcast_to(wanted, found.shape))
    assert deepest == depth_of(expression, {})
    assert len(code) // abi.EVAL_BYTES <= length_of(expression, {})


def test_the_deeper_side_comes_first() -> None:
    x: Elem = Input(0, "f32")
    deep: Elem = x
    for _ in range(20):
        deep = Binary(ElemOp.SUB, x, deep)
    assert depth_of(deep, {}) == 2
    for _ in range(7):
        deep = Binary(ElemOp.DIV, x, deep)
    assert depth_of(deep, {}) == DEPTH_MAX + 1


def test_shared_parts_are_counted_without_going_through_them_each_time() -> None:
    x: Elem = Input(0, "f32")
    for _ in range(60):
        x = Binary(ElemOp.ADD, x, x)
    assert length_of(x, {}) > 1 << 60


def test_instructions_are_as_declared() -> None:
    words = Words(LAUNCH, ())
    code = compile_elem(Cast(Binary(ElemOp.ADD, Input(1, "f32"), Number(1.0, "f32")), "f16"), words)
    assert words.words == [struct.unpack("<I", struct.pack("<f", 1.0))[0]]
    assert [fields(code, abi.ELEM_INSTR, 8 * i)["fn"] for i in range(4)] == [ElemFn.INPUT, ElemFn.WORD, ElemFn.ADD, ElemFn.CAST]
