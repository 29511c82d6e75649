"""Reading one tensor of a `.safetensors` file. Its header is JSON: nothing of it is executed, and nothing is allocated that is not there.

The format: 8 bytes, the header's length (little endian); the header, an object of tensors by name, each with dtype, shape and where its
bytes lie behind the header (https://huggingface.co/docs/safetensors, format).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from math import prod
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn, final

from oxidecopy.errors import InputError
from oxidecopy.host.arrays import NAMED, refusal, shape_faults
from oxidecopy.typed.global_array import storage_dtype
from oxidecopy.typed.refusal import described

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DAMAGED: Final = "OX1220"
NO_TENSOR: Final = "OX1221"
OTHER_TYPE: Final = "OX1222"
_HEADER_MAX: Final = 32 << 20  # bytes; ten thousand tensors have about two
_NAMES_SHOWN: Final = 5
# The format's names, and numpy's or ml_dtypes'; types that no array has are refused by name.
_DTYPES: Final = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class _Tensor:
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def read_safetensors(path: str | os.PathLike[str], name: str | None = None) -> npt.NDArray[Any]:
    """The tensor `name` of a file, of an ml_dtypes type for bf16 and fp8; without a name the only one that there is.

    Raises:
        InputError: the file cannot be read or is damaged, has no such tensor, or one of a type or rank that no array has.
    """
    import numpy as np

    required = "a readable .safetensors file"
    try:
        place = Path(path)
        kind = place.stat().st_mode
        file = place.open("rb") if S_ISREG(kind) or S_ISDIR(kind) else None  # opening a pipe would wait for who writes to it
    except TypeError:
        _refuse(DAMAGED, "this is no path", got=described(path), required=required, fix='a str or a Path: "model.safetensors"')
    except (OSError, ValueError) as problem:  # ValueError: a zero in it
        got = getattr(problem, "strerror", None) or str(problem)
        _refuse(DAMAGED, f"{str(path)!r} cannot be read", got=got, required=required, fix="check the path")
    if file is None:
        _refuse(DAMAGED, f"{place} cannot be read", got="no regular file", required=required, fix="check the path")
    with file:
        tensors, behind = _header(file, place)
        chosen, tensor = _named(tensors, name, place)
        dtype = _dtype(tensor, chosen)
        faults = shape_faults(tensor.shape, f"tensor {chosen!r}")
        if faults:
            raise InputError(*faults)
        size = os.fstat(file.fileno()).st_size
        declared = prod(tensor.shape) * dtype.itemsize
        if not 0 <= tensor.start <= tensor.stop <= size - behind or tensor.stop - tensor.start != declared:
            _refuse(
                DAMAGED,
                f"tensor {chosen!r} does not lie in {place} as its header says",
                got=f"bytes {tensor.start:,} to {tensor.stop:,} of {size - behind:,}",
                required=f"{declared:,} bytes for shape {tensor.shape} of {tensor.dtype}, inside the file",
                fix="get the file again: it is cut short, or was changed",
            )
        file.seek(behind + tensor.start)
        raw = np.fromfile(file, np.uint8, declared)
    return raw.view(dtype).reshape(tensor.shape)


def _header(file: IO[bytes], place: Path) -> tuple[dict[str, _Tensor], int]:
    """The tensors by name, and where their bytes begin."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    size = os.fstat(file.fileno()).st_size
    if len(start) < 8 or not 2 <= length <= min(_HEADER_MAX, size - 8):
        got = f"a header of {length:,} bytes in a file of {size:,}"
        _refuse(
            DAMAGED, f"{place} is no .safetensors file", got=got, required=f"a header of at most {_HEADER_MAX:,} bytes", fix=_fix(start)
        )
    try:
        data: Any = json.loads(file.read(length))
        found = {name: _tensor(entry) for name, entry in data.items() if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        got = f"{type(problem).__name__}: {problem}".splitlines()[0]
        required = "a JSON object of tensors: dtype, shape, data_offsets"
        _refuse(DAMAGED, f"the header of {place} is damaged", got=got, required=required, fix="get the file again")
    return found, 8 + length


def _fix(start: bytes) -> str:
    return "np.load reads it; pass it as .npy" if start.startswith(b"\x93NUMPY") else "get the file again, or save it with safetensors"


def _tensor(entry: Any) -> _Tensor:
    shape, (start, stop), dtype = entry["shape"], entry["data_offsets"], entry["dtype"]
    numbers = [*shape, start, stop]
    if not isinstance(dtype, str) or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError(f"dtype {dtype!r}, shape {shape!r}, data_offsets {[start, stop]!r}")
    return _Tensor(dtype, tuple(shape), start, stop)


def _named(tensors: dict[str, _Tensor], name: str | None, place: Path) -> tuple[str, _Tensor]:
    chosen = next(iter(tensors)) if name is None and len(tensors) == 1 else name
    if isinstance(chosen, str) and chosen in tensors:
        return chosen, tensors[chosen]
    names = sorted(tensors)
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    what = f"{place} has several tensors" if chosen is None and names else f"{place} has no tensor {chosen!r}"
    shown = ", ".join(names[:_NAMES_SHOWN])
    _refuse(
        NO_TENSOR,
        what,
        got=f"{shown}{more}" if names else "no tensors",
        required="the name of one",
        fix=f"name={names[0]!r}" if names else "",
    )


def _dtype(tensor: _Tensor, name: str) -> np.dtype[Any]:
    import numpy as np

    known = _DTYPES.get(tensor.dtype)
    if known is None:
        required = ", ".join(_DTYPES)
        _refuse(
            OTHER_TYPE,
            f"tensor {name!r} is of a type that no array has",
            got=tensor.dtype,
            required=required,
            fix="convert it before it is saved",
        )
    return storage_dtype(NAMED[known].info) if known in NAMED else np.dtype(known)


def _refuse(rule: str, what: str, *, got: str, required: str, fix: str) -> NoReturn:
    raise InputError(refusal(rule, what, got=got[:200], required=required, fix=fix)) from None
