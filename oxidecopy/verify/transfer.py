"""What an op does to the abstract state, and whether it can run yet.

Landing is taken to be immediate: bytes count in their phase at the issue. That is no loss, because every byte and arrival is proven to fall
in that phase on any schedule, and nobody may use the data before the phase is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, assert_never

import numpy as np

from oxidecopy.isa import expr, ops
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.check import expect_late, own_token, under_expected, wait_behind
from oxidecopy.verify.code import nothing
from oxidecopy.verify.maps import acquire, release, use
from oxidecopy.verify.resolve import value
from oxidecopy.verify.state import (
    LIVE,
    LOAD,
    PHASE,
    READ,
    STORE,
    WRITE,
    Access,
    Agent,
    At,
    Bar,
    Group,
    Known,
    Life,
    Machine,
    Mark,
    Span,
    TokenKey,
    Way,
    join,
)
from oxidecopy.verify.tiles import combines

Effect: TypeAlias = Callable[[Machine, At], None]
Ready: TypeAlias = Callable[[Machine, At], bool]


# ---- may it run?
def ready_of(op: ops.Instr) -> Ready | None:
    """Of an op that may have to wait: whether it need not. It resolves the phases waited for, or registers the agent with the sync."""
    match op:
        case ops.MbarrierWait():
            return partial(_tokens_ready, tokens=op.tokens)
        case ops.MbarrierWaitPhase():
            return partial(_phase_ready, asked=op.phase)
        case ops.MbarrierWaitParity():
            return partial(_parity_ready, asked=op.parity)
        case ops.BarSync():
            return partial(_bar_sync, number=op.number, threads=op.threads)
        case ops.ClusterSync():
            return _cluster_sync
        case _:
            return None


def _phase_ready(machine: Machine, at: At, *, asked: expr.Expr) -> bool:
    bar = at.bars[0]
    if not at.phases:
        at.phases = (bar.base + value(machine, at.agent, asked, PHASE, bar.id),)
    return bar.phase > at.phases[0] or bar.life is not LIVE


def _parity_ready(machine: Machine, at: At, *, asked: expr.Expr) -> bool:
    bar = at.bars[0]
    if not at.phases:
        at.phases = (parity_phase(machine, at.agent, bar, asked),)
    return bar.phase > at.phases[0] or bar.life is not LIVE


def _bar_sync(machine: Machine, at: At, *, number: int, threads: int) -> bool:
    return _sync(machine, at, (at.agent.rank, number), threads)


def _cluster_sync(machine: Machine, at: At) -> bool:
    return _sync(machine, at, (-1, 0), machine.program.threads * machine.program.cluster_size)


def parity_phase(machine: Machine, agent: Agent, bar: Bar, parity: expr.Expr) -> int:
    """The phase that a wait for `parity` means, given what the agent knows: the one it has not seen end, or the one before."""
    seen = max(machine.ended(agent, bar), bar.base)
    return seen if (value(machine, agent, parity) & 1) == ((seen - bar.base) & 1) else seen - 1


def _tokens_ready(machine: Machine, at: At, *, tokens: tuple[int, ...]) -> bool:
    if at.bars[0].life is not LIVE:
        return True
    found = [machine.tokens.get((at.agent.rank, t, at.turns)) for t in tokens]
    known = [f for f in found if f is not None]
    if len(known) < len(found):
        return False
    for bar, _ in known:
        own_token(machine, at, bar)
    at.phases = tuple([phase for bar, phase in known if bar == at.bars[0].id])
    return at.bars[0].phase > max(at.phases, default=-1)


def _sync(machine: Machine, at: At, key: tuple[int, int], wanted: int) -> bool:
    if at.agent.released:
        return True
    waiting = machine.syncs.setdefault(key, [])
    if at.agent not in waiting:
        waiting.append(at.agent)
    here = sum([a.size for a in waiting])
    if here < wanted and all((op := a.code[a.pc].op) is at.op or op == at.op for a in waiting):
        return False
    met = tuple([number for a in waiting for number in (a.id, id(a.code[a.pc].op))])
    if here != wanted or met not in machine.met:
        machine.met.add(met)
        _sync_counts(machine, at, waiting, here, wanted)
    release_sync(machine, key)
    return True


def _sync_counts(machine: Machine, at: At, waiting: list[Agent], here: int, wanted: int) -> None:
    steps = {id(step): step for step in [a.code[a.pc].step for a in waiting]}
    others = {(step.op.threads, key): step for key, step in steps.items() if isinstance(step.op, ops.BarSync)}
    if here > wanted or len({threads for threads, _ in others}) > 1:  # two counts on one barrier: the hardware's choice is undefined
        machine.out.add(
            ids.SYNC_COUNT,
            f"`{at.op.mnemonic}` is reached by more threads than it counts, or by threads that count differently",
            step=at.step,
            got=f"{here} threads: {', '.join(a.threads.name for a in waiting)}",
            required=f"{wanted} threads",
            fix="let exactly the threads of the group run it",
            causes=[("also waits here", s) for s in others.values() if s is not at.step],
        )
    elif isinstance(at.op, ops.BarSync):
        _sync_users(machine, at, at.op, waiting)


def _sync_users(machine: Machine, at: At, op: ops.BarSync, waiting: list[Agent]) -> None:
    """Who meets whom must not hang on timing: all users of a named barrier meet each time."""
    users = machine.sync_users.setdefault((at.agent.rank, op.number), {})
    users.update([(a.id, a.size) for a in waiting])
    if sum(users.values()) > op.threads:
        machine.out.add(
            ids.SYNC_COUNT,
            f"thread barrier {op.number} counts {op.threads} threads, but more threads use it: who meets whom would hang on timing",
            step=at.step,
            got=", ".join(sorted(machine.agents[i].threads.name for i in users)),
            required="one group of threads for each named barrier",
            fix="give each group a barrier number of its own",
            key=(at.agent.rank, at.step.site or id(at.step)),
        )


def release_sync(machine: Machine, key: tuple[int, int]) -> None:
    """Lets everybody at a sync pass, knowing what all of them did."""
    waiting = machine.syncs.pop(key)
    machine.woken = True
    together: Known = machine.publish(waiting[0])
    for a in waiting[1:]:
        join(together, machine.publish(a))
    for a in waiting:
        a.known = together.copy()
        a.released, a.asleep = True, False


# ---- effects
def apply(machine: Machine, at: At) -> None:
    """Runs the op. An op on a barrier that is not live has no effect, as its violation is already reported."""
    for bar in at.bars:
        bar.used[at.agent.id] = at.mark
    at.item.effect(machine, at)


def effect_of(op: ops.Instr) -> Effect:  # noqa: C901  one case per op
    """What the op does. Total over `Instr`."""
    match op:
        case ops.MbarrierInit():
            return partial(_init, count=op.count)
        case ops.MbarrierInval():
            return _inval
        case ops.MbarrierArrive() | ops.MbarrierArriveDrop():
            return partial(arrive, token=op.token, drop=isinstance(op, ops.MbarrierArriveDrop))
        case ops.MbarrierArriveExpectTx():
            return partial(arrive, token=op.token, nbytes=op.nbytes)
        case ops.MbarrierArriveRemote():
            return arrive
        case ops.MbarrierArriveExpectTxRemote():
            return partial(arrive, nbytes=op.nbytes)
        case ops.MbarrierExpectTx():
            return partial(_expect, nbytes=op.nbytes)
        case ops.MbarrierCompleteTx():
            return _bytes
        case ops.MbarrierWait() | ops.MbarrierWaitPhase() | ops.MbarrierWaitParity():
            return _pass
        case ops.MbarrierTestToken():
            return partial(_ask, op=op)
        case ops.MbarrierTestParity():
            return partial(_ask_parity, op=op)
        case ops.TensorG2S() | ops.TensorG2SMulticast() | ops.TensorGather4() | ops.BulkG2S() | ops.BulkG2SMulticast():
            return _load
        case ops.TensorS2G() | ops.TensorReduce() | ops.TensorScatter4() | ops.BulkS2G() | ops.BulkReduce():
            return _store
        case ops.BulkS2S() | ops.BulkReduceS2S():
            return partial(_send, reduces=combines(op))
        case ops.TensorPrefetch():
            return nothing if op.map.slot is None else _fetch
        case ops.BulkPrefetch():
            return nothing
        case ops.TensormapCopy() | ops.TensormapReplace() | ops.TensormapReplaceArray():
            return _write
        case ops.TensormapCpFenceproxy():
            return _release
        case ops.FenceProxyTensormap():
            return acquire
        case ops.CommitGroup():
            return _commit
        case ops.WaitGroup() | ops.WaitGroupRead():
            return partial(_wait_groups, pending=op.pending)
        case ops.FenceProxyAsync():
            return _fence
        case ops.FenceMbarrierInit():
            return _fence_init
        case ops.StoreGlobal():
            return _read
        case ops.Fill() | ops.Iota():
            return _write
        case ops.MapTiles() | ops.TransposeTile() | ops.ReduceTile() | ops.StencilTile():
            return _map
        case ops.MmaStep():
            return _operands
        case ops.MmaOut():
            return _write
        case ops.BarSync() | ops.ClusterSync():
            return _go_on
        case (
            ops.Scope() | ops.When() | ops.Loop() | ops.ProduceStage() | ops.ConsumeStage() | ops.LoadStoreStage()
            | ops.Contract() | ops.ContractDrain() | ops.MmaZero() | ops.LoadIndex() | ops.ShareTiles() | ops.NextTile()
        ):  # fmt: skip
            return nothing  # what the last three read is known by its range alone, from the start
        case _:
            assert_never(op)


def _go_on(_machine: Machine, at: At) -> None:
    at.agent.released = False


def _pass(machine: Machine, at: At) -> None:
    passed(machine, at.agent, at.bars[0], at.phases, at.mark)


def _init(_machine: Machine, at: At, *, count: int) -> None:
    bar = at.bars[0]
    bar.life, bar.born, bar.init_fence = LIVE, at.mark, -1
    bar.base = bar.phase
    bar.count = bar.pending = count
    bar.expected = bar.issued = 0
    bar.acc, bar.loaded, bar.broken = None, None, False
    bar.arrived, bar.announced, bar.bare, bar.copies = [], [], [], []
    bar.last_arrived, bar.last_announced, bar.last_copies = [], [], []
    bar.passed, bar.published, bar.remote = {}, None, {}
    bar.used = {at.agent.id: at.mark}
    _wake(bar)


def _ask_parity(machine: Machine, at: At, op: ops.MbarrierTestParity) -> None:
    at.agent.answers[op.pred] = (at.bars[0].id, parity_phase(machine, at.agent, at.bars[0], op.parity))


def _ask(machine: Machine, at: At, op: ops.MbarrierTestToken) -> None:
    key = (at.agent.rank, op.token, at.turns)
    at.agent.answers[op.pred] = key
    if key in machine.tokens:
        own_token(machine, at, machine.tokens[key][0])


def _inval(_machine: Machine, at: At) -> None:
    bar = at.bars[0]
    bar.life, bar.born, bar.used = Life.DEAD, at.mark, {}
    _wake(bar)


def _wake(bar: Bar) -> None:
    """Whoever waits for a phase looks again."""
    for agent in bar.sleepers:
        agent.asleep = False
    bar.sleepers.clear()


def _name_token(machine: Machine, at: At, token: int) -> None:
    bar = at.bars[0]
    key: TokenKey = (at.agent.rank, token, at.turns)
    if bar.life is LIVE:
        before = machine.tokens.setdefault(key, (bar.id, bar.phase))
        if before != (bar.id, bar.phase) and not bar.broken:
            bar.broken = True
            machine.out.add(
                ids.AMBIGUOUS,
                f"the arrivals of one `arrive` on {bar.name} fall in two phases, so its token names none",
                step=at.step,
                got=f"phases {before[1] - bar.base} and {bar.phase - bar.base}",
                required="all threads of the scope arriving in one phase",
                fix="initialise with the number of threads that arrive",
            )


def arrive(machine: Machine, at: At, *, token: int | None = None, nbytes: int = 0, drop: bool = False) -> None:
    """The agent's threads arrive on each barrier of the op, each announcing so many bytes."""
    if token is not None:
        _name_token(machine, at, token)
    n = at.agent.size
    for bar in at.bars:
        if bar.life is not LIVE:
            continue
        if drop:
            bar.count = max(1, bar.count - n)
        if nbytes:
            bar.expected += nbytes * n
            bar.announced.append(at.mark)
        bar.pending = max(0, bar.pending - n)
        bar.arrived.append(at.mark)
        handed = machine.publish(at.agent)
        if bar.acc is None:
            bar.acc = handed
        else:
            join(bar.acc, handed)
        if bar.rank != at.agent.rank:
            bar.remote[at.agent.id] = (bar.phase, at.mark)
        settle(machine, bar, at.mark)


def _expect(machine: Machine, at: At, *, nbytes: int) -> None:
    bar = at.bars[0]
    if bar.life is LIVE:
        bar.expected += nbytes * at.agent.size
        bar.announced.append(at.mark)
        bar.bare.append(at.mark)
        settle(machine, bar, at.mark)


def _bytes(machine: Machine, at: At) -> None:
    moved = at.item.moved * at.agent.size
    for bar in at.bars:
        if bar.life is LIVE:
            bar.issued += moved
            bar.copies.append(at.mark)
            settle(machine, bar, at.mark)


def settle(machine: Machine, bar: Bar, mark: Mark) -> None:
    """Ends the phase when nothing is missing (tma.md D.2, completion test)."""
    if bar.pending:
        return
    if bar.issued > bar.expected and not bar.broken:
        bar.broken = True
        under_expected(machine, bar.copies[-1], bar, last=False)
    if bar.issued == bar.expected or bar.broken:
        finish(machine, bar, mark)


def finish(machine: Machine, bar: Bar, mark: Mark) -> None:
    """The phase is over: what its arrivers knew becomes known to whoever waits for it."""
    known = bar.acc if bar.acc is not None else np.zeros_like(machine.agents[0].known)
    if not bar.broken:
        for m in bar.bare:
            if known[m.agent] < m.time:
                expect_late(machine, bar, m, bar.phase, bar.arrived)
        for m in bar.passed.values():
            # A copy is an arrival as good, for whatever its issuer had to wait for: the phase needs its bytes.
            if not machine.ran_before(known, m):
                wait_behind(machine, bar, m, bar.phase - 1, bar.arrived)
    machine.woken = True
    _wake(bar)
    bar.published = known  # a legal wait looks one phase back only
    bar.phase += 1
    bar.pending, bar.acc = bar.count, None
    bar.last_expected, bar.expected, bar.issued = bar.expected, 0, 0
    bar.last_arrived, bar.last_announced, bar.last_copies = bar.arrived, bar.announced, bar.copies
    bar.arrived, bar.announced, bar.bare, bar.copies, bar.passed = [], [], [], [], {}


def passed(machine: Machine, agent: Agent, bar: Bar, phases: Sequence[int], mark: Mark) -> None:
    """A wait for these phases is over: the agent knows what their arrivers knew, and that their loads have landed.

    What is published is of the newest phase: an older one, which only a test may name, gives no more than that it is over.
    """
    if bar.life is not LIVE:
        return
    for phase in phases:
        if bar.published is not None and phase >= bar.base and phase == bar.phase - 1:
            join(agent.known, bar.published)
        machine.learn(agent, bar, phase + 1)
        if phase == bar.phase - 1:
            bar.passed[agent.id] = mark


# ---- tiles
def _load(machine: Machine, at: At, *, reduces: str | None = None) -> None:
    for bar, (stage, lo, hi) in zip(at.bars, at.tiles, strict=True):
        load = Access(LOAD, at.mark, lo, hi, bar=bar.id, until=bar.phase + 1, reduces=reduces)
        use(machine, at, load)
        if reduces is None:
            _replace(stage.accesses, load)
        else:
            _again(stage.accesses, load)  # another CTA's may come beside it, which then follows nothing that this one follows
        stage.cover(lo, hi)
        if bar.life is LIVE:
            bar.loaded = (bar.phase, at.mark)
            machine.witness(at.agent, bar)
    _bytes(machine, at)


def _send(machine: Machine, at: At, *, reduces: str | None) -> None:
    """A copy to another CTA: what it reads here is free once it has landed there."""
    (bar,), ((stage, lo, hi),) = at.bars, at.sources
    read = Access(STORE, at.mark, lo, hi, bar=bar.id, until=bar.phase + 1)
    if not at.flagged:
        _again(stage.accesses, read)
    _load(machine, at, reduces=reduces)


def _store(machine: Machine, at: At) -> None:
    store = _touch(at, at.tiles[0], STORE)
    at.agent.open.append(store)
    use(machine, at, store)


def _fetch(machine: Machine, at: At) -> None:
    use(machine, at, None)


def _release(machine: Machine, at: At) -> None:
    _read(machine, at)
    release(machine, at)


def _read(_machine: Machine, at: At) -> None:
    _touch(at, at.tiles[0], READ)


def _touch(at: At, span: Span, way: Way) -> Access:
    """A read of a tile, by plain loads or by a store."""
    stage, lo, hi = span
    access = Access(way, at.mark, lo, hi)
    if not at.flagged:
        _again(stage.accesses, access)
    return access


def _write(_machine: Machine, at: At) -> None:
    stage, lo, hi = at.tiles[0]
    write = Access(WRITE, at.mark, lo, hi)
    _share(at, write)
    if at.item.joint or at.item.guarded:
        # Each class writes its share only, or perhaps nothing: what must be ordered before the whole of it stays.
        _again(stage.accesses, write)
    else:
        _replace(stage.accesses, write)
    if not at.item.guarded:
        stage.cover(lo, hi)


def _map(machine: Machine, at: At) -> None:
    for span in at.sources:
        _share(at, _touch(at, span, READ))
    _write(machine, at)


def _operands(_machine: Machine, at: At) -> None:
    """Reads that are over when the op is: what is loaded over them needs an order, and no fence."""
    for span in at.sources:
        _touch(at, span, READ)


def _share(at: At, access: Access) -> None:
    """Where several classes run the op, the access is of each class's share: no race with the others' shares in the same instance."""
    if at.item.joint:
        access.loops, access.turns = at.item.loops, at.turns


def _replace(accesses: list[Access], new: Access) -> None:
    """Whatever is ordered after a write is ordered after what the write had to follow: accesses inside it are done with."""
    accesses[:] = [a for a in accesses if a.lo < new.lo or new.hi < a.hi]
    accesses.append(new)


def _again(accesses: list[Access], new: Access) -> None:
    """The same agent's earlier access of the same kind and bytes is over before this one is."""
    key = (new.way, new.mark.agent, new.lo, new.hi, new.bar, new.reduces)
    accesses[:] = [a for a in accesses if (a.way, a.mark.agent, a.lo, a.hi, a.bar, a.reduces) != key]
    accesses.append(new)


# ---- groups and fences
def _commit(_machine: Machine, at: At) -> None:
    agent = at.agent
    agent.groups.append(Group(agent.open))
    agent.open = []


def _fence(machine: Machine, at: At) -> None:
    agent = at.agent
    if at.item.guarded:
        return  # it may not have run
    agent.fence = at.mark.time
    machine.keep_own(agent)


def _fence_init(machine: Machine, at: At) -> None:
    for bar in machine.bars:
        # The first fence after the init: what follows from it must not be forgotten for a later one.
        if bar.born is not None and bar.born.agent == at.agent.id and bar.life is LIVE and bar.init_fence < 0:
            bar.init_fence = at.mark.time


def _wait_groups(_machine: Machine, at: At, *, pending: int) -> None:
    agent = at.agent
    over = agent.groups[: len(agent.groups) - pending] if pending < len(agent.groups) else []
    for group in over:
        for store in group.stores:
            store.done = at.mark.time
    agent.groups = agent.groups[len(over) :]
