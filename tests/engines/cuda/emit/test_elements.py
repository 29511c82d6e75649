"""Element expressions as C++: what is copied stays as it is, what is calculated rounds once. Their bits are compared in `test_on_cpu`."""

from __future__ import annotations

from collections import Counter

import pytest

from oxidecopy.engines.cuda.emit.elements import FUNCTIONS, Elements, literal_bits
from oxidecopy.isa.elem import ELEMENT_TYPES, Binary, Cast, Elem, ElemOp, Input, Neg, Number, Parameter

F32, F16, F64, U8, I32 = Input(0, "f32"), Input(0, "f16"), Input(0, "f64"), Input(0, "u8"), Input(0, "i32")


def text(e: Elem) -> str:
    return Elements().bits(e, ["x", "y"], {"alpha": "a"})


@pytest.mark.parametrize(
    ("e", "wanted"),
    [
        (F32, "x"),
        (Cast(F32, "f32"), "x"),
        (Cast(Cast(F32, "f32"), "f32"), "x"),
        (Parameter("alpha", "f32"), "a"),
        (Number(1.5, "f32"), "(u32)0x3fc00000u"),
        (Number(-1, "i64"), "(u64)0xffffffffffffffffull"),
        (Neg(U8), "(u8)(0 - (u32)x)"),
        (Binary(ElemOp.MUL, U8, U8), "(u8)((u32)x * (u32)x)"),
        (Binary(ElemOp.ADD, I32, Number(2, "i32")), "(u32)(x + (u32)0x00000002u)"),
        (Cast(I32, "i64"), "(u64)(i32)(x)"),
        (Cast(U8, "f16"), "num::f16_bits((float)(x))"),
        (Cast(F64, "f32"), "num::f32_bits(__double2float_rn(num::from_f64(x)))"),
        (Cast(F64, "bf16"), "num::bf16_bits(num::odd_f64(num::from_f64(x)))"),
        (Cast(Input(0, "u64"), "tf32"), "num::to_tf32(num::odd_u64(x))"),
        (Cast(F32, "e4m3"), "num::to_e4m3(num::from_f32(x))"),
        (Cast(F16, "u8"), "num::u8_of_float(num::from_f16(x))"),
        (Cast(Input(0, "tf32_ftz"), "f32"), "num::f32_bits(num::from_ftz(x))"),
    ],
)
def test_text(e: Elem, wanted: str) -> None:
    assert text(e) == wanted


def test_nothing_is_contracted() -> None:
    made = text(Binary(ElemOp.ADD, Binary(ElemOp.MUL, F32, Parameter("alpha", "f32")), Number(0.5, "f32")))
    assert made == "num::f32_bits(__fadd_rn(__fmul_rn(num::from_f32(x), num::from_f32(a)), 0.5f))"


def test_halves_round_after_each_operation() -> None:
    twice = Binary(ElemOp.ADD, Binary(ElemOp.MUL, F16, F16), F16)
    x = "num::from_f16(x)"
    assert text(twice) == f"num::f16_bits(__fadd_rn(num::to_f16(__fmul_rn({x}, {x})), {x}))"


@pytest.mark.parametrize(("value", "wanted"), [(float("inf"), "0x7f800000"), (float("nan"), "0x7fffffff"), (0.3, "0.30000001192092896f")])
def test_constants_are_the_numbers_they_round_to(value: float, wanted: str) -> None:
    assert wanted in text(Binary(ElemOp.ADD, F32, Number(value, "f32")))


def test_every_cast_has_its_functions() -> None:
    elements = Elements()
    for source in sorted(ELEMENT_TYPES):
        for target in sorted(ELEMENT_TYPES):
            elements.bits(Cast(Input(0, source), target), ["x"], {})
    assert elements.used <= FUNCTIONS.keys()
    made = elements.text()
    assert Counter(f"{name}(" in made for name in elements.used) == {True: len(elements.used)}


@pytest.mark.parametrize(
    ("dtype", "wanted"), [("u8", "(u8)0x05"), ("f16", "(u16)0x0005"), ("i32", "(u32)0x00000005u"), ("f64", "(u64)0x0000000000000005ull")]
)
def test_bits_have_the_width_of_their_type(dtype: str, wanted: str) -> None:
    assert literal_bits(5, dtype) == wanted
