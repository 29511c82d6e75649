"""Tensor maps as somebody else has them: bytes or hex digits, from a file, the command line or standard input."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from oxidecopy.errors import Diagnostic, UsageError
from oxidecopy.isa.limits import TABLE_ENTRIES_MAX
from oxidecopy.program.binary import is_binary
from oxidecopy.program.map_bytes import MAP_BYTES

_MOST: Final = TABLE_ENTRIES_MAX * MAP_BYTES
_TEXT_MOST: Final = 16 * _MOST  # hex digits with `0x`, commas and white space between them
_LABEL: Final = re.compile(r"^[^\n:]*:", re.MULTILINE)  # as debuggers begin a line: its address
_BETWEEN: Final = re.compile(r"[\s,;{}\[\]()]+")
_WORD: Final = re.compile(r"0[xX]([0-9a-fA-F]{1,16})[uUlL]*")
_DIGITS: Final = re.compile(r"[0-9a-fA-F]+")
_WORD_BYTES: Final = (1, 4, 8)
_NPY: Final = b"\x93NUMPY"  # how they begin
_SHORTEST: Final = 32  # of an argument taken for digits: shorter ones are names of files


def read_maps(target: str) -> list[bytes] | None:
    """The maps that `target` is or names; None where it names a Python file or a recorded program.

    Raises:
        UsageError: it is neither, or no whole number of maps.
    """
    if target == "-":
        return _split(sys.stdin.buffer.read(_TEXT_MOST + 1), "standard input")
    if len(target) >= _SHORTEST and ":" not in target and _digits(target) is not None:
        return _split(target.encode(), "the argument")
    path = Path(target)
    if path.suffix in (".py", "") and not path.is_file():
        return None  # with `:name`, or not there: loading it as Python says so
    try:
        with path.open("rb") as file:
            data = file.read(_TEXT_MOST + 1)
    except (OSError, ValueError):
        return None
    if path.suffix == ".py" or is_binary(data):
        return None
    return _split(data, target)


def _split(data: bytes, where: str) -> list[bytes]:
    """Hex digits where the text is nothing else, else the bytes themselves."""
    got, fix = f"{len(data):,} bytes", "copy the whole CUtensorMap: sizeof is 128"
    if data.startswith(_NPY):
        got, fix, data = "a .npy file, whose header would be taken for a map", "x.tofile(path) writes the bytes alone", b""
    digits = _digits(data.decode("ascii", "replace"))
    if digits is not None:
        got, data = f"{len(digits):,} hex digits", bytes.fromhex(digits) if len(digits) % 2 == 0 else b""
    if not data or len(data) % MAP_BYTES or len(data) > _MOST:
        raise UsageError(
            Diagnostic(
                rule="OX6023",
                what=f"{where} holds no tensor maps",
                got=got,
                required=f"{MAP_BYTES} bytes, or {2 * MAP_BYTES} hex digits, for each of 1 to {TABLE_ENTRIES_MAX:,} maps",
                fix=fix,
            )
        )
    return [data[i : i + MAP_BYTES] for i in range(0, len(data), MAP_BYTES)]


def _digits(text: str) -> str | None:
    """The bytes as hex digits, of a dump of digits or of words such as `0x00007f20ul` (little endian); None for any other text."""
    entries = [entry for entry in _BETWEEN.split(_LABEL.sub("", text)) if entry]
    words = [match[1] for match in map(_WORD.fullmatch, entries) if match]
    if entries and len(words) == len(entries):
        widest = max(map(len, words))
        sizes = [n for n in _WORD_BYTES if 2 * n >= widest]
        nbytes = next((n for n in sizes if len(words) * n % MAP_BYTES == 0), sizes[0])
        return b"".join(int(word, 16).to_bytes(nbytes, "little") for word in words).hex()
    joined = "".join(entries)
    return joined if _DIGITS.fullmatch(joined) else None
