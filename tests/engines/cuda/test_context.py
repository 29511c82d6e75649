"""The primary context: retained, pushed and restored, released; faults of earlier kernels; what lives in it."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.errors import DeviceFaultError, DriverError, EarlierFaultError, LifetimeError
from tests.helpers.fake_driver import FakeDriver, FakeGpu
from tests.helpers.flat_memory import leaves_memory_flat


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver([FakeGpu(), FakeGpu("Second")])


@pytest.fixture
def context(driver: FakeDriver) -> Iterator[PrimaryContext]:
    made = PrimaryContext(driver, 0)
    yield made
    made.close()
    assert not driver.stack


# ---- current or not
def test_it_is_pushed_and_what_was_current_is_restored(driver: FakeDriver, context: PrimaryContext) -> None:
    other = PrimaryContext(driver, 1)
    driver.cuCtxPushCurrent(other.handle)
    with context as entered:
        assert entered is context
        assert driver.current == int(context.handle)
        with context, other:
            assert driver.current == int(other.handle)
        assert driver.current == int(context.handle)
    assert driver.current == int(other.handle)
    driver.cuCtxPopCurrent()
    other.close()


def test_it_is_restored_when_a_call_fails(driver: FakeDriver, context: PrimaryContext) -> None:
    driver.fail["cuCtxPopCurrent"] = "CUDA_ERROR_INVALID_CONTEXT"  # says less than the error on its way
    with pytest.raises(DriverError) as caught, context:
        raise DriverError(name="CUDA_ERROR_UNKNOWN", code=999, call="cuX")
    assert caught.value.call == "cuX"
    driver.stack.clear()


@pytest.mark.parametrize("call", ["cuCtxPushCurrent", "cuCtxPopCurrent"])
def test_pushes_and_pops_that_fail_are_told(driver: FakeDriver, context: PrimaryContext, call: str) -> None:
    driver.fail[call] = "CUDA_ERROR_INVALID_CONTEXT"
    with pytest.raises(DriverError) as caught, context:
        pass
    assert caught.value.call == call
    driver.stack.clear()


def test_every_thread_has_its_own_stack(driver: FakeDriver, context: PrimaryContext) -> None:
    seen: list[int | None] = []

    def work() -> None:
        seen.append(driver.current)
        with context:
            seen.append(driver.current)

    with context:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [None, int(context.handle)]


# ---- retained and released
def test_it_shares_the_primary_context(driver: FakeDriver, context: PrimaryContext) -> None:
    driver.cuDevicePrimaryCtxRetain(0)  # another library
    again = PrimaryContext(driver, 0)
    assert int(again.handle) == int(context.handle)
    again.close()
    again.close()
    context.close()
    assert len(driver.contexts) == 1
    driver.cuDevicePrimaryCtxRelease(0)
    assert not driver.contexts


def test_it_is_released_when_it_is_dropped(driver: FakeDriver) -> None:
    context = PrimaryContext(driver, 0)
    context.health()
    assert len(driver.contexts) == 1
    del context
    gc.collect()
    assert not driver.contexts
    assert not driver.streams


def test_a_driver_that_is_gone_is_no_error(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    context = PrimaryContext(driver, 0)

    def gone(*_: object) -> None:
        raise RuntimeError("gone")

    monkeypatch.setattr(driver, "cuDevicePrimaryCtxRelease", gone)
    context.close()
    assert context.closed


def test_closed_means_closed(driver: FakeDriver, context: PrimaryContext) -> None:
    context.close()
    assert context.closed
    assert repr(context) == "PrimaryContext(0, 'NVIDIA H200', closed)"
    for use in (context.health, context.synchronize, context.memory_info, context.__enter__):
        with pytest.raises(LifetimeError) as caught:
            use()
        assert caught.value.rule == "OX5306"


def test_no_such_gpu(driver: FakeDriver) -> None:
    with pytest.raises(DriverError) as caught:
        PrimaryContext(driver, 2)
    assert caught.value.name == "CUDA_ERROR_INVALID_DEVICE"


def test_what_it_says_of_itself(driver: FakeDriver, context: PrimaryContext) -> None:
    assert (str(context), repr(context)) == ("cuda:0", "PrimaryContext(0, 'NVIDIA H200')")
    assert context.gpu.sm == 90
    assert context.memory_info() == (150_000_000_000, 150_000_000_000)


@pytest.mark.parametrize(("lost", "flat"), [((0,), True), ((8, -8, 0), True), ((8,) * 6, False), ((8, 16, 8, 8, 16, 8), False)])
def test_a_leak_is_told_from_memory_that_others_take(*, lost: tuple[int, ...], flat: bool) -> None:
    free, rounds = [1 << 30], iter(lost)

    def work() -> None:
        free[0] -= next(rounds)

    assert leaves_memory_flat(lambda: free[0], work) is flat
    assert next(rounds, None) is None, "no round more than it takes"


# ---- faults
def test_a_healthy_context(driver: FakeDriver, context: PrimaryContext) -> None:
    context.health()
    context.health()
    with context:
        driver.cuStreamQuery(context.private_stream(0))
    assert driver.calls["cuStreamCreate"] == 1
    assert driver.calls["cuStreamSynchronize"] == driver.calls["cuCtxSynchronize"] == 0, "it waits for nothing"


@pytest.mark.parametrize("asked_before", [False, True])
def test_an_earlier_fault_is_reported_as_that(driver: FakeDriver, context: PrimaryContext, *, asked_before: bool) -> None:
    if asked_before:
        context.health()
    driver.fault("CUDA_ERROR_ILLEGAL_ADDRESS")
    with pytest.raises(EarlierFaultError) as caught:
        context.health()
    error = caught.value
    assert (error.rule, error.code) == ("OX5303", 700)
    words = "an earlier kernel in this process faulted (CUDA_ERROR_ILLEGAL_ADDRESS); this launch was not started"
    assert error.diagnostics[0].what == words
    assert "cuda:0" in error.diagnostics[0].got
    assert not driver.stack


def test_a_launch_that_was_refused_because_of_it(driver: FakeDriver, context: PrimaryContext) -> None:
    with pytest.raises(EarlierFaultError) as caught:
        context.not_lost(driver.CUresult.CUDA_ERROR_LAUNCH_FAILED, "the copy")
    assert "the copy was not started" in str(caught.value)
    context.not_lost(driver.CUresult.CUDA_SUCCESS)
    context.not_lost(driver.CUresult.CUDA_ERROR_INVALID_VALUE)


def test_waiting_shows_a_fault(driver: FakeDriver, context: PrimaryContext) -> None:
    context.synchronize()
    driver.fault("CUDA_ERROR_ILLEGAL_INSTRUCTION")
    with pytest.raises(DeviceFaultError) as caught:
        context.synchronize()
    assert (caught.value.rule, caught.value.code) == ("OX5304", 715)
    context.close()
    assert not driver.contexts


def test_asking_leaves_captures_of_others_alone(driver: FakeDriver, context: PrimaryContext) -> None:
    modes: list[object] = []
    real = driver.cuStreamQuery

    def query(stream: int) -> object:
        mode = driver.cuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)[1]
        modes.append(mode)
        return real(stream)

    driver.cuStreamQuery = query  # type: ignore[method-assign, assignment]
    context.health()
    assert modes == [driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED]
    before = driver.cuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)[1]
    assert before == driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL, "what was set before is set again"


# ---- what lives in it
class Thing:
    """Something with a life."""


def test_what_it_owns_is_let_go_when_it_is_dropped(driver: FakeDriver, context: PrimaryContext) -> None:
    let_go: list[int | None] = []
    thing = Thing()
    ownership = context.own(thing, lambda: let_go.append(driver.current))
    lives = [ownership.alive]
    del thing
    gc.collect()
    assert let_go == [int(context.handle)], "with the context current"
    lives.append(ownership.alive)
    assert lives == [True, False]
    assert not driver.stack
    ownership.end()
    assert len(let_go) == 1


def test_letting_go_by_hand_is_loud_and_once(driver: FakeDriver, context: PrimaryContext) -> None:
    def fails() -> None:
        raise DriverError(name="CUDA_ERROR_UNKNOWN", code=999, call="cuX")

    thing = Thing()
    ownership = context.own(thing, fails)
    before = context.left
    with pytest.raises(DriverError):
        ownership.end()
    assert context.left == before + 1
    ownership.end()
    quiet = context.own(thing, fails)
    quiet.drop()
    assert not quiet.alive


def test_what_it_owns_keeps_it_open(driver: FakeDriver) -> None:
    thing = Thing()
    context = PrimaryContext(driver, 0)
    context.own(thing, lambda: None)
    del context
    gc.collect()
    assert driver.contexts
    del thing
    gc.collect()
    assert not driver.contexts


def test_closing_lets_go_of_everything(driver: FakeDriver, context: PrimaryContext) -> None:
    let_go: list[str] = []
    things = [Thing(), Thing()]
    made = [context.own(thing, lambda: let_go.append("gone")) for thing in things]
    context.close()
    assert let_go == ["gone", "gone"]
    assert not any(ownership.alive for ownership in made)
    del things
    gc.collect()
    assert let_go == ["gone", "gone"]


def test_what_could_not_be_let_go_is_gone_all_the_same(driver: FakeDriver, context: PrimaryContext) -> None:
    thing = Thing()
    ownership = context.own(thing, lambda: None)
    driver.broken["cuThreadExchangeStreamCaptureMode"] = "CUDA_ERROR_UNKNOWN"
    context.close()
    assert not ownership.alive
    assert not driver.contexts


def test_what_was_let_go_keeps_nothing_open(driver: FakeDriver) -> None:
    thing = Thing()
    context = PrimaryContext(driver, 0)
    context.own(thing, lambda: None).end()
    del context
    gc.collect()
    assert not driver.contexts
    assert isinstance(thing, Thing)


def test_the_host_hears_what_launches_have_to_say(context: PrimaryContext) -> None:
    heard: list[str] = []
    context.after_wait.append(lambda: heard.append("asked"))
    context.waited()
    assert heard == ["asked"]


ENDING = """
    from oxidecopy.engines.cuda.context import PrimaryContext
    from oxidecopy.engines.cuda.memory import CudaBuffer
    from oxidecopy.engines.cuda.pinned import HostBuffer
    from oxidecopy.engines.cuda.stream import Event, Stream
    from tests.helpers.fake_driver import FakeDriver

    driver = FakeDriver()
    context = PrimaryContext(driver, 0)
    kept = [CudaBuffer.allocate(context, 64), HostBuffer(context, 64), Event(context), Stream.create(context)]
    with context:
        kept[0].used_on(kept[3])
        kept[1].used_on(kept[3])
    cycle = [kept]
    cycle.append(cycle)

    def gone(*_):
        print("called")

    driver.cuCtxPushCurrent = driver.cuMemFreeAsync = driver.cuStreamDestroy = driver.cuDevicePrimaryCtxRelease = gone
"""


def test_nothing_is_called_when_the_interpreter_ends() -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(ENDING)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


# ---- on a GPU
FAULT = """
    from oxidecopy.engines.cuda.context import PrimaryContext
    from oxidecopy.engines.cuda.driver import check, load_driver
    from oxidecopy.engines.cuda.stream import Stream
    from oxidecopy.errors import DeviceFaultError, EarlierFaultError

    PTX = b'''.version 7.8
    .target sm_90
    .address_size 64
    .visible .entry bad() { .reg .b64 %p; .reg .b32 %v; mov.u64 %p, 64; mov.u32 %v, 1; st.global.u32 [%p], %v; ret; }
    '''

    driver = load_driver()
    context = PrimaryContext(driver, 0)
    context.health()
    with context:
        module = check(driver.cuModuleLoadData(PTX + bytes(1)), "cuModuleLoadData")
        config = driver.CUlaunchConfig()
        config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1
        kernel = check(driver.cuModuleGetFunction(module, b"bad"), "cuModuleGetFunction")
        check(driver.cuLaunchKernelEx(config, kernel, 0, 0), "cuLaunchKernelEx")
    try:
        Stream.legacy(context).synchronize()
    except DeviceFaultError as error:
        print(error.code, type(error).__name__)
    try:
        context.health()
    except EarlierFaultError as error:
        print(error.code, error.rule)
    with context:
        print(int(driver.cuLaunchKernelEx(config, kernel, 0, 0)[0]))
    context.close()
"""


@pytest.mark.gpu
def test_a_real_fault() -> None:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(FAULT)], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.split("\n") == ["700 DeviceFaultError", "700 OX5303", "700", ""], done.stderr


@pytest.mark.gpu
def test_a_real_context() -> None:
    from oxidecopy.engines.cuda.driver import check, load_driver

    real = load_driver()
    context = PrimaryContext(real, 0)
    before = int(check(real.cuCtxGetCurrent(), "cuCtxGetCurrent"))
    with context:
        assert int(check(real.cuCtxGetCurrent(), "cuCtxGetCurrent")) == int(context.handle)
    assert int(check(real.cuCtxGetCurrent(), "cuCtxGetCurrent")) == before
    context.health()
    free, total = context.memory_info()
    assert 0 < free <= total
    context.close()
