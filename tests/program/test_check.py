"""The generic check of programs built in Python: each broken field has its rule, and its one-edit twin passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oxidecopy.errors import Site
from oxidecopy.isa import expr, ops
from oxidecopy.isa.elem import Binary, Cast, Elem, ElemOp, Input, Number, Parameter
from oxidecopy.isa.expr import ONE, ZERO, Add, Answer, Bool, Cmp, CmpOp, Const, FloorDiv, Mod, Sym, SymKind
from oxidecopy.isa.ops import ArrayRef, BarrierRef, Instr, MapRef, Part, ScalarRef, ThreadSet, TileRef
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import ArrayParam, BarrierDecl, IdxParam, MapParam, Param, Program, ScalarParam, Step, TileDecl

SITE = Site("kernel.py", 7, "f")
N = Sym("n", SymKind.PARAM)
PARAMS: tuple[Param, ...] = (
    MapParam(name="src", dtype="f32", box_dim=(8, 32), element_strides=(1, 1)),
    ArrayParam(name="out", dtype="f32", rank=2),
    IdxParam(name="n"),
    ScalarParam(name="alpha", dtype="f32"),
)
TILE = TileDecl(name="t", dtype="f32", shape=(8, 32), align=128, swizzle="none", stages=2, offset=0, stage_bytes=1024)
MORE_TILES = tuple([
    TileDecl(name=name, dtype=dtype, shape=shape, align=128, swizzle="none", stages=1, offset=4096, stage_bytes=1024)
    for name, dtype, shape in (
        ("flat", "f32", (32, 8)), ("halves", "f16", (8, 32)), ("bytes", "u32", (32, 8)), ("rows", "f32", (8,)), ("rows too", "f32", (8,)),
        ("half rows", "f16", (8,)),
    )
])  # fmt: skip
FLAT, HALVES, BYTES, ROWS, ROWS_TOO, HALF_ROWS = (TileRef(i, ZERO) for i in range(1, 7))
BARRIER = BarrierDecl(name="full", kind="TmaBarrier", stages=2, offset=2048)
BAR, T = BarrierRef(0, ZERO), TileRef(0, ZERO)
MAP, OUT = MapRef("src"), ArrayRef("out")


def program(*steps: Instr | Step, threads: int = 64) -> Program:
    made = tuple(s if isinstance(s, Step) else Step(s, SITE) for s in steps)
    return Program(
        name="f",
        threads=threads,
        cluster=(1, 1, 1),
        params=PARAMS,
        tiles=(TILE, *MORE_TILES),
        barriers=(BARRIER,),
        shared_bytes=2064,
        steps=made,
    )


def rules(*steps: Instr | Step) -> list[str]:
    return [d.rule for d in check_operands(program(*steps))]


def init(bar: BarrierRef = BAR, count: int = 1) -> Instr:
    return ops.MbarrierInit(bar=bar, count=count)


def fill(tile: TileRef = T, value: float | ScalarRef = 0) -> Instr:
    return ops.Fill(tile=tile, value=value)


def store(*coords: expr.Expr, tile: TileRef = T, source: MapRef = MAP) -> Instr:
    return ops.TensorS2G(map=source, tile=tile, coords=coords)


X = Input(0, "f32")


def mapped(fn: Elem = X, *inputs: TileRef, out: TileRef = T) -> Instr:
    return ops.MapTiles(inputs=inputs or (T,), out=out, fn=fn)


def folded(source: TileRef, out: TileRef, axis: int = 1, onto: int = 0) -> ops.ReduceTile:
    return ops.ReduceTile(op="sum", onto=onto, axis=axis, source=source, out=out)


def scope(*ranges: tuple[int, int], body: tuple[Step, ...] = ()) -> Step:
    return Step(ops.Scope(role="warps", threads=ThreadSet(ranges)), SITE, body)


def loop(counter: str = "i", *body: Instr | Step, step: int = 1, stop: expr.Expr = N) -> Step:
    made = tuple(s if isinstance(s, Step) else Step(s, SITE) for s in body)
    return Step(ops.Loop(counter=counter, start=ZERO, stop=stop, step=step), SITE, made)


def when(cond: expr.Cond) -> Step:
    return Step(ops.When(cond=cond), SITE)


ARRIVE = ops.MbarrierArrive(bar=BAR, token=0)
COUNTER = Sym("i", SymKind.LOOP)
RIGHT: list[tuple[Instr | Step, ...]] = [
    (init(count=(1 << 20) - 1),),
    (init(BarrierRef(0, ONE)),),
    (fill(TileRef(0, ONE)), fill(TileRef(0, N))),
    (fill(TileRef(0, ZERO, Part(Const(3), 4))),),
    (fill(value=(1 << 64) - 1), fill(value=-(1 << 63)), fill(value=1e300), fill(value=ScalarRef("alpha"))),
    (store(ZERO, N),),
    (store(ZERO, Sym("src.dim[1]", SymKind.EXTENT)),),
    (ops.StoreGlobal(array=OUT, tile=T, coords=(ZERO, ZERO)),),
    (scope((0, 1), (1, 64)), scope((63, 64))),
    (scope((0, 8), (8, 16), body=(scope((4, 12)),)),),
    (loop("i", store(ZERO, COUNTER)), loop("j", step=-1)),
    (ARRIVE, ops.MbarrierWait(bar=BAR, tokens=(0,))),
    (ARRIVE, ops.MbarrierTestToken(form="test_wait", bar=BAR, token=0, pred=0), when(Answer(0))),
    (when(Cmp(CmpOp.LT, FloorDiv(N, N), Mod(N, Const(-1)))),),
    (store(ZERO, Const(-(1 << 63))),),
    (mapped(), mapped(Binary(ElemOp.MUL, X, Parameter("alpha", "f32"))), mapped(Cast(Cast(X, "bf16"), "f32"))),
    (mapped(Input(3, "f32"), T, T, T, T, out=TileRef(0, N)),),
    (mapped(X, TileRef(0, ZERO, Part(ZERO, 4)), out=TileRef(0, N, Part(N, 4))),),
    (ops.TransposeTile(source=T, out=FLAT),),
    (folded(T, ROWS), folded(T, ROWS, onto=1), folded(FLAT, ROWS, axis=0), folded(HALVES, ROWS)),
]
WRONG: list[tuple[str, tuple[Instr | Step, ...]]] = [
    ("OX1910", (init(count=1 << 20),)),
    ("OX1910", (init(count=0),)),
    ("OX1910", (init(count=True),)),
    ("OX1910", (fill(value=1 << 64),)),
    ("OX1910", (fill(value=-(1 << 63) - 1),)),
    ("OX1910", (fill(BYTES, float("inf")),)),
    ("OX1910", (fill(BYTES, float("nan")),)),
    ("OX1910", (store(ZERO, Const(1 << 63)),)),
    ("OX1910", (store(ZERO, FloorDiv(N, ZERO)),)),
    ("OX1910", (store(ZERO, Mod(N, ZERO)),)),
    ("OX1910", (when(Answer(-1)),)),
    ("OX1910", (ops.MbarrierWait(bar=BAR, tokens=()),)),
    ("OX1910", (mapped(X, T, T, T, T, T),)),
    ("OX1910", (ops.MapTiles(inputs=(), out=T, fn=Number(1.0, "f32")),)),
    ("OX1912", (mapped(X, T, TileRef(7, ZERO)),)),
    ("OX1912", (mapped(X, T, out=TileRef(0, Const(2))),)),
    ("OX1920", (mapped(X, T, out=TileRef(0, ZERO, Part(ZERO, 4))),)),
    ("OX1920", (mapped(X, T, TileRef(0, ZERO, Part(ZERO, 2))),)),
    ("OX1920", (mapped(Cast(X, "bf16")),)),
    ("OX1920", (mapped(Input(1, "f32")),)),
    ("OX1920", (mapped(Cast(Input(0, "f16"), "f32")),)),
    ("OX1920", (mapped(Parameter("n", "f32")),)),
    ("OX1920", (mapped(Parameter("src", "f32")),)),
    ("OX1920", (mapped(Cast(Parameter("alpha", "f16"), "f32")),)),
    ("OX1920", (mapped(Binary(ElemOp.ADD, X, Cast(X, "f16"))),)),
    ("OX1920", (mapped(Number(1, "f32")),)),
    ("OX1920", (ops.TransposeTile(source=T, out=T),)),
    ("OX1920", (ops.TransposeTile(source=T, out=HALVES),)),
    ("OX1920", (ops.TransposeTile(source=T, out=BYTES),)),
    ("OX1920", (ops.TransposeTile(source=ROWS, out=ROWS_TOO),)),
    ("OX1912", (ops.TransposeTile(source=TileRef(9, ZERO), out=T),)),
    ("OX1920", (folded(T, ROWS, axis=0),)),
    ("OX1920", (folded(T, FLAT),)),
    ("OX1920", (folded(ROWS, ROWS_TOO),)),
    ("OX1920", (folded(BYTES, ROWS, axis=0),)),
    ("OX1920", (folded(T, HALF_ROWS),)),
    ("OX1911", (replace(folded(T, ROWS), op="mean"),)),
    ("OX1910", (folded(T, ROWS, axis=2),)),
    ("OX1911", (Step(ops.Scope(role="some", threads=ThreadSet(((0, 1),)))),)),
    ("OX1912", (init(BarrierRef(1, ZERO)),)),
    ("OX1912", (init(BarrierRef(-1, ZERO)),)),
    ("OX1912", (init(BarrierRef(0, Const(2))),)),
    ("OX1912", (init(BarrierRef(0, Const(-1))),)),
    ("OX1912", (fill(TileRef(7, ZERO)),)),
    ("OX1912", (fill(TileRef(0, Const(2))),)),
    ("OX1912", (fill(TileRef(0, ZERO, Part(ZERO, 3))),)),
    ("OX1912", (fill(TileRef(0, ZERO, Part(ZERO, 0))),)),
    ("OX1912", (fill(TileRef(0, ZERO, Part(Const(4), 4))),)),
    ("OX1912", (store(ZERO, ZERO, source=MapRef("out")),)),
    ("OX1912", (ops.StoreGlobal(array=ArrayRef("src"), tile=T, coords=(ZERO, ZERO)),)),
    ("OX1912", (fill(value=ScalarRef("n")),)),
    ("OX1913", (store(),)),
    ("OX1913", (store(ZERO),)),
    ("OX1913", (store(ZERO, ZERO, ZERO),)),
    ("OX1913", (ops.StoreGlobal(array=OUT, tile=T, coords=(ZERO,)),)),
    ("OX1914", (scope(),)),
    ("OX1914", (scope((3, 3)),)),
    ("OX1914", (scope((4, 2)),)),
    ("OX1914", (scope((8, 16), (0, 4)),)),
    ("OX1914", (scope((0, 4), (3, 8)),)),
    ("OX1914", (scope((-1, 4)),)),
    ("OX1914", (scope((0, 65)),)),
    ("OX1914", (scope((0, 8), (9, 16), body=(scope((4, 12)),)),)),
    ("OX1915", (loop(step=0),)),
    ("OX1916", (loop("i"), loop("i"))),
    ("OX1916", (loop("n"),)),
    ("OX1916", (loop("cta_rank"),)),
    ("OX1916", (loop(""),)),
    ("OX1917", (store(ZERO, COUNTER),)),
    ("OX1917", (loop("i"), store(ZERO, COUNTER))),
    ("OX1917", (loop("i", stop=COUNTER),)),
    ("OX1917", (store(ZERO, Sym("n", SymKind.LOOP)),)),
    ("OX1917", (store(ZERO, Sym("src.dim[2]", SymKind.EXTENT)),)),
    ("OX1917", (fill(TileRef(0, COUNTER)),)),
    ("OX1917", (fill(TileRef(0, ZERO, Part(COUNTER, 4))),)),
    ("OX1917", (init(BarrierRef(0, COUNTER)),)),
    ("OX1917", (when(expr.And(Bool(True), expr.Not(Cmp(CmpOp.EQ, ZERO, Add(ZERO, COUNTER))))),)),
    ("OX1918", (ops.MbarrierWait(bar=BAR, tokens=(0,)),)),
    ("OX1918", (ARRIVE, ARRIVE)),
    ("OX1918", (when(Answer(0)),)),
    ("OX1918", (ARRIVE, when(Answer(0)))),
    ("OX1902", (Step(init(), SITE, (Step(init()),)),)),
]


@pytest.mark.parametrize("steps", RIGHT, ids=range(len(RIGHT)))
def test_accepted(steps: tuple[Instr | Step, ...]) -> None:
    assert rules(*steps) == []


@pytest.mark.parametrize(("rule", "steps"), WRONG, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(WRONG)])
def test_refused(rule: str, steps: tuple[Instr | Step, ...]) -> None:
    assert rules(*steps) == [rule]


def test_everything_is_reported_at_the_users_line() -> None:
    found = check_operands(program(init(count=0), store(ZERO, source=MapRef("x"))))
    assert [(d.rule, d.site) for d in found] == [("OX1910", SITE), ("OX1912", SITE)]
    assert found[0].got == "0"
    assert found[0].required == "an integer from 1 to 1048575"


def test_what_is_no_integer_is_a_number_all_the_same() -> None:
    assert rules(fill(BYTES, 2.5), fill(BYTES, 1e300), fill(T, float("inf")), fill(HALVES, float("nan"))) == []


def test_a_broken_scope_does_not_break_what_is_in_it() -> None:
    assert rules(scope((0, 65), body=(scope((63, 64)),))) == ["OX1914"]


def test_too_large_a_tree_is_reported_before_it_is_walked() -> None:
    doubled: expr.Expr = N
    for _ in range(60):
        doubled = Add(doubled, doubled)
    assert rules(store(ZERO, doubled), init(count=0)) == ["OX1903"]


def test_declarations_are_checked_too() -> None:
    assert [d.rule for d in check_operands(replace(program(), threads=0, shared_bytes=-1))] == ["OX1919", "OX1919"]
