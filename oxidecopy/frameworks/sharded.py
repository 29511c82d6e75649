"""Arrays in parts on several processes, each with a GPU of its own: copies here are ours, what goes between processes is NCCL's.

    group = torch_group()                                    # after torch.distributed.init_process_group, as torchrun prepares it
    columns = copy(group, rows, axis=0, to=1)                # every rank had rows of a matrix, and has columns of it now
    whole = copy(group, rows, axis=0, to=None)               # or all of it
    scaled = transform(group, lambda a: a * 2.0, rows)       # its part, nothing is sent

A part of an axis of n elements on rank r of R begins at r * n // R. Processes of one rank need neither torch nor a network (`alone()`), and
ranks in host memory work on the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, final

from oxidecopy.errors import ArgumentError, UsageError
from oxidecopy.host.arrays import refusal
from oxidecopy.interop.foreign import dense_strides
from oxidecopy.oneliners.copying import copy as copy_here
from oxidecopy.oneliners.operands import taken
from oxidecopy.oneliners.transforming import transform as transform_here
from oxidecopy.typed.refusal import described

if TYPE_CHECKING:
    from oxidecopy.typed.global_array import GlobalArray

NO_GROUP: Final = "OX5053"
PARTS: Final = "OX5054"

# (Any: tensors of torch, or arrays of whatever library the group's processes use; the package depends on none of them.)
Part = Any


class Group(Protocol):
    """Processes that know each other by rank, and what they need of a library that sends."""

    @property
    def rank(self) -> int:
        """This process."""

    @property
    def size(self) -> int:
        """How many there are."""

    def empty(self, shape: Sequence[int], like: Part) -> Part:
        """New memory, contents undefined, of the element type and on the device of `like`, row by row."""

    def extents(self, n: int) -> list[int]:
        """`n` of every rank."""

    def exchange(self, out: Part, sent: Part, received: Sequence[int], given: Sequence[int]) -> None:
        """The i-th piece of every rank's `sent`, in order of ranks, comes into the `out` of rank i; pieces are elements of flat arrays."""

    def stream(self, like: Part) -> int | None:
        """The stream on which `exchange` follows and precedes the caller's work; None in host memory."""


@final
class _Alone:
    """A group of one."""

    rank: Final = 0
    size: Final = 1

    def empty(self, shape: Sequence[int], like: Part) -> Part:
        import numpy as np

        if not isinstance(like, np.ndarray):
            raise _wrong(described(like), "numpy arrays, which the group of one process is over", "torch_group() is over tensors")
        return np.empty(tuple(shape), like.dtype)

    def extents(self, n: int) -> list[int]:
        return [n]

    def exchange(self, out: Part, sent: Part, received: Sequence[int], given: Sequence[int]) -> None:
        out[...] = sent

    def stream(self, like: Part) -> int | None:
        return None


def alone() -> Group:
    """A group of this process alone, over numpy arrays: what a program does on one rank, anywhere."""
    return _Alone()


@final
class _TorchGroup:
    """A process group of torch, over its tensors: NCCL between GPUs, gloo between host memories."""

    def __init__(self, torch: Any, group: Any) -> None:
        self._torch, self._group = torch, group
        self.rank: Final[int] = torch.distributed.get_rank(group)
        self.size: Final[int] = torch.distributed.get_world_size(group)

    def empty(self, shape: Sequence[int], like: Part) -> Part:
        if not isinstance(like, self._torch.Tensor):
            raise _wrong(described(like), "tensors of torch, which its process groups are over", "torch.from_numpy(x)")
        return self._torch.empty(tuple(shape), dtype=like.dtype, device=like.device)

    def extents(self, n: int) -> list[int]:
        found: list[int | None] = [None] * self.size
        self._torch.distributed.all_gather_object(found, n, self._group)
        return [int(each or 0) for each in found]

    def exchange(self, out: Part, sent: Part, received: Sequence[int], given: Sequence[int]) -> None:
        self._torch.distributed.all_to_all_single(out, sent, list(received), list(given), group=self._group)

    def stream(self, like: Part) -> int | None:
        if like.device.type != "cuda":
            return None
        return int(self._torch.cuda.current_stream(like.device).cuda_stream) or 1


def torch_group(group: Any = None) -> Group:
    """A process group of torch.distributed, the default one when none is given.

    Raises:
        UsageError: torch is not installed, or there is no process group (OX5053).
    """
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
        import torch.distributed  # type: ignore[import-not-found,unused-ignore]
    except ImportError as problem:
        raise _no_group(f"torch is not installed ({problem})", "pip install torch; alone() for one process") from problem
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        raise _no_group("no process group", 'torch.distributed.init_process_group("nccl") under torchrun; alone() for one process')
    try:
        return _TorchGroup(torch, group)
    except (ValueError, TypeError) as problem:  # torch's word for what is no group
        raise _no_group(f"{described(group)}: {problem}", "torch.distributed.new_group(ranks), or nothing for all of them") from problem


def bounds(group: Group, n: int, rank: int | None = None) -> slice:
    """The part of an axis of `n` elements that a rank has, this one when none is named."""
    of = group.rank if rank is None else rank
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
    _check_asked(group, x, axis, to)
    rank, shape = len(x.shape), [int(n) for n in x.shape]
    extents = group.extents(shape[axis])
    n = sum(extents)
    wanted = [_length(bounds(group, n, of)) for of in range(group.size)]
    if extents != wanted:
        raise _wrong(f"{extents} elements of axis {axis} on the ranks", f"{wanted}", "cut it by bounds(group, n)")
    if to == axis:
        out = group.empty(shape, x)
        if prod(shape):
            copy_here(out, x, stream=group.stream(x))
        return out
    whole = [*shape]
    whole[axis] = n
    if to is None:
        return _gathered(group, x, axis, whole)
    given = [_cut(shape, to, bounds(group, shape[to], of)) for of in range(group.size)]
    sent = group.empty([sum(map(prod, given))], x)
    with _Here(group, x) as here:
        for of, piece in here.pieces(sent, given):
            here.move(piece, here.taken(x)[_at(rank, to, bounds(group, shape[to], of))])
    return _landed(group, sent, [prod(each) for each in given], axis, _cut(whole, to, bounds(group, shape[to])))


def transform(group: Group, fn: Callable[..., Any], x: Part, /, *more: Part, out: Part | None = None) -> Part:
    """`ox.transform` of the parts that this rank has: all of one shape, or repeated along dimensions that are not cut. Nothing is sent."""
    into = out if out is not None else group.empty(x.shape, x)
    transform_here(fn, x, *more, out=into, stream=group.stream(into))
    return into


def _gathered(group: Group, x: Part, axis: int, whole: list[int]) -> Part:
    """All of it: every rank sends its part to every rank."""
    count = prod(x.shape)
    sent = group.empty([count * group.size], x)
    with _Here(group, x) as here:
        for _, piece in here.pieces(sent, [list(x.shape)] * group.size):
            here.move(piece, here.taken(x))
    return _landed(group, sent, [count] * group.size, axis, whole)


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


def _check_asked(group: object, x: object, axis: object, to: object) -> None:
    if not hasattr(group, "extents"):
        raise _no_group(described(group), "torch_group() under torchrun; alone() for one process")
    shape: object = getattr(x, "shape", None)
    if not isinstance(shape, tuple):
        raise _wrong(described(x), "this rank's part, an array", "x[bounds(group, n)], of a tensor or of a numpy array")
    rank = len(shape)
    if not (_is_axis(axis, rank) and (to is None or _is_axis(to, rank))):
        raise _wrong(f"axis={axis}, to={to}", f"dimensions of an array of rank {rank}", f"0 to {rank - 1}; to=None for all of it")


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


def _wrong(got: str, required: str, fix: str) -> ArgumentError:
    return ArgumentError(refusal(PARTS, "the parts of an array do not fit together", got=got, required=required, fix=fix))


def _no_group(got: str, fix: str) -> UsageError:
    return UsageError(refusal(NO_GROUP, "there are no processes to share an array with", got=got, required="a process group", fix=fix))
