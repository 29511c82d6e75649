"""`explore`: runs a program that nobody verified, and says what the hardware would do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim.launch import MAX_STEPS, Result, execute
from oxidecopy.engines.sim.memory import GlobalMemory, SimBuffer
from oxidecopy.errors import DeadlockError, DeviceFaultError, Diagnostic, ExecutionError, HazardError
from oxidecopy.program.program import Program


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What happened.

    Attributes:
        outcome: "ok", "fault", "deadlock", "steps" (the bound on loop iterations was reached) or "refused" (the launch never started).
        code: the CUresult of a fault or refusal, else 0.
        diagnostics: why it did not end well.
        findings: what is wrong although the hardware might get away with it; empty without `hazards`.
        notes: what was left undone, of runs that ended well: outputs with elements that no store reached, roles in which nothing ran.
    """

    outcome: str
    code: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()

    def check(self) -> None:
        """Raises what `SimEngine.run` would raise, and HazardError for findings."""
        raise_for(self.outcome, self.code, self.diagnostics)
        if self.findings:
            raise HazardError(*self.findings)


def raise_for(outcome: str, code: int, diagnostics: tuple[Diagnostic, ...]) -> None:
    """The error of a run that did not end well."""
    if outcome == "ok":
        return
    if outcome == "deadlock":
        raise DeadlockError(*diagnostics)
    if outcome in ("fault", "refused"):
        raise DeviceFaultError(*diagnostics, code=code)
    raise ExecutionError(*diagnostics)


def explore(program: Program, bindings: Bindings, *, seed: int = 0, hazards: bool = True, max_steps: int = MAX_STEPS) -> Exploration:
    """Runs `program` on the memory its buffers belong to.

    Args:
        program: any program, verified or not.
        bindings: its arguments; a `ForeignBuffer` stands for an address that the simulator never handed out.
        seed: of the schedule; the same seed gives the same run.
        hazards: deliver copies late and in portions, and look for races; without it copies complete at once.
        max_steps: loop iterations, summed over all agents of the launch, after which the run is given up.
    """
    result: Result = execute(program, bindings, _memory(bindings), seed=seed, hazards=hazards, max_steps=max_steps)
    return Exploration(
        outcome=result.outcome, code=result.code, diagnostics=result.diagnostics, findings=result.findings, notes=result.notes
    )


def _memory(bindings: Bindings) -> GlobalMemory:
    buffers = [bound.buffer for bound in bindings.maps.values()] + [array.buffer for array in bindings.arrays.values()]
    for buffer in buffers:
        if isinstance(buffer, SimBuffer):
            return buffer.memory
    return GlobalMemory()
