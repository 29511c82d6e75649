"""Boxes cut into cells, held against sets of elements."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.isa.ops import FenceProxyAsync, ThreadSet
from oxidecopy.program.program import Step
from oxidecopy.verify.outputs.cells import cells, different
from oxidecopy.verify.outputs.instances import Instances
from oxidecopy.verify.outputs.places import Place, Way


def place(extents: tuple[int, ...], steps: tuple[int, ...], dims: tuple[int, ...]) -> Place:
    return Place(
        step=Step(FenceProxyAsync()),
        tensor="t",
        way=Way.STORE,
        coords=(),
        extents=extents,
        steps=steps,
        dims=dims,
        loops=(),
        conds=(),
        threads=ThreadSet(((0, 1),)),
    )


def elements(start: tuple[int, ...], extents: tuple[int, ...], steps: tuple[int, ...], dims: tuple[int, ...]) -> set[tuple[int, ...]]:
    """What a box touches, by looking."""
    axes = [[x for x in (c + j * s for j in range(n)) if 0 <= x < d] for c, n, s, d in zip(start, extents, steps, dims, strict=True)]
    return set(product(*axes))


dims_ = st.tuples(st.integers(1, 14), st.integers(1, 14))
boxes_ = st.lists(
    st.tuples(
        st.tuples(st.integers(1, 6), st.integers(1, 6)),  # extents
        st.tuples(st.integers(1, 3), st.integers(1, 3)),  # steps
        st.lists(st.tuples(st.integers(-6, 16), st.integers(-6, 16)), min_size=1, max_size=4),  # starts
    ),
    min_size=1,
    max_size=3,
)


@given(dims_, boxes_)
def test_boxes_share_cells_where_they_share_elements(
    dims: tuple[int, int], boxes: list[tuple[tuple[int, int], tuple[int, int], list[tuple[int, int]]]]
) -> None:
    found, touched = [], []
    for extents, steps, starts in boxes:
        at = np.array(starts, np.int64)
        found.append((place(extents, steps, dims), Instances(cta=np.arange(len(starts)), coords=(at[:, 0], at[:, 1]), certain=True)))
        touched += [elements(start, extents, steps, dims) for start in starts]
    cut = cells(found, dims)
    assert cut is not None
    first = np.cumsum([0] + [len(starts) for _, _, starts in boxes[:-1]])
    of = first[cut.place] + cut.instance
    reached = [set(cut.cell[of == i].tolist()) for i in range(len(touched))]
    for i, j in product(range(len(touched)), repeat=2):
        assert bool(reached[i] & reached[j]) == bool(touched[i] & touched[j])
    every = {tuple(x) for x in product(*(range(d) for d in dims))}
    assert (len(different(cut.cell)) == cut.cover) == (set().union(*touched) == every)


def test_the_box_of_cells_is_in_elements() -> None:
    found = [(place((4, 8), (1, 1), (10, 20)), Instances(cta=np.arange(2), coords=(np.array([2, 6]), np.array([4, 12])), certain=True))]
    cut = cells(found, (10, 20))
    assert cut is not None
    assert cut.box_of(cut.cell[cut.instance == 0]) == (((2, 6), (4, 12)), True)
    assert cut.box_of(different(cut.cell)) == (((2, 10), (4, 20)), False)


def test_too_many_cells_are_not_counted() -> None:
    found = [
        (place((256, 256), (2, 2), (1 << 20, 1 << 20)), Instances(cta=np.arange(20), coords=(np.arange(20), np.arange(20)), certain=True))
    ]
    assert cells(found, (1 << 20, 1 << 20)) is None


@given(st.lists(st.integers(-5, 5)))
def test_different_numbers(numbers: list[int]) -> None:
    assert different(np.array(numbers, np.int64)).tolist() == sorted(set(numbers))
