"""What a step reads and changes, so that it is known which steps may change places without anybody noticing.

Two steps whose footprints do not conflict give the same state and the same findings in either order. That covers the clocks too: an arrival
conflicts with every other use of its barrier but the naming of it by a copy, because that only looks whether the barrier was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, assert_never

from oxidecopy.engines.sim.bulk import RunPlan, SharedRun, moved_bytes, run_layout
from oxidecopy.engines.sim.lower_access import StoreTarget
from oxidecopy.engines.sim.lower_barriers import peer
from oxidecopy.engines.sim.lower_copies import Passage, receivers
from oxidecopy.engines.sim.memory import GRANULE
from oxidecopy.engines.sim.tma import wrap32
from oxidecopy.isa import ops
from oxidecopy.isa.limits import MBARRIER_BYTES

if TYPE_CHECKING:
    from oxidecopy.engines.base import BoundArray
    from oxidecopy.engines.sim.agents import Agent, TokenKey
    from oxidecopy.engines.sim.exprs import Value
    from oxidecopy.engines.sim.flight import Load, Source, Store, Target
    from oxidecopy.engines.sim.ledger import Region
    from oxidecopy.engines.sim.lower_ops import Plain
    from oxidecopy.engines.sim.lowering import Lowering
    from oxidecopy.engines.sim.memory import GlobalMemory
    from oxidecopy.program.tensor_map import TileLayout


class Way(IntEnum):
    """How a thing is touched. Of a barrier MOVE is an arrival, or bytes."""

    LOOK = 0  # commutes with itself
    NAME = 1  # of barriers: asks only whether it was made
    MOVE = 2
    MAKE = 3  # of barriers: init and inval


class Atom(NamedTuple):
    """One thing touched. `mask` has a bit for each 16 bytes of memory."""

    space: str
    place: int | tuple[int, ...]
    way: Way
    mask: int = 0


Footprint: TypeAlias = frozenset[Atom]
NOTHING: Final[Footprint] = frozenset()
EVERYTHING: Final[Footprint] = frozenset({Atom("everything", 0, Way.MOVE)})
CLUSTER: Final = (-1,)  # the place of its sync
_MEMORY: Final = ("shared", "global", "ledger")


class Gate(NamedTuple):
    """What a step may have to wait for.

    Attributes:
        kind: "phase" of an mbarrier, "tokens" made by arrives on it, "sync" of threads, or "groups" of bulk copies.
        place: rank and shared address of the barrier; rank (-1: the cluster) and number of the sync.
        phase: waited for, or its parity; of a sync the threads that it counts.
        tokens: as the CTA names them.
        pending: bulk groups that may be left.
        read_only: they need only be read.
    """

    kind: str
    place: tuple[int, ...] = ()
    phase: int = 0
    tokens: tuple[TokenKey, ...] = ()
    pending: int = 0
    read_only: bool = False


class Touch(NamedTuple):
    """What a step touches at once, and what the copies that it issues will touch later, each in steps of its own.

    `gate` is what it may wait for; `gives` are arrivals, with the barrier or sync they go to.
    """

    now: Footprint = NOTHING
    later: tuple[Footprint, ...] = ()
    gate: Gate | None = None
    gives: tuple[tuple[tuple[int, ...], int], ...] = ()


Touches: TypeAlias = Callable[["Agent"], Touch]
ALL: Final = Touch(EVERYTHING, (EVERYTHING,))


def conflict(a: Footprint, b: Footprint) -> bool:
    """True when the order of two steps may matter, whatever the state. Uses of a live barrier are left to `reach`: see there."""
    if a is EVERYTHING or b is EVERYTHING:
        return bool(a and b)
    return any(_meet(x, y) for x in a for y in b if x.space == y.space and x.place == y.place)


def _meet(x: Atom, y: Atom) -> bool:
    if x.space in _MEMORY:
        return bool(x.mask & y.mask) and (x.way, y.way) != (Way.LOOK, Way.LOOK)
    if x.space == "barrier":
        return Way.MAKE in (x.way, y.way)
    return Way.NAME not in (x.way, y.way) and (x.way, y.way) != (Way.LOOK, Way.LOOK)


# ---- memory
def _bits(low: int, high: int) -> int:
    """Bytes `low` to `high`-1 as granules."""
    first, last = low // GRANULE, -(-high // GRANULE)
    return (1 << last) - (1 << first) if last > first else 0


def shared(rank: int, low: int, high: int, way: Way) -> Atom:
    return Atom("shared", rank, way, _bits(max(low, 0), high))


def regions(memory: GlobalMemory, where: Iterable[Region], way: Way, spaces: tuple[str, ...]) -> Iterable[Atom]:
    """Strided bytes of global memory; what no live buffer holds is left out: touching it ends the launch."""
    masks: dict[int, int] = {}
    for region in where:
        buffer = memory.find(region.address)
        if buffer is not None:
            masks[buffer.address] = masks.get(buffer.address, 0) | _region(region, region.address - buffer.address)
    return [Atom(space, address, way, mask) for address, mask in masks.items() for space in spaces]


def _region(region: Region, start: int) -> int:
    *outer, (n, stride) = zip(region.shape, region.strides, strict=True)
    starts = [start]
    for count, step in outer:
        starts = [at + i * step for at in starts for i in range(count)]
    if stride == region.item or n == 1:
        runs = [(at, at + n * region.item) for at in starts]
    else:
        runs = [(at + i * stride, at + i * stride + region.item) for at in starts for i in range(n)]
    mask = 0
    for low, high in runs:
        mask |= _bits(low, high)
    return mask


# ---- barriers
def barrier(rank: int, address: int, way: Way) -> tuple[Atom, Atom]:
    """A barrier, and its word in memory: what was never made is whatever lies there."""
    return Atom("barrier", (rank, address), way), shared(rank, address, address + MBARRIER_BYTES, Way.MOVE if way is Way.MAKE else Way.LOOK)


# ---- copies in flight
def load_footprint(memory: GlobalMemory, copy: Load) -> Footprint:
    """Landing: the tile, the barrier, and what is read."""
    cta, image, bar = copy.landing
    atoms = [shared(cta.rank, image.address, image.end, Way.MOVE), *barrier(cta.rank, bar.address, Way.MOVE)]
    if isinstance(copy.plan, SharedRun):
        source = copy.plan.image
        atoms.append(shared(copy.agent.cta.rank, source.address, source.end, Way.LOOK))
    return frozenset((*atoms, *regions(memory, copy.plan.regions(copy.coords), Way.LOOK, ("global",))))


def store_footprints(memory: GlobalMemory, copy: Store) -> tuple[Footprint, Footprint]:
    """Reading the tile, then writing."""
    read = shared(copy.agent.cta.rank, copy.image.address, copy.image.end, Way.LOOK)
    return frozenset({read}), frozenset(regions(memory, copy.plan.regions(copy.coords), Way.MOVE, ("global",)))


# ---- ops
def touches(low: Lowering, op: Plain) -> tuple[Touches, ...]:  # noqa: C901 - one line per kind of op
    """For each closure that `lower_op` makes of an op, what it touches. `ALL` is right for any op, and slow."""
    match op:
        case ops.MbarrierInit() | ops.MbarrierInval():
            return (_of_barrier(low, op.bar, Way.MAKE),)
        case ops.MbarrierArrive() | ops.MbarrierArriveExpectTx() | ops.MbarrierArriveDrop():
            return (_arrival(low, op.bar, op.token),)
        case ops.MbarrierExpectTx() | ops.MbarrierCompleteTx():
            return (_of_barrier(low, op.bar, Way.MOVE),)
        case ops.MbarrierArriveRemote() | ops.MbarrierArriveExpectTxRemote():
            return (_remote(low, op.bar, low.value(op.rank)),)
        case ops.MbarrierWait():
            return (_wait_tokens(low, op.bar, op.tokens),)
        case ops.MbarrierTestToken():
            return (_of_barrier(low, op.bar, Way.LOOK, op.token),)
        case ops.MbarrierWaitPhase():
            return (_wait(low, op.bar, low.value(op.phase), before=True),)
        case ops.MbarrierWaitParity():
            return (_wait(low, op.bar, low.value(op.parity), before=False),)
        case ops.MbarrierTestParity():
            return (_of_barrier(low, op.bar, Way.LOOK),)
        case ops.TensorG2S() | ops.TensorG2SMulticast() | ops.TensorGather4():
            return (_tensor_load(low, op) if op.map.slot is None else _all,)  # what it touches lies in memory too
        case ops.TensorS2G() | ops.TensorReduce() | ops.TensorScatter4():
            return (_tensor_store(low, op) if op.map.slot is None else _all,)
        case ops.TensormapCopy() | ops.TensormapReplace() | ops.TensormapReplaceArray():
            return (_edit(low, op.tile),)
        case ops.TensormapCpFenceproxy() | ops.FenceProxyTensormap():
            return (_all,)
        case ops.BulkG2S() | ops.BulkG2SMulticast():
            return (_bulk_load(low, op),)
        case ops.BulkS2G() | ops.BulkReduce():
            return (_bulk_store(low, op),)
        case ops.BulkS2S() | ops.BulkReduceS2S():
            return (_send(low, op),)
        case ops.WaitGroup() | ops.WaitGroupRead():
            gate = Gate("groups", pending=op.pending, read_only=isinstance(op, ops.WaitGroupRead))
            return (lambda _agent: Touch(gate=gate),)  # once it may go on, it may for ever
        case ops.BarSync(number=number):
            return _sync(low.threads, op.threads, lambda agent: (agent.cta.rank, number))
        case ops.ClusterSync():
            return _sync(low.threads, 0, lambda _agent: CLUSTER)
        case ops.StoreGlobal():
            return (_store_global(low, op),)
        case ops.Fill() | ops.Iota():
            return (_write(low, op, ()),)
        case ops.MapTiles() | ops.TransposeTile() | ops.ReduceTile() | ops.StencilTile():
            return (_write(low, op, op.inputs),)
        case ops.MmaZero():
            return (_nothing,)
        case ops.MmaStep():
            return (_operands(low, op),)
        case ops.MmaOut():
            return (_all,)  # it reads arrays, too
        case ops.LoadIndex():
            return (_whole_array(low, low.bound.arrays[op.array.name]),)
        case ops.CommitGroup() | ops.FenceProxyAsync() | ops.FenceMbarrierInit() | ops.ShareTiles() | ops.NextTile():
            return (_nothing,)  # of the agent alone
        case ops.TensorPrefetch():
            return (_nothing if op.map.slot is None else _all,)
        case ops.BulkPrefetch():
            return (_nothing,)
        case _:
            assert_never(op)


def exit_touches(threads: int, *, cluster_sync: bool) -> Touches:
    """The end of a class: in a program with a `cluster_sync` exited threads count as arrived there."""
    return _sync(threads, 0, lambda _agent: CLUSTER)[0] if cluster_sync else _nothing


def _nothing(_agent: Agent) -> Touch:
    return Touch()


def _all(_agent: Agent) -> Touch:
    return ALL


def _sync(threads: int, wanted: int, place: Callable[[Agent], tuple[int, ...]]) -> tuple[Touches, Touches]:
    """Coming there, and going on. The second touches nothing: who is let go learns what the others did, and that is over by then."""

    def come(agent: Agent) -> Touch:
        return Touch(frozenset({Atom("sync", place(agent), Way.MOVE)}), gives=((place(agent), threads),))

    return come, lambda agent: Touch(gate=Gate("sync", place(agent), wanted))


def _of_barrier(low: Lowering, ref: ops.BarrierRef, way: Way, *asked: int) -> Touches:
    address = low.barrier_address(ref)

    def touch(agent: Agent) -> Touch:
        tokens = [Atom("token", (agent.cta.rank, token), Way.LOOK) for token in asked]
        return Touch(frozenset((*barrier(agent.cta.rank, address(agent.env), way), *tokens)))

    return touch


def _arrival(low: Lowering, ref: ops.BarrierRef, token: int) -> Touches:
    address, threads = low.barrier_address(ref), low.threads

    def touch(agent: Agent) -> Touch:
        place = agent.cta.rank, address(agent.env)
        return Touch(frozenset((*barrier(*place, Way.MOVE), Atom("token", (agent.cta.rank, token), Way.MOVE))), gives=((place, threads),))

    return touch


def _remote(low: Lowering, ref: ops.BarrierRef, rank: Value) -> Touches:
    address, threads = low.barrier_address(ref), low.threads

    def touch(agent: Agent) -> Touch:
        place = rank(agent.env), address(agent.env)
        return Touch(frozenset(barrier(*place, Way.MOVE)), gives=((place, threads),))

    return touch


def _wait(low: Lowering, ref: ops.BarrierRef, phase_of: Value, *, before: bool) -> Touches:
    """A wait for a phase, or for a parity; with `before` one for a phase below 0 goes on at once."""
    address = low.barrier_address(ref)

    def touch(agent: Agent) -> Touch:
        phase, place = phase_of(agent.env), (agent.cta.rank, address(agent.env))
        if before and phase < 0:
            return Touch(frozenset(barrier(*place, Way.NAME)))
        return Touch(frozenset(barrier(*place, Way.LOOK)), gate=Gate("phase", place, phase))

    return touch


def _wait_tokens(low: Lowering, ref: ops.BarrierRef, tokens: tuple[int, ...]) -> Touches:
    address, key = low.barrier_address(ref), low.token_key

    def touch(agent: Agent) -> Touch:
        rank, env = agent.cta.rank, agent.env
        place = rank, address(env)
        made = [Atom("token", (rank, token), Way.LOOK) for token in tokens]
        gate = Gate("tokens", place, tokens=tuple([key(token, env) for token in tokens]))
        return Touch(frozenset((*barrier(*place, Way.LOOK), *made)), gate=gate)

    return touch


def _span(address: int, layout: TileLayout) -> tuple[int, int]:
    return address, address + layout.footprint_bytes


def _tensor_load(low: Lowering, op: ops.TensorG2S | ops.TensorG2SMulticast | ops.TensorGather4) -> Touches:
    offsets = () if isinstance(op, ops.TensorGather4) else op.offsets
    passage, coords = Passage(low, op), [low.value(e) for e in (*op.coords, *offsets)]
    tile_at, bar_at, ctas, memory = low.tile_address(op.tile), low.barrier_address(op.bar), low.machine.ctas, low.bound.memory
    mask = low.value(op.cta_mask) if isinstance(op, ops.TensorG2SMulticast) else None

    def touch(agent: Agent) -> Touch:
        env = agent.env
        plan, _ = passage.at(agent)
        place = tuple([wrap32(c(env)) for c in coords])
        ranks = [agent.cta.rank] if mask is None else [cta.rank for cta in receivers(ctas, mask(env))]
        return _loading(memory, plan, place, ranks, _span(tile_at(env), plan.layout), bar_at(env))

    return touch


def _bulk_load(low: Lowering, op: ops.BulkG2S | ops.BulkG2SMulticast) -> Touches:
    plan, coords = RunPlan(low.bound.arrays[op.array.name], low.bound.memory, op.nbytes), [low.value(e) for e in op.coords]
    tile_at, bar_at, ctas, memory = low.tile_address(op.tile), low.barrier_address(op.bar), low.machine.ctas, low.bound.memory
    mask = low.value(op.cta_mask) if isinstance(op, ops.BulkG2SMulticast) else None

    def touch(agent: Agent) -> Touch:
        env = agent.env
        ranks = [agent.cta.rank] if mask is None else [cta.rank for cta in receivers(ctas, mask(env))]
        return _loading(memory, plan, tuple([c(env) for c in coords]), ranks, _span(tile_at(env), plan.layout), bar_at(env))

    return touch


def _loading(memory: GlobalMemory, plan: Source, place: tuple[int, ...], ranks: list[int], span: tuple[int, int], bar: int) -> Touch:
    where = plan.regions(place)
    issued: list[Atom] = [*regions(memory, where, Way.LOOK, ("ledger",))]
    landings = []
    for rank in ranks:
        tile = shared(rank, *span, Way.MOVE)
        issued += [tile, *barrier(rank, bar, Way.NAME)]
        landings.append(frozenset((tile, *barrier(rank, bar, Way.MOVE), *regions(memory, where, Way.LOOK, ("global",)))))
    return Touch(frozenset(issued), tuple(landings))


def _tensor_store(low: Lowering, op: ops.TensorS2G | ops.TensorReduce | ops.TensorScatter4) -> Touches:
    passage, coords = Passage(low, op), [low.value(e) for e in op.coords]
    tile_at, memory = low.tile_address(op.tile), low.bound.memory

    def touch(agent: Agent) -> Touch:
        env = agent.env
        plan, _ = passage.at(agent)
        return _storing(memory, agent, plan, tuple([wrap32(c(env)) for c in coords]), _span(tile_at(env), plan.layout))

    return touch


def _bulk_store(low: Lowering, op: ops.BulkS2G | ops.BulkReduce) -> Touches:
    plan, coords = RunPlan(low.bound.arrays[op.array.name], low.bound.memory, op.nbytes), [low.value(e) for e in op.coords]
    tile_at, memory = low.tile_address(op.tile), low.bound.memory
    return lambda agent: _storing(memory, agent, plan, tuple([c(agent.env) for c in coords]), _span(tile_at(agent.env), plan.layout))


def _storing(memory: GlobalMemory, agent: Agent, plan: Target, place: tuple[int, ...], span: tuple[int, int]) -> Touch:
    where = plan.regions(place)
    read = shared(agent.cta.rank, *span, Way.LOOK)
    issued = frozenset((read, *regions(memory, where, Way.MOVE, ("ledger",))))
    return Touch(issued, (frozenset({read}), frozenset(regions(memory, where, Way.MOVE, ("global",)))))


def _send(low: Lowering, op: ops.BulkS2S | ops.BulkReduceS2S) -> Touches:
    layout, ctas = run_layout(moved_bytes(op.nbytes)), low.machine.ctas
    from_at, to_at, bar_at, rank_of = low.tile_address(op.tile), low.tile_address(op.into), low.barrier_address(op.bar), low.value(op.rank)

    def touch(agent: Agent) -> Touch:
        env = agent.env
        rank, bar = peer(ctas, rank_of(env)).rank, bar_at(env)
        source = shared(agent.cta.rank, *_span(from_at(env), layout), Way.LOOK)
        target = shared(rank, *_span(to_at(env), layout), Way.MOVE)
        return Touch(
            frozenset((source, target, *barrier(rank, bar, Way.NAME))), (frozenset((source, target, *barrier(rank, bar, Way.MOVE))),)
        )

    return touch


def _write(low: Lowering, op: ops.Fill | ops.Iota | ops.Made, inputs: tuple[ops.TileRef, ...]) -> Touches:
    """A write, of a map after its reads. Classes that do it together touch different elements, but each stands for the whole tile."""
    out = op.out if isinstance(op, ops.Made) else op.tile
    tiles = [(low.tile_address(ref), low.tile_layout(ref), Way.LOOK) for ref in inputs]
    tiles.append((low.tile_address(out), low.tile_layout(out), Way.MOVE))
    return lambda agent: Touch(frozenset(shared(agent.cta.rank, *_span(at(agent.env), layout), way) for at, layout, way in tiles))


def _edit(low: Lowering, ref: ops.TileRef) -> Touches:
    tile_at, layout = low.tile_address(ref), low.tile_layout(ref)
    return lambda agent: Touch(frozenset({shared(agent.cta.rank, *_span(tile_at(agent.env), layout), Way.MOVE)}))


def _operands(low: Lowering, op: ops.MmaStep) -> Touches:
    read = [(low.tile_address(ref), low.tile_layout(ref)) for ref in (op.a, op.b)]
    return lambda agent: Touch(frozenset(shared(agent.cta.rank, *_span(at(agent.env), layout), Way.LOOK) for at, layout in read))


def _store_global(low: Lowering, op: ops.StoreGlobal) -> Touches:
    tile_at, layout, memory = low.tile_address(op.tile), low.tile_layout(op.tile), low.bound.memory
    target = StoreTarget(low, op, layout.shape)

    def touch(agent: Agent) -> Touch:
        read = shared(agent.cta.rank, *_span(tile_at(agent.env), layout), Way.LOOK)
        return Touch(frozenset((read, *regions(memory, target.regions(agent), Way.MOVE, ("global", "ledger")))))

    return touch


def _whole_array(low: Lowering, array: BoundArray) -> Touches:
    buffer = low.bound.memory.find(array.buffer.address)
    mask = _bits(0, len(buffer.data)) if buffer is not None else 0
    atoms = frozenset({Atom("global", buffer.address, Way.LOOK, mask)}) if buffer is not None else NOTHING
    return lambda _agent: Touch(atoms)
