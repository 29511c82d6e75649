"""Whether a tile may be touched: the four kinds of access against all earlier ones that overlap (tma.md G.2).

Generic and async proxy have separate order: a plain write counts for the async proxy only once its own threads have fenced; a load counts
for anybody only once its phase is known to be over; a store only once its issuing thread has waited for the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oxidecopy.isa import ops
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.state import LOAD, STORE, WRITE, Access, At, Machine, Mark, Span, Stage


def _overlapping(at: At, spans: Sequence[Span]) -> Iterator[tuple[Stage, Access]]:
    step, turns = at.item.step, at.turns
    for stage, lo, hi in spans:
        for access in stage.accesses:
            if access.lo < hi and lo < access.hi and not access.same_instance(step, turns):
                yield stage, access


def filled(op: ops.Landing) -> ops.TileRef:
    """The tile that a copy writes."""
    return op.into if isinstance(op, ops.Send) else op.tile


def combines(op: ops.Instr) -> str | None:
    """The operation by which a copy combines its bytes with what is in shared memory."""
    return op.op if isinstance(op, ops.BulkReduceS2S) else None


def _read_spans(at: At) -> Sequence[Span]:
    """What the op reads: of an op that writes `tiles`, its sources."""
    return at.sources or at.tiles


def _landed(machine: Machine, at: At, access: Access) -> bool:
    return machine.over(at.agent, machine.bars[access.bar]) >= access.until


def _read_out(machine: Machine, at: At, store: Access) -> bool:
    if store.bar >= 0:  # a copy to another CTA: over when it has landed there
        return _landed(machine, at, store)
    return store.done >= 0 and machine.order(at.agent, Mark(store.mark.agent, store.done, store.mark.step))


def read_generic(machine: Machine, at: At) -> None:
    """Plain loads from the tile."""
    _read(machine, at, fence=False)


def read_async(machine: Machine, at: At) -> None:
    """A store or reduction reads the tile through the async proxy."""
    _read(machine, at, fence=True)


def _read(machine: Machine, at: At, *, fence: bool) -> None:
    if machine.lost:
        return
    clean = True
    for stage, access in _overlapping(at, _read_spans(at)):
        if access.way is WRITE and not machine.order(at.agent, access.mark):
            _race(
                machine,
                at,
                stage,
                access,
                "written",
                verb="multiplied" if isinstance(at.op, ops.MmaStep) else "stored" if fence else "read",
            )
            clean = False
        elif access.way is WRITE and fence and not machine.fenced(at.agent, access.mark):
            _unfenced(machine, at, stage, access)
            clean = False
        elif access.way is LOAD and not _landed(machine, at, access):
            _early(machine, at, stage, access)
            clean = False
    if clean:
        _written(machine, at, _read_spans(at))


def covered(machine: Machine, at: At) -> None:
    """What a copy combines its bytes with is there already."""
    if not machine.lost:
        _written(machine, at, at.tiles)


def _written(machine: Machine, at: At, spans: Sequence[Span]) -> None:
    for stage, lo, hi in spans:
        if stage.covers(lo, hi):
            continue
        loads = [s for s in machine.program.walk() if isinstance(s.op, ops.Landing) and filled(s.op).tile == stage.tile]
        if loads and not stage.written:
            _early(machine, at, stage, None)
            continue
        at.flagged = True
        machine.out.add(
            ids.READ_UNWRITTEN,
            f"{stage.name} is read where nothing was ever written",
            step=at.step,
            got="never written" if not stage.written else f"bytes {', '.join(f'{a} to {b - 1}' for a, b in stage.written)} written",
            required=f"bytes {lo} to {hi - 1}",
            fix="load or fill the whole tile first",
            causes=[("loads a part", s) for s in loads],
            key=(stage.tile, at.step.site or id(at.step)),
        )


def _early(machine: Machine, at: At, stage: Stage, access: Access | None) -> None:
    bar = machine.bars[access.bar].name if access is not None else "the barrier of its load"
    at.flagged = True
    machine.out.add(
        ids.READ_EARLY,
        f"{stage.name} is read by {at.agent.name} before its load is known to have landed",
        step=at.step,
        required=f"a wait on {bar} by the reading threads, or by one that then syncs with them",
        fix="wait for the load's token (or phase) before this line",
        causes=[("the load", access.mark.step)] if access is not None else (),
        key=(stage.tile, at.step.site or id(at.step)),
    )


def _race(machine: Machine, at: At, stage: Stage, access: Access, done: str, *, verb: str) -> None:
    others = "other threads of the same group" if access.mark.agent == at.agent.id else machine.agents[access.mark.agent].name
    at.flagged = True
    machine.out.add(
        ids.RACE if access.way is WRITE else ids.OVERWRITE_READ,
        f"{stage.name} is {verb} by {at.agent.name} while {others} may not have {done} it yet",
        step=at.step,
        required="a sync between the two",
        fix="call `cta.sync()` (or arrive and wait on a barrier) in between",
        causes=[(f"{done} here", access.mark.step)],
        key=(stage.tile, at.step.site or id(at.step)),
    )


def _verb(at: At) -> str:
    return "loaded into" if isinstance(at.op, ops.Landing) else "written"


def _unfenced(machine: Machine, at: At, stage: Stage, access: Access) -> None:
    at.flagged = True
    machine.out.add(
        ids.NO_FENCE,
        f"{stage.name} was written by plain stores that the async proxy need not see",
        step=at.step,
        got=f"no proxy fence by {machine.agents[access.mark.agent].name} after the write, ordered before the copy",
        required="each writing thread: write, `fence_proxy_async`, then the sync, then the copy",
        fix="call `cta.fence_proxy_async()` between the write and the sync, in the threads that wrote",
        causes=[("written here", access.mark.step)],
        key=(stage.tile, at.step.site or id(at.step)),
    )


def write_generic(machine: Machine, at: At) -> None:
    """Plain stores into the tile."""
    for stage, access in _overlapping(at, at.tiles):
        _overwrite(machine, at, stage, access)


def write_async(machine: Machine, at: At) -> None:
    """A load will write the tile, in every receiving CTA."""
    for stage, access in _overlapping(at, at.tiles):
        if access.way is WRITE and machine.order(at.agent, access.mark) and not machine.fenced(at.agent, access.mark):
            _unfenced(machine, at, stage, access)
        else:
            _overwrite(machine, at, stage, access)


def _overwrite(machine: Machine, at: At, stage: Stage, access: Access) -> None:
    if machine.lost:
        return
    key = (stage.tile, at.step.site or id(at.step))
    if access.way is LOAD:
        together = access.reduces is not None and access.reduces == combines(at.op)
        if not _landed(machine, at, access) and not together:  # elements are combined one by one, in any order
            bar = machine.bars[access.bar]
            machine.out.add(
                ids.OVERWRITE_LOAD,
                f"{stage.name} is {_verb(at)} while an earlier load may still write it",
                step=at.step,
                required=f"a wait on {bar.name} first",
                fix="wait for the earlier load, or use another stage",
                causes=[("the earlier load", access.mark.step)],
                key=key,
            )
    elif access.way is STORE:
        if not _read_out(machine, at, access):
            machine.out.add(
                ids.OVERWRITE_STORE,
                f"{stage.name} is {_verb(at)} while an earlier store may still read it",
                step=at.step,
                got="a copy to another CTA, not known to have landed"
                if access.bar >= 0
                else "no wait for the store's group"
                if access.done < 0
                else f"no sync after the wait of {machine.agents[access.mark.agent].name}",
                required="`commit_group`, `wait_group_read` by the storing thread, then a sync with the writers"
                if access.bar < 0
                else f"the receiving CTA's wait on {machine.bars[access.bar].name}, and word of it here",
                fix="wait for the group (mind how many stay pending), then sync, before this line"
                if access.bar < 0
                else "call `cta.cluster_sync()` behind the receiver's wait, or let it arrive on a barrier here, before this line",
                causes=[("the store", access.mark.step)],
                key=key,
            )
    elif not machine.order(at.agent, access.mark):
        _race(machine, at, stage, access, "written" if access.way is WRITE else "finished reading", verb=_verb(at))
