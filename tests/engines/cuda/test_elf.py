"""Cubins are read right, whatever compiler wrote them; others and damaged ones are refused by rule: never a crash, never a hang."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oxidecopy.engines.cuda.elf import KernelInfo, read_cubin
from oxidecopy.engines.cuda.nvrtc import compile_cubin, find_library
from oxidecopy.errors import CubinError

FOLDER = Path(__file__).parents[2] / "helpers" / "cubins"
FILES = sorted(FOLDER.glob("*.cubin"))
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
GOOD = (FOLDER / "probe_cuda12.sm_90a.cubin").read_bytes()
_SECTION = struct.Struct("<IIQQQQIIQQ")


def kernel(file: str, name: str) -> KernelInfo:
    return read_cubin((FOLDER / file).read_bytes()).kernels[name]


def table(info: KernelInfo) -> list[tuple[int, int, int]]:
    return [(p.offset, p.size, p.alignment) for p in info.parameters]


def section_of(data: bytes, name: str) -> tuple[int, int, int]:
    """Where a section's header is, and the section itself: offset and size."""
    at, count, names = (*struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 60))
    rows = [_SECTION.unpack_from(data, at + i * _SECTION.size) for i in range(count)]
    start = rows[names][4]
    for i, row in enumerate(rows):
        if data[start + row[0] : data.index(b"\0", start + row[0])].decode() == name:
            return at + i * _SECTION.size, row[4], row[5]
    raise LookupError(name)


def attribute(data: bytes, section: str, number: int) -> int:
    """Where the first attribute of a number begins in a section."""
    _, at, size = section_of(data, section)
    end = at + size
    while at < end:
        form, found, value = struct.unpack_from("<BBH", data, at)
        if found == number:
            return at
        at += 4 + (value if form == 4 else 0)
    raise LookupError(number)


def patched(at: int, value: bytes, data: bytes = GOOD) -> bytes:
    return data[:at] + value + data[at + len(value) :]


# ---- what is in it
@every_file
def test_arch_and_kernels(path: Path) -> None:
    info = read_cubin(path.read_bytes())
    assert path.name.split(".")[1] == info.arch
    names = {"scale", "clustered", "bounded", "fixed", "nothing", "by_pointer", "huge", "_Z7mangledi5Threed"}
    assert info.kernels.keys() == names
    for name, found in info.kernels.items():
        assert (found.name, found.arch) == (name, info.arch)
        assert 4 <= found.registers <= 64


@every_file
def test_resources(path: Path) -> None:
    kernels = read_cubin(path.read_bytes()).kernels
    assert {name: k.shared_bytes for name, k in kernels.items() if k.shared_bytes} == {"scale": 128}
    assert {name: k.local_bytes for name, k in kernels.items() if k.local_bytes} == {"_Z7mangledi5Threed": 400}
    assert {name: k.max_threads for name, k in kernels.items() if k.max_threads != 1024} == {"scale": 128, "bounded": 256, "fixed": 128}
    assert {name: k.block for name, k in kernels.items() if k.block} == {"fixed": (64, 2, 1)}
    assert {name: k.cluster for name, k in kernels.items() if k.cluster} == {"fixed": (2, 1, 1), "clustered": (2, 1, 1)}
    assert {name: k.max_cluster for name, k in kernels.items() if k.max_cluster} == {"bounded": 8}


# On sm_90 parameters begin at 0x210 of constant memory, on sm_100 at 0x380: the compiler aligns a map there, not at its offset.
SCALE = {
    "sm_90a": [(48, 128, 64), (176, 8, 64), (184, 4, 8), (192, 8, 16), (200, 1, 8), (202, 2, 2)],
    "sm_100a": [(0, 128, 128), (128, 8, 128), (136, 4, 8), (144, 8, 16), (152, 1, 8), (154, 2, 2)],
}


@every_file
def test_parameters(path: Path) -> None:
    info = read_cubin(path.read_bytes())
    assert table(info.kernels["scale"]) == SCALE[info.arch]
    assert info.kernels["scale"].parameter_bytes == SCALE[info.arch][-1][0] + 2
    assert [p.size for p in info.kernels["_Z7mangledi5Threed"].parameters] == [4, 12, 8]
    assert info.kernels["nothing"].parameters == ()
    assert info.kernels["nothing"].parameter_bytes == 0
    assert [(p.offset, p.size) for p in info.kernels["huge"].parameters] == [(0, 4100), (4104, 8), (4112, 4)]


def test_only_the_newer_compiler_marks_a_grid_of_clusters() -> None:
    assert kernel("probe_cuda13.sm_90a.cubin", "fixed").grid_counts_clusters
    assert not kernel("probe_cuda13.sm_90a.cubin", "clustered").grid_counts_clusters
    assert not kernel("probe_cuda12.sm_90a.cubin", "fixed").grid_counts_clusters


@pytest.mark.parametrize(("arch", "runs", "runs_not"), [("sm_90", 90, 80), ("sm_90", 90, 100), ("sm_100", 103, 90), ("sm_100", 100, 110)])
def test_plain_code_runs_on_later_minors(arch: str, runs: int, runs_not: int) -> None:
    sm = int(arch.removeprefix("sm_"))
    info = read_cubin(patched(48, struct.pack("<I", sm << 16 | 0x500 | sm)))
    assert info.arch == arch
    assert info.runs_on(runs)
    assert not info.runs_on(runs_not)


def test_specific_code_runs_on_its_own_alone() -> None:
    info = read_cubin((FOLDER / "probe_cuda13.sm_100a.cubin").read_bytes())
    assert [sm for sm in (80, 90, 100, 103, 110, 120) if info.runs_on(sm)] == [100]


@every_file
def test_the_compilers_make_the_same_bytes_again(path: Path) -> None:
    major = 12 if "cuda12" in path.name else 13
    library = find_library(major)
    if library is None:
        pytest.skip(f"no NVRTC {major} is installed")
    source = (FOLDER / "probe.cu").read_text()
    assert compile_cubin(source, arch=path.name.split(".")[1], library=library).cubin == path.read_bytes()


# ---- what is something else
HOST_OBJECT = patched(18, b"\x3e\0")
OTHERS: list[tuple[str, bytes, str]] = [
    ("empty", b"", "no bytes"),
    ("fatbin", b"\x50\xed\x55\xba\1\0\x10\0" + bytes(64), "fatbin"),
    ("wrapped fatbin", b"\xb1\x43\x62\x46" + bytes(64), "fatbin"),
    ("lto", b"\xed\x43\x4e\x7f" + bytes(64), "LTO-IR"),
    ("bitcode", b"BC\xc0\xde" + bytes(64), "bitcode"),
    ("ptx", b"//\n// Generated by NVIDIA NVVM Compiler\n//\n.version 8.8\n.target sm_90a\n.address_size 64\n", "PTX"),
    ("source", b'extern "C" __global__ void f() {}\n', "CUDA C++"),
    ("text", b"hello world", "68 65 6c 6c 6f"),
    ("a start", GOOD[:40], "the first 40 bytes"),
    ("one byte", GOOD[:1], "the first 1 bytes"),
    ("host object", HOST_OBJECT, "ELF machine 62"),
    ("32-bit", patched(4, b"\1"), "64-bit"),
    ("big-endian", patched(5, b"\2"), "little-endian"),
    ("not linked", patched(16, b"\1\0"), "not linked"),
    ("old", patched(8, b"\6"), "ABI version 6"),
    ("newer", patched(8, b"\x09"), "ABI version 9"),
]


@pytest.mark.parametrize(("data", "words"), [pytest.param(data, words, id=name) for name, data, words in OTHERS])
def test_something_else_is_named(data: bytes, words: str) -> None:
    with pytest.raises(CubinError) as caught:
        read_cubin(data, "mine.bin")
    (found,) = caught.value.diagnostics
    assert found.rule == "OX5402"
    assert "mine.bin" in found.what
    assert words in found.got
    assert found.fix


# ---- what is damaged: each one edit away from a good one
def header_of(section: str, field: int, value: int, *, wide: bool = True) -> bytes:
    """`field`: byte in the section's header."""
    return patched(section_of(GOOD, section)[0] + field, struct.pack("<Q" if wide else "<I", value))


def info_edit(number: int, at: int, value: bytes, section: str = ".nv.info.scale") -> bytes:
    """`at`: byte within the attribute, its 4 bytes of head included."""
    return patched(attribute(GOOD, section, number) + at, value)


def second_name() -> bytes:
    """Two kernels of one name: the symbol of one gets the other's."""
    _, start, size = section_of(GOOD, ".symtab")
    entries = [at for at in range(start, start + size, 24) if GOOD[at + 4] & 15 == 2 and GOOD[at + 5] & 16]
    return patched(entries[0], GOOD[entries[1] : entries[1] + 4])


def shared_bytes() -> bytes:
    """Every kernel's list of attributes is the same long one: without a bound, a file of n bytes would take n squared steps."""
    data = GOOD + b"\1\0\0\0" * 10_000
    for name in ("scale", "clustered", "bounded", "fixed", "nothing", "by_pointer", "huge"):
        data = patched(section_of(data, f".nv.info.{name}")[0] + 24, struct.pack("<QQ", len(GOOD), 40_000), data)
    return data


def half_an_attribute() -> bytes:
    """A list of attributes that is the last two bytes of the file."""
    return patched(section_of(GOOD, ".nv.info.scale")[0] + 24, struct.pack("<QQ", len(GOOD) - 2, 2))


DAMAGED: list[tuple[str, Callable[[], bytes], str]] = [
    ("cut in half", lambda: GOOD[: len(GOOD) // 2], "section headers"),
    ("headers elsewhere", lambda: patched(40, struct.pack("<Q", len(GOOD))), "section headers"),
    ("headers far away", lambda: patched(40, b"\xff" * 8), "section headers"),
    ("no headers", lambda: patched(60, b"\0\0"), "section headers"),
    ("headers of another size", lambda: patched(58, b"\x20\0"), "section headers"),
    ("names in no section", lambda: patched(62, b"\xff\xff"), "section names"),
    ("names in the section after the last", lambda: patched(62, GOOD[60:62]), "section names"),
    ("strings in the section after the last", lambda: header_of(".symtab", 40, GOOD[60] | GOOD[61] << 8, wide=False), "symbol table"),
    ("half an attribute at the very end", half_an_attribute, "ends within"),
    ("section behind the end", lambda: header_of(".text.scale", 32, 1 << 40), "reaches over"),
    ("section far away", lambda: header_of(".text.scale", 24, (1 << 64) - 1), "reaches over"),
    ("name behind its table", lambda: header_of(".text.scale", 0, 1 << 30, wide=False), "a name"),
    ("name that is no text", lambda: patched(section_of(GOOD, ".shstrtab")[1] + 1, b"\xff"), "no text"),
    ("no symbols", lambda: header_of(".symtab", 4, 1, wide=False), "symbol table"),
    ("strings in no section", lambda: header_of(".symtab", 40, 999, wide=False), "symbol table"),
    ("two kernels of one name", second_name, "two kernels"),
    ("no code", lambda: patched(GOOD.index(b".text.scale\0"), b".tex_"), "no code"),
    ("no arch", lambda: patched(48, bytes(4)), "architecture"),
    ("attribute of no form", lambda: info_edit(0x17, 0, b"\x07"), "form"),
    ("attribute over the end", lambda: info_edit(0x17, 2, b"\xff\xff"), "ends within"),
    ("attributes cut", lambda: header_of(".nv.info.scale", 32, 30), "ends within"),
    ("attributes cut short", lambda: header_of(".nv.info.scale", 32, 2), "ends within"),
    ("attribute too short", lambda: info_edit(0x36, 1, b"\x17"), "too short"),
    ("parameter twice", lambda: info_edit(0x17, 8, b"\4"), "one number"),
    ("parameter missing", lambda: info_edit(0x17, 8, b"\x40"), "missing"),
    ("parameter of no size", lambda: info_edit(0x17, 12, bytes(4)), "overlap"),
    ("parameter too large", lambda: info_edit(0x17, 12, struct.pack("<I", 4 << 18)), "overlap"),
    ("parameter behind the others' end", lambda: info_edit(0x17, 10, struct.pack("<H", 4000)), "overlap"),
    ("no room for parameters", lambda: info_edit(0x0A, 10, struct.pack("<H", 16)), "overlap"),
    ("block of no threads", lambda: info_edit(0x05, 4, bytes(4)), "extent of 0"),
    ("no registers", lambda: patched(attribute(GOOD, ".nv.info", 0x2F) + 8, bytes(4)), "registers"),
    ("too many registers", lambda: patched(attribute(GOOD, ".nv.info", 0x2F) + 8, b"\0\2\0\0"), "registers"),
    ("shared memory without end", lambda: header_of(".nv.shared.scale", 32, 1 << 62), "shared memory"),
    ("sections in one place", shared_bytes, "share their bytes"),
]


@pytest.mark.parametrize(("make", "words"), [pytest.param(make, words, id=name) for name, make, words in DAMAGED])
def test_damage_is_named(make: Callable[[], bytes], words: str) -> None:
    data = make()
    assert data != GOOD
    with pytest.raises(CubinError) as caught:
        read_cubin(data, "mine.cubin")
    (found,) = caught.value.diagnostics
    assert found.rule == "OX5403"
    assert found.what.startswith("mine.cubin is damaged: ")
    assert words in found.what
    assert found.got


# ---- anything at all
def survives(data: bytes) -> None:
    """It is read, or refused by one of the two rules, in no time."""
    start = process_time()
    refused: CubinError | None = None
    kernels: list[KernelInfo] = []
    try:
        kernels = list(read_cubin(data).kernels.values())
    except CubinError as error:
        refused = error
    assert process_time() - start < 5
    if refused is not None:
        assert refused.rules in {("OX5402",), ("OX5403",)}
        assert all(d.what and d.got and d.required and d.fix for d in refused.diagnostics)
        assert len(str(refused)) < 2000
    for found in kernels:
        ends = [p.offset + p.size for p in found.parameters]
        assert ends == sorted(ends)
        assert max(ends, default=0) <= found.parameter_bytes
        assert all(p.size for p in found.parameters)


many = settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example], deadline=None)
cubins = st.sampled_from([path.read_bytes() for path in FILES])


@many
@given(cubins, st.integers(0, 60_000))
def test_truncated(data: bytes, length: int) -> None:
    survives(data[:length])


@many
@given(cubins, st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 7)), min_size=1, max_size=8))
def test_flipped_bits(data: bytes, flips: list[tuple[int, int]]) -> None:
    changed = bytearray(data)
    for at, bit in flips:
        changed[at % len(data)] ^= 1 << bit
    survives(bytes(changed))


# Bits of code do not matter; these are where the structure is.
@many
@given(
    cubins, st.lists(st.tuples(st.integers(0, 1 << 16), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])), min_size=1, max_size=6), st.booleans()
)
def test_changed_structure(data: bytes, changes: list[tuple[int, int]], in_headers: bool) -> None:
    """Bytes of the headers, or of the attributes."""
    changed = bytearray(data)
    (table_at,) = struct.unpack_from("<Q", data, 40)
    places = [*range(64), *range(table_at, min(len(data), table_at + 64 * struct.unpack_from("<H", data, 60)[0]))]
    if not in_headers:
        places = [at for name in (".nv.info", ".nv.info.scale", ".symtab") for at in range(sum(section_of(data, name)[1:]))[-300:]]
    for at, value in changes:
        changed[places[at % len(places)]] = value
    survives(bytes(changed))


@many
@given(st.binary(max_size=2000), st.sampled_from([b"", GOOD[:20], GOOD[:64]]))
def test_noise(noise: bytes, head: bytes) -> None:
    survives(head + noise)


def test_a_large_file_of_sections_is_read_in_no_time() -> None:
    """As many headers as there can be, each with the longest name: the work is bounded by the file."""
    names = b"a" * 40_000 + b"\0"
    at = 64 + len(names)
    row = _SECTION.pack(0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
    head = GOOD[:40] + struct.pack("<Q", at) + GOOD[48:58] + struct.pack("<HHH", 64, 65_535, 0)
    survives(head + names + row * 65_535)
