"""`@ox.pipeline`: a typed function that is recorded at its first launch and run as `pipe[grid](descriptors, arrays, scalars)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from math import prod
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeVarTuple,
    Unpack,
    final,
    overload,
)

from oxidecopy.errors import ArgumentError, Diagnostic, UsageError
from oxidecopy.host.arguments import Arguments, bind, check_destinations
from oxidecopy.host.bound import PLAIN, BoundLaunch, PreparedLaunch
from oxidecopy.host.captured import captured
from oxidecopy.host.recipe import Recipe, RecipeFunction
from oxidecopy.isa import limits
from oxidecopy.runtime import Options
from oxidecopy.tiles.cta import ClusterCta, Cta
from oxidecopy.tiles.roles import Roles
from oxidecopy.typed.recording import record
from oxidecopy.typed.refusal import described, flag, refuse, whole
from oxidecopy.typed.signature import Formal, early_formals, formals
from oxidecopy.typed.sites import caller_locals, caller_site, in_package

if TYPE_CHECKING:
    from oxidecopy.program.program import Program
    from oxidecopy.typed.recorder import Recorder

P = ParamSpec("P")
_Args = TypeVarTuple("_Args")


class Grid(NamedTuple):
    """CTAs of a launch in x, y and z, as CUDA's gridDim."""

    x: int = 1
    y: int = 1
    z: int = 1


class SupportsCudaStream(Protocol):
    """Any object that names a CUDA stream (cuda.core's protocol)."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """Version of the protocol, and the stream's handle."""


@final
class Launchable(Generic[P]):
    """A pipeline with its grid, and how it is launched."""

    def __init__(self, pipeline: Pipeline[P], grid: Grid, options: Options = PLAIN) -> None:
        self._pipeline = pipeline
        self._grid = grid
        self._options = options

    def __repr__(self) -> str:
        return f"{self._pipeline!r}[{', '.join(map(str, self._grid))}]"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Records (once for these types), verifies (once for this shape) and runs: to the end, but for `.on(stream)`."""
        self.bind(*args, **kwargs)()

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundLaunch:
        """Checks the arguments and records, without verifying or running."""
        return BoundLaunch(*self._pipeline.bind_on(self._grid, args, kwargs), self._options)

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> PreparedLaunch[P]:
        """Checks, records, verifies and packs now; the result can be called many times, and given other arguments of the same shape."""
        bind = partial(self._pipeline.bind_on, self._grid)
        return PreparedLaunch(*bind(args, kwargs), self._options, bind)

    def on(self, stream: SupportsCudaStream | int, /) -> Launchable[P]:
        """The same on a CUDA stream: calls do not wait for the end. The simulator runs at once, whatever the stream."""
        check_stream(stream)
        return Launchable(self._pipeline, self._grid, self._options._replace(stream=stream))

    def attributes(self, *, cooperative: bool = False, programmatic: bool = False) -> Launchable[P]:
        """The same with launch attributes of the driver; the simulator has no use for them.

        Args:
            cooperative: refuse the launch unless all its CTAs can be on the device at once.
            programmatic: let it begin while the launch before it on its stream is still ending (programmatic dependent launch). It waits
                for that one's end before it touches memory, so results are the same: only its start is hidden.
        """
        chosen = {"cooperative": flag(cooperative, "cooperative"), "programmatic": flag(programmatic, "programmatic")}
        return Launchable(self._pipeline, self._grid, self._options._replace(**chosen))


class LaunchOf(Protocol[Unpack[_Args]]):
    """A launch of whatever pipeline takes these arguments, in this order: what `PipelineOf` gives."""

    def __call__(self, *args: Unpack[_Args]) -> None:
        """As of `pipe[grid]`."""

    def bind(self, *args: Unpack[_Args]) -> BoundLaunch:
        """As of `pipe[grid]`."""

    def on(self, stream: SupportsCudaStream | int, /) -> LaunchOf[Unpack[_Args]]:
        """As of `pipe[grid]`."""


class PipelineOf(Protocol[Unpack[_Args]]):
    """Any pipeline that takes these arguments, in this order, whatever it calls them: for a parameter of a helper.

    `Pipeline[...]` also has the parameters' names, and two pipelines are alike for it only if they agree in them; some type checkers
    overlook that, and some do not.
    """

    def __getitem__(self, grid: int | tuple[int, int] | tuple[int, int, int] | Grid, /) -> LaunchOf[Unpack[_Args]]:
        """As of a pipeline."""


@final
class Pipeline(Generic[P]):
    """A pipeline function. `pipe[grid](...)` launches it; `pipe.recipe` declares how the command line does."""

    def __init__(
        self,
        fn: Callable[..., None],
        *,
        threads: int,
        cluster: tuple[int, int, int] | None,
        names: Mapping[str, object],
        roles: Roles | None = None,
    ) -> None:
        self._fn = fn
        # Refused where it is defined; what its annotations name may come later in the file.
        self._early = early_formals(fn, clustered=cluster is not None, names=names)
        self.roles = roles
        self.threads = threads
        self.cluster = cluster
        self.recipes: list[RecipeFunction] = []
        self._programs: dict[tuple[tuple[str, object], ...], Program] = {}
        self.__doc__ = fn.__doc__
        self.__name__ = getattr(fn, "__name__", repr(fn))
        self.__module__ = fn.__module__

    def __repr__(self) -> str:
        cluster = "" if self.cluster is None else f", cluster={self.cluster}"
        return f"Pipeline({self.__name__}, threads={self.threads}{cluster})"

    @cached_property
    def signature(self) -> inspect.Signature:
        """Parameters after `cta`."""
        return self._parameters[0]

    @cached_property
    def _parameters(self) -> tuple[inspect.Signature, tuple[Formal, ...]]:
        return self._early or formals(self._fn, clustered=self.cluster is not None)

    def __getitem__(self, grid: int | tuple[int] | tuple[int, int] | tuple[int, int, int] | Grid, /) -> Launchable[P]:
        return Launchable(self, grid_of(grid))

    @overload
    def recipe(self, fn: Callable[..., Recipe], /) -> Callable[..., Recipe]: ...
    @overload
    def recipe(self, /, *, refused: str) -> Callable[[Callable[..., Recipe]], Callable[..., Recipe]]: ...
    def recipe(self, fn: Callable[..., Recipe] | None = None, /, *, refused: str = "") -> Any:
        """Declares how to launch: a function of a device and, optionally, input arrays, that returns a `Recipe`.

        Args:
            fn: the recipe.
            refused: for a lesson that is broken on purpose: the id of the rule it must be refused by.
        """

        def declare(fn: Callable[..., Recipe]) -> Callable[..., Recipe]:
            self.recipes.append(RecipeFunction(fn, refused=refused))
            return fn

        return declare if fn is None else declare(fn)

    if not TYPE_CHECKING:

        def __call__(self, *_: object, **__: object) -> None:
            """Refuses: a launch needs a grid."""
            self._no_grid("(...)")

        def __getattr__(self, name: str) -> NoReturn:
            """Refuses what a launch has, which needs a grid."""
            if not name.startswith("_") and hasattr(Launchable, name):
                self._no_grid(f".{name}(...)")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

        def _no_grid(self, call: str) -> NoReturn:
            what, got = f"{self.__name__!r} is launched without a grid", f"{self.__name__}{call}"
            refuse(ArgumentError, "OX1033", what, got=got, required="a grid in brackets", fix=f"{self.__name__}[4, 2]{call}")

    def _cta(self, recorder: Recorder) -> Cta:
        return (Cta if self.cluster is None else ClusterCta)(recorder, self.roles)

    def bind_on(self, grid: Grid, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[Program, Arguments]:
        """The program of `pipe[grid].bind(*args, **kwargs)`, which checkers hold against the signature, and its checked arguments."""
        signature, parameters = self._parameters
        arguments = bind(self.__name__, signature, parameters, grid, args, kwargs)
        key = (*((name, (type(spec).__name__, spec)) for name, spec in arguments.specs.items()), *captured(self._fn))
        program = self._programs.get(key)
        if program is None:
            program = record(self._fn, threads=self.threads, cluster=self.cluster, arguments=arguments.specs, cta=self._cta)
            program = self._programs.setdefault(key, program)  # another thread's, if it was first: a prepared launch is held against it
        check_destinations(program, arguments)
        return program, arguments


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
def pipeline(*misplaced: object, threads: Any = None, warps: Any = None, cluster: Any = None) -> Any:
    """Makes a function a pipeline.

    Args:
        misplaced: nothing; what stands here was meant to be named, or is the function of a decorator without brackets.
        threads: of each CTA, 1 to 1,024; it need not be a multiple of 32.
        warps: instead of `threads`: the roles of the CTA's warps, `ox.roles(producer=1, consumers=4)`.
        cluster: CTAs of a cluster in x, y and z, at most 16 in all (more than 8 are not portable); its `cta` is a `ClusterCta`.
    """
    broken: list[Diagnostic] = []

    def note(rule: str, what: str, got: object, required: str, fix: str) -> None:
        broken.append(Diagnostic(rule=rule, what=what, got=described(got), required=required, fix=fix, site=caller_site()))

    roles = warps if isinstance(warps, Roles) else None
    count = whole(threads) if roles is None else roles.threads
    if warps is not None and (roles is None or threads is not None):
        note(
            "OX1114",
            "a pipeline declares either threads or roles",
            warps if roles is None else threads,
            "one of them, roles by `ox.roles`",
            "@ox.pipeline(warps=ox.roles(producer=1, consumers=4))",
        )
    elif misplaced or count is None or not 1 <= count <= limits.THREADS_MAX:
        required = f"`threads`, a plain int from 1 to {limits.THREADS_MAX}"
        note(
            "OX1031",
            "a pipeline declares the threads of a CTA",
            "no brackets" if misplaced[:1] and callable(misplaced[0]) else misplaced or threads,
            required,
            "@ox.pipeline(threads=128)",
        )
    shape = None if cluster is None else three(cluster)
    if cluster is not None and (shape is None or prod(shape) > limits.CLUSTER_MAX):
        required = f"1 to 3 positive ints, at most {limits.CLUSTER_MAX} CTAs in all (8 are portable)"
        note("OX1065", "there is no such cluster", cluster, required, "@ox.pipeline(threads=128, cluster=(2, 1))")
    if broken:
        raise UsageError(*broken)
    known = count or 0  # never 0: that was noted
    # Of this package's own pipelines (one-liners make them when they are first asked) the user's names are none; and to look at them would
    # keep what they name alive until the user's function returns.
    return lambda fn: Pipeline(fn, threads=known, cluster=shape, names={} if _is_ours(fn) else caller_locals(), roles=roles)


def _is_ours(fn: object) -> bool:
    code = getattr(fn, "__code__", None)
    return code is not None and in_package(code.co_filename)


def check_stream(stream: object) -> None:
    """Refuses what names no CUDA stream."""
    if type(stream) is bool or not (isinstance(stream, int) or hasattr(stream, "__cuda_stream__")):
        from oxidecopy.engines.cuda.stream import way_out

        required = "an ox.Stream, an object with __cuda_stream__, or a handle as an int"
        refuse(ArgumentError, "OX1051", "this is no CUDA stream", got=described(stream), required=required, fix=way_out(stream))
    if isinstance(stream, int) and not 0 <= stream < 1 << 64:
        required, fix = "a stream's handle: 0 to 2^64 - 1", "0 is the default stream, as is a launch without .on"
        refuse(ArgumentError, "OX1051", "this is no CUDA stream", got=described(stream), required=required, fix=fix)


def three(n: object) -> tuple[int, int, int] | None:
    """A positive int, or up to three of them, as x, y, z; None when it is something else."""
    parts = tuple(whole(p) for p in (n if isinstance(n, tuple) else (n,)))
    known = tuple(p for p in parts if p is not None and p >= 1)
    if not 1 <= len(known) == len(parts) <= 3:
        return None
    x, y, z = (*known, 1, 1)[:3]
    return x, y, z


def grid_of(grid: object) -> Grid:
    """The grid in brackets, within CUDA's bounds."""
    shape = three(grid)
    if shape is None:
        fix = "pipe[4, 2](...), or pipe[ox.Grid(x=4, y=2)](...); -(-n // 64) rounds up"
        refuse(ArgumentError, "OX1034", "there is no such grid", got=described(grid), required="1 to 3 positive ints: x, y, z", fix=fix)
    bounds = (limits.GRID_X_MAX, limits.GRID_YZ_MAX, limits.GRID_YZ_MAX)
    broken = [
        Diagnostic(
            rule="OX1034",
            what=f"the grid is too large in {axis}",
            got=str(n),
            required=f"at most {top} (CUDA launch limits)",
            fix="let each CTA do more: loop over tiles with `cta.range`",
            site=caller_site(),
        )
        for axis, n, top in zip("xyz", shape, bounds, strict=True)
        if n > top
    ]
    if broken:
        raise ArgumentError(*broken)
    return Grid(*shape)
