"""Boxes as sets of cells: the tensor is cut so that every box is whole cells, then meetings are equal numbers.

A cell is as long as all starts and lengths of boxes allow, so boxes on a grid of their own size are one cell each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

if TYPE_CHECKING:
    from oxidecopy.verify.outputs.around import Column
    from oxidecopy.verify.outputs.instances import Instances
    from oxidecopy.verify.outputs.places import Place

CELLS_MAX: Final = 1 << 20  # of all boxes together: some 100 ms


@final
class Cells(NamedTuple):
    """One row for each cell of each box. `place` and `instance` say whose, `cell` is the cell's number, `cta` who runs it."""

    place: Column
    instance: Column
    cta: Column
    cell: Column
    axes: tuple[Axis, ...]

    @property
    def cover(self) -> int:
        """How many cells the tensor has."""
        return int(np.prod([a.count for a in self.axes], dtype=np.int64))

    def box_of(self, numbers: Column) -> tuple[tuple[tuple[int, int], ...], bool]:
        """The smallest box around these cells, all different: first element and end per dimension; and whether they are all of it."""
        spans: list[tuple[int, int]] = []
        count, left = len(numbers), 1
        for axis in reversed(self.axes):
            numbers, at = np.divmod(numbers, axis.count)
            first, last = int(at.min()), int(at.max())
            left *= last - first + 1
            spans.append(axis.span(first, last))
        return tuple(reversed(spans)), left == count


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A dimension of `dim` elements cut into `count` cells of `unit`; the first cell begins `shift` elements before element 0."""

    dim: int
    unit: int
    shift: int
    count: int

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Elements from the first cell to behind the last one, clipped."""
        return max(0, first * self.unit - self.shift), min(self.dim, (last + 1) * self.unit - self.shift)


def cells(found: Sequence[tuple[Place, Instances]], dims: tuple[int, ...]) -> Cells | None:
    """None where the boxes fall into too many cells."""
    axes = tuple(_axis(found, d, dim) for d, dim in enumerate(dims))
    total = 0
    for place, each in found:
        total += len(each.cta) * int(np.prod([_per_box(axes[d], place, d) for d in range(len(dims))], dtype=np.int64))
    if total > CELLS_MAX or any(a.count > 1 << 31 for a in axes) or np.prod([float(a.count) for a in axes]) >= 2**62:
        return None
    rows: list[tuple[Column, Column, Column, Column]] = []
    for number, (place, each) in enumerate(found):
        instance, cell = _of_boxes(axes, place, each)
        rows.append((np.full(len(cell), number, np.int64), instance, each.cta[instance], cell))
    of, instance, cta, cell = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return Cells(place=of, instance=instance, cta=cta, cell=cell, axes=axes)


def _axis(found: Sequence[tuple[Place, Instances]], d: int, dim: int) -> Axis:
    """The coarsest cut of dimension `d` that suits every box; boxes with holes (element strides) need single elements."""
    if any(place.extents[d] > 1 and place.steps[d] > 1 for place, _ in found):
        return Axis(dim=dim, unit=1, shift=0, count=dim)
    unit, base = 0, 0
    for place, each in found:
        if len(each.cta):
            base = base if unit else int(each.coords[d][0])
            unit = int(np.gcd(np.gcd(unit, place.extents[d]), np.gcd.reduce(each.coords[d] - base)))
    unit = max(unit, 1)
    shift = -base % unit
    return Axis(dim=dim, unit=unit, shift=shift, count=-(-(dim + shift) // unit))


def _per_box(axis: Axis, place: Place, d: int) -> int:
    return place.extents[d] // axis.unit


def _of_boxes(axes: tuple[Axis, ...], place: Place, each: Instances) -> tuple[Column, Column]:
    """Number of the instance and of the cell, for each cell of each box that is inside the tensor."""
    count = len(each.cta)
    instance = np.arange(count, dtype=np.int64)
    cell = np.zeros(count, np.int64)
    for d, axis in enumerate(axes):
        first = (each.coords[d] + axis.shift) // axis.unit
        at = first[instance][:, None] + np.arange(_per_box(axis, place, d)) * place.steps[d]
        inside = (at >= 0) & (at < axis.count)
        instance = np.broadcast_to(instance[:, None], at.shape)[inside]
        cell = (cell[:, None] * axis.count + at)[inside]
    return instance, cell


def different(numbers: Column) -> Column:
    """Each number once, sorted, as `np.unique` gives them: that one loads numpy's masked arrays, 60 ms of a first launch."""
    ordered = np.sort(numbers)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))]
