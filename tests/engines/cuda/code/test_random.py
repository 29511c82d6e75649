"""Random programs: what device code does is what the program says, or it is refused by one of its rules."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from oxidecopy.errors import DeviceCodeError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Add, And, Answer, Cmp, CmpOp, Cond, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym, SymKind
from oxidecopy.program.program import ArrayInfo, ArrayParam, IdxParam, Launch, MapParam, Program, Step
from oxidecopy.program.tensor_map import TensorMap
from tests.helpers.device_agreement import check
from tests.helpers.device_walk import EndlessError, OutsideError
from tests.helpers.program_strategy import RICH_BARRIER, RICH_PARAMS, RICH_TILE, programs

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

SEEDS = 200
FEW = settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


def launch_of(draw: DrawFn, program: Program) -> Launch:
    """A small launch of any program."""
    cx, cy, cz = program.cluster
    grid = (cx * draw(st.integers(1, 3)), cy * draw(st.integers(1, 2)), cz)
    extents = st.integers(1, 300)
    maps, arrays, idx = [], [], []
    for p in program.params:
        if isinstance(p, MapParam):
            dims = tuple(draw(extents) for _ in p.box_dim)
            strides = tuple(16 for _ in p.box_dim[1:])
            made = TensorMap(dtype=p.dtype, global_dim=dims, global_strides=strides, box_dim=p.box_dim, element_strides=p.element_strides)
            maps += [(name, made) for name in p.bound_names]
        elif isinstance(p, ArrayParam):
            shape = tuple(draw(extents) for _ in range(p.rank))
            arrays.append((p.name, ArrayInfo(dtype=p.dtype, shape=shape, strides_bytes=tuple(8 for _ in shape))))
        elif isinstance(p, IdxParam):
            idx.append((p.name, draw(st.integers(-5, 20))))
    return Launch(grid=grid, maps=tuple(sorted(maps)), arrays=tuple(sorted(arrays)), idx=tuple(sorted(idx)))


@st.composite
def launched(draw: DrawFn) -> tuple[Program, Launch]:
    program = draw(programs())
    return program, launch_of(draw, program)


@FEW
@given(launched())
def test_any_program(case: tuple[Program, Launch]) -> None:
    program, launch = case
    refused: tuple[str, ...] = ()
    try:
        check(program, launch)
    except DeviceCodeError as error:
        refused = error.rules
    except (EndlessError, OutsideError, ZeroDivisionError):
        assume(False)
    assert set(refused) <= {"OX5503", "OX5504", "OX5505", "OX5507", "OX5509", "OX5511", "OX5533", "OX5569"}


# ---- programs whose numbers stay small, so that few are refused; made without hypothesis, which would take minutes
BLOCK = [
    Sym("block_idx.x", SymKind.BLOCK),
    Sym("block_idx.y", SymKind.BLOCK),
    Sym("cta_rank", SymKind.RANK),
    Sym("grid_dim.x", SymKind.GRID),
]


class Maker:
    """Steps over few kinds of ops and many kinds of integers."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0
        self.tests = 0

    def expr(self, symbols: list[Sym], depth: int = 4) -> Expr:
        random = self.random
        if not depth or random.random() < 0.25:
            return Const(random.randint(-9, 40)) if random.random() < 0.35 else random.choice(symbols)
        a: Expr = self.expr(symbols, depth - 1)
        constant = Const(random.choice([1, 2, 3, 4, 7, 8, 32, -2, -5]))
        match random.randrange(6):
            case 0:
                return Mul(a, Const(random.randint(-4, 8)))
            case 1:
                return FloorDiv(a, constant)
            case 2:
                return Mod(a, constant)
            case 3:
                return Min(a, self.expr(symbols, depth - 1))
            case 4:
                return Max(a, self.expr(symbols, depth - 1))
            case _:
                return Add(a, self.expr(symbols, depth - 1))

    def cond(self, symbols: list[Sym], depth: int = 2) -> Cond:
        random = self.random
        match random.randrange(8 if depth else 4):
            case 0:
                return Answer(random.randrange(3))
            case 1 | 2 | 3:
                return Cmp(random.choice(list(CmpOp)), self.expr(symbols, 2), self.expr(symbols, 2))
            case 4 | 5:
                return And(self.cond(symbols, depth - 1), self.cond(symbols, depth - 1))
            case 6:
                return Or(self.cond(symbols, depth - 1), self.cond(symbols, depth - 1))
            case _:
                return Not(self.cond(symbols, depth - 1))

    def steps(self, symbols: list[Sym], depth: int, most: int = 5) -> tuple[Step, ...]:
        made: list[Step] = []
        symbols = list(symbols)
        for _ in range(self.random.randint(1, most)):
            kinds = ["load", "load", "wait", "store", "index", "test", "loop", "loop", "when"] if depth else ["load", "store"]
            kind = self.random.choice(kinds)
            made.append(self.step(kind, symbols, depth))
            if kind == "index":
                symbols.append(Sym(f"n{self.names}", SymKind.OPAQUE))
        return tuple(made)

    def step(self, kind: str, symbols: list[Sym], depth: int) -> Step:
        coords = (self.expr(symbols), self.expr(symbols))
        tile, bar = ops.TileRef(0, self.expr(symbols)), ops.BarrierRef(0, self.expr(symbols))
        match kind:
            case "load":
                return Step(ops.TensorG2S(map=ops.MapRef("tmap"), tile=tile, coords=coords, bar=bar))
            case "store":
                return Step(ops.StoreGlobal(array=ops.ArrayRef("grid"), tile=tile, coords=coords))
            case "wait":
                return Step(ops.MbarrierWaitPhase(bar=bar, phase=self.expr(symbols)))
            case "index":
                self.names += 1
                below = Const(self.random.randint(1, 9))
                return Step(ops.LoadIndex(name=f"n{self.names}", array=ops.ArrayRef("idx"), index=self.expr(symbols), below=below))
            case "test":
                self.tests += 1
                form = self.random.choice(["try_wait", "test_wait"])
                return Step(ops.MbarrierTestParity(form=form, bar=bar, parity=self.expr(symbols), pred=self.tests % 3))
            case "when":
                return Step(ops.When(cond=self.cond(symbols)), None, self.steps(symbols, depth - 1))
            case _:
                return self.loop(symbols, depth)

    def loop(self, symbols: list[Sym], depth: int) -> Step:
        self.names += 1
        counter = Sym(f"i{self.names}", SymKind.LOOP)
        start, step = self.expr(symbols, 3), self.random.choice([1, 1, 1, 2, -1, -3])
        stop: Expr = Add(start, Const(self.random.randint(0, 5) * step))
        if self.random.random() < 0.4:
            start, stop = Mod(start, Const(4)), Mod(self.expr(symbols, 3), Const(7))
        return Step(ops.Loop(counter=counter.name, start=start, stop=stop, step=step), None, self.steps([*symbols, counter], depth - 1))


def modest(seed: int) -> tuple[Program, Launch]:
    maker = Maker(seed)
    one = ops.Scope(role="thread", threads=ops.ThreadSet(((0, 1),)))
    many = 40 if seed % 10 == 0 else 5  # so many that not every value can have a register
    steps = maker.steps(BLOCK, 3, many)
    random = maker.random
    program = Program(
        name="p",
        threads=random.choice([1, 32, 96]),
        cluster=random.choice([(1, 1, 1), (2, 1, 1)]),
        params=(*RICH_PARAMS, ArrayParam(name="idx", dtype="i32", rank=1)),
        tiles=(RICH_TILE,),
        barriers=(RICH_BARRIER,),
        shared_bytes=4096,
        steps=(Step(one, None, steps),),
    )
    tmap = TensorMap(dtype="f32", global_dim=(90, 64), global_strides=(256,), box_dim=(8, 32), element_strides=(1, 1))
    plane = ArrayInfo(dtype="f32", shape=(90, 64), strides_bytes=(256, 4))
    line = ArrayInfo(dtype="i32", shape=(50,), strides_bytes=(4,))
    grid = (program.cluster[0] * random.randint(1, 3), random.randint(1, 2), 1)
    return program, Launch(grid=grid, maps=(("tmap", tmap),), arrays=(("grid", plane), ("idx", line)))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_modest_programs(seed: int) -> None:
    program, launch = modest(seed)
    refused: tuple[str, ...] = ()
    try:
        check(program, launch)
    except EndlessError:
        pytest.skip("too many steps")
    except DeviceCodeError as error:
        refused = error.rules
    assert not refused
