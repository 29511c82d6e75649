"""A pipeline by hand and the same with a ring are one program: the same primitive ops, hence the same trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

import oxidecopy as ox
from oxidecopy.engines.sim import explore
from oxidecopy.isa import ops
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Program, Step
from oxidecopy.program.text import from_text, to_text
from oxidecopy.verify import inspect

F32: TypeAlias = ox.TmaDescriptor[ox.f32, ox.D2]
Out: TypeAlias = ox.GlobalArray[ox.f32, ox.D2]


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def with_ring(cta: ox.Cta, src: F32, out: Out, n: ox.Idx) -> None:
    ring = cta.ring(stages=3, tiles=(src,))
    with cta.producer() as leader:
        for i in cta.range(n):
            with ring.produce(leader) as (slot,):
                slot.load(src, (0, i * 32))
    with cta.consumers() as group:
        for i in cta.range(n):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, (0, i * 32))


@ox.pipeline(threads=96)
def by_hand(cta: ox.Cta, src: F32, out: Out, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=3)
    full, empty = cta.barriers(3).init(1), cta.barriers(3).init(1)
    with cta.warps(2, 3) as warp, warp.elect() as leader:
        for i in cta.range(n):
            s = i % 3
            empty[s].wait_phase(i // 3 - 1)
            token = full[s].arrive_expect_tx(leader, tiles[s].nbytes)
            src.g2s(leader, tiles[s], (0, i * 32), token)
    with cta.warps(0, 2) as group:
        for i in cta.range(n):
            s = i % 3
            full[s].wait_phase(i // 3)
            cta.store(out, tiles[s], (0, i * 32))
            group.sync()
            with group.elect():
                empty[s].arrive()


def work(program: Program) -> list[tuple[object, ...]]:
    """Every op inside the loops, with names of handles and numbers of tokens left out."""
    loops = [s for s in expanded(program).walk() if isinstance(s.op, ops.Loop)]
    return [shape(s) for loop in loops for s in loop.body]


def shape(step: Step) -> tuple[object, ...]:
    op: Any = step.op  # operands by name, whatever the op
    if hasattr(op, "token"):
        op = replace(op, token=0)
    if isinstance(op, ops.TensorG2S | ops.StoreGlobal):
        op = replace(op, tile=replace(op.tile, tile=0))
    return (op, *(shape(s) for s in step.body))


def test_ring_and_hand_record_the_same_work() -> None:
    dev = ox.Device.open("sim")
    x = np.random.default_rng(1).random((32, 320), np.float32)
    bound = []
    for pipe in (with_ring, by_hand):
        out = dev.zeros(x.shape, ox.f32)
        launch = pipe[1].bind(ox.TmaDescriptor.tiled(dev.array(x), box=(32, 32)), out, 10)
        assert not inspect(launch.program, launch.launch).violations
        for seed in range(3):
            assert explore(launch.program, launch.bindings, seed=seed).outcome == "ok"
            np.testing.assert_array_equal(out.numpy(), x)
        bound.append(launch)
    ring, hand = (work(b.program) for b in bound)
    assert ring == hand


def test_stages_come_back_from_text() -> None:
    dev = ox.Device.open("sim")
    a = dev.zeros((64, 64), ox.f32)
    program = with_ring[1].bind(ox.TmaDescriptor.tiled(a, box=(32, 32)), a, 2).program
    text = to_text(program)
    assert "stage.produce" in text
    assert "stage.consume" in text
    assert from_text(text) == program
    assert expanded(expanded(program)) == expanded(program) != program
