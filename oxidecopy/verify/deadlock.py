"""When nobody can go on: who waits for whom, what is missing, which op should have supplied it.

Where that is fair to the ops behind it, the walk then goes on as if the missing thing had come.
"""

from __future__ import annotations

from collections.abc import Mapping

from oxidecopy.isa import ops
from oxidecopy.program.deadlock import Barrier, Deadlock, Stuck, Sync, Token
from oxidecopy.program.explain import explain
from oxidecopy.program.program import BLOCK_SYMBOLS, Step
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.check import over_expected
from oxidecopy.verify.code import Control, Item
from oxidecopy.verify.state import Agent, At, Bar, Life, Machine
from oxidecopy.verify.transfer import finish, release_sync

Arrival = (
    ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop | ops.MbarrierArriveRemote | ops.MbarrierArriveExpectTxRemote
)
Supply = ops.Landing | ops.MbarrierCompleteTx


def unblock(machine: Machine, waiting: Mapping[int, At]) -> bool:
    """Called when every agent waits. Takes pending answers for no; else reports, and says whether the walk can go on."""
    stuck = [a for a in machine.agents if not a.done]
    asking = [a for a in stuck if a.code[a.pc].control is Control.WHEN]
    if asking:
        for a in asking:
            a.denied = True
        return True
    waits = [waiting[a.id] for a in stuck if a.id in waiting]
    if not machine.explained:  # later ones may come of having gone on
        machine.explained = True
        machine.out.explanation = _explanation(machine, stuck, waiting)
    try:
        return _reported(machine, waits, stuck)
    finally:
        machine.out.explanation = None


def _reported(machine: Machine, waits: list[At], stuck: list[Agent]) -> bool:
    for key, agents in list(machine.syncs.items()):
        if _sync_cannot_fill(machine, key, agents):
            _report_sync(machine, key, agents)
            release_sync(machine, key)
            return True
    on_bars = [at for at in waits if at.bars]
    for at in on_bars:
        if not _suppliers(machine, at.bars[0], stuck):
            return _starved(machine, at)
    _report_cycle(machine, waits, stuck)
    return False


def _explanation(machine: Machine, stuck: list[Agent], waiting: Mapping[int, At]) -> Deadlock:
    rows = []
    for agent in stuck:
        item, at = agent.code[agent.pc], waiting.get(agent.id)
        rows.append(Stuck(rank=agent.rank, threads=agent.threads.threads, step=item.step, on=_on(item.op, at)))
    blocks = []
    for rank in range(machine.program.cluster_size):
        ranges = machine.mates(rank)[0].ranges
        x, y, z = (ranges[symbol].lo if symbol in ranges else 0 for symbol in BLOCK_SYMBOLS)
        blocks.append((x, y, z))
    return explain(machine.program, rows, constants=machine.launch.environment(), blocks=blocks)


def _on(op: ops.Instr, at: At | None) -> Barrier | Sync | Token | None:
    """What an agent waits for, as the explanation takes it."""
    if isinstance(op, ops.BarSync):
        return Sync(number=op.number)
    if isinstance(op, ops.ClusterSync):
        return Sync(number=-1)
    if at is None or not at.bars:
        return Token(number=op.tokens[0]) if isinstance(op, ops.MbarrierWait) else None
    bar = at.bars[0]
    phase, current = (at.phases[0] if at.phases else bar.phase) - bar.base, bar.phase - bar.base
    return Barrier(
        rank=bar.rank,
        decl=bar.decl,
        index=bar.index,
        parity=current & 1,
        pending=bar.pending,
        tx=bar.expected - bar.issued,
        asked=phase & 1,
        phase=phase,
        current=current,
    )


# ---- syncs
def _sync_cannot_fill(machine: Machine, key: tuple[int, int], agents: list[Agent]) -> bool:
    """True when too few threads have this sync anywhere ahead of them."""
    here = agents[0].code[agents[0].pc].op
    wanted = here.threads if isinstance(here, ops.BarSync) else machine.program.threads * machine.program.cluster_size
    group = machine.agents if key[0] < 0 else machine.mates(key[0])
    coming = [a for a in group if a not in agents and any(_is_sync(item.op, here) for item in _ahead(a))]
    return sum(a.size for a in (*agents, *coming)) < wanted


def _is_sync(op: ops.Instr, here: ops.Instr) -> bool:
    if isinstance(here, ops.BarSync):
        return isinstance(op, ops.BarSync) and op.number == here.number
    return isinstance(op, ops.ClusterSync)


def _report_sync(machine: Machine, key: tuple[int, int], agents: list[Agent]) -> None:
    step = agents[0].code[agents[0].pc].step
    wanted = step.op.threads if isinstance(step.op, ops.BarSync) else machine.program.threads * machine.program.cluster_size
    group = machine.agents if key[0] < 0 else machine.mates(key[0])
    missing = [a for a in group if a not in agents]
    machine.out.add(
        ids.SYNC_NOT_REACHED,
        f"a sync of {wanted} threads is reached only by {', '.join(a.name for a in agents)}",
        step=step,
        got=f"{sum(a.size for a in agents)} threads; {', '.join(a.name for a in missing) or 'nobody else'} never comes"
        + ("" if len(missing) <= 1 else " (none of them)"),
        required=f"{wanted} threads",
        fix="move the sync out of the `elect`, role or `when` block, or use the group's own `sync`",
    )


# ---- barriers
def _ahead(agent: Agent) -> list[Item]:
    """What an agent may still run after the op it waits at: the rest of its code, and the loops it is in once more."""
    start = agent.pc + 1
    for item in agent.code[agent.pc :]:
        if item.control is Control.NEXT and item.loops[-1] in agent.turns:
            start = min(start, item.target)
    return [item for i, item in enumerate(agent.code) if i >= start and i != agent.pc]


def _suppliers(machine: Machine, bar: Bar, stuck: list[Agent]) -> list[tuple[Agent, Step]]:
    """Agents that wait themselves and would go on to supply what the barrier lacks."""
    found = []
    for a in stuck:
        step = next((item.step for item in _ahead(a) if _supplies(item.op, bar, near=a.rank == bar.rank)), None)
        if step is not None:
            found.append((a, step))
    return found


def _supplies(op: ops.Instr, bar: Bar, *, near: bool) -> bool:
    """True when `op`, run in the barrier's own CTA or in another, may give it an arrival or bytes that it lacks."""
    far = isinstance(op, ops.Multicast | ops.Send | ops.MbarrierArriveRemote | ops.MbarrierArriveExpectTxRemote)
    if not near and not far:
        return False
    if isinstance(op, Arrival):
        return bar.pending > 0 and op.bar.barrier == bar.decl
    return isinstance(op, Supply) and bar.issued < bar.expected and op.bar.barrier == bar.decl


def _missing(bar: Bar) -> str:
    parts = []
    if bar.pending:
        parts.append(f"{bar.pending} of {bar.count} arrivals")
    if bar.issued != bar.expected:
        owed = f"{bar.expected - bar.issued} of {bar.expected} expected bytes"
        parts.append(owed if bar.issued < bar.expected else f"the announcement of {bar.issued - bar.expected} bytes that came")
    return " and ".join(parts) or "nothing"


def _starved(machine: Machine, at: At) -> bool:
    """Nobody is left who could complete the phase."""
    bar = at.bars[0]
    phase = bar.phase - bar.base
    at_end = [("waits here", at.step)]
    if not bar.pending and bar.issued < bar.expected:
        over_expected(machine, bar, at_end)
    else:
        machine.out.add(
            ids.TOO_FEW,
            f"{at.agent.does('waits')} for ever: phase {phase} of {bar.name} lacks {_missing(bar)}, and nobody is left to supply them",
            step=at.step,
            got=f"{bar.count - bar.pending} arrivals",
            required=f"{bar.count} (the count of `init`)",
            fix="let every thread that `init` counts arrive once per phase, or lower the count; in a ring: as many stages in all its roles",
            causes=[*([("count set here", bar.born.step)] if bar.born else []), *(("arrived here", m.step) for m in bar.arrived)],
        )
    if not bar.arrived or bar.life is not Life.LIVE:
        return False
    _force(machine, at)
    return True


def _force(machine: Machine, at: At) -> None:
    bar = at.bars[0]
    bar.broken = True
    finish(machine, bar, at.mark)


def _report_cycle(machine: Machine, waits: list[At], stuck: list[Agent]) -> None:
    """Everybody who could supply something waits as well."""
    lines: list[tuple[str, Step | None]] = []
    for at in waits:
        if at.bars:
            bar = at.bars[0]
            phase = (at.phases[0] if at.phases else bar.phase) - bar.base
            who = sorted({a.name for a, _ in _suppliers(machine, bar, stuck)})
            lines.append(
                (
                    f"{at.agent.does('waits')} for phase {phase} of {bar.name}, which lacks {_missing(bar)}, to come from {', '.join(who)}",
                    at.step,
                )
            )
        else:
            lines.append((f"{at.agent.does('waits')} at a sync", at.step))
    first = waits[0]
    # Some of its arrivals came: perhaps `init` counts more than there are.
    partly = list(dict.fromkeys(bar for at in waits for bar in at.bars[:1] if 0 < bar.pending < bar.count and bar.born))
    supplies = [("should have come from here", s) for at in waits if at.bars for _, s in _suppliers(machine, at.bars[0], stuck)]
    machine.out.add(
        ids.DEADLOCK,
        f"deadlock: {lines[0][0]}, and nobody can go on",
        step=first.step,
        required="some thread that can run",
        fix="let one of the waits pass first: arrive before waiting, or wait for phase k - 1 on the producer's side; with several rings: "
        "take their stages in the same order in all roles"
        + ("; or lower the count of `init` to the arrivals of a phase" if partly else ""),
        causes=[*lines, *supplies, *(("count set here", bar.born.step) for bar in partly if bar.born)],
    )
