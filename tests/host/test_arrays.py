"""Host arrays to device memory and back: layouts, bytes, and every refusal with its twin."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from oxidecopy.errors import InputError
from oxidecopy.host.arrays import INFERRED, PAD_BYTE, layout
from oxidecopy.typed import dtypes
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.global_array import span_bytes, storage_dtype
from tests.helpers.foreign import Producer
from tests.helpers.memory_engine import memory_device

_BYTE_TYPES = [
    t for t in vars(dtypes).values() if isinstance(t, type) and issubclass(t, DType) and "info" in t.__dict__ and t.info.bits % 8 == 0
]


def _rules(caught: pytest.ExceptionInfo[InputError]) -> tuple[str, ...]:
    assert all(d.got and d.required and d.fix and d.site is not None and d.site.file == __file__ for d in caught.value.diagnostics), (
        caught.value
    )
    return caught.value.rules


@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("shape", [(1,), (7,), (5, 3), (4, 1), (2, 3, 5), (2, 1, 3, 5), (1, 2, 1, 2, 9)])
@pytest.mark.parametrize("dtype", _BYTE_TYPES)
def test_round_trip_keeps_every_bit(dtype: type[DType], shape: tuple[int, ...], pad: bool) -> None:
    dev, _ = memory_device()
    storage = storage_dtype(dtype.info)
    raw = np.random.default_rng(1).integers(0, 256, (*shape[:-1], shape[-1] * storage.itemsize), np.uint8)
    x = raw.view(storage)
    a = dev.array(x, dtype, pad=pad)
    out: Any = a.numpy()
    assert (out.dtype, out.shape, out.flags.c_contiguous, out.flags.owndata, out.flags.writeable) == (storage, shape, True, True, True)
    assert (out.view(np.uint8) == raw).all()
    assert a.shape == shape
    assert a.dtype is dtype


def test_float_pad_layout() -> None:
    dev, engine = memory_device()
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    a = dev.array(x, pad=True)
    assert a.strides_bytes == (32, 4)
    rows = np.frombuffer(engine.buffers[0].data, np.uint8).reshape(3, 32)
    assert (rows[:, :20] == x.view(np.uint8)).all()
    assert (rows[:, 20:] == PAD_BYTE).all()
    assert dev.array(x).strides_bytes == (20, 4)


@pytest.mark.parametrize(
    ("shape", "dtype", "pad", "strides", "nbytes"),
    [
        ((50,), dtypes.f32, True, (4,), 200),
        ((100, 50), dtypes.f32, False, (200, 4), 20_000),
        ((100, 50), dtypes.f32, True, (208, 4), 20_800),
        ((100, 52), dtypes.f32, True, (208, 4), 20_800),
        ((2, 3, 5), dtypes.f16, True, (48, 16, 2), 96),
        ((2, 3, 5), dtypes.f16, False, (30, 10, 2), 60),
        ((1 << 40, 1 << 40), dtypes.f64, False, (1 << 43, 8), 1 << 83),
        ((3, 40), dtypes.u4x16_align8b, False, (20, 1), 60),
        ((3, 40), dtypes.u4x16_align8b, True, (32, 1), 96),
        ((3, 128), dtypes.u4x16_align16b, True, (64, 1), 192),
        ((3, 128), dtypes.u6x16_align16b, True, (96, 1), 288),
        ((2, 3, 4), dtypes.u6x16_align16b, True, (96, 32, 1), 192),
    ],
)
def test_layout(shape: tuple[int, ...], dtype: type[DType], pad: bool, strides: tuple[int, ...], nbytes: int) -> None:
    made = layout(shape, dtype.info, pad=pad)
    assert (made.strides_bytes, made.nbytes) == (strides, nbytes)


def test_span_ends_at_the_last_element() -> None:
    assert span_bytes((3, 5), (32, 4), 4) == 2 * 32 + 5 * 4
    assert span_bytes((1,), (4,), 4) == 4


def test_host_strides_do_not_matter() -> None:
    dev, _ = memory_device()
    x = np.arange(24, dtype=np.int32).reshape(4, 6)
    for view in (x[::-1], x[:, ::-2], x.T, np.asfortranarray(x), np.broadcast_to(x[0], (3, 6)), x[1:3, 2:5]):
        assert (dev.array(view).numpy() == view).all()
        assert (dev.array(view, pad=True).numpy() == view).all()


def test_result_is_a_copy() -> None:
    dev, _ = memory_device()
    a = dev.array(np.zeros(4, np.float32))
    a.numpy()[:] = 7
    assert (a.numpy() == 0).all()


@pytest.mark.parametrize("name", INFERRED)
def test_dtype_is_inferred_where_static_types_agree(name: str) -> None:
    dev, _ = memory_device()
    assert dev.array(np.zeros(8, name)).dtype is INFERRED[name]


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        (np.zeros(8, ml_dtypes.bfloat16), dtypes.bf16),
        (np.zeros(8, "V2"), dtypes.bf16),
        (np.zeros(8, ml_dtypes.float8_e4m3fn), dtypes.e4m3),
        (np.zeros(8, np.uint8), dtypes.e4m3),
        (np.zeros(8, "V1"), dtypes.e5m2),
        (np.zeros(8, np.float32), dtypes.tf32),
        (np.zeros(8, np.float32), dtypes.f32_ftz),
    ],
)
def test_dtype_named(x: np.ndarray[Any, np.dtype[Any]], dtype: type[DType]) -> None:
    dev, _ = memory_device()
    assert dev.array(x, dtype).numpy().dtype == storage_dtype(dtype.info)


@pytest.mark.parametrize(
    ("x", "dtype", "rule", "words"),
    [
        ([1.0], None, "OX5001", ("list", "np.asarray")),
        (Producer(0x7000, (4,)), None, "OX5001", ("Producer", "dev.borrow(x, ox.f32, rank=")),
        (np.ma.masked_array(np.zeros(4, np.float32)), None, "OX5001", ("MaskedArray",)),
        (np.zeros(8, np.complex64), None, "OX5002", ("complex64", "x.view(np.float32)")),
        (np.zeros(8, np.int8), None, "OX5002", ("int8", "x.view(np.uint8)")),
        (np.zeros(8, bool), None, "OX5002", ("bool", "x.view(np.uint8)")),
        (np.zeros(8, "U4"), None, "OX5002", ("<U4",)),
        (np.zeros(8, "M8[s]"), None, "OX5002", ("datetime64",)),
        (np.array([None, 1]), None, "OX5002", ("object",)),
        (np.zeros(8, [("a", "f4"), ("b", "f4")]), None, "OX5002", ("'a'",)),
        (np.zeros(8, "V4"), dtypes.f32, "OX5002", ("V4",)),
        (np.zeros(8, ml_dtypes.float8_e5m2fnuz), None, "OX5002", ("fnuz",)),
        (np.zeros(8, ml_dtypes.bfloat16), None, "OX5003", ("bfloat16", "dev.array(x, ox.bf16)")),
        (np.zeros(8, "V2"), None, "OX5003", ("ox.bf16",)),
        (np.zeros(8, np.float64), dtypes.f32, "OX5004", ("float64", "float32", "x.astype(np.float32)")),
        (np.zeros(8, np.float32), dtypes.bf16, "OX5004", ("x.astype(ml_dtypes.bfloat16)",)),
        (np.zeros(8, "V1"), dtypes.bf16, "OX5004", ("V1",)),
        (np.zeros(8, np.uint8), dtypes.bf16, "OX5004", ("uint8",)),
        (np.zeros(8, np.dtype(np.float32).newbyteorder()), None, "OX5005", ('newbyteorder("=")',)),
        (np.zeros((3, 0), np.float32), None, "OX5006", ("(3, 0)", "dimension 1")),
        (np.array(1, np.float32), None, "OX5007", ("rank 0", "x.reshape(1)")),
        (np.zeros((1,) * 6, np.float32), None, "OX5007", ("rank 6", "1 to 5")),
        (np.zeros(8, np.float32), np.float32, "OX5008", ("float32", "ox.f32")),
        (np.zeros(8, np.float32), "float32", "OX5008", ("ox.f32",)),
        (np.zeros(8, np.float32), "f32", "OX5008", ("ox.f32",)),
        (np.zeros(8, np.float32), float, "OX5008", ("ox.f32",)),
        (np.zeros(8, np.float32), dtypes.HasAdd, "OX5008", ("HasAdd",)),
        (np.zeros(8, np.uint8), dtypes.u4x16_align8b, "OX5010", ("9.0", "10.0 or newer")),
    ],
)
def test_refused(x: Any, dtype: Any, rule: str, words: tuple[str, ...]) -> None:
    dev, engine = memory_device()
    with pytest.raises(InputError) as caught:
        dev.array(x, dtype)
    assert _rules(caught) == (rule,)
    assert not engine.buffers
    for word in words:
        assert word in str(caught.value)


def test_all_faults_of_an_array_at_once() -> None:
    dev, _ = memory_device()
    with pytest.raises(InputError) as caught:
        dev.array(np.zeros((0, 1, 1, 1, 1, 1), complex))
    assert _rules(caught) == ("OX5007", "OX5006", "OX5002")


@pytest.mark.parametrize(
    ("shape", "rule", "word"),
    [
        (64, "OX5009", "(64,)"),
        ([4, 4], "OX5009", "list"),
        ((4.0, 4), "OX5009", "entry 0 is 4.0"),
        ((True, 4), "OX5009", "entry 0 is True"),
        ((-1, 4), "OX5009", "entry 0 is -1"),
        ((0, 4), "OX5006", "dimension 0"),
        ((), "OX5007", "rank 0"),
        ((1,) * 6, "OX5007", "rank 6"),
        ((1 << 40, 1 << 40), "OX5011", "4,835,703,278,458,516,698,824,704 bytes"),
    ],
)
def test_shapes_refused(shape: Any, rule: str, word: str) -> None:
    dev, engine = memory_device()
    with pytest.raises(InputError) as caught:
        dev.empty(shape, dtypes.f32)
    assert _rules(caught) == (rule,)
    assert word in str(caught.value)
    assert not engine.buffers


def test_empty_zeros_and_like() -> None:
    dev, engine = memory_device()
    a = dev.empty((3, 5), dtypes.f32, pad=True)
    b = dev.empty_like(a)
    assert (b.dtype, b.shape, b.strides_bytes, engine.buffers[1].nbytes) == (dtypes.f32, (3, 5), (32, 4), 96)
    assert engine.buffers[1].data == b"\xa5" * 96
    assert b.buffer is not a.buffer
    assert (dev.zeros((3, 5), dtypes.bf16).numpy() == 0).all()
    three: Any = np.int64(3)
    assert dev.empty((three, 5), dtypes.u8).shape == (3, 5)


def test_empty_like_takes_a_device_array() -> None:
    dev, _ = memory_device()
    with pytest.raises(InputError) as caught:
        dev.empty_like(np.zeros(4))  # type: ignore[arg-type]  # the mistake
    assert _rules(caught) == ("OX5015",)


def test_engine_out_of_memory_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    dev, engine = memory_device()

    def none_left(_: object, nbytes: int) -> None:
        raise MemoryError(nbytes)

    monkeypatch.setattr(type(engine), "allocate", none_left)
    with pytest.raises(InputError) as caught:
        dev.empty((4,), dtypes.f32)
    assert _rules(caught) == ("OX5011",)
