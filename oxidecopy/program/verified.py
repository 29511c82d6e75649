"""`VerifiedProgram`: the only thing an engine runs, and what must be true of the buffers for the proof to hold.

It has no public constructor: `oxidecopy.verify.verify` makes it. Engines call `discharge` on the buffers they were given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from oxidecopy.errors import Diagnostic, Site
    from oxidecopy.program.program import Launch, Program

_KEY = object()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the verifier took for granted; an engine must make each true or refuse to launch.

    Attributes:
        sm: the compute capability whose limits were used (90 for 9.0).
        shared_bytes: dynamic shared memory per CTA.
        launch: extents, strides, grid and index parameters the proof was made for.
    """

    sm: int
    shared_bytes: int
    launch: Launch


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Where the proof looked at less than will run: at what, and why that is enough. `site` is a line of the program, if one is meant."""

    what: str
    why: str
    site: Site | None = None


@final
class VerifiedProgram:
    """A program with a proof for one launch shape. Warnings did not stop it, but the user should see them."""

    __slots__ = ("assumptions", "bounds", "program", "warnings")

    def __init__(
        self, program: Program, assumptions: Assumptions, warnings: tuple[Diagnostic, ...], bounds: tuple[Bound, ...] = (), *, _key: object
    ) -> None:
        if _key is not _KEY:
            raise TypeError("VerifiedProgram is made by oxidecopy.verify.verify, never directly")
        self.program = program
        self.assumptions = assumptions
        self.warnings = warnings
        self.bounds = bounds


def seal(program: Program, assumptions: Assumptions, warnings: tuple[Diagnostic, ...], bounds: tuple[Bound, ...] = ()) -> VerifiedProgram:
    """For the verifier alone (enforced by a test over the imports)."""
    return VerifiedProgram(program, assumptions, warnings, bounds, _key=_KEY)
