"""The rules of tiled tensor maps, over parameters that are integers already.

Two questions are kept apart. `encode_faults` answers whether cuTensorMapEncodeTiled takes the parameters (measured: it agrees with the
driver on all tiled maps of the encode matrix); `usable_faults` adds maps that encode and then do nothing useful. What libraries refuse
without need is accepted here: boxes larger than the array, overlapping, unordered and zero strides (all measured to work), and boxes that
no block has the shared memory for, which a prefetch may still use. Everything is computed with Python integers, so nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from oxidecopy.errors import Diagnostic
from oxidecopy.isa import limits
from oxidecopy.isa.swizzle import SWIZZLES, SwizzleInfo

if TYPE_CHECKING:
    from oxidecopy.isa.dtypes import DTypeInfo

L2_PROMOTIONS: Final = (0, 64, 128, 256)
OOB_FILLS: Final = ("zero", "nan")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MapRequest:
    """Parameters as integers, outermost dimension first. `strides` leaves out the innermost dimension, which a map takes as dense."""

    dtype: DTypeInfo
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: SwizzleInfo
    l2_promotion: int
    oob_fill: str
    sm: int

    @property
    def array(self) -> str:
        """The array in words."""
        return f"the {self.dtype.name} array of shape {self.shape}"

    @property
    def in_bytes(self) -> bool:
        """Elements are whole bytes: false for packed types, which the rules about bytes are not written for."""
        return self.dtype.bits % 8 == 0

    @property
    def row_bytes(self) -> int:
        """Bytes of the box's innermost dimension."""
        return self.box[-1] * self.dtype.nbytes


class Faults:
    """Collects diagnostics at the user's line; each bound is followed by its rule's source."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def add(self, rule: str, what: str, *, got: str, required: str, fix: str) -> None:
        """Notes one broken rule."""
        # Only a refusal needs the pages and the caller: the accepting path stays fast.
        from oxidecopy.rules.descriptor import SOURCES
        from oxidecopy.typed.sites import caller_site

        self.found.append(Diagnostic(rule=rule, what=what, got=got, required=f"{required} ({SOURCES[rule]})", fix=fix, site=caller_site()))


def encode_faults(request: MapRequest) -> list[Diagnostic]:
    """What cuTensorMapEncodeTiled refuses; empty when it answers CUDA_SUCCESS on the device of `request.sm`."""
    faults = Faults()
    _array(faults, request)
    _strides(faults, request)
    _box(faults, request)
    _steps(faults, request)
    _options(faults, request)
    return faults.found


def usable_faults(request: MapRequest) -> list[Diagnostic]:
    """What the driver encodes although no copy works or the hardware ignores it."""
    faults = Faults()
    for axis, extent in enumerate(request.shape):
        if limits.GLOBAL_DIM_USABLE_SM90 < extent <= limits.GLOBAL_DIM_MAX and request.sm < 100:
            faults.add(
                "OX2004",
                f"dimension {axis} of {request.array} is too long for compute capability 9.0: the map encodes, then every copy faults",
                got=f"{extent:,}",
                required=f"at most {limits.GLOBAL_DIM_USABLE_SM90:,} elements",
                fix="view the array with one more dimension, or make one descriptor for each part of it",
            )
    if len(request.element_strides) == len(request.shape) > 0 and 1 < request.element_strides[-1] <= limits.ELEMENT_STRIDE_MAX:
        faults.add(
            "OX2018",
            "the innermost dimension cannot be strided: the hardware ignores its element stride",
            got=f"element_strides {request.element_strides}",
            required="1 as the last entry",
            fix=f"element_strides={(*request.element_strides[:-1], 1)}, and pick elements after the copy",
        )
    return faults.found


# ---- the driver's rules
def _array(faults: Faults, request: MapRequest) -> None:
    """Rank, element type, extents and address."""
    rank = len(request.shape)
    if not 1 <= rank <= limits.MAX_RANK:
        fix = "merge neighbouring dimensions with reshape" if rank else "x.reshape(1)"
        faults.add("OX2001", f"{request.array} has a rank that no map has", got=f"rank {rank}", required=f"1 to {limits.MAX_RANK}", fix=fix)
    if not request.in_bytes or request.sm < request.dtype.min_sm:
        faults.add(
            "OX2022",
            f"{request.dtype.name} does not exist on this device",
            got=f"compute capability {_capability(request.sm)}",
            required=f"{_capability(request.dtype.min_sm)} or newer",
            fix="unpack the values into u8 before the upload",
        )
    for axis, extent in enumerate(request.shape):
        if extent < 1:
            faults.add(
                "OX2002",
                f"dimension {axis} of {request.array} is empty",
                got=str(extent),
                required="at least 1 element",
                fix="skip the launch when there is nothing to copy",
            )
        elif extent > limits.GLOBAL_DIM_MAX:
            faults.add(
                "OX2003",
                f"dimension {axis} of {request.array} is too long",
                got=f"{extent:,}",
                required=f"at most {limits.GLOBAL_DIM_MAX:,} elements",
                fix="view the array with one more dimension, or make one descriptor for each part of it",
            )
    if request.address % limits.GLOBAL_ADDRESS_ALIGN:
        over = request.address % limits.GLOBAL_ADDRESS_ALIGN
        faults.add(
            "OX2009",
            f"{request.array} starts at a misaligned address",
            got=f"{request.address:#x}, {over} bytes past a multiple of {limits.GLOBAL_ADDRESS_ALIGN}",
            required=f"a multiple of {limits.GLOBAL_ADDRESS_ALIGN} bytes",
            fix=f"start it {limits.GLOBAL_ADDRESS_ALIGN - over} bytes later, or upload a copy with dev.array",
        )
    if not 0 <= request.address < limits.GLOBAL_ADDRESS_LIMIT:
        faults.add(
            "OX2010",
            f"{request.array} lies beyond the addresses a map can hold",
            got=f"{request.address:#x}",
            required="0 up to, not including, 2^57",
            fix="upload a copy with dev.array",
        )


def _strides(faults: Faults, request: MapRequest) -> None:
    """Order, overlap and zero are free (measured); alignment and range are not."""
    unit = limits.GLOBAL_STRIDE_ALIGN
    for axis, stride in enumerate(request.strides):
        if not 0 <= stride < limits.GLOBAL_STRIDE_LIMIT:
            faults.add(
                "OX2008",
                f"the stride of dimension {axis} of {request.array} is out of range",
                got=f"{stride:,} bytes",
                required="0 up to, not including, 2^40 bytes",
                fix="upload a copy: dev.array(np.ascontiguousarray(x))",
            )
        if stride % unit:
            faults.add(
                "OX2006",
                f"the stride of dimension {axis} of {request.array} is no multiple of {unit} bytes",
                got=f"{stride} bytes = {stride // unit} x {unit} + {stride % unit}",
                required=f"a multiple of {unit} bytes",
                fix=_pad(request),
            )


def _pad(request: MapRequest) -> str:
    padded = (
        ""
        if not request.in_bytes
        else f" to {-(-request.shape[-1] * request.dtype.nbytes // limits.GLOBAL_STRIDE_ALIGN) * limits.GLOBAL_STRIDE_ALIGN} bytes"
    )
    return f"pad the row{padded}: dev.array(x, pad=True), or dev.empty(shape, dtype, pad=True)"


def _box(faults: Faults, request: MapRequest) -> None:
    """Extents, the bytes of a row, and of the whole box. A box may be larger than the array (measured)."""
    fitting = tuple(min(max(extent, 1), limits.BOX_DIM_MAX) for extent in request.box)
    for axis, extent in enumerate(request.box):
        if not 1 <= extent <= limits.BOX_DIM_MAX:
            fix = f"box {fitting}" + ("; more copies cover the rest" if extent > 1 else "")
            faults.add(
                "OX2013",
                f"entry {axis} of the box is out of range",
                got=str(extent),
                required=f"1 to {limits.BOX_DIM_MAX} elements",
                fix=fix,
            )
    if not request.box or request.box[-1] < 1 or not request.in_bytes:
        return
    unit, size, inner, row = limits.BOX_INNER_ALIGN, request.dtype.nbytes, request.box[-1], request.row_bytes
    sum_of_row = f"{inner} x {size} bytes ({request.dtype.name}) = {row} bytes"
    if row % unit:
        faults.add(
            "OX2007",
            f"the innermost extent of the box is no multiple of {unit} bytes",
            got=f"{sum_of_row} = {row // unit} x {unit} + {row % unit}",
            required=f"a multiple of {unit} bytes: of {unit // size} elements",
            fix=f"box inner {_neighbours(inner, unit // size)}",
        )
    span = request.swizzle.span_bytes
    if span and row > span:
        faults.add(
            "OX2014",
            f"the rows of the box are wider than the span of the {request.swizzle.name} swizzle",
            got=sum_of_row,
            required=f"at most {span} bytes",
            fix=_narrower(row, span, size),
        )
    _footprint(faults, request)


def _neighbours(extent: int, step: int) -> str:
    """The legal extents next to `extent`."""
    below = min(extent, limits.BOX_DIM_MAX) // step * step
    near = [n for n in (below, below + step) if 1 <= n <= limits.BOX_DIM_MAX]
    return " or ".join(map(str, near))


def _narrower(row: int, span: int, size: int) -> str:
    wider = next((name for name, mode in SWIZZLES.items() if mode.span_bytes >= row), None)
    return f"box inner {span // size}, or swizzle=ox.Swizzle{wider or 'None'}"


def _footprint(faults: Faults, request: MapRequest) -> None:
    """Dense bytes of one copy; the driver counts the innermost element stride too, although the hardware ignores it (measured)."""
    steps = request.element_strides
    if len(steps) != len(request.box) or min(*request.box, *steps) < 1:
        return
    counts = [-(-b // s) for b, s in zip(request.box, steps, strict=True)]
    nbytes = request.dtype.nbytes
    for count in counts:
        nbytes *= count
    if nbytes <= limits.BOX_BYTES_MAX:
        return
    # The fix leaves room for barriers: what the driver encodes is 1 KiB more than any block can have.
    room = limits.SHARED_BYTES_MAX.get(request.sm, limits.BOX_BYTES_MAX) - 1024
    axis = next(i for i, count in enumerate(counts) if count > 1)
    fits = min(room * counts[axis] // nbytes * steps[axis], limits.BOX_DIM_MAX)
    fix = f"box {_replaced(request.box, axis, fits)}" if fits else f"a smaller box: {room // request.dtype.nbytes:,} elements at most"
    product = " x ".join(map(str, counts))
    faults.add(
        "OX2015",
        "the box holds more than a block's shared memory",
        got=f"{product} x {request.dtype.nbytes} bytes = {nbytes:,} bytes",
        required=f"at most {limits.BOX_BYTES_MAX:,} bytes",
        fix=fix,
    )


def _replaced(values: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    return (*values[:axis], value, *values[axis + 1 :])


def _steps(faults: Faults, request: MapRequest) -> None:
    """Element strides; the innermost one is checked as well although it has no effect (measured)."""
    for axis, step in enumerate(request.element_strides):
        if not 1 <= step <= limits.ELEMENT_STRIDE_MAX:
            fix = "1 takes every element; for wider steps add a dimension: view n as (n // s, s) and copy index 0 of it"
            faults.add(
                "OX2019",
                f"entry {axis} of `element_strides` is out of range",
                got=str(step),
                required=f"1 to {limits.ELEMENT_STRIDE_MAX}",
                fix=fix,
            )


def _options(faults: Faults, request: MapRequest) -> None:
    """Values that are one of a few."""
    if request.oob_fill not in OOB_FILLS:
        faults.add("OX2020", "`oob_fill` is unknown", got=repr(request.oob_fill), required='"zero" or "nan"', fix='oob_fill="zero"')
    elif request.oob_fill == "nan" and not request.dtype.is_float:
        faults.add(
            "OX2021",
            f"{request.dtype.name} has no NaN to fill with",
            got='oob_fill="nan"',
            required="a float element type",
            fix='oob_fill="zero"',
        )
    if type(request.l2_promotion) is not int or request.l2_promotion not in L2_PROMOTIONS:
        faults.add(
            "OX2023",
            "`l2_promotion` is unknown",
            got=repr(request.l2_promotion),
            required="0, 64, 128 or 256 bytes",
            fix="l2_promotion=128",
        )
    if request.sm < request.swizzle.min_sm:
        faults.add(
            "OX2024",
            f"the {request.swizzle.name} swizzle does not exist on this device",
            got=f"compute capability {_capability(request.sm)}",
            required=f"{_capability(request.swizzle.min_sm)} or newer",
            fix="swizzle=ox.Swizzle128B",
        )


def _capability(sm: int) -> str:
    """90 as 9.0."""
    return f"{sm // 10}.{sm % 10}"
