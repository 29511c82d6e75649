"""Values of element types: what `fill` and scalar parameters accept."""

from __future__ import annotations

import math
from typing import Any, Final

from oxidecopy.errors import DTypeError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.typed.refusal import described, refuse

_BYTES_TYPES: Final = ("e4m3", "e5m2")  # floats that a map carries as bytes
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 64) - 1  # of a plain int for a float type: what a program can hold


def fitting_value(value: object, dtype: str, what: str = "a fill value") -> int | float:
    """A number that must fit the tile's element type."""
    number = plain_number(value)
    problem = misfit(value, dtype)
    if number is None or problem:
        fix = "pass a value of that type"
        refuse(DTypeError, "OX1066", f"{what} does not fit {dtype}", got=described(value), required=problem, fix=fix)
    return number


def plain_number(value: object) -> int | float | None:
    """`value` as a Python number; numpy's scalars too. None when it is no number."""
    scalar: Any = value
    if getattr(scalar, "ndim", None) == 0 and hasattr(scalar, "item"):
        value = scalar.item()
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def misfit(value: object, dtype: str) -> str:
    """What `value` would have to be to fit element type `dtype`; "" when it does: integers whole and in range, floats any number."""
    info, number = DTYPES[dtype], plain_number(value)
    if info.is_float or dtype in _BYTES_TYPES:
        fits = isinstance(number, float) or (number is not None and _INT_MIN <= number <= _INT_MAX)
        return "" if fits else f"a number for {dtype}, an int of at most 64 bits"
    low, high = (0, (1 << info.bits) - 1) if dtype.startswith("u") else (-(1 << (info.bits - 1)), (1 << (info.bits - 1)) - 1)
    if isinstance(number, int) and low <= number <= high:
        return ""
    return f"a whole number from {low} to {high}" + (", which NaN is not" if isinstance(number, float) and math.isnan(number) else "")
