"""Record -> verify -> run: the one path from a program to its results. Verification is cached by program and launch shape."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from oxidecopy.errors import HazardError
from oxidecopy.program.program import Launch, Program
from oxidecopy.verify import verify

if TYPE_CHECKING:
    from oxidecopy.engines.base import Bindings, Engine
    from oxidecopy.program.verified import VerifiedProgram


@lru_cache(maxsize=256)
def verified(program: Program, launch: Launch) -> VerifiedProgram:
    """The proof for this launch; raises VerificationError with every violation."""
    return verify(program, launch)


def launch_of(bindings: Bindings, sm: int) -> Launch:
    """What a proof needs to know of the arguments."""
    return Launch(
        grid=bindings.grid,
        maps=tuple(sorted((name, b.map) for name, b in bindings.maps.items())),
        arrays=tuple(sorted((name, b.info) for name, b in bindings.arrays.items())),
        idx=tuple(sorted(bindings.idx.items())),
        sm=sm,
    )


def execute(engine: Engine, program: Program, bindings: Bindings) -> None:
    """Runs `program`, verified first.

    Raises:
        VerificationError: before anything runs.
        ExecutionError: what went wrong while it ran; HazardError when it finished on luck.
    """
    outcome = engine.run(verified(program, launch_of(bindings, engine.sm)), bindings)
    if outcome.findings:
        raise HazardError(*outcome.findings)
