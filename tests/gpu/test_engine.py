"""What only a GPU can show: hangs that end, faults that are blamed on the right kernel, streams, graphs, memory that stays flat, time."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.conformance import applied
from oxidecopy.engines.cuda import prepared
from oxidecopy.engines.cuda.code import encode
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.module import kernels_folder, read_manifest
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import DeadlockError, DriverError, ExecutionError, LifetimeError, UsageError
from oxidecopy.host.device import Device
from oxidecopy.isa import ops
from oxidecopy.program.expansion import expanded
from tests.helpers import unproven
from tests.helpers.edits import changed, edited
from tests.helpers.flat_memory import leaves_memory_flat
from tests.helpers.launching import Out, copy_pipeline, descriptor, long, nine, numbers

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]
PAGE = 4096


def arrays(dev: Device, first: int = 0) -> tuple[Out, Out]:
    return dev.array(numbers(first)), dev.zeros((32, 32), ox.f32)


# ---- hangs
def hang(dev: Device, engine: CudaEngine) -> DeadlockError:
    bound = unproven.hangs[3].bind(dev.zeros((4, 4), ox.f32))
    with pytest.raises(DeadlockError) as caught:
        engine.run(unproven.unproven(bound), bound.bindings)
    return caught.value


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setenv("OXIDECOPY_WAIT_LIMIT_MS", "200")
    return ox.Device.open("cuda:0", checked=True)


def test_a_hang_is_an_error_that_names_line_and_barrier(impatient: Device) -> None:
    assert isinstance(impatient.engine, CudaEngine)
    started = time.perf_counter()
    error = hang(impatient, impatient.engine)
    assert time.perf_counter() - started < 5
    said = error.diagnostics[0]
    assert said.rule == "OX5331"
    assert said.site is not None
    assert said.site.file == unproven.__file__
    assert "wait_phase(0)" in Path(said.site.file).read_text().splitlines()[said.site.line - 1]
    assert "`bar0`" in said.what
    for rank in range(3):
        assert f"({rank}, 0, 0)" in str(error)


def test_a_map_that_is_run_as_a_whole_ends_when_bytes_are_missing(impatient: Device) -> None:
    """All roles of all blocks leave, say which barrier they waited for, and the next launch finds the counter as it should be."""
    engine = impatient.engine
    assert isinstance(engine, CudaEngine)
    made = applied.made(applied.PLANS["two of f32 to bf16"], impatient)
    late = edited(expanded(made.launch.program), lambda op: isinstance(op, ops.MbarrierArriveExpectTx), changed(nbytes=lambda n: n + 16))
    broken = unproven.unproven(made.launch, late)
    assert encode(broken).family == "apply"
    with pytest.raises(DeadlockError, match=r"ring0_full\[0\]"):
        engine.run(broken, made.launch.bindings)
    made.launch()
    wanted = applied.made(applied.PLANS["two of f32 to bf16"], ox.Device.open("sim-fast"))
    wanted.launch()
    assert made.outputs["out"].numpy().tobytes() == wanted.outputs["out"].numpy().tobytes()


def test_the_process_goes_on_after_a_hang(impatient: Device) -> None:
    engine = impatient.engine
    assert isinstance(engine, CudaEngine)
    hang(impatient, engine)
    src, out = arrays(impatient)
    copy_pipeline()[2, 2](descriptor(src), out)
    assert np.array_equal(out.numpy(), numbers())
    hang(impatient, engine)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_torch_goes_on_after_a_hang(impatient: Device) -> None:
    import torch  # type: ignore[import-not-found,unused-ignore]

    x = torch.arange(1000, device="cuda:0", dtype=torch.float32)
    assert isinstance(impatient.engine, CudaEngine)
    hang(impatient, impatient.engine)
    assert float((x * 2).sum()) == 999_000.0
    torch.cuda.synchronize()


def test_a_hang_on_a_stream_is_heard_when_it_is_waited_for(impatient: Device) -> None:
    engine = impatient.engine
    assert isinstance(engine, CudaEngine)
    engine.checked = False
    bound, stream = unproven.hangs[1].bind(impatient.zeros((4, 4), ox.f32)), Stream.create(engine.context)
    launch = engine.prepare(unproven.unproven(bound), bound.bindings, stream=stream)
    started = time.perf_counter()
    launch.call()
    assert time.perf_counter() - started < 0.1
    with pytest.raises(DeadlockError):
        stream.synchronize()
    stream.synchronize()


# ---- faults: each in a process of its own, whose context is lost
CHILD = """
import sys, time
import numpy as np
import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from oxidecopy.engines.cuda.module import kernels_folder, read_manifest
from oxidecopy.engines.cuda.stream import Stream
from tests.helpers import unproven
from tests.helpers.launching import copy_pipeline, descriptor, numbers

dev = ox.Device.open("cuda:0")
src, out = dev.array(numbers()), dev.zeros((32, 32), ox.f32)
good = copy_pipeline()[2, 2].prepare(descriptor(src), out)
good()
bad = unproven.faults[1].bind(descriptor(src), out)
launch = dev.engine.prepare(unproven.unproven(bad), bad.bindings, stream=Stream.create(dev.engine.context))
"""


def child(script: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD + script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_fault_is_not_blamed_on_the_next_launch() -> None:
    script = """
launch()
time.sleep(0.5)
for use in (good, lambda: copy_pipeline()[2, 2](descriptor(src), out)):
    try:
        use()
    except OxidecopyError as problem:
        print(type(problem).__name__, problem.rule)
"""
    assert child(script) == ["EarlierFaultError", "OX5303"] * 2


def test_a_fault_is_blamed_on_the_launch_that_is_waited_for() -> None:
    script = """
launch()
try:
    launch.stream.synchronize()
except OxidecopyError as problem:
    print(type(problem).__name__, problem.rule, problem.code)
"""
    assert child(script) == ["DeviceFaultError", "OX5304", "715"]


def test_a_new_process_starts_in_time() -> None:
    """From the decorated function to the results of its first launch, with the context and the arrays there."""
    script = """
from oxidecopy.engines.cuda.code.encode import encode

dev.engine._codes.clear()
fresh = copy_pipeline()
started = time.perf_counter()
bound = fresh[2, 2].bind(descriptor(src), out)
proof = bound.verify()
encode(proof)
print(1000 * (time.perf_counter() - started))
"""
    alone = """
import time
import numpy as np
import oxidecopy as ox
from tests.helpers.launching import copy_pipeline, descriptor, numbers

dev = ox.Device.open("cuda:0")
src, out = dev.array(numbers()), dev.zeros((32, 32), ox.f32)
dev.engine.synchronize()
started = time.perf_counter()
copy_pipeline()[2, 2](descriptor(src), out)
print(1000 * (time.perf_counter() - started))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", alone], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=True)
    whole, ours = float(done.stdout), float(child(script)[0])
    said = f"first launch {whole:.1f} ms, of it ours {ours:.1f} ms"
    assert whole <= 300, said
    assert ours <= 30, said


# ---- streams and graphs
def test_streams_are_in_order_and_do_not_wait(dev: Device, engine: CudaEngine) -> None:
    stream = Stream.create(engine.context)
    src, out = arrays(dev)
    middle = dev.zeros((32, 32), ox.f32)
    load = copy_pipeline()[2, 2].on(stream)
    for _ in range(50):
        load(descriptor(src), middle)
        load(descriptor(middle), out)
    assert np.array_equal(out.numpy(), numbers())


def test_two_streams(dev: Device, engine: CudaEngine) -> None:
    one, other = Stream.create(engine.context), Stream.create(engine.context)
    a, first = arrays(dev)
    b, second = arrays(dev, 7)
    launches = [copy_pipeline()[2, 2].on(s).prepare(descriptor(x), y) for s, x, y in ((one, a, first), (other, b, second))]
    for _ in range(200):
        for launch in launches:
            launch()
    one.synchronize()
    other.synchronize()
    assert np.array_equal(first.numpy(), numbers())
    assert np.array_equal(second.numpy(), numbers(7))


def test_raw_handles(dev: Device, engine: CudaEngine) -> None:
    stream = Stream.create(engine.context)
    src, out = arrays(dev)
    for each in (stream.handle, 0):
        copy_pipeline()[2, 2].on(each)(descriptor(src), out)
        assert np.array_equal(out.numpy(), numbers())
        engine.fill(out.buffer, 0, out.buffer.nbytes, 0)


def test_a_graph_is_replayed_with_other_arguments(dev: Device, engine: CudaEngine) -> None:
    src, out = arrays(dev)
    other, result = arrays(dev, 7)
    graph = ox.Graph(dev)
    with graph.capture():
        node = graph.add(copy_pipeline()[2, 2].prepare(descriptor(src), out))
    assert not out.numpy().any()
    graph.replay()
    assert np.array_equal(out.numpy(), numbers())
    node.update(descriptor(other), result)
    stream = Stream.create(engine.context)
    for _ in range(10):
        graph.replay(stream)
    stream.synchronize()
    assert np.array_equal(result.numpy(), numbers(7))
    assert np.array_equal(out.numpy(), numbers())


def test_launches_of_a_captured_stream(dev: Device, engine: CudaEngine) -> None:
    stream = Stream.create(engine.context)
    src, out = arrays(dev)
    middle = dev.zeros((32, 32), ox.f32)
    load = copy_pipeline()[2, 2].on(stream)
    first, second = load.prepare(descriptor(src), middle), load.prepare(descriptor(middle), out)
    graph = ox.Graph(dev)
    with graph.capture(stream):
        first()
        second()
    graph.replay(stream)
    assert np.array_equal(out.numpy(), numbers())


def test_cooperative_launches(dev: Device, engine: CudaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    src, out = arrays(dev)
    load = copy_pipeline()[2, 2].attributes(cooperative=True)
    load(descriptor(src), out)
    assert np.array_equal(out.numpy(), numbers())
    many = dev.zeros((16 * 16384, 16), ox.f32)
    launch = copy_pipeline()[1, 16384].attributes(cooperative=True)
    with pytest.raises(ExecutionError) as caught:  # more CTAs than the device holds at once
        launch(descriptor(many), many)
    assert caught.value.rules == ("OX5340",)
    most = int(caught.value.diagnostics[0].required.removeprefix("at most ").split()[0].replace(",", ""))
    fitting = dev.zeros((16 * most, 16), ox.f32)
    copy_pipeline()[1, most].attributes(cooperative=True)(descriptor(fitting), fitting)
    monkeypatch.setattr(prepared, "require_room", lambda *_: None)
    beyond = dev.zeros((16 * (most + 1), 16), ox.f32)
    with pytest.raises(DriverError) as too_large:  # one more is what the driver refuses
        copy_pipeline()[1, most + 1].attributes(cooperative=True)(descriptor(beyond), beyond)
    assert too_large.value.name == "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"


def test_reading_during_a_capture(dev: Device, engine: CudaEngine) -> None:
    src, out = arrays(dev)
    other = dev.array(numbers(3))
    graph = ox.Graph(dev)
    with graph.capture():
        graph.add(copy_pipeline()[2, 2].prepare(descriptor(src), out))
        with pytest.raises(UsageError) as caught:
            out.numpy()
        assert caught.value.rules == ("OX5314",)
        assert np.array_equal(other.numpy(), numbers(3))
        assert np.array_equal(dev.array(numbers(4)).numpy(), numbers(4))
        assert not dev.zeros((4, 4), ox.f32).numpy().any()
    graph.replay()
    assert np.array_equal(out.numpy(), numbers())


def test_launches_that_begin_early_wait_before_they_read(dev: Device, engine: CudaEngine) -> None:
    if not read_manifest(kernels_folder()).programmatic:
        pytest.skip("these kernels do not wait for the one before them")
    stream = Stream.create(engine.context)
    shape = (2048, 1024)
    src, out = dev.array(numbers(0, *shape)), dev.zeros(shape, ox.f32)
    middle = dev.zeros(shape, ox.f32)
    load = copy_pipeline()[64, 128].on(stream).attributes(programmatic=True)
    first, second = load.prepare(descriptor(src), middle), load.prepare(descriptor(middle), out)
    for n in range(20):
        engine.write(src.buffer, 0, numbers(n, *shape).data)
        first()
        second()
        assert np.array_equal(out.numpy(), numbers(n, *shape))


# ---- lifetime
def test_use_after_free(dev: Device, engine: CudaEngine) -> None:
    src, out = arrays(dev)
    launch = copy_pipeline()[2, 2].prepare(descriptor(src), out)
    engine.free(src.buffer)
    with pytest.raises(LifetimeError):
        launch()


def test_arguments_that_are_dropped_at_once(dev: Device, engine: CudaEngine) -> None:
    stream, out = Stream.create(engine.context), dev.zeros((512, 512), ox.f32)
    load = copy_pipeline()[32, 32].on(stream)
    for n in range(50):
        load(descriptor(dev.array(numbers(n, 512, 512))), out)
    assert np.array_equal(out.numpy(), numbers(49, 512, 512))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def test_ten_thousand_launches_leave_memory_flat(dev: Device, engine: CudaEngine) -> None:
    stream = Stream.create(engine.context)
    src, out = arrays(dev)
    load = copy_pipeline()[2, 2]
    launch = load.on(stream).prepare(descriptor(src), out)

    def some(count: int) -> None:
        for n in range(count):
            launch()
            if n % 10 == 0:
                load.on(stream)(descriptor(src), out)
                load(descriptor(src), out)
        engine.synchronize()
        gc.collect()

    some(2_000)  # whatever grows once has grown
    host = resident()
    assert leaves_memory_flat(lambda: engine.context.memory_info()[0], lambda: some(10_000))
    assert resident() - host < 2 << 20
    assert np.array_equal(out.numpy(), numbers())


# ---- what does not fit into the parameter
def test_maps_in_a_table_and_code_in_device_memory(dev: Device) -> None:
    sources = [dev.array(numbers(n)) for n in range(9)]
    out = dev.zeros((16 * 9, 32), ox.f32)
    launch: Any = nine[1]
    launch(*map(descriptor, sources), out)
    for n in range(9):
        assert np.array_equal(out.numpy()[16 * n : 16 * n + 16, :16], numbers(n)[:16, :16])
    many = dev.zeros((16 * 60, 32), ox.f32)
    long[1](descriptor(sources[0]), many)
    for n in range(60):
        assert np.array_equal(many.numpy()[16 * n : 16 * n + 16, :16], numbers()[n % 16 : n % 16 + 16, :16])


# ---- clusters
@pytest.mark.parametrize("size", [8, 16])
def test_clusters_as_large_as_the_device_has_room_for(dev: Device, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """What is refused is what the driver refuses, and what is accepted runs."""

    @ox.pipeline(threads=1024, cluster=size)
    def large(cta: ox.ClusterCta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
        tile = cta.shared(ox.f32, (256, 200), align=ox.A16)
        cta.fill(tile, 1.0)
        cta.sync()
        cta.store(out, tile, (cta.block_idx.x * 256, 0))

    out = dev.zeros((256 * size, 200), ox.f32)
    try:
        large[size](out)
    except ExecutionError as refused:
        rules = refused.rules
    else:
        rules = ()
        assert (out.numpy() == 1).all()
    if rules:
        assert rules == ("OX5341",)
        monkeypatch.setattr(prepared, "require_room", lambda *_: None)
        with pytest.raises(DriverError) as caught:
            large[size](out)
        assert caught.value.name == "CUDA_ERROR_INVALID_CLUSTER_SIZE"
