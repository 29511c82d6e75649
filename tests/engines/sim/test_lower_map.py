"""Maps on the simulator: right in every layout, for every way to share the work out, and races found as for other plain accesses."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from oxidecopy.engines.sim.faults import INVALID_VALUE
from oxidecopy.isa.elem import Binary, Cast, ElemOp, Input, Number, Parameter
from oxidecopy.program.program import ScalarParam
from tests.engines.sim.harness import Rig, check, rules
from tests.helpers.programs import Builder

COPY = Input(0, "f32")
BYTES = 64 * 32 * 4
DATA = np.random.default_rng(5).standard_normal((64, 32)).astype(np.float32)


def loaded(swizzle: str = "none", threads: int = 128) -> Builder:
    """One tile of a map, landed."""
    b = Builder(threads=threads, grid=(1, 1, 1))
    b.map(box=(64, 32), dims=(64, 32), swizzle=swizzle)
    b.array(shape=(64, 32))
    b.tile("source", shape=(64, 32), swizzle=swizzle)
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(BYTES)
        b.g2s()
    b.wait(token)
    return b


def run(b: Builder, **scalars: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    rig = Rig(b, scalars=dict(scalars))
    rig.put("src", DATA)
    result = rig.explore()
    assert (result.outcome, result.findings) == ("ok", ())
    return rig.get("out", "f32", (64, 32))


@pytest.mark.parametrize(("source", "target"), list(product(["none", "128B"], ["none", "32B", "64B", "128B"])))
def test_a_copy_undoes_one_swizzle_and_does_another(source: str, target: str) -> None:
    b = loaded(source)
    b.tile("target", shape=(64, 32), swizzle=target)
    b.compute(COPY, b.ref(0), out=b.ref(1))
    b.sync()
    b.store(tile=1)
    assert (run(b) == DATA).all()


@pytest.mark.parametrize("threads", [1, 7, 128])
def test_classes_share_the_rows(threads: int) -> None:
    """Each class does its rows, in place too, whatever the number of threads."""
    b = loaded("128B", threads)
    b.compute()
    b.sync()
    with b.elect():
        b.fence()
    if threads > 2:
        with b.scope((2, threads)):
            b.fence()
    b.store()
    assert (run(b) == DATA + DATA).all()


def test_several_inputs_and_types() -> None:
    b = loaded("128B")
    b.params.append(ScalarParam(name="alpha", dtype="f32"))
    b.tile("half", dtype="f16", shape=(64, 32), swizzle="64B")
    b.tile("sum", shape=(64, 32))
    b.compute(Cast(Binary(ElemOp.MUL, COPY, Parameter("alpha", "f32")), "f16"), b.ref(0), out=b.ref(1))
    b.sync()
    b.compute(Binary(ElemOp.SUB, COPY, Cast(Input(1, "f16"), "f32")), b.ref(0), b.ref(1), out=b.ref(2))
    b.sync()
    b.store(tile=2)
    half = (DATA * np.float32(0.3)).astype(np.float16)
    assert (run(b, alpha=0.3) == DATA - half.astype(np.float32)).all()


def test_parts() -> None:
    """The upper half into the lower one."""
    b = loaded("128B")
    b.compute(COPY, b.ref(0, part=0, of=2), out=b.ref(0, part=1, of=2))
    b.sync()
    b.store()
    assert (run(b) == np.concatenate([DATA[:32], DATA[:32]])).all()


def test_a_constant_fills() -> None:
    b = loaded()
    b.compute(Number(2.5, "f32"))
    b.sync()
    b.store()
    assert (run(b) == 2.5).all()


def test_one_row() -> None:
    """A tile of one dimension is not shared out."""
    b = Builder(grid=(1, 1, 1))
    b.array(shape=(32,))
    b.tile("line", shape=(32,))
    b.fill()
    b.sync()
    b.compute(Binary(ElemOp.ADD, COPY, Number(1.0, "f32")))
    b.sync()
    b.store(coords=(0,))
    rig = Rig(b)
    assert rig.explore().outcome == "ok"
    assert (rig.get("out", "f32", (32,)) == 1).all()


def test_shapes_that_differ_are_refused() -> None:
    b = loaded()
    b.tile("small", shape=(32, 32))
    b.compute(COPY, b.ref(0), out=b.ref(1))
    result = Rig(b).explore()
    assert (result.outcome, result.code) == ("refused", INVALID_VALUE)


# ---- clocks
@pytest.mark.parametrize("sync", [False, True])
def test_a_map_reads_what_is_synced(sync: bool) -> None:
    b = Builder(grid=(1, 1, 1))
    b.array()
    b.tile("a")
    b.tile("b")
    b.fill(0)
    b.fill(1)
    if sync:
        b.sync()
    b.compute(COPY, b.ref(0), out=b.ref(1), tag="map")
    check(b, set() if sync else {("OX4101", b.tags["map"])})


@pytest.mark.parametrize("sync", [False, True])
def test_who_reads_the_result_syncs(sync: bool) -> None:
    b = loaded("none")
    b.tile("b", shape=(64, 32))
    b.compute(COPY, b.ref(0), out=b.ref(1))
    if sync:
        b.sync()
    b.store(tile=1, tag="read")
    check(b, set() if sync else {("OX4101", b.tags["read"])})


@pytest.mark.parametrize("wait", [False, True])
def test_a_map_waits_for_its_input(wait: bool) -> None:
    b = Builder(grid=(1, 1, 1))
    b.map()
    b.tile("a")
    b.tile("b")
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(64 * 64 * 4)
        b.g2s()
    b.sync()
    if wait:
        b.wait(token)
    b.compute(COPY, b.ref(0), out=b.ref(1))
    if not wait:
        b.wait(token)
    assert rules(b) == (set() if wait else {"OX4102"})


@pytest.mark.parametrize(("fence", "sync"), list(product((False, True), repeat=2)))
def test_a_store_after_a_map(fence: bool, sync: bool) -> None:
    b = loaded("none")
    b.compute()
    if fence:
        b.fence()
    if sync:
        b.sync()
    with b.elect():
        b.s2g()
        b.commit()
        b.wait_read()
    found = rules(b)
    assert (not found) == (fence and sync)


@pytest.mark.parametrize("sync", [False, True])
def test_in_place_in_a_loop(sync: bool) -> None:
    """A class's own elements, and its mates' in the same iteration, are no race; the next iteration's are."""
    b = loaded("128B")
    with b.loop(4):
        b.compute(tag="map")
        if sync:
            b.sync()
    assert bool(rules(b)) == (not sync)


def test_an_input_that_nobody_wrote() -> None:
    b = Builder(grid=(1, 1, 1))
    b.tile("a")
    b.tile("b")
    b.compute(COPY, b.ref(0), out=b.ref(1), tag="map")
    assert rules(b) == {"OX4107"}
