"""The whole path from `pipe[grid](...)` to the driver, on a driver without a GPU: what it is given, what is raised when, what is kept."""

from __future__ import annotations

import ctypes
import gc
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.base import RawLaunch, RawParameter
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import ReportKind
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.prepared import CudaLaunch
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import (
    DeadlockError,
    DeviceFaultError,
    EarlierFaultError,
    ExecutionError,
    LifetimeError,
    OxidecopyError,
    UsageError,
)
from oxidecopy.host.device import Device
from oxidecopy.host.graph import GraphLaunch
from tests.helpers.fake_driver import FakeDriver, FakeGpu, FakeImage, FakeKernel, Launch
from tests.helpers.fake_engine import fake_engine
from tests.helpers.fake_kernels import interpreter_image, write_kernels
from tests.helpers.launching import Out, Src, copy_pipeline, descriptor, long, nine, numbers

FIELDS = {name: (offset, int(ctype[1:]) // 8) for name, ctype, offset in abi.HEADER}


@final
@dataclass
class Scene:
    """A device on the fake driver, and one pipeline."""

    dev: Device
    engine: CudaEngine
    driver: FakeDriver
    load: ox.Launchable[[Src, Out]]
    src: Out
    out: Out
    folder: Path

    @property
    def args(self) -> tuple[Src, Out]:
        return descriptor(self.src), self.out

    def header(self, launch: Launch, field: str) -> int:
        (offset, width), parameter = FIELDS[field], launch.parameters[0]
        start = offset + abi.MAP_BYTES * (abi.INLINE_MAPS_LARGE if len(parameter) == abi.PARAM_BYTES_LARGE else abi.INLINE_MAPS_SMALL)
        return int.from_bytes(parameter[start : start + width], "little")

    def hang(self, launch: Launch) -> None:
        """What the device does with a wait that is given up: the first barrier of record 0."""
        entry = struct.pack("<12I", ReportKind.TIMEOUT, 1, 0, 0, 0, 0x400, 0, 0, 0, 0, 0, 0)
        ctypes.memmove(self.header(launch, "report"), struct.pack("<4I", 1, 1, 0, 0) + entry, 64)


def make(folder: Path, *, checked: bool = False) -> Scene:
    engine, driver = fake_engine(folder, checked=checked)
    dev = Device("cuda:0", engine)
    src, out = dev.array(numbers()), dev.zeros((32, 32), ox.f32)
    return Scene(dev, engine, driver, copy_pipeline()[2, 2], src, out, folder)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = make(tmp_path)
    yield scene
    assert scene.driver.stack == []


def refused(error: type[OxidecopyError], rule: str, use: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        use()
    assert type(caught.value) is error
    assert rule in caught.value.rules
    return str(caught.value)


# ---- what the device is given
def test_a_launch_has_maps_addresses_and_shape(scene: Scene) -> None:
    scene.load(*scene.args)
    (launch,) = scene.driver.launches
    parameter = launch.parameters[0]
    assert launch.grid == (2, 2, 1)
    assert launch.cluster == (1, 1, 1)
    assert launch.kernel.name in ("oxidecopy_move_small", "oxidecopy_move_large")
    assert parameter[:8] == scene.src.buffer.address.to_bytes(8, "little")
    assert scene.out.buffer.address.to_bytes(8, "little") in parameter[abi.MAP_BYTES :]
    assert scene.header(launch, "limit_us") == 4_000_000
    assert scene.header(launch, "warps") * 32 == launch.block[0]
    assert scene.header(launch, "report") in range(*span(scene))


def span(scene: Scene) -> tuple[int, int]:
    """Where the host memory of reports lies."""
    ((start, raw),) = scene.driver.host.items()
    return start, start + len(raw)


def test_arrays_travel_and_come_back(scene: Scene) -> None:
    assert np.array_equal(scene.src.numpy(), numbers())
    scene.driver.on_launch = lambda _: scene.driver.poke(scene.out.buffer.address, numbers(5).tobytes())
    scene.load(*scene.args)
    assert np.array_equal(scene.out.numpy(), numbers(5))


def test_code_is_made_once_for_a_shape_and_the_module_is_loaded_once(scene: Scene) -> None:
    for _ in range(3):
        scene.load(*scene.args)
    scene.load.prepare(*scene.args)()
    assert scene.driver.calls["cuModuleLoadData"] == 1
    assert scene.driver.calls["cuModuleGetFunction"] == 1
    assert len(scene.engine._codes) == 1


def test_code_for_newer_gpus_says_that_it_is_a_fallback(tmp_path: Path) -> None:
    driver = FakeDriver([FakeGpu(sm=130)], images=[FakeImage(b".version", interpreter_image().kernels, sm=130)])
    folder = write_kernels(tmp_path, {"file": "compute_90.ptx", "target": "compute_90"}, data=b".version 8.0")
    engine = CudaEngine(0, driver=driver, kernels=folder)
    with pytest.warns(RuntimeWarning, match="PTX"):
        assert engine.code_file.is_ptx
    assert engine.code_file.target == "compute_90"  # said once


# ---- prepared
def test_a_repetition_on_a_stream_is_one_driver_call(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)
    launch = scene.load.on(stream).prepare(*scene.args)
    with scene.engine.context:
        launch()
        scene.driver.trace.clear()
        launch()
        assert scene.driver.trace == ["cuLaunchKernelEx"]
    assert {each.stream for each in scene.driver.launches} == {stream.handle}


def test_attributes_reach_the_driver(scene: Scene) -> None:
    write_kernels(scene.folder, programmatic=True)
    scene.load.attributes(cooperative=True, programmatic=True)(*scene.args)
    (launch,) = scene.driver.launches
    names = {name.removeprefix("CU_LAUNCH_ATTRIBUTE_") for name in launch.attributes}
    assert names == {"COOPERATIVE", "PROGRAMMATIC_STREAM_SERIALIZATION"}


def test_kernels_that_do_not_wait_for_the_one_before_them(scene: Scene) -> None:
    refused(ExecutionError, "OX5336", lambda: scene.load.attributes(programmatic=True)(*scene.args))
    scene.load(*scene.args)


def test_other_arguments(scene: Scene) -> None:
    launch = scene.load.prepare(*scene.args)
    other = scene.dev.array(numbers(3))
    launch()
    launch.update(descriptor(other), scene.out)
    launch()
    first, second = (each.parameters[0] for each in scene.driver.launches)
    assert second[:8] == other.buffer.address.to_bytes(8, "little")
    assert first[8:] == second[8:]


def test_launches_on_streams_do_not_wait(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)
    scene.driver.hold(stream.handle)
    scene.driver.on_launch = lambda _: scene.driver.poke(scene.out.buffer.address, numbers(5).tobytes())
    scene.load.on(stream)(*scene.args)
    assert scene.driver.launches == []
    assert np.array_equal(scene.out.numpy(), numbers(5))  # reading waits


def test_a_plain_launch_comes_after_what_streams_do_with_its_memory(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)
    scene.driver.hold(stream.handle)
    scene.load.on(stream)(*scene.args)
    scene.load(*scene.args)
    assert [each.stream for each in scene.driver.launches] == [stream.handle, 1]


def test_handles_and_objects_of_other_libraries(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)

    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, stream.handle

    for each in (stream, Foreign(), stream.handle):
        scene.load.on(each)(*scene.args)
    scene.load.on(0)(*scene.args)
    assert [each.stream for each in scene.driver.launches] == [stream.handle] * 3 + [1]  # CU_STREAM_LEGACY, which 0 means


# ---- what goes wrong
def test_a_wait_that_is_given_up_is_a_deadlock_with_the_users_line(scene: Scene) -> None:
    scene.driver.on_launch = scene.hang
    with pytest.raises(DeadlockError) as caught:
        scene.load(*scene.args)
    (said,) = caught.value.diagnostics
    assert said.rule == "OX5331"
    assert "CTA (1, 0, 0)" in said.what
    scene.driver.on_launch = None
    scene.load(*scene.args)  # the engine goes on
    assert scene.engine.watch.pool.taken == 0


@pytest.mark.parametrize("how", ["synchronize", "read", "launch", "device", "event", "other launch"])
def test_where_a_launch_on_a_stream_is_heard(scene: Scene, how: str) -> None:
    stream = Stream.create(scene.engine.context)
    launch = scene.load.on(stream).prepare(*scene.args)
    scene.driver.on_launch = scene.hang
    launch()
    scene.driver.on_launch = None
    event = stream.record()
    ways: dict[str, Callable[[], object]] = {
        "synchronize": stream.synchronize,
        "read": scene.out.numpy,
        "launch": launch,
        "device": scene.dev.synchronize,
        "event": event.synchronize,
        "other launch": lambda: scene.load(*scene.args),
    }
    refused(DeadlockError, "OX5331", ways[how])
    stream.synchronize()  # once is enough
    launch()
    stream.synchronize()


def test_a_dropped_launch_is_still_heard(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)
    scene.driver.on_launch = scene.hang
    scene.load.on(stream)(*scene.args)
    scene.driver.on_launch = None
    refused(DeadlockError, "OX5331", stream.synchronize)
    stream.synchronize()


def test_the_counter_and_the_report_are_new_after_a_failure(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)
    launch = scene.load.on(stream).prepare(*scene.args)
    inner: Any = launch.prepared
    scene.driver.on_launch = scene.hang
    launch()
    scene.driver.poke(inner.slot.counter, b"\x07" * 8)
    refused(DeadlockError, "OX5331", stream.synchronize)
    assert scene.driver.bytes_at(inner.slot.counter, 8) == bytes(8)
    assert inner.slot.read() == bytes(abi.REPORT_BYTES)


def test_checked_waits_and_gives_up_sooner(tmp_path: Path) -> None:
    scene = make(tmp_path, checked=True)
    stream = Stream.create(scene.engine.context)
    scene.driver.on_launch = scene.hang
    refused(DeadlockError, "OX5331", lambda: scene.load.on(stream)(*scene.args))
    assert scene.header(scene.driver.launches[0], "limit_us") == 1_000_000


def test_a_fault_of_an_earlier_kernel_is_reported_as_that(scene: Scene) -> None:
    launch = scene.load.on(Stream.create(scene.engine.context)).prepare(*scene.args)
    launch()
    scene.driver.fault()
    refused(EarlierFaultError, "OX5303", lambda: scene.load(*scene.args))
    with scene.engine.context:
        refused(EarlierFaultError, "OX5303", launch)


def test_a_fault_of_this_launch(scene: Scene) -> None:
    scene.driver.on_launch = lambda _: scene.driver.fault()
    said = refused(DeviceFaultError, "OX5304", lambda: scene.load(*scene.args))
    assert "`load`" in said


def test_use_after_free(scene: Scene) -> None:
    args = scene.args
    launch = scene.load.prepare(*args)
    scene.engine.free(scene.out.buffer)
    refused(LifetimeError, "OX5310", launch)
    refused(LifetimeError, "OX5310", lambda: scene.load(*args))
    refused(LifetimeError, "OX5310", scene.out.numpy)
    assert scene.driver.launches == []


def test_arguments_that_the_proof_was_not_made_for(scene: Scene) -> None:
    bound = scene.load.bind(*scene.args)
    proof, bindings = bound.verify(), bound.bindings
    wide = copy_pipeline()[2, 2].bind(descriptor(scene.dev.zeros((64, 64), ox.f32)), scene.out).bindings
    said = refused(ExecutionError, "OX5330", lambda: scene.engine.run(proof, wide))
    assert "`src`" in said
    from dataclasses import replace

    refused(ExecutionError, "OX5330", lambda: scene.engine.run(proof, replace(bindings, grid=(1, 1, 1))))
    moved = {"src": replace(bindings.maps["src"], offset_bytes=8)}
    assert "aligned" in refused(ExecutionError, "OX5330", lambda: scene.engine.run(proof, replace(bindings, maps=moved)))
    beyond = {"src": replace(bindings.maps["src"], offset_bytes=16)}
    assert "beyond" in refused(ExecutionError, "OX5330", lambda: scene.engine.run(proof, replace(bindings, maps=beyond)))
    askew = {"out": replace(bindings.arrays["out"], offset_bytes=2)}
    said = refused(ExecutionError, "OX5330", lambda: scene.engine.run(proof, replace(bindings, arrays=askew)))
    assert "aligned" in said
    assert "beyond" in said
    assert scene.driver.launches == []


def test_memory_of_another_device(scene: Scene, tmp_path: Path) -> None:
    other = make(tmp_path)
    bound = scene.load.bind(*scene.args)
    refused(LifetimeError, "OX5311", lambda: other.engine.run(bound.verify(), bound.bindings))


# ---- what is kept, and for how long
def test_arguments_live_until_the_launch_is_done(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)
    src = scene.dev.array(numbers(9))
    address = src.buffer.address
    scene.driver.hold(stream.handle)
    scene.load.on(stream)(descriptor(src), scene.out)
    del src
    gc.collect()
    assert scene.driver.memory[address].alive
    assert scene.engine.watch.pool.taken == 1
    scene.driver.finish()
    scene.engine.synchronize()
    gc.collect()
    assert not scene.driver.memory[address].alive
    assert scene.engine.watch.pool.taken == 0


def test_ten_thousand_launches_leave_nothing(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)
    launch = scene.load.on(stream).prepare(*scene.args)
    held = [len(scene.driver.live), len(scene.driver.host), len(scene.driver.events), scene.engine.watch.pool.taken]
    with scene.engine.context:
        for _ in range(10_000):
            launch()
    for _ in range(100):
        scene.load(*scene.args)
        scene.load.on(stream)(*scene.args)
    scene.engine.synchronize()
    gc.collect()
    assert [len(scene.driver.live), len(scene.driver.host), len(scene.driver.events), scene.engine.watch.pool.taken] == held


def test_closing_lets_go_of_everything(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)
    launch = scene.load.on(stream).prepare(*scene.args)
    launch()
    scene.engine.close()
    assert scene.driver.live == []
    assert scene.driver.host == {}
    with pytest.raises(LifetimeError):
        launch()


# ---- graphs
def test_reading_what_a_capture_uses_says_what_to_do(scene: Scene) -> None:
    graph, other = ox.Graph(scene.dev), scene.dev.array(numbers(3))
    with graph.capture():
        graph.add(scene.load.prepare(*scene.args))
        refused(UsageError, "OX5314", scene.out.numpy)
        refused(UsageError, "OX5314", scene.src.numpy)
        refused(UsageError, "OX5314", lambda: scene.load(*scene.args))
        assert np.array_equal(other.numpy(), numbers(3))  # what is no part of it can be read
        assert np.array_equal(scene.dev.array(numbers(4)).numpy(), numbers(4))
    graph.replay()  # nothing was spoilt
    scene.out.numpy()
    assert len(scene.driver.launches) == 1


def test_a_captured_launch_is_replayed_and_updated(scene: Scene) -> None:
    launch = scene.load.prepare(*scene.args)
    graph = ox.Graph(scene.dev)
    with graph.capture() as stream:
        node = graph.add(launch)
        graph.add(launch)
        assert isinstance(stream, Stream)
        assert stream.capturing
    assert scene.driver.launches == []
    graph.replay()
    graph.replay(Stream.create(scene.engine.context))
    assert len(scene.driver.launches) == 4
    reports = {scene.header(each, "report") for each in scene.driver.launches}
    assert len(reports) == 2  # one for each launch of the graph
    other = scene.dev.array(numbers(3))
    node.update(descriptor(other), scene.out)
    graph.replay()
    first, second = scene.driver.launches[-2:]
    assert first.parameters[0][:8] == other.buffer.address.to_bytes(8, "little")
    assert second.parameters[0][:8] == scene.src.buffer.address.to_bytes(8, "little")
    node.update(*scene.args)
    graph.replay()
    assert scene.driver.launches[-2].parameters == scene.driver.launches[0].parameters


def test_launching_into_a_capture_neither_waits_nor_allocates(scene: Scene) -> None:
    stream = Stream.create(scene.engine.context)
    launch = scene.load.on(stream).prepare(*scene.args)
    graph = ox.Graph(scene.dev)
    with graph.capture(stream), scene.engine.context:
        launch()
        scene.driver.trace.clear()
        launch()
        assert scene.driver.trace == ["cuLaunchKernelEx"]
    graph.replay()
    assert len(scene.driver.launches) == 2


def test_what_another_librarys_graph_may_replay_is_kept(scene: Scene) -> None:
    stream, src = ox.Stream(scene.dev), scene.dev.array(numbers(9))
    address, driver = src.buffer.address, scene.driver
    with scene.engine.context:
        driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode(1))
    scene.load.on(stream)(descriptor(src), scene.out)
    with scene.engine.context:
        graph = driver.cuStreamEndCapture(stream.handle)[1]
        executable = driver.cuGraphInstantiate(graph, 0)[1]
    del src
    gc.collect()
    scene.load(*scene.args)  # takes no report that the graph has
    with scene.engine.context:
        driver.cuGraphLaunch(executable, stream.handle)
    stream.synchronize()
    assert driver.memory[address].alive
    plain, replayed = driver.launches
    assert scene.header(plain, "report") != scene.header(replayed, "report")


@pytest.mark.parametrize("call", ["cuStreamEndCapture", "cuGraphInstantiate", "cuGraphGetNodes"])
def test_a_capture_whose_end_fails_leaves_nothing(scene: Scene, call: str) -> None:
    graph, launch = ox.Graph(scene.dev), scene.load.prepare(*scene.args)

    def capture() -> GraphLaunch[[Src, Out]]:
        with graph.capture():
            return graph.add(launch)

    scene.driver.fail[call] = "CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(OxidecopyError):
        capture()
    assert scene.driver.graphs == scene.driver.graph_execs == {}
    refused(UsageError, "OX5339", graph.replay)
    node = capture()
    graph.replay()
    node.update(*scene.args)
    graph.replay()


def test_a_graph_keeps_what_it_uses(scene: Scene) -> None:
    src = scene.dev.array(numbers(9))
    address = src.buffer.address
    graph = ox.Graph(scene.dev)
    with graph.capture():
        graph.add(scene.load.prepare(descriptor(src), scene.out))
    del src
    gc.collect()
    assert scene.driver.memory[address].alive
    graph.replay()
    del graph
    gc.collect()
    scene.engine.synchronize()
    assert not scene.driver.memory[address].alive
    assert scene.driver.graphs == {}
    assert scene.driver.graph_execs == {}


def test_a_graph_is_heard(scene: Scene) -> None:
    graph, stream = ox.Graph(scene.dev), Stream.create(scene.engine.context)
    with graph.capture():
        graph.add(scene.load.prepare(*scene.args))
    scene.driver.on_launch = scene.hang
    refused(DeadlockError, "OX5331", graph.replay)
    graph.replay(stream)
    scene.driver.on_launch = None
    refused(DeadlockError, "OX5331", stream.synchronize)
    graph.replay()


def test_a_replay_with_freed_memory(scene: Scene) -> None:
    graph = ox.Graph(scene.dev)
    with graph.capture():
        graph.add(scene.load.prepare(*scene.args))
    scene.engine.free(scene.out.buffer)
    refused(LifetimeError, "OX5310", graph.replay)


def test_a_failed_capture_leaves_no_graph(scene: Scene) -> None:
    graph = ox.Graph(scene.dev)

    def fail() -> None:
        with graph.capture():
            graph.add(scene.load.prepare(*scene.args))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert scene.driver.graphs == {}
    refused(UsageError, "OX5339", graph.replay)


def test_a_launch_of_another_device_is_not_added(scene: Scene, tmp_path: Path) -> None:
    graph, other = ox.Graph(scene.dev), make(tmp_path)
    with graph.capture():
        refused(UsageError, "OX5339", lambda: graph.add(other.load.prepare(*other.args)))
        sim = ox.Device.open("sim")
        a = sim.array(numbers())
        refused(UsageError, "OX5339", lambda: graph.add(copy_pipeline()[2, 2].prepare(descriptor(a), a)))


def test_a_prepared_launch_is_one_of_ours(scene: Scene) -> None:
    assert isinstance(scene.load.prepare(*scene.args).prepared, CudaLaunch)


def test_streams_of_the_user(scene: Scene) -> None:
    stream = ox.Stream(scene.dev)
    launch = scene.load.on(stream).prepare(*scene.args)
    launch()
    scene.driver.on_launch = scene.hang
    launch()
    scene.driver.on_launch = None
    refused(DeadlockError, "OX5331", stream.synchronize)
    stream.close()
    with pytest.raises(LifetimeError):
        launch()
    with pytest.raises(LifetimeError):
        scene.load.on(stream)(*scene.args)
    scene.out.numpy()  # does not ask a stream that is gone
    assert len(scene.driver.launches) == 2


# ---- kernels of the user's
def raw(scene: Scene) -> RawLaunch:
    bindings = scene.load.bind(*scene.args).bindings
    parameters = (
        RawParameter(name="map", offset=0, nbytes=128, value=bindings.maps["src"]),
        RawParameter(name="array", offset=128, nbytes=8, value=bindings.arrays["out"]),
        RawParameter(name="n", offset=136, nbytes=4, value=b"\x07\0\0\0"),
    )
    scene.driver.images.append(FakeImage(b"\x7fELF mine", (FakeKernel("mine", ((0, 128), (128, 8), (136, 4))),)))
    return RawLaunch(
        image=b"\x7fELF mine",
        kernel="mine",
        grid=(4, 1, 1),
        threads=(32, 2, 1),
        cluster=(2, 1, 1),
        shared_bytes=100_000,
        parameters=parameters,
        parameter_bytes=140,
    )


def test_a_kernel_of_the_users_is_packed_once(scene: Scene) -> None:
    launch, stream = raw(scene), ox.Stream(scene.dev)
    scene.engine.launch_raw(launch, stream)
    with scene.engine.context:
        scene.driver.trace.clear()
        scene.engine.launch_raw(launch, stream)
        assert scene.driver.calls["cuModuleLoadData"] == 1
        assert "cuTensorMapEncodeTiled" not in scene.driver.trace
    scene.engine.launch_raw(launch, None)
    first, _, last = scene.driver.launches
    assert (first.grid, first.block, first.cluster, first.shared_bytes) == ((4, 1, 1), (32, 2, 1), (2, 1, 1), 100_000)
    assert first.parameters[0][:8] == scene.src.buffer.address.to_bytes(8, "little")
    assert first.parameters[1:] == (scene.out.buffer.address.to_bytes(8, "little"), b"\x07\0\0\0")
    assert last.parameters == first.parameters
    assert last.stream == 1


def test_attributes_and_room_of_a_users_kernel(scene: Scene) -> None:
    """100,000 bytes: two CTAs on each of 132 SMs."""
    from dataclasses import replace

    plain = replace(raw(scene), cooperative=True, programmatic=True)
    scene.engine.launch_raw(plain, None)
    assert {name.removeprefix("CU_LAUNCH_ATTRIBUTE_") for name in scene.driver.launches[-1].attributes} == {
        "CLUSTER_DIMENSION",
        "COOPERATIVE",
        "PROGRAMMATIC_STREAM_SERIALIZATION",
    }
    refused(ExecutionError, "OX5340", lambda: scene.engine.launch_raw(replace(plain, grid=(266, 1, 1)), None))
    scene.driver.images[-1].kernels[0].max_cluster = 1
    other = replace(plain, cluster=None, compiled_cluster=(2, 1, 1), shared_bytes=99_000, cooperative=False)
    refused(ExecutionError, "OX5341", lambda: scene.engine.launch_raw(other, None))
    assert len(scene.driver.launches) == 1


def test_memory_of_a_users_kernel(scene: Scene) -> None:
    launch, stream = raw(scene), ox.Stream(scene.dev)
    scene.driver.hold(stream.handle)
    scene.engine.launch_raw(launch, stream)
    address = scene.src.buffer.address
    scene.src, keep = scene.out, launch.parameters
    del launch
    gc.collect()
    assert scene.driver.memory[address].alive
    scene.engine.free(scene.out.buffer)
    again = RawLaunch(
        image=b"\x7fELF mine",
        kernel="mine",
        grid=(1, 1, 1),
        threads=(32, 1, 1),
        cluster=None,
        shared_bytes=0,
        parameters=keep,
        parameter_bytes=140,
    )
    refused(LifetimeError, "OX5310", lambda: scene.engine.launch_raw(again, stream))


# ---- what does not fit into the parameter
def test_maps_beyond_the_inline_ones_lie_in_a_table(scene: Scene) -> None:
    sources = [scene.dev.array(numbers(n)) for n in range(9)]
    out = scene.dev.zeros((16 * 9, 32), ox.f32)
    maps = [descriptor(source) for source in sources]
    stream = ox.Stream(scene.dev)
    grid: Any = nine[1].on(stream)  # checkers cannot count a list
    launch = grid.prepare(*maps, out)
    launch()
    inner: Any = launch.prepared
    (run,) = scene.driver.launches
    image = inner.code.image
    assert image.table_maps
    table = scene.header(run, "table")
    for place, name in enumerate(image.table_maps):
        address = scene.driver.bytes_at(table + abi.MAP_BYTES * place, 8)
        assert address == sources["abcdefghi".index(name)].buffer.address.to_bytes(8, "little")
    # Another packing has another table: launches in flight may still read the old one.
    scene.driver.hold(stream.handle)
    launch()
    launch.update(*reversed(maps), out)
    launch()
    gc.collect()
    assert scene.driver.memory[table].alive
    scene.driver.finish()
    scene.engine.synchronize()
    gc.collect()
    assert not scene.driver.memory[table].alive
    assert scene.header(scene.driver.launches[-1], "table") != table


def test_code_that_does_not_fit_lies_in_device_memory(scene: Scene) -> None:
    out = scene.dev.zeros((16 * 60, 32), ox.f32)
    launch = long[1].prepare(descriptor(scene.src), out)
    launch()
    inner: Any = launch.prepared
    image = inner.code.image
    (run,) = scene.driver.launches
    assert run.kernel.name == "oxidecopy_move_global"
    assert scene.driver.bytes_at(scene.header(run, "code"), len(image.code)) == image.code
