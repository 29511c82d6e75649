"""Several threads on one device: what is noted while another waits is kept, each launch raises its own errors, and no thread trips another.

Most of it is shown without threads: the driver's waits are the points at which others run, so the other thread's work is done inside them.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, final

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.in_flight import STREAMS_KEPT, Uses
from oxidecopy.engines.cuda.slots import Watch
from oxidecopy.engines.cuda.stream import PER_THREAD, Stream
from oxidecopy.errors import DeadlockError, LifetimeError, OxidecopyError
from oxidecopy.host.device import Device
from tests.helpers.fake_driver import FakeDriver, Launch
from tests.helpers.fake_engine import fake_device
from tests.helpers.launching import Out, copy_pipeline, descriptor, numbers

REPORT = next(offset for name, _, offset in abi.HEADER if name == "report")


@final
@dataclass
class Scene:
    dev: Device
    engine: CudaEngine
    driver: FakeDriver


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(*fake_device(tmp_path))


@contextmanager
def during(driver: FakeDriver, call: str, other: Callable[[], object]) -> Iterator[None]:
    """What another thread does while the first such call waits."""
    real, pending = getattr(driver, call), [other]

    @wraps(real)
    def waiting(*args: Any) -> Any:
        answer = real(*args)
        if pending:
            pending.pop()()
        return answer

    setattr(driver, call, waiting)
    try:
        yield
    finally:
        setattr(driver, call, real)


# ---- who may still be using what
def test_uses_noted_during_a_wait_are_kept(scene: Scene) -> None:
    context, driver = scene.engine.context, scene.driver
    one, two, loose = Stream.create(context), Stream.create(context), Stream.of(context, PER_THREAD)
    uses = Uses(driver)

    def launches() -> None:
        for stream in (one, two, loose):
            uses.note(stream)

    with context:
        launches()
        for call in ("cuStreamSynchronize", "cuEventSynchronize"):
            with during(driver, call, launches):
                uses.synchronize()
            events: list[int] = []
            uses.take_events(events)
            assert len(events) == 3, call  # one per stream: all three were launched on since
            for event in events:
                driver.cuEventDestroy(event)
            launches()


def test_what_is_kept_during_a_wait_stays_until_it_is_waited_for_again(scene: Scene) -> None:
    context, driver, uses = scene.engine.context, scene.driver, Uses(scene.driver)
    stream = Stream.create(context)
    with context:
        uses.keep(stream, 1)
        with during(driver, "cuStreamSynchronize", lambda: uses.unkeep(1)):
            uses.synchronize()
        assert uses  # launches may have been given to it until `unkeep`
        uses.synchronize()
        assert not uses


def test_events_are_used_again(scene: Scene) -> None:
    context, driver, uses = scene.engine.context, scene.driver, Uses(scene.driver)
    with context:
        for _ in range(50):
            uses.note(Stream.of(context, PER_THREAD))
            uses.synchronize()
    assert len(driver.events) == 1


def test_what_waits_is_not_lost_when_the_driver_fails(scene: Scene) -> None:
    context, driver, uses, let_go = scene.engine.context, scene.driver, Uses(scene.driver), list[bool]()
    streams = [Stream.create(context) for _ in range(2)]
    with context:
        for stream in streams:
            uses.note(stream)
        driver.hold(streams[0].handle)
        fails = during(driver, "cuEventRecord", lambda: driver.fail.update(cuEventRecord="CUDA_ERROR_OUT_OF_MEMORY"))
        with fails, pytest.raises(OxidecopyError):
            context.parked.park(uses, lambda: let_go.append(True))
        assert len(context.parked) == 1
        context.parked.sweep()
        assert not let_go  # the first stream's event was kept
        driver.finish()
        context.parked.sweep()
    assert let_go == [True]


@pytest.mark.parametrize("how", ["closed", "dropped", "captured"])
def test_streams_that_are_done_are_forgotten(scene: Scene, how: str) -> None:
    """Memory that is used on one stream after the other and never read."""
    dev, load = scene.dev, copy_pipeline()[2, 2]
    args = descriptor(dev.array(numbers())), dev.zeros((32, 32), ox.f32)
    prepared = load.prepare(*args)

    def once() -> None:
        if how == "captured":
            graph = ox.Graph(dev)
            with graph.capture():
                graph.add(prepared)
            graph.replay(ox.Stream(dev))
            return
        stream = ox.Stream(dev)
        load.on(stream)(*args)
        if how == "closed":
            stream.close()

    for _ in range(100):
        once()
    gc.collect()
    assert len(scene.driver.streams) < 40


def test_busy_streams_are_not_forgotten(scene: Scene) -> None:
    context, uses = scene.engine.context, Uses(scene.driver)
    streams = [Stream.create(context) for _ in range(3 * STREAMS_KEPT)]
    memory = scene.dev.zeros((4,), ox.f32)
    with context:
        for stream in streams:
            scene.driver.hold(stream.handle)
            scene.driver.cuMemsetD8Async(memory.buffer.address, 0, 4, stream.handle)
            uses.note(stream)
        events: list[int] = []
        uses.take_events(events)
    assert len(events) == len(streams)
    scene.driver.finish()


# ---- reports
class Contested(list[Any]):
    """Whoever looks whether anything is left finds it taken by another thread afterwards."""

    def __len__(self) -> int:
        left = super().__len__()
        self.clear()
        return left


def test_the_last_report_is_taken_by_another_thread(scene: Scene) -> None:
    pool = Watch(scene.engine.context).pool
    pool._free = Contested([pool.take()])
    assert pool.take().report != pool.take().report


def hang(launch: Launch) -> None:
    parameter = launch.parameters[0]
    maps = abi.INLINE_MAPS_LARGE if len(parameter) == abi.PARAM_BYTES_LARGE else abi.INLINE_MAPS_SMALL
    at = REPORT + abi.MAP_BYTES * maps
    ctypes.memmove(int.from_bytes(parameter[at : at + 8], "little"), b"\1\0\0\0", 4)


def test_an_error_goes_to_the_thread_whose_launch_it_was(scene: Scene) -> None:
    src, out = scene.dev.array(numbers()), scene.dev.zeros((32, 32), ox.f32)
    launch = copy_pipeline()[2, 2].prepare(descriptor(src), out)
    launch()
    others: list[OxidecopyError] = []

    def run(started: Launch) -> None:
        hang(started)
        try:
            scene.engine.watch.check()
        except OxidecopyError as error:
            others.append(error)

    scene.driver.on_launch = run
    with pytest.raises(OxidecopyError) as caught:
        launch()
    assert caught.value.rules == ("OX5333",)
    assert others == []
    scene.engine.watch.check()  # once


def test_an_error_of_a_stream_goes_to_who_waits_next(scene: Scene) -> None:
    src, out = scene.dev.array(numbers()), scene.dev.zeros((32, 32), ox.f32)
    load = copy_pipeline()[2, 2]
    load(descriptor(src), out)
    scene.driver.on_launch = hang
    load.on(ox.Stream(scene.dev))(descriptor(src), out)
    scene.driver.on_launch = None
    with pytest.raises(OxidecopyError) as caught:
        load(descriptor(src), out)
    assert not isinstance(caught.value, DeadlockError)
    load(descriptor(src), out)


# ---- threads
def hammer(*bodies: Callable[[], object], seconds: float = 0.5) -> list[BaseException]:
    """Runs them again and again, all at once, with as many switches as there can be; what they raised."""
    raised: list[BaseException] = []
    stop, before = threading.Event(), sys.getswitchinterval()

    def run(body: Callable[[], object]) -> None:
        try:
            while not stop.is_set():
                body()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        stop.wait(seconds)
        stop.set()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return raised


def one_at_a_time(driver: FakeDriver) -> None:
    """The fake's own state is not for threads; the real driver's is."""
    lock = threading.RLock()

    def locked(real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def call(*args: Any) -> Any:
            with lock:
                return real(*args)

        return call

    for name in dir(type(driver)):
        if name.startswith("cu") and callable(real := getattr(driver, name)) and hasattr(real, "__wrapped__"):
            setattr(driver, name, locked(real))


def test_threads_launch_read_drop_and_close_at_once(scene: Scene) -> None:
    one_at_a_time(scene.driver)
    dev, load = scene.dev, copy_pipeline()[2, 2]
    src = descriptor(dev.array(numbers()))
    outs: list[Out] = [dev.zeros((32, 32), ox.f32) for _ in range(3)]
    stream = ox.Stream(dev)

    def prepared() -> None:
        launch = load.on(stream).prepare(src, outs[0])
        launch()
        launch.update(src, outs[1])
        launch()

    def dropped() -> None:
        load.on(ox.Stream(dev))(descriptor(dev.array(numbers())), dev.zeros((32, 32), ox.f32))

    def closed() -> None:
        own = ox.Stream(dev)
        load.on(own)(src, outs[2])
        own.close()

    raised = hammer(
        lambda: load(src, outs[0]),
        lambda: load(src, outs[1]),
        outs[0].numpy,
        prepared,
        dropped,
        closed,
        lambda: load.on(PER_THREAD)(src, outs[2]),
    )
    assert raised == []
    dev.synchronize()
    assert scene.engine.watch.pool.taken == 0
    assert len(scene.engine.context.parked) == 0


# ---- processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_no_device(scene: Scene) -> None:
    src, out = scene.dev.array(numbers()), scene.dev.zeros((32, 32), ox.f32)
    load = copy_pipeline()[2, 2]
    stream = ox.Stream(scene.dev)
    launches: list[Callable[[], object]] = [
        load.prepare(descriptor(src), out),
        load.on(stream).prepare(descriptor(src), out),
        lambda: load(descriptor(src), out),
        out.numpy,
        scene.dev.synchronize,
        lambda: scene.dev.zeros((4,), ox.f32),
    ]
    for launch in launches:
        launch()
    calls = sum(scene.driver.calls.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest's own threads
        child = os.fork()
    if child == 0:
        os._exit(0 if all(_refused(launch) for launch in launches) and sum(scene.driver.calls.values()) == calls else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    launches[0]()  # the parent goes on


def _refused(use: Callable[[], object]) -> bool:
    try:
        use()
    except LifetimeError as error:
        return "before this process was forked" in str(error)
    except BaseException:
        return False
    return False
