"""What device code must do, for tests: a program gone through for one thread class of one block, by the plain meaning of its expressions.

The events are those of `device_emulator`. Only the classes of threads and the phases of tokens come from the package.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, final

from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code.contract import WHOLE
from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.engines.sim.classes import ThreadClass, thread_classes
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Cond, Expr, evaluate, holds
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.expansion import expanded, told_ranks
from oxidecopy.program.phases import Phases, token_phases
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, Launch, Program, Step, entry_name
from oxidecopy.program.replaced import slots_per_cta
from tests.helpers.device_emulator import Event, Oracle

STEPS_MAX = 200_000
IDLE = {"mbarrier_wait_phase", "mbarrier_wait_parity", "mbarrier_test_parity", "bar_sync", "cluster_sync", "commit_group", "wait_group"}
IDLE |= {"mbarrier_wait_token", "mbarrier_test_token"}
IDLE |= {"wait_group_read", "fence_proxy_async", "fence_mbarrier_init", "load_index"}


class EndlessError(Exception):
    """More steps than a test can wait for."""


class OutsideError(Exception):
    """An entry that a table of maps does not have: the verifier refuses that."""


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A block of a launch."""

    block: tuple[int, int, int]
    rank: int
    number: int


def places(program: Program, launch: Launch) -> Iterator[Place]:
    """Every block, x fastest."""
    x, y, z = launch.grid
    cx, cy, cz = program.cluster
    for number in range(x * y * z):
        bx, by, bz = number % x, number // x % y, number // (x * y)
        yield Place((bx, by, bz), bx % cx + cx * (by % cy + cy * (bz % cz)), number)


@final
class Walk:
    """A program and launch, ready to be gone through."""

    def __init__(self, program: Program, launch: Launch) -> None:
        self.program = expanded(program, WHOLE)
        self.launch = launch
        self.classes = thread_classes(self.program)
        asked = any(isinstance(s.op, ops.MbarrierWait | ops.MbarrierTestToken) for s in self.program.walk())
        found = token_phases(self.program, launch) if asked else Phases({}, {})
        self.phases: Mapping[int, Expr] = found.known
        self.carried = found.unknown

    def events(self, who: ThreadClass, place: Place, tiles: list[int] | None = None) -> list[Event]:
        """What one class of one block does; `tiles` are those that it is given of a share, instead of every n-th."""
        return list(_Run(self, who, place, tiles).block(self.program.steps))


@final
class _Run:
    def __init__(self, walk: Walk, who: ThreadClass, place: Place, tiles: list[int] | None) -> None:
        self.walk = walk
        self.program = walk.program
        self.who = who
        self.place = place
        self.given = tiles
        self.env: dict[str, int] = walk.launch.environment()
        self.env.update(zip(BLOCK_SYMBOLS, place.block, strict=True))
        self.env[RANK_SYMBOL] = place.rank
        self.answers: dict[int, bool] = {}
        self.oracle = Oracle()
        self.threads = len(who.threads)
        self.around: list[ops.ThreadSet] = [ops.ThreadSet(((0, self.program.threads),))]
        self.left = STEPS_MAX
        self.counters: list[int] = []
        self.arrivals = 0
        self.tokens: dict[tuple[int, ...], int] = {}  # (token, counters around) -> number of the arrival

    def block(self, steps: Sequence[Step]) -> Iterator[Event]:  # noqa: C901 - one case per block
        for step in steps:
            self.left -= 1
            if self.left < 0:
                raise EndlessError
            match step.op:
                case ops.Scope(threads=threads):
                    if self.who.threads.first in threads:
                        self.around.append(threads)
                        yield from self.block(step.body)
                        self.around.pop()
                case ops.When(cond=cond):
                    if self.holds(cond):
                        yield from self.block(step.body)
                case ops.Loop(counter=counter, start=start, stop=stop, step=by):
                    for i in range(self.value(start), self.value(stop), by):
                        self.env[counter] = i
                        self.counters.append(i)
                        yield from self.block(step.body)
                        self.counters.pop()
                case op:
                    yield from self.op(op)

    def holds(self, cond: Cond) -> bool:
        return holds(cond, self.env, _Answers(self.answers))

    def value(self, e: Expr) -> int:
        return evaluate(e, self.env)

    def bar(self, ref: ops.BarrierRef) -> int:
        return self.program.barriers[ref.barrier].offset + 8 * self.value(ref.index)

    def tile(self, ref: ops.TileRef) -> int:
        decl = self.program.tiles[ref.tile]
        at = decl.offset + decl.stage_bytes * self.value(ref.index)
        if ref.part is not None:
            layout = decl.layout
            whole = layout.rows * layout.pitch_bytes if len(layout.shape) > 1 else layout.row_bytes
            at += self.value(ref.part.rank) * (whole // ref.part.of)
        return at

    def layout(self, ref: ops.TileRef) -> Event:
        decl = self.program.tiles[ref.tile]
        shape = decl.shape if ref.part is None else (decl.shape[0] // ref.part.of, *decl.shape[1:])
        layout = replace(decl.layout, shape=shape)
        return (shape, layout.pitch_bytes, layout.element_bytes, SWIZZLES[decl.swizzle].mask, decl.dtype)

    def coords(self, exprs: tuple[Expr, ...]) -> tuple[int, ...]:
        return tuple(self.value(e) for e in exprs)

    def share(self) -> tuple[int, int, int]:
        scope = self.around[-1]
        here = [c for c in self.walk.classes if c.threads.first in scope]
        before = sum(len(c.threads) for c in here[: here.index(self.who)])
        return before, before + self.threads, len(scope)

    def op(self, op: ops.Instr) -> Iterator[Event]:  # noqa: C901 - one case per op
        name = type(op).__name__
        if isinstance(op, ops.MbarrierArrive | ops.MbarrierArriveDrop | ops.MbarrierArriveExpectTx):
            self.arrivals += 1
            self.tokens[op.token, *self.counters] = self.arrivals
        match op:
            case ops.MbarrierInit(bar=bar, count=count):
                yield ("mbarrier_init", self.bar(bar), count)
            case ops.MbarrierInval(bar=bar):
                yield ("mbarrier_inval", self.bar(bar))
            case ops.MbarrierArrive(bar=bar):
                yield ("mbarrier_arrive", self.bar(bar), 0, 0, self.threads)
            case ops.MbarrierArriveDrop(bar=bar):
                yield ("mbarrier_arrive_drop", self.bar(bar), 0, 0, self.threads)
            case ops.MbarrierArriveExpectTx(bar=bar, nbytes=n):
                yield ("mbarrier_arrive_expect_tx", self.bar(bar), n, 0, self.threads)
            case ops.MbarrierExpectTx(bar=bar, nbytes=n):
                yield ("mbarrier_expect_tx", self.bar(bar), n, 0, self.threads)
            case ops.MbarrierCompleteTx(bar=bar, nbytes=n):
                yield ("mbarrier_complete_tx", self.bar(bar), n, 0, self.threads)
            case ops.MbarrierArriveRemote(bar=bar, rank=rank):
                yield ("mbarrier_arrive_remote", self.bar(bar), self.value(rank), 0, self.threads)
            case ops.MbarrierArriveExpectTxRemote(bar=bar, rank=rank, nbytes=n):
                yield ("mbarrier_arrive_expect_tx_remote", self.bar(bar), self.value(rank), n, self.threads)
            case ops.FenceProxyAsync():
                yield ("fence_proxy_async", 0)
            case ops.FenceMbarrierInit():
                yield ("fence_mbarrier_init", 0)
            case ops.ClusterSync():
                yield ("cluster_sync", 0)
            case ops.BarSync():
                here = frozenset(str(c) for c in self.walk.classes if c.threads.first in self.around[-1])
                yield ("bar_sync", op.number, op.threads, here)
            case ops.CommitGroup() | ops.WaitGroup() | ops.WaitGroupRead():
                if self.threads == 1:
                    word = {"CommitGroup": "commit_group", "WaitGroup": "wait_group", "WaitGroupRead": "wait_group_read"}[name]
                    yield (word, getattr(op, "pending", 0))
            case ops.ShareTiles() | ops.NextTile():
                self.shared(op)
            case ops.Contract():
                uses = self.program.tiles[op.out.tile].stages
                numbers = (self.value(op.first), self.value(op.steps), self.value(op.put) % uses)
                places = (self.bar(op.full), self.bar(op.empty), self.tile(op.a), self.tile(op.b), self.tile(op.out))
                yield ("contract", op.map.name, self.coords(op.coords), numbers, places, op.stages, self.told(op))
            case ops.ContractDrain():
                yield ("contract_drain",)
            case _:
                yield from self.accesses(op)

    def told(self, op: ops.Contract) -> tuple[int, ...]:
        """The CTAs that are told that a stage is free."""
        return tuple(sorted(self.value(e) for e in told_ranks(self.program.cluster, op.told))) if op.peers else ()

    def accesses(self, op: ops.Instr) -> Iterator[Event]:  # noqa: C901 - one case per op
        match op:
            case ops.MbarrierWait(bar=bar, tokens=tokens):
                phases = dict.fromkeys(self.value(self.walk.phases[token]) for token in tokens if token in self.walk.phases)
                yield from (("mbarrier_wait_phase", self.bar(bar), phase) for phase in phases)
                carried = [token for token in tokens if token in self.walk.carried]
                yield from (("mbarrier_wait_token", self.bar(bar), self.tokens.get((token, *self.counters))) for token in carried)
            case ops.MbarrierWaitPhase(bar=bar, phase=phase):
                if self.value(phase) >= 0:
                    yield ("mbarrier_wait_phase", self.bar(bar), self.value(phase))
            case ops.MbarrierWaitParity(bar=bar, parity=parity):
                yield ("mbarrier_wait_parity", self.bar(bar), self.value(parity) & 1)
            case ops.MbarrierTestToken(bar=bar, token=token) if token in self.walk.carried:
                self.answers[op.pred] = answer = self.oracle.answer()
                made = self.tokens.get((token, *self.counters))
                yield ("mbarrier_test_token", self.bar(bar), made, int(op.form == "test_wait"), int(answer))
            case ops.MbarrierTestToken(bar=bar, token=token):
                yield self.test(op, self.bar(bar), self.value(self.walk.phases[token]))
            case ops.MbarrierTestParity(bar=bar, parity=parity):
                yield self.test(op, self.bar(bar), self.value(parity))
            case op if isinstance(op, (*ops.EDITS, ops.TensormapCpFenceproxy, ops.FenceProxyTensormap)):
                yield from self.edits(op)
            case op if isinstance(op, ops.Copy) and self.is_extra(op):
                yield self.extra(op)
            case ops.TensorG2S(map=m, tile=t, coords=c, bar=bar):
                yield ("load", self.map(m), self.coords(c), self.tile(t), self.bar(bar), None)
            case ops.TensorG2SMulticast(map=m, tile=t, coords=c, bar=bar, cta_mask=mask):
                yield ("load", self.map(m), self.coords(c), self.tile(t), self.bar(bar), self.value(mask))
            case ops.TensorS2G(map=m, tile=t, coords=c):
                yield ("store", self.map(m), self.coords(c), self.tile(t))
            case ops.TensorReduce(op=how, map=m, tile=t, coords=c):
                yield ("reduce", how, self.map(m), self.coords(c), self.tile(t))
            case ops.StoreGlobal(array=a, tile=t, coords=c):
                yield ("store_global", a.name, self.tile(t), self.coords(c), self.share(), self.layout(t))
            case ops.Fill(tile=t, value=value):
                yield ("fill", self.tile(t), self.filled(t, value), self.share(), self.layout(t))
            case ops.Iota(tile=t, axis=axis):
                yield ("iota", self.tile(t), axis, self.share(), self.layout(t))
            case ops.MapTiles(inputs=inputs, out=out):
                sources = tuple((self.tile(t), self.layout(t)) for t in inputs)
                yield ("map_tiles", self.tile(out), sources, self.share(), self.layout(out))
            case ops.TransposeTile() | ops.ReduceTile() | ops.StencilTile():
                yield self.reshape(op)
            case ops.LoadIndex(name=name, array=a, index=index, below=below):
                found = self.oracle.index(a.name, self.value(index), self.value(below))
                dtype = self.program.arrays[a.name].dtype
                yield ("load_index", a.name, self.value(index), self.value(below), found, dtype)
                self.env[name] = found
            case _:
                raise TypeError(op)

    def reshape(self, op: ops.TransposeTile | ops.ReduceTile | ops.StencilTile) -> Event:
        shape, _, size, *_ = self.layout(op.source)
        if isinstance(op, ops.TransposeTile):
            return ("transpose", self.tile(op.out), self.tile(op.source), prod(shape) * size, self.share())
        if isinstance(op, ops.StencilTile):
            pitch = self.layout(op.source)[1]
            taps = tuple([(tap.row * pitch + tap.column * size, tap.weight) for tap in op.taps])
            return ("stencil", taps, self.tile(op.out), self.tile(op.source), self.layout(op.out)[0], self.share())
        return ("fold", (op.op, op.axis, op.onto), self.tile(op.out), self.tile(op.source), shape, self.share())

    def edits(self, op: ops.Instr) -> Iterator[Event]:
        match op:
            case ops.TensormapCopy(map=m, tile=t):
                yield ("tensormap_copy", self.map(m), self.tile(t))
            case ops.TensormapReplace(field=field, ord=ord_, value=value, tile=t):
                yield ("tensormap_replace", field, ord_, self.value(value), self.tile(t), False)
            case ops.TensormapReplaceArray(array=a, first=first, stop=stop, tile=t):
                yield ("tensormap_point", a.name, self.coords(first), self.tile(t))
                sizes = [self.value(b) - self.value(x) for x, b in zip(first, stop, strict=True)]
                yield from (("tensormap_replace", "global_dim", i, n, self.tile(t), True) for i, n in enumerate(reversed(sizes)))
            case ops.TensormapCpFenceproxy(slot=slot, tile=t):
                if not self.share()[0]:
                    yield ("tensormap_release", slot.array, self.row(slot), self.tile(t))
            case ops.FenceProxyTensormap(slot=slot):
                yield ("tensormap_acquire", slot.array, self.row(slot))
            case _:
                raise TypeError(op)

    def is_extra(self, op: ops.Copy) -> bool:
        if not isinstance(op, ops.TensorG2S | ops.TensorG2SMulticast | ops.TensorS2G | ops.TensorReduce):
            return True
        return op.hint is not None or op.map.slot is not None or self.program.maps[op.map.name].mode == "im2col"

    def row(self, slot: ops.SlotRef) -> int:
        """Blocks are numbered x fastest, each with as many rows as any op names."""
        count = slots_per_cta(self.program)[slot.array]
        x, y, _ = self.walk.launch.grid
        bx, by, bz = self.place.block
        return (bx + x * (by + y * bz)) * count + slot.number

    def extra(self, op: Any) -> Event:
        """As `Emulator.extra`."""
        sends, tensor = isinstance(op, ops.Send), hasattr(op, "map")
        offsets = tuple(self.value(e) for e in op.offsets) if getattr(op, "offsets", ()) else None
        hint = getattr(op, "hint", None)
        reduce = getattr(op, "op", None)
        return (
            DeviceOp(op.opcode).name.lower(),  # the op table's numbers are the device's
            self.map(op.map) if tensor else None if sends else op.array.name,
            () if sends else self.coords(op.coords),
            self.tile(op.tile) if hasattr(op, "tile") else None,
            self.bar(op.bar) if hasattr(op, "bar") else None,
            self.value(op.rank) if sends else self.value(op.cta_mask) if isinstance(op, ops.Multicast) else None,
            offsets,
            self.tile(op.into) if sends else None,
            (hint.word, struct.unpack("<f", struct.pack("<f", hint.fraction))[0]) if hint is not None else None,
            None if tensor else op.nbytes,
            reduce,
            self.program.tiles[op.tile.tile].dtype if reduce and not tensor else None,
            tensor and self.program.maps[op.map.name].mode == "im2col",
        )

    def test(self, op: ops.MbarrierTestToken | ops.MbarrierTestParity, at: int, parity: int) -> Event:
        self.answers[op.pred] = answer = self.oracle.answer()
        return ("mbarrier_test_parity", at, parity & 1, int(op.form == "test_wait"), int(answer))

    def map(self, ref: ops.MapRef) -> object:
        if ref.slot is not None:
            return (ref.slot.array, self.row(ref.slot))
        if ref.index is None:
            return ref.name
        if not 0 <= self.value(ref.index) < (self.program.maps[ref.name].entries or 0):
            raise OutsideError
        return entry_name(ref.name, self.value(ref.index))

    def filled(self, tile: ops.TileRef, value: float | ops.ScalarRef) -> object:
        dtype = self.program.tiles[tile.tile].dtype
        return (value.name, dtype, False) if isinstance(value, ops.ScalarRef) else bits_of(value, dtype, cast=False)

    def shared(self, op: ops.ShareTiles | ops.NextTile) -> None:
        x, y, z = self.walk.launch.grid
        if isinstance(op, ops.ShareTiles):
            mine = range(self.place.number, self.value(op.tiles), x * y * z)
            self.env[op.name] = len(mine if self.given is None else self.given)
        else:
            i = self.value(op.index)
            self.env[op.name] = self.place.number + i * x * y * z if self.given is None else self.given[i]


class _Answers(dict[int, bool]):
    """An answer nobody has given yet is no."""

    def __missing__(self, key: int) -> bool:
        return False
