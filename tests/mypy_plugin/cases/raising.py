"""Blocks whose body is there to raise take nothing; others do."""

from __future__ import annotations

import pytest

import oxidecopy as ox
from oxidecopy.typed.scalar import ScalarValue


def raises_ok(cta: ox.Cta) -> None:
    full = cta.barrier().init(1)
    with pytest.raises(ox.errors.ScopeError):
        full.inval()
    full.inval()


def block_bad(cta: ox.Cta) -> None:
    full = cta.barrier().init(1)
    with cta.elect():
        full.inval()
    full.inval()  # E: [oxidecopy-moved]


def scalar_bad(cta: ox.Cta, a: ScalarValue[ox.f32]) -> None:
    if a:  # E: [oxidecopy-symbolic]
        cta.sync()


def scalar_ok(cta: ox.Cta, a: ox.Scalar[ox.f32]) -> None:
    """In a helper it may be a float."""
    if a:
        cta.sync()
