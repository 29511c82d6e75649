"""What each need means: looks at the state and reports, and changes nothing but the mark that a barrier's counts are past saving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from oxidecopy.isa import limits, ops
from oxidecopy.isa.expr import Expr
from oxidecopy.program.program import Step
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.code import Item
from oxidecopy.verify.coords import Placed, report_faults
from oxidecopy.verify.maps import acquired, releasable
from oxidecopy.verify.requirements import Need
from oxidecopy.verify.resolve import counters, ranges
from oxidecopy.verify.state import LIVE, Asked, At, Bar, Life, Machine, Mark, Use
from oxidecopy.verify.tiles import covered, read_async, read_generic, write_async, write_generic


# ---- the barrier object
def _fresh(machine: Machine, at: At) -> None:
    bar = at.bars[0]
    if at.agent.size > 1:
        machine.out.add(
            ids.DOUBLE_INIT,
            f"{bar.name} is initialised by {at.agent.size} threads",
            step=at.step,
            got=f"{at.agent.name}",
            required="one thread",
            fix="initialise inside `cta.thread(0)`, or use `init`, which does",
        )
    elif bar.life is LIVE:
        machine.out.add(
            ids.DOUBLE_INIT,
            f"{bar.name} is initialised while it is live",
            step=at.step,
            required="`inval` first, or one `init` before the loop",
            fix="move `init` out of the loop, or drop the second one",
            causes=_born(bar, "initialised here"),
        )
    elif bar.life is Life.DEAD and bar.born is not None and not machine.order(at.agent, bar.born):
        machine.out.add(
            ids.DOUBLE_INIT,
            f"{bar.name} is initialised again with no sync after its `inval`",
            step=at.step,
            required="a sync between the two",
            fix="call `cta.sync()` in between",
            causes=_born(bar, "invalidated here"),
        )


def _live(machine: Machine, at: At) -> None:
    known = at.agent.known
    for bar in at.bars:
        if bar.life is not LIVE or bar.born is None or known[bar.born.agent] < bar.born.time:
            _live_one(machine, at, bar)


def _live_one(machine: Machine, at: At, bar: Bar) -> None:
    if bar.life is not LIVE:
        machine.lost = True
    if bar.life is Life.NONE:
        machine.out.add(
            ids.BEFORE_INIT,
            f"{bar.name} is used before its `init`",
            step=at.step,
            required="`init`, then a sync, before any other use",
            fix="call `init` at the top of the pipeline, for every element of the array",
        )
    elif bar.life is Life.DEAD and bar.born is not None and not machine.order(at.agent, bar.born):
        _inval_in_use(machine, at.agent.id, bar, bar.born.step, at.step)
    elif bar.life is Life.DEAD:
        machine.out.add(
            ids.AFTER_INVAL,
            f"{bar.name} is used after its `inval`",
            step=at.step,
            required="no use after `inval`",
            fix="move `inval` behind the last use",
            causes=_born(bar, "invalidated here"),
        )
    elif bar.born is not None and not machine.order(at.agent, bar.born):
        machine.out.add(
            ids.INIT_UNSYNCED,
            f"{bar.name} is used by {at.agent.name} with no sync after its initialisation",
            step=at.step,
            required="a sync of the CTA between `init` and the first use by another thread",
            fix="call `cta.sync()` after the initialisation",
            causes=_born(bar, "initialised here"),
            key=(bar.rank, bar.decl, at.agent.id),
        )


def _remote_live(machine: Machine, at: At) -> None:
    known, rank = at.agent.known, at.agent.rank
    for bar in at.bars:
        born = bar.born
        if bar.rank == rank:
            _live_one(machine, at, bar)
            continue
        if bar.life is LIVE and born is not None and born.time <= bar.init_fence <= known[born.agent]:
            continue
        if bar.life is Life.DEAD:
            _live_one(machine, at, bar)
            continue
        ordered = bar.life is LIVE and born is not None and machine.order(at.agent, born)
        fenced = born is not None and bar.init_fence >= born.time and at.agent.known[born.agent] >= bar.init_fence
        if ordered and fenced:
            continue
        machine.lost = machine.lost or bar.life is not LIVE
        machine.out.add(
            ids.REMOTE_EARLY,
            f"{bar.name} is used by another CTA, which cannot know that it is initialised",
            step=at.step,
            got=f"{at.agent.name}: "
            + ("the initialising thread ran no fence.mbarrier_init" if ordered else "no cluster sync since the initialisation"),
            required="init, fence.mbarrier_init, cluster sync, then remote use",
            fix="call `cta.cluster_sync()` after `init` and before the first remote arrival or multicast",
            causes=_born(bar, "initialised here"),
            key=(bar.decl, at.step.site or id(at.step)),
        )


def _idle(machine: Machine, at: At) -> None:
    bar = at.bars[0]
    if bar.life is LIVE:
        balanced(machine, bar, [("invalidated here", at.step)])
    open_uses = [m for m in bar.used.values() if not machine.order(at.agent, m)]
    if open_uses:
        _inval_in_use(machine, open_uses[0].agent, bar, at.step, open_uses[0].step)
    elif bar.loaded is not None and machine.over(at.agent, bar) <= bar.loaded[0] and not bar.broken:
        machine.out.add(
            ids.INVAL_IN_USE,
            f"{bar.name} is invalidated while a load that reports to it may be in flight",
            step=at.step,
            required="a wait for the load's phase first",
            fix="wait for the token of that phase before `inval`",
            causes=[("the load", bar.loaded[1].step)],
        )


def _inval_in_use(machine: Machine, user: int, bar: Bar, inval: Step, use: Step) -> None:
    machine.out.add(
        ids.INVAL_IN_USE,
        f"{bar.name} is invalidated while {machine.agents[user].name} may still use it",
        step=inval,
        required="a sync between the last use and `inval`",
        fix="call `cta.sync()` before the invalidation",
        causes=[("may still run", use)],
    )


def _born(bar: Bar, words: str) -> list[tuple[str, Step | None]]:
    return [(words, bar.born.step)] if bar.born is not None else []


# ---- phases
def _phase(machine: Machine, at: At) -> None:
    known, ends = at.agent.known, machine.ends
    for bar in at.bars:
        if known[ends + bar.id] >= bar.phase or bar.life is not LIVE or bar.broken or bar.phase == bar.base:
            continue
        bar.broken = True
        part_of_last = any(m.agent == at.agent.id for m in (*bar.last_arrived, *bar.last_announced, *bar.last_copies))
        if isinstance(at.op, ops.Landing) and part_of_last:
            under_expected(machine, at.mark, bar, last=True)
            continue
        if any(m.step is at.step and m.agent != at.agent.id for m in bar.last_arrived):
            _too_many(machine, at, bar, bar.phase - 1, bar.count + at.agent.size, bar.last_arrived)
            continue
        if isinstance(at.op, ops.MbarrierExpectTx):
            expect_late(machine, bar, at.mark, bar.phase - 1, bar.last_arrived)
            continue
        machine.out.add(
            ids.AMBIGUOUS,
            f"{_word(at)} on {bar.name} may count in phase {bar.phase - 1 - bar.base} or in phase {bar.phase - bar.base}",
            step=at.step,
            got=f"{at.agent.does('has')} seen {max(0, machine.ended(at.agent, bar) - bar.base)} phases end before it",
            required=f"a wait for phase {bar.phase - 1 - bar.base} before anything that counts in the next one",
            fix="wait on the barrier (or on one that follows from it) before this op, or raise the count of `init`",
            causes=[("counted in the phase before", m.step) for m in bar.last_arrived],
        )


def _word(at: At) -> str:
    return "a copy" if isinstance(at.op, ops.Landing) else f"`{at.op.mnemonic}`"


def _room(machine: Machine, at: At) -> None:
    for bar in at.bars:
        if bar.life is not LIVE or bar.broken or at.agent.size <= bar.pending:
            continue
        bar.broken = True
        _too_many(machine, at, bar, bar.phase, bar.count - bar.pending + at.agent.size, bar.arrived)


def _too_many(machine: Machine, at: At, bar: Bar, phase: int, arrivals: int, arrived: list[Mark]) -> None:
    machine.out.add(
        ids.TOO_MANY,
        f"{bar.name} gets more arrivals in phase {phase - bar.base} than it counts",
        step=at.step,
        got=f"{arrivals} arrivals or more",
        required=f"{bar.count} (the count of `init`)",
        fix="let one thread arrive, or initialise with the number of threads that arrive",
        causes=[*_born(bar, "count set here"), *(("arrived here", m.step) for m in arrived if m.step is not at.step)],
    )


def _stays(machine: Machine, at: At) -> None:
    bar = at.bars[0]
    if bar.life is LIVE and not bar.broken and bar.count - at.agent.size < 1:
        bar.broken = True
        machine.out.add(
            ids.DROP_TO_ZERO,
            f"`arrive_drop` leaves {bar.name} with no arrivals to count",
            step=at.step,
            got=f"{bar.count} - {at.agent.size}",
            required="at least 1",
            fix="let one participant stay, or invalidate the barrier",
            causes=_born(bar, "count set here"),
        )


def _tx(machine: Machine, at: At) -> None:
    told, moved = at.item.told * at.agent.size, at.item.moved * at.agent.size
    for bar in at.bars:
        most = max(bar.expected + told, bar.issued + moved)
        if most > limits.MBARRIER_TX_MAX and not bar.broken:
            bar.broken = True
            machine.out.add(
                ids.TX_RANGE,
                f"{bar.name} is told of more bytes in one phase than it can count",
                step=at.step,
                got=most,
                required=f"at most {limits.MBARRIER_TX_MAX}",
                fix="split the loads over several barriers",
                causes=[("announced here", m.step) for m in bar.announced],
            )


def under_expected(machine: Machine, mark: Mark, bar: Bar, *, last: bool) -> None:
    """More bytes are on their way than the phase was told."""
    expected = bar.last_expected if last else bar.expected
    announced = bar.last_announced if last else bar.announced
    copies = bar.last_copies if last else bar.copies
    phase = bar.phase - bar.base - (1 if last else 0)
    got = (
        f"{bar.issued} bytes issued, {expected} expected"
        if not last
        else f"{expected} bytes expected, all of them used up by the copies before"
    )
    machine.out.add(
        ids.UNDER_EXPECTED,
        f"phase {phase} of {bar.name} expects fewer bytes than its copies bring: it may end before they have landed",
        step=mark.step,
        got=got,
        required="the bytes of all copies of the phase, peers' multicasts included",
        fix="pass every tile to `arrive_expect_tx` (its `nbytes` is what the barrier is told)" + _of_a_peer(machine, mark, bar),
        causes=[*(("announced here", m.step) for m in announced), *(("copied here", m.step) for m in copies if m.step is not mark.step)],
    )


def _of_a_peer(machine: Machine, mark: Mark, bar: Bar) -> str:
    """A copy from another CTA is announced here, or it comes a phase early."""
    if machine.agents[mark.agent].rank == bar.rank:
        return ""
    return (
        "; where all are announced, this peer copies a phase early: let it wait for the consumers of every CTA that it copies to"
        " (`init(n)` with all of them, `arrive_remote(rank)` by each)"
    )


def own_token(machine: Machine, at: At, token_bar: int) -> None:
    """A wait asks the barrier that the token's arrival was made on."""
    if token_bar != at.bars[0].id:
        machine.lost = True
        machine.out.add(
            ids.TOKEN,
            f"`{at.op.mnemonic}` on {at.bars[0].name} is given a token of {machine.bars[token_bar].name}",
            step=at.step,
            required="a token of the same barrier",
            fix="wait on the barrier that the token came from",
        )


def expect_late(machine: Machine, bar: Bar, mark: Mark, phase: int, arrived: list[Mark]) -> None:
    """No arrival of the phase has to follow the announcement."""
    machine.out.add(
        ids.EXPECT_LATE,
        f"phase {phase - bar.base} of {bar.name} may end before this `expect_tx` has announced its bytes",
        step=mark.step,
        required="an arrival of the same phase that follows the `expect_tx`",
        fix="use `arrive_expect_tx`, or let the announcing thread arrive after it",
        causes=[("can be the last arrival", m.step) for m in arrived],
    )


def over_expected(machine: Machine, bar: Bar, causes: list[tuple[str, Step]]) -> None:
    """The phase was told of bytes that never come."""
    machine.out.add(
        ids.OVER_EXPECTED,
        f"phase {bar.phase - bar.base} of {bar.name} expects more bytes than its copies bring: it never ends",
        step=bar.announced[-1].step if bar.announced else None,
        got=f"{bar.expected} bytes expected, {bar.issued} issued",
        required="equal numbers",
        fix="expect exactly the `nbytes` of the tiles that are loaded in this phase"
        + ("; a multicast brings them to the CTAs of its mask alone" if machine.program.cluster_size > 1 else ""),
        causes=[*(("copied here", m.step) for m in bar.copies), *causes],
    )


def balanced(machine: Machine, bar: Bar, causes: list[tuple[str, Step]]) -> None:
    """Where a barrier ends, the phase it is in owes no bytes either way."""
    if bar.broken or bar.issued == bar.expected:
        return
    if bar.issued < bar.expected:
        over_expected(machine, bar, causes)
    else:
        under_expected(machine, bar.copies[-1], bar, last=False)
    bar.broken = True


def _turn(machine: Machine, at: At) -> None:
    bar = at.bars[0]
    if bar.life is not LIVE:
        return
    for phase in at.phases:
        if phase > bar.base and machine.ended(at.agent, bar) < phase and not bar.broken:
            machine.out.add(
                ids.WAIT_AHEAD,
                f"{at.agent.does('waits')} for phase {phase - bar.base} of {bar.name} without having seen phase {phase - bar.base - 1} end",
                step=at.step,
                got=f"{max(0, machine.ended(at.agent, bar) - bar.base)} phases seen",
                required="every earlier phase seen: hardware knows only the parity, and an older phase looks like this one",
                fix="wait for each phase in turn, from 0 on",
            )
        elif bar.phase >= phase + 2 and not bar.broken:
            wait_behind(machine, bar, at.mark, phase, bar.last_arrived)


def wait_behind(machine: Machine, bar: Bar, wait: Mark, phase: int, arrived: list[Mark]) -> None:
    """The phase after the one waited for can end before the wait has looked."""
    machine.out.add(
        ids.WAIT_BEHIND,
        f"{machine.agents[wait.agent].name} may look for phase {phase - bar.base} of {bar.name} when the next one is over too",
        step=wait.step,
        required="some arrival of the next phase that follows this wait: two phases later the parity says `not done`",
        fix="let the waiting threads arrive on the barrier (or on the one the next arrival waits for) after this wait",
        causes=[("ends the next phase without having to wait for it", m.step) for m in arrived],
    )


def _coords(machine: Machine, at: At) -> None:
    if id(at.step) in machine.doubtful and isinstance(at.op, Placed):
        if machine.log is not None:
            place = _first(at.op)
            machine.log.append(Asked(at.agent.id, Use.COORD, place, counters(at.agent), item=at.item))
        if report_faults(machine.program, machine.launch, at.step, at.op, ranges(at.agent), machine.out):
            machine.doubtful.discard(id(at.step))


def _first(op: Placed) -> Expr:
    """An expression of the place, by which the op is told apart."""
    if isinstance(op, ops.LoadIndex):
        return op.index
    return op.first[0] if isinstance(op, ops.TensormapReplaceArray) else op.coords[0]


# ---- who runs it
def _committed(machine: Machine, at: At) -> None:
    machine.out.add(
        ids.NEVER_COMMITTED,
        f"{at.agent.does('waits')} for bulk groups without ever committing one: they belong to the thread that issued the copies",
        step=at.step,
        required="`commit_group` by the same thread",
        fix="commit and wait in the thread that issues the stores",
    )


def unguarded(machine: Machine, item: Item) -> None:
    """An op that must not hang on the answer of a test."""
    machine.out.add(
        ids.GUARDED,
        f"`{item.op.mnemonic}` runs or not by the answer of a test: what other threads wait for would hang on timing",
        step=item.step,
        required="only reads, plain writes and waits under the answer of try_wait or test_wait",
        fix="move it out of the block, behind a `wait`",
    )


CHECKS: Final[dict[Need, Callable[[Machine, At], None]]] = {
    Need.FRESH: _fresh,
    Need.LIVE: _live,
    Need.REMOTE_LIVE: _remote_live,
    Need.IDLE: _idle,
    Need.PHASE: _phase,
    Need.ROOM: _room,
    Need.STAYS: _stays,
    Need.TX: _tx,
    Need.TURN: _turn,
    Need.READ: read_generic,
    Need.WRITE: write_generic,
    Need.READ_ASYNC: read_async,
    Need.WRITE_ASYNC: write_async,
    Need.COVERED: covered,
    Need.COORDS: _coords,
    Need.COMMITTED: _committed,
    Need.ACQUIRED: acquired,
    Need.UNREAD: releasable,
}
