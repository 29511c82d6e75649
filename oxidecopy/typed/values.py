"""Values of element types: what `fill` and scalar parameters accept."""

from __future__ import annotations

import math

from oxidecopy.errors import ArgumentError, Diagnostic
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.typed.sites import caller_site


def fill_value(value: object, dtype: str, what: str = "a fill value") -> int | float:
    """Checks `value` against element type `dtype`: whole and in range for integers, any number for floats."""
    info = DTYPES[dtype]
    problem = ""
    required = f"a number for {dtype}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        problem = f"{value!r} ({type(value).__name__})"
    elif not (info.is_float or dtype in ("e4m3", "e5m2")):
        unsigned = dtype.startswith("u")
        low, high = (0, (1 << info.bits) - 1) if unsigned else (-(1 << (info.bits - 1)), (1 << (info.bits - 1)) - 1)
        required = f"a whole number from {low} to {high}"
        if isinstance(value, float) or not low <= value <= high:
            problem = repr(value) if isinstance(value, int) or not math.isnan(value) else "NaN"
    if problem:
        raise ArgumentError(
            Diagnostic(rule="OX1035", what=f"{what} does not fit {dtype}", got=problem, required=required, fix="pass a value of that type", site=caller_site())
        )
    return value  # type: ignore[return-value]  # an int or float by the checks above
