"""A small builder of Programs straight from the op dataclasses, for tests of everything that takes a Program.

Every op gets its own line number (`Site("t.py", n)`), so tests can name the op that a report points at by the `tag` given to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from oxidecopy.errors import Site
from oxidecopy.isa import expr, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import Binary, Elem, ElemOp, Input
from oxidecopy.isa.expr import Cond, Const, Expr, Sym, SymKind
from oxidecopy.isa.ops import BarrierRef, Instr, MapRef, Part, ThreadSet, TileRef
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.program.program import (
    ArrayInfo,
    ArrayParam,
    BarrierDecl,
    IdxParam,
    Launch,
    MapParam,
    Param,
    Program,
    Step,
    TileDecl,
)
from oxidecopy.program.tensor_map import TensorMap, TileLayout

BX = Sym("block_idx.x", SymKind.BLOCK)
BY = Sym("block_idx.y", SymKind.BLOCK)
BZ = Sym("block_idx.z", SymKind.BLOCK)
RANK = Sym("cta_rank", SymKind.RANK)

E = Expr | int


def e(x: E) -> Expr:
    return Const(x) if isinstance(x, int) else x


def lt(a: E, b: E) -> Cond:
    return expr.Cmp(expr.CmpOp.LT, e(a), e(b))


def eq(a: E, b: E) -> Cond:
    return expr.Cmp(expr.CmpOp.EQ, e(a), e(b))


def add(a: E, b: E) -> Expr:
    return expr.add(e(a), e(b))


def mul(a: E, b: E) -> Expr:
    return expr.mul(e(a), e(b))


def div(a: E, b: E) -> Expr:
    return expr.floordiv(e(a), e(b))


def mod(a: E, b: E) -> Expr:
    return expr.mod(e(a), e(b))


def least(a: E, b: E) -> Expr:
    return expr.minimum(e(a), e(b))


@dataclass
class Builder:
    """Collects a program. Tiles and barriers are laid out like the recorder does; every layout field can be overridden."""

    threads: int = 128
    cluster: tuple[int, int, int] = (1, 1, 1)
    grid: tuple[int, int, int] = (4, 1, 1)
    sm: int = 90
    params: list[Param] = field(default_factory=list)
    tiles: list[TileDecl] = field(default_factory=list)
    bars: list[BarrierDecl] = field(default_factory=list)
    maps: dict[str, TensorMap] = field(default_factory=dict)
    arrays: dict[str, ArrayInfo] = field(default_factory=dict)
    idx: dict[str, int] = field(default_factory=dict)
    bodies: list[list[Step]] = field(default_factory=lambda: [[]])
    tags: dict[str, int] = field(default_factory=dict)
    line: int = 0
    end: int = 0
    tokens: int = 0
    loops: int = 0
    stores: int = 0
    loaded: set[str] = field(default_factory=set)
    around: list[Expr] = field(default_factory=list)  # turns of the loops that are open, outermost first
    shared_bytes: int | None = None

    # ---- parameters
    def map(
        self,
        name: str = "src",
        box: tuple[int, ...] = (64, 64),
        dims: tuple[int, ...] = (256, 256),
        dtype: str = "f32",
        swizzle: str = "none",
        strides: tuple[int, ...] | None = None,
    ) -> str:
        size = DTYPES[dtype].nbytes
        if strides is None:
            strides = ()
            step = -(-dims[-1] * size // 16) * 16
            for n in reversed(dims[:-1]):
                strides, step = (step, *strides), step * n
        ones = (1,) * len(box)
        self.params.append(MapParam(name=name, dtype=dtype, box_dim=box, element_strides=ones, swizzle=swizzle))
        self.maps[name] = TensorMap(
            dtype=dtype, global_dim=dims, global_strides=strides, box_dim=box, element_strides=ones, swizzle=swizzle
        )
        return name

    def array(self, name: str = "out", shape: tuple[int, ...] = (256, 256), dtype: str = "f32") -> str:
        self.params.append(ArrayParam(name=name, dtype=dtype, rank=len(shape)))
        step = DTYPES[dtype].nbytes
        strides: tuple[int, ...] = ()
        for n in reversed(shape):
            strides, step = (step, *strides), step * n
        self.arrays[name] = ArrayInfo(dtype=dtype, shape=shape, strides_bytes=strides)
        return name

    def index(self, name: str, value: int) -> Sym:
        self.params.append(IdxParam(name=name))
        self.idx[name] = value
        return Sym(name, SymKind.PARAM)

    # ---- shared memory
    def tile(
        self,
        name: str = "tile",
        shape: tuple[int, ...] = (64, 64),
        dtype: str = "f32",
        swizzle: str = "none",
        stages: int = 1,
        offset: int | None = None,
        stage_bytes: int | None = None,
        align: int = 128,
    ) -> int:
        layout = TileLayout(shape=shape, element_bytes=DTYPES[dtype].nbytes, swizzle=swizzle)
        unit = max(align, EVERY_SWIZZLE[swizzle].repeat_bytes)
        if offset is None:
            offset = -(-self.end // unit) * unit
        if stage_bytes is None:
            stage_bytes = -(-layout.footprint_bytes // unit) * unit
        self.tiles.append(
            TileDecl(
                name=name,
                dtype=dtype,
                shape=shape,
                align=align,
                swizzle=swizzle,
                stages=stages,
                offset=offset,
                stage_bytes=stage_bytes,
                site=Site("t.py", 1000 + len(self.tiles)),
            )
        )
        self.end = max(self.end, offset + (stages - 1) * stage_bytes + layout.footprint_bytes)
        return len(self.tiles) - 1

    def bar(self, name: str = "full", stages: int = 1, offset: int | None = None) -> int:
        if offset is None:
            offset = -(-self.end // 8) * 8
        self.bars.append(BarrierDecl(name=name, kind="TmaBarrier", stages=stages, offset=offset, site=Site("t.py", 2000 + len(self.bars))))
        self.end = max(self.end, offset + 8 * stages)
        return len(self.bars) - 1

    # ---- ops
    def op(self, op: Instr, tag: str = "", body: tuple[Step, ...] = ()) -> None:
        self.line += 1
        if tag:
            self.tags[tag] = self.line
        self.bodies[-1].append(Step(op, Site("t.py", self.line), body))

    @contextmanager
    def block(self, op: Instr, tag: str = "") -> Iterator[None]:
        self.line += 1
        line = self.line
        if tag:
            self.tags[tag] = line
        self.bodies.append([])
        yield
        body = tuple(self.bodies.pop())
        self.bodies[-1].append(Step(op, Site("t.py", line), body))

    @contextmanager
    def scope(self, *ranges: tuple[int, int], role: str = "warps", tag: str = "") -> Iterator[None]:
        with self.block(ops.Scope(role=role, threads=ThreadSet(ranges)), tag):
            yield

    @contextmanager
    def elect(self, thread: int = 0, tag: str = "") -> Iterator[None]:
        with self.scope((thread, thread + 1), role="elect", tag=tag):
            yield

    @contextmanager
    def others(self, thread: int = 0) -> Iterator[None]:
        ranges = [r for r in ((0, thread), (thread + 1, self.threads)) if r[0] < r[1]]
        with self.scope(*ranges, role="threads_except"):
            yield

    @contextmanager
    def when(self, cond: Cond, tag: str = "") -> Iterator[None]:
        with self.block(ops.When(cond=cond), tag):
            yield

    @contextmanager
    def loop(self, stop: E, start: E = 0, step: int = 1, tag: str = "") -> Iterator[Sym]:
        self.loops += 1
        name = f"i{self.loops}"
        counter = Sym(name, SymKind.LOOP)
        with self.block(ops.Loop(counter=name, start=e(start), stop=e(stop), step=step), tag):
            self.around.append(counter if step > 0 else expr.sub(e(start), counter))
            yield counter
            self.around.pop()

    def init(self, bar: int = 0, count: int = 1, sync: bool = True, thread: int = 0, fence: bool = True, tag: str = "") -> None:
        """As `init` records it: one thread for every element, the cluster fence, a sync."""
        with self.elect(thread):
            for i in range(self.bars[bar].stages):
                self.op(ops.MbarrierInit(bar=BarrierRef(bar, Const(i)), count=count), tag)
            if fence and self.cluster != (1, 1, 1):
                self.op(ops.FenceMbarrierInit())
        if sync:
            self.sync()

    def inval(self, bar: int = 0, sync: bool = True, tag: str = "") -> None:
        if sync:
            self.sync()
        with self.elect():
            for i in range(self.bars[bar].stages):
                self.op(ops.MbarrierInval(bar=BarrierRef(bar, Const(i))), tag)

    def sync(self, threads: int | None = None, number: int = 0, tag: str = "") -> None:
        self.op(ops.BarSync(number=number, threads=threads or self.threads), tag)

    def cluster_sync(self, tag: str = "") -> None:
        self.op(ops.ClusterSync(), tag)

    def arrive(self, bar: int = 0, i: E = 0, tag: str = "") -> int:
        self.tokens += 1
        self.op(ops.MbarrierArrive(bar=BarrierRef(bar, e(i)), token=self.tokens), tag)
        return self.tokens

    def arrive_drop(self, bar: int = 0, i: E = 0, tag: str = "") -> int:
        self.tokens += 1
        self.op(ops.MbarrierArriveDrop(bar=BarrierRef(bar, e(i)), token=self.tokens), tag)
        return self.tokens

    def arm(self, nbytes: int, bar: int = 0, i: E = 0, tag: str = "") -> int:
        self.tokens += 1
        self.op(ops.MbarrierArriveExpectTx(bar=BarrierRef(bar, e(i)), nbytes=nbytes, token=self.tokens), tag)
        return self.tokens

    def expect(self, nbytes: int, bar: int = 0, i: E = 0, tag: str = "") -> None:
        self.op(ops.MbarrierExpectTx(bar=BarrierRef(bar, e(i)), nbytes=nbytes), tag)

    def complete(self, nbytes: int, bar: int = 0, i: E = 0, tag: str = "") -> None:
        self.op(ops.MbarrierCompleteTx(bar=BarrierRef(bar, e(i)), nbytes=nbytes), tag)

    def arrive_remote(self, rank: E, bar: int = 0, i: E = 0, tag: str = "") -> None:
        self.op(ops.MbarrierArriveRemote(bar=BarrierRef(bar, e(i)), rank=e(rank)), tag)

    def arm_remote(self, rank: E, nbytes: int, bar: int = 0, i: E = 0, tag: str = "") -> None:
        self.op(ops.MbarrierArriveExpectTxRemote(bar=BarrierRef(bar, e(i)), nbytes=nbytes, rank=e(rank)), tag)

    def wait(self, *tokens: int, bar: int = 0, i: E = 0, tag: str = "") -> None:
        self.op(ops.MbarrierWait(bar=BarrierRef(bar, e(i)), tokens=tokens), tag)

    def wait_phase(self, k: E, bar: int = 0, i: E = 0, tag: str = "") -> None:
        self.op(ops.MbarrierWaitPhase(bar=BarrierRef(bar, e(i)), phase=e(k)), tag)

    def wait_parity(self, p: E, bar: int = 0, i: E = 0, tag: str = "") -> None:
        self.op(ops.MbarrierWaitParity(bar=BarrierRef(bar, e(i)), parity=e(p)), tag)

    def test_token(self, token: int, pred: int, bar: int = 0, i: E = 0, tag: str = "") -> Cond:
        self.op(ops.MbarrierTestToken(form="try_wait", bar=BarrierRef(bar, e(i)), token=token, pred=pred), tag)
        return expr.Answer(pred)

    def test_parity(self, parity: E, pred: int, bar: int = 0, i: E = 0, tag: str = "") -> Cond:
        self.op(ops.MbarrierTestParity(form="test_wait", bar=BarrierRef(bar, e(i)), parity=e(parity), pred=pred), tag)
        return expr.Answer(pred)

    def ref(self, tile: int, stage: E = 0, part: E | None = None, of: int = 1) -> TileRef:
        return TileRef(tile, e(stage), None if part is None else Part(e(part), of))

    def g2s(
        self, coords: tuple[E, ...] = (0, 0), name: str = "src", tile: int = 0, stage: E = 0, bar: int = 0, i: E = 0,
        part: E | None = None, of: int = 1, tag: str = "",
    ) -> None:  # fmt: skip
        self.loaded.add(name)
        self.op(
            ops.TensorG2S(map=MapRef(name), tile=self.ref(tile, stage, part, of), coords=tuple(map(e, coords)), bar=BarrierRef(bar, e(i))),
            tag,
        )

    def multicast(
        self, mask: E, coords: tuple[E, ...] = (0, 0), name: str = "src", tile: int = 0, stage: E = 0, bar: int = 0, i: E = 0,
        part: E | None = None, of: int = 1, tag: str = "",
    ) -> None:  # fmt: skip
        self.loaded.add(name)
        self.op(
            ops.TensorG2SMulticast(
                map=MapRef(name),
                tile=self.ref(tile, stage, part, of),
                coords=tuple(map(e, coords)),
                bar=BarrierRef(bar, e(i)),
                cta_mask=e(mask),
            ),
            tag,
        )

    def apart(self, name: str, box: tuple[int, ...]) -> tuple[E, ...]:
        """Where no other store goes: columns by the CTA, rows by the turns of the loops and by what was stored before. Often outside.

        The very first one goes to (0, 0), but not where that is loaded.
        """
        turn: Expr = Const(0)
        for counter in self.around:
            turn = add(mul(turn, 256), counter)
        x, y, _ = self.grid
        cta = add(BX, add(mul(BY, x), mul(BZ, x * y)))
        row = add(mul(turn, 8), self.stores % 7 + (name in self.loaded))
        self.stores += 1
        return (mul(row, box[0]), mul(cta, box[1])) if len(box) == 2 else (0,) * len(box)

    def s2g(self, coords: tuple[E, ...] | None = None, name: str = "src", tile: int = 0, stage: E = 0, tag: str = "") -> None:
        coords = coords if coords is not None else self.apart(name, self.maps[name].box_dim)
        self.op(ops.TensorS2G(map=MapRef(name), tile=self.ref(tile, stage), coords=tuple(map(e, coords))), tag)

    def reduce(self, op: str, coords: tuple[E, ...] = (0, 0), name: str = "src", tile: int = 0, tag: str = "") -> None:
        self.op(ops.TensorReduce(op=op, map=MapRef(name), tile=self.ref(tile), coords=tuple(map(e, coords))), tag)

    def commit(self) -> None:
        self.op(ops.CommitGroup())

    def wait_group(self, pending: int = 0, tag: str = "") -> None:
        self.op(ops.WaitGroup(pending=pending), tag)

    def wait_read(self, pending: int = 0, tag: str = "") -> None:
        self.op(ops.WaitGroupRead(pending=pending), tag)

    def fence(self) -> None:
        self.op(ops.FenceProxyAsync())

    def fill(self, tile: int = 0, stage: E = 0, tag: str = "", part: E | None = None, of: int = 1) -> None:
        self.op(ops.Fill(tile=self.ref(tile, stage, part, of), value=0), tag)

    def store(self, coords: tuple[E, ...] | None = None, tile: int = 0, stage: E = 0, name: str = "out", tag: str = "") -> None:
        coords = coords if coords is not None else self.apart(name, self.tiles[tile].shape)
        self.op(ops.StoreGlobal(array=ops.ArrayRef(name), tile=self.ref(tile, stage), coords=tuple(map(e, coords))), tag)

    def compute(self, fn: Elem | None = None, *inputs: TileRef, out: TileRef | None = None, tag: str = "") -> None:
        """A map; by default of the first tile in place, to twice its values."""
        made = fn or Binary(ElemOp.ADD, Input(0, "f32"), Input(0, "f32"))
        self.op(ops.MapTiles(inputs=inputs or (self.ref(0),), out=out or self.ref(0), fn=made), tag)

    # ---- the result
    def program(self) -> Program:
        return Program(
            name="t",
            threads=self.threads,
            cluster=self.cluster,
            params=tuple(self.params),
            tiles=tuple(self.tiles),
            barriers=tuple(self.bars),
            shared_bytes=self.end if self.shared_bytes is None else self.shared_bytes,
            steps=tuple(self.bodies[0]),
            site=Site("t.py", 0),
        )

    def launch(self) -> Launch:
        return Launch(
            grid=self.grid,
            maps=tuple(sorted(self.maps.items())),
            arrays=tuple(sorted(self.arrays.items())),
            idx=tuple(sorted(self.idx.items())),
            sm=self.sm,
        )
