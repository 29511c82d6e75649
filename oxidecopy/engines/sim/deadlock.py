"""A deadlock in the user's words: who waits for which barrier and phase, what is missing, and who should have supplied it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from oxidecopy.engines.sim.names import barrier_name
from oxidecopy.errors import Cause, Diagnostic
from oxidecopy.isa import ops
from oxidecopy.isa.limits import MBARRIER_BYTES, SHARED_BASE
from oxidecopy.program.deadlock import Barrier, Stuck, Sync, Token
from oxidecopy.program.explain import explain

if TYPE_CHECKING:
    from oxidecopy.engines.sim.agents import Agent
    from oxidecopy.engines.sim.machine import Machine
    from oxidecopy.engines.sim.mbarrier import Mbarrier
    from oxidecopy.program.program import Program

DEADLOCK: Final = "OX4001"
STEP_BOUND: Final = "OX4002"
MAX_CAUSES: Final = 6
_MAKING = ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop
_ARRIVING = _MAKING | ops.MbarrierArriveRemote | ops.MbarrierArriveExpectTxRemote
_LANDING = ops.TensorG2S | ops.TensorG2SMulticast | ops.MbarrierCompleteTx


def deadlock_report(machine: Machine) -> tuple[Diagnostic, ...]:
    """One diagnostic per waiting agent and place, CTAs of a cluster that wait alike folded into the first, with one explanation for all."""
    program, agents = machine.program, machine.agents
    seen: dict[object, Diagnostic] = {}
    stuck = [Stuck(rank=a.cta.rank, threads=a.kind.threads, step=a.step, on=_on(program, a)) for a in agents if not a.ended and a.step]
    explanation = explain(program, stuck, constants=machine.constants, blocks=[cta.block for cta in machine.ctas])
    for agent in agents:
        if agent.ended:
            continue
        diagnostic = replace(_waiting(program, agent, agents), explanation=explanation)
        key = (agent.kind.threads, diagnostic.site, diagnostic.required)
        seen.setdefault(key, diagnostic)
    return tuple(seen.values())


def _on(program: Program, agent: Agent) -> Barrier | Sync | Token | None:
    """What the agent waits for, as the explanation takes it."""
    wait = agent.wait
    match wait.kind if wait is not None else "":
        case "phase" if wait is not None and wait.barrier is not None:
            return _barrier(program, agent, wait.barrier, wait.phase)
        case "token" if wait is not None:
            return Token(number=wait.detail)
        case "bar" if wait is not None:
            return Sync(number=wait.detail)
        case "cluster":
            return Sync(number=-1)
        case _:
            return None


def _barrier(program: Program, agent: Agent, bar: Mbarrier, phase: int) -> Barrier | None:
    for number, decl in enumerate(program.barriers):
        index, rest = divmod(bar.address - SHARED_BASE - decl.offset, MBARRIER_BYTES)
        if 0 <= index < decl.stages and not rest:
            state = {"parity": bar.phase & 1, "pending": bar.pending, "tx": bar.tx, "current": bar.phase}
            return Barrier(rank=agent.cta.rank, decl=number, index=index, asked=phase & 1, phase=phase, **state)
    return None


def _waiting(program: Program, agent: Agent, agents: tuple[Agent, ...]) -> Diagnostic:
    wait = agent.wait
    if wait is None:
        return Diagnostic(rule=DEADLOCK, what=f"{agent} cannot go on", site=agent.site)
    if wait.kind == "phase" and wait.barrier is not None:
        return _phase(program, agent, wait.barrier, wait.phase)
    if wait.kind == "token":
        return _token(program, agent, wait.detail)
    return _threads(agent, wait.kind, wait.detail, agents)


def _token(program: Program, agent: Agent, token: int) -> Diagnostic:
    makers = [step for step in program.walk() if isinstance(step.op, _MAKING) and step.op.token == token]
    return Diagnostic(
        rule=DEADLOCK,
        what=f"{agent} waits for an arrival that never comes",
        got=f"nobody ran the arrive that makes token {token}",
        required="the arrive runs wherever its token is waited for",
        fix="let the arrive run on the path of the wait",
        site=agent.site,
        causes=tuple(Cause("the token would be made here", step.site) for step in makers),
    )


def _threads(agent: Agent, kind: str, number: int, agents: tuple[Agent, ...]) -> Diagnostic:
    if kind == "cluster":
        name, counted = "the cluster sync", agents
    else:
        name, counted = f"thread barrier {number}", agent.cta.agents
    bar = agent.cta.thread_bars.get(number)
    there = f"{bar.arrived} of {bar.wanted} threads are there" if kind == "bar" and bar else "not every thread of the cluster is there"
    absent = [a for a in counted if a.ended or not (a.wait and a.wait.kind == kind and a.wait.detail == number)]
    causes = tuple(Cause(f"{a} {'ended' if a.ended else 'is here'}", a.site) for a in absent[:MAX_CAUSES])
    return Diagnostic(
        rule=DEADLOCK,
        what=f"{agent} waits for other threads at {name}",
        got=there,
        required="every thread it counts reaches it",
        fix="call sync where all its threads come by",
        site=agent.site,
        causes=causes,
    )


def _phase(program: Program, agent: Agent, bar: Mbarrier, phase: int) -> Diagnostic:
    missing = []
    if bar.phase != phase:
        missing.append(f"it is in phase {bar.phase}, whose parity looks the same")
    if bar.pending:
        missing.append(f"{bar.pending} of {bar.expected} arrivals missing")
    if bar.tx > 0:
        missing.append(f"{bar.tx} announced bytes not landed")
    elif bar.tx < 0:
        missing.append(f"{-bar.tx} bytes landed that were never announced")
    return Diagnostic(
        rule=DEADLOCK,
        what=f"{agent} waits for phase {phase} of `{barrier_name(program, bar.address)}`, which never ends",
        got=", ".join(missing) or "nothing missing: the barrier is not a live object",
        required="all expected arrivals, and announced bytes equal to landed ones",
        fix=_fix(bar, phase),
        site=agent.site,
        causes=_suppliers(program, agent, bar),
    )


def _fix(bar: Mbarrier, phase: int) -> str:
    if bar.phase > phase + 1:
        return "wait for every phase in turn: this wait came two phases late"
    if bar.pending:
        return "arrive once per expected count in every phase, or initialise with the number of threads that arrive"
    return "announce exactly tile.nbytes for every copy that reports to this barrier"


def _suppliers(program: Program, agent: Agent, bar: Mbarrier) -> tuple[Cause, ...]:
    """The lines that could have ended the phase, and where the threads that run them are."""
    wanted = _ARRIVING if bar.pending else _LANDING
    causes = []
    for step in program.walk():
        op = step.op
        if not isinstance(op, wanted):
            continue
        decl = program.barriers[op.bar.barrier]
        index = (bar.address - SHARED_BASE - decl.offset) // MBARRIER_BYTES
        if 0 <= index < decl.stages:
            causes.append(Cause("arrives on it" if bar.pending else "lands on it", step.site))
    for other in agent.cta.agents:
        if other is not agent:
            causes.append(Cause(f"{other.kind} {'ended' if other.ended else 'waits here'}", None if other.ended else other.site))
    return tuple(dict.fromkeys(causes))[:MAX_CAUSES]


def bound_report(agent: Agent, steps: int) -> Diagnostic:
    return Diagnostic(
        rule=STEP_BOUND,
        what=f"{agent} is still looping after the simulator's bound",
        got=f"{steps} loop iterations in all",
        required="a loop that ends, or a larger bound",
        fix="check the loop's trip count, or pass a larger max_steps",
        site=agent.site,
    )
