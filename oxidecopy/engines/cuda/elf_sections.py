"""The container that a cubin is: an ELF-64 file with its sections, kernel symbols and NVIDIA's lists of attributes.

Input is not trusted. Every offset, size and count is checked before it is used, and all work is bounded by the size of the file: a damaged
one gives a `CubinError` with rule OX5403, something else than a cubin one with OX5402. What the attributes mean is `elf`'s business.

Sources: the ELF-64 format (System V gABI) for all but the attributes, whose form was read off files of NVRTC 12.9 and 13.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn, final

from oxidecopy.errors import CubinError, Diagnostic

MACHINE_CUDA: Final = 190  # e_machine
_LINKED: Final = 2  # e_type ET_EXEC
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_SYMTAB, _NOBITS = 2, 8  # sh_type
_FUNC: Final = 2  # symbol type
_ENTRY: Final = 0x10  # st_other: a kernel, not a device function
_NAME_MAX: Final = 1 << 15  # bytes: mangled names of templates run to thousands
_ABIS: Final = (7, 8)  # EI_ABIVERSION

_MAGIC: Final = b"\x7fELF"
_FATBIN: Final = "a fatbin, which holds cubins and PTX for several architectures"
_OTHERS: Final = (
    (b"\x50\xed\x55\xba", _FATBIN),
    (b"\xb1\x43\x62\x46", _FATBIN),
    (b"\xed\x43\x4e\x7f", "LTO-IR, which is not machine code yet"),
    (b"BC\xc0\xde", "LLVM bitcode, which is not machine code yet"),
)
_BUILD: Final = "nvcc -cubin -arch=sm_90a -o kernels.cubin kernels.cu"
_EXTRACT: Final = "`cuobjdump -xelf all FILE` takes the cubins out of it; or build one: nvcc -cubin -arch=sm_90a"


@final
@dataclass(frozen=True, slots=True)
class Section:
    """Where a section lies; of one without bytes in the file (`empty`) only the size means something."""

    empty: bool
    kind: int
    offset: int
    size: int
    link: int


@final
@dataclass(frozen=True, slots=True)
class Attribute:
    """One entry of a list: its number, and its bytes (of those without any, none)."""

    number: int
    payload: bytes

    def words(self) -> tuple[int, ...]:
        """The bytes as 32-bit numbers; what is left over at the end is dropped."""
        count = len(self.payload) // 4
        return struct.unpack_from(f"<{count}I", self.payload)


@final
class Elf:
    """A linked cubin's container; making one checks its header and its table of sections.

    Attributes:
        abi: EI_ABIVERSION, which says how `flags` are to be read.
        flags: e_flags.
        sections: by name; of several with one name the last.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._unread = len(data)  # attribute bytes still to be read: sections that share their bytes would multiply the work
        _refuse_others(data, name)
        header = _HEADER.unpack_from(data)
        self.abi: int = header[0][8]
        self.flags: int = header[7]
        rows = self._rows(table_at=header[6], entry_bytes=header[11], count=header[12])
        if header[13] >= len(rows):
            self.fail("its section names are nowhere", got=f"section {header[13]} of {len(rows)}")
        every = [self._section(row) for row in rows]
        self.sections = {self._text(every[header[13]], row[0]): section for row, section in zip(rows, every, strict=True)}
        symbols = self.sections.get(".symtab")
        if symbols is None or symbols.kind != _SYMTAB or symbols.link >= len(every):
            self.fail("it has no symbol table", got=f"{len(every)} sections without one")
        self._symbols, self._strings = symbols, every[symbols.link]

    def fail(self, what: str, *, got: str) -> NoReturn:
        """Refuses the file: it does not hold together."""
        fix = "copy or build it again"
        raise CubinError(
            Diagnostic(
                rule="OX5403", what=f"{self._name} is damaged: {what}", got=got, required="a whole cubin, as ptxas writes it", fix=fix
            )
        )

    def kernels(self) -> dict[str, int]:
        """The index of each kernel's symbol, by name, in the order of the file."""
        found: dict[str, int] = {}
        count = self._symbols.size // _SYMBOL.size
        for index in range(0 if self._symbols.empty else count):
            name_at, info, other, *_ = _SYMBOL.unpack_from(self._data, self._symbols.offset + index * _SYMBOL.size)
            if info & 0xF == _FUNC and other & _ENTRY:
                name = self._text(self._strings, name_at)
                if not name or name in found:
                    self.fail("two kernels have one name, or one has none", got=repr(name))
                found[name] = index
        return found

    def attributes(self, section: str) -> Iterator[Attribute]:
        """The entries of a list of attributes; none when there is no such section."""
        place = self.sections.get(section)
        if place is None or place.empty:
            return
        self._unread -= place.size
        if self._unread < 0:
            self.fail("sections share their bytes", got=section)
        at, end = place.offset, place.offset + place.size
        while at < end:
            if end - at < 4:
                self.fail(f"{section} ends within an attribute", got=f"{end - at} bytes left of {place.size}")
            form, number, value = struct.unpack_from("<BBH", self._data, at)
            if form not in (1, 2, 3, 4):
                self.fail(f"{section} has an attribute of a form that is not known", got=f"form {form} at byte {at - place.offset}")
            size = value if form == 4 else 0
            if at + 4 + size > end:
                self.fail(f"{section} ends within an attribute", got=f"attribute {number:#x} of {size} bytes at byte {at - place.offset}")
            # Forms 1 to 3: nothing, a byte, two bytes, in the entry itself.
            payload = self._data[at + 4 : at + 4 + size] if form == 4 else self._data[at + 2 : at + 1 + form]
            yield Attribute(number, payload)
            at += 4 + size

    def _rows(self, *, table_at: int, entry_bytes: int, count: int) -> list[tuple[int, ...]]:
        end = table_at + count * _SECTION.size
        if entry_bytes != _SECTION.size or not count or end > len(self._data):
            got = f"{count} headers of {entry_bytes} bytes at byte {table_at} of {len(self._data)}"
            self.fail("its section headers are not all there", got=got)
        return list(_SECTION.iter_unpack(self._data[table_at:end]))

    def _section(self, row: tuple[int, ...]) -> Section:
        _, kind, _, _, offset, size, link, *_ = row
        if kind != _NOBITS and offset + size > len(self._data):
            self.fail("a section reaches over its end", got=f"{size} bytes at byte {offset} of {len(self._data)}")
        return Section(kind == _NOBITS, kind, offset, size, link)

    def _text(self, table: Section, at: int) -> str:
        start, stop = table.offset + at, table.offset + table.size
        end = -1 if table.empty else self._data.find(b"\0", start, min(stop, start + _NAME_MAX))
        if end < 0:
            self.fail("a name does not end, or is not in its table", got=f"byte {at} of {table.size}")
        try:
            return self._data[start:end].decode()
        except UnicodeDecodeError:
            self.fail("a name is no text", got=self._data[start : min(end, start + 32)].hex(" "))


# ---- what the bytes may be instead
def _refuse_others(data: bytes, name: str) -> None:
    if data.startswith(_MAGIC) and len(data) >= _HEADER.size:
        _refuse_other_elf(data, name)
        return
    found, fix = next(((words, _EXTRACT) for magic, words in _OTHERS if data.startswith(magic)), ("", ""))
    head = data[:65536]
    if not data:
        found, fix = "no bytes at all", _BUILD
    elif _MAGIC.startswith(data[:4]):
        found, fix = f"the first {len(data)} bytes of one", "copy or build it again: the rest is missing"
    elif not found and b".version" in head and b".target" in head:
        found, fix = "PTX, which a compiler has to turn into machine code", "ptxas -arch=sm_90a -o kernels.cubin FILE"
    elif not found and b"__global__" in head:
        found, fix = "CUDA C++, which a compiler has to turn into machine code", _BUILD
    _refuse(name, found or f"a file that begins with {data[:8].hex(' ')}", fix or _BUILD)


def _refuse_other_elf(data: bytes, name: str) -> None:
    ident, kind, machine, *_ = _HEADER.unpack_from(data)
    if ident[4] != 2 or ident[5] != 1:
        _refuse(name, "an ELF file that is not 64-bit, little-endian", _BUILD)
    if machine != MACHINE_CUDA:
        _refuse(name, f"an object or a program of the host (ELF machine {machine})", _EXTRACT)
    if kind != _LINKED:
        _refuse(name, f"a cubin that is not linked (ELF type {kind})", "build it without -dc and -rdc=true, or link it: nvcc -dlink -cubin")
    if ident[8] not in _ABIS:
        _refuse(name, f"a cubin of ABI version {ident[8]}", f"build it with CUDA 12 or 13 (ABI versions {', '.join(map(str, _ABIS))})")


def _refuse(name: str, got: str, fix: str) -> NoReturn:
    required = "a linked cubin: machine code for one GPU architecture"
    raise CubinError(Diagnostic(rule="OX5402", what=f"{name} is no cubin", got=got, required=required, fix=fix))
