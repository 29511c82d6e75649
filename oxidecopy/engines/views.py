"""Which arguments of a launch lie in the same memory: the proof counts elements, and must know which elements are the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.tensor_map import SLICE_BYTES

if TYPE_CHECKING:
    from oxidecopy.engines.base import BoundArray, BoundMap

# Candidate solutions that numpy may look at for two views; more count as shared. (Any: its stubs know two values.)
_WORK_MAX: Final[Any] = 1 << 12


class View(NamedTuple):
    """Bytes of memory as a strided array of elements, outermost dimension first."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: int

    @property
    def end(self) -> int:
        """Behind the last byte."""
        return self.address + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)) + self.element


def shared_views(bound: Mapping[str, BoundMap | BoundArray]) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, str], ...]]:
    """Groups of parameters with one view of memory, and pairs of parameters that share some memory otherwise; sorted by name."""
    views = sorted(((view_of(b), name) for name, b in bound.items()), key=lambda item: (item[0].address, item[1]))
    same: dict[View, list[str]] = {}
    pairs: list[tuple[str, str]] = []
    reaching: list[tuple[View, str]] = []  # views seen so far that may reach the next one
    for view, name in views:
        if view in same:
            same[view].append(name)
            continue
        same[view] = [name]
        reaching = [(other, by) for other, by in reaching if other.end > view.address]
        pairs += [(min(by, name), max(by, name)) for other, by in reaching if _share(other, view)]
        if 0 not in view.shape:
            reaching.append((view, name))
    return tuple(sorted(tuple(sorted(names)) for names in same.values() if len(names) > 1)), tuple(sorted(pairs))


def view_of(bound: BoundMap | BoundArray) -> View:
    """The memory of an argument. Strides are not negative (descriptors and arrays have no such ones)."""
    address = bound.buffer.address + bound.offset_bytes
    info: Any = getattr(bound, "map", None)
    if info is None:
        array: Any = bound
        return _canonical(address, array.info.shape, array.info.strides_bytes, DTYPES[array.info.dtype].nbytes)
    row = DTYPES[info.dtype]
    *outer, inner = info.global_dim
    element = SLICE_BYTES[info.interleave] or row.nbytes
    if row.bits % 8:
        element, inner = 1, -(-inner * row.bits // 8)
    return _canonical(address, (*outer, inner), (*info.global_strides, element), element)


def _canonical(address: int, shape: tuple[int, ...], strides: tuple[int, ...], element: int) -> View:
    """Strides of dimensions with one element mean nothing."""
    return View(address, shape, tuple([s if n > 1 else 0 for n, s in zip(shape, strides, strict=True)]), element)


def _share(a: View, b: View) -> bool:
    """True when some byte is in both, or that is too hard to tell."""
    import numpy as np  # few launches get here

    first = min(a.address, b.address)
    try:
        return bool(np.shares_memory(_array(a, first), _array(b, first), max_work=_WORK_MAX))
    except np.exceptions.TooHardError:
        return True


def _array(view: View, first: int) -> Any:
    """An array over addresses that nobody reads; `first` is moved to a small one, so that the numbers fit."""
    import numpy as np

    class Strided:
        __array_interface__ = {  # noqa: RUF012
            "version": 3,
            "shape": (*view.shape, view.element),
            "strides": (*view.strides, 1),
            "typestr": "|u1",
            "data": (view.address - first + 4096, True),
        }

    return np.asarray(Strided())
