"""Packed elements on the host: numpy holds one value of 4 or 6 bits in each uint8, memory holds a stream of bits.

Element i of a row is bits `bits * i` and up of the row's bytes, the lowest bit of a byte first: two 4-bit values in a byte with the first
one low, four 6-bit values in three bytes. Every row starts on a byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from oxidecopy.errors import UsageError
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.refusal import described, refuse

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

VIEW: Final = "OX5044"


def pack(values: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Rows of values, below 2 ** bits each, as rows of bytes."""
    import numpy as np

    each = np.unpackbits(values[..., None], axis=-1, count=bits, bitorder="little")
    return np.packbits(each.reshape(*values.shape[:-1], -1), axis=-1, bitorder="little")


def unpack(data: npt.NDArray[np.uint8], extent: int, bits: int) -> npt.NDArray[Any]:
    """Rows of bytes as rows of `extent` values."""
    import numpy as np

    each = np.unpackbits(data, axis=-1, count=extent * bits, bitorder="little")
    return np.packbits(each.reshape(*data.shape[:-1], extent, bits), axis=-1, bitorder="little")[..., 0]


# ---- between bytes and elements
def bytes_as(dtype: object, source: type[DType], shape: tuple[int, ...], strides_bytes: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of rows of bytes as packed elements."""
    require_packed(dtype, "`packed`")
    info = dtype.info  # type: ignore[attr-defined]  # it is one
    if source.info.name != "u8":
        _refuse(
            f"an array of {source.info.name} is not taken as packed elements",
            source.info.name,
            "ox.u8: the bytes of rows",
            "borrow or upload it as ox.u8",
        )
    if shape[-1] * 8 % info.bits:
        _refuse("rows end inside a packed element", f"rows of {shape[-1]} bytes", f"a multiple of {info.bits // 2} bytes", "pad the rows")
    if strides_bytes[-1] != 1 and shape[-1] > 1:
        _refuse(
            "the bytes of a row do not follow each other",
            f"{strides_bytes[-1]} bytes from one to the next",
            "1",
            "keep the last dimension last",
        )
    return (*shape[:-1], shape[-1] * 8 // info.bits)


def require_packed(dtype: object, what: str) -> None:
    """One of the packed types."""
    if not (isinstance(dtype, type) and issubclass(dtype, DType) and "info" in dtype.__dict__ and dtype.info.packed):
        got = dtype.__name__ if isinstance(dtype, type) else described(dtype)
        _refuse(f"{what} is for packed elements", got, "ox.u4x16_align8b, ox.u4x16_align16b or ox.u6x16_align16b", "use the array as it is")


def refuse_view(dtype: type[DType]) -> None:
    """Views count in elements that have an address."""
    if dtype.info.packed:
        name = dtype.info.name
        _refuse(f"there are no views of packed {name}", name, "an array of whole bytes", f"view its bytes: a.bytes[...].packed(ox.{name})")


def _refuse(what: str, got: str, required: str, fix: str) -> NoReturn:
    refuse(UsageError, VIEW, what, got=got, required=required, fix=fix)
