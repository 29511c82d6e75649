"""`ox.copy`: any view into any view, with another element type where the destination has one."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal, overload

from typing_extensions import TypeVar

from oxidecopy.isa.limits import GLOBAL_ADDRESS_ALIGN
from oxidecopy.oneliners.calls import Asked, Work, hot, perform
from oxidecopy.oneliners.computing import SHAPES, cast
from oxidecopy.oneliners.explanation import Explanation
from oxidecopy.oneliners.machine import machine_of
from oxidecopy.oneliners.measured import WAYS_TUNED, ways_for
from oxidecopy.oneliners.moving import move
from oxidecopy.oneliners.operands import (
    Array,
    ForeignArray,
    as_bytes,
    check_apart,
    check_shape,
    check_written,
    new_output,
    refuse_types,
    taken,
)
from oxidecopy.oneliners.steps import Plan, part_of, why_no_map
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.symbolic import Idx

if TYPE_CHECKING:
    from oxidecopy.host.pipeline import SupportsCudaStream
    from oxidecopy.oneliners.ready import AnyStream

DT = TypeVar("DT", bound=DType)
_Sh = TypeVar("_Sh", bound=tuple[Idx, ...])
_F = TypeVar("_F", bound=ForeignArray)


@overload
def copy(
    dst: GlobalArray[DT, _Sh],
    src: GlobalArray[Any, _Sh],
    /,
    *,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[DT, _Sh]: ...
@overload
def copy(
    dst: type[DT],
    src: GlobalArray[Any, _Sh],
    /,
    *,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[DT, _Sh]: ...
@overload
def copy(
    dst: None,
    src: GlobalArray[DT, _Sh],
    /,
    *,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[DT, _Sh]: ...
@overload
def copy(
    dst: _F,
    src: ForeignArray | GlobalArray[Any, Any],
    /,
    *,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> _F: ...
@overload
def copy(
    dst: GlobalArray[DT, _Sh],
    src: ForeignArray,
    /,
    *,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[DT, _Sh]: ...
@overload
def copy(
    dst: object, src: object, /, *, stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[True]
) -> Explanation[Any]: ...
def copy(dst: Any, src: Any, /, *, stream: AnyStream = None, tune: bool = False, explain: bool = False) -> Any:
    """Copies `src` to `dst`, both of one shape and on one device, and gives `dst`.

    Views of any kind are copied: parts, permuted and transposed ones, sources that repeat elements. Where the element types differ, each
    value is converted as `Elem.cast` does; between equal ones bits are copied. How it is done is chosen from measurements.

    Args:
        dst: where to; an element type, or None for that of `src`, makes a new array.
        src: what. Arrays of other libraries will do for both, on the device that they are on.
        stream: a CUDA stream; the call does not wait for it. None waits for the end.
        tune: measure the ways to do it, once for these shapes on this device, and take the fastest from then on.
        explain: give an `Explanation` in place of the array, whose `out` it is.

    Raises:
        ArgumentError: for memory that both share, or that cannot be written to, and for what has no way to be copied.
        ShapeError: for different shapes.
        DTypeError: for types that no value is converted between.
    """
    hurry = not (tune or explain)
    ours = type(dst) is GlobalArray and type(src) is GlobalArray
    if ours and hurry and hot("copy", (dst, src), (), stream):
        return dst
    asked = Asked.of(stream, explain, tune)
    wanted = dst if isinstance(dst, type) else None
    device, (into, of) = taken(("dst", "src"), (None if wanted is not None else dst, src), stream, left_out=1)
    if into is None:
        into = new_output(device, of.shape, wanted or of.dtype, (of,))
    result = dst if dst is not None and wanted is None else into
    if not ours and hurry and hot("copy", (into, of), (), stream):
        return result
    _check_pair(into, of)
    said = perform(_work(as_bytes(into), as_bytes(of)), asked)
    return result if said is None else replace(said, out=result)


def _check_pair(into: Array, of: Array) -> None:
    check_shape("dst", into, of.shape, "`src`", "src.broadcast_to(dst.shape) repeats elements; permute and slices give other views")
    check_written("dst", into, "which one would be left is not known")
    if (into.dtype.info.packed or of.dtype.info.packed) and into.dtype is not of.dtype:
        name = (into if into.dtype.info.packed else of).dtype.__name__
        refuse_types(
            f"no value is converted from or to packed {name}",
            f"{of.dtype.__name__} to {into.dtype.__name__}",
            "one element type on both sides",
            "copy the bytes: a.bytes",
        )
    check_apart(("dst", "src"), (into, of), same=into.dtype is of.dtype)


def _work(into: Array, of: Array) -> Work:
    words = f"copy {of.dtype.__name__}{list(of.shape)} with strides {list(of.strides_bytes)} bytes to "
    words += f"{into.dtype.__name__}{list(into.shape)} with strides {list(into.strides_bytes)} bytes on {into.device.name}"

    def planned(choice: Any) -> Plan:
        if into.dtype is not of.dtype:
            return cast(into, of, choice)
        plan = Plan(operands=[into, of])
        machine, to, source = machine_of(into.device), part_of(0, into), part_of(1, of)
        if _meet(into, of) and why_no_map(source, plan.operands):  # its memory is loaded with what lies between its elements
            plan.why.append("it goes through an array of its own: elements of both lie between each other in one memory")
            own = plan.temporary(of.dtype, of.shape)
            move(plan, machine, own, source)
            source = own
        move(plan, machine, to, source, way=choice)
        return plan

    if into.dtype is not of.dtype:
        return Work("copy", words, (into, of), (), planned, "copy", SHAPES)
    ways = ways_for(len(into.shape), prod(into.shape) * into.dtype.info.nbytes, machine_of(into.device).sms)
    return Work("copy", words, (into, of), (), planned, "copy", ways[:WAYS_TUNED])


def _meet(into: Array, of: Array) -> bool:
    """The destination, from its first to its last element, has memory in common with what is loaded for the source, by units of a map."""
    (low, high), (first, last) = _span(into), _span(of)
    return low < last + -last % GLOBAL_ADDRESS_ALIGN and first - first % GLOBAL_ADDRESS_ALIGN < high


def _span(a: Array) -> tuple[int, int]:
    low = a.buffer.address + a.offset_bytes
    return low, low + sum((n - 1) * s for n, s in zip(a.shape, a.strides_bytes, strict=True)) + a.dtype.info.nbytes
