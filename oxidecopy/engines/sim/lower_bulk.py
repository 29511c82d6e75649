"""Plain bulk copies as closures; as with tensor copies, at once without hazards, and by `Flight` with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oxidecopy.engines.sim.agents import Agent, Op
from oxidecopy.engines.sim.bulk import RunPlan, SharedRun, check_reduce, check_shared, combined, moved_bytes, run_layout
from oxidecopy.engines.sim.images import TileImage
from oxidecopy.engines.sim.lower_barriers import peer
from oxidecopy.engines.sim.lower_copies import Images, delivered, receivers
from oxidecopy.isa import ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from oxidecopy.engines.sim.exprs import Value
    from oxidecopy.engines.sim.lower_ops import Make
    from oxidecopy.engines.sim.lowering import Lowering

Load: TypeAlias = ops.BulkG2S | ops.BulkG2SMulticast
Store: TypeAlias = ops.BulkS2G | ops.BulkReduce
Send: TypeAlias = ops.BulkS2S | ops.BulkReduceS2S


def _run(low: Lowering, op: Load | Store | ops.BulkPrefetch) -> tuple[RunPlan, Callable[[list[int]], tuple[int, ...]]]:
    """The array's side of a copy: its bytes, and how its place is found."""
    at = [low.value(e) for e in op.coords]
    return RunPlan(low.bound.arrays[op.array.name], low.bound.memory, op.nbytes), lambda env: tuple([value(env) for value in at])


def load(low: Lowering, op: Load) -> Make:
    (plan, place_of), images = _run(low, op), Images(run_layout(moved_bytes(op.nbytes)))
    tile_at, bar_at, threads = low.tile_address(op.tile), low.barrier_address(op.bar), low.threads
    machine, flight, site = low.machine, low.machine.flight, low.site
    mask: Value | None = low.value(op.cta_mask) if isinstance(op, ops.BulkG2SMulticast) else None

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            env = agent.env
            place, address, at = place_of(env), tile_at(env), bar_at(env)
            plan.address(place)
            check_shared(address)
            targets = (agent.cta,) if mask is None else receivers(machine.ctas, mask(env))
            for _ in range(threads if plan.nbytes else 0):
                if flight is not None:
                    flight.load(agent, plan, place, [(cta, images.at(cta, address), cta.barrier(at)) for cta in targets], site)
                    continue
                units = plan.load(place)
                for cta in targets:
                    images.at(cta, address).scatter(units)
                    delivered(machine, cta.barrier(at), plan.nbytes)
            return nxt

        return run

    return make


def store(low: Lowering, op: Store) -> Make:
    (plan, place_of), images = _run(low, op), Images(run_layout(moved_bytes(op.nbytes)))
    tile_at, threads, flight, site = low.tile_address(op.tile), low.threads, low.machine.flight, low.site
    reduces = op.op if isinstance(op, ops.BulkReduce) else ""

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            place, address = place_of(agent.env), tile_at(agent.env)
            if reduces:
                check_reduce(reduces, plan.dtype, shared=False)
            plan.address(place)
            check_shared(address)
            for _ in range(threads if plan.nbytes else 0):
                image = images.at(agent.cta, address)
                if flight is not None:
                    flight.store(agent, plan, place, image, reduces, site)
                elif reduces:
                    plan.reduce(place, image.gather(), reduces)
                else:
                    plan.store(place, image.gather())
            return nxt

        return run

    return make


def prefetch(low: Lowering, op: ops.BulkPrefetch) -> Make:
    """Nothing that a program could see, but for the alignment; size and memory are not looked at (measured)."""
    plan, place_of = _run(low, op)

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            plan.address(place_of(agent.env))
            return nxt

        return run

    return make


def send(low: Lowering, op: Send) -> Make:
    """A copy to a CTA of the cluster, its own included; the signal goes to the CTA that receives (measured)."""
    layout = run_layout(moved_bytes(op.nbytes))
    here, there = Images(layout), Images(layout)
    from_at, to_at, bar_at, rank_of = low.tile_address(op.tile), low.tile_address(op.into), low.barrier_address(op.bar), low.value(op.rank)
    machine, flight, site, threads = low.machine, low.machine.flight, low.site, low.threads
    reduces = (op.op, low.tile(op.into).dtype) if isinstance(op, ops.BulkReduceS2S) else None

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            env = agent.env
            if reduces is not None:
                check_reduce(*reduces, shared=True)
            source, target, at, cta = from_at(env), to_at(env), bar_at(env), peer(machine.ctas, rank_of(env))
            check_shared(source)
            check_shared(target)
            for _ in range(threads if layout.nbytes else 0):
                images, bar = (here.at(agent.cta, source), there.at(cta, target)), cta.barrier(at)
                if flight is not None:
                    flight.send(agent, images[0], SharedRun(images[0]), (cta, images[1], bar), reduces, site)
                    continue
                _at_once(*images, reduces)
                delivered(machine, bar, layout.nbytes)
            return nxt

        return run

    return make


def _at_once(source: TileImage, target: TileImage, reduces: tuple[str, str] | None) -> None:
    units = source.gather()
    target.scatter(units if reduces is None else combined(*reduces, target.gather(), units))
