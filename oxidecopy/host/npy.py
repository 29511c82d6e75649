"""Reading and writing `.npy` files, with an error that says what is wrong with the file and a write that is whole or not at all.

The header is read here and not by numpy, so that a damaged file is refused before anything is allocated: the format is 6 magic bytes, a
version, the header's length and a Python literal (numpy.lib.format).
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn, final

from oxidecopy.errors import InputError, UsageError
from oxidecopy.host.arrays import refusal, shape_faults, storage_faults

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MAGIC: Final = b"\x93NUMPY"
_LENGTH_BYTES: Final = {1: 2, 2: 4, 3: 4}  # format version -> size of the header's length field, little endian
_HEADER_MAX: Final = 1 << 16  # bytes; numpy writes about a hundred
_AGAIN: Final = "write the file again with np.save"


@final
@dataclass(frozen=True, slots=True)
class _Header:
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool


def load_npy(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """Reads an array that can go to a device; foreign byte order is turned into this machine's.

    ml_dtypes arrays come back as raw bytes (`V1`, `V2`), which `dev.array(x, ox.bf16)` takes: the format does not keep their names.

    Raises:
        InputError: with what is wrong with the file, or with everything that is wrong with the array in it.
    """
    import numpy as np

    place = Path(path)
    with _open(place) as file:
        header = _header(file, place)
        faults = [
            *shape_faults(header.shape, f"the array in {place}"),
            *storage_faults(header.dtype.newbyteorder("="), f"the array in {place}"),
        ]
        if faults:
            raise InputError(*faults)
        count = prod(header.shape)
        declared, there = count * header.dtype.itemsize, os.fstat(file.fileno()).st_size - file.tell()
        if declared != there:
            what = f"{place} is cut short" if there < declared else f"{place} goes on after its array"
            _refuse(
                "OX5025",
                what,
                got=f"{there:,} bytes after the header",
                required=f"{declared:,} bytes for shape {header.shape} of {header.dtype}",
                fix=_AGAIN,
            )
        flat = np.fromfile(file, header.dtype, count)
    ordered = flat.reshape(header.shape[::-1]).T if header.fortran else flat.reshape(header.shape)
    return ordered.astype(header.dtype.newbyteorder("="), copy=False)


def save_npy(path: str | os.PathLike[str], array: npt.NDArray[Any]) -> None:
    """Writes `array`; when it is interrupted or fails, what was at `path` before is still there, whole.

    Raises:
        UsageError: when the file cannot be written (OX5027).
    """
    import numpy as np

    write_whole(path, lambda file: np.save(file, array, allow_pickle=False))


def write_json(path: str | os.PathLike[str], data: object) -> None:
    """Writes a result as JSON, whole or not at all; raises as `write_whole` does."""
    text = json.dumps(data, indent=2) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


def write_whole(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Calls `write` with a file that takes the place of `path` when it returns, and vanishes when it does not.

    Raises:
        UsageError: when the file cannot be written (OX5027).
    """
    place = Path(path).resolve()  # so that a link keeps pointing to the file
    half_written = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    try:
        if place.exists() and not place.is_file():  # renaming over /dev/null would replace it for everybody
            raise FileExistsError(0, "it is a directory" if place.is_dir() else "it is a device or pipe")
        with half_written.open("xb") as file:
            write(file)
        half_written.replace(place)
    except OSError as problem:
        raise UsageError(
            refusal(
                "OX5027",
                f"{path} cannot be written",
                got=problem.strerror or str(problem),
                required="a file in a folder you may write to",
                fix="choose another place",
            )
        ) from None
    finally:  # on Ctrl-C too
        with contextlib.suppress(OSError):
            half_written.unlink(missing_ok=True)


def _refuse(rule: str, what: str, *, got: str, required: str, fix: str) -> NoReturn:
    raise InputError(refusal(rule, what, got=got, required=required, fix=fix)) from None


def _open(place: Path) -> IO[bytes]:
    """The file, which exists and is one."""
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        near = sorted(p.name for p in place.parent.glob("*.npy"))[:3] if place.parent.is_dir() else []
        there = (
            f"there is {', '.join(near)}"
            if near
            else "no .npy file is in that folder"
            if place.parent.is_dir()
            else f"the folder {place.parent} is not there either"
        )
        _refuse("OX5020", f"{place} does not exist", got=there, required="a .npy file", fix="make one: np.save(path, x)")
    except (OSError, ValueError) as problem:
        _refuse("OX5022", f"{place} cannot be read", got=str(problem), required="a readable file", fix="check the path and its permissions")
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "a device or pipe"
        _refuse(
            "OX5021",
            f"{place} is no file",
            got=kind,
            required="a .npy file",
            fix="name the file inside it" if kind == "a directory" else "save it to a file first",
        )
    try:
        return place.open("rb")
    except OSError as problem:
        _refuse(
            "OX5022",
            f"{place} cannot be read",
            got=problem.strerror or str(problem),
            required="a readable file",
            fix="check its permissions",
        )


def _header(file: IO[bytes], place: Path) -> _Header:
    start = file.read(8)
    if start[:6] != _MAGIC[: len(start)] or not start:
        kinds = ((b"PK", "a zip archive, perhaps a .npz"), (b"\x80", "a Python pickle"), (b"\x89HDF", "an HDF5 file"))
        kind = next((name for magic, name in kinds if start.startswith(magic)), f"it begins with {start[:6]!r}" if start else "it is empty")
        fix = "np.save('x.npy', np.load('x.npz')['name'])" if start.startswith(b"PK") else "np.save(path, x) writes one"
        _refuse("OX5023", f"{place} is no .npy file", got=kind, required=f"the magic bytes {_MAGIC!r}", fix=fix)
    field = _LENGTH_BYTES.get(start[6]) if len(start) == 8 else 0
    if field is None:
        _refuse(
            "OX5024",
            f"the header of {place} is damaged",
            got=f"format version {start[6]}.{start[7]}",
            required="version 1, 2 or 3",
            fix=_AGAIN,
        )
    length = int.from_bytes(file.read(field), "little")
    text = file.read(length) if length <= _HEADER_MAX else b""
    if not text or len(text) != length:
        _refuse(
            "OX5024",
            f"the header of {place} is damaged",
            got=f"{len(text)} of {length:,} bytes",
            required=f"a whole header of 1 to {_HEADER_MAX:,} bytes",
            fix=_AGAIN,
        )
    return _parsed(text, place, "latin1" if start[6] < 3 else "utf8")


def _parsed(text: bytes, place: Path, encoding: str) -> _Header:
    """The header's literal: descr, fortran_order, shape."""
    import numpy as np

    try:
        fields = ast.literal_eval(text.decode(encoding).strip())
        descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
        dtype = np.lib.format.descr_to_dtype(descr)
    except (ValueError, SyntaxError, TypeError, KeyError, IndexError, AttributeError, RecursionError, MemoryError) as problem:
        got = f"{type(problem).__name__}: {problem}".splitlines()[0]
        _refuse(
            "OX5024", f"the header of {place} is damaged", got=got, required="a literal with descr, fortran_order and shape", fix=_AGAIN
        )
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape) or type(fortran) is not bool:
        _refuse(
            "OX5024",
            f"the header of {place} is damaged",
            got=f"shape {shape!r}, fortran_order {fortran!r}",
            required="a tuple of integers and a bool",
            fix=_AGAIN,
        )
    if dtype.hasobject:
        _refuse(
            "OX5026",
            f"{place} holds pickled Python objects, which are not loaded",
            got=str(dtype),
            required="numbers",
            fix="np.save(path, x.astype(np.float32))",
        )
    return _Header(dtype, shape, fortran)
