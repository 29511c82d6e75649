"""What one-liners are given: arrays of ours and of other libraries, on one device; which of them share memory; what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol, TypeVar, final
from weakref import ref

from oxidecopy.engines.views import View, shared_views, view
from oxidecopy.errors import ArgumentError, Diagnostic, DTypeError, ShapeError
from oxidecopy.host.borrowing import borrow_any, follow, home_of
from oxidecopy.host.stream import Stream
from oxidecopy.interop import torch_tensor
from oxidecopy.isa.limits import GLOBAL_ADDRESS_ALIGN, STORE_EDGE_BYTES
from oxidecopy.typed.dtypes import DType, element_named
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.handles import refuse_recorded
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.sites import caller_site

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.oneliners.ready import AnyStream

SHAPES: Final = "OX1200"
TYPES: Final = "OX1201"
SHARED: Final = "OX1202"
NO_ARRAY: Final = "OX1204"
_PLACE: Final = 128  # bytes: where in a line of L2 an array begins is part of what a plan is for
_WORD: Final = 8  # bytes: of the words that elements are taken out of, at most
Array = GlobalArray[Any, Any]
_V = TypeVar("_V")
_opened: dict[str, Device] = {}


class ForeignArray(Protocol):
    """An array of another library: one that speaks DLPack or has the CUDA array interface, as numpy's, torch's, cupy's and jax's do."""

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""


class Taken(NamedTuple):
    """The arguments as arrays of one device."""

    device: Device
    arrays: tuple[Any, ...]  # Any: those that may be left out are None


def are_ours(arrays: Sequence[object]) -> bool:
    """All are arrays of ours, of which a plan may be ready."""
    for array in arrays:  # noqa: SIM110  # `all` takes four times as long
        if type(array) is not GlobalArray:
            return False
    return True


def taken(names: Sequence[str], given: Sequence[object], stream: AnyStream, *, left_out: int = 0) -> Taken:
    """Arrays of ours as they are, those of others borrowed on the device that all are on. The first `left_out` may be None."""
    refuse_recorded("a one-liner", given)
    device: Any = next((a.device for a in given if isinstance(a, GlobalArray)), None)
    if device is None:
        homes = [home for a in given if a is not None and (home := home_of(a)) is not None]
        if not homes:
            _refuse_argument(names, given)
        device = _device_of(stream, homes[0])
    arrays: list[Array | None] = []
    for i, (name, a) in enumerate(zip(names, given, strict=True)):
        if isinstance(a, GlobalArray) or (a is None and i < left_out):
            arrays.append(a)
        else:
            known = _borrowed_before(device, a, stream)
            if known is None and home_of(a) is None:
                _refuse_argument((name,), (a,))
            arrays.append(_borrowed(device, a, stream) if known is None else known)
    others = [a for a in arrays if a is not None and a.device is not device]
    if others:
        refuse(
            ArgumentError,
            "OX1050",
            "the arguments live on different devices",
            got=f"{device!r} and {others[0].device!r}",
            required="one device",
            fix="make all arrays with one device: open it once",
        )
    return Taken(device, tuple(arrays))


def _device_of(stream: AnyStream, home: str) -> Device:
    """The device of the stream, where it is one of ours and on that GPU; else the process's own."""
    return stream.device if isinstance(stream, Stream) and stream.device.name == home else opened(home)


class _Borrowed(NamedTuple):
    """An array over a tensor's storage, which it keeps; the tensor it does not."""

    tensor: ref[Any]
    signature: torch_tensor.Signature
    array: Array


_NONE: Final[dict[int, _Borrowed]] = {}


def _borrowed_before(device: Device, x: object, stream: AnyStream) -> Array | None:
    """The array over a tensor that is still what it was when it was borrowed."""
    found: _Borrowed | None = device.kept.get("tensors", _NONE).get(id(x))
    if found is None or found.tensor() is not x or not torch_tensor.unchanged(x, found.signature):
        return None
    follow(device, x, stream)
    return found.array


def _borrowed(device: Device, x: object, stream: AnyStream) -> Array:
    made = borrow_any(device, x, stream)
    if made.buffer.address and torch_tensor.is_tensor(x):
        tensors = device.kept.setdefault("tensors", {})
        key = id(x)
        tensors[key] = _Borrowed(ref(x, lambda gone: tensors.pop(key, None)), torch_tensor.signature(x), made)
    return made


def opened(name: str) -> Device:
    """The process's own device for arrays of other libraries."""
    from oxidecopy.host.device import Device

    if name not in _opened:
        _opened[name] = Device.open(name)
    return _opened[name]


def _refuse_argument(names: Sequence[str], given: Sequence[object]) -> NoReturn:
    named = element_named(given[0]) if names[0] == "dst" else ""
    refuse(
        ArgumentError,
        NO_ARRAY,
        f"`{names[0]}` is no array" if len(names) == 1 else "there is no array among the arguments",
        got=", ".join(map(described, given)),
        required="what `dev.array` or `dev.empty` made, or an array of another library on that device",
        fix=f"{named} makes a new array of that type" if named else "dev.array(np.asarray(x)) copies numbers to a device",
    )


# ---- checks
def check_written(name: str, a: Array, why: str) -> None:
    """Refuses an output that cannot be written to."""
    found: list[Diagnostic] = []
    if a.readonly:
        found.append(_said("OX5037", f"`{name}` is read-only memory", repr(a), "memory that may be written to", "dev.empty_like(a)"))
    if a.overlapping:
        what = f"several elements of `{name}` are the same memory: {why}"
        found.append(_said("OX5042", what, repr(a), "elements that each have memory of their own", "use the array that this is a view of"))
    if found:
        raise ArgumentError(*found)


def check_shape(name: str, a: Array, shape: tuple[int, ...], what: str, fix: str = "") -> None:
    """Refuses an array of another shape."""
    if a.shape != shape:
        raise ShapeError(_said(SHAPES, f"`{name}` has another shape than {what}", str(a.shape), str(shape), fix))


def check_apart(names: Sequence[str], arrays: Sequence[Array], *, same: bool) -> None:
    """Refuses an output, the first array, that shares memory with an input; `same`: it may be one of them, element for element."""
    pairs = [(str(i), _view(a)) for i, a in enumerate(arrays)]
    views, some = shared_views(pairs)
    broken = [pair for pair in some if "0" in pair]
    broken += [] if same else [("0", other) for group in views if "0" in group for other in group if other != "0"]
    if not broken:
        return
    other = next(n for n in broken[0] if n != "0")
    allowed = f"memory of its own, or all of `{names[int(other)]}` in place" if same else "memory of its own"
    raise ArgumentError(
        _said(
            SHARED,
            f"`{names[0]}` shares memory with `{names[int(other)]}`, which would be read while it is overwritten",
            f"{names[0]} {arrays[0]!r}, {names[int(other)]} {arrays[int(other)]!r}",
            allowed,
            "write to a new array: leave it out, or pass dev.empty(...)",
        )
    )


def _view(a: Array) -> View:
    start = a.buffer.address
    info = a.dtype.info
    shape = (*a.shape[:-1], info.row_bytes(a.shape[-1])) if info.packed else a.shape
    return view(start + a.offset_bytes, shape, a.strides_bytes, 1 if info.packed else info.nbytes, start + a.buffer.nbytes)


def refuse_types(what: str, got: str, required: str, fix: str) -> NoReturn:
    """Refuses element types that do not fit each other."""
    raise DTypeError(_said(TYPES, what, got, required, fix))


def _said(rule: str, what: str, got: str, required: str, fix: str) -> Diagnostic:
    return Diagnostic(rule=rule, what=what, got=got[:400], required=required, fix=fix, site=caller_site())


def as_bytes(a: Array) -> Array:
    """Packed elements as the bytes that they lie in; other arrays as they are."""
    return a.bytes if a.dtype.info.packed else a


# ---- new outputs
def new_output(device: Device, shape: tuple[int, ...], dtype: type[DType], inputs: Sequence[Array]) -> Array:
    """Dense where all inputs are so and of this shape; else with rows that begin at multiples of 16 bytes, as tensor maps want them."""
    dense = all(a.shape == shape and _dense(a) for a in inputs)
    made: Array = device.empty(shape, dtype, pad=not dense)
    return made


def _dense(given: Array) -> bool:
    a = as_bytes(given)
    return a.strides_bytes == tuple(a.dtype.info.nbytes * prod(a.shape[i + 1 :]) for i in range(len(a.shape)))


# ---- keys
@final
class Mark:
    """What plans need to know of an array, looked at once.

    Attributes:
        kind: a number for its geometry, its device, and where in a line of L2 it begins; equal arrays have one, unless there are very many.
        start: address of the memory that it lies in; `end` is behind it.
        place: address of its first element.
        used: in a call before.
    """

    __slots__ = ("end", "kind", "place", "start", "used")

    def __init__(self, kind: int, start: int, end: int, place: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.place = place
        self.used = False


class Key(NamedTuple):
    """What a plan is kept by, and what is known of the operands."""

    key: tuple[object, ...]
    marks: tuple[Mark, ...]


def key_of(kind: object, arrays: Sequence[Array], stream: AnyStream) -> Key:
    """What a plan, and its proof, depend on: equal for operands that may take each other's place. The first array is written to.

    It is made for every call, so it is as short as can be: addresses count only by where they lie in a line of L2, and for memory that
    operands share by their distance.
    """
    marks = tuple([a.mark or mark_of(a) for a in arrays])
    near: list[int] = []
    for i, one in enumerate(marks):
        for k in range(i):
            other = marks[k]
            if one.start < other.end and other.start < one.end:
                near += (k, i, one.place - other.place)
    return Key((kind, stream, *[m.kind for m in marks], *near), marks)


_kinds: dict[object, int] = {}
# A number; what lies behind rows counts; how many bytes it is where elements lie apart in words, else 0.
_geometries: dict[object, tuple[int, bool, int]] = {}
_numbers = count(1)
_KINDS_MAX: Final = 4_096


def mark_of(a: Array) -> Mark:
    """Looks at an array; it keeps the answer."""
    geometry = (a.dtype, a.shape, a.strides_bytes, a.readonly)
    known = _geometries.get(geometry)
    if known is None:
        size = a.dtype.info.bits // 8 or 1
        partial = any(s == size and n * size % STORE_EDGE_BYTES for n, s in zip(a.shape, a.strides_bytes, strict=True))
        apart = any(size < s <= _WORD and n > 1 for n, s in zip(a.shape, a.strides_bytes, strict=True))
        reach = sum((n - 1) * s for n, s in zip(a.shape, a.strides_bytes, strict=True)) + size if apart else 0
        known = _kept(_geometries, geometry, (next(_numbers), partial, reach))
    number, partial, reach = known
    start, offset = a.buffer.address, a.offset_bytes
    place = start + offset
    behind = (a.rows, offset) if partial else None  # where a store may reach
    # Whether words that elements are parts of are all in its memory.
    room = (min(offset, _WORD), min(a.buffer.nbytes - offset - reach, _WORD)) if reach else None
    what = (number, behind, room, place % _PLACE, offset < place % GLOBAL_ADDRESS_ALIGN, id(a.device))
    kind = _kinds.get(what)
    if kind is None:
        kind = _kept(_kinds, what, next(_numbers))
    a.mark = mark = Mark(kind, start, start + a.buffer.nbytes, place)
    return mark


def _kept(kept: dict[object, _V], key: object, value: _V) -> _V:
    if len(kept) >= _KINDS_MAX:
        kept.clear()
    kept[key] = value
    return value
