"""What a cubin holds: its kernels, the architecture they are compiled for, and each one's resources and parameter table.

It knows bytes only: no driver, no GPU, no file. What does not hold together is a `CubinError` with rule OX5403, and nothing else is raised.

Source: NVIDIA does not document these sections. Their meaning was read off cubins of NVRTC 12.9, NVRTC 13.0 and nvcc 13.0 for sm_75 to
sm_121, compiled from sources that vary one thing at a time. CUDA 12 writes ABI version 7 for sm_90 and older and 8 for newer ones; CUDA 13
writes 8 for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from types import MappingProxyType
from typing import Final, final

from oxidecopy.engines.cuda.elf_sections import Attribute, Elf
from oxidecopy.isa import limits

_SM_OF_CLUSTERS: Final = 90  # compute capability from which there are clusters, and a part of shared memory that the system keeps
_SYSTEM_SHARED: Final = limits.SHARED_BASE  # bytes; they are in a section's size, but not in what a launch may ask for
_ALIGN_SHOWN: Final = 128  # more is an accident of the layout

# ---- attributes of `.nv.info` (per symbol) and `.nv.info.<kernel>`, as cuobjdump names them
_MAX_THREADS, _PARAM_CBANK, _REQNTID = 0x05, 0x0A, 0x10
_FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT = 0x11, 0x12, 0x2F
_KPARAM_INFO, _KPARAM_INFO_V2 = 0x17, 0x45
_CTA_PER_CLUSTER, _MAX_CLUSTER_RANK, _BLOCKS_AS_CLUSTERS = 0x3D, 0x3F, 0x5B
_TRIPLES: Final = (_MAX_THREADS, _REQNTID, _CTA_PER_CLUSTER)
_PER_SYMBOL: Final = (_FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT)
_COMPAT_SPECIFIC: Final = 0x09  # of `.nv.compat`: 1 for the `a` targets; CUDA 13 writes it


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterInfo:
    """One parameter of a kernel, as its cubin has it.

    Attributes:
        offset: bytes from the start of the kernel's parameters.
        size: bytes.
        alignment: of its address in constant memory, in bytes: the largest power of two that divides it, at most 128.
    """

    offset: int
    size: int
    alignment: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KernelInfo:
    """One kernel of a cubin, as it was compiled.

    Attributes:
        name: its symbol; mangled unless the kernel is `extern "C"`.
        arch: such as "sm_90a".
        registers: of each thread.
        shared_bytes: static shared memory of a CTA, without the 1,024 bytes that the system keeps.
        local_bytes: local memory of each thread: its stack and spilled registers, which a cubin does not tell apart.
        parameters: in order.
        parameter_bytes: what all of them take, gaps included.
        max_threads: the most threads of a CTA: of `__launch_bounds__`, else the hardware's 1,024.
        block: the one block (x, y, z) that it was compiled for, if it was.
        cluster: the cluster (x, y, z) that it was compiled for, if it was.
        max_cluster: the most CTAs of a cluster, if it was compiled for a bound.
        grid_counts_clusters: its grid would be in clusters, not in CTAs (`__block_size__` with two arguments).
    """

    name: str
    arch: str
    registers: int
    shared_bytes: int
    local_bytes: int
    parameters: tuple[ParameterInfo, ...]
    parameter_bytes: int
    max_threads: int
    block: tuple[int, int, int] | None
    cluster: tuple[int, int, int] | None
    max_cluster: int | None
    grid_counts_clusters: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CubinInfo:
    """What a cubin holds.

    Attributes:
        sm: compute capability it is compiled for, 90 for 9.0.
        specific: compiled for this one alone: the `a` of sm_90a.
        kernels: by name, in the order of the file.
    """

    sm: int
    specific: bool
    kernels: Mapping[str, KernelInfo]

    @property
    def arch(self) -> str:
        """As compilers take it. The `f` of a family's target is not in a cubin; it loads where the plain one does."""
        return _arch_name(self.sm, specific=self.specific)

    def runs_on(self, sm: int) -> bool:
        """True for the same compute capability, and, unless specific, for later ones of the same major (CUDA's binary compatibility)."""
        return sm == self.sm or (not self.specific and sm // 10 == self.sm // 10 and sm > self.sm)


def read_cubin(data: bytes, name: str = "the cubin") -> CubinInfo:
    """What a cubin holds.

    Args:
        data: the whole file.
        name: what errors call it.

    Raises:
        CubinError: it is something else than a linked cubin (OX5402), or a damaged one (OX5403).
    """
    elf = Elf(data, name)
    sm, specific = _architecture(elf)
    arch = _arch_name(sm, specific=specific)
    of_symbols = _by_symbol(elf)
    kernels: dict[str, KernelInfo] = {}
    for kernel, symbol in elf.kernels().items():
        if f".text.{kernel}" not in elf.sections:
            elf.fail(f"kernel {kernel!r} has no code", got=f"no section .text.{kernel}")
        kernels[kernel] = _kernel(elf, kernel, arch, _shared_bytes(elf, kernel, sm), of_symbols[symbol])
    return CubinInfo(sm=sm, specific=specific, kernels=MappingProxyType(kernels))


# ---- the whole file
def _arch_name(sm: int, *, specific: bool) -> str:
    return f"sm_{sm}{'a' if specific else ''}"


def _architecture(elf: Elf) -> tuple[int, bool]:
    """Compute capability, and whether the code is for it alone."""
    if elf.abi == 7:
        sm, specific = elf.flags & 0xFF, bool(elf.flags & 0x800)
    else:
        sm, specific = elf.flags >> 8 & 0xFFFF, bool(elf.flags & 0x8)
    specific = specific or any(a.number == _COMPAT_SPECIFIC and a.payload[:1] == b"\x01" for a in elf.attributes(".nv.compat"))
    if not 30 <= sm < 1000:
        elf.fail("it names an architecture that no GPU has", got=f"e_flags {elf.flags:#010x} of ABI version {elf.abi}")
    return sm, specific


def _by_symbol(elf: Elf) -> defaultdict[int, dict[int, int]]:
    """Registers and stack by symbol."""
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for attribute in elf.attributes(".nv.info"):
        if attribute.number in _PER_SYMBOL:
            symbol, value = _words(elf, attribute, 2)
            found[symbol][attribute.number] = value
    return found


def _shared_bytes(elf: Elf, kernel: str, sm: int) -> int:
    section = elf.sections.get(f".nv.shared.{kernel}")
    size = section.size if section else 0
    if size > limits.CTA_WINDOW_BYTES:
        elf.fail(f"kernel {kernel!r} has more shared memory than there is", got=f"{size} bytes")
    return max(0, size - _SYSTEM_SHARED) if sm >= _SM_OF_CLUSTERS else size


# ---- one kernel
@final
@dataclass(slots=True)
class _Found:
    """The attributes of a kernel, as they are met."""

    triples: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    parameters: dict[int, tuple[int, int]] = field(default_factory=dict)  # offset and size by ordinal
    bank_base: int = 0  # where parameters begin in constant memory
    parameter_bytes: int = 0
    max_cluster: int | None = None
    grid_counts_clusters: bool = False


def _kernel(elf: Elf, kernel: str, arch: str, shared_bytes: int, of_symbol: Mapping[int, int]) -> KernelInfo:
    found = _Found()
    for attribute in elf.attributes(f".nv.info.{kernel}"):
        _take(elf, found, attribute)
    registers = of_symbol.get(_REGCOUNT, 0)
    if not 1 <= registers <= 256:
        elf.fail(f"kernel {kernel!r} has no count of registers", got=str(registers))
    threads, block, cluster = (found.triples.get(number) for number in _TRIPLES)
    return KernelInfo(
        name=kernel,
        arch=arch,
        registers=registers,
        shared_bytes=shared_bytes,
        local_bytes=max(of_symbol.get(_FRAME_SIZE, 0), of_symbol.get(_MIN_STACK_SIZE, 0)),
        parameters=_parameters(elf, kernel, found),
        parameter_bytes=found.parameter_bytes,
        max_threads=min(prod(block or threads or (limits.THREADS_MAX,)), limits.THREADS_MAX),
        block=block,
        cluster=cluster,
        max_cluster=found.max_cluster,
        grid_counts_clusters=found.grid_counts_clusters,
    )


def _take(elf: Elf, found: _Found, attribute: Attribute) -> None:
    """Notes what a launch needs to know; most attributes are of no interest to one."""
    number = attribute.number
    if number in _TRIPLES:
        x, y, z = _words(elf, attribute, 3)
        if not x * y * z:
            elf.fail("a block or a cluster has an extent of 0", got=f"({x}, {y}, {z})")
        found.triples[number] = (x, y, z)
    elif number in (_KPARAM_INFO, _KPARAM_INFO_V2):
        _take_parameter(elf, found, attribute)
    elif number == _PARAM_CBANK:
        _, place = _words(elf, attribute, 2)
        found.bank_base, found.parameter_bytes = place & 0xFFFF, place >> 16
    elif number == _MAX_CLUSTER_RANK:
        (found.max_cluster,) = _words(elf, attribute, 1)
    elif number == _BLOCKS_AS_CLUSTERS:
        found.grid_counts_clusters = True


def _take_parameter(elf: Elf, found: _Found, attribute: Attribute) -> None:
    """Three words: an index that is 0, ordinal and offset, and the size: in the upper 14 bits, or, of a second kind, in the lower 16."""
    _, place, shape = _words(elf, attribute, 3)
    ordinal = place & 0xFFFF
    if ordinal in found.parameters:
        elf.fail("a kernel has two parameters with one number", got=str(ordinal))
    found.parameters[ordinal] = (place >> 16, shape >> 18 if attribute.number == _KPARAM_INFO else shape & 0xFFFF)


def _parameters(elf: Elf, kernel: str, found: _Found) -> tuple[ParameterInfo, ...]:
    """The table, which must be a table: all ordinals, in order, without overlap, within the parameters' bytes."""
    table = found.parameters
    if sorted(table) != list(range(len(table))):
        elf.fail(f"parameters of kernel {kernel!r} are missing", got=f"numbers {', '.join(map(str, sorted(table)[:20]))}")
    rows = [table[i] for i in range(len(table))]
    ends = [(offset + size, after) for (offset, size), (after, _) in pairwise([*rows, (found.parameter_bytes, 0)])]
    if not all(size for _, size in rows) or any(end > after for end, after in ends):
        shown = ", ".join(f"{size} bytes at {offset}" for offset, size in rows[:20])
        elf.fail(f"parameters of kernel {kernel!r} overlap or are nowhere", got=f"{shown}, in {found.parameter_bytes} bytes")
    return tuple(ParameterInfo(offset=offset, size=size, alignment=_alignment(found.bank_base + offset)) for offset, size in rows)


def _alignment(address: int) -> int:
    return min(address & -address, _ALIGN_SHOWN) if address else _ALIGN_SHOWN


def _words(elf: Elf, attribute: Attribute, count: int) -> tuple[int, ...]:
    words = attribute.words()
    if len(words) < count:
        elf.fail(
            "an attribute is too short", got=f"{len(attribute.payload)} bytes of attribute {attribute.number:#x}, which has {4 * count}"
        )
    return words[:count]
