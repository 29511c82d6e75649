"""Coordinates over all block indices and iterations."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from oxidecopy.isa import expr
from oxidecopy.program.program import Edge
from oxidecopy.verify import inspect
from tests.helpers.programs import BX, BY, Builder, add, div, lt, mod, mul
from tests.helpers.verdicts import Make, accepted, made, refused

BYTES = 64 * 64 * 4


def load(b: Builder, coords: tuple[expr.Expr | int, ...], *, tag: str = "load") -> None:
    with b.elect():
        token = b.arm(BYTES)
        b.g2s(coords, tag=tag)
        b.wait(token)


def start(b: Builder) -> None:
    b.map()
    b.tile()
    b.bar()
    b.init()


def store(b: Builder, coords: tuple[expr.Expr | int, ...]) -> None:
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        b.s2g(coords, tag="s2g")
        b.commit()
        b.wait_read()
    b.sync()


def inner_off(b: Builder, broken: bool) -> None:
    start(b)
    load(b, (0, add(mul(BX, 64), 2 if broken else 4)))


def inner_off_by_block(b: Builder, broken: bool) -> None:
    start(b)
    load(b, (0, mul(BX, 62 if broken else 60)))


def inner_off_by_iteration(b: Builder, broken: bool) -> None:
    start(b)
    with b.loop(10) as i:
        load(b, (0, mul(i, 3 if broken else 4)))


def inner_negative(b: Builder, broken: bool) -> None:
    """Loads may start outside, on the 16-byte grid all the same."""
    start(b)
    load(b, (-64, -2 if broken else -4))


def guarded_inner(b: Builder, broken: bool) -> None:
    """Bad in the 9th iteration only, which the condition leaves out."""
    start(b)
    with b.loop(9) as i, b.when(lt(i, 9 if broken else 8)):
        load(b, (0, expr.maximum(mul(i, 4), add(mul(i, 17), -102))))


def negative_store(b: Builder, broken: bool) -> None:
    start(b)
    store(b, (0, add(mul(BX, 64), -64 if broken else 0)))


def negative_store_guarded(b: Builder, broken: bool) -> None:
    """Block 0 would start at -64."""
    start(b)
    with b.when(lt(-1 if broken else 0, BX)):
        store(b, (0, add(mul(BX, 64), -64)))


def negative_store_in_a_late_iteration(b: Builder, broken: bool) -> None:
    b.grid = (1, 1, 1)
    b.map(box=(4, 64), dims=(4000, 64))
    b.tile(shape=(4, 64))
    with b.loop(1000) as i:
        store(b, (add(mul(i, -4), 3996 if not broken else 3992), 0))


def beyond_32_bits(b: Builder, broken: bool) -> None:
    start(b)
    b.grid = (1 << 20, 1, 1)
    load(b, (mul(BX, 2048 if not broken else 4096), 0))


CASES: list[tuple[Make, str, str]] = [
    (inner_off, "OX3080", "load"),
    (inner_off_by_block, "OX3080", "load"),
    (inner_off_by_iteration, "OX3080", "load"),
    (inner_negative, "OX3080", "load"),
    (guarded_inner, "OX3080", "load"),
    (negative_store, "OX3081", "s2g"),
    (negative_store_guarded, "OX3081", "s2g"),
    (negative_store_in_a_late_iteration, "OX3081", "s2g"),
    (beyond_32_bits, "OX3082", "load"),
]


@pytest.mark.parametrize(("make", "rule", "tag"), CASES, ids=lambda x: getattr(x, "__name__", None))
def test_refused_and_its_twin(make: Make, rule: str, tag: str) -> None:
    refused(made(make, True), rule, tag)
    accepted(made(make, False))


def test_the_bad_coordinate_is_named() -> None:
    found = refused(made(inner_off_by_block, True), "OX3080")
    assert found.got == "innermost coordinate 62, 248 bytes"


def test_unscaled_block_index_is_a_warning() -> None:
    for scale, expected in ((1, ["OX3101"]), (64, [])):
        b = Builder(grid=(4, 2, 1))
        start(b)
        load(b, (mul(BY, scale), 0))
        accepted(b, *expected)


def test_a_box_of_one_may_move_by_the_block_index() -> None:
    b = Builder()
    b.map(box=(1, 64))
    b.tile(shape=(1, 64))
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(256)
        b.g2s((BY, 0))
        b.wait(token)
    accepted(b)


def test_a_store_edge_in_a_wider_array_is_a_warning() -> None:
    for strides, expected in (((1024,), ["OX3103"]), ((512,), [])):
        b = Builder(grid=(1, 1, 1))
        b.map(dims=(256, 126), strides=strides)
        b.tile()
        store(b, (0, 0))
        accepted(b, *expected)


def over(grid: int, edge: Edge, *, columns: int = 126, when: bool = False) -> tuple[list[str], list[str]]:
    """Rules broken by, and warnings of, a store of boxes of 64 columns to a view of so many."""
    b = Builder(grid=(grid, 1, 1))
    b.map(dims=(64, columns), strides=(1024,))
    b.tile()
    b.fill()
    b.fence()
    b.sync()
    with b.elect(), b.when(lt(mul(add(BX, 1), 64), 127)) if when else nullcontext():
        b.s2g((0, mul(BX, 64)))
        b.commit()
        b.wait_group()
    report = inspect(b.program(), replace(b.launch(), edges=(("src", edge),)))
    return [d.rule for d in report.violations], [d.rule for d in report.warnings if d.rule != "OX3106"]


def test_a_store_over_the_elements_of_a_wider_array_is_refused() -> None:
    assert over(2, "elements") == (["OX3205"], [])
    assert over(2, "padding") == ([], [])
    assert over(2, "unknown") == ([], ["OX3103"])
    assert over(2, "elements", columns=128) == ([], [])


def test_a_store_that_stays_inside_goes_over_nothing() -> None:
    assert over(1, "elements") == ([], [])
    assert over(2, "elements", when=True) == ([], [])


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("where", ["coordinate", "trip count", "a coordinate of which nothing is left"])
def test_a_divisor_of_zero_matters_where_it_is_asked_for(where: str, runs: bool) -> None:
    b = Builder(grid=(2, 1, 1))
    zero, one = b.index("zero", 0), b.index("one", 1)
    b.map()
    b.tile()
    b.fill()
    b.fence()
    b.sync()
    with b.elect(), b.when(lt(zero, 1 if runs else 0)):
        if where == "coordinate":
            b.s2g((mul(div(BX, zero), 64), 0))
        elif where != "trip count":
            b.s2g((mod(div(BX, zero), one), 0))  # one row of boxes: the remainder is 0, whatever is divided
        else:
            with b.loop(div(64, zero)) as i:
                b.s2g((mul(i, 64), 0))
        b.commit()
        b.wait_group()
    report = inspect(b.program(), b.launch())
    assert [d.rule for d in report.violations] == (["OX3092"] if runs else [])
