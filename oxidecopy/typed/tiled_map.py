"""Tiled tensor maps: what the user passed -> `TensorMap`, or one error with every broken rule (`tiled_rules`)."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from oxidecopy.errors import DescriptorError
from oxidecopy.isa import limits
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.typed.tiled_rules import Faults, MapRequest, encode_faults, usable_faults

if TYPE_CHECKING:
    from oxidecopy.isa.dtypes import DTypeInfo
    from oxidecopy.isa.swizzle import SwizzleInfo


def build_tensor_map(  # noqa: PLR0913  # as many as the driver's call has
    *,
    dtype: DTypeInfo,
    shape: tuple[int, ...],
    strides_bytes: tuple[int, ...],
    address: int,
    box: object,
    element_strides: object,
    swizzle: SwizzleInfo,
    l2_promotion: int,
    oob_fill: str,
    sm: int,
) -> TensorMap:
    """Checks the parameters of a tiled map over an array; all tuples are outermost dimension first.

    Args:
        dtype: element type of the array.
        shape: its extents, elements.
        strides_bytes: bytes from one index to the next, one entry per dimension.
        address: of its first element.
        box: extents of one copy, elements.
        element_strides: step of each dimension, elements; None for 1 everywhere.
        swizzle: the mode.
        l2_promotion: bytes, see `L2_PROMOTIONS`.
        oob_fill: see `OOB_FILLS`.
        sm: compute capability the map is for, 90 for 9.0.

    Raises:
        DescriptorError: with every broken rule.
    """
    faults = Faults()
    box_dim = _extents(faults, "OX2011", "box", box)
    steps = tuple(1 for _ in shape) if element_strides is None else _extents(faults, "OX2016", "element_strides", element_strides)
    request = MapRequest(
        dtype=dtype,
        shape=shape,
        strides=_meaningful(dtype, shape, strides_bytes)[:-1],
        address=address,
        box=box_dim or (),
        element_strides=steps or (),
        swizzle=swizzle,
        l2_promotion=l2_promotion,
        oob_fill=oob_fill,
        sm=sm,
    )
    _dense(faults, request, strides_bytes)
    _lengths(faults, request, has_box=box_dim is not None, has_steps=steps is not None)
    faults.found += encode_faults(request)
    faults.found += usable_faults(request)
    if faults.found:
        raise DescriptorError(*sorted(faults.found, key=lambda d: d.rule))
    return TensorMap(
        dtype=dtype.name,
        global_dim=shape,
        global_strides=request.strides,
        box_dim=request.box,
        element_strides=request.element_strides,
        swizzle=swizzle.name,
        l2_promotion=l2_promotion,
        oob_fill=oob_fill,
    )


def _extents(faults: Faults, rule: str, name: str, value: object) -> tuple[int, ...] | None:
    """A tuple of integers; None, with a fault, when it is something else."""
    if not isinstance(value, tuple):
        fix = f"{name}=({value},)" if type(value) is int else f"{name}=(64, 64), or for a box a type: ox.Box2[Literal[64], Literal[64]]"
        got = f"{value!r} ({type(value).__name__})"
        faults.add(rule, f"`{name}` is no tuple of integers", got=got, required="one Python int per dimension, outermost first", fix=fix)
        return None
    numbers = [_integer(entry) for entry in value]
    wrong = [f"entry {i} is {entry!r} ({type(entry).__name__})" for i, entry in enumerate(value) if numbers[i] is None]
    if wrong:
        fix = "pass whole numbers known on the host; `//` keeps a quotient one"
        faults.add(
            rule, f"`{name}` must hold integers", got=", ".join(wrong), required="one Python int per dimension, outermost first", fix=fix
        )
        return None
    return tuple(n for n in numbers if n is not None)


def _integer(value: object) -> int | None:
    """`value` as an int when it is one (numpy's too, bool is not); symbolic integers refuse with a TypeError of ours."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]  # that is the question
    except TypeError:
        return None


def _meaningful(dtype: DTypeInfo, shape: tuple[int, ...], strides_bytes: tuple[int, ...]) -> tuple[int, ...]:
    """Strides with those of size-1 dimensions replaced: the hardware never steps along them, but the driver checks them (measured)."""
    unit = limits.GLOBAL_STRIDE_ALIGN
    strides: list[int] = []
    dense = -(-dtype.bits // 8)
    for extent, stride in zip(reversed(shape), reversed(strides_bytes), strict=True):
        strides.append(-(-dense // unit) * unit if extent == 1 else stride)
        dense = strides[-1] * extent if strides[-1] * extent < limits.GLOBAL_STRIDE_LIMIT else unit
    return tuple(reversed(strides))


def _dense(faults: Faults, request: MapRequest, strides_bytes: tuple[int, ...]) -> None:
    """The innermost dimension has no stride in a map: its elements must follow each other."""
    if not request.in_bytes or not request.shape or request.shape[-1] <= 1 or strides_bytes[-1] == request.dtype.nbytes:
        return
    size = request.dtype.nbytes
    other = [axis for axis, stride in enumerate(strides_bytes) if stride == size and request.shape[axis] > 1]
    swap = f"dimension {other[0]} is the dense one: transpose the array so that it comes last, and the box with it" if other else ""
    faults.add(
        "OX2005",
        f"the innermost dimension of {request.array} is not contiguous",
        got=f"{strides_bytes[-1]} bytes from one element to the next",
        required=f"{size} bytes, the size of one {request.dtype.name}",
        fix=swap or "upload a copy: dev.array(np.ascontiguousarray(x))",
    )


def _lengths(faults: Faults, request: MapRequest, *, has_box: bool, has_steps: bool) -> None:
    """Box and element strides have one entry per dimension of the array."""
    rank = len(request.shape)
    for rule, name, has, value in (
        ("OX2012", "box", has_box, request.box),
        ("OX2017", "element_strides", has_steps, request.element_strides),
    ):
        if has and len(value) != rank:
            faults.add(
                rule,
                f"`{name}` has another rank than {request.array}",
                got=f"{value}, of length {len(value)}",
                required=f"length {rank}, outermost first",
                fix=f"{name}={_resized(value, rank)}",
            )


def _resized(value: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """`value` with leading ones or without its first entries, `rank` long."""
    return (1,) * (rank - len(value)) + value[max(0, len(value) - rank) :]
