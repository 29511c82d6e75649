"""What must hold when the CTAs of a cluster end: stores drained, loads waited for, no traffic of peers, no phase left half done."""

from __future__ import annotations

from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.check import balanced
from oxidecopy.verify.state import STORE, Access, Agent, Bar, Life, Machine, Stage


def check_ending(machine: Machine) -> None:
    """For a walk in which all agents came to their end."""
    for agent in machine.agents:
        _drained(machine, agent)
    for stage in machine.stages:
        for access in stage.accesses:
            if access.way is STORE and access.bar >= 0:
                _sent(machine, stage, access)
    for bar in machine.bars:
        if bar.life is not Life.LIVE:
            continue
        balanced(machine, bar, [])
        _waited(machine, bar)
        _remote(machine, bar)


def _drained(machine: Machine, agent: Agent) -> None:
    left = [s for g in agent.groups for s in g.stores]
    for store in (*left, *agent.open):
        committed = store in left
        machine.out.add(
            ids.UNDRAINED,
            f"{agent.does('ends')} while {'its' if agent.size == 1 else 'their'} store may still read shared memory",
            step=store.mark.step,
            got="committed, but never waited for" if committed else "never committed to a group",
            required="`commit_group`, then `wait_group_read(0)` or `wait_group(0)` by the same thread before the end",
            fix="call `leader.wait_group_read(0)` at the end"
            if committed
            else "call `leader.commit_group()` and `leader.wait_group_read(0)` at the end",
        )


def _sent(machine: Machine, stage: Stage, access: Access) -> None:
    """A copy to another CTA reads the tile of its own CTA, which must know that it is over."""
    bar = machine.bars[access.bar]
    if bar.broken or any(machine.over(a, bar) >= access.until for a in machine.mates(stage.rank)):
        return
    machine.out.add(
        ids.SEND_UNWAITED,
        f"{_cta(machine, stage.rank)} may end while its copy to another CTA still reads {stage.name}",
        step=access.mark.step,
        got=f"no thread of it knows of phase {access.until - 1 - bar.base} of {bar.name}",
        required="a cluster sync behind the receiving CTA's wait, before the end",
        fix="call `cta.cluster_sync()` at the end, behind the wait for what was received",
        key=(stage.tile, access.mark.step.site or id(access.mark.step)),
    )


def _waited(machine: Machine, bar: Bar) -> None:
    if bar.loaded is None or bar.broken:
        return
    phase, mark = bar.loaded
    if any(machine.over(a, bar) > phase for a in machine.mates(bar.rank)):
        return
    machine.out.add(
        ids.LOAD_UNWAITED,
        f"{_cta(machine, bar.rank)} ends while a load into it may be in flight: nobody waits for phase {phase - bar.base} of {bar.name}",
        step=mark.step,
        required="a wait for the phase of every load before the end",
        fix=f"wait on {bar.name} before the end, also for what is not used; in a ring: as many stages in all its roles",
    )


def _cta(machine: Machine, rank: int) -> str:
    return "the CTA" if machine.program.cluster_size == 1 else f"CTA {rank} of the cluster"


def _remote(machine: Machine, bar: Bar) -> None:
    """A CTA may end only when it knows of every arrival that its peers make."""
    for phase, mark in bar.remote.values():
        if any(machine.ended(a, bar) > phase or machine.order(a, mark) for a in machine.mates(bar.rank)):
            continue
        machine.out.add(
            ids.EXIT_REMOTE,
            f"{_cta(machine, bar.rank)} may end before {machine.agents[mark.agent].name} arrives on {bar.name}",
            step=mark.step,
            required="a cluster sync, or a wait for that phase, before the end",
            fix="call `cta.cluster_sync()` at the end",
            key=(bar.decl, mark.step.site or id(mark.step)),
        )
