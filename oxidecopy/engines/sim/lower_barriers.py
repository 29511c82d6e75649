"""mbarrier ops as closures. An op runs once per thread, so a class of m threads arrives m times and announces m times.

The hardware sees one bit of the phase a wait names: the phase with that parity that is current or just before. Asking for a phase that is
neither is answered as the hardware would, and reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, assert_never

from oxidecopy.engines.sim.agents import BLOCKED, Agent, Cta, Op, Wait
from oxidecopy.engines.sim.faults import LAUNCH_FAILED, Fault
from oxidecopy.engines.sim.mbarrier import Mbarrier
from oxidecopy.isa import ops

if TYPE_CHECKING:
    from oxidecopy.engines.sim.lower_ops import Make
    from oxidecopy.engines.sim.lowering import Lowering

Arrive: TypeAlias = (
    ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop | ops.MbarrierArriveRemote | ops.MbarrierArriveExpectTxRemote
)


def init(low: Lowering, op: ops.MbarrierInit) -> Make:
    address, count, machine, clocks, site = low.barrier_address(op.bar), op.count, low.machine, low.clocks, low.site

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            bar = agent.cta.init_barrier(address(agent.env), count)
            if clocks is not None:
                clocks.init(agent, bar, site)
            machine.wake(bar.waiters)
            return nxt

        return run

    return make


def inval(low: Lowering, op: ops.MbarrierInval) -> Make:
    address, machine, clocks, site = low.barrier_address(op.bar), low.machine, low.clocks, low.site

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            at = address(agent.env)
            bar = agent.cta.barrier(at)
            if clocks is not None:
                clocks.inval(agent, bar, site)
            agent.cta.invalidate(at)
            machine.wake(bar.waiters)  # whoever waits asks again and again: now for what is none any more
            return nxt

        return run

    return make


def _arrival(op: Arrive, threads: int) -> Callable[[Mbarrier], int]:
    """What the arrivals of a class do to a barrier; the result is the phase the last one counted in."""
    match op:
        case ops.MbarrierArriveExpectTx(nbytes=n) | ops.MbarrierArriveExpectTxRemote(nbytes=n):
            return lambda bar: bar.arrive_expect_tx(n, threads)
        case ops.MbarrierArriveDrop():
            return lambda bar: bar.arrive_drop(threads)
        case ops.MbarrierArrive() | ops.MbarrierArriveRemote():
            return lambda bar: bar.arrive(threads)
        case _:
            assert_never(op)


def arrive(low: Lowering, op: ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop) -> Make:
    address, token, key, threads = low.barrier_address(op.bar), op.token, low.token_key, low.threads
    machine, clocks, site = low.machine, low.clocks, low.site
    count = _arrival(op, threads)

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            cta, env = agent.cta, agent.env
            bar = cta.barrier(address(env))
            before = bar.phase
            if clocks is not None:
                clocks.arrive(agent, cta, bar, site)
            phase = count(bar)
            name = key(token, env)
            if clocks is not None:
                clocks.counted(agent, bar, before, phase, cta.tokens.get(name), site)
            cta.tokens[name] = (bar, phase)
            if bar.phase != before:
                machine.phase_over(bar)
            if cta.token_waiters:
                machine.wake_for_token(cta, token)
            return nxt

        return run

    return make


def move_tx(low: Lowering, op: ops.MbarrierExpectTx | ops.MbarrierCompleteTx) -> Make:
    address, nbytes, threads = low.barrier_address(op.bar), op.nbytes, low.threads
    machine, clocks, site = low.machine, low.clocks, low.site
    expect = isinstance(op, ops.MbarrierExpectTx)

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            bar = agent.cta.barrier(address(agent.env))
            before = bar.phase
            if clocks is not None:
                clocks.move_bytes(agent, bar, site, announced=expect)
            for _ in range(threads):
                if expect:
                    bar.expect_tx(nbytes)
                else:
                    bar.complete_tx(nbytes)
            if bar.phase != before:
                machine.phase_over(bar)
            return nxt

        return run

    return make


def arrive_remote(low: Lowering, op: ops.MbarrierArriveRemote | ops.MbarrierArriveExpectTxRemote) -> Make:
    address, rank, threads = low.barrier_address(op.bar), low.value(op.rank), low.threads
    machine, clocks, site = low.machine, low.clocks, low.site
    count = _arrival(op, threads)

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            env = agent.env
            cta = peer(machine.ctas, rank(env))
            bar = cta.barrier(address(env))
            before = bar.phase
            if clocks is not None:
                clocks.arrive(agent, cta, bar, site)
            phase = count(bar)
            if clocks is not None:
                clocks.counted(agent, bar, before, phase, None, site)
            if bar.phase != before:
                machine.phase_over(bar)
            return nxt

        return run

    return make


def peer(ctas: tuple[Cta, ...], rank: int) -> Cta:
    """CTA `rank` of the cluster."""
    if not 0 <= rank < len(ctas):
        raise Fault(
            LAUNCH_FAILED,
            "a remote operation names a CTA outside the cluster",
            got=f"rank {rank}",
            required=f"0 to {len(ctas) - 1}",
            fix="keep ranks below the cluster's size",
        )
    return ctas[rank]


def block_on(agent: Agent, bar: Mbarrier, phase: int) -> int:
    bar.waiters.append(agent)
    agent.wait = Wait("phase", bar, phase)
    return BLOCKED


def wait(low: Lowering, op: ops.MbarrierWait) -> Make:
    address, tokens, key, clocks, site = low.barrier_address(op.bar), op.tokens, low.token_key, low.clocks, low.site

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            cta, env = agent.cta, agent.env
            for token in tokens:
                found = cta.tokens.get(key(token, env))
                if found is None:  # its arrive has not run yet: the phase it will count in is not over either
                    cta.token_waiters.append(agent)
                    agent.wait = Wait("token", detail=token)
                    return BLOCKED
                bar, phase = cta.barrier(address(env)), found[1]  # the instruction knows a parity, not whose it is
                if clocks is not None:
                    clocks.own_token(agent, bar, found[0], site)
                    clocks.ask(agent, cta, bar, phase, site)
                if not bar.is_over(phase):
                    return block_on(agent, bar, phase)
                if clocks is not None:
                    clocks.waited(agent, bar, phase, site)
            return nxt

        return run

    return make


def wait_phase(low: Lowering, op: ops.MbarrierWaitPhase) -> Make:
    address, phase_of, clocks, site = low.barrier_address(op.bar), low.value(op.phase), low.clocks, low.site

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            env = agent.env
            phase = phase_of(env)
            if phase < 0:
                if clocks is not None:
                    clocks.use(agent, agent.cta, agent.cta.barrier(address(env)), site)
                return nxt
            bar = agent.cta.barrier(address(env))
            if clocks is not None:
                clocks.ask(agent, agent.cta, bar, phase, site)
            if not bar.is_over(phase):
                return block_on(agent, bar, phase)
            if clocks is not None:
                clocks.waited(agent, bar, phase, site)
            return nxt

        return run

    return make


def wait_parity(low: Lowering, op: ops.MbarrierWaitParity) -> Make:
    address, parity_of, clocks, site = low.barrier_address(op.bar), low.value(op.parity), low.clocks, low.site

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            env = agent.env
            bar = agent.cta.barrier(address(env))
            parity = parity_of(env)
            if clocks is not None:
                clocks.use(agent, agent.cta, bar, site)
            if not bar.is_over(parity):
                return block_on(agent, bar, bar.phase)
            if clocks is not None:
                clocks.waited(agent, bar, bar.phase - 1, site)
            return nxt

        return run

    return make


def test_token(low: Lowering, op: ops.MbarrierTestToken) -> Make:
    address, token, key, pred, clocks, site = low.barrier_address(op.bar), op.token, low.token_key, op.pred, low.clocks, low.site

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            found = agent.cta.tokens.get(key(token, agent.env))
            agent.answers[pred] = False
            bar = agent.cta.barrier(address(agent.env))
            if found is None:
                if clocks is not None:
                    clocks.use(agent, agent.cta, bar, site)
            else:
                phase = found[1]
                if clocks is not None:
                    clocks.own_token(agent, bar, found[0], site)
                    clocks.ask(agent, agent.cta, bar, phase, site)
                if bar.is_over(phase):
                    agent.answers[pred] = True
                    if clocks is not None:
                        clocks.acquire(agent, bar, phase)
            return nxt

        return run

    return make


def test_parity(low: Lowering, op: ops.MbarrierTestParity) -> Make:
    address, parity_of, pred, clocks, site = low.barrier_address(op.bar), low.value(op.parity), op.pred, low.clocks, low.site

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            env = agent.env
            bar = agent.cta.barrier(address(env))
            if clocks is not None:
                clocks.use(agent, agent.cta, bar, site)
            over = agent.answers[pred] = bar.is_over(parity_of(env))
            if over and clocks is not None:
                clocks.acquire(agent, bar, bar.phase - 1)
            return nxt

        return run

    return make
