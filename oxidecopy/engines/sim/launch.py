"""From a program and its arguments to a machine that runs it, and from what stopped the machine to diagnostics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim.classes import ThreadClass, thread_classes
from oxidecopy.engines.sim.clocks import Clocks
from oxidecopy.engines.sim.deadlock import bound_report, deadlock_report
from oxidecopy.engines.sim.faults import INVALID_CLUSTER_SIZE, INVALID_VALUE, NAMES, Fault, Refused
from oxidecopy.engines.sim.lowering import Bound, Lowering
from oxidecopy.engines.sim.machine import Machine, OutOfSteps, Stuck
from oxidecopy.engines.sim.memory import GlobalMemory, SimBuffer
from oxidecopy.engines.sim.notes import idle_roles, uncovered
from oxidecopy.engines.sim.packed import any_plan
from oxidecopy.engines.sim.schedule import Schedule
from oxidecopy.engines.sim.shares import Shares, Trap
from oxidecopy.errors import Cause, Diagnostic
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import CLUSTER_MAX, STORE_EDGE_BYTES
from oxidecopy.program.destinations import destinations
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Program, extent_name

FAULT_RULES: Final = {700: "OX4010", 715: "OX4011", 716: "OX4012", 719: "OX4013"}
REFUSED_RULE: Final = "OX4014"
MAX_STEPS: Final = 50_000_000
STOPS: Final = (Fault, Stuck, OutOfSteps, ZeroDivisionError)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a run ended: "ok", "fault" with its code, "deadlock", "steps" (the bound was reached) or "refused" (it never started).

    `findings` are hazards; `notes` say what a run that ended well has left undone.
    """

    outcome: str
    code: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()


def execute(program: Program, bindings: Bindings, memory: GlobalMemory, *, seed: int, hazards: bool, max_steps: int = MAX_STEPS) -> Result:
    """Runs every cluster of the grid, one after the other; launches of several threads, too."""
    with memory.lock:
        return _execute(expanded(program), bindings, memory, seed, max_steps, hazards=hazards)


def _execute(program: Program, bindings: Bindings, memory: GlobalMemory, seed: int, max_steps: int, *, hazards: bool) -> Result:
    classes = thread_classes(program)
    clocks = Clocks(program, len(classes) * program.cluster_size) if hazards else None
    schedule, shares = Schedule(seed) if hazards else None, Shares(seed, bindings.grid)
    machine = Machine(program, clocks=clocks, schedule=schedule, max_steps=max_steps, shares=shares)
    try:
        prepare(machine, classes, bindings, memory)
        for blocks in clusters(program, bindings.grid):
            machine.run_cluster(blocks)
    except STOPS as stop:
        return stopped(stop, machine)
    return Result(outcome="ok", findings=clocks.findings.all() if clocks is not None else (), notes=_notes(machine, bindings))


def prepare(
    machine: Machine,
    classes: tuple[ThreadClass, ...],
    bindings: Bindings,
    memory: GlobalMemory,
    *,
    footprints: bool = False,
    named: bool = False,
) -> list[SimBuffer]:
    """Gives the machine its code; returns the buffers that the program stores to. Raises what the launch call itself refuses."""
    program = machine.program
    check_grid(program, bindings.grid)
    bound = bind(program, bindings, memory)
    machine.constants = bound.constants
    stored = _stored(program, bindings, memory)
    if machine.clocks is not None:
        plain = {step.op.array.name for step in program.walk() if isinstance(step.op, ops.StoreGlobal)}
        plain |= {ref.name for step in program.walk() if isinstance(step.op, ops.MmaOut) for ref in step.op.arrays}
        machine.clocks.ledger.watch(memory, stored, {DTYPES[program.arrays[name].dtype].nbytes for name in plain})
    codes = [Lowering(bound, machine, classes, i, footprints=footprints, named=named).run() for i in range(len(classes))]
    machine.load(classes, tuple(codes))
    return stored


def stopped(stop: Exception, machine: Machine) -> Result:
    """How a run ended that one of `STOPS` ended."""
    found = machine.clocks.findings.all() if machine.clocks is not None else ()
    match stop:
        case Refused():
            return Result(outcome="refused", code=stop.code, diagnostics=(_fault(stop, REFUSED_RULE, machine),), findings=found)
        case Trap():
            return Result(outcome="fault", code=stop.code, diagnostics=(_fault(stop, stop.rule, machine),), findings=found)
        case Fault():
            return Result(outcome="fault", code=stop.code, diagnostics=(_fault(stop, FAULT_RULES[stop.code], machine),), findings=found)
        case Stuck():
            return Result(outcome="deadlock", diagnostics=deadlock_report(machine), findings=found)
        case OutOfSteps():
            return Result(outcome="steps", diagnostics=(bound_report(stop.agent, machine.max_steps),), findings=found)
        case _:  # ZeroDivisionError
            what, fix = "an index expression divides by zero", "check the Idx arguments"
            zero = Refused(INVALID_VALUE, what, required="a divisor that is not 0", fix=fix)
            return Result(outcome="refused", code=zero.code, diagnostics=(_fault(zero, REFUSED_RULE, machine),), findings=found)


def _notes(machine: Machine, bindings: Bindings) -> tuple[Diagnostic, ...]:
    """What is left undone at the end."""
    if machine.clocks is None or machine.ran is None:
        return ()
    return (*idle_roles(machine.program, machine.ran), *uncovered(machine.program, bindings, machine.clocks.ledger))


def check_grid(program: Program, grid: tuple[int, int, int]) -> None:
    """What the launch call itself refuses."""
    if program.cluster_size > CLUSTER_MAX or any(g % c for g, c in zip(grid, program.cluster, strict=True)):
        raise Refused(
            INVALID_CLUSTER_SIZE,
            "the cluster does not divide the grid, or is too large",
            got=f"grid {grid}, cluster {program.cluster}",
            required=f"a grid that is a multiple of the cluster, at most {CLUSTER_MAX} CTAs in it",
            fix="round the grid up to a multiple of the cluster",
        )


def bind(program: Program, bindings: Bindings, memory: GlobalMemory) -> Bound:
    modes = {name: param.mode for param in program.maps.values() for name in param.bound_names}
    plans = {
        name: any_plan(bound.map, bound.buffer.address + bound.offset_bytes, memory, modes[name]) for name, bound in bindings.maps.items()
    }
    for name, bound in bindings.maps.items():
        plans[name].over = -bound.map.row_bytes % STORE_EDGE_BYTES if bound.edge == "elements" else 0
    constants = {f"grid_dim.{axis}": n for axis, n in zip("xyz", bindings.grid, strict=True)} | dict(bindings.idx)
    for name, bound in bindings.maps.items():
        constants |= {extent_name(name, i): n for i, n in enumerate(bound.map.global_dim)}
    for name, array in bindings.arrays.items():
        constants |= {extent_name(name, i): n for i, n in enumerate(array.info.shape)}
    return Bound(program, memory, constants, plans, bindings.arrays, bindings.scalars)


def _stored(program: Program, bindings: Bindings, memory: GlobalMemory) -> list[SimBuffer]:
    """The buffers that the program stores to, each once."""
    written = destinations(program)
    maps = [bindings.maps[name].buffer for p in program.maps.values() if p.name in written for name in p.bound_names]
    buffers = [*maps, *(bindings.arrays[name].buffer for name in program.arrays if name in written)]
    found = {buffer.address: buffer for b in buffers if (buffer := memory.find(b.address)) is not None}
    return list(found.values())


def clusters(program: Program, grid: tuple[int, int, int]) -> Iterator[list[tuple[int, int, int]]]:
    """Block indices of each cluster by rank, x fastest both among and inside clusters."""
    cx, cy, cz = program.cluster
    inside = [(x, y, z) for z in range(cz) for y in range(cy) for x in range(cx)]
    for z in range(0, grid[2], cz):
        for y in range(0, grid[1], cy):
            for x in range(0, grid[0], cx):
                yield [(x + i, y + j, z + k) for i, j, k in inside]


def _fault(fault: Fault, rule: str, machine: Machine) -> Diagnostic:
    agent = machine.fault_agent
    return Diagnostic(
        rule=rule,
        what=f"{NAMES[fault.code]} ({fault.code}): {fault.what}",
        got=fault.got,
        required=fault.required,
        fix=fault.fix,
        site=machine.fault_site,
        causes=(Cause(f"by {agent}", machine.fault_site),) if agent is not None else (),
    )
