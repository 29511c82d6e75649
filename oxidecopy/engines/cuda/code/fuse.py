"""Loops over the stages of a ring that run as one record: which they are, or in words why a loop is none.

A ring's loop counts k = counter + something that does not change in it; its stage is k % stages, its phase k // stages. Recognised are
`PRODUCE` (wait for a free stage, announce, load) and `DRAIN` (wait for a full one, store, let go of the oldest), in whatever way the
program writes them: all is compared in normal form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from oxidecopy.engines.cuda.abi import RING_FLAG_COUNTER, RING_FLAG_PLACED, RING_FLAG_READ, STAGES_MAX, DeviceOp, EvalFn
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.coordinates import NotPlacedError, Placement, placement
from oxidecopy.engines.cuda.code.extra import is_extra
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.nodes import Copy, Fused
from oxidecopy.engines.cuda.code.scalars import Found, Instruction, OverflowingError, Scalars, TooDeepError
from oxidecopy.engines.cuda.code.values import INT_MAX, ZERO, Lin, Terms, Test, Values
from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import REDUCE_OPS
from oxidecopy.isa.expr import CmpOp
from oxidecopy.isa.limits import MBARRIER_BYTES
from oxidecopy.program.program import Step

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.lower import AgentLowering

COPIES_MAX: Final = 4
EVALS_MAX: Final = (1 << 16) - 1
_LOADS: Final = (ops.TensorG2S, ops.TensorG2SMulticast)
_STORES: Final = (ops.TensorS2G, ops.TensorReduce)
_KINDS: Final = {
    ops.TensorG2S: DeviceOp.TENSOR_G2S,
    ops.TensorG2SMulticast: DeviceOp.TENSOR_G2S_MULTICAST,
    ops.TensorS2G: DeviceOp.TENSOR_S2G,
    ops.TensorReduce: DeviceOp.TENSOR_REDUCE,
}
AnyCopy: TypeAlias = ops.TensorG2S | ops.TensorG2SMulticast | ops.TensorS2G | ops.TensorReduce


class NotFusedError(Exception):
    """The loop is none of those that run as one record; the text says why."""


@final
class Item(NamedTuple):
    """An op of the body as this agent sees it, and the condition it stands under."""

    op: ops.Instr
    test: Test | None


@final
class Ring(NamedTuple):
    """`k` counts stages: k % stages is `stage`."""

    k: Lin
    stages: int
    stage: Lin


def body_of(low: AgentLowering, steps: Sequence[Step], inside: frozenset[int], test: Test | None = None) -> Iterator[Item]:
    """The ops of a loop's body that are left for an agent: scopes dissolve, decided branches too, and syncs of its one warp alone."""
    for step in steps:
        op = step.op
        match op:
            case ops.Scope():
                if low.holds(step):
                    yield from body_of(low, step.body, inside | {low.shared.scopes[id(step)]}, test)
            case ops.When():
                yield from _branch(low, op, step, inside, test)
            case ops.NextTile():
                low.next_tile(op)
            case ops.LoadIndex() | ops.Loop():  # what follows may be about a number that is not there yet
                raise NotFusedError("it reads an index" if isinstance(op, ops.LoadIndex) else "a loop stands in it")
            case _:
                alone = isinstance(op, ops.BarSync) and low.threads == 1 and low.shared.cast.lanes_at(op, inside) == limits.WARP
                if not alone:
                    yield Item(op, test)


def _branch(low: AgentLowering, op: ops.When, step: Step, inside: frozenset[int], test: Test | None) -> Iterator[Item]:
    truth = low.values.truth(op.cond)
    if truth is False:
        return
    if truth is not True and test is not None:
        raise NotFusedError("branches are nested in it")
    yield from body_of(low, step.body, inside, test if truth is True else truth)


@final
class Pattern:
    """One loop of one agent, while it is looked at. `counted` loops take their tiles from a counter: `tile` is what it gives."""

    def __init__(self, low: AgentLowering, op: ops.Loop, step: Step, where: Where, counter: Lin, start: Lin, stop: Lin) -> None:
        self.low = low
        self.values: Values = low.values
        self.op = op
        self.step = step
        self.where = where
        self.counter = counter
        self.start = start
        self.stop = stop
        self.tile: Lin = ZERO
        self.counted = False
        self.barriers = (-1, -1)  # of a loop that loads: which are full and empty
        self.loads = 0
        self._rest: Lin = ZERO
        self._inner: Lin = counter

    def recognise(self) -> Fused | str:
        """The loop as one record, or why it is none."""
        try:
            return self._recognise()
        except NotFusedError as reason:
            return str(reason)

    def _recognise(self) -> Fused:
        if self.low.threads != 1:
            raise NotFusedError(f"{self.low.threads} threads run it together; a fused loop is one thread's")
        if self.op.step != 1:
            raise NotFusedError(f"its step is {self.op.step}, not 1")
        if not self.counter[1]:
            raise NotFusedError("it runs at most once")
        items = list(body_of(self.low, self.step.body, self.low.inside))
        loads = self.loads = sum(isinstance(item.op, _LOADS) for item in items)
        stores = sum(isinstance(item.op, _STORES) for item in items)
        if loads and stores:
            raise NotFusedError("it both loads and stores")
        if not loads and not stores:
            raise NotFusedError("it holds no tensor copy")
        if loads + stores > COPIES_MAX:
            raise NotFusedError(f"it holds {loads + stores} copies, more than {COPIES_MAX}")
        return self._produce(items) if loads else self._drain(items)

    # ---- PRODUCE
    def _produce(self, items: list[Item]) -> Fused:
        if len(items) < 2:
            raise NotFusedError("nothing is announced before its load")
        wait = None if isinstance(items[0].op, ops.MbarrierArriveExpectTx) else items[0]
        announce, *loads = items[0 if wait is None else 1 :]
        if wait is not None and not isinstance(wait.op, ops.MbarrierWaitPhase):
            raise NotFusedError(f"it starts with {wait.op.mnemonic}, not with a wait for a phase")
        if not isinstance(announce.op, ops.MbarrierArriveExpectTx) or announce.test is not None or not announce.op.nbytes:
            raise NotFusedError(f"{announce.op.mnemonic} follows the wait, not an arrive that announces the stage's bytes")
        full = self.low.barrier(announce.op.bar)
        ring, empty = self._free(wait, announce.op.bar, full)
        copies = []
        for item in loads:
            if not isinstance(item.op, _LOADS) or item.test is not None:
                raise NotFusedError(f"{item.op.mnemonic} stands in it, or a load under a condition")
            if self.low.barrier(item.op.bar) != full:
                raise NotFusedError("a load reports to another barrier than the one its bytes are announced on")
            copies.append(self._copy(item.op, ring))
        return self._fused(DeviceOp.PRODUCE, ring, full, empty, announce.op.nbytes, copies)

    def _free(self, wait: Item | None, bar: ops.BarrierRef, full: Lin) -> tuple[Ring, Lin]:
        """The ring whose next stage is waited for, and its `empty`; a ring that is never gone round needs no wait."""
        if wait is None or not isinstance(wait.op, ops.MbarrierWaitPhase):
            ring = self.ring(bar, full, (-1, ()), lead=1)
            return ring, self.values.scale(ring.stage, MBARRIER_BYTES)
        self.barriers = (bar.barrier, wait.op.bar.barrier)
        empty = self.low.barrier(wait.op.bar)
        ring = self.ring(wait.op.bar, empty, self.values.of(wait.op.phase), lead=1)
        if wait.test is not None and wait.test != self.values.compare(CmpOp.LE, (ring.stages, ()), ring.k):
            raise NotFusedError("its wait stands under a condition other than that the ring has gone round")
        return ring, empty

    # ---- DRAIN
    def _drain(self, items: list[Item]) -> Fused:
        stores = [item for item in items if isinstance(item.op, _STORES)]
        wait, body, tail = items[0], items[1 : len(stores) + 1], items[len(stores) + 1 :]
        if not isinstance(wait.op, ops.MbarrierWaitPhase) or wait.test is not None:
            raise NotFusedError(f"it starts with {wait.op.mnemonic}, not with a wait for a phase")
        if body != stores or any(item.test is not None for item in stores):
            raise NotFusedError("its stores do not follow the wait at once, or stand under a condition")
        if len(tail) < 2 or not isinstance(tail[0].op, ops.CommitGroup) or tail[0].test is not None:
            raise NotFusedError("no commit follows its stores, with a wait for groups behind it")
        group = tail[1].op
        if not isinstance(group, ops.WaitGroup | ops.WaitGroupRead) or tail[1].test is not None:
            raise NotFusedError(f"{group.mnemonic} follows the commit, not a wait for groups")
        full = self.low.barrier(wait.op.bar)
        ring = self.ring(wait.op.bar, full, self.values.of(wait.op.phase), lead=0)
        copies = [self._copy(item.op, ring) for item in stores if isinstance(item.op, _STORES)]
        made = self._fused(DeviceOp.DRAIN, ring, full, ZERO, group.pending, copies)
        made.flags |= RING_FLAG_READ if isinstance(group, ops.WaitGroupRead) else 0
        self._release(made, ring, tail[2:])
        return made

    def _release(self, made: Fused, ring: Ring, items: list[Item]) -> None:
        if not items:
            made.first = INT_MAX  # a ring that is gone round once
            return
        peers = [item.op for item in items if isinstance(item.op, ops.MbarrierArriveRemote)]
        arrivals = [item.op for item in items if isinstance(item.op, ops.MbarrierArrive)]
        one = len(arrivals) == 1 and not peers
        all_peers = not arrivals and [self.values.of(op.rank) for op in peers] == [(rank, ()) for rank in range(len(peers))]
        if len(arrivals) + len(peers) != len(items) or not (one or all_peers) or len({item.test for item in items}) != 1:
            raise NotFusedError(
                "what follows the wait for groups is not one release of a stage, on this block or on the first blocks of the cluster"
            )
        addresses = {self.low.barrier(bar) for bar in (*[op.bar for op in arrivals], *[op.bar for op in peers])}
        if len(addresses) != 1:
            raise NotFusedError("it releases several stages")
        made.peers = len(peers)
        made.empty, made.empty_behind = self.behind(addresses.pop(), ring)
        made.first = self.first(items[0].test, ring, made.empty_behind)

    def behind(self, address: Lin, ring: Ring) -> tuple[int, int]:
        """Offset of the `empty` barriers, and how many iterations back the stage is that is released."""
        for behind in range(ring.stages):
            stage = self.values.mod(self.values.add(ring.k, (behind, ()), -1), ring.stages)
            rest = self.values.add(address, stage, -MBARRIER_BYTES)
            if not rest[1]:
                return rest[0], behind
        raise NotFusedError("the stage that it releases is not that of k or a fixed number of iterations back")

    def first(self, test: Test | None, ring: Ring, behind: int) -> int:
        """The lowest k that releases."""
        lowest = self.values.interval(self.values.add(self.start, self.values.add(ring.k, self.counter, -1)))[0]
        first = lowest
        if test is not None:
            if test.kind != "less" or test.a != (0, self.values.scale(ring.k, -1)[1]):
                raise NotFusedError("it releases under a condition other than that k has come far enough")
            first = 1 - test.bound + ring.k[0]
        if max(first, lowest) < behind:
            raise NotFusedError("its first releases are of stages before the first")
        return max(first, 0)

    # ---- what both have
    def ring(self, ref: ops.BarrierRef, address: Lin, phase: Lin, lead: int) -> Ring:
        """The ring whose stage k % n a barrier is, waited for in phase k // n - lead."""
        for stages, k in self._candidates(ref, address, phase, lead):
            if self.values.depends(self.values.add(k, self.counter, -1), self.values.symbols_of(self.counter)):
                continue  # k does not grow by 1
            if self.values.add(self.values.div(k, stages), (-lead, ())) != phase:
                continue
            stage = self.values.mod(k, stages)
            if self.values.add(address, stage, -MBARRIER_BYTES)[1]:
                continue
            lowest = self.values.add(self.start, self.values.add(k, self.counter, -1))
            if self.values.interval(lowest)[0] < 0:
                raise NotFusedError("its count of stages may start below 0")
            if stages <= STAGES_MAX:
                return Ring(k, stages, stage)
        wanted = "k // stages" if not lead else f"k // stages - {lead}"
        raise NotFusedError(
            f"its wait is not for phase {wanted} of stage k % stages, with k = {self.op.counter} plus what does not change in it"
        )

    def _candidates(self, ref: ops.BarrierRef, address: Lin, phase: Lin, lead: int) -> Iterator[tuple[int, Lin]]:
        values = self.values
        stages = self.low.program.barriers[ref.barrier].stages
        ahead = (0 if phase[1] else (phase[0] + lead) * stages, ())  # a loop within one turn of the ring has but one phase
        yield stages, values.add(self.counter, ahead)
        if self.start != ZERO:
            yield stages, values.add(values.add(self.counter, ahead), self.start, -1)
        for kind, value in (("div", phase), ("mod", address)):
            for number, _ in value[1]:
                atom = values.atoms[number]
                if atom.kind == kind:
                    for turn in (phase[0] + lead,) if kind == "div" else (0, 1, -1):
                        yield atom.by, (atom.a[0] + turn * atom.by, atom.a[1])
        for number, factor in phase[1]:  # whole turns of the ring come from loops around: k // stages + turns
            atom = values.atoms[number]
            if atom.kind == "div" and factor == 1 and len(phase[1]) > 1:
                turns = (phase[0] + lead, tuple([term for term in phase[1] if term[0] != number]))
                yield atom.by, values.add(atom.a, values.scale(turns, atom.by))
        yield 1, values.add(phase, (lead, ()))  # one stage: every iteration is a phase

    def _copy(self, op: AnyCopy, ring: Ring) -> Copy:
        if is_extra(self.low, op):
            raise NotFusedError("a copy has a cache hint, or goes through an im2col map or one that was replaced")
        tile = self.low.tile(op.tile)
        stride = self._stride(tile, ring)
        tile = self.values.add(tile, ring.stage, -stride)
        mask = self.values.of(op.cta_mask) if isinstance(op, ops.TensorG2SMulticast) else ZERO
        changing = self.values.symbols_of(self.counter) | self.values.symbols_of(self.tile)
        if self.values.depends(tile, changing):
            raise NotFusedError("a tile is not the ring's stage k % stages")
        if self.values.depends(mask, changing):
            raise NotFusedError("a multicast mask changes in it")
        coords = tuple([self.values.of(e) for e in op.coords])
        reduce = REDUCE_OPS.index(op.op) if isinstance(op, ops.TensorReduce) else 0
        slot, chosen = self.low.map(op.map)
        if chosen or not 0 <= slot <= refusals.SLOT_MAX:
            raise NotFusedError("it copies through an entry of a table that is chosen while it runs, or far back in the table")
        return Copy(
            map=slot,
            rank=len(coords),
            kind=_KINDS[type(op)],
            reduce=reduce,
            tile=tile,
            stride=stride,
            mask=mask,
            coords=coords,
        )

    def _stride(self, tile: Lin, ring: Ring) -> int:
        for number, k in ring.stage[1]:
            if self.values.atoms[number].symbols & self.values.symbols_of(self.counter):
                return dict(tile[1]).get(number, 0) // k
        return 0

    def _fused(self, op: DeviceOp, ring: Ring, full: Lin, empty: Lin, nbytes: int, copies: list[Copy]) -> Fused:
        at_full = self.values.add(full, ring.stage, -MBARRIER_BYTES)
        at_empty = self.values.add(empty, ring.stage, -MBARRIER_BYTES) if op is DeviceOp.PRODUCE else ZERO
        if at_full[1] or at_empty[1]:
            raise NotFusedError("the barrier that its loads report to is not that of stage k % stages")
        rest = self.values.add(ring.k, self.counter, -1)
        counted = self.values.add(self.start, (0, rest[1]))
        offset = rest[0] if self.values.interval(counted)[0] >= 0 else 0  # the record's counter is not negative
        self._rebase((rest[0] - offset, rest[1]))
        places = self._places(copies)
        code = [] if places else self._evals(copies)
        return Fused(
            op=op,
            start=self.values.add(self.start, self._rest),
            stop=self.values.add(self.stop, self._rest),
            full=at_full[0],
            empty=at_empty[0],
            nbytes=nbytes,
            offset=offset,
            stages=ring.stages,
            flags=(RING_FLAG_COUNTER if self.counted else 0) | (RING_FLAG_PLACED if places else 0),
            copies=tuple(copies),
            code=code,
            places=places,
            where=self.where,
            counter=self.counter,
            begin=self.start,
        )

    def _rebase(self, rest: Lin) -> None:
        """Counts from what is added to the counter in k: the record knows a constant there, and no register."""
        self._rest = rest
        if rest == ZERO:
            return
        low = self.values.interval(self.values.add(self.start, rest))[0]
        high = self.values.interval(self.values.add(self.stop, rest))[1] - 1
        self._inner = self.values.symbol(f"{self.op.counter} + {self.values.text(rest)}", low, high)
        if not self._inner[1]:
            raise NotFusedError("it runs at most once")

    def _places(self, copies: list[Copy]) -> list[Placement]:
        """The coordinates of all copies, innermost first, which copies of the same ones share; none where one of them is no place."""
        number = self.tile if self.counted else self._inner
        moving = {number[1][0][0]: 0} if number[1] else {}
        bits = self.values.symbols_of(self._inner) | self.values.symbols_of(self.tile)
        begins: dict[tuple[Lin, ...], int] = {}
        places: list[Placement] = []
        for copy in copies:
            if copy.coords not in begins:
                begins[copy.coords] = len(places)
                try:
                    places += [placement(self.values, self._moved(value), moving, bits) for value in reversed(copy.coords)]
                except NotPlacedError:
                    return []
            copy.begin = begins[copy.coords]
            copy.end = copy.begin + copy.rank
        return places

    def _evals(self, copies: list[Copy]) -> list[Instruction]:
        """The coordinates of all copies; what does not change in the loop is in registers, named by its terms."""
        values, changing = self.values, self.values.symbols_of(self._inner) | self.values.symbols_of(self.tile)

        def find(terms: Terms) -> Found | None:
            if values.depends((0, terms), changing):
                return None
            atom = values.atoms[terms[0][0]]
            return (atom.a[1] if len(terms) == 1 and atom.kind == "group" else terms), 0

        scalars = Scalars(values, find, None, self._pushed())
        for copy in copies:
            copy.begin = len(scalars.code)
            for i, coordinate in enumerate(copy.coords):
                self._out(scalars, values.grouped(self._moved(coordinate), changing), copy.rank - 1 - i)
            copy.end = len(scalars.code)
        if len(scalars.code) > EVALS_MAX:
            raise NotFusedError("its coordinates are too long")
        return scalars.code

    def _pushed(self) -> dict[int, Instruction]:
        """The instructions that give the counter, and the tile of a counted loop."""
        pushed = {self._inner[1][0][0]: Instruction(EvalFn.COUNTER, 0)}
        if self.tile[1]:
            pushed[self.tile[1][0][0]] = Instruction(EvalFn.COUNTER, 1)
        return pushed

    @staticmethod
    def _out(scalars: Scalars, coordinate: Lin, dimension: int) -> None:
        try:
            scalars.out(coordinate, dimension)
        except TooDeepError:
            raise NotFusedError("its coordinates need more than four values at once") from None
        except OverflowingError:
            raise NotFusedError("its coordinates may leave 32 bits on the way") from None

    def _moved(self, coordinate: Lin) -> Lin:
        """A coordinate over the counter that the record counts with."""
        if self._rest == ZERO:
            return coordinate
        return self.values.replaced(coordinate, self.counter, self.values.add(self._inner, self._rest, -1))
