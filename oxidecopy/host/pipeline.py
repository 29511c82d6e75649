"""`@ox.pipeline`: a typed function that is recorded at its first launch and run as `pipe[grid](descriptors, arrays, scalars)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, final, overload

from typing_extensions import Self

from oxidecopy.errors import ArgumentError, Diagnostic, UsageError
from oxidecopy.host.arguments import Arguments, bind
from oxidecopy.host.recipe import Recipe, RecipeFunction
from oxidecopy.isa import limits
from oxidecopy.runtime import execute, launch_of, verified
from oxidecopy.tiles.cta import ClusterCta, Cta
from oxidecopy.tiles.roles import Roles
from oxidecopy.typed.recording import record
from oxidecopy.typed.signature import Formal, formals
from oxidecopy.typed.sites import caller_site

if TYPE_CHECKING:
    from oxidecopy.engines.base import Bindings
    from oxidecopy.program.program import Launch, Program
    from oxidecopy.program.verified import VerifiedProgram
    from oxidecopy.typed.recorder import Recorder

P = ParamSpec("P")


class Grid(NamedTuple):
    """CTAs of a launch in x, y and z, as CUDA's gridDim."""

    x: int = 1
    y: int = 1
    z: int = 1


class SupportsCudaStream(Protocol):
    """Any object that names a CUDA stream (cuda.core's protocol)."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


@final
class BoundLaunch:
    """A launch with its arguments checked and its program recorded; call it to verify (once) and run it."""

    def __init__(self, program: Program, arguments: Arguments) -> None:
        self.program = program
        self._arguments = arguments

    @property
    def launch(self) -> Launch:
        """Grid, extents, strides and index values: what the proof is made for."""
        return launch_of(self._arguments.bindings, self._arguments.engine.sm)

    @property
    def bindings(self) -> Bindings:
        """The arguments as engines take them; `oxidecopy.engines.sim.explore` runs the program on them without a proof."""
        return self._arguments.bindings

    def verify(self) -> VerifiedProgram:
        """The proof for this launch; raises VerificationError with every violation."""
        return verified(self.program, self.launch)

    def __call__(self) -> None:
        execute(self._arguments.engine, self.program, self._arguments.bindings)


@final
class Launchable(Generic[P]):
    """A pipeline with its grid."""

    def __init__(self, pipeline: Pipeline[P], grid: Grid) -> None:
        self._pipeline = pipeline
        self._grid = grid

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Records (once for these types), verifies (once for this shape) and runs."""
        self.bind(*args, **kwargs)()

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundLaunch:
        """Checks the arguments and records, without verifying or running."""
        return self._pipeline._bind(self._grid, args, kwargs)

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> BoundLaunch:
        """Checks, records and verifies now; the result can be called many times."""
        bound = self.bind(*args, **kwargs)
        bound.verify()
        return bound

    def on(self, stream: SupportsCudaStream | int, /) -> Self:
        """Orders the launch on a CUDA stream; the simulator runs at once, whatever the stream."""
        if isinstance(stream, bool) or not (isinstance(stream, int) or hasattr(stream, "__cuda_stream__")):
            raise ArgumentError(
                Diagnostic(
                    rule="OX1051",
                    what="no CUDA stream",
                    got=repr(stream),
                    required="an int or an object with __cuda_stream__",
                    site=caller_site(),
                )
            )
        return self


@final
class Pipeline(Generic[P]):
    """A pipeline function. `pipe[grid](...)` launches it; `pipe.recipe` declares how the command line does."""

    def __init__(self, fn: Callable[..., None], *, threads: int, cluster: tuple[int, int, int], roles: Roles | None = None) -> None:
        self._fn = fn
        self.roles = roles
        self.threads = threads
        self.cluster = cluster
        self.recipes: list[RecipeFunction] = []
        self._programs: dict[tuple[tuple[str, object], ...], Program] = {}
        self.__doc__ = fn.__doc__
        self.__name__ = fn.__name__
        self.__module__ = fn.__module__

    @cached_property
    def signature(self) -> inspect.Signature:
        """Parameters after `cta`."""
        return formals(self._fn)[0]

    @cached_property
    def _formals(self) -> tuple[Formal, ...]:
        return formals(self._fn)[1]

    def __getitem__(self, grid: int | tuple[int] | tuple[int, int] | tuple[int, int, int] | Grid, /) -> Launchable[P]:
        return Launchable(self, _grid(grid))

    @overload
    def recipe(self, fn: Callable[..., Recipe], /) -> Callable[..., Recipe]: ...
    @overload
    def recipe(self, /, *, refused: str) -> Callable[[Callable[..., Recipe]], Callable[..., Recipe]]: ...
    def recipe(self, fn: Callable[..., Recipe] | None = None, /, *, refused: str = "") -> Any:
        """Declares how to launch: a function of a device and, optionally, input arrays, that returns a `Recipe`.

        Args:
            refused: for a lesson that is broken on purpose: the id of the rule it must be refused by.
        """

        def declare(fn: Callable[..., Recipe]) -> Callable[..., Recipe]:
            self.recipes.append(RecipeFunction(fn, refused=refused))
            return fn

        return declare if fn is None else declare(fn)

    if not TYPE_CHECKING:

        def __call__(self, *_: object, **__: object) -> None:
            name = self._fn.__name__
            raise ArgumentError(
                Diagnostic(
                    rule="OX1033",
                    what=f"{name!r} is launched without a grid",
                    required="a grid in square brackets",
                    fix=f"{name}[4, 2](...)",
                    site=caller_site(),
                )
            )

    def _cta(self, recorder: Recorder) -> Cta:
        return (Cta if self.cluster == (1, 1, 1) else ClusterCta)(recorder, self.roles)

    def _bind(self, grid: Grid, args: tuple[object, ...], kwargs: dict[str, object]) -> BoundLaunch:
        arguments = bind(self._fn.__name__, self.signature, self._formals, grid, args, kwargs)
        key = tuple((name, (type(spec).__name__, spec)) for name, spec in arguments.specs.items())
        program = self._programs.get(key)
        if program is None:
            program = record(self._fn, threads=self.threads, cluster=self.cluster, arguments=arguments.specs, cta=self._cta)
            self._programs[key] = program
        return BoundLaunch(program, arguments)


@overload
def pipeline(*, threads: int) -> Callable[[Callable[Concatenate[Cta, P], None]], Pipeline[P]]: ...
@overload
def pipeline(*, warps: Roles) -> Callable[[Callable[Concatenate[Cta, P], None]], Pipeline[P]]: ...
@overload
def pipeline(
    *, warps: Roles, cluster: int | tuple[int, int] | tuple[int, int, int]
) -> Callable[[Callable[Concatenate[ClusterCta, P], None]], Pipeline[P]]: ...
@overload
def pipeline(
    *, threads: int, cluster: int | tuple[int, int] | tuple[int, int, int]
) -> Callable[[Callable[Concatenate[ClusterCta, P], None]], Pipeline[P]]: ...
def pipeline(
    *, threads: int | None = None, warps: Roles | None = None, cluster: int | tuple[int, ...] | None = None
) -> Callable[[Callable[..., None]], Pipeline[Any]]:
    """Makes a function a pipeline.

    Args:
        threads: of each CTA, 1 to 1,024; it need not be a multiple of 32.
        warps: instead of `threads`: the roles of the CTA's warps, `ox.roles(producer=1, consumers=4)`.
        cluster: CTAs of a cluster in x, y and z, at most 16 in all (more than 8 are not portable); its `cta` is a `ClusterCta`.
    """
    broken: list[Diagnostic] = []
    shape = (1, 1, 1) if cluster is None else _three(cluster)
    if (warps is None) == (threads is None) or not isinstance(warps, Roles | None):
        broken.append(
            Diagnostic(
                rule="OX1031",
                what="a pipeline is declared with either threads or roles",
                got=f"threads={threads!r}, warps={warps!r}",
                required="threads=128, or warps=ox.roles(...)",
                site=caller_site(),
            )
        )
    elif warps is not None:
        threads = warps.threads
    elif type(threads) is not int or not 1 <= threads <= limits.THREADS_MAX:
        broken.append(
            Diagnostic(
                rule="OX1031",
                what="a CTA cannot have that many threads",
                got=repr(threads),
                required=f"1 to {limits.THREADS_MAX}",
                site=caller_site(),
            )
        )
    if shape is None or shape[0] * shape[1] * shape[2] > limits.CLUSTER_MAX:
        broken.append(
            Diagnostic(
                rule="OX1031",
                what="no such cluster",
                got=repr(cluster),
                required=f"1 to 3 positive ints, at most {limits.CLUSTER_MAX} CTAs in all",
                site=caller_site(),
            )
        )
    if broken or shape is None or threads is None:
        raise UsageError(*broken)
    size, extent = threads, shape
    return lambda fn: Pipeline(fn, threads=size, cluster=extent, roles=warps)


def _three(n: object) -> tuple[int, int, int] | None:
    """An int or up to three of them as x, y, z; None when it is something else."""
    parts = (n,) if type(n) is int else n
    if not isinstance(parts, tuple) or not 1 <= len(parts) <= 3 or not all(type(p) is int and p >= 1 for p in parts):
        return None
    x, y, z = (*parts, 1, 1)[:3]
    return x, y, z


def _grid(grid: object) -> Grid:
    shape = _three(grid)
    if shape is None:
        raise ArgumentError(
            Diagnostic(
                rule="OX1034",
                what="no such grid",
                got=repr(grid),
                required="1 to 3 positive ints: x, y, z",
                fix="pipe[4, 2](...), or ox.Grid(x=4, y=2)",
                site=caller_site(),
            )
        )
    bounds = (limits.GRID_X_MAX, limits.GRID_YZ_MAX, limits.GRID_YZ_MAX)
    broken = [
        Diagnostic(
            rule="OX1034",
            what=f"the grid is too large in {axis}",
            got=str(n),
            required=f"at most {top} (CUDA launch limits)",
            site=caller_site(),
        )
        for axis, n, top in zip("xyz", shape, bounds, strict=True)
        if n > top
    ]
    if broken:
        raise ArgumentError(*broken)
    return Grid(*shape)
