"""Which arguments of a launch lie in the same memory: the proof counts elements, and must know which elements are the same ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

# Candidate solutions that numpy may look at for two views; more count as shared. (Any: its stubs know two values.)
_WORK_MAX: Final[Any] = 1 << 12


Sides: TypeAlias = tuple[tuple[int, int], ...]


class View(NamedTuple):
    """Bytes of memory as a strided array of elements, outermost dimension first; strides are not negative.

    Attributes:
        address: of the first element.
        shape: elements.
        strides: bytes; 0 where there is one element.
        element: bytes of one.
        end: behind the last byte of the memory that it is in: what would reach further faults.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: int
    end: int

    @property
    def reach(self) -> int:
        """Behind its last byte."""
        return min(self.end, self.address + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)) + self.element)


def view(address: int, shape: tuple[int, ...], strides: tuple[int, ...], element: int, end: int) -> View:
    """A view in which strides of dimensions with one element, which mean nothing, are 0."""
    return View(address, shape, tuple([s if n > 1 else 0 for n, s in zip(shape, strides, strict=True)]), element, end)


def shared_views(views: Iterable[tuple[str, View]]) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, str], ...]]:
    """Groups of names with one view of memory, and pairs of names that share some memory otherwise; sorted."""
    return _shared(tuple(views))


@lru_cache(maxsize=64)  # a table has hundreds of entries, and each pair of them is looked at
def _shared(views: tuple[tuple[str, View], ...]) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, str], ...]]:
    same: dict[View, list[str]] = {}
    pairs: list[tuple[str, str]] = []
    ordered = sorted(views, key=lambda item: item[1].address)
    base = {_steps(one): one.address for _, one in reversed(ordered)}  # the lowest address of each
    reaching: list[tuple[View, str, Sides | None]] = []  # views seen so far that may reach the next one
    for name, one in ordered:
        if one in same:
            same[one].append(name)
            continue
        same[one] = [name]
        steps = _steps(one)
        sides = _sides(one, steps, one.address - base[steps])
        reaching = [item for item in reaching if item[0].reach > one.address]
        for other, by, theirs in reaching:
            comparable = sides is not None and theirs is not None and _steps(other) == steps
            if _meet(sides or (), theirs or ()) if comparable else _share(other, one):
                pairs.append((min(by, name), max(by, name)))
        if 0 not in one.shape:
            reaching.append((one, name, sides))
    return tuple(sorted(tuple(sorted(names)) for names in same.values() if len(names) > 1)), tuple(sorted(pairs))


def _steps(of: View) -> tuple[int, ...]:
    """Its strides, largest first."""
    return tuple(sorted((s for s in of.strides if s), reverse=True))


def _sides(of: View, steps: tuple[int, ...], offset: int) -> Sides | None:
    """Where it lies on the grid of its strides, as a box whose last side is bytes; None where a dimension runs into the next one."""
    counts = [n for s, n in sorted(zip(of.strides, of.shape, strict=True), reverse=True) if s]
    sides: list[tuple[int, int]] = []
    for step, n in zip(steps, counts, strict=True):
        first, offset = divmod(offset, step)
        sides.append((first, first + n))
    sides.append((offset, offset + of.element))
    reach = offset + of.element
    for step, (_, end) in zip(reversed(steps), reversed(sides[:-1]), strict=True):
        if reach > step:
            return None
        reach += (end - 1) * step
    return tuple(sides)


def _meet(one: Sides, other: Sides) -> bool:
    return all(first < high and low < end for (first, end), (low, high) in zip(one, other, strict=True))


def _share(a: View, b: View) -> bool:
    """True when some byte is in both, or that is too hard to tell."""
    import numpy as np  # few launches get here

    first = min(a.address, b.address)
    try:
        return bool(np.shares_memory(_array(a, first), _array(b, first), max_work=_WORK_MAX))
    except np.exceptions.TooHardError:
        return True


def _array(of: View, first: int) -> Any:
    """An array over addresses that nobody reads; `first` is moved to a small one, so that the numbers fit."""
    import numpy as np

    class Strided:
        __array_interface__ = {  # noqa: RUF012
            "version": 3,
            "shape": (*of.shape, of.element),
            "strides": (*of.strides, 1),
            "typestr": "|u1",
            "data": (of.address - first + 4096, True),
        }

    return np.asarray(Strided())
