"""Memory shared with torch, cupy, jax and numba: theirs borrowed, ours lent, nothing copied, in stream order, and given back."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import ArgumentError, InputError
from oxidecopy.host.device import Device
from tests.helpers.flat_memory import leaves_memory_flat
from tests.helpers.launching import copy_pipeline, descriptor, numbers

pytestmark = pytest.mark.gpu
BIG = (2048, 1024)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


@pytest.fixture
def jax() -> Any:
    found: Any = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in found.devices()):
        pytest.skip("jax has no GPU here")
    return found


@ox.pipeline(threads=32)
def rows(cta: ox.Cta, src: ox.TmaDescriptor[ox.bf16, ox.D4], out: ox.GlobalArray[ox.bf16, ox.D4]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    at = (cta.block_idx.z, cta.block_idx.y, cta.block_idx.x * 4, 0)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, at, token)
    full.wait(token)
    cta.store(out, tile, at)
    full.inval()


# ---- torch
def test_tensors_in_and_out(dev: Device, torch: Any) -> None:
    x = torch.from_numpy(numbers()).cuda()
    y = torch.zeros_like(x)
    src, out = dev.borrow(x, ox.f32, rank=2), dev.borrow(y, ox.f32, rank=2)
    assert src.buffer.address == x.data_ptr()
    copy_pipeline()[2, 2](descriptor(src), out)
    assert torch.equal(x, y)
    y += 1
    assert np.array_equal(out.numpy(), numbers() + 1)


def test_their_stream_fills_ours_copies(dev: Device, torch: Any) -> None:
    x = torch.zeros(BIG, device="cuda")
    out = torch.zeros_like(x)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    handle = stream.cuda_stream
    for n in range(5):
        with torch.cuda.stream(stream):
            x.copy_(torch.arange(x.numel(), device="cuda", dtype=torch.float32).reshape(BIG))
            for _ in range(20):
                x += n
        src, to = dev.borrow(x, ox.f32, rank=2, stream=handle), dev.borrow(out, ox.f32, rank=2, stream=handle)
        copy_pipeline()[64, 128].on(handle)(descriptor(src), to)
        with torch.cuda.stream(stream):
            total = (out - x).abs().sum()
        assert float(total) == 0.0


def test_a_default_launch_waits_for_their_stream(dev: Device, torch: Any) -> None:
    x, out = torch.zeros(BIG, device="cuda"), dev.zeros(BIG, ox.f32)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(200):
            x += 1
        src = dev.borrow(x, ox.f32, rank=2)  # torch makes the default stream wait for its current one
    copy_pipeline()[64, 128](descriptor(src), out)
    assert (out.numpy() == 200).all()


def test_bf16_bshd_as_bhsd(dev: Device, torch: Any) -> None:
    x = torch.randn(2, 8, 3, 8, device="cuda").to(torch.bfloat16)
    out = torch.zeros(2, 3, 8, 8, device="cuda", dtype=torch.bfloat16)
    for view in (dev.borrow(x.permute(0, 2, 1, 3), ox.bf16, rank=4), dev.borrow(x, ox.bf16, rank=4).permute(0, 2, 1, 3)):
        out.zero_()
        rows[2, 3, 2](ox.TmaDescriptor.tiled(view, box=(1, 1, 4, 8)), dev.borrow(out, ox.bf16, rank=4))
        assert torch.equal(out, x.permute(0, 2, 1, 3))
    back = torch.zeros_like(x)
    rows[2, 3, 2](
        ox.TmaDescriptor.tiled(dev.borrow(out, ox.bf16, rank=4), box=(1, 1, 4, 8)), dev.borrow(back.permute(0, 2, 1, 3), ox.bf16, rank=4)
    )
    assert torch.equal(back, x)


def test_broadcast_and_overlapping_loads(dev: Device, torch: Any) -> None:
    x = torch.randn(64, device="cuda").to(torch.bfloat16)
    line = dev.borrow(x, ox.bf16, rank=1)
    out = torch.zeros(2, 3, 8, 8, device="cuda", dtype=torch.bfloat16)
    to = dev.borrow(out, ox.bf16, rank=4)
    rows[2, 3, 2](ox.TmaDescriptor.tiled(line[8:16].broadcast_to((2, 3, 8, 8)), box=(1, 1, 4, 8)), to)
    assert torch.equal(out, x[8:16].expand(2, 3, 8, 8))
    rows[2, 3, 2](ox.TmaDescriptor.tiled(line.as_strided((2, 3, 4, 8), (0, 32, 16, 2)), box=(1, 1, 4, 8)), to)
    assert torch.equal(out[:, :, :4], x.as_strided((2, 3, 4, 8), (0, 16, 8, 1)))


def test_a_transposed_store(dev: Device, torch: Any) -> None:
    """Rows of the tile become columns: the innermost stride is not an element's."""
    out = torch.zeros(64, 32, device="cuda")
    x = dev.array(numbers(0, 32, 64))
    copy_pipeline()[4, 2](descriptor(x), dev.borrow(out, ox.f32, rank=2).T)
    assert np.array_equal(out.cpu().numpy(), numbers(0, 32, 64).T)


def test_a_pointer(dev: Device, torch: Any) -> None:
    x = torch.from_numpy(numbers()).cuda()
    strides = tuple(4 * s for s in x.stride())
    a = dev.borrow_pointer(x.data_ptr(), (32, 32), ox.f32, owner=x, strides_bytes=strides)
    b = dev.borrow_pointer(x.data_ptr() + 128, (31, 32), ox.f32, owner=x)
    del x
    gc.collect()
    torch.zeros(32, 32, device="cuda")  # would take its place
    assert np.array_equal(a.numpy(), numbers())
    assert np.array_equal(b.numpy(), numbers()[1:])
    with pytest.raises(ArgumentError) as caught:
        dev.borrow_pointer(numbers().ctypes.data, (4,), ox.f32, owner=a)
    assert caught.value.rules == ("OX5312",)


def test_what_torch_does_not_hand_out(dev: Device, torch: Any) -> None:
    with pytest.raises(InputError) as caught:
        dev.borrow(torch.zeros(4, device="cuda", requires_grad=True), ox.f32, rank=1)
    assert "detach" in caught.value.diagnostics[0].fix
    for wrong, rule in ((torch.zeros(4), "OX5031"), (torch.zeros(4, device="cuda", dtype=torch.float16), "OX5032")):
        with pytest.raises(InputError) as caught:
            dev.borrow(wrong, ox.f32, rank=1)
        assert caught.value.rules == (rule,)


def test_torch_takes_ours(dev: Device, torch: Any) -> None:
    src, a = dev.array(numbers()), dev.zeros((32, 32), ox.f32)
    t = torch.from_dlpack(a)
    assert t.data_ptr() == a.buffer.address
    copy_pipeline()[2, 2](descriptor(src), a)
    assert np.array_equal(t.cpu().numpy(), numbers())
    assert torch.equal(torch.from_dlpack(a.T[1:]), t.T[1:])
    assert torch.as_tensor(a, device="cuda").data_ptr() == t.data_ptr()
    t += 1
    torch.cuda.synchronize()
    assert np.array_equal(a.numpy(), numbers() + 1)
    del a
    gc.collect()
    dev.zeros((32, 32), ox.f32)  # would take its place
    assert np.array_equal(t.cpu().numpy(), numbers() + 1)
    half = torch.from_dlpack(dev.zeros((4, 8), ox.bf16))
    assert half.dtype == torch.bfloat16


def test_torch_waits_for_our_launches(dev: Device, torch: Any) -> None:
    out, x = dev.zeros(BIG, ox.f32), numbers(3, *BIG)
    src, stream = dev.array(x), ox.Stream(dev)
    launch = copy_pipeline()[64, 128].on(stream).prepare(descriptor(src), out)
    wanted = torch.from_numpy(x).cuda()
    other = torch.cuda.Stream()
    for _ in range(10):
        dev.engine.fill(out.buffer, 0, out.buffer.nbytes, 0)
        for _ in range(20):
            launch()
        with torch.cuda.stream(other):
            assert torch.equal(torch.from_dlpack(out), wanted)


def test_a_thousand_loans_leave_memory_flat(dev: Device, engine: CudaEngine, torch: Any) -> None:
    x = torch.zeros(BIG, device="cuda")

    def some(count: int) -> None:
        for _ in range(count):
            a = dev.zeros(BIG, ox.f32)
            t = torch.from_dlpack(a)
            b = dev.borrow(x, ox.f32, rank=2)
            copy_pipeline()[64, 128](descriptor(b), a)
            del a, b, t
        gc.collect()
        engine.synchronize()

    some(20)
    assert leaves_memory_flat(lambda: engine.context.memory_info()[0], lambda: some(1000))


# ---- cupy
def test_cupy_both_ways(dev: Device, cupy: Any) -> None:
    x, y = cupy.asarray(numbers()), cupy.zeros((32, 32), cupy.float32)
    copy_pipeline()[2, 2](descriptor(dev.borrow(x, ox.f32, rank=2)), dev.borrow(y, ox.f32, rank=2))
    assert bool((x == y).all())

    class Interface:
        __cuda_array_interface__ = x.T.__cuda_array_interface__

    theirs: Any = Interface()
    assert np.array_equal(dev.borrow(theirs, ox.f32, rank=2).numpy(), numbers().T)
    a = dev.array(numbers(5))
    for taken in (cupy.from_dlpack(a), cupy.asarray(a)):
        assert taken.data.ptr == a.buffer.address
        assert np.array_equal(cupy.asnumpy(taken), numbers(5))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        z = cupy.asarray(numbers(7)) + 1
        src = dev.borrow(z, ox.f32, rank=2, stream=stream.ptr)
    copy_pipeline()[2, 2].on(stream.ptr)(descriptor(src), a)
    assert np.array_equal(a.numpy(), numbers(7) + 1)


# ---- jax
def test_jax_both_ways(dev: Device, jax: Any) -> None:
    x = jax.numpy.asarray(numbers())
    src, out = dev.borrow(x, ox.f32, rank=2), dev.zeros((32, 32), ox.f32)
    copy_pipeline()[2, 2](descriptor(src), out)
    assert np.array_equal(out.numpy(), numbers())
    taken = jax.dlpack.from_dlpack(out)
    assert np.array_equal(np.asarray(taken + 1), numbers() + 1)
    del out
    gc.collect()
    assert np.array_equal(np.asarray(taken), numbers())


# ---- numba
def test_numba_both_ways(dev: Device) -> None:
    cuda: Any = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("numba has no GPU here")
    x, y = cuda.to_device(numbers()), cuda.to_device(np.zeros((32, 32), np.float32))
    src = dev.borrow(x, ox.f32, rank=2)
    assert src.buffer.address == x.__cuda_array_interface__["data"][0]
    copy_pipeline()[2, 2](descriptor(src), dev.borrow(y, ox.f32, rank=2))
    assert np.array_equal(y.copy_to_host(), numbers())
    a = dev.array(numbers(5))
    taken = cuda.as_cuda_array(a)
    assert taken.__cuda_array_interface__["data"][0] == a.buffer.address
    assert np.array_equal(taken.copy_to_host(), numbers(5))
    stream = cuda.stream()
    z = cuda.to_device(numbers(7), stream=stream)
    copy_pipeline()[2, 2].on(int(stream))(descriptor(dev.borrow(z, ox.f32, rank=2, stream=int(stream))), a)
    assert np.array_equal(a.numpy(), numbers(7))
    ox.copy(y, a)
    assert np.array_equal(y.copy_to_host(), numbers(7))
