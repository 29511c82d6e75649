"""Index spaces: the dimensions that several views of memory share, merged and put in order, and boxes of them. Strides are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final, NamedTuple

from oxidecopy.isa.limits import BOX_DIM_MAX

_PIECE_BYTES: Final = 1_024  # that follow each other: shorter pieces are slower
_SMALLEST: Final = 2 << 10  # bytes of a box: smaller ones are slow
_LINE_BYTES: Final = 128  # of L2: boxes begin at multiples of it where they can


class Space(NamedTuple):
    """Extents, and for each view its strides: bytes from one index to the next, one for each extent, outermost first."""

    extents: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def rank(self) -> int:
        """Dimensions."""
        return len(self.extents)

    @property
    def elements(self) -> int:
        """How many there are."""
        return prod(self.extents)

    def inner(self, view: int) -> int:
        """The innermost stride of a view."""
        return self.strides[view][-1]

    def in_order(self, axes: Sequence[int]) -> Space:
        """The same with its dimensions in another order."""
        return Space(tuple(self.extents[k] for k in axes), tuple(tuple(s[k] for k in axes) for s in self.strides))

    def with_last(self, axis: int) -> Space:
        """The same with dimension `axis` as the innermost one."""
        return self.in_order([k for k in range(self.rank) if k != axis] + [axis])

    def walked(self) -> Space:
        """The same with its rows in the order in which boxes are best visited: the shorter of the dimensions that come next in the views.

        Where views differ in it, one of them is walked through in pieces as long as it is there; the pieces in the other are then longer
        (measured for BSHD and BHSD: both ways are fastest through BSHD).
        """
        outer = range(self.rank - 1)
        nearest = {min(outer, key=lambda k, s=strides: (s[k] == 0, s[k])) for strides in self.strides} if self.rank > 2 else set()  # type: ignore[misc]  # as below
        if len(nearest) < 2:
            return self
        last = min(nearest, key=lambda k: self.extents[k])
        return self.in_order([*(k for k in outer if k != last), last, self.rank - 1])

    def with_one(self, strides: Sequence[int]) -> Space:
        """The same with an innermost dimension of one element."""
        return Space((*self.extents, 1), tuple((*s, n) for s, n in zip(self.strides, strides, strict=True)))


def joint(extents: Sequence[int], strides: Sequence[Sequence[int]], *, leader: int, sizes: Sequence[int]) -> Space:
    """The views as one space: without dimensions of one element, in the order of the leader's strides, and merged where all views go on.

    Args:
        extents: of all views.
        strides: of each view.
        leader: the view whose memory is walked through in order.
        sizes: of an element of each view: the strides of a space of one element.
    """
    dims = [(n, tuple(s[k] for s in strides)) for k, n in enumerate(extents) if n > 1]
    dims.sort(key=lambda dim: (dim[1][leader] != 0, -dim[1][leader]))  # repeated ones outermost; sorting keeps what is equal in order
    merged: list[tuple[int, tuple[int, ...]]] = []
    for n, steps in dims:
        if merged and all(outer == n * inner for outer, inner in zip(merged[-1][1], steps, strict=True)):
            merged[-1] = (merged[-1][0] * n, steps)
        else:
            merged.append((n, steps))
    if not merged:
        merged.append((1, tuple(sizes)))
    return Space(tuple(n for n, _ in merged), tuple(tuple(steps[v] for _, steps in merged) for v in range(len(strides))))


def box_of(space: Space, elements: int, *, unit: int, element_bytes: int, most: Sequence[int] = (), full: bool = False) -> tuple[int, ...]:
    """A box of about `elements` elements: long rows first, then a piece of the next dimension, then, in turns, what is next in each view.

    Args:
        space: what is covered.
        elements: at most so many, but one row at least.
        unit: what the innermost extent is a multiple of.
        element_bytes: of an element, to begin rows at lines of L2.
        most: the largest extents of the other dimensions; what a box may have by default.
        full: there are as many rows as fit, else a power of two of them.
    """
    *outer, inner = space.extents
    pieces = -(-inner // BOX_DIM_MAX)
    row = -(-inner // pieces)
    line = max(unit, _LINE_BYTES // element_bytes)
    row = min(_up(row, line if pieces > 1 else unit), BOX_DIM_MAX)
    box = [1] * len(outer)
    bounds = [min(n, m, BOX_DIM_MAX) for n, m in zip(outer, most or outer, strict=True)]
    axes = [sorted(range(len(outer)), key=lambda k, s=strides: (s[k] == 0, s[k])) for strides in space.strides]  # type: ignore[misc]  # mypy infers no type of the default
    turns = [order for order in axes if order[:1] != [len(outer) - 1]] or axes  # the last one has its piece already
    left, grown = max(1, elements // row), True
    while box and 2 * box[-1] <= min(bounds[-1], left) and box[-1] * row * element_bytes < _PIECE_BYTES:
        box[-1] *= 2
    while grown:
        grown = False
        for order in turns:
            axis = next((k for k in order if box[k] < bounds[k]), None)
            if axis is None:
                continue
            wider = min(2 * box[axis], bounds[axis])
            if prod(box) // box[axis] * wider <= left:
                box[axis], grown = wider, True
    if full and box:
        box[-1] = min(bounds[-1], left // prod(box[:-1]))
    return (*box, row)


def spread_bytes(total: int, most: int, sms: int) -> int:
    """Bytes of a box, of which there are then some for each multiprocessor."""
    return min(most, max(_SMALLEST, total // (2 * sms)))


def boxes(extents: Sequence[int], box: Sequence[int]) -> int:
    """How many boxes cover the extents."""
    return prod(-(-n // b) for n, b in zip(extents, box, strict=True))


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
