"""Tensor copies and bulk groups as closures.

Without hazards a copy happens at once, which is one of its legal times, and bulk groups are never pending. With hazards the copy goes to
`Flight`, which delivers it later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, final

from oxidecopy.engines.sim import reports
from oxidecopy.engines.sim.agents import BLOCKED, Agent, Cta, Op, Wait
from oxidecopy.engines.sim.faults import ILLEGAL_INSTRUCTION, LAUNCH_FAILED, Fault
from oxidecopy.engines.sim.gather import GatherPlan, gather_plan
from oxidecopy.engines.sim.images import TileImage, check_aligned
from oxidecopy.engines.sim.packed import PackedPlan
from oxidecopy.engines.sim.pixels import PixelPlan
from oxidecopy.engines.sim.slots import CopyMap, map_of, slot_address
from oxidecopy.engines.sim.tma import TensorPlan, wrap32
from oxidecopy.engines.sim.wide import WidePlan, halo_of
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import Expr
from oxidecopy.isa.limits import SHARED_BASE
from oxidecopy.isa.swizzle import EVERY_SWIZZLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from oxidecopy.engines.sim.accesses import Access
    from oxidecopy.engines.sim.exprs import Value
    from oxidecopy.engines.sim.lower_ops import Make
    from oxidecopy.engines.sim.lowering import Lowering
    from oxidecopy.engines.sim.machine import Machine
    from oxidecopy.engines.sim.mbarrier import Mbarrier
    from oxidecopy.program.tensor_map import TileLayout


Load: TypeAlias = ops.TensorG2S | ops.TensorG2SMulticast | ops.TensorGather4
Store: TypeAlias = ops.TensorS2G | ops.TensorReduce | ops.TensorScatter4
Through: TypeAlias = Load | Store | ops.TensorPrefetch


class Images:
    """Tile images of one op, by CTA and address: an op in a loop over stages meets the same few again and again."""

    __slots__ = ("_known", "_layout")

    def __init__(self, layout: TileLayout) -> None:
        self._layout = layout
        self._known: dict[tuple[int, int], TileImage] = {}

    def at(self, cta: Cta, address: int) -> TileImage:
        found = self._known.get((cta.rank, address))
        if found is None:
            found = self._known[cta.rank, address] = TileImage(cta.memory, self._layout, address)
        return found


def _coords(low: Lowering, exprs: tuple[Expr, ...]) -> Callable[[list[int]], tuple[int, ...]]:
    fns = [low.value(e) for e in exprs]
    match fns:
        case [a, b]:
            return lambda env: (wrap32(a(env)), wrap32(b(env)))
        case _:
            return lambda env: tuple([wrap32(f(env)) for f in fns])


Plan: TypeAlias = TensorPlan | PixelPlan | PackedPlan | WidePlan | GatherPlan


@final
class Passage:
    """The map of a copy, now, and the images it makes."""

    def __init__(self, low: Lowering, op: Through) -> None:
        self._gathers = isinstance(op, ops.TensorGather4 | ops.TensorScatter4)
        self._halo = halo_of(op, low.bound.program.maps[op.map.name].mode)
        self._map_of = map_of(low, op.map)
        self._known: dict[CopyMap, tuple[Plan, Images]] = {}
        self._slot = slot_address(low, op.map.slot) if op.map.slot is not None else None
        self._clocks, self._site = low.clocks, low.site

    def at(self, agent: Agent) -> tuple[Plan, Images]:
        plan = self._map_of(agent)
        found = self._known.get(plan)
        if found is None:
            used = self._as_used(plan)
            found = self._known[plan] = (used, Images(used.layout))
        return found

    def _as_used(self, plan: CopyMap) -> Plan:
        if self._halo is not None and not isinstance(plan, TensorPlan):
            return WidePlan(plan, self._halo)
        return gather_plan(plan) if self._gathers else plan

    def used(self, agent: Agent, accesses: tuple[Access, ...]) -> None:
        """A copy went through it; of a map that lies in memory its `accesses` say when it has been read."""
        if self._slot is not None and self._clocks is not None:
            self._clocks.maps.use(agent, self._slot(agent.env), self._site, accesses)


def rotated(low: Lowering, ref: ops.TileRef, swizzle: str) -> Callable[[list[int]], None] | None:
    """Reports a stage at which the swizzle's pattern does not begin; None, so that it costs nothing, where all are right."""
    decl, repeat, clocks = low.tile(ref), EVERY_SWIZZLE[swizzle].repeat_bytes, low.clocks
    starts = [SHARED_BASE + decl.offset + i * decl.stage_bytes for i in range(decl.stages)]
    wrong = {i: at for i, at in enumerate(starts) if at % repeat}
    if clocks is None or not wrong:
        return None
    findings, program, size, site, stage_of = (
        clocks.findings,
        low.bound.program,
        decl.layout.footprint_bytes,
        low.site,
        low.value(ref.index),
    )

    def look(env: list[int]) -> None:
        at = wrong.get(stage_of(env))
        if at is not None:
            findings.add(reports.rotated(program, at, at + size, swizzle, repeat, site))

    return look


def load(low: Lowering, op: Load) -> Make:
    offsets = () if isinstance(op, ops.TensorGather4) else op.offsets
    passage, coords_of = Passage(low, op), _coords(low, (*op.coords, *offsets))
    tile_at, bar_at, threads = low.tile_address(op.tile), low.barrier_address(op.bar), low.threads
    machine, flight, site = low.machine, low.machine.flight, low.site
    mask: Value | None = low.value(op.cta_mask) if isinstance(op, ops.TensorG2SMulticast) else None
    look = rotated(low, op.tile, low.bound.program.maps[op.map.name].swizzle)

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            env = agent.env
            if look is not None:
                look(env)
            (plan, images), coords = passage.at(agent), coords_of(env)
            plan.check(coords)
            address = tile_at(env)
            check_aligned(address)
            targets = (agent.cta,) if mask is None else receivers(machine.ctas, mask(env))
            at = bar_at(env)
            for _ in range(threads):
                if flight is not None:
                    landings = [(cta, images.at(cta, address), cta.barrier(at)) for cta in targets]
                    passage.used(agent, flight.load(agent, plan, coords, landings, site))
                    continue
                units = plan.load(coords)
                for cta in targets:
                    images.at(cta, address).scatter(units)
                    delivered(machine, cta.barrier(at), plan.nbytes)
            return nxt

        return run

    return make


def delivered(machine: Machine, bar: Mbarrier, nbytes: int) -> None:
    """All bytes of a copy reach its barrier at once."""
    before = bar.phase
    bar.complete_tx(nbytes)
    if bar.phase != before:
        machine.phase_over(bar)


def prefetch(low: Lowering, op: ops.TensorPrefetch) -> Make:
    """Nothing that a program could see, but for the faults (measured: unmapped memory is none)."""
    passage, coords_of = Passage(low, op), _coords(low, (*op.coords, *op.offsets))

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            plan, _ = passage.at(agent)
            plan.check(coords_of(agent.env))
            passage.used(agent, ())
            return nxt

        return run

    return make


def receivers(ctas: tuple[Cta, ...], mask: int) -> tuple[Cta, ...]:
    """The CTAs a multicast mask names; bit i is cluster rank i. Both faults were measured."""
    mask &= 0xFFFF  # a 16-bit operand
    if mask >> len(ctas):
        raise Fault(
            LAUNCH_FAILED,
            "a multicast mask names a CTA outside the cluster",
            got=f"{mask:#x}",
            required=f"bits 0 to {len(ctas) - 1}",
            fix="build the mask from ranks of this cluster",
        )
    named = tuple([cta for cta in ctas if mask >> cta.rank & 1])
    for cta in named:
        if all(agent.ended for agent in cta.agents):
            raise Fault(
                LAUNCH_FAILED,
                "a multicast goes to a CTA that has exited",
                got=f"the CTA of rank {cta.rank}",
                required="a CTA that is there until it has what is sent to it",
                fix="let the receiver wait for the copy, or end the pipeline with cta.cluster_sync()",
            )
    return named


def store(low: Lowering, op: Store) -> Make:
    passage, coords_of = Passage(low, op), _coords(low, op.coords)
    tile_at, threads, flight, site = low.tile_address(op.tile), low.threads, low.machine.flight, low.site
    reduce_op = op.op if isinstance(op, ops.TensorReduce) else ""
    look = rotated(low, op.tile, low.bound.program.maps[op.map.name].swizzle)

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            env = agent.env
            if look is not None:
                look(env)
            (plan, images), coords = passage.at(agent), coords_of(env)
            if reduce_op and reduce_op not in plan.map.dtype_info.reduce:
                raise illegal_reduce(reduce_op, plan.map.dtype)
            plan.check_store(coords)
            address = tile_at(env)
            check_aligned(address)
            image = images.at(agent.cta, address)
            for _ in range(threads):
                if flight is not None:
                    passage.used(agent, flight.store(agent, plan, coords, image, reduce_op, site))
                elif reduce_op:
                    plan.reduce(coords, image.gather(), reduce_op)
                else:
                    plan.store(coords, image.gather())
            return nxt

        return run

    return make


def illegal_reduce(op: str, dtype: str) -> Fault:
    return Fault(
        ILLEGAL_INSTRUCTION,
        f"the copy engine has no {op} for {dtype}",
        got=f"reduce {op} through a map of {dtype}",
        required=f"one of {', '.join(sorted(DTYPES[dtype].reduce)) or 'nothing: this type cannot be reduced'}",
        fix="use a type that has the operation",
    )


def commit(low: Lowering) -> list[Make]:
    flight = low.machine.flight
    if flight is None:
        return []

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            flight.commit(agent)
            return nxt

        return run

    return [make]


def wait_group(low: Lowering, op: ops.WaitGroup | ops.WaitGroupRead) -> list[Make]:
    flight, clocks = low.machine.flight, low.clocks
    if flight is None or clocks is None:
        return []
    pending, read_only = op.pending, isinstance(op, ops.WaitGroupRead)

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            if not flight.groups_done(agent, pending, read_only=read_only):
                agent.wait = Wait("group", detail=pending)
                return BLOCKED
            clocks.groups_waited(agent, pending, read_only=read_only)
            return nxt

        return run

    return [make]
