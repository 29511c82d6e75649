"""Views as numbers: another shape, other strides and another start over the same memory. Element 0 is where offsets count from.

Strides are bytes and never negative, so that element 0 is the first byte and what a view spans is known. All are Python integers: nothing
overflows. Dimensions of one element get the stride that they would have in a dense array: nobody steps along them, and what they come with
means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, NoReturn, final

from oxidecopy.errors import UsageError
from oxidecopy.isa import limits
from oxidecopy.program.program import Edge
from oxidecopy.typed.refusal import described, refuse, whole

NO_VIEW: Final = "OX5040"
OUTSIDE: Final = "OX5041"
_STEPS_MAX: Final = 20_000  # of the search for two indices that meet


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Extents in elements, strides and start in bytes; `element_bytes` of one element."""

    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    element_bytes: int
    offset_bytes: int = 0

    @property
    def span_bytes(self) -> int:
        """Bytes from element 0 to the last byte of the last element."""
        return sum((n - 1) * s for n, s in zip(self.shape, self.strides_bytes, strict=True)) + self.element_bytes

    # ---- other views of the same memory
    def permuted(self, axes: Sequence[object]) -> View:
        """Dimension i of the view is dimension `axes[i]` of this one."""
        rank = len(self.shape)
        order = [_axis(axis, rank) for axis in axes]
        known = [axis for axis in order if axis is not None]
        if sorted(known) != list(range(rank)) or len(order) != rank:
            _refuse(
                "the axes are no order of the dimensions",
                f"axes {tuple(axes)!r} of shape {self.shape}",
                f"each of 0 to {rank - 1} once",
                f"a.permute{tuple(range(rank))[::-1]}",
            )
        return self._with(tuple(self.shape[axis] for axis in known), tuple(self.strides_bytes[axis] for axis in known))

    def sliced(self, key: object) -> View:
        """`key`: a slice for each dimension, or for the first ones; `...` stands for those in between."""
        shape, strides, offset = list(self.shape), list(self.strides_bytes), 0
        for axis, part in enumerate(_slices(key, self.shape)):
            start, stop, step = _bounds(part, axis, shape[axis])
            offset += start * strides[axis]
            shape[axis] = -(-(stop - start) // step)
            strides[axis] *= step
        return self._with(tuple(shape), tuple(strides), offset)

    def selected(self, axis: object, index: object) -> View:
        """Without dimension `axis`, at `index` of it."""
        rank, where, number = len(self.shape), _axis(axis, len(self.shape)), whole(index)
        if rank == 1:
            _refuse(
                "an array of one dimension has none that `select` could leave out",
                f"shape {self.shape}",
                "an array of rank 2 or more",
                "a[i : i + 1] is one element of it",
            )
        if where is None:
            _refuse(
                "there is no such dimension to select from",
                f"axis {described(axis)} of shape {self.shape}",
                f"0 to {rank - 1}, or -{rank} to -1",
                "a.select(0, index)",
            )
        extent = self.shape[where]
        if number is None or not -extent <= number < extent:
            _outside(
                "the index is outside of the array", f"{described(index)} in dimension {where}", f"0 to {extent - 1}, or -{extent} to -1"
            )
        at = number % extent
        return self._with(_without(self.shape, where), _without(self.strides_bytes, where), at * self.strides_bytes[where])

    def broadcast(self, shape: object) -> View:
        """Repeated: leading dimensions are added, and those of one element made longer, with stride 0."""
        wanted = _extents(shape)
        added = len(wanted) - len(self.shape)
        pairs = list(zip(self.shape, wanted[max(added, 0) :], strict=False))
        if added < 0 or any(n not in (1, w) for n, w in pairs):
            _refuse(
                "the array cannot be broadcast to this shape",
                f"{self.shape} to {wanted}",
                "the same extents from the last one on, or 1 in their place",
                "a[:, :1] keeps one element of a dimension; a.permute moves dimensions",
            )
        strides = [0] * added + [s if n == w else 0 for (n, w), s in zip(pairs, self.strides_bytes, strict=True)]
        return self._with(wanted, tuple(strides))

    def strided(self, shape: object, strides_bytes: object, offset_bytes: object) -> View:
        """Any shape and strides that stay inside of what this view spans."""
        wanted, offset = _extents(shape), whole(offset_bytes)
        strides = [whole(entry) for entry in strides_bytes] if isinstance(strides_bytes, tuple) else []
        known = [stride for stride in strides if stride is not None and stride >= 0]
        if len(known) != len(wanted) or offset is None or offset < 0:
            got = f"strides_bytes {strides_bytes!r}, offset_bytes {offset_bytes!r} for shape {wanted}"
            fix = f"strides_bytes={_dense(wanted, self.element_bytes)}, as in a dense array"
            _refuse(
                "strides and offset are no place in memory", got, "one stride of 0 or more bytes per dimension, an offset of 0 or more", fix
            )
        uneven = [n for n in (*known, offset) if n % self.element_bytes]
        if uneven:
            got = f"strides_bytes {tuple(known)}, offset_bytes {offset}"
            _refuse(
                "elements would not be aligned",
                got,
                f"multiples of {self.element_bytes} bytes, the size of an element",
                "count in bytes: elements x their size",
            )
        made = self._with(wanted, tuple(known), offset)
        if offset + made.span_bytes > self.span_bytes:
            got = f"bytes {offset:,} to {offset + made.span_bytes:,}"
            _outside("the view reaches beyond the array", got, f"within the {self.span_bytes:,} bytes that {self.shape} spans")
        return made

    def _with(self, shape: tuple[int, ...], strides_bytes: tuple[int, ...], offset_bytes: int = 0) -> View:
        strides = canonical(shape, strides_bytes, self.element_bytes)
        return View(shape=shape, strides_bytes=strides, element_bytes=self.element_bytes, offset_bytes=offset_bytes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """How memory was laid out when it was made: rows of `used` bytes, `apart` bytes from one to the next, `total` bytes in all."""

    used: int
    apart: int
    total: int

    @classmethod
    def of(cls, shape: tuple[int, ...], strides_bytes: tuple[int, ...], used: int, total: int) -> Rows:
        """Of an array that fills its memory."""
        return cls(used=used, apart=strides_bytes[-2] if len(shape) > 1 else max(total, 1), total=total)

    def behind(self, start: int, end: int, steps: Iterable[int]) -> Edge:
        """What lies in bytes `start` to `end`, and so many `steps` of bytes further: elements of the array, or nobody's bytes."""
        if start >= end or start >= self.total:
            return "padding"
        if any(step % self.apart for step in steps):
            return "unknown" if self.used < self.apart else "elements"
        first = start % self.apart
        return "elements" if first < self.used or min(end, self.total) - start > self.apart - first else "padding"


def canonical(shape: tuple[int, ...], strides_bytes: tuple[int, ...], element_bytes: int) -> tuple[int, ...]:
    """Strides with those of size-1 dimensions as in a dense array."""
    made: list[int] = []
    dense = element_bytes
    for extent, stride in zip(reversed(shape), reversed(strides_bytes), strict=True):
        made.append(dense if extent == 1 else stride)
        dense = max(dense, made[-1] * extent)
    return tuple(reversed(made))


def _dense(shape: tuple[int, ...], element_bytes: int) -> tuple[int, ...]:
    return canonical(shape, tuple(element_bytes * prod(shape[i + 1 :]) for i in range(len(shape))), element_bytes)


def overlaps_itself(shape: tuple[int, ...], strides_bytes: tuple[int, ...], element_bytes: int) -> bool:
    """Two different indices share a byte. A search that gets too long ends with False: only what is certain is said."""
    steps = sorted((s, n - 1) for n, s in zip(shape, strides_bytes, strict=True) if n > 1)
    behind = [0]  # how far the dimensions with smaller strides reach
    for stride, most in steps:
        behind.append(behind[-1] + stride * most)
    if all(stride >= reach + element_bytes for (stride, _), reach in zip(steps, behind, strict=False)):
        return False  # each step leaves all smaller ones behind: as in nearly every array
    return not steps[0][0] or _meet(steps[::-1], behind[::-1], element_bytes)


def _meet(steps: Sequence[tuple[int, int]], behind: Sequence[int], element_bytes: int) -> bool:
    """Two indices meet, by search.

    `steps` are strides (none 0) with how often each is taken, largest first; `behind[i]` is what those from i on reach.
    """
    budget = _STEPS_MAX

    def meets(i: int, distance: int, *, moved: bool) -> bool:
        nonlocal budget
        budget -= 1
        if i == len(steps) or budget < 0:
            return moved and abs(distance) < element_bytes and budget >= 0
        stride, most = steps[i]
        slack = behind[i + 1] + element_bytes - 1
        first, last = max(-(-(-slack - distance) // stride), -most if moved else 0), min((slack - distance) // stride, most)
        return any(meets(i + 1, distance + d * stride, moved=moved or d != 0) for d in range(first, last + 1))

    return meets(0, 0, moved=False)


# ---- what is asked of arguments
def _axis(value: object, rank: int) -> int | None:
    number = whole(value)
    return None if number is None or not -rank <= number < rank else number % rank


def _extents(shape: object) -> tuple[int, ...]:
    numbers = [whole(entry) for entry in shape] if isinstance(shape, tuple) else []
    known = tuple(n for n in numbers if n is not None and n >= 1)
    if not 1 <= len(known) == len(numbers) <= limits.MAX_RANK:
        _refuse("there is no such shape", described(shape), f"a tuple of 1 to {limits.MAX_RANK} positive integers", "(4, 8)")
    return known


def _slices(key: object, shape: tuple[int, ...]) -> list[slice]:
    parts: list[object] = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) == 1:
        parts[dots[0] : dots[0] + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    parts += [slice(None)] * (len(shape) - len(parts))
    found = [part for part in parts if isinstance(part, slice)]
    if len(found) != len(parts) or len(parts) != len(shape):
        several = any(isinstance(p, list) or getattr(p, "ndim", 0) == 1 for p in parts)
        one = any(whole(p) is not None for p in parts)
        fix = "a.select(axis, index) takes one index of a dimension" if one else "a[0:8, :]"
        fix = "ox.gather_rows(a, indices) copies rows by their numbers" if several else fix
        _refuse("an array is cut by slices", f"[{described(key)}] of shape {shape}", "at most one slice for each dimension", fix)
    return found


def _bounds(part: slice, axis: int, extent: int) -> tuple[int, int, int]:
    try:
        start, stop, step = part.indices(extent)
    except (TypeError, ValueError):
        _refuse("a slice has integers, and no step of 0", f"{part} in dimension {axis}", "whole numbers known on the host", "a[0:8]")
    if step < 0:
        _refuse("a view runs forwards", f"{part} in dimension {axis}", "a positive step", "copy it the other way round: dev.array(x[::-1])")
    if stop <= start:
        _outside("nothing is left of the array", f"{part} of {extent} elements in dimension {axis}", "at least 1 element")
    return start, stop, step


def _without(values: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*values[:axis], *values[axis + 1 :])


def _refuse(what: str, got: str, required: str, fix: str) -> NoReturn:
    refuse(UsageError, NO_VIEW, what, got=got, required=required, fix=fix)


def _outside(what: str, got: str, required: str) -> NoReturn:
    refuse(UsageError, OUTSIDE, what, got=got, required=required, fix="keep it inside: a view never makes an array larger")
