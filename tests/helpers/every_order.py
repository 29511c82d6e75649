"""Every order of the steps of a tiny launch, by brute force: the oracle for the search that leaves orders out.

The launch is run anew for each order, one closure or one granule of a copy at a time, and nothing is compared, merged or skipped. What it
shares with the search is the machine itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim.classes import thread_classes
from oxidecopy.engines.sim.clocks import Clocks
from oxidecopy.engines.sim.launch import STOPS, Result, clusters, prepare, stopped
from oxidecopy.engines.sim.machine import Machine
from oxidecopy.engines.sim.memory import GlobalMemory, SimBuffer
from oxidecopy.engines.sim.shares import Shares
from oxidecopy.errors import Diagnostic
from oxidecopy.program.program import Program

MAX_STEPS = 1000


class TooManyOrders(Exception):
    """The program is not tiny."""


@dataclass
class Seen:
    """All endings (without what memory holds, unless it ended well) and all findings; `orders` that there are."""

    endings: set[tuple[object, ...]] = field(default_factory=set)
    findings: set[tuple[object, ...]] = field(default_factory=set)
    orders: int = 0


def named(finding: Diagnostic) -> tuple[object, ...]:
    """What makes two findings one: of several with another `got` the first is kept."""
    return finding.rule, finding.what, finding.site, finding.causes


def ending(result: Result, contents: tuple[bytes, ...]) -> tuple[object, ...]:
    return result.outcome, result.code, result.diagnostics, contents if result.outcome == "ok" else ()


def every_order(program: Program, bindings: Bindings, memory: GlobalMemory, limit: int, *, granules: bool) -> Seen:
    """Runs all of at most `limit` orders; memory is as before afterwards. With `granules` loads land 16 bytes at a time."""
    seen, script = Seen(), list[int]()
    while True:
        counts = _run(program, bindings, memory, script, seen, granules=granules)
        seen.orders += 1
        if seen.orders > limit:
            raise TooManyOrders
        script += [0] * (len(counts) - len(script))
        while script and script[-1] + 1 == counts[len(script) - 1]:
            script.pop()
        if not script:
            return seen
        script[-1] += 1


def _run(program: Program, bindings: Bindings, memory: GlobalMemory, script: list[int], seen: Seen, *, granules: bool) -> list[int]:
    """One order: choice number `script[i]` at the i-th point where there are several, then the first; how many there were at each."""
    classes = thread_classes(program)
    clocks = Clocks(program, len(classes) * program.cluster_size)
    machine = Machine(program, clocks=clocks, schedule=None, max_steps=MAX_STEPS, shares=Shares(0, bindings.grid))
    buffers: list[SimBuffer] = prepare(machine, classes, bindings, memory)
    before = [buffer.data.copy() for buffer in buffers]
    counts: list[int] = []
    result = Result(outcome="ok")
    try:
        for blocks in clusters(program, bindings.grid):
            machine.start_cluster(blocks)
            _drive(machine, script, counts, granules=granules)
            machine.finish_cluster()
    except STOPS as stop:
        result = stopped(stop, machine)
    seen.endings.add(ending(result, tuple(buffer.data.tobytes() for buffer in buffers)))
    seen.findings.update(map(named, clocks.findings.all()))
    for buffer, data in zip(buffers, before, strict=True):
        buffer.data[...] = data
    return counts


def _drive(machine: Machine, script: list[int], counts: list[int], *, granules: bool) -> None:
    flight = machine.flight
    assert flight is not None
    while True:
        agents = sorted(machine.ready, key=lambda agent: agent.index)
        options = len(agents) + len(flight.copies)
        if not options:
            return
        choice = 0
        if options > 1:
            choice = script[len(counts)] if len(counts) < len(script) else 0
            counts.append(options)
        if choice < len(agents):
            machine.ready.remove(agents[choice])
            if machine.step(agents[choice]):
                machine.ready.append(agents[choice])
        else:
            flight.advance(choice - len(agents), 1 if granules else 0)
