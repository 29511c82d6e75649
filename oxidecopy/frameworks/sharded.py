"""Arrays in parts on several processes, each with a GPU: copies and products here are ours, what goes between processes is NCCL's.

    with joined() as group:                                  # the ranks that torchrun, mpirun or srun started
        columns = copy(group, rows, axis=0, to=1)            # every rank had rows of a matrix, and has columns of it now
        whole = copy(group, rows, axis=0, to=None)           # or all of it
        scaled = transform(group, lambda a: a * 2.0, rows)   # its part, nothing is sent
        y = matmul(group, rows, w, axes=(0, None))           # its rows of a product

A part of an axis of n elements on rank r of R begins at r * n // R. Processes of one rank need neither torch nor a network (`alone()`), and
ranks in host memory work on the simulator. What one rank refuses about its arguments is refused on all, so that none waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, Self, final
from zlib import crc32

import oxidecopy as ox
from oxidecopy.frameworks.groups import Group, Part, alone, joined, no_group, torch_group, wrong
from oxidecopy.interop.foreign import dense_strides
from oxidecopy.oneliners.copying import copy as copy_here
from oxidecopy.oneliners.multiplying import matmul as matmul_here
from oxidecopy.oneliners.operands import taken
from oxidecopy.oneliners.transforming import transform as transform_here
from oxidecopy.typed.refusal import described

if TYPE_CHECKING:
    from oxidecopy.typed.global_array import GlobalArray

__all__ = ["Group", "Part", "alone", "bounds", "copy", "joined", "matmul", "torch_group", "transform"]

_RANK_MAX: Final = 8
_SAID: Final = 16  # numbers that a rank says of itself
_Asked = tuple[dict[str, int], list[int]]  # what has to be the same on all ranks, by name; and what is this rank's own


def bounds(group: Group, n: int, rank: int | None = None) -> slice:
    """The part of an axis of `n` elements that a rank has, this one when none is named.

    Raises:
        ArgumentError: `n` is no number of elements, or there is no such rank (OX5054).
    """
    of = group.rank if rank is None else rank
    if not (type(n) is int and n >= 0):
        raise wrong(f"n = {described(n)}", "how many elements the axis has, 0 or more", "bounds(group, x.shape[axis])")
    if not (type(of) is int and 0 <= of < group.size):
        raise wrong(f"rank = {described(of)}", f"0 to {group.size - 1}", "leave it out for this rank")
    return slice(of * n // group.size, (of + 1) * n // group.size)


def copy(group: Group, x: Part, *, axis: int, to: int | None) -> Part:
    """What this rank has of an array that all ranks have parts of along `axis`, when it is in parts along `to`; all of it for None.

    Pieces are packed and unpacked by `ox.copy`, so whatever strides the parts have, and sent at once.

    Args:
        group: the ranks; each calls it, with equal extents but along `axis`.
        x: this rank's part, as `bounds` cuts it.
        axis: the dimension that it is cut along.
        to: the dimension that the result is cut along.

    Raises:
        ArgumentError: the parts are not those of `bounds`, or the axes are none of the array's (OX5054).
    """
    return _copied(group, lambda: x, axis, to)


def transform(group: Group, fn: Callable[..., Any], x: Part, /, *more: Part, out: Part | None = None) -> Part:
    """`ox.transform` of the parts that this rank has: all of one shape, or repeated along dimensions that are not cut. Nothing is sent.

    A rank whose part has no elements has nothing to do.
    """
    into = out if out is not None else group.empty(x.shape, x)
    if prod(into.shape):
        transform_here(fn, x, *more, out=into, stream=group.stream(into))
    return into


def matmul(
    group: Group,
    a: Part,
    b: Part,
    *,
    axes: tuple[int | None, int | None],
    to: int | None = 0,
    dtype: str = "",
    epilogue: Callable[..., Any] | None = None,
    reads: tuple[Part, ...] = (),
) -> Part:
    """What this rank has of the product `a @ b` when it is in parts along `to`; all of it for None.

    Each rank multiplies its rows (`to=1`: its columns), as `ox.matmul` does; what it lacks of the operands is sent first. Operands that are
    both in parts along K, `axes=(1, 0)`, stay where they are: ranks multiply their parts, and send each other sums in f32, which are added
    in the order of the ranks.

    Args:
        group: the ranks; each calls it with its parts of the same matrices.
        a: this rank's part of (M, K), as `bounds` cuts it, or all of it.
        b: of (K, N), likewise.
        axes: the dimension that each is cut along; None where every rank has all of it.
        to: the dimension that the result is cut along.
        dtype: numpy's name of the result's element type; without it that of the operands, bf16 for fp8.
        epilogue: as in `ox.matmul`, on this rank's part.
        reads: for it, of this rank's part of the result: (N,) for every row, (M, 1) for every column, or of its shape.

    Raises:
        ArgumentError: parts that are not those of `bounds`, or matrices that do not fit each other (OX5054); what `ox.matmul` refuses.
    """
    summed: list[Part] = []  # the product of this rank's parts along K

    def asked() -> _Asked:
        found = _asked_product(a, b, axes, to)
        if axes == (1, 0) and group.size > 1 and all(found[1]):
            summed.append(_partial(group, a, b))
        return found

    said = _agreed(group, asked)
    along = 0 if to is None else to
    shape = _shape_of_product(group, said, (a, b), axes)
    result = _Result(group, a, shape, along, dtype or _type_of_product(a), epilogue, reads)

    def found() -> Part:
        return result.summed(summed.pop()) if summed else result.multiplied(a, b, axes)

    return _copied(group, found, along, None) if to is None else found()


def _shape_of_product(group: Group, said: list[list[int]], operands: Sequence[Part], axes: tuple[int | None, int | None]) -> list[int]:
    """Its extents in all, of operands whose own ones along what they are cut along the ranks said."""
    shapes = [[int(n) for n in x.shape] for x in operands]
    for which, (shape, axis) in enumerate(zip(shapes, axes, strict=True)):
        if axis is not None:
            shape[axis] = _in_all(group, [each[which] for each in said], f"axis {axis} of `{'ab'[which]}`")
    (m, k), (k_of_b, n) = shapes
    if k != k_of_b:
        raise wrong(f"({m}, {k}) by ({k_of_b}, {n})", "as many columns as the other one has rows", "b.T, for one that is stored so")
    if axes == (1, 0) and k < group.size:
        raise wrong(f"K = {k} in parts on {group.size} ranks", "a part of it on each", "axes=(None, 0), or fewer ranks")
    return [m, n]


@final
@dataclass(frozen=True, slots=True)
class _Result:
    """This rank's part of a product of `shape`, cut along `axis`."""

    group: Group
    like: Part
    shape: list[int]
    axis: int
    dtype: str
    epilogue: Callable[..., Any] | None
    reads: tuple[Part, ...]

    def part(self, of: int) -> list[int]:
        return _cut(self.shape, self.axis, bounds(self.group, self.shape[self.axis], of))

    def multiplied(self, a: Part, b: Part, axes: tuple[int | None, int | None]) -> Part:
        """By operands that are cut along `axes`: what this rank lacks of them is sent first."""
        if self.axis == 0:
            return self._of(_cut_along(self.group, a, axes[0], 0), b if axes[1] is None else copy(self.group, b, axis=axes[1], to=None))
        return self._of(a if axes[0] is None else copy(self.group, a, axis=axes[0], to=None), _cut_along(self.group, b, axes[1], 1))

    def _of(self, a: Part, b: Part) -> Part:
        """By the operands that this takes, which are here."""
        mine = self.part(self.group.rank)
        out = self.group.empty(mine, self.like, self.dtype)
        if prod(mine):
            matmul_here(a, b, out=out, epilogue=self.epilogue, reads=self.reads, stream=self.group.stream(self.like))
        return out

    def summed(self, partial: Part) -> Part:
        """By the products of the operands' parts along K, one on each rank."""
        group, stream = self.group, self.group.stream(self.like)
        given = [self.part(of) for of in range(group.size)]
        sent = _packed(group, partial, self.axis, given)
        mine = given[group.rank]
        landed, out = group.empty([prod(mine) * group.size], self.like, "float32"), group.empty(mine, self.like, self.dtype)
        group.exchange(landed, sent, [prod(mine)] * group.size, list(map(prod, given)))
        with _Here(group, self.like) as here:
            pieces = [piece for _, piece in here.pieces(landed, [mine] * group.size)]
            if not pieces:
                return out
            total = pieces[0]
            for other in pieces[1:]:
                transform_here(lambda s, t: s + t, total, other, out=total, stream=stream)
            into = here.taken(out)
            transform_here(self.epilogue or _CASTS[into.dtype.__name__], total, *self.reads, out=into, stream=stream)
        return out


def _partial(group: Group, a: Part, b: Part) -> Part:
    """The product of this rank's parts along K."""
    out = group.empty([int(a.shape[0]), int(b.shape[1])], a, "float32")
    matmul_here(a, b, out=out, stream=group.stream(a))
    return out


# By element type of the result: what becomes of a sum.
_CASTS: Final[dict[str, Callable[[Any], Any]]] = {
    "f32": lambda s: s * 1.0,
    "bf16": lambda s: s.cast(ox.bf16),
    "f16": lambda s: s.cast(ox.f16),
}


def _cut_along(group: Group, x: Part, axis: int | None, to: int) -> Part:
    """This rank's part along `to` of a matrix that is cut along `axis`, or whole."""
    if axis is None:
        return x[_at(2, to, bounds(group, int(x.shape[to])))]
    return x if axis == to else copy(group, x, axis=axis, to=to)


def _type_of_product(a: Part) -> str:
    name = str(a.dtype).rpartition(".")[2]
    return "bfloat16" if name.startswith("float8") else name


def _in_all(group: Group, extents: list[int], where: str) -> int:
    """The elements of an axis that the ranks have so many of, each the part of it that `bounds` gives it."""
    n = sum(extents)
    wanted = [_length(bounds(group, n, of)) for of in range(group.size)]
    if extents != wanted:
        raise wrong(f"{extents} elements of {where}", f"{wanted}", "cut it by bounds(group, n)")
    return n


def _copied(group: Group, made: Callable[[], Part], axis: int, to: int | None) -> Part:
    """`copy` of what `made` gives. All that may be refused is done before ranks agree: what one of them refuses, they all do."""
    x: Part = None
    sent: Part = None
    given: list[list[int]] = []

    def asked() -> _Asked:
        nonlocal x, sent, given
        x = made()
        found = _asked(x, axis, to)
        shape = [int(n) for n in x.shape]
        if to == axis:
            sent = _same(group, x)
        elif to is None:
            given = [shape] * group.size
            sent = _repeated(group, x)
        else:
            given = [_cut(shape, to, bounds(group, shape[to], of)) for of in range(group.size)]
            sent = _packed(group, x, to, given)
        return found

    said = _agreed(group, asked)
    whole = [int(n) for n in x.shape]
    whole[axis] = _in_all(group, [each[0] for each in said], f"axis {axis} on the ranks")
    if to == axis:
        return sent
    shape = whole if to is None else _cut(whole, to, bounds(group, whole[to]))
    return _landed(group, sent, [prod(each) for each in given], axis, shape)


def _same(group: Group, x: Part) -> Part:
    """A copy of what this rank has."""
    out = group.empty(x.shape, x)
    if prod(x.shape):
        copy_here(out, x, stream=group.stream(x))
    return out


def _packed(group: Group, x: Part, axis: int, given: Sequence[Sequence[int]]) -> Part:
    """What each rank is to have of `x`, its part along `axis`, one behind the other; `given` are the parts' shapes."""
    rank, n = len(x.shape), int(x.shape[axis])
    sent = group.empty([sum(map(prod, given))], x)
    with _Here(group, x) as here:
        for of, piece in here.pieces(sent, given):
            here.move(piece, here.taken(x)[_at(rank, axis, bounds(group, n, of))])
    return sent


def _repeated(group: Group, x: Part) -> Part:
    """This rank's part once for every rank."""
    sent = group.empty([prod(x.shape) * group.size], x)
    with _Here(group, x) as here:
        for _, piece in here.pieces(sent, [list(x.shape)] * group.size):
            here.move(piece, here.taken(x))
    return sent


def _landed(group: Group, sent: Part, given: list[int], axis: int, shape: list[int]) -> Part:
    """What the ranks send this one, put together along `axis`."""
    parts = [bounds(group, shape[axis], of) for of in range(group.size)]
    received = [_cut(shape, axis, part) for part in parts]
    landed, out = group.empty([sum(map(prod, received))], sent), group.empty(shape, sent)
    group.exchange(landed, sent, [prod(each) for each in received], given)
    with _Here(group, out) as here:
        for of, piece in here.pieces(landed, received):
            here.move(here.taken(out)[_at(len(shape), axis, parts[of])], piece)
    return out


@final
class _Here:
    """This rank's arrays as ours, each borrowed once, so that the memory around their parts is known."""

    def __init__(self, group: Group, like: Part) -> None:
        self._stream = group.stream(like)
        self._known: dict[int, tuple[Part, GlobalArray[Any, Any]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._known.clear()

    def taken(self, x: Part) -> GlobalArray[Any, Any]:
        """The array in place."""
        if id(x) not in self._known:
            self._known[id(x)] = x, taken(("x",), (x,), self._stream).arrays[0]
        return self._known[id(x)][1]

    def pieces(self, flat: Part, shapes: Sequence[Sequence[int]]) -> Iterator[tuple[int, GlobalArray[Any, Any]]]:
        """A flat array as arrays of these shapes, one behind the other, each with its number; those without elements are left out."""
        start = 0
        for number, shape in enumerate(shapes):
            count = prod(shape)
            if count:
                whole = self.taken(flat)
                size = whole.strides_bytes[0]
                yield number, whole.as_strided(tuple(shape), dense_strides(tuple(shape), size), offset_bytes=start * size)
            start += count

    def move(self, into: GlobalArray[Any, Any], of: GlobalArray[Any, Any]) -> None:
        copy_here(into, of, stream=self._stream)


def _agreed(group: object, asked: Callable[[], _Asked]) -> list[list[int]]:
    """What may differ from rank to rank, of every rank.

    A rank on which `asked` fails says so before it raises: the others do not wait for it.
    """
    if not hasattr(group, "agree"):
        raise no_group(described(group), "`with joined() as group`, under torchrun, mpirun or srun; alone() for one process")
    ranks: Group = group  # type: ignore[assignment]  # it has what a group has
    same: dict[str, int] = {}
    own: list[int] = []
    problem: Exception | None = None
    try:
        same, own = asked()
    except Exception as found:  # whatever it is, a library's too
        problem = found
    count = 1 + len(same)
    mine = [len(same), *same.values(), *own]
    said = ranks.agree([*mine, *[0] * (_SAID - len(mine))])
    if problem is not None:
        raise problem
    for of, each in enumerate(said):
        if each[0] == 0:
            raise wrong(f"arguments that rank {of} refuses", "arguments that no rank refuses", f"see the error of rank {of}")
        apart = [name for name, here, there in zip(("dimensions", *same), mine, each, strict=False) if here != there]
        if apart:
            got = f"rank {of} is called with another {apart[0]} than rank {ranks.rank}"
            raise wrong(got, "one call on all ranks, of parts of one array", "x[bounds(group, n)], n the elements of the whole axis")
    return [each[count : count + len(own)] for each in said]


def _asked(x: object, axis: object, to: object) -> _Asked:
    """What `copy` is asked for: what is the same on all ranks, and the extent that is this rank's own."""
    shape: object = getattr(x, "shape", None)
    if not isinstance(shape, tuple):
        raise wrong(described(x), "this rank's part, an array", "x[bounds(group, n)], of a tensor or of a numpy array")
    rank = len(shape)
    if rank > _RANK_MAX:
        raise wrong(f"an array of rank {rank}", f"at most {_RANK_MAX}", "reshape it")
    if not (_is_axis(axis, rank) and (to is None or _is_axis(to, rank))):
        raise wrong(f"axis={axis}, to={to}", f"dimensions of an array of rank {rank}", f"0 to {rank - 1}; to=None for all of it")
    cut, other = int(axis), -1 if to is None else int(to)  # type: ignore[call-overload]  # ints, by now
    extents = {f"extent of axis {i}": int(n) for i, n in enumerate(shape) if i != cut}
    return {"rank": rank, "axis": cut, "to": other, "element type": _type_number(x), **extents}, [int(shape[cut])]


def _asked_product(a: object, b: object, axes: object, to: object) -> _Asked:
    """What `matmul` is asked for, as `_asked` says it."""
    same: dict[str, int] = {}
    own = []
    if not (isinstance(axes, tuple) and len(axes) == 2 and all(axis is None or _is_axis(axis, 2) for axis in (*axes, to))):
        raise wrong(f"axes={axes}, to={to}", "dimensions of two matrices and of their product", "axes=(0, None), to=0: rows of a, all of b")
    for name, x, axis in (("a", a, axes[0]), ("b", b, axes[1])):
        shape: object = getattr(x, "shape", None)
        if not (isinstance(shape, tuple) and len(shape) == 2):
            raise wrong(
                f"`{name}`: {described(x) if shape is None else shape}", "a matrix, or this rank's part of one", "x[bounds(group, n)]"
            )
        same[f"axis of {name}"] = -1 if axis is None else axis
        same[f"element type of {name}"] = _type_number(x)
        for i, n in enumerate(shape):
            if i != axis:
                same[f"extent of axis {i} of {name}"] = int(n)
        own.append(-1 if axis is None else int(shape[axis]))
    return {**same, "to": -1 if to is None else int(str(to))}, own


def _type_number(x: object) -> int:
    return crc32(str(getattr(x, "dtype", "")).encode())


def _is_axis(axis: object, rank: int) -> bool:
    return type(axis) is int and 0 <= axis < rank


def _cut(shape: Sequence[int], axis: int, part: slice) -> list[int]:
    found = [*shape]
    found[axis] = _length(part)
    return found


def _at(rank: int, axis: int, part: slice) -> tuple[slice, ...]:
    return tuple(part if i == axis else slice(None) for i in range(rank))


def _length(part: slice) -> int:
    return int(part.stop - part.start)
