"""The proof without counting, held against counting."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.isa.expr import Expr, Sym, SymKind, evaluate
from oxidecopy.verify.affine import Ranges, strided
from oxidecopy.verify.outputs.distinct import proves_distinct
from tests.helpers.programs import BX, BY, add, div, mod, mul

I = Sym("i", SymKind.LOOP)  # noqa: E741  as loops call it
T = Sym("t", SymKind.OPAQUE)
SIZES = {"block_idx.x": 6, "block_idx.y": 4, "i": 5}


def proven(coords: tuple[Expr, ...], extents: tuple[int, ...], sizes: dict[str, int] | None = None) -> bool:
    env = {name: strided(0, n - 1, 1) for name, n in (sizes or SIZES).items()}
    return proves_distinct(coords, extents, Ranges(env), tuple(env), {})


def boxes_meet(coords: tuple[Expr, ...], extents: tuple[int, ...]) -> bool:
    """By looking at each two."""
    points = [tuple(evaluate(e, dict(zip(SIZES, at, strict=True))) for e in coords) for at in product(*(range(n) for n in SIZES.values()))]
    return any(all(abs(x - y) < n for x, y, n in zip(p, q, extents, strict=True)) for k, p in enumerate(points) for q in points[:k])


NUMBER = add(BX, add(mul(BY, 6), mul(I, 24)))


@pytest.mark.parametrize(
    ("coords", "extents"),
    [
        ((mul(BY, 64), mul(add(mul(BX, 5), I), 32)), (64, 32)),
        ((mul(div(NUMBER, 10), 8), mul(mod(NUMBER, 10), 4)), (8, 4)),
        ((mul(div(NUMBER, 50), 8), mul(mod(div(NUMBER, 10), 5), 8), mul(mod(NUMBER, 10), 4)), (8, 8, 4)),
        ((mul(div(div(NUMBER, 10), 5), 8), mul(mod(div(NUMBER, 10), 5), 8), mul(mod(NUMBER, 10), 4)), (8, 8, 4)),
        ((add(mul(NUMBER, 7), 3),), (7,)),
    ],
)
def test_usual_orders_are_proven(coords: tuple[Expr, ...], extents: tuple[int, ...]) -> None:
    assert proven(coords, extents)
    assert not boxes_meet(coords, extents)


@pytest.mark.parametrize(
    ("coords", "extents"),
    [
        ((mul(BY, 64), mul(BX, 32)), (64, 32)),  # the loop's counter is in none
        ((mul(NUMBER, 7),), (8,)),
        ((mul(mod(NUMBER, 10), 4),), (4,)),
        ((mul(div(NUMBER, 10), 8), mul(mod(NUMBER, 9), 4)), (8, 4)),
        ((mul(add(BX, add(mul(BY, 5), mul(I, 24))), 4),), (4,)),
    ],
)
def test_boxes_that_meet_are_not(coords: tuple[Expr, ...], extents: tuple[int, ...]) -> None:
    assert not proven(coords, extents)
    assert boxes_meet(coords, extents)


def test_the_tile_of_a_counter_tells_block_and_iteration() -> None:
    env = {"block_idx.x": strided(0, 5, 1), "i": strided(0, 9, 1), "t": strided(0, 99, 1)}
    coords = (mul(div(T, 10), 8), mul(mod(T, 10), 8))
    assert proves_distinct(coords, (8, 8), Ranges(env), ("block_idx.x", "i"), {"t": (BX, I)})
    assert not proves_distinct(coords, (8, 8), Ranges(env), ("block_idx.x", "i"), {})


leaves = st.sampled_from([BX, BY, I])
small = st.integers(1, 12)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(add, inner, inner), st.builds(mul, inner, small), st.builds(div, inner, small), st.builds(mod, inner, small)
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(expressions, st.integers(1, 8)), min_size=1, max_size=3))
def test_what_is_proven_is_true(axes: list[tuple[Expr, int]]) -> None:
    coords, extents = tuple(e for e, _ in axes), tuple(n for _, n in axes)
    if proven(coords, extents):
        assert not boxes_meet(coords, extents)
