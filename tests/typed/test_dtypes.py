"""Element types: each class names its row of the table, and can do what the hardware can."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.typed import dtypes
from oxidecopy.typed.dtypes import element_named


@pytest.mark.parametrize("name", DTYPES)
def test_a_class_for_every_row(name: str) -> None:
    cls = getattr(ox, name)
    assert cls.info is DTYPES[name]
    assert cls.__doc__


@pytest.mark.parametrize("name", DTYPES)
def test_bases_are_the_reductions_of_the_hardware(name: str) -> None:
    able = {dtypes.HasAdd: {"add"}, dtypes.HasMinMax: {"min", "max"}, dtypes.HasBits: {"bit_and", "bit_or", "bit_xor"}}
    able[dtypes.HasIncDec] = {"inc", "dec"}
    cls = getattr(ox, name)
    assert DTYPES[name].reduce == {op for base, names in able.items() if issubclass(cls, base) for op in names}


@pytest.mark.parametrize("arguments", [(), (0.5,), (1, 2)])
def test_types_are_not_called(arguments: Any) -> None:
    with pytest.raises(ox.errors.DTypeError) as caught:
        ox.f32(*arguments)
    assert caught.value.rules == ("OX1072",)


def test_a_class_of_the_users_has_no_row() -> None:
    class mine(ox.DType):  # noqa: N801  # as element types are written
        """Not one of the table."""

    assert "info" not in vars(mine)


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        (np.float32, "ox.f32"), (np.dtype(np.int64), "ox.i64"), ("float16", "ox.f16"), ("bf16", "ox.bf16"), ("torch.bfloat16", "ox.bf16"),
        ("torch.float8_e4m3fn", "ox.e4m3"), (float, "ox.f32"), (int, "ox.i32"), (np.uint8, "ox.u8"), (bool, ""), (object(), ""), (None, ""),
    ],
)  # fmt: skip
def test_names_of_other_libraries(word: object, ours: str) -> None:
    assert element_named(word) == ours
