"""`explore`: runs a program that nobody verified, and says what the hardware would do with it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import final

from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim.exhaust import SECONDS, STATES, Ending, Search
from oxidecopy.engines.sim.launch import MAX_STEPS, Result, execute
from oxidecopy.engines.sim.memory import GlobalMemory, SimBuffer
from oxidecopy.errors import DeadlockError, DeviceFaultError, Diagnostic, ExecutionError, HazardError
from oxidecopy.program.expansion import expanded
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
    result: Result = execute(program, bindings, memory_of(bindings), seed=seed, hazards=hazards, max_steps=max_steps)
    return Exploration(
        outcome=result.outcome, code=result.code, diagnostics=result.diagnostics, findings=result.findings, notes=result.notes
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules:
    """What some or all schedules of a launch did.

    Attributes:
        endings: every way for it to end, each with what memory then holds. Runs that end well are told apart by memory, others are not.
        findings: of all schedules together, each once.
        complete: no schedule of the model gives anything else.
        bound: what the search gave up for; empty when it is complete.
        schedules: that were run, or of all of them those left after the reduction: they stand for all others.
        states: that were gone on from; 0 where schedules were drawn by seed.
        moves: steps tried.
        orders: of the launch's steps, about, without regard to who waits for whom: what there would be to try without a reduction.
        seconds: that it took.
    """

    endings: tuple[Ending, ...]
    findings: tuple[Diagnostic, ...]
    complete: bool
    bound: str = ""
    schedules: int
    states: int = 0
    moves: int = 0
    orders: int = 0
    seconds: float

    @property
    def clean(self) -> bool:
        """Nothing went wrong on any schedule that was looked at. Says nothing of others: see `complete`."""
        return not self.findings and all(ending.result.outcome == "ok" for ending in self.endings)

    @property
    def outcomes(self) -> frozenset[str]:
        """How it may end, as in `Exploration`."""
        return frozenset(ending.result.outcome for ending in self.endings)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Why some schedules did not end well, each reason once."""
        return tuple(dict.fromkeys(d for ending in self.endings for d in ending.result.diagnostics))


def explore_all(
    program: Program, bindings: Bindings, *, states: int = STATES, seconds: float = SECONDS, max_steps: int = MAX_STEPS, reduce: bool = True
) -> Schedules:
    """Runs every schedule of a small launch, up to equivalence; memory is as before afterwards.

    Args:
        program: any program, verified or not.
        bindings: its arguments, as for `explore`.
        states: how many states may be gone on from before the search gives up.
        seconds: how long it may take.
        max_steps: loop iterations of one schedule.
        reduce: leave out schedules that differ from others in nothing that can be told; False for tests of just that.
    """
    started, memory = time.perf_counter(), memory_of(bindings)
    with memory.lock:
        search = Search(expanded(program), bindings, memory, states=states, seconds=seconds, max_steps=max_steps, reduce=reduce)
        tree = search.run()
    return Schedules(
        endings=tuple(tree.endings),
        findings=search.clocks.findings.all(),
        complete=not tree.bound,
        bound=tree.bound,
        schedules=tree.paths,
        states=tree.states,
        moves=tree.moves,
        orders=tree.orders,
        seconds=time.perf_counter() - started,
    )


def explore_seeds(program: Program, bindings: Bindings, count: int, *, max_steps: int = MAX_STEPS) -> Schedules:
    """Runs the schedules of seeds 0 to `count`-1, each on memory as it is now; memory is as before afterwards."""
    started, memory = time.perf_counter(), memory_of(bindings)
    endings: dict[tuple[object, ...], Ending] = {}
    findings: dict[tuple[object, ...], Diagnostic] = {}
    with memory.lock:
        buffers = buffers_of(bindings)
        before = [buffer.data.copy() for buffer in buffers]
        for seed in range(count):
            result = execute(program, bindings, memory, seed=seed, hazards=True, max_steps=max_steps)
            contents = tuple(buffer.data.tobytes() for buffer in buffers)
            ending = Ending(replace(result, findings=()), contents)
            endings.setdefault((result.outcome, result.code, result.diagnostics, contents if result.outcome == "ok" else ()), ending)
            for finding in result.findings:
                findings.setdefault((finding.rule, finding.what, finding.site, finding.causes), finding)
            for buffer, data in zip(buffers, before, strict=True):
                if buffer.data.flags.writeable:
                    buffer.data[...] = data
    return Schedules(
        endings=tuple(endings.values()),
        findings=tuple(findings.values()),
        complete=False,
        bound=f"{count} schedules were drawn by seed",
        schedules=count,
        seconds=time.perf_counter() - started,
    )


def buffers_of(bindings: Bindings) -> list[SimBuffer]:
    bound = [*(b.buffer for b in bindings.maps.values()), *(a.buffer for a in bindings.arrays.values())]
    return list({buffer.address: buffer for buffer in bound if isinstance(buffer, SimBuffer)}.values())


def memory_of(bindings: Bindings) -> GlobalMemory:
    buffers = buffers_of(bindings)
    return buffers[0].memory if buffers else GlobalMemory()
