"""What a host array must be to go to a device, and how it lies there: checks, layouts, bytes. No device and no engine is known here."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from oxidecopy.errors import Diagnostic, InputError
from oxidecopy.isa import limits
from oxidecopy.typed import dtypes
from oxidecopy.typed.dtypes import DType, element_named
from oxidecopy.typed.global_array import storage_dtype
from oxidecopy.typed.packed import pack
from oxidecopy.typed.sites import caller_site

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from oxidecopy.isa.dtypes import DTypeInfo

# numpy dtype name -> element type, where numpy's static types tell it: for these `dev.array(x)` needs no second argument.
INFERRED: Final[dict[str, type[DType]]] = {
    "uint8": dtypes.u8,
    "uint16": dtypes.u16,
    "uint32": dtypes.u32,
    "int32": dtypes.i32,
    "uint64": dtypes.u64,
    "int64": dtypes.i64,
    "float16": dtypes.f16,
    "float32": dtypes.f32,
    "float64": dtypes.f64,
}
# Stored in ml_dtypes types, which numpy's static types cannot tell apart; `np.save` writes and `np.load` reads them as raw V1 and V2.
NAMED: Final[dict[str, type[DType]]] = {"bfloat16": dtypes.bf16, "float8_e4m3fn": dtypes.e4m3, "float8_e5m2": dtypes.e5m2}
# Numpy types that have no element type of their own, and the cheapest way out.
_WAYS_OUT: Final = {
    "bool": "x.view(np.uint8)",
    "int8": "x.view(np.uint8): copies do not look at the sign",
    "int16": "x.view(np.uint16): copies do not look at the sign",
    "complex64": "x.view(np.float32): pairs of f32",
    "complex128": "x.view(np.float64): pairs of f64",
    "longdouble": "x.astype(np.float64)",
    "float128": "x.astype(np.float64)",
}
PAD_BYTE: Final = 0xFF  # between padded rows: NaN as a float, so a copy that reads past an edge shows


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the elements of an array lie: `strides_bytes` for each dimension, `nbytes` in all, padding included."""

    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    nbytes: int


def layout(shape: tuple[int, ...], info: DTypeInfo, *, pad: bool) -> Layout:
    """Outermost dimension slowest. With `pad`, rows start a multiple of 16 bytes apart, and so all strides but the innermost are.

    Rows of packed elements start on a byte each, with `pad` as far apart as their maps want: 32 bytes for those with gaps.
    """
    strides = [1 if info.packed else info.nbytes]
    size = info.row_bytes(shape[-1])
    if pad and len(shape) > 1:
        unit = 2 * limits.GLOBAL_STRIDE_ALIGN if info.padded else limits.GLOBAL_STRIDE_ALIGN
        size = -(-size // unit) * unit
    for extent in reversed(shape[:-1]):
        strides.append(size)
        size *= extent
    return Layout(shape=shape, strides_bytes=tuple(reversed(strides)), nbytes=size)


def packed(x: npt.NDArray[Any], to: Layout) -> memoryview:
    """The bytes of `x` as they lie under `to`; a copy only where `x` does not lie so already."""
    import numpy as np

    if to.nbytes == x.nbytes:
        return np.ascontiguousarray(x).reshape(-1).view(np.uint8).data
    raw = np.full(to.nbytes, PAD_BYTE, np.uint8)
    np.ndarray(x.shape, x.dtype, buffer=raw.data, strides=to.strides_bytes)[...] = x
    return raw.data


# ---- checks; each gives the diagnostics of what it refuses
def refusal(rule: str, what: str, *, got: str = "", required: str = "", fix: str = "") -> Diagnostic:
    """A diagnostic at the user's line."""
    return Diagnostic(rule=rule, what=what, got=got, required=required, fix=fix, site=caller_site())


def element_type(dtype: object, sm: int) -> type[DType]:
    """`dtype` as an element type that a device of compute capability `sm` has.

    Raises:
        InputError: when it is none (OX5008), or not on this device (OX5010).
    """
    if not (isinstance(dtype, type) and issubclass(dtype, DType) and "info" in dtype.__dict__):
        name = getattr(dtype, "__name__", None) or repr(dtype)
        fix = element_named(dtype) or "an element type of oxidecopy, such as ox.f32"
        raise InputError(refusal("OX5008", "the dtype is no element type", got=name, required="a class such as ox.f32 or ox.bf16", fix=fix))
    info = dtype.info
    if sm < info.min_sm:
        raise InputError(
            refusal(
                "OX5010",
                f"{info.name} does not exist on this device",
                got=f"compute capability {sm // 10}.{sm % 10}",
                required=f"{info.min_sm // 10}.{info.min_sm % 10} or newer (CUDA driver API, CUtensorMapDataType)",
                fix="keep the values as ox.u8, one a byte; `Device.open('sim', arch=100)` has packed types",
            )
        )
    return dtype


def array_faults(x: npt.NDArray[Any], name: str = "the array") -> list[Diagnostic]:
    """What keeps `x` from any device, whatever its element type is to be."""
    return [*shape_faults(x.shape, name), *storage_faults(x.dtype, name)]


def shape_faults(shape: tuple[int, ...], name: str) -> list[Diagnostic]:
    """Rank and extents."""
    faults: list[Diagnostic] = []
    if not 1 <= len(shape) <= limits.MAX_RANK:
        fix = "merge neighbouring dimensions with reshape" if shape else "x.reshape(1)"
        faults.append(
            refusal(
                "OX5007",
                f"{name} has a rank that no tensor map has",
                got=f"rank {len(shape)}, shape {shape}",
                required=f"rank 1 to {limits.MAX_RANK}",
                fix=fix,
            )
        )
    empty = [axis for axis, extent in enumerate(shape) if extent == 0]
    if empty:
        axes = ", ".join(map(str, empty))
        faults.append(
            refusal(
                "OX5006",
                f"{name} has no elements",
                got=f"shape {shape}: dimension {axes} is empty",
                required="at least 1 element per dimension",
                fix="skip the launch when there is nothing to copy",
            )
        )
    return faults


def storage_faults(dtype: np.dtype[Any], name: str) -> list[Diagnostic]:
    """What keeps a numpy dtype from being copied at all."""
    faults: list[Diagnostic] = []
    plain = dtype.newbyteorder("=") if dtype.byteorder in "<>" and dtype.names is None else dtype
    if plain.name not in INFERRED and plain.name not in NAMED and not is_raw(plain):
        fix = _WAYS_OUT.get(plain.name, "x.astype(np.float32), or a view as integers of the same size")
        if dtype.names is not None:
            fix = f"one field, copied: np.ascontiguousarray(x[{dtype.names[0]!r}])"
        faults.append(
            refusal(
                "OX5002",
                f"{name} is of a type that tensor copies do not have",
                got=str(dtype),
                required=", ".join((*INFERRED, *NAMED)),
                fix=fix,
            )
        )
    elif not dtype.isnative:
        faults.append(
            refusal(
                "OX5005",
                f"{name} is in foreign byte order",
                got=dtype.str,
                required="this machine's byte order",
                fix='x.astype(x.dtype.newbyteorder("="))',
            )
        )
    return faults


def is_raw(dtype: np.dtype[Any]) -> bool:
    """One or two bytes without a meaning: how `np.load` reads the ml_dtypes types."""
    return dtype.name in ("void8", "void16") and dtype.names is None


def inferred(dtype: np.dtype[Any]) -> type[DType]:
    """The element type of a numpy dtype, where static types agree on it.

    Raises:
        InputError: for ml_dtypes and raw types (OX5003): the type checker would call them something else.
    """
    found = INFERRED.get(dtype.name)
    if found is None:
        known = NAMED.get(dtype.name)
        fix = f"dev.array(x, ox.{known.__name__})" if known else "dev.array(x, ox.bf16) or whatever the bytes are"
        raise InputError(
            refusal(
                "OX5003",
                "the element type must be named: numpy's types cannot tell it",
                got=str(dtype),
                required="a second argument",
                fix=fix,
            )
        )
    return found


def as_stored(x: npt.NDArray[Any], dtype: type[DType]) -> npt.NDArray[Any]:
    """`x` seen in the storage type of `dtype`; no element is converted. Packed elements are packed: rows of bytes.

    Raises:
        InputError: when `x` is of another type (OX5004), or holds values of more bits (OX5018).
    """
    info = dtype.info
    storage = storage_dtype(info)
    if x.dtype == storage:
        return packed_rows(x, info) if info.packed else x
    bytes_for_fp8 = info.name in ("e4m3", "e5m2") and x.dtype.name == "uint8"
    if bytes_for_fp8 or (info.numpy in NAMED and is_raw(x.dtype) and x.dtype.itemsize == storage.itemsize):
        return x.view(storage)
    where = "ml_dtypes" if info.numpy in NAMED else "np"
    raise InputError(
        refusal(
            "OX5004",
            f"the array does not hold {info.name}",
            got=str(x.dtype),
            required=info.numpy,
            fix=f"x.astype({where}.{info.numpy}) converts; x.view keeps the bits",
        )
    )


def packed_rows(values: npt.NDArray[Any], info: DTypeInfo) -> npt.NDArray[Any]:
    """One value in each byte -> rows of packed bytes.

    Raises:
        InputError: for values of more bits (OX5018).
    """
    most = (1 << info.bits) - 1
    if values.size and int(values.max()) > most:
        where = [int(i) for i in next(zip(*(values > most).nonzero(), strict=True))]
        raise InputError(
            refusal(
                "OX5018",
                f"a value has more bits than {info.name} holds",
                got=f"{int(values[tuple(where)])} at {tuple(where)}",
                required=f"0 to {most}: one value of {info.bits} bits in each byte",
                fix=f"x & {most:#x} keeps the low bits; bytes that are packed already: dev.array(x).packed(ox.{info.name})",
            )
        )
    return pack(values, info.bits)


def extents(shape: object) -> tuple[int, ...]:
    """`shape` as integers.

    Raises:
        InputError: when it is no tuple of them, or empty, or of a wrong rank.
    """
    if not isinstance(shape, tuple):
        fix = f"({shape},)" if type(shape) is int else "a tuple such as (128, 256)"
        raise InputError(
            refusal(
                "OX5009",
                "the shape is no tuple",
                got=f"{shape!r} ({type(shape).__name__})",
                required="a tuple of positive integers",
                fix=fix,
            )
        )
    numbers = [_extent(entry) for entry in shape]
    wrong = [f"entry {i} is {entry!r}" for i, (entry, n) in enumerate(zip(shape, numbers, strict=True)) if n is None]
    if wrong:
        raise InputError(
            refusal(
                "OX5009",
                "the shape has entries that are no extents",
                got=", ".join(wrong),
                required="positive integers",
                fix="`//` keeps a quotient whole",
            )
        )
    whole = tuple(n for n in numbers if n is not None)
    faults = shape_faults(whole, "the array")
    if faults:
        raise InputError(*faults)
    return whole


def _extent(entry: object) -> int | None:
    """A non-negative integer (numpy's too, bool is not), else None."""
    if isinstance(entry, bool):
        return None
    try:
        n = operator.index(entry)  # type: ignore[arg-type]  # that is the question
    except TypeError:
        return None
    return n if n >= 0 else None
