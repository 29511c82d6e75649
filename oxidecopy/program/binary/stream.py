"""Bytes written and read one value at a time, with strings and call sites interned; what is read never runs past the end."""

from __future__ import annotations

import struct
from typing import Final, Generic, NoReturn, TypeVar, final

from oxidecopy.errors import Diagnostic, ProgramBinaryError, Site

T = TypeVar("T")
VARINT_MAX: Final = 10  # bytes: 64 bits and a sign
INTEGER_MIN: Final = -(1 << 63)
INTEGER_MAX: Final = (1 << 64) - 1
_REAL: Final = struct.Struct("<d")
# Lone surrogates too: names of files that are no UTF-8 hold them.
_SURROGATES: Final = "surrogatepass"


_MADE_ANEW: Final = "write the file again: `to_binary(program)`; what is damaged cannot be mended"


def refuse(rule: str, what: str, *, got: object = "", required: str = "", fix: str = _MADE_ANEW) -> NoReturn:
    """Raises `ProgramBinaryError`."""
    raise ProgramBinaryError(Diagnostic(rule=rule, what=what, got=str(got)[:80], required=required, fix=fix))


@final
class Writer:
    """Appends to `out`."""

    __slots__ = ("_sites", "_strings", "out")

    def __init__(self) -> None:
        self.out = bytearray()
        self._strings: dict[str, int] = {}
        self._sites: dict[Site, int] = {}

    def byte(self, value: int) -> None:
        """0 to 255."""
        self.out.append(value)

    def unsigned(self, value: int) -> None:
        """Any integer from 0 on."""
        while value >= 0x80:
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)

    def signed(self, value: int) -> None:
        """An integer of at most 64 bits, signed or not."""
        if not INTEGER_MIN <= value <= INTEGER_MAX:
            refuse("OX1965", "an integer of more than 64 bits", got=f"{value.bit_length()} bits", required="at most 64")
        self.unsigned(2 * value if value >= 0 else -2 * value - 1)

    def real(self, value: float) -> None:
        """A float, bit by bit."""
        self.out += _REAL.pack(value)

    def text(self, value: str) -> None:
        """A string, in full only the first time."""
        known = len(self._strings)
        position = self._strings.setdefault(value, known)
        self.unsigned(position)
        if position == known:
            data = value.encode(errors=_SURROGATES)
            self.unsigned(len(data))
            self.out += data

    def site(self, value: Site | None) -> None:
        """A call site, in full only the first time."""
        if value is None:
            self.unsigned(0)
            return
        known = len(self._sites)
        position = self._sites.setdefault(value, known)
        self.unsigned(position + 1)
        if position == known:
            self.text(value.file)
            self.signed(value.line)
            self.text(value.function)


@final
class Reader:
    """Reads `data` from `at` on, in time and memory linear in its length; `name` is what errors call it."""

    __slots__ = ("_data", "_name", "_sites", "_strings", "at")

    def __init__(self, data: bytes, at: int, name: str) -> None:
        self._data = data
        self._name = name
        self._strings = _Interned[str]()
        self._sites = _Interned[Site]()
        self.at = at

    @property
    def left(self) -> int:
        """Bytes that are still to be read."""
        return len(self._data) - self.at

    def refuse(
        self, rule: str, what: str, *, at: int | None = None, got: object = "", required: str = "", fix: str = _MADE_ANEW
    ) -> NoReturn:
        """Refuses what was read at byte `at`, or what is next."""
        place = self.at if at is None else at
        refuse(rule, f"{self._name}, byte {place}: {what}", got=got, required=required, fix=fix)

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size > self.left:
            self.refuse("OX1964", "the body ends too early", got=f"{self.left} bytes left", required=f"{size} more")
        self.at += size
        return self._data[self.at - size : self.at]

    def byte(self) -> int:
        """0 to 255."""
        return self.take(1)[0]

    def unsigned(self) -> int:
        """An integer from 0 on, of at most 70 bits."""
        start, value, shift = self.at, 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if self.at - start == VARINT_MAX:
                self.refuse(
                    "OX1965", "a number without an end", at=start, got=f"{self.at - start} bytes", required=f"at most {VARINT_MAX} bytes"
                )
        if not byte and shift:
            self.refuse("OX1965", "a number that is longer than it need be", at=start, required="its shortest form")
        return value

    def signed(self) -> int:
        """An integer of at most 64 bits, signed or not."""
        start, value = self.at, self.unsigned()
        value = -(value >> 1) - 1 if value & 1 else value >> 1
        if not INTEGER_MIN <= value <= INTEGER_MAX:
            self.refuse("OX1965", "an integer of more than 64 bits", at=start, got=value, required=f"{INTEGER_MIN} to {INTEGER_MAX}")
        return value

    def count(self) -> int:
        """The length of a list, of whose elements each takes at least one byte."""
        start, value = self.at, self.unsigned()
        if value > self.left:
            self.refuse("OX1964", "a list that is longer than what is left", at=start, got=value, required=f"at most {self.left}")
        return value

    def position(self, size: int, what: str) -> int:
        """A position in a list of `size`."""
        start, value = self.at, self.unsigned()
        if value >= size:
            self.refuse("OX1965", f"no such {what}", at=start, got=value, required=f"below {size}")
        return value

    def real(self) -> float:
        """A float, bit by bit."""
        (value,) = _REAL.unpack(self.take(_REAL.size))
        return float(value)

    def text(self) -> str:
        """A string."""
        start = self.at
        known = self._strings
        position = self.position(len(known.values) + 1, "string")
        if position < len(known.values):
            return known.values[position]
        try:
            value = self.take(self.count()).decode(errors=_SURROGATES)
        except UnicodeDecodeError as problem:
            self.refuse("OX1965", "a string that is no UTF-8", at=start, got=problem.reason)
        if not known.add(value):
            self.refuse("OX1965", "a string that was there before", at=start, got=repr(value), required="its number")
        return value

    def site(self) -> Site | None:
        """A call site, or none."""
        start = self.at
        known = self._sites
        position = self.position(len(known.values) + 2, "call site")
        if position <= len(known.values):
            return known.values[position - 1] if position else None
        value = Site(self.text(), self.signed(), self.text())
        if not known.add(value):
            self.refuse("OX1965", "a call site that was there before", at=start, got=repr(str(value)), required="its number")
        return value


@final
class _Interned(Generic[T]):
    """Values in the order in which they were first seen."""

    __slots__ = ("_seen", "values")

    def __init__(self) -> None:
        self.values: list[T] = []
        self._seen: set[T] = set()

    def add(self, value: T) -> bool:
        """False when it is known."""
        if value in self._seen:
            return False
        self._seen.add(value)
        self.values.append(value)
        return True
