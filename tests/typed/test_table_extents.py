"""Extents of entries: symbols where the entry is known, else an expression that has the value of the one chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.isa.expr import Expr, Sym, SymKind, evaluate
from oxidecopy.program.nesting import fits
from oxidecopy.program.program import ArrayParam, MapParam
from tests.helpers.recordings import recorded, refused

SRC = MapParam(name="src", dtype="f32", box_dim=(64, 32), element_strides=(1, 1), entries=5)


def shapes(param: MapParam, of: Any) -> tuple[Expr, ...]:
    found: list[Expr] = []

    def pipe(cta: ox.Cta, src: Any) -> None:
        found.extend(extent.expr for extent in of(cta, src).shape)

    recorded(pipe, src=param)
    return tuple(found)


def test_a_known_entry_has_symbols() -> None:
    assert shapes(SRC, lambda _, src: src[3]) == (Sym("src[3].dim[0]", SymKind.EXTENT), Sym("src[3].dim[1]", SymKind.EXTENT))
    assert shapes(replace(SRC, entries=None), lambda _, src: src)[0] == Sym("src.dim[0]", SymKind.EXTENT)


@pytest.mark.parametrize("entries", [1, 2, 3, 5, 8, 64])
def test_a_chosen_entry_has_its_own_extents(entries: int) -> None:
    rows, cols = shapes(replace(SRC, entries=entries), lambda cta, src: src[cta.block_idx.x])
    env = {f"src[{k}].dim[{axis}]": 100 * k + axis + 1 for k in range(entries) for axis in range(2)}
    for k in range(entries):
        assert evaluate(rows, {**env, "block_idx.x": k}) == 100 * k + 1
        assert evaluate(cols, {**env, "block_idx.x": k}) == 100 * k + 2
    assert fits(rows)


def test_one_that_is_read_steers_nothing() -> None:
    def pipe(cta: ox.Cta, src: Any, rows: Any) -> None:
        n, _ = src[cta.load_index(rows, 0, below=len(src))].shape
        for _ in cta.range(n):  # here
            pass

    refused(pipe, "OX1140", src=SRC, rows=ArrayParam(name="rows", dtype="i32", rank=1))


def test_too_many_to_choose_among() -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        n, _ = src[cta.block_idx.x].shape
        for _ in cta.range(n):  # here
            pass

    refused(pipe, "OX1058", src=replace(SRC, entries=1024))
