"""The public face: memory with its bounds, assumptions, errors and findings of a run."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap, Engine, Outcome
from oxidecopy.engines.sim import ForeignBuffer, SimEngine, launch, memory
from oxidecopy.errors import DeadlockError, DeviceFaultError, ExecutionError, HazardError, LifetimeError, UsageError
from oxidecopy.program.verified import Assumptions, VerifiedProgram, seal
from tests.engines.sim.harness import Rig
from tests.helpers.programs import Builder

TILE = 64 * 64 * 4


def copy_program(*, wait: bool = True, nbytes: int = TILE) -> Builder:
    b = Builder(grid=(4, 4, 1))
    b.map()
    b.array()
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(nbytes)
        b.g2s((0, 0))
    if wait:
        b.wait(token)
    b.store()
    return b


def sealed(b: Builder) -> VerifiedProgram:
    """As the verifier would pass it."""
    program = b.program()
    return seal(program, Assumptions(sm=90, shared_bytes=program.shared_bytes, launch=b.launch()), ())


def rigged(b: Builder, **options: Any) -> Rig:
    rig = Rig(b, engine=SimEngine(**options))
    rig.put("src", np.ones((256, 256), np.float32))
    return rig


def test_it_is_an_engine() -> None:
    engine: Engine = SimEngine()
    assert (engine.name, engine.sm) == ("sim", 90)


@pytest.mark.parametrize("hazards", [True, False])
def test_run(hazards: bool) -> None:
    b = copy_program()
    rig = rigged(b, hazards=hazards)
    assert rig.engine.run(sealed(b), rig.bindings()) == Outcome()
    assert (rig.get("out", "f32", (256, 256))[:64, :64] == 1).all()


def test_findings_lie_beside_the_result() -> None:
    b = copy_program(wait=False)
    rig = rigged(b)
    findings = rig.engine.run(sealed(b), rig.bindings()).findings
    assert {"OX4102", "OX4113"} <= {d.rule for d in findings}
    fast = rigged(b, hazards=False)
    assert fast.engine.run(sealed(b), fast.bindings()).findings == ()
    with pytest.raises(HazardError):
        rigged(b).explore().check()


def test_deadlock_and_fault_are_errors() -> None:
    b = copy_program(nbytes=TILE + 16)
    rig = rigged(b)
    with pytest.raises(DeadlockError) as stuck:
        rig.engine.run(sealed(b), rig.bindings())
    assert stuck.value.rule == "OX4001"
    b = copy_program()
    b.tiles[0] = replace(b.tiles[0], offset=64)
    rig = rigged(b)
    with pytest.raises(DeviceFaultError) as fault:
        rig.engine.run(sealed(b), rig.bindings())
    assert (fault.value.rule, fault.value.code) == ("OX4012", 716)


# ---- memory
def test_reads_give_what_was_written() -> None:
    engine = SimEngine()
    buffer = engine.allocate(100)
    engine.write(buffer, 10, memoryview(b"abc"))
    engine.write(buffer, 99, memoryview(b"\7"))
    assert engine.read(buffer, 9, 5)[1:4] == b"abc"
    assert engine.read(buffer, 99, 1) == b"\7"
    assert engine.read(buffer, 0, 0) == b""


def test_any_contiguous_memoryview_can_be_written() -> None:
    engine = SimEngine()
    buffer = engine.allocate(64)
    engine.write(buffer, 0, np.arange(16, dtype=np.float32).reshape(4, 4).data)
    assert engine.read(buffer, 4, 4) == np.float32(1).tobytes()


@pytest.mark.parametrize(("offset", "nbytes"), [(-1, 4), (97, 4), (0, 101), (200, 1), (0, -1)])
def test_copies_stay_inside(offset: int, nbytes: int) -> None:
    engine = SimEngine()
    buffer = engine.allocate(100)
    with pytest.raises(UsageError) as caught:
        engine.read(buffer, offset, nbytes)
    assert caught.value.rule == "OX4021"
    if nbytes > 0:
        with pytest.raises(UsageError):
            engine.write(buffer, offset, memoryview(bytes(nbytes)))


def test_only_its_own_live_buffers() -> None:
    engine, other = SimEngine(), SimEngine()
    foreign = other.allocate(16)
    freed = engine.allocate(16)
    engine.free(freed)
    for buffer, rule in ((foreign, "OX5311"), (ForeignBuffer(0x1000), "OX5311"), (freed, "OX5310")):
        with pytest.raises(LifetimeError) as caught:
            engine.read(buffer, 0, 1)
        assert caught.value.rule == rule


# ---- assumptions
def broken(rig: Rig, verified: VerifiedProgram, bindings: Bindings) -> tuple[str, ...]:
    with pytest.raises(ExecutionError) as caught:
        rig.engine.run(verified, bindings)
    assert set(caught.value.rules) == {"OX4020"}
    return tuple(d.what for d in caught.value.diagnostics)


def test_every_assumption_is_checked() -> None:
    b = copy_program()
    rig = rigged(b)
    verified, bindings = sealed(b), rig.bindings()
    source, out = bindings.maps["src"], bindings.arrays["out"]
    assert "grid" in broken(rig, verified, replace(bindings, grid=(1, 1, 1)))[0]
    assert "index parameters" in broken(rig, verified, replace(bindings, idx={"n": 1}))[0]
    other = replace(source, map=replace(source.map, global_dim=(256, 255)))
    assert "tensor map `src`" in broken(rig, verified, replace(bindings, maps={"src": other}))[0]
    short = BoundArray(info=replace(out.info, shape=(255, 256)), buffer=out.buffer)
    assert "array `out`" in broken(rig, verified, replace(bindings, arrays={"out": short}))[0]
    odd = BoundMap(map=source.map, buffer=source.buffer, offset_bytes=8)
    assert "address of `src`" in broken(rig, verified, replace(bindings, maps={"src": odd}))[0]
    assert len(broken(rig, verified, replace(bindings, grid=(1, 1, 1), idx={"n": 1}, maps={"src": odd}))) == 3


def test_the_proofs_own_figures_are_checked() -> None:
    b = copy_program()
    rig = rigged(b)
    verified = sealed(b)
    right = verified.assumptions
    for assumed in (replace(right, sm=100), replace(right, shared_bytes=0)):
        assert broken(rig, seal(verified.program, assumed, ()), rig.bindings())


def test_buffers_must_be_live() -> None:
    b = copy_program()
    rig = rigged(b)
    bindings = rig.bindings()
    rig.engine.free(rig.buffers["src"])
    with pytest.raises(UsageError):
        rig.engine.run(sealed(b), bindings)


def test_threads_share_a_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread is given memory, another asks for some: it waits, and is given other memory."""
    engine, given, threads = SimEngine(), list[int](), list[threading.Thread]()
    real = memory.poisoned

    def slowly(nbytes: int) -> memory.Bytes:
        if not threads:
            threads.append(threading.Thread(target=lambda: given.append(engine.allocate(64).address)))
            threads[0].start()
            threads[0].join(0.2)
        return real(nbytes)

    monkeypatch.setattr(memory, "poisoned", slowly)
    given.append(engine.allocate(64).address)
    threads[0].join()
    assert len(set(given)) == 2


def test_launches_of_several_threads_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, running, most = SimEngine(), list[int](), list[int]()
    real = launch._execute

    def counted(*args: Any, **kwargs: Any) -> launch.Result:
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()
        return real(*args, **kwargs)

    monkeypatch.setattr(launch, "_execute", counted)
    b, nbytes = copy_program(), 256 * 256 * 4
    verified, assumed = sealed(b), b.launch()
    bindings = Bindings(
        grid=assumed.grid,
        maps={name: BoundMap(map=tensor_map, buffer=engine.allocate(nbytes)) for name, tensor_map in assumed.maps},
        arrays={name: BoundArray(info=info, buffer=engine.allocate(nbytes)) for name, info in assumed.arrays},
        idx={},
        scalars={},
    )
    threads = [threading.Thread(target=engine.run, args=(verified, bindings)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1]
