"""Memory of other libraries as arrays: on the simulator for real, on a GPU by the fake driver. Nothing is copied, all of it is judged."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, InputError, LifetimeError, OxidecopyError
from oxidecopy.host.borrowing import borrow
from tests.helpers.fake_engine import fake_device
from tests.helpers.foreign import Interface, Producer, producer_of
from tests.helpers.launching import copy_pipeline, descriptor, numbers

DEV = ox.Device.open("sim")


def refused(error: type[OxidecopyError], rule: str, use: Any) -> str:
    with pytest.raises(OxidecopyError) as caught:
        use()
    assert type(caught.value) is error
    assert rule in caught.value.rules
    assert all(said.site is not None and said.site.file == __file__ for said in caught.value.diagnostics)
    return str(caught.value)


# ---- numpy on the simulator
def test_a_numpy_array_is_the_memory() -> None:
    x, y = numbers(), np.zeros((32, 32), np.float32)
    src, out = DEV.borrow(x, ox.f32), DEV.borrow(y, ox.f32)
    copy_pipeline()[2, 2](descriptor(src), out)
    assert np.array_equal(y, x)
    x[0, 0] = -1
    assert src.numpy()[0, 0] == -1
    assert (src.shape, src.strides_bytes, src.readonly) == ((32, 32), (128, 4), False)


@pytest.mark.parametrize("key", [np.s_[1:, 4:], np.s_[::2, :], np.s_[3:4, 8:24], np.s_[:, ::3]], ids=str)
def test_views_of_numpy_arrays(key: Any) -> None:
    x = numbers()
    assert np.array_equal(DEV.borrow(x[key], ox.f32).numpy(), x[key])
    assert np.array_equal(DEV.borrow(x.T[key], ox.f32).numpy(), x.T[key])


def test_views_of_one_array_are_one_memory() -> None:
    """So that the simulator sees a launch that reads what it writes."""
    x = numbers()
    whole, part = DEV.borrow(x, ox.f32), DEV.borrow(x[16:, :16], ox.f32)
    assert part.buffer is whole.buffer
    assert part.offset_bytes == 16 * 128
    first = DEV.borrow(numbers()[16:], ox.f32)
    assert first.buffer is not whole.buffer


def test_alignment_is_the_memorys_own() -> None:
    x = numbers()
    assert (x.ctypes.data - DEV.borrow(x, ox.f32).buffer.address) % 128 == 0
    with pytest.raises(ox.errors.DescriptorError) as caught:
        ox.TmaDescriptor.tiled(DEV.borrow(x[:, 1:], ox.f32), box=(16, 16))
    assert caught.value.rules == ("OX2009",)


def test_size_one_dimensions_are_canonical() -> None:
    x = np.lib.stride_tricks.as_strided(numbers(), (1, 32, 1, 32), (4, 128, 12345 * 4, 4))
    assert DEV.borrow(x, ox.f32).strides_bytes == (4096, 128, 128, 4)


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        (np.zeros(8, ml_dtypes.bfloat16), ox.bf16),
        (np.zeros(8, ml_dtypes.float8_e4m3fn), ox.e4m3),
        (np.zeros(8, np.uint8), ox.e5m2),
        (np.zeros(8, np.float32), ox.tf32),
        (np.zeros(8, np.uint64), ox.u64),
    ],
)
def test_element_types(x: Any, dtype: Any) -> None:
    a: Any = DEV.borrow(x, dtype)
    assert a.dtype is dtype
    x.view(np.uint8)[:] = 1
    assert a.numpy().tobytes() == b"\x01" * x.nbytes


def test_the_array_lives_as_long_as_it_is_borrowed() -> None:
    x = np.zeros((8, 8), np.float32)
    seen = weakref.ref(x)
    view = DEV.borrow(x, ox.f32)[2:].T
    del x
    gc.collect()
    assert seen() is not None
    assert view.numpy().sum() == 0
    del view
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("kept", [True, False])
def test_memory_that_somebody_else_keeps(*, kept: bool) -> None:
    """As of a graph that torch captures, which has its tensors' memory and looks for who else does."""
    memory = np.zeros((4, 8), np.float32)
    producer = producer_of(memory)
    array = borrow(DEV, producer, ox.f32, 2, None, kept=kept)
    gc.collect()
    assert bool(producer.freed) is not kept
    assert array.numpy().shape == (4, 8)
    del array
    gc.collect()
    assert producer.freed


def test_what_numpy_has_and_we_do_not_borrow() -> None:
    x: Any = np.zeros((4, 8), np.float32)
    refused(InputError, "OX5036", lambda: DEV.borrow(x[::-1], ox.f32))
    refused(InputError, "OX5036", lambda: DEV.borrow(x[:, ::-1], ox.f32))
    refused(InputError, "OX5004", lambda: DEV.borrow(x, ox.f16))
    refused(InputError, "OX5034", lambda: DEV.borrow(np.ma.masked_array(x), ox.f32))
    refused(InputError, "OX5006", lambda: DEV.borrow(x[:0], ox.f32))
    refused(InputError, "OX5007", lambda: DEV.borrow(np.zeros((1,) * 6, np.float32), ox.f32))
    refused(InputError, "OX5005", lambda: DEV.borrow(x.astype(">f4"), ox.f32))
    refused(InputError, "OX5008", lambda: DEV.borrow(x, np.float32))  # type: ignore[type-var]
    refused(InputError, "OX5033", lambda: DEV.borrow(x, ox.f32, rank=3))
    refused(InputError, "OX5038", lambda: DEV.borrow(np.frombuffer(bytes(33), np.uint8)[1:].view(np.float32), ox.f32))
    packed = np.zeros(4, np.dtype([("a", np.float32), ("b", np.uint8)]))["a"]
    refused(InputError, "OX5036", lambda: DEV.borrow(packed, ox.f32))


# ---- read-only memory
def test_read_only_memory_is_read_and_never_written() -> None:
    x = numbers()
    x.flags.writeable = False
    frozen, out = DEV.borrow(x, ox.f32), DEV.zeros((32, 32), ox.f32)
    assert frozen.readonly
    assert frozen[1:].T.readonly
    copy_pipeline()[2, 2](descriptor(frozen), out)
    assert np.array_equal(out.numpy(), x)
    said = refused(ArgumentError, "OX5037", lambda: copy_pipeline()[2, 2](descriptor(out), frozen))
    assert "stored to here" in said
    refused(ArgumentError, "OX5037", lambda: copy_pipeline()[2, 2].prepare(descriptor(out), frozen))
    launch = copy_pipeline()[2, 2].prepare(descriptor(frozen), out)
    refused(ArgumentError, "OX5037", lambda: launch.update(descriptor(out), frozen))
    assert np.array_equal(x, numbers())


class Unchanging:
    """As jax's arrays: they never change, and their capsules do not say so."""

    __module__ = "jaxlib._jax"

    def __init__(self, x: Any) -> None:
        self.theirs = producer_of(x)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.theirs.__dlpack_device__()

    def __dlpack__(self, **asked: Any) -> Any:
        return self.theirs.__dlpack__(**asked)


def test_arrays_of_jax_are_never_written_whatever_they_say() -> None:
    frozen, out = DEV.borrow(Unchanging(numbers()), ox.f32, rank=2), DEV.zeros((32, 32), ox.f32)
    copy_pipeline()[2, 2](descriptor(frozen), out)
    assert np.array_equal(out.numpy(), numbers())
    refused(ArgumentError, "OX5037", lambda: copy_pipeline()[2, 2](descriptor(out), frozen))
    refused(ArgumentError, "OX5037", lambda: ox.copy(Unchanging(numbers()), numbers()))  # type: ignore[call-overload]


def test_a_read_only_view_of_memory_that_may_be_written() -> None:
    x = numbers()
    view = x[:]
    view.flags.writeable = False
    whole, frozen = DEV.borrow(x, ox.f32), DEV.borrow(view, ox.f32)
    assert frozen.buffer is whole.buffer
    assert (frozen.readonly, whole.readonly) == (True, False)
    copy_pipeline()[2, 2](descriptor(DEV.array(numbers(3))), whole)
    assert np.array_equal(frozen.numpy(), numbers(3))


# ---- views as arguments
@ox.pipeline(threads=32)
def rows(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D4], out: ox.GlobalArray[ox.f32, ox.D4]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    at = (cta.block_idx.z, cta.block_idx.y, cta.block_idx.x * 4, 0)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, at, token)
    full.wait(token)
    cta.store(out, tile, at)
    full.inval()


def test_bshd_as_bhsd() -> None:
    x = np.arange(2 * 8 * 3 * 4, dtype=np.float32).reshape(2, 8, 3, 4)  # batch, sequence, head, dim
    bhsd = DEV.borrow(x, ox.f32).permute(0, 2, 1, 3)
    out = DEV.empty((2, 3, 8, 4), ox.f32)
    rows[2, 3, 2](ox.TmaDescriptor.tiled(bhsd, box=(1, 1, 4, 4)), out)
    assert np.array_equal(out.numpy(), x.transpose(0, 2, 1, 3))
    back = np.zeros_like(x)
    rows[2, 3, 2](ox.TmaDescriptor.tiled(out, box=(1, 1, 4, 4)), DEV.borrow(back, ox.f32).permute(0, 2, 1, 3))
    assert np.array_equal(back, x)


def test_broadcast_and_overlapping_views_are_loaded() -> None:
    x = np.arange(4, dtype=np.float32)
    repeated = DEV.borrow(x, ox.f32).broadcast_to((2, 3, 8, 4))
    out = DEV.empty((2, 3, 8, 4), ox.f32)
    rows[2, 3, 2](ox.TmaDescriptor.tiled(repeated, box=(1, 1, 4, 4)), out)
    assert np.array_equal(out.numpy(), np.broadcast_to(x, (2, 3, 8, 4)))
    line = np.arange(64, dtype=np.float32)
    windows = DEV.borrow(line, ox.f32).as_strided((2, 3, 8, 4), (64, 32, 16, 4))
    rows[2, 3, 2](ox.TmaDescriptor.tiled(windows, box=(1, 1, 4, 4)), out)
    assert np.array_equal(out.numpy(), np.lib.stride_tricks.as_strided(line, (2, 3, 8, 4), (64, 32, 16, 4)))


def test_a_transposed_array_is_stored_to() -> None:
    x = numbers()
    out = np.zeros((32, 32), np.float32)
    copy_pipeline()[2, 2](descriptor(DEV.array(x)), DEV.borrow(out, ox.f32).T)
    assert np.array_equal(out, x.T)


def test_elements_that_share_memory_are_not_stored_to() -> None:
    row = DEV.zeros((1, 32), ox.f32).broadcast_to((32, 32))
    refused(ArgumentError, "OX5042", lambda: copy_pipeline()[2, 2](descriptor(DEV.array(numbers())), row))
    copy_pipeline()[2, 2](ox.TmaDescriptor.tiled(row, box=(16, 16)), DEV.empty_like(row))


def test_empty_like_of_views() -> None:
    a = DEV.zeros((4, 8), ox.f32)
    assert DEV.empty_like(a.T).strides_bytes == (4, 32)
    assert DEV.empty_like(a[:, ::2]).numpy().shape == (4, 4)
    assert DEV.empty_like(a.select(0, 1).broadcast_to((4, 8))).strides_bytes == (32, 4)


# ---- DLPack on the simulator
@pytest.mark.parametrize("version", [None, (1, 0), (1, 1), (1, 7)])
def test_dlpack_of_any_version(version: tuple[int, int] | None) -> None:
    x = numbers()
    tensor = producer_of(x, version=version)
    a = DEV.borrow(tensor, ox.f32, rank=2)
    assert np.array_equal(a.numpy(), x)
    x[3, 3] = 99
    assert a.numpy()[3, 3] == 99
    assert [list(asked) for asked in tensor.asked] == [[] if version is None else ["max_version"]]
    assert tensor.freed == []
    view = a.T
    del a
    gc.collect()
    assert tensor.freed == []
    assert view.numpy()[3, 3] == 99
    del view
    gc.collect()
    assert tensor.freed == ["freed"]


def test_dlpack_without_strides_with_an_offset_and_read_only() -> None:
    x = np.arange(36, dtype=np.float32)
    a = DEV.borrow(Producer(x.ctypes.data, (4, 8), byte_offset=16, readonly=True, owner=x), ox.f32, rank=2)
    assert np.array_equal(a.numpy(), x[4:].reshape(4, 8))
    assert a.readonly
    assert a.strides_bytes == (32, 4)


def test_dlpack_of_pinned_memory_is_host_memory() -> None:
    x = numbers()
    assert np.array_equal(DEV.borrow(producer_of(x, device=(3, 1)), ox.f32, rank=2).numpy(), x)


@pytest.mark.parametrize(
    ("code", "dtype", "size"),
    [
        ((4, 16, 1), ox.bf16, 2),
        ((10, 8, 1), ox.e4m3, 1),
        ((12, 8, 1), ox.e5m2, 1),
        ((1, 8, 1), ox.e5m2, 1),
        ((0, 64, 1), ox.i64, 8),
        ((2, 32, 1), ox.f32_ftz, 4),
    ],
)
def test_dlpack_types(code: tuple[int, int, int], dtype: Any, size: int) -> None:
    raw = np.arange(16 * size, dtype=np.uint8)
    a: Any = DEV.borrow(Producer(raw.ctypes.data, (16,), dtype=code, owner=raw), dtype, rank=1)
    assert a.numpy().tobytes() == raw.tobytes()


def test_what_dlpack_says_and_we_do_not_borrow() -> None:
    x = numbers()

    def says(rule: str, rank: Any = 2, **more: Any) -> str:
        tensor = producer_of(x, **more)
        said = refused(InputError, rule, lambda: DEV.borrow(tensor, ox.f32, rank=rank))
        gc.collect()
        assert len(tensor.freed) == len(tensor.asked)
        return said

    assert "a GPU's memory, device 1" in says("OX5031", device=(2, 1))
    assert "managed" in says("OX5031", device=(13, 0))
    assert "device type 10" in says("OX5031", device=(10, 0))
    assert "uint16" in says("OX5032", dtype=(1, 16, 1))
    assert "int8" in says("OX5032", dtype=(0, 8, 1))
    assert "float32 x 4" in says("OX5032", dtype=(2, 32, 4))
    assert "complex64" in says("OX5032", dtype=(5, 64, 1))
    assert "type code 17" in says("OX5032", dtype=(17, 4, 1))
    says("OX5033", rank=1)
    says("OX5035", version=(2, 0))
    refused(InputError, "OX5036", lambda: DEV.borrow(producer_of(x[::-1]), ox.f32, rank=2))
    refused(InputError, "OX5007", lambda: DEV.borrow(Producer(x.ctypes.data, ()), ox.f32, rank=1))
    refused(InputError, "OX5006", lambda: DEV.borrow(Producer(0, (0,)), ox.f32, rank=1))
    refused(InputError, "OX5038", lambda: DEV.borrow(Producer(x.ctypes.data + 2, (4,)), ox.f32, rank=1))
    refused(InputError, "OX5038", lambda: DEV.borrow(Producer(0, (4,)), ox.f32, rank=1))


def test_objects_that_break_the_protocol() -> None:
    class Theirs:
        def __init__(self, device: Any, capsule: Any) -> None:
            self.device, self.capsule = device, capsule

        def __dlpack_device__(self) -> Any:
            return self.device() if callable(self.device) else self.device

        def __dlpack__(self, **_: Any) -> Any:
            return self.capsule() if callable(self.capsule) else self.capsule

    def grad() -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    taken = producer_of(numbers()).__dlpack__()
    from ctypes import c_char_p, c_int, py_object, pythonapi

    pythonapi.PyCapsule_SetName.argtypes, pythonapi.PyCapsule_SetName.restype = (py_object, c_char_p), c_int
    pythonapi.PyCapsule_SetName(taken, b"used_dltensor_versioned")
    for device, capsule in ((None, None), ((1,), None), (("a", 0), None), (grad, None), ((1, 0), {}), ((1, 0), None), ((1, 0), taken)):
        theirs = Theirs(device, capsule)
        refused(InputError, "OX5035", lambda theirs=theirs: DEV.borrow(theirs, ox.f32, rank=2))
    said = refused(InputError, "OX5035", lambda: DEV.borrow(Theirs((1, 0), grad), ox.f32, rank=2))
    assert "tensor.detach()" in said
    refused(InputError, "OX5030", lambda: DEV.borrow([1.0], ox.f32, rank=1))  # type: ignore[call-overload]
    refused(InputError, "OX5030", lambda: DEV.borrow(None, ox.f32, rank=1))  # type: ignore[call-overload]
    refused(InputError, "OX5031", lambda: DEV.borrow(Interface(0x7000, (4,)), ox.f32, rank=1))


def test_an_array_of_another_simulator() -> None:
    other = ox.Device.open("sim")
    a = other.array(numbers())
    mine = DEV.borrow(a, ox.f32, rank=2)
    copy_pipeline()[2, 2](descriptor(DEV.array(numbers(7))), mine)
    assert np.array_equal(a.numpy(), numbers(7))
    with pytest.raises(LifetimeError) as caught:
        DEV.free(a)
    assert caught.value.rules == ("OX5311",)


def test_a_peer() -> None:
    there = ox.Device.open("sim")
    a = there.array(numbers())
    mine = DEV.peer(a)
    assert (mine.shape, mine.dtype, mine.device) == (a.shape, ox.f32, DEV)
    copy_pipeline()[2, 2](descriptor(DEV.array(numbers(7))), mine)
    assert np.array_equal(a.numpy(), numbers(7))
    part = DEV.peer(a[8:, ::2].T)
    assert np.array_equal(part.numpy(), numbers(7)[8:, ::2].T)
    assert DEV.peer(mine).buffer is mine.buffer
    there.free(a)
    refused(LifetimeError, "OX5310", lambda: DEV.peer(a))
    refused(LifetimeError, "OX5310", mine.numpy)  # freed there, freed here
    b = there.array(numbers())
    DEV.free(DEV.peer(b))
    assert np.array_equal(b.numpy(), numbers())  # and not the other way
    refused(InputError, "OX5030", lambda: DEV.peer(numbers()))  # type: ignore[arg-type]


def test_streams_of_two_devices() -> None:
    there = ox.Device.open("sim")
    stream, other = ox.Stream(DEV), ox.Stream(there)
    stream.wait(other.record())
    refused(ArgumentError, "OX5321", lambda: stream.record(ox.Event(there)))
    refused(ArgumentError, "OX5321", lambda: stream.wait(1))  # type: ignore[arg-type]


# ---- pointers
def test_a_pointer() -> None:
    x = numbers()
    a = DEV.borrow_pointer(x.ctypes.data + 128, (31, 16), ox.f32, owner=x, strides_bytes=(128, 8))
    assert np.array_equal(a.numpy(), x[1:, ::2])
    b = DEV.borrow_pointer(x.ctypes.data, (32, 32), ox.f32, owner=x, readonly=True)
    assert (b.strides_bytes, b.readonly) == ((128, 4), True)
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is not None
    del a, b
    gc.collect()
    assert seen() is None


def test_pointers_that_mean_nothing() -> None:
    x: Any = numbers()
    at = x.ctypes.data

    def refuse(rule: str, address: Any, shape: Any = (4,), **more: Any) -> str:
        return refused(InputError, rule, lambda: DEV.borrow_pointer(address, shape, ox.f32, **{"owner": x, **more}))

    for address in (0, -1, 1 << 64, None, "0x10", 1.0, True):
        refuse("OX5038", address)
    refuse("OX5038", at + 1)
    assert "owner" in refuse("OX5038", at, owner=None)
    for strides in ((4, 4), [4], (4.0,), ("4",), 4):
        refuse("OX5038", at, strides_bytes=strides)
    refuse("OX5036", at, strides_bytes=(-4,))
    refuse("OX5036", at, strides_bytes=(6,))
    refuse("OX5009", at, shape=4)
    refuse("OX5007", at, shape=())
    with pytest.raises(ArgumentError):
        DEV.borrow_pointer(at, (4,), ox.f32, owner=x, readonly="no")  # type: ignore[arg-type]


# ---- freed
def test_use_after_free() -> None:
    x = numbers()
    a, b = DEV.borrow(x, ox.f32), DEV.zeros((32, 32), ox.f32)
    view, launch = a.T, copy_pipeline()[2, 2].prepare(descriptor(a), b)
    DEV.free(a)
    for use in (a.numpy, view.numpy, launch, lambda: np.from_dlpack(a), lambda: copy_pipeline()[2, 2](descriptor(b), a)):
        with pytest.raises(LifetimeError) as caught:
            use()
        assert caught.value.rules == ("OX5310",)
    assert np.array_equal(x, numbers())
    refused(InputError, "OX5015", lambda: DEV.free(x))  # type: ignore[arg-type]


# ---- on a GPU
def test_a_gpus_memory(tmp_path: Path) -> None:
    dev, engine, driver = fake_device(tmp_path)
    at = driver.foreign_allocation(8192)
    driver.poke(at, numbers().tobytes())
    tensor = Producer(at, (32, 32), device=(2, 0))
    a, b = dev.borrow(tensor, ox.f32, rank=2), dev.borrow(Interface(at + 4096, (32, 32), strides=None), ox.f32, rank=2)
    assert tensor.asked == [{"max_version": (1, 1), "stream": 1}]
    assert np.array_equal(a.numpy(), numbers())
    copy_pipeline()[2, 2](descriptor(a), b)
    (launch,) = driver.launches
    assert (at + 4096).to_bytes(8, "little") in launch.parameters[0]
    stream = ox.Stream(dev)
    driver.hold(stream.handle)
    copy_pipeline()[2, 2].on(stream)(descriptor(a), b)
    del a, b, launch
    gc.collect()
    assert tensor.freed == []  # the launch is in flight
    driver.finish()
    dev.synchronize()
    engine.context.synchronize()
    gc.collect()
    assert tensor.freed == ["freed"]
    assert driver.memory[at].alive  # it was never ours


def test_the_stream_that_fills_the_memory_is_waited_for(tmp_path: Path) -> None:
    dev, engine, driver = fake_device(tmp_path)
    at = driver.foreign_allocation(4096)
    theirs, mine = ox.Stream(dev), ox.Stream(dev)
    out = dev.zeros((32, 32), ox.f32)
    for given, number in ((None, 1), (mine, mine.handle), (mine.handle, mine.handle), (0, 1), (2, 2)):
        tensor = Producer(at, (32, 32), device=(2, 0))
        dev.borrow(tensor, ox.f32, rank=2, stream=given)
        assert tensor.asked[0]["stream"] == number
    driver.hold(theirs.handle)
    with engine.context:
        driver.give(theirs.handle, lambda: driver.poke(at, numbers(4).tobytes()))
    a = dev.borrow(Interface(at, (32, 32), stream=theirs.handle), ox.f32, rank=2, stream=mine)
    seen: list[bytes] = []
    driver.on_launch = lambda _: seen.append(driver.bytes_at(at, 4096))
    copy_pipeline()[2, 2].on(mine)(descriptor(a), out)
    assert seen == []
    driver.finish()
    assert seen == [numbers(4).tobytes()]
    before = driver.calls["cuEventRecord"]
    dev.borrow(Interface(at, (32, 32), stream=mine.handle), ox.f32, rank=2, stream=mine)  # the same stream: in order anyway
    dev.borrow(Interface(at, (32, 32), stream=None), ox.f32, rank=2, stream=mine)
    assert driver.calls["cuEventRecord"] == before
    with pytest.raises(ArgumentError) as caught:
        dev.borrow(Producer(at, (4,), device=(2, 0)), ox.f32, rank=1, stream="mine")  # type: ignore[call-overload]
    assert caught.value.rules == ("OX1051",)


class Tensor:
    """As torch's: it can be moved."""

    def __init__(self, x: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.theirs, self.device = producer_of(x), device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **asked: Any) -> Any:
        return self.theirs.__dlpack__(**asked)

    def cuda(self) -> None: ...
    def cpu(self) -> None: ...


def test_what_a_gpu_does_not_borrow(tmp_path: Path) -> None:
    dev, engine, driver = fake_device(tmp_path)
    at, other = driver.foreign_allocation(4096), driver.foreign_allocation(64, context=0xDEAD)
    x = numbers()
    refused(InputError, "OX5031", lambda: dev.borrow(x, ox.f32))
    refused(InputError, "OX5031", lambda: dev.borrow(producer_of(x), ox.f32, rank=2))
    assert "x.cuda() is a tensor there" in refused(InputError, "OX5031", lambda: dev.borrow(Tensor(x), ox.f32, rank=2))
    assert "x.cpu() is a tensor in host memory" in refused(InputError, "OX5031", lambda: DEV.borrow(Tensor(x, (2, 1)), ox.f32, rank=2))
    assert "device 1" in refused(InputError, "OX5031", lambda: dev.borrow(Producer(at, (4,), device=(2, 1)), ox.f32, rank=1))
    refused(InputError, "OX5031", lambda: dev.borrow(Producer(at, (4,), device=(13, 0)), ox.f32, rank=1))
    lying = Producer(x.ctypes.data, (4,), device=(2, 0))  # the driver knows better
    refused(ArgumentError, "OX5312", lambda: dev.borrow(lying, ox.f32, rank=1))
    refused(ArgumentError, "OX5311", lambda: dev.borrow(Interface(other, (4,)), ox.f32, rank=1))
    refused(ArgumentError, "OX5313", lambda: dev.borrow(Interface(at, (1025,)), ox.f32, rank=1))
    refused(ArgumentError, "OX5312", lambda: dev.borrow_pointer(0x1000, (4,), ox.f32, owner=x))
    gc.collect()
    assert lying.freed == ["freed"]

    def says(rule: str, dtype: Any = ox.f32, **more: Any) -> str:
        said = Interface(at, (32, 32))
        said.said.update(more)
        return refused(InputError, rule, lambda: dev.borrow(said, dtype, rank=2))

    says("OX5034", mask=Interface(at, (32, 32)))
    says("OX5035", version=4)
    says("OX5035", stream=0)
    says("OX5035", stream="main")
    says("OX5035", shape=None)
    says("OX5035", data=None)
    says("OX5035", typestr="f")
    says("OX5035", strides=(4,))
    says("OX5032", typestr="<f8")
    says("OX5032", typestr=">f4")
    says("OX5032", typestr="<c8")
    says("OX5036", strides=(-128, 4))
    says("OX5036", strides=(130, 4))
    missing = Interface(at, (4,))
    del missing.said["typestr"]
    refused(InputError, "OX5035", lambda: dev.borrow(missing, ox.f32, rank=1))
    engine.context.synchronize()


def test_read_only_and_raw_types_of_the_cuda_array_interface(tmp_path: Path) -> None:
    dev, _, driver = fake_device(tmp_path)
    at = driver.foreign_allocation(4096)
    frozen = dev.borrow(Interface(at, (32, 32), readonly=True), ox.f32, rank=2)
    refused(ArgumentError, "OX5037", lambda: copy_pipeline()[2, 2](descriptor(dev.zeros((32, 32), ox.f32)), frozen))
    assert dev.borrow(Interface(at, (32,), "<V2"), ox.bf16, rank=1).dtype is ox.bf16
    assert dev.borrow(Interface(at, (32,), "|V1"), ox.e4m3, rank=1).dtype is ox.e4m3
    refused(InputError, "OX5032", lambda: dev.borrow(Interface(at, (32,), "<V2"), ox.f16, rank=1))
    old = Interface(at, (32,), version=2)
    assert dev.borrow(old, ox.f32, rank=1).strides_bytes == (4,)


# ---- what a program does to its destinations
Map = ox.TmaDescriptor[ox.f32, ox.D2]


@ox.pipeline(threads=32)
def add_up(cta: ox.Cta, total: Map) -> None:
    tile = cta.shared(total)
    cta.fill(tile, 1.0)
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        total.reduce(ox.reduce.add, leader, tile, (cta.block_idx.x * 4, 0))
        leader.commit_group()
        leader.wait_group(0)


def test_reductions_may_share_memory_but_not_be_read_only() -> None:
    row = np.zeros((1, 4), np.float32)
    total = DEV.borrow(row, ox.f32).broadcast_to((8, 4))
    add_up[2](ox.TmaDescriptor.tiled(total, box=(4, 4)))
    assert row.tolist() == [[8.0] * 4]
    row.flags.writeable = False
    frozen = DEV.borrow(row, ox.f32)
    assert "reduced into here" in refused(ArgumentError, "OX5037", lambda: add_up[1](ox.TmaDescriptor.tiled(frozen, box=(4, 4))))


@ox.pipeline(threads=32)
def clear(cta: ox.Cta, table: ox.DescriptorTable[ox.f32, ox.D2]) -> None:
    entry = table[cta.block_idx.x]
    tile = cta.shared(entry)
    cta.fill(tile, 0.0)
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        entry.s2g(leader, tile, (0, 0))
        leader.commit_group()
        leader.wait_group(0)


def test_every_entry_of_a_table_is_looked_at() -> None:
    x = np.ones((4, 4), np.float32)
    good = ox.TmaDescriptor.tiled(DEV.borrow(x, ox.f32), box=(4, 4))
    other = ox.TmaDescriptor.tiled(DEV.zeros((4, 4), ox.f32), box=(4, 4))
    clear[2](ox.DescriptorTable([good, other]))
    assert not x.any()
    y = x.copy()
    y.flags.writeable = False
    frozen = ox.TmaDescriptor.tiled(DEV.borrow(y, ox.f32), box=(4, 4))
    refused(ArgumentError, "OX5037", lambda: clear[2](ox.DescriptorTable([good, frozen])))


def test_fixes_fit_what_was_passed() -> None:
    x = np.zeros((8,), np.float32)
    assert "fix: rank=1" in refused(InputError, "OX5033", lambda: DEV.borrow(x, ox.f32, rank=True))  # type: ignore[call-overload]
    inside = np.zeros(65, np.uint8)[1:].view(np.float32)
    assert "fix: make a copy of it" in refused(InputError, "OX5038", lambda: DEV.borrow(inside, ox.f32))
    pairs = np.zeros(4, [("a", "f4"), ("b", "f4")])
    assert "np.ascontiguousarray(x['a'])" in refused(InputError, "OX5002", lambda: DEV.borrow(pairs, ox.f32))
    assert "x.astype(np.float64)" in refused(InputError, "OX5002", lambda: DEV.borrow(np.zeros(4, np.longdouble), ox.f64))


def test_what_was_lent_comes_back_as_the_same_memory() -> None:
    a = DEV.array(numbers())
    out = np.from_dlpack(a)
    back, part = DEV.borrow(out, ox.f32), DEV.borrow(out[8:, 4:], ox.f32)
    assert back.buffer is a.buffer
    assert part.buffer is a.buffer
    assert np.array_equal(part.numpy(), numbers()[8:, 4:])
    with pytest.raises(OxidecopyError, match="OX3204"):  # load from it, store to it, in tiles that do not match
        copy_pipeline()[2, 2](descriptor(a), back.T)
