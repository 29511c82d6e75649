"""Products on tensor cores: what is proven, and one-edit twins of it that are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.emit.source import emitted
from oxidecopy.engines.sim import explore
from oxidecopy.errors import DeviceCodeError
from oxidecopy.host.bound import BoundLaunch
from oxidecopy.isa import ops
from oxidecopy.isa.elem import Cast, Input
from oxidecopy.isa.expr import Const, add
from oxidecopy.isa.ops import Part, ThreadSet
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Program, Step
from oxidecopy.program.text import from_text, to_text
from oxidecopy.verify import inspect
from tests.helpers.edits import changed, edited

Op = ox.TmaDescriptor[ox.bf16, ox.D2, ox.Swizzle128B]
Single = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Vector = ox.GlobalArray[ox.f32, ox.D1]


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def product(cta: ox.Cta, a: Op, b: Op, c: Single, bias: Vector) -> None:
    ring, outs = cta.ring(stages=3, tiles=(a, b)), cta.store_ring(c, stages=2)
    steps = (a.shape[1] + 63) // 64
    with cta.producer() as leader:
        for row, column in cta.tiles(c, box=(64, 64)):
            for k in cta.range(steps):
                with ring.produce(leader) as (left, right):
                    left.load(a, (row, k * 64))
                    right.load(b, (column, k * 64))
    with cta.consumers() as group:
        for at in cta.tiles(c, box=(64, 64)):
            group.contract(ring, outs, at, steps=steps, epilogue=lambda s, v: s + v, reads=(ox.per_column(bias),))


@pytest.fixture(scope="module")
def bound() -> BoundLaunch:
    dev = ox.Device.open("sim")
    a, b = dev.zeros((150, 136), ox.bf16), dev.zeros((70, 136), ox.bf16)
    c = ox.TmaDescriptor.tiled(dev.zeros((150, 72), ox.f32), box=(64, 32), swizzle=ox.Swizzle128B)
    left, right = (ox.TmaDescriptor.tiled(x, box=(64, 64), swizzle=ox.Swizzle128B) for x in (a, b))
    return product[2].bind(left, right, c, dev.zeros((70,), ox.f32))


def is_contract(op: ops.Instr) -> bool:
    return isinstance(op, ops.Contract)


def rules(program: Program, bound: BoundLaunch, **launch: Any) -> set[str]:
    return {d.rule for d in inspect(program, replace(bound.launch, **launch)).violations}


def test_it_is_proven_and_survives_as_text(bound: BoundLaunch) -> None:
    assert rules(bound.program, bound) == set()
    text = to_text(bound.program)
    assert to_text(from_text(text)) == text


def test_an_expansion_may_leave_ops_whole(bound: BoundLaunch) -> None:
    kinds = {type(step.op) for step in expanded(bound.program, (ops.Contract, ops.ContractDrain)).walk()}
    assert {ops.Contract, ops.ContractDrain} <= kinds
    assert not kinds & {ops.ProduceStage, ops.MmaStep}
    assert not {type(step.op) for step in expanded(bound.program).walk()} & set(ops.STAGES)


OPERANDS: list[tuple[str, dict[str, Callable[[Any], Any]]]] = [
    ("OX3130", {"a_major": lambda _: "mn", "depth": lambda _: 48}),
    ("OX3130", {"depth": lambda _: 32}),
    ("OX3130", {"a": lambda a: replace(a, part=Part(Const(0), 2))}),
    ("OX3130", {"b": lambda b: replace(b, tile=2)}),
    ("OX3130", {"stages": lambda _: 4}),
    ("OX3130", {"out": lambda out: replace(out, part=Part(Const(0), 2))}),
    ("OX3130", {"steps": lambda _: Const(0)}),
    ("OX3132", {"threads": lambda _: 64}),
    ("OX3132", {"lane": lambda _: 1}),
]


@pytest.mark.parametrize(("rule", "fields"), OPERANDS)
def test_operands_that_do_not_fit(bound: BoundLaunch, rule: str, fields: dict[str, Callable[[Any], Any]]) -> None:
    assert rule in rules(edited(bound.program, is_contract, changed(**fields)), bound)


FLOW: list[tuple[str, dict[str, Callable[[Any], Any]]]] = [
    ("OX3030", {"steps": lambda n: add(n, Const(-1))}),  # fewer than are filled
    ("OX3012", {"steps": lambda n: add(n, Const(1))}),  # more than are filled
    ("OX3030", {"first": lambda n: add(n, Const(1))}),  # one stage ahead
    ("OX3030", {"first": lambda n: add(n, Const(3))}),  # one turn of the ring ahead
    ("OX3012", {"full": lambda bar: replace(bar, barrier=1), "empty": lambda bar: replace(bar, barrier=0)}),
    ("", {"put": lambda _: Const(0)}),  # the same staging tiles each time: they are waited for all the same
]


@pytest.mark.parametrize(("rule", "fields"), FLOW)
def test_stages_that_do_not_match(bound: BoundLaunch, rule: str, fields: dict[str, Callable[[Any], Any]]) -> None:
    program = edited(bound.program, is_contract, changed(**fields))
    found = rules(program, bound)
    assert (rule in found) if rule else not found
    seen = explore(program, bound.bindings)
    assert bool(seen.diagnostics or seen.findings) == bool(found)


def test_without_a_drain_the_block_may_end_before_its_stores(bound: BoundLaunch) -> None:
    program = edited(bound.program, lambda op: isinstance(op, ops.ContractDrain), lambda _: None)
    assert rules(program, bound) == {"OX3050"}


def test_one_warpgroup_and_one_device(bound: BoundLaunch) -> None:
    def widened(step: Step) -> Step:
        assert isinstance(step.op, ops.Scope)
        return replace(step, op=replace(step.op, threads=ThreadSet(((32, 160),))))

    moved = edited(bound.program, lambda op: isinstance(op, ops.Scope) and op.role == "consumers", widened)
    assert "OX3132" in rules(moved, bound)
    assert rules(bound.program, bound, sm=100) == {"OX3133"}


def test_what_an_epilogue_reads_is_not_written(bound: BoundLaunch) -> None:
    assert rules(bound.program, bound, same=(("bias", "c"),)) == {"OX3131"}
    assert rules(bound.program, bound, same=(("a", "b"),)) == set()


def test_what_an_epilogue_reads_reaches_as_far_as_its_result(bound: BoundLaunch) -> None:
    def warned(n: int) -> set[str]:
        arrays = tuple((name, replace(info, shape=(n,)) if name == "bias" else info) for name, info in bound.launch.arrays)
        return {d.rule for d in inspect(bound.program, replace(bound.launch, arrays=arrays)).warnings}

    assert (warned(71), warned(72)) == ({"OX3109"}, set())  # the result has 72 columns


def test_it_is_not_written_as_cuda(bound: BoundLaunch) -> None:
    with pytest.raises(DeviceCodeError) as caught:
        emitted(bound.verify())
    assert caught.value.rules == ("OX5569",)


# ---- by hand: what the primitive ops need of what is around them
HAND = """\
program p threads=128 cluster=(1, 1, 1) shared=40960:
  map c: f32 box=(64, 32) swizzle=128B
  tile a: bf16 (64, 64) align=1024 swizzle=128B at=0 step=8192
  tile b: bf16 (32, 64) align=1024 swizzle=128B at=8192 step=4096
  tile out: f32 (64, 32) align=1024 swizzle=128B at=16384 step=8192

  scope warps {0..127}:
    st.shared.fill a, 1.0
    st.shared.fill b, 2.0
    fence.proxy.async.shared::cta
    bar.sync number=0, threads=128
    mma.zero
    mma.step a, b, k k depth=64
    bar.sync number=0, threads=128
    st.shared.fill a, 3.0
    mma.out out, row=0, column=0, [0, 0], arrays=(), fn=x0:f32
    fence.proxy.async.shared::cta
    bar.sync number=0, threads=128
    scope elect {0}:
      cp.async.bulk.tensor.s2g c, out, [0, 0]
      cp.async.bulk.commit_group
      cp.async.bulk.wait_group.read pending=0
"""


@pytest.fixture(scope="module")
def hand(bound: BoundLaunch) -> tuple[Any, Any]:
    launch = replace(bound.launch, grid=(1, 1, 1), maps=tuple((n, m) for n, m in bound.launch.maps if n == "c"), arrays=())
    bindings = replace(bound.bindings, grid=(1, 1, 1), maps={"c": bound.bindings.maps["c"]}, arrays={})
    return launch, bindings


@pytest.mark.parametrize(
    ("taken", "rule"),
    [
        ("", ""),
        ("    fence.proxy.async.shared::cta\n    bar.sync number=0, threads=128\n    mma.zero", "OX3045"),  # operands are read too early
        ("    bar.sync number=0, threads=128\n    st.shared.fill a, 3.0", "OX3044"),  # overwritten while they are read
        ("    fence.proxy.async.shared::cta\n    bar.sync number=0, threads=128\n    scope", "OX3045"),
    ],
)
def test_operands_are_read_through_the_async_proxy(hand: tuple[Any, Any], taken: str, rule: str) -> None:
    keep = taken.rsplit("\n", 1)[-1] if taken else ""
    program = from_text(HAND.replace(taken, keep, 1) if taken else HAND)
    found_rules = {d.rule for d in inspect(program, hand[0]).violations}
    assert (rule in found_rules) if rule else not found_rules
    found = explore(program, hand[1])
    assert bool(found.findings) == bool(rule)


@pytest.mark.parametrize("nth", [0, 1])
def test_each_fence_is_needed(hand: tuple[Any, Any], nth: int) -> None:
    program = edited(from_text(HAND), lambda op: isinstance(op, ops.FenceProxyAsync), lambda _: None, nth=nth)
    assert {d.rule for d in inspect(program, hand[0]).violations} == {"OX3046"}
    assert {d.rule for d in explore(program, hand[1]).findings} == {"OX4105"}


def test_results_have_a_type_of_results(bound: BoundLaunch) -> None:
    tiles = tuple(replace(t, dtype="i32") if t.name == "c_out" else t for t in bound.program.tiles)
    fn = Cast(Input(0, "f32"), "i32")
    program = edited(replace(bound.program, tiles=tiles), is_contract, changed(fn=lambda _: fn, arrays=lambda _: ()))
    assert "OX3130" in rules(program, bound)
