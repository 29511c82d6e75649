"""`Cubin`: kernels that the user compiled, launched as pipelines are, with descriptors, arrays and scalars held to a typed declaration.

    own = ox.Cubin("scale.sm_90a.cubin")

    @own.kernel("scale", threads=128, shared_bytes=16_392)
    def scale(src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], rows: ox.Idx, alpha: ox.Scalar[ox.f32]) -> None: ...

    scale[4, 2](desc, out, 128, 2.0)

What is in the file is read without a GPU. Nothing of such a kernel is verified, and no simulator runs it: it is machine code. What can be
known is checked: the declaration against the cubin when it is made, a launch's arguments against the declaration, and the device.
"""

from __future__ import annotations

import inspect
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, ParamSpec, final

from oxidecopy.engines.base import SupportsCubins
from oxidecopy.engines.cuda.elf import KernelInfo, read_cubin
from oxidecopy.errors import CubinError, Diagnostic, InputError
from oxidecopy.host.cubin_checks import OptionFaults, signature_faults
from oxidecopy.host.cubin_launch import CubinKernel, Declared, Shape
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.signature import Formal, declared, definition_site
from oxidecopy.typed.sites import caller_locals, caller_site

if TYPE_CHECKING:
    from oxidecopy.host.device import Device

P = ParamSpec("P")
_MAKE: Final = "check the path; nvcc -cubin -arch=sm_90a -o kernels.sm_90a.cubin kernels.cu makes one"
_FILE_MAX: Final = 1 << 30  # bytes; the largest libraries of kernels have cubins of some hundred MiB


@final
class Cubin:
    """A file of compiled kernels.

    Args:
        source: its path, or its bytes.

    Raises:
        InputError: the file cannot be read.
        CubinError: it is no cubin, or a damaged one.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        self.name, self._image = ("cubin", bytes(source)) if isinstance(source, bytes | bytearray) else _read(source)
        try:
            self._info = read_cubin(self._image, self.name)
        except CubinError as error:
            error.diagnostics = tuple(replace(d, site=caller_site()) for d in error.diagnostics)
            raise

    @property
    def kernels(self) -> Mapping[str, KernelInfo]:
        """What is known of each kernel, by name."""
        return self._info.kernels

    @property
    def arch(self) -> str:
        """What it is compiled for, such as "sm_90a": that GPU alone; without the letter also later minors of it."""
        return self._info.arch

    def runs_on(self, device: Device) -> bool:
        """True when the device can launch its kernels: a GPU of its architecture. The simulator runs no machine code."""
        return isinstance(device.engine, SupportsCubins) and self._info.runs_on(device.sm)

    def __repr__(self) -> str:
        """The cubin, and a line for each kernel."""
        return "\n".join([f"Cubin({self.name!r}, {self.arch}, {len(self._image):,} bytes)", *(_line(k) for k in self.kernels.values())])

    def kernel(
        self, name: str, /, *, threads: Shape, cluster: Shape | None = None, shared_bytes: int = 0
    ) -> Callable[[Callable[P, None]], CubinKernel[P]]:
        """Declares a kernel: the decorator of a function whose parameters are the kernel's and whose body is `...`.

        A `TmaDescriptor` is the kernel's `const __grid_constant__ CUtensorMap`. A `GlobalArray` is a pointer to its element 0 and nothing
        more: extents and strides that the kernel needs are parameters of their own. An `Idx` is a signed integer of 4 or 8 bytes, whichever
        the kernel has; a `Scalar` is a value of its element type.

        Args:
            name: the kernel's symbol: its name in the source when that says `extern "C"`, else mangled.
            threads: of each CTA, in x, y and z.
            cluster: CTAs of a cluster in x, y and z; None where it is compiled in, or there is none.
            shared_bytes: dynamic shared memory of each CTA.

        Raises:
            CubinError: when decorating, with all that does not fit the cubin.
        """
        site, names = caller_site(), caller_locals()
        info = _found(self, name)
        faults = OptionFaults(info, self._info.sm, site)
        block, clusters, dynamic = faults.threads(threads), faults.cluster(cluster), faults.shared_bytes(shared_bytes)

        def declare(fn: Callable[P, None]) -> CubinKernel[P]:
            signature, formals = _signature(fn, names)
            broken = [*faults.found, *signature_faults(formals, info, definition_site(fn))]
            if broken:
                raise CubinError(*broken)
            made = Declared(
                image=self._image,
                cubin=self._info,
                kernel=info,
                signature=signature,
                formals=formals,
                threads=block,
                cluster=clusters,
                shared_bytes=dynamic,
            )
            return CubinKernel(made, fn)

        return declare


# ---- reading
def _read(source: object) -> tuple[str, bytes]:
    """Name and bytes of a file."""
    if not isinstance(source, str | os.PathLike):
        _refuse_file("a cubin is named by its path, or given as bytes", described(source), 'ox.Cubin("kernels.sm_90a.cubin")')
    place = Path(source)
    try:
        found = place.stat()
        data = place.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size <= _FILE_MAX else None
    except (OSError, ValueError) as problem:
        _refuse_file(f"{place} cannot be read", getattr(problem, "strerror", None) or str(problem), _MAKE)
    if data is None:
        kinds = ((stat.S_ISDIR, "a directory"), (stat.S_ISREG, f"a file of {found.st_size:,} bytes"))
        _refuse_file(
            f"{place} is no cubin's file", next((words for is_kind, words in kinds if is_kind(found.st_mode)), "a device or pipe"), _MAKE
        )
    return place.name, data


def _refuse_file(what: str, got: str, fix: str) -> NoReturn:
    refuse(InputError, "OX5401", what, got=got, required="a file that can be read", fix=fix)


def _line(kernel: KernelInfo) -> str:
    sizes = " + ".join(str(p.size) for p in kernel.parameters) or "no"
    also = f", {kernel.local_bytes:,} bytes of local memory" if kernel.local_bytes else ""
    return (
        f"  {kernel.name}: {kernel.registers} registers, {kernel.shared_bytes:,} bytes of shared memory{also}, parameters of {sizes} bytes"
    )


def _found(cubin: Cubin, name: object) -> KernelInfo:
    """The kernel of this name; refused with the likely ones when there is none."""
    if isinstance(name, str) and name in cubin.kernels:
        return cubin.kernels[name]
    known = list(cubin.kernels)
    mangled = [k for k in known if isinstance(name, str) and f"{len(name)}{name}" in k]
    near = get_close_matches(str(name), known, 1)
    fix = f'write extern "C" before it in the source, or name it {mangled[0]!r}' if mangled else f"name it {near[0]!r}" if near else ""
    shown = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
    what, required = f"{cubin.name} has no kernel of this name", f"one of {shown}" if known else "a cubin with kernels"
    refuse(CubinError, "OX5404", what, got=described(name), required=required, fix=fix or "`repr(cubin)` lists them")


# ---- declaring
def _signature(fn: Callable[..., None], names: Mapping[str, object]) -> tuple[inspect.Signature, tuple[Formal, ...]]:
    """The declaration's parameters; refused when it is something else than one."""
    site = definition_site(fn)
    fix = "def scale(src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None: ..."

    def fault(what: str, got: str, required: str) -> Diagnostic:
        return Diagnostic(rule="OX5405", what=what, got=got, required=required, fix=fix, site=site or caller_site())

    if not inspect.isfunction(fn):
        raise CubinError(fault("a kernel is declared by a Python function", described(fn), "a `def` without a body"))
    several = [p for p in inspect.signature(fn).parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if several:
        raise CubinError(fault("a kernel has a fixed number of parameters", str(several[0]), "each parameter by name"))
    signature, formals = declared(fn, names=names)
    broken = [
        fault(f"parameter {f.name!r} has no width in a kernel", str(f), "ox.Idx, or an ox.Scalar such as ox.Scalar[ox.i32]")
        for f in formals
        if f.kind == "plain" or (f.kind == "scalar" and DTYPES[str(f.dtype)].bits % 8)
    ]
    if not _is_empty(fn):
        broken.append(fault("the declaration of a kernel has a body, which nothing would run", f"code in {fn.__name__!r}", "`...`"))
    if broken:
        raise CubinError(*broken)
    return signature, formals


def _is_empty(fn: Callable[..., None]) -> bool:
    """True when a function does nothing: its instructions are of the kinds that an empty one has."""
    from dis import get_instructions

    def nothing() -> None: ...

    return {i.opname for i in get_instructions(fn)} <= {i.opname for i in get_instructions(nothing)} | {"COPY_FREE_VARS"}
