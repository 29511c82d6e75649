"""Does a declaration fit the kernel in the cubin? Parameters against its table, block, cluster and shared memory against its limits.

A cubin knows sizes and places of parameters, not their types: four bytes may be an `int` or a `float`. So count, size and alignment are
checked: what cannot be right is refused. Nothing is raised here; what is wrong is given as diagnostics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final, final

from oxidecopy.engines.cuda.elf import KernelInfo, ParameterInfo
from oxidecopy.errors import Diagnostic, Site
from oxidecopy.host.pipeline import three
from oxidecopy.isa import limits
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.typed.refusal import described, whole
from oxidecopy.typed.signature import Formal

_MAP_BYTES, _MAP_ALIGN = 128, 64  # CUtensorMap (CUDA driver API); PTX 9.7.9.25: the hardware wants it aligned
_POINTER_BYTES: Final = 8
_IDX_BYTES: Final = (4, 8)  # `int` and `long long`
_SM_CLUSTERS: Final = 90  # compute capability from which there are clusters

Three = tuple[int, int, int]


# ---- the signature
def signature_faults(formals: Sequence[Formal], kernel: KernelInfo, site: Site | None) -> Iterator[Diagnostic]:
    """Count first, then each parameter that both have."""
    table = kernel.parameters
    if len(formals) != len(table):
        yield Diagnostic(
            rule="OX5406",
            what=f"kernel {kernel.name!r} has another number of parameters",
            got=f"{len(formals)}: {', '.join(f.name for f in formals) or 'none'}",
            required=f"{len(table)}, of {', '.join(str(p.size) for p in table) or 'no'} bytes",
            fix="declare the parameters of the kernel, in its order",
            site=site,
        )
    for i, (formal, parameter) in enumerate(zip(formals, table, strict=False)):
        if not _fits(formal, parameter):
            yield Diagnostic(
                rule="OX5407",
                what=f"parameter {formal.name!r} is not what kernel {kernel.name!r} has in its place",
                got=f"{formal}: {_needs(formal)}",
                required=f"parameter {i} of the cubin: {_shown(parameter)}",
                fix=_fix(formal, parameter),
                site=site,
            )


def _sizes(formal: Formal) -> tuple[int, ...]:
    """What a parameter may take in the kernel, in bytes."""
    match formal.kind:
        case "map":
            return (_MAP_BYTES,)
        case "array" | "table":
            return (_POINTER_BYTES,)
        case "idx":
            return _IDX_BYTES
        case _:
            return (DTYPES[str(formal.dtype)].nbytes,)


def _alignment(formal: Formal, size: int) -> int:
    return _MAP_ALIGN if formal.kind == "map" else size


def _fits(formal: Formal, parameter: ParameterInfo) -> bool:
    return parameter.size in _sizes(formal) and parameter.alignment >= _alignment(formal, parameter.size)


def _needs(formal: Formal) -> str:
    sizes = _sizes(formal)
    where = f"aligned to {_MAP_ALIGN}" if formal.kind == "map" else "aligned to its size"
    return f"{' or '.join(map(str, sizes))} bytes, {where}"


def _shown(parameter: ParameterInfo) -> str:
    return f"{parameter.size} bytes at offset {parameter.offset}, aligned to {parameter.alignment}"


def _fix(formal: Formal, parameter: ParameterInfo) -> str:
    if formal.kind == "map" and parameter.size == _POINTER_BYTES:
        return f"take the map by value in the kernel: const __grid_constant__ CUtensorMap {formal.name}"
    if formal.kind == "map" and parameter.size == _MAP_BYTES:
        return "declare the struct alignas(64) in the kernel's source, as cuda.h does"
    size = parameter.size
    if size == _MAP_BYTES:
        return "this is the place of an ox.TmaDescriptor"
    kinds = ["ox.GlobalArray"] if size == _POINTER_BYTES else []
    kinds += ["ox.Idx"] if size in _IDX_BYTES else []
    dtypes = [d.name for d in DTYPES.values() if d.bits == 8 * size and "_" not in d.name and d.name != "tf32"]  # one name for each C type
    kinds += [f"ox.Scalar of {', '.join(dtypes)}"] if dtypes else []
    if not kinds:
        return "give its parts to the kernel one by one: no type of parameter has this size"
    return f"for {size} bytes declare {' or '.join(kinds)}"


# ---- block, cluster, shared memory
@final
class OptionFaults:
    """Collects what is wrong with `threads=`, `cluster=` and `shared_bytes=`: what means nothing, and what the driver would refuse."""

    def __init__(self, kernel: KernelInfo, sm: int, site: Site | None) -> None:
        self.found: list[Diagnostic] = []
        self._kernel = kernel
        self._sm = sm
        self._site = site

    def _add(self, what: str, got: object, required: str, fix: str) -> None:
        text = f"kernel {self._kernel.name!r} {what}"
        self.found.append(Diagnostic(rule="OX5408", what=text, got=described(got), required=required, fix=fix, site=self._site))

    def threads(self, given: object) -> Three:
        """The block; of one that means nothing, one thread."""
        block, kernel = three(given), self._kernel
        if block is None:
            self._add("has no such block", given, "1 to 3 positive ints: x, y, z", "threads=128")
            return (1, 1, 1)
        count = prod(block)
        registers = _registers(count, kernel.registers)
        if block[2] > limits.BLOCK_Z_MAX:
            self._add("has too many threads in z", block, f"at most {limits.BLOCK_Z_MAX}", "spread them over x and y")
        if kernel.block is not None and block != kernel.block:
            self._add("is compiled for one block", block, str(kernel.block), f"threads={kernel.block}")
        elif count > kernel.max_threads:
            fix = "take fewer threads, or compile it with larger __launch_bounds__"
            self._add("cannot have so many threads in a block", given, f"at most {kernel.max_threads}", fix)
        elif registers > limits.REGISTERS_PER_CTA:
            required = f"at most {limits.REGISTERS_PER_CTA:,} registers in a block: {kernel.registers} of each thread make {registers:,}"
            self._add("has not enough registers for so many threads", given, required, f"compile it with __launch_bounds__({count})")
        return block

    def cluster(self, given: object) -> Three | None:
        """The cluster; None leaves it to what is compiled in."""
        kernel = self._kernel
        if kernel.grid_counts_clusters:
            fix = "compile it with __cluster_dims__ in place of the second argument of __block_size__"
            self._add("is compiled for grids of clusters", "__block_size__ with a cluster", "a grid of CTAs", fix)
        if given is None:
            return None
        shape = three(given)
        most = min(kernel.max_cluster or limits.CLUSTER_MAX, limits.CLUSTER_MAX)
        if shape is None or prod(shape) > most:
            required = f"1 to 3 positive ints, at most {most} CTAs in all"
            self._add("has no such cluster", given, required, "cluster=(2, 1)")
        elif self._sm < _SM_CLUSTERS and prod(shape) > 1:
            self._add("is compiled for an architecture without clusters", given, "sm_90 or newer", "compile it with -arch=sm_90a")
        elif kernel.cluster is not None and shape != kernel.cluster:
            self._add("is compiled for one cluster", given, str(kernel.cluster), "leave `cluster` out: it is compiled in")
        return shape

    def shared_bytes(self, given: object) -> int:
        """Dynamic shared memory; of what means nothing, none."""
        count, own = whole(given), self._kernel.shared_bytes
        if count is None or count < 0:
            self._add("has no such shared memory", given, "bytes, 0 or more", "shared_bytes=65_536")
            return 0
        most = limits.SHARED_BYTES_MAX.get(self._sm)
        if most is not None and own + count > most:
            required = f"at most {most - own:,}: the {most:,} of {self._kernel.arch}" + (f", less {own:,} of its own" if own else "")
            self._add("cannot have so much dynamic shared memory", given, required, "take smaller tiles, or fewer stages")
        return count


def _registers(threads: int, of_each: int) -> int:
    """Registers that a block takes: warps get them in fours, threads in eights (CUDA Programming Guide, hardware implementation)."""
    warps = -(-threads // limits.WARP)
    return -(-warps // 4) * 4 * limits.WARP * -(-of_each // 8) * 8
