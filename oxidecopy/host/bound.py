"""Launches with their arguments: `BoundLaunch` is recorded, `PreparedLaunch` is verified and packed as well, to be launched many times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, final

from oxidecopy.errors import ArgumentError
from oxidecopy.host.arguments import Arguments
from oxidecopy.host.ranges import in_range
from oxidecopy.runtime import Options, execute, prepare, verified
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.sites import LINELESS, at_the_users_line, give_line

if TYPE_CHECKING:
    from oxidecopy.engines.base import Bindings, Engine, Prepared
    from oxidecopy.program.program import Launch, Program
    from oxidecopy.program.verified import VerifiedProgram

P = ParamSpec("P")
PLAIN: Final = Options()


class BoundLaunch:
    """A launch with its arguments checked and its program recorded; call it to verify (once) and run it."""

    def __init__(self, program: Program, arguments: Arguments, options: Options = PLAIN) -> None:
        self.program = program
        self._arguments = arguments
        self._options = options

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.program.name}, grid={tuple(self.launch.grid)})"

    @property
    def launch(self) -> Launch:
        """Grid, extents, strides and index values: what the proof is made for."""
        return self._arguments.bindings.launch(self._arguments.engine.sm)

    @property
    def bindings(self) -> Bindings:
        """The arguments as engines take them; `oxidecopy.engines.sim.explore` runs the program on them without a proof."""
        return self._arguments.bindings

    @property
    def engine(self) -> Engine:
        """What runs it."""
        return self._arguments.engine

    def verify(self) -> VerifiedProgram:
        """The proof for this launch; raises VerificationError with every violation."""
        return verified(self.program, self.launch)

    def __call__(self) -> None:
        """Verifies (once for this shape) and runs; on a stream it does not wait for the end."""
        arguments = self._arguments
        with at_the_users_line():
            if self._options == PLAIN:
                in_range(self.program.name, lambda: execute(arguments.engine, self.program, arguments.bindings))()
            else:
                in_range(self.program.name, prepare(arguments.engine, self.program, arguments.bindings, self._options).call)()


@final
class PreparedLaunch(BoundLaunch, Generic[P]):
    """A launch that is verified and packed; calling it again costs a few microseconds of host time.

    On a GPU, without a stream (`.on`), a call waits for the end of the launch and raises what it has to say. On a stream it does not wait:
    what went wrong is raised by the next call, by `stream.synchronize()`, or when an array is read.
    """

    def __init__(self, program: Program, arguments: Arguments, options: Options, bind: Callable[..., tuple[Program, Arguments]]) -> None:
        super().__init__(program, arguments, options)
        self._bind = bind
        self.prepared: Prepared = prepare(arguments.engine, program, arguments.bindings, options)
        self._call = in_range(program.name, self.prepared.call)

    def __call__(self) -> None:
        """Launches."""
        try:
            self._call()
        except LINELESS as error:
            give_line(error)
            raise

    def update(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Other arguments of the same types and shapes from the next call on. Launches in flight keep theirs.

        Raises:
            ArgumentError: they are of other types, or the proof was made for other extents, strides or index values.
        """
        self.prepared.update(self.rebind(*args, **kwargs))

    def rebind(self, *args: Any, **kwargs: Any) -> Bindings:
        """Takes arguments as `update` does, for what is launched by something else, such as a graph."""
        program, arguments = self._bind(args, kwargs)
        wanted, actual = self.launch, arguments.bindings.launch(arguments.engine.sm)
        if program is not self.program or actual != wanted or arguments.engine is not self.engine:
            refuse(
                ArgumentError,
                "OX5338",
                f"a prepared launch of {self.program.name!r} is given arguments that it was not verified for",
                got=_difference(actual, wanted) or "another device, or descriptors of other boxes or types",
                required=_difference(wanted, actual) or "the same device, boxes and types",
                fix="prepare another launch for them",
            )
        self._arguments = arguments
        return arguments.bindings


def _difference(one: Launch, other: Launch) -> str:
    """What of `one` is not as in `other`."""
    words = [f"grid {one.grid}"] if one.grid != other.grid else []
    known = dict[str, object]((*other.maps, *other.arrays, *other.idx))
    words += [f"{name!r} {_said(value, known.get(name))}" for name, value in (*one.maps, *one.arrays, *one.idx) if known.get(name) != value]
    for is_so, is_not, mine, others in (
        ("one view of memory", "views of their own", one.same, other.same),
        ("memory in common", "no memory in common", one.overlapping, other.overlapping),
    ):
        words += [f"{is_so} for {' and '.join(map(repr, names))}" for names in mine if names not in others]
        words += [f"{is_not} for {' and '.join(map(repr, names))}" for names in others if names not in mine]
    words += [f"{edge} behind the rows of {name!r}" for name, edge in one.edges if (name, edge) not in other.edges]
    return ", ".join(words)


def _said(value: object, other: object) -> str:
    """An argument of a launch, by those of its fields that are not as in `other`: "shape (4, 4), strides_bytes (16, 4)"."""
    if not is_dataclass(value):
        return f"= {value}"
    told = [field.name for field in fields(value) if getattr(value, field.name) != getattr(other, field.name, None)]
    return ", ".join(f"{name} {getattr(value, name)}" for name in told)
