"""`__cuda_array_interface__`, versions 0 to 3: reading that of other libraries, and writing ours.

https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
"""

from __future__ import annotations

import operator
from typing import Any, Final

from oxidecopy.errors import Diagnostic, InputError
from oxidecopy.interop.foreign import Foreign, SupportsCudaArray, dense_strides, immutable, malformed
from oxidecopy.typed.sites import caller_site

VERSION: Final = 3
MASKED: Final = "OX5034"

_TYPES: Final = {
    "|u1": "uint8",
    "<u2": "uint16",
    "<u4": "uint32",
    "<u8": "uint64",
    "<i4": "int32",
    "<i8": "int64",
    "<f2": "float16",
    "<f4": "float32",
    "<f8": "float64",
    # What numpy writes for the types of ml_dtypes, and for bytes without a meaning: the caller says what they are.
    "|V1": "raw8",
    "<V1": "raw8",
    "|V2": "raw16",
    "<V2": "raw16",
}
_TYPESTRS: Final = {name: text for text, name in _TYPES.items() if not name.startswith("raw")}


def has_typestr(element: str) -> bool:
    """The interface has a word for the element type: not for bf16 and fp8."""
    return element in _TYPESTRS


def read(of: SupportsCudaArray) -> Foreign:
    """What the object's interface says.

    Raises:
        InputError: for an entry that is missing or means nothing, for a mask.
    """
    said: Any = of.__cuda_array_interface__
    kind = f"{type(of).__name__}.__cuda_array_interface__"
    try:
        shape = tuple(operator.index(n) for n in said["shape"])
        typestr, (address, readonly) = str(said["typestr"]), said["data"]
        given, version, stream = said.get("strides"), int(said["version"]), said.get("stream")
        strides = None if given is None else tuple(operator.index(n) for n in given)
        size = int(typestr[2:])
        pointer = operator.index(address or 0)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise malformed(f"{kind} is not what it should be", repr(problem), "the entries of version 3") from problem
    if not 0 <= version <= VERSION:
        raise malformed(f"{kind} is of a version that is not known", str(version), f"0 to {VERSION}")
    if said.get("mask") is not None:
        raise InputError(
            Diagnostic(
                rule=MASKED,
                what="a masked array is not borrowed",
                got=f"{kind} with a mask",
                required="every element to count",
                fix="fill the masked elements first",
                site=caller_site(),
            )
        )
    if strides is not None and len(strides) != len(shape):
        raise malformed(f"{kind} has strides of another rank", f"{len(strides)} for shape {shape}", "one per dimension")
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int) or stream < 1):
        required, fix = "None, 1 for the default stream, 2 for the per-thread one, or a handle", "dev.array(x) copies what numpy can read"
        if stream == 0 and not isinstance(stream, bool):  # numba's word for its default stream, which the interface does not allow
            fix = "x.bind(0) of numba, and stream= for where its work runs"
        raise malformed(f"{kind} names no stream", f"stream {stream!r}", required, fix)
    return Foreign(
        address=pointer,
        shape=shape,
        strides_bytes=strides or dense_strides(shape, size),
        element=_TYPES.get(typestr, typestr),
        element_bytes=size,
        readonly=bool(readonly) or immutable(of),
        keep=of,
        stream=stream,
    )


def written(lent: Foreign) -> dict[str, object]:
    """The interface of memory of ours, whose element type has a word in it."""
    dense = lent.strides_bytes == dense_strides(lent.shape, lent.element_bytes)
    return {
        "shape": lent.shape,
        "typestr": _TYPESTRS[lent.element],
        "data": (lent.address, lent.readonly),
        "strides": None if dense else lent.strides_bytes,
        "version": VERSION,
        "stream": lent.stream,
    }
