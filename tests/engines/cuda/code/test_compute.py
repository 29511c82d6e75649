"""The accumulator machine's code: run on vectors, it gives the bits that the simulator's evaluation gives."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from oxidecopy.engines.cuda.abi import COMPUTE_ARGUMENT, COMPUTE_AT_HAND, COMPUTE_VECTORS, ComputeFn, ElementForm
from oxidecopy.engines.cuda.code.compute import CONSTANT, Place, Step, UnfitError, compute_code, in_parts
from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.engines.cuda.code.words import Words
from oxidecopy.engines.sim.elements import cast, combine, evaluate, unary
from oxidecopy.engines.sim.memory import ELEMENT
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import (
    BITWISE,
    INTEGERS,
    MASK,
    SHIFTS,
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
)
from oxidecopy.program.program import Launch

if TYPE_CHECKING:
    from oxidecopy.engines.sim.memory import Array

TYPES = ("f32", "f16", "bf16", "e4m3", "e5m2", "u8", "u16", "u32", "i32")
ARITHMETIC = ("f32", "f16", "bf16", "u8", "u16", "u32", "i32")
SCALARS = {"alpha": 0.3, "n": 7}
PLACE = Place(0, 256)
OF_FORM = {ElementForm.F16: "f16", ElementForm.BF16: "bf16", ElementForm.E4M3: "e4m3", ElementForm.E5M2: "e5m2"}
FUNCTIONS = {f"F_{fn.name}": fn for fn in Fn}


def made(random: Random, dtype: str, inputs: list[str], depth: int) -> Elem:  # noqa: C901 - one case per node
    """A random expression of a type."""
    choice = random.randrange(8) if depth else 0
    if dtype == MASK:
        if choice < 6:
            other = random.choice(ARITHMETIC)
            return Compare(random.choice(list(CompareOp)), made(random, other, inputs, depth - 1), made(random, other, inputs, depth - 1))
        a = made(random, MASK, inputs, depth - 1)
        return (
            Unary(Fn.NOT, a) if choice == 6 else Binary(random.choice(sorted(BITWISE, key=str)), a, made(random, MASK, inputs, depth - 1))
        )
    if choice == 1:
        return Cast(made(random, random.choice(TYPES), inputs, depth - 1), dtype)
    if choice == 2 and depth > 1:
        cond = made(random, MASK, inputs, min(depth - 1, 1))
        return Select(cond, made(random, dtype, inputs, depth - 2), made(random, dtype, inputs, depth - 2))
    if choice > 2 and dtype in ARITHMETIC:
        if choice == 3:
            return Neg(made(random, dtype, inputs, depth - 1))
        fns = [fn for fn in (Fn.ABS, Fn.NOT, Fn.SQRT, Fn.EXP) if dtype in domain(fn)]
        if choice == 4 and fns:
            return Unary(random.choice(fns), made(random, dtype, inputs, depth - 1))
        whole = dtype in INTEGERS
        few = [op for op in ElemOp if (op is not ElemOp.DIV if whole else op not in BITWISE | SHIFTS)]
        a = made(random, dtype, inputs, depth - 1)
        return Binary(random.choice(few), a, a if choice == 5 else made(random, dtype, inputs, depth - 1))
    if dtype in inputs and random.random() < 0.7:
        return Input(inputs.index(dtype), dtype)
    if dtype in INTEGERS:
        return Parameter("n", dtype) if random.random() < 0.3 else Number(random.randint(*integer_range(dtype)), dtype)
    return Parameter("alpha", dtype) if random.random() < 0.3 else Number(random.uniform(-8, 8), dtype)


def widened(bits: Array, dtype: str) -> Array:
    """Elements as the machine's registers hold them: f32 with the bits of a copied NaN cut or kept, whichever; or integers."""
    if dtype in INTEGERS:
        return bits.astype(np.uint32)
    if dtype == "bf16":
        return bits.astype(np.uint32) << np.uint32(16)
    return bits if dtype == "f32" else cast(bits, dtype, "f32")


class Lane:
    """The machine, all elements at once."""

    def __init__(self, words: Words, inputs: list[tuple[str, Array]]) -> None:
        self.held = {s.word: bits_of(SCALARS[s.name], s.dtype, cast=s.cast) for s in words.scalars.values()}
        self.inputs = inputs
        self.a = self.b = np.zeros(inputs[0][1].shape, np.uint32)
        self.put: dict[int, Array] = {}
        self.out = np.zeros(0, np.uint32)

    def operand(self, step: Step) -> Array:
        if step.form == CONSTANT:
            return np.full(self.a.shape, step.word, np.uint32)
        if step.form == COMPUTE_ARGUMENT:
            return np.full(self.a.shape, self.held[step.word], np.uint32)
        return self.b

    def scalar(self, step: Step) -> Array:
        bits = self.held[step.word]
        dtype = OF_FORM.get(ElementForm(step.form))
        if dtype is None:
            return np.full(self.a.shape, bits, np.uint32)
        return widened(np.full(self.a.shape, bits, ELEMENT[DTYPES[dtype].nbytes]), dtype)

    def loaded(self, step: Step) -> Array:
        dtype, bits = self.inputs[step.which]
        form = ElementForm(step.form)
        if form in OF_FORM:
            assert OF_FORM[form] == dtype
            return widened(bits, dtype)
        assert {ElementForm.BITS8: 1, ElementForm.BITS16: 2, ElementForm.BITS32: 4}[form] == bits.itemsize
        return bits.astype(np.uint32)

    def run(self, step: Step) -> None:  # noqa: C901, PLR0915 - one case per sort of instruction
        fn, name = step.fn, step.fn.name.removesuffix("_C")
        if name.endswith("_CB"):
            self.a, self.b, kept = self.b, self.a, self.a
            self.two(name.removesuffix("_CB"), self.operand(step))
            self.a, self.b = kept, self.a
        elif fn in (ComputeFn.LOAD_A, ComputeFn.ROW_A, ComputeFn.COLUMN_A):
            self.a = self.loaded(step)
        elif fn in (ComputeFn.LOAD_B, ComputeFn.ROW_B, ComputeFn.COLUMN_B):
            self.b = self.loaded(step)
        elif fn is ComputeFn.CONST_A:
            self.a = self.operand(step)
        elif fn is ComputeFn.CONST_B:
            self.b = self.operand(step)
        elif fn is ComputeFn.SCALAR_B:
            self.b = self.scalar(step)
        elif fn is ComputeFn.PUT:
            assert step.which < COMPUTE_VECTORS
            self.put[step.which] = self.a
        elif fn is ComputeFn.GET:
            self.b = self.put[step.which]
        elif fn is ComputeFn.TAKE:
            self.a = self.put[step.which]
        elif fn in (ComputeFn.SELECT, ComputeFn.RSELECT):
            chosen, other = (self.a, self.operand(step)) if fn is ComputeFn.SELECT else (self.operand(step), self.a)
            self.a = np.where(self.put[step.which] != 0, chosen, other)
        elif fn is ComputeFn.STORE:
            form = ElementForm(step.form)
            kind = {ElementForm.BITS8: np.uint8, ElementForm.BITS16: np.uint16, ElementForm.BITS32: np.uint32}.get(form)
            self.out = cast(self.a, "f32", OF_FORM[form]) if kind is None else self.a.astype(kind)
        elif fn is ComputeFn.ROUND:
            dtype = OF_FORM[ElementForm(step.form)]
            self.a = widened(cast(self.a, "f32", dtype), dtype)
        elif fn in (ComputeFn.F_TO_U, ComputeFn.F_TO_S):
            self.a = cast(self.a, "f32", "u32" if fn is ComputeFn.F_TO_U else "i32")
        elif fn in (ComputeFn.U_TO_F, ComputeFn.S_TO_F):
            self.a = cast(self.a, "u32" if fn is ComputeFn.U_TO_F else "i32", "f32")
        elif fn in (ComputeFn.U_TO_ODD, ComputeFn.S_TO_ODD):
            wide = self.a.view(np.int32 if fn is ComputeFn.S_TO_ODD else np.uint32).astype(np.float64)
            near = wide.astype(np.float32)
            cut = np.where(np.abs(near) > np.abs(wide), np.nextafter(near, np.float32(0)), near)
            self.a = cut.view(np.uint32) | (cut != wide).astype(np.uint32)
        elif fn is ComputeFn.F_ABS_C:
            self.a = unary(Fn.ABS, self.a, "f32")
        elif fn is ComputeFn.I_NOT:
            self.a = ~self.a
        elif fn is ComputeFn.S_ABS:
            self.a = unary(Fn.ABS, self.a, "i32")
        elif name in FUNCTIONS:
            self.a = unary(FUNCTIONS[name], self.a, "f32")
        else:
            self.two(name, self.operand(step))

    def two(self, name: str, y: Array) -> None:
        kind, _, word = name.partition("_")
        dtype = {"F": "f32", "I": "u32", "U": "u32", "S": "i32"}[kind]
        a, b = (y, self.a) if word.startswith("R") else (self.a, y)
        word = word.removeprefix("R")
        a, b = np.broadcast_arrays(a, b)
        if word in CompareOp.__members__:
            leaves: list[Any] = [Input(0, dtype), Input(1, dtype)]
            truth = evaluate(Compare(CompareOp[word], *leaves), [a, b], {})
            self.a = np.where(truth, np.uint32(0xFFFFFFFF), np.uint32(0))
        else:
            self.a = combine(ElemOp[word], np.ascontiguousarray(a), np.ascontiguousarray(b), dtype)


def run(code: list[Step], words: Words, inputs: list[tuple[str, Array]]) -> Array:
    with np.errstate(all="ignore"):
        lane = Lane(words, inputs)
        for step in code:
            lane.run(step)
    return lane.out


def data(dtype: str, seed: int) -> Array:
    return np.frombuffer(np.random.default_rng(seed).bytes(64 * DTYPES[dtype].nbytes), ELEMENT[DTYPES[dtype].nbytes]).copy()


@pytest.mark.parametrize("seed", range(150))
def test_same_bits_as_the_simulator(seed: int) -> None:
    random = Random(seed)
    types = [random.choice(TYPES) for _ in range(3)]
    e = made(random, random.choice(TYPES), types, 4)
    words = Words(Launch(grid=(1, 1, 1)), ())
    try:
        code = compute_code(e, [PLACE] * 3, PLACE, words, arguments=seed % 2 == 0)
    except UnfitError:
        return
    inputs = [(dtype, data(dtype, 10 * seed + i)) for i, dtype in enumerate(types)]
    wanted = np.broadcast_to(evaluate(e, [bits for _, bits in inputs], SCALARS), inputs[0][1].shape)
    got = run(code, words, inputs)
    assert got.tolist() == wanted.tolist(), [step.fn.name for step in code]


def test_nearly_all_fit() -> None:
    fit = 0
    for seed in range(100):
        random = Random(seed)
        types = [random.choice(TYPES) for _ in range(3)]
        try:
            compute_code(made(random, random.choice(TYPES), types, 4), [PLACE] * 3, PLACE, Words(Launch(grid=(1, 1, 1)), ()))
            fit += 1
        except UnfitError:
            pass
    assert fit > 90


X, Y = Input(0, "f32"), Input(1, "f32")


def code_of(e: Elem) -> str:
    steps = compute_code(e, [PLACE, PLACE], PLACE, Words(Launch(grid=(1, 1, 1)), ()), arguments=True)
    return " ".join(step.fn.name.lower() for step in steps)


@pytest.mark.parametrize(
    ("e", "wanted"),
    [
        (X, "load_a store"),
        (Cast(X, "bf16"), "load_a store"),  # the store rounds
        (Cast(Input(0, "bf16"), "f32"), "load_a f_add_c store"),  # one NaN
        (
            Binary(ElemOp.ADD, Cast(Input(0, "bf16"), "f32"), Number(1.0, "f32")),
            "load_a f_add_c store",
        ),  # which an addition makes by itself
        (Binary(ElemOp.SUB, Number(1.0, "f32"), Neg(X)), "load_a f_mul_c f_rsub_c store"),
        (Binary(ElemOp.SUB, Number(1.0, "f32"), X), "load_a f_rsub_c store"),
        (Select(Compare(CompareOp.LT, Number(1.0, "f32"), X), X, Y), "load_a const_b f_gt put load_a load_b select f_add_c store"),
        (Binary(ElemOp.MUL, Neg(X), Neg(Y)), "load_a f_mul_c load_b f_mul_cb f_mul store"),
        (Input(0, "f32", Along.ROW), "row_a store"),
    ],
)
def test_code(e: Elem, wanted: str) -> None:
    assert code_of(e) == wanted


def test_a_load_of_even_units_does_the_product_behind_it() -> None:
    even = Place(0, 256, 4096)
    e = Binary(ElemOp.ADD, Binary(ElemOp.MUL, X, Number(2.0, "f32")), Binary(ElemOp.MUL, Number(3.0, "f32"), Y))
    names = [step.fn.name for step in compute_code(e, [even, even], even, Words(Launch(grid=(1, 1, 1)), ()))]
    assert names == ["LOAD_A_32_MUL", "F_MUL_C", "LOAD_B_32_MUL", "F_MUL_CB", "F_ADD", "STORE_32"]
    alone = compute_code(Binary(ElemOp.ADD, X, Y), [even, even], even, Words(Launch(grid=(1, 1, 1)), ()))
    assert [step.fn.name for step in alone] == ["LOAD_A_32", "LOAD_B_32", "F_ADD", "STORE_32"]


@pytest.mark.parametrize("count", [1, COMPUTE_AT_HAND, COMPUTE_AT_HAND + 1, 2 * COMPUTE_AT_HAND, 100])
def test_long_code_comes_in_parts_that_fit_into_lanes(count: int) -> None:
    code = [Step(ComputeFn.F_ADD_C, CONSTANT, word=i) for i in range(count)]
    made = in_parts(code)
    assert [step for step in made if step.fn is not ComputeFn.MORE] == code
    at = i = 0
    while i < len(made):  # as the device goes through it: what is at hand, up to a MORE that says where the next ones begin
        assert i - at < COMPUTE_AT_HAND
        if made[i].fn is ComputeFn.MORE:
            assert made[i].word == i + 1
            at = made[i].word
        i += 1
    assert (len(made) > count) == (count > COMPUTE_AT_HAND)


def test_a_load_and_its_product_are_at_hand_together() -> None:
    code = [Step(ComputeFn.F_ADD_C)] * (COMPUTE_AT_HAND - 2) + [Step(ComputeFn.LOAD_B_32_MUL), *[Step(ComputeFn.F_MUL_CB)] * 2]
    made = in_parts(code)
    assert [step.fn for step in made[-5:-1]] == [ComputeFn.F_ADD_C, ComputeFn.MORE, ComputeFn.LOAD_B_32_MUL, ComputeFn.F_MUL_CB]


def test_scalar_parameters_of_32_bits_are_constants_of_instructions() -> None:
    e = Binary(ElemOp.ADD, Binary(ElemOp.MUL, X, Parameter("alpha", "f32")), Binary(ElemOp.MUL, Parameter("beta", "f32"), Y))
    assert code_of(e) == "load_a f_mul_c load_b f_mul_cb f_add store"
    narrow = Binary(ElemOp.MUL, Input(0, "bf16"), Parameter("alpha", "bf16"))
    assert code_of(narrow) == "load_a scalar_b f_mul store"
    steps = compute_code(e, [PLACE, PLACE], PLACE, Words(Launch(grid=(1, 1, 1)), ()))  # other machines know constants alone
    assert {step.form for step in steps if step.fn.name.endswith(("_C", "_CB"))} <= {CONSTANT}


def test_what_is_used_twice_is_computed_once() -> None:
    difference = Binary(ElemOp.SUB, X, Y)
    square = Binary(ElemOp.MUL, difference, difference)
    assert code_of(square) == "load_a load_b f_sub put get f_mul store"
    assert code_of(Binary(ElemOp.ADD, square, difference)).count("f_sub") == 1


def test_what_needs_more_vectors_is_left_to_the_other_machine() -> None:
    e: Elem = Neg(X)
    for _ in range(COMPUTE_VECTORS + 1):
        e = Binary(ElemOp.DIV, Neg(e), Unary(Fn.EXP, Binary(ElemOp.MUL, e, Neg(Y))))
    deep: Elem = Neg(X)
    for i in range(5):
        deep = Binary(ElemOp.ADD, Unary(Fn.EXP, _copy(deep, i)), Unary(Fn.LOG, _copy(deep, i + 9)))
    with pytest.raises(UnfitError):
        code_of(deep)
    for dtype in ("f64", "u64", "i64", "tf32", "f32_ftz"):
        with pytest.raises(UnfitError):
            code_of(Cast(Input(0, dtype), "f32"))


def _copy(e: Elem, seed: int) -> Elem:
    """An equal tree of other objects, with another number in it."""
    if isinstance(e, Neg):
        return Neg(Binary(ElemOp.ADD, X, Number(float(seed), "f32")))
    if isinstance(e, Binary):
        return Binary(e.op, _copy(e.a, seed + 1), _copy(e.b, seed + 2))
    return Unary(e.fn, _copy(e.a, seed + 3)) if isinstance(e, Unary) else e
