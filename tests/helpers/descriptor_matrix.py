"""The matrix of parameter sets, its verdicts and its sample of loads: each made once, in seconds: to be called by tests, not at import."""

from __future__ import annotations

from functools import cache

from oxidecopy.conformance.descriptor_cases import DescriptorCase, cases
from oxidecopy.conformance.descriptor_loads import LoadCase, load_cases
from oxidecopy.maps.validate import Verdict, validate


@cache
def matrix() -> tuple[DescriptorCase, ...]:
    return tuple(cases())


@cache
def verdicts() -> tuple[Verdict, ...]:
    return tuple(validate(case.parameters) for case in matrix())


@cache
def loads() -> tuple[LoadCase, ...]:
    return tuple(load_cases(matrix()))


def some() -> list[DescriptorCase]:
    """A set of every kind and group, where what is done with them is asked for."""
    return list(matrix()[::60])
