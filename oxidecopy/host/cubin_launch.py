"""Launches of own kernels: arguments bound to a declaration, laid out as the cubin has its parameters, and handed to the engine."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeAlias, final

from oxidecopy.engines.base import RawLaunch, RawParameter, SupportsCubins
from oxidecopy.engines.cuda.elf import CubinInfo, KernelInfo
from oxidecopy.errors import ArgumentError, DeviceError, Diagnostic
from oxidecopy.host.arguments import Arguments, bind
from oxidecopy.host.bound import PLAIN
from oxidecopy.host.pipeline import Grid, SupportsCudaStream, check_stream, grid_of
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.runtime import Options
from oxidecopy.typed.global_array import storage_dtype
from oxidecopy.typed.refusal import flag, refuse
from oxidecopy.typed.signature import Formal
from oxidecopy.typed.sites import caller_site

if TYPE_CHECKING:
    from oxidecopy.engines.base import Bindings, BoundArray, BoundMap

P = ParamSpec("P")
Shape: TypeAlias = int | tuple[int] | tuple[int, int] | tuple[int, int, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A kernel with its declaration, which fit each other."""

    image: bytes
    cubin: CubinInfo
    kernel: KernelInfo
    signature: inspect.Signature
    formals: tuple[Formal, ...]
    threads: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    shared_bytes: int


@final
class CubinLaunch:
    """A launch of an own kernel with everything checked and laid out; call it as often as you like."""

    def __init__(self, engine: SupportsCubins, raw: RawLaunch, stream: object) -> None:
        self._engine = engine
        self._raw = raw
        self._stream = stream

    def __call__(self) -> None:
        """Launches. What the kernel does to memory is its own affair."""
        self._engine.launch_raw(self._raw, self._stream)


@final
class CubinLaunchable(Generic[P]):
    """An own kernel with its grid."""

    def __init__(self, declared: Declared, grid: Grid, options: Options = PLAIN) -> None:
        self._declared = declared
        self._grid = grid
        self._options = options

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Checks the arguments and launches."""
        self.prepare(*args, **kwargs)()

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> CubinLaunch:
        """Checks the arguments and lays them out, without launching."""
        of = self._declared
        given = bind(of.kernel.name, of.signature, of.formals, self._grid, args, kwargs)
        _check_widths(of, given.bindings)
        engine = _machine(of, given)
        parameters = tuple(
            RawParameter(name=formal.name, offset=place.offset, nbytes=place.size, value=_value(formal, place.size, given.bindings))
            for formal, place in zip(of.formals, of.kernel.parameters, strict=True)
        )
        raw = RawLaunch(
            image=of.image,
            kernel=of.kernel.name,
            grid=self._grid,
            threads=of.threads,
            cluster=of.cluster,
            shared_bytes=of.shared_bytes,
            parameters=parameters,
            parameter_bytes=of.kernel.parameter_bytes,
            compiled_cluster=of.kernel.cluster,
            cooperative=self._options.cooperative,
            programmatic=self._options.programmatic,
        )
        return CubinLaunch(engine, raw, self._options.stream)

    def on(self, stream: SupportsCudaStream | int, /) -> CubinLaunchable[P]:
        """The same, ordered on a CUDA stream."""
        check_stream(stream)
        return CubinLaunchable(self._declared, self._grid, self._options._replace(stream=stream))

    def attributes(self, *, cooperative: bool = False, programmatic: bool = False) -> CubinLaunchable[P]:
        """The same with launch attributes of the driver.

        Args:
            cooperative: all CTAs are to be on the device at once, as grid-wide synchronisation needs; refused where they cannot be.
            programmatic: let it begin while the kernel before it on its stream is still ending (programmatic dependent launch). The kernel
                has to wait for that one itself (griddepcontrol.wait) before it touches what it wrote.
        """
        chosen = {"cooperative": flag(cooperative, "cooperative"), "programmatic": flag(programmatic, "programmatic")}
        return CubinLaunchable(self._declared, self._grid, self._options._replace(**chosen))


@final
class CubinKernel(Generic[P]):
    """A declared kernel of a cubin. `kernel[grid](...)` launches it."""

    def __init__(self, declared: Declared, fn: Callable[P, None]) -> None:
        self._declared = declared
        self.__doc__ = fn.__doc__
        self.__name__ = getattr(fn, "__name__", repr(fn))
        self.__module__ = fn.__module__

    @property
    def info(self) -> KernelInfo:
        """What the cubin says of it."""
        return self._declared.kernel

    def __getitem__(self, grid: Shape | Grid, /) -> CubinLaunchable[P]:
        shape = grid_of(grid)
        cluster = self._declared.cluster or self._declared.kernel.cluster or (1, 1, 1)
        broken = [
            Diagnostic(
                rule="OX5411",
                what=f"the grid is no whole number of clusters in {axis}",
                got=f"{n} CTAs",
                required=f"a multiple of {of}",
                fix=f"round it up: {-(-n // of) * of}",
                site=caller_site(),
            )
            for axis, n, of in zip("xyz", shape, cluster, strict=True)
            if n % of
        ]
        if broken:
            raise ArgumentError(*broken)
        return CubinLaunchable(self._declared, shape)

    if not TYPE_CHECKING:

        def __call__(self, *_: object, **__: object) -> None:
            """Refuses: a launch needs a grid."""
            name = self.__name__
            what, got, fix = f"{name!r} is launched without a grid", f"{name}(...)", f"{name}[4, 2](...)"
            refuse(ArgumentError, "OX1033", what, got=got, required="a grid in brackets", fix=fix)


# ---- launching
def _check_widths(of: Declared, bindings: Bindings) -> None:
    """Each index fits the integer that the kernel has for it."""
    broken: list[Diagnostic] = []
    for formal, place in zip(of.formals, of.kernel.parameters, strict=True):
        bound = 1 << (8 * place.size - 1)
        if formal.kind == "idx" and not -bound <= bindings.idx[formal.name] < bound:
            what = f"{formal.name!r} does not fit the integer that kernel {of.kernel.name!r} has for it"
            required = f"{place.size} bytes, signed: {-bound} to {bound - 1}"
            fix = "take a `long long` in the kernel, or declare it ox.Scalar[ox.u32]"
            got = str(bindings.idx[formal.name])
            broken.append(Diagnostic(rule="OX5412", what=what, got=got, required=required, fix=fix, site=caller_site()))
    if broken:
        raise ArgumentError(*broken)


def _machine(of: Declared, given: Arguments) -> SupportsCubins:
    """The engine, when it runs this machine code."""
    engine: object = given.engine
    if not isinstance(engine, SupportsCubins):
        what = f"kernel {of.kernel.name!r} is machine code, which {given.engine.name!r} cannot run"
        required, fix = f"a GPU of {of.cubin.arch}", 'Device.open("cuda:0"); what is to run on the simulator, too, is written as a pipeline'
        refuse(DeviceError, "OX5409", what, got=f"device {given.engine.name!r}", required=required, fix=fix)
    if not of.cubin.runs_on(given.engine.sm):
        what = f"kernel {of.kernel.name!r} is compiled for another GPU"
        required = f"{of.cubin.arch}: compute capability {of.cubin.sm // 10}.{of.cubin.sm % 10}"
        got = f"{given.engine.name!r} of compute capability {given.engine.sm // 10}.{given.engine.sm % 10}"
        refuse(DeviceError, "OX5410", what, got=got, required=required, fix=f"compile it with -arch=sm_{given.engine.sm}")
    return engine


def _value(formal: Formal, nbytes: int, bindings: Bindings) -> BoundMap | tuple[BoundMap, ...] | BoundArray | bytes:
    """An argument as it goes into the parameters."""
    match formal.kind:
        case "map":
            return bindings.maps[formal.name]
        case "table":
            return tuple([bound for name, bound in bindings.maps.items() if name.startswith(f"{formal.name}[")])  # in their order
        case "array":
            return bindings.arrays[formal.name]
        case "idx":
            return bindings.idx[formal.name].to_bytes(nbytes, "little", signed=True)
        case _:
            import numpy as np

            with np.errstate(over="ignore"):  # a float that is too large is an infinity
                return np.asarray(bindings.scalars[formal.name]).astype(storage_dtype(DTYPES[str(formal.dtype)])).tobytes()
