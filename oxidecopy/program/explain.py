"""From where the agents of a cluster are stuck to a report: which op should have supplied what is missing, and why it has not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Cond, Expr, evaluate, holds
from oxidecopy.isa.ops import BarrierRef, ThreadSet
from oxidecopy.program.deadlock import Barrier, Deadlock, Stuck, Supplier, Sync, Token, Waiting, Why, classes
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, Program, Step

SUPPLIERS_MAX: Final = 8  # of one wait: few enough to read
_ARRIVALS: Final = (
    ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop | ops.MbarrierArriveRemote | ops.MbarrierArriveExpectTxRemote
)
_EXPECTS: Final = ops.MbarrierArriveExpectTx | ops.MbarrierArriveExpectTxRemote | ops.MbarrierExpectTx
_LANDINGS: Final = ops.Landing | ops.MbarrierCompleteTx
_REMOTE: Final = ops.MbarrierArriveRemote | ops.MbarrierArriveExpectTxRemote | ops.Send


@final
@dataclass(frozen=True, slots=True)
class _Spot:
    """A step with its number in program order, and the blocks around it."""

    number: int
    step: Step
    around: tuple[Step, ...]

    def holds(self, threads: ThreadSet) -> bool:
        return all(threads.first in block.op.threads for block in self.around if isinstance(block.op, ops.Scope))


def _spots(steps: Sequence[Step], around: tuple[Step, ...] = (), first: int = 0) -> Iterator[_Spot]:
    number = first
    for step in steps:
        yield _Spot(number, step, around)
        number += 1
        for spot in _spots(step.body, (*around, step), number):
            yield spot
            number = spot.number + 1


@final
class _Cluster:
    """A stuck cluster, and the questions asked of it."""

    def __init__(
        self, program: Program, stuck: Sequence[Stuck], constants: Mapping[str, int], blocks: Sequence[tuple[int, int, int]]
    ) -> None:
        self.program, self.stuck = program, list(stuck)
        self.spots = list(_spots(program.steps))
        self.at = {id(spot.step): spot for spot in self.spots}
        self.words = {threads: words for words, threads in classes(program).items()}
        self.where = {(s.rank, s.threads): s for s in stuck}
        self.envs = [{**constants, RANK_SYMBOL: rank, **dict(zip(BLOCK_SYMBOLS, block, strict=True))} for rank, block in enumerate(blocks)]

    # ---- values that may depend on what is not known here
    def value(self, e: Expr, rank: int) -> int | None:
        try:
            return evaluate(e, self.envs[rank])
        except (KeyError, ZeroDivisionError):
            return None

    def fails(self, c: Cond, rank: int) -> bool:
        try:
            return not holds(c, self.envs[rank], {})
        except (KeyError, ZeroDivisionError):
            return False

    # ---- candidates
    def suppliers(self, spots: Sequence[_Spot], does: Mapping[int, str], reaches: Sequence[set[int]]) -> tuple[Supplier, ...]:
        """Of each op that could supply something, by each class and CTA that runs it: why it has not."""
        found: dict[Supplier, None] = {}
        for spot, ranks in zip(spots, reaches, strict=True):
            for rank in sorted(ranks):
                for threads, words in self.words.items():
                    if spot.holds(threads):
                        why = self.why(spot, rank, threads)
                        made = Supplier(rank=rank, threads=words, does=does[id(spot.step)], site=spot.step.site, why=why)
                        found.setdefault(made)
        return tuple(found)[:SUPPLIERS_MAX]

    def why(self, spot: _Spot, rank: int, threads: ThreadSet) -> Why:
        for block in spot.around:
            if isinstance(block.op, ops.When) and self.fails(block.op.cond, rank):
                return Why.CONDITION
            if isinstance(block.op, ops.Loop):
                start, stop = self.value(block.op.start, rank), self.value(block.op.stop, rank)
                if start is not None and stop is not None and (start >= stop if block.op.step > 0 else start <= stop):
                    return Why.EMPTY
        here = self.where.get((rank, threads))
        if here is None:
            return Why.DONE
        at = self.at[id(here.step)]
        loops = {id(block) for block in at.around if isinstance(block.op, ops.Loop)}
        ahead = spot.number > at.number or (spot.number != at.number and any(id(block) in loops for block in spot.around))
        return Why.WAITS if ahead else Why.DONE

    def reaching(self, spot: _Spot, ref: BarrierRef, bar: Barrier) -> set[int]:
        """The CTAs whose run of an op may be about a barrier."""
        op, size, found = spot.step.op, self.program.cluster_size, set[int]()
        for rank in range(size):
            index = self.value(ref.index, rank)
            if ref.barrier != bar.decl or (index is not None and index != bar.index):
                continue
            if isinstance(op, _REMOTE):
                to = self.value(op.rank, rank)
                hits = to is None or to == bar.rank
            elif isinstance(op, ops.Multicast):
                mask = self.value(op.cta_mask, rank)
                hits = mask is None or bool(mask >> bar.rank & 1)
            else:
                hits = rank == bar.rank
            if hits:
                found.add(rank)
        return found

    def of_barrier(self, bar: Barrier) -> tuple[Supplier, ...]:
        spots, does, reaches = list[_Spot](), dict[int, str](), list[set[int]]()
        for spot in self.spots:
            found = _supplied(spot.step.op, bar)
            ranks = self.reaching(spot, found[1], bar) if found is not None else set()
            if found is not None and ranks:
                spots.append(spot)
                reaches.append(ranks)
                does[id(spot.step)] = found[0]
        return self.suppliers(spots, does, reaches)

    def of_token(self, stuck: Stuck, number: int) -> tuple[Supplier, ...]:
        made = [s for s in self.spots if isinstance(s.step.op, ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop)]
        spots = [s for s in made if getattr(s.step.op, "token", -1) == number]
        return self.suppliers(spots, {id(s.step): "makes the token" for s in spots}, [{stuck.rank}] * len(spots))

    def of_sync(self, stuck: Stuck, sync: Sync) -> tuple[tuple[int, int], tuple[Supplier, ...]]:
        """How many threads are there of how many, and who is not."""
        cluster = sync.number < 0
        ranks = range(self.program.cluster_size) if cluster else (stuck.rank,)
        op = stuck.step.op
        need = self.program.threads * self.program.cluster_size if cluster else op.threads if isinstance(op, ops.BarSync) else 0
        spots = [s for s in self.spots if (isinstance(s.step.op, ops.ClusterSync) if cluster else _is_sync(s.step.op, sync.number))]
        there, absent = 0, list[Supplier]()
        for rank in ranks:
            for threads, words in self.words.items():
                here = self.where.get((rank, threads))
                if here is not None and here.on == sync:
                    there += len(threads)
                    continue
                ways = [(self.why(s, rank, threads), s.step.site) for s in spots if s.holds(threads)]
                why, site = next(
                    (w for w in ways if w[0] is Why.WAITS), ways[0] if ways else (Why.ELSEWHERE, here.step.site if here else None)
                )
                if cluster and here is None:
                    there += len(threads)  # who has ended is not waited for
                elif cluster or ways or here is not None:
                    absent.append(Supplier(rank=rank, threads=words, does="comes to the sync", site=site, why=why))
        return (there, need), tuple(absent)[:SUPPLIERS_MAX]


def _supplied(op: ops.Instr, bar: Barrier) -> tuple[str, BarrierRef] | None:
    """What `op` gives of that which a barrier lacks, and to which barrier; None when it gives nothing of it."""
    if bar.pending and isinstance(op, _ARRIVALS):
        return "arrives", op.bar
    if bar.tx > 0 and isinstance(op, _LANDINGS):
        return "brings bytes", op.bar
    if bar.tx < 0 and isinstance(op, _EXPECTS):
        return "announces bytes", op.bar
    return None


def _is_sync(op: ops.Instr, number: int) -> bool:
    return isinstance(op, ops.BarSync) and op.number == number


def explain(program: Program, stuck: Sequence[Stuck], *, constants: Mapping[str, int], blocks: Sequence[tuple[int, int, int]]) -> Deadlock:
    """The report of a cluster in which nobody can go on.

    Args:
        program: in primitive ops; the steps of `stuck` are its own.
        stuck: every agent that has not ended.
        constants: symbols that are constant for the launch.
        blocks: block indices of the cluster's CTAs, by rank.
    """
    cluster = _Cluster(program, stuck, constants, blocks)
    rows = [_waiting(cluster, s) for s in sorted(stuck, key=lambda s: (s.rank, s.threads.first))]
    names = {(w.rank, w.threads) for w in rows}
    rows.sort(key=lambda w: (any(s.why is Why.WAITS and (s.rank, s.threads) in names for s in w.suppliers), w.rank))
    numbers = {(w.rank, w.threads): i for i, w in enumerate(rows, 1)}
    waits = tuple(_numbered(w, numbers) for w in rows)
    cycle = _cycle(waits)
    return Deadlock(waiting=waits, cycle=cycle, fix=_fix(waits, cycle), ctas=program.cluster_size)


def _waiting(cluster: _Cluster, stuck: Stuck) -> Waiting:
    on = stuck.on
    if isinstance(on, Barrier):
        return _on_barrier(cluster, stuck, on)
    wait = Waiting(
        rank=stuck.rank,
        threads=cluster.words[stuck.threads],
        site=stuck.step.site,
        target="its bulk groups",
        target_rank=stuck.rank,
        phase=None,
        parity=-1,
    )
    if isinstance(on, Sync):
        arrivals, absent = cluster.of_sync(stuck, on)
        name = "the cluster sync" if on.number < 0 else "the sync of the CTA" if on.number == 0 else f"named barrier {on.number}"
        return replace(wait, target=name, target_rank=-1 if on.number < 0 else stuck.rank, arrivals=arrivals, suppliers=absent)
    if isinstance(on, Token):
        return replace(wait, target=f"token {on.number}", beside="nobody made it", suppliers=cluster.of_token(stuck, on.number))
    return wait


def _exact(cluster: _Cluster, bar: Barrier) -> Barrier:
    """The barrier with its bytes worked out from what has run, where it was seen in coarse steps only and that tells."""
    if bar.tx_step == 1:
        return bar
    tx = 0
    for spot in cluster.spots:
        op = spot.step.op
        if not isinstance(op, _EXPECTS | _LANDINGS):
            continue
        for rank in cluster.reaching(spot, op.bar, bar):
            for threads in cluster.words:
                if spot.holds(threads) and cluster.why(spot, rank, threads) is Why.DONE:
                    if any(isinstance(block.op, ops.Loop) for block in spot.around):
                        return bar  # how often is not known
                    nbytes = len(threads) * _moves(cluster.program, op)
                    tx += nbytes if isinstance(op, _EXPECTS) else -nbytes
    seen = -tx // bar.tx_step * bar.tx_step
    return replace(bar, tx=tx, tx_step=1) if -bar.tx == seen else bar


def _moves(program: Program, op: ops.Instr) -> int:
    """Bytes that an op announces, or brings to each barrier it reports to."""
    match op:
        case ops.TensorGather4():
            return 4 * program.maps[op.map.name].layout.nbytes
        case ops.TensorG2S() | ops.TensorG2SMulticast():
            return program.maps[op.map.name].layout.nbytes
        case ops.BulkG2S() | ops.BulkG2SMulticast() | ops.BulkS2S() | ops.BulkReduceS2S():
            return op.nbytes // 16 * 16
        case ops.MbarrierArriveExpectTx() | ops.MbarrierArriveExpectTxRemote() | ops.MbarrierExpectTx() | ops.MbarrierCompleteTx():
            return op.nbytes
        case _:
            return 0


def _on_barrier(cluster: _Cluster, stuck: Stuck, bar: Barrier) -> Waiting:
    bar = _exact(cluster, bar)
    program, decl = cluster.program, cluster.program.barriers[bar.decl]
    name = f"{decl.name}[{bar.index}]" if decl.stages > 1 else decl.name
    counts = {s.step.op.count for s in cluster.spots if isinstance(s.step.op, ops.MbarrierInit) and s.step.op.bar.barrier == bar.decl}
    need = counts.pop() if len(counts) == 1 else bar.pending
    late = bar.current is not None and bar.phase is not None and bar.current != bar.phase
    return Waiting(
        rank=stuck.rank,
        threads=cluster.words[stuck.threads],
        site=stuck.step.site,
        target=f"`{name}`",
        target_rank=bar.rank,
        phase=bar.phase,
        parity=bar.asked,
        arrivals=(max(need - bar.pending, 0), max(need, bar.pending)) if bar.pending else (),
        nbytes=_bytes(cluster, bar) if bar.tx else (),
        beside=f"it is in phase {bar.current}, whose parity looks the same" if late else "",
        suppliers=cluster.of_barrier(bar) if program.barriers else (),
    )


def _bytes(cluster: _Cluster, bar: Barrier) -> tuple[int, int]:
    """Landed and announced, where no more than one op announces; else by how much they differ, at most, and -1."""
    if bar.tx_step > 1:
        return -bar.tx, -1
    found = [
        spot.step.op.nbytes * len(threads)
        for spot in cluster.spots
        if isinstance(spot.step.op, _EXPECTS)
        for rank in cluster.reaching(spot, spot.step.op.bar, bar)
        for threads in cluster.words
        if spot.holds(threads) and cluster.why(spot, rank, threads) not in (Why.CONDITION, Why.EMPTY)
    ]
    announced = sum(found)
    return (announced - bar.tx, announced) if len(found) < 2 and announced >= bar.tx else (-bar.tx, -1)


def _numbered(wait: Waiting, numbers: Mapping[tuple[int, str], int]) -> Waiting:
    """Suppliers that wait, with the numbers of their waits."""
    return replace(
        wait,
        suppliers=tuple(replace(s, waits_at=numbers.get((s.rank, s.threads), 0)) if s.why is Why.WAITS else s for s in wait.suppliers),
    )


def _cycle(waits: Sequence[Waiting]) -> tuple[int, ...]:
    """The shortest ring of waits through the first wait that is in one."""
    edges = [sorted({s.waits_at for s in w.suppliers if s.waits_at}) for w in waits]
    for start in range(1, len(waits) + 1):
        paths: list[tuple[int, ...]] = [(start,)]
        seen = {start}
        while paths:
            longer: list[tuple[int, ...]] = []
            for path in paths:
                for to in edges[path[-1] - 1]:
                    if to == start:
                        return path
                    if to not in seen:
                        seen.add(to)
                        longer.append((*path, to))
            paths = longer
    return ()


def _fix(waits: Sequence[Waiting], cycle: tuple[int, ...]) -> str:
    root = waits[cycle[0] - 1] if cycle else waits[0] if waits else None
    whys = {s.why for s in root.suppliers} if root is not None else set()
    if root is None:
        return ""
    if root.parity < 0 and not cycle:
        return "let every thread that the sync counts come by, or count fewer: move it out of `elect`, role and `when` blocks"
    if Why.CONDITION in whys:
        return "run the op wherever the barrier counts on it, or count fewer arrivals in `init`"
    if Why.EMPTY in whys:
        return "give both sides of the barrier as many iterations"
    if root.beside:
        return "wait for every phase in turn: a wait that comes two phases late sees the parity of a phase that is not over"
    if root.nbytes and not root.arrivals:
        over = root.nbytes[1] > root.nbytes[0] or root.nbytes[0] < 0
        return (
            "announce exactly tile.nbytes for every copy that reports to the barrier"
            if over
            else "announce the bytes where they land: each CTA that a multicast reaches has an expect of its own"
        )
    if cycle:
        return (
            "let one of the waits of the cycle pass first: arrive before waiting, wait for phase k - 1 on the producer's side, and take "
            "the stages of several rings in one order in all roles"
        )
    return "arrive once per count of `init` in every phase, or initialise the barrier with the number of threads that arrive"
