"""Capsules by themselves: what is read is what was written, and numpy's own are read as well."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import InputError
from oxidecopy.interop import dlpack
from oxidecopy.interop.dlpack import Where
from oxidecopy.interop.foreign import Foreign, dense_strides
from oxidecopy.oneliners.operands import opened
from tests.helpers.foreign import Producer


class Speaker:
    """Hands out one capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule


class Owner:
    """Something that can be seen to go."""


def lent(**changes: Any) -> Foreign:
    shape = changes.pop("shape", (2, 3))
    fields: dict[str, Any] = {
        "address": 0x1000,
        "shape": shape,
        "strides_bytes": dense_strides(shape, 4),
        "element": "float32",
        "element_bytes": 4,
        "readonly": False,
        "keep": None,
    }
    return Foreign(**{**fields, **changes})


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shape": (5,)},
        {"shape": (1, 1, 1, 1, 1)},
        {"shape": (1 << 40, 2), "strides_bytes": (1 << 41, 4)},
        {"strides_bytes": (0, 4)},
        {"element": "bfloat16", "element_bytes": 2, "strides_bytes": (2, 4)},
        {"element": "float8_e5m2", "element_bytes": 1, "strides_bytes": (3, 1)},
    ],
    ids=str,
)
def test_what_is_written_is_read(version: tuple[int, int] | None, changes: dict[str, Any]) -> None:
    wanted = lent(**changes)
    found = dlpack.read(Speaker(dlpack.capsule_of(wanted, Where(1, 0), version)), stream=None)
    for field in ("address", "shape", "strides_bytes", "element", "element_bytes", "readonly"):
        assert getattr(found, field) == getattr(wanted, field)


def test_read_only_is_said_from_version_1_on() -> None:
    frozen = lent(readonly=True)
    assert dlpack.read(Speaker(dlpack.capsule_of(frozen, Where(1, 0), (1, 0))), stream=None).readonly
    assert not dlpack.read(Speaker(dlpack.capsule_of(frozen, Where(1, 0), None)), stream=None).readonly


@pytest.mark.parametrize("x", [np.zeros((3, 4), np.float32), np.zeros((3, 8), np.uint16)[:, ::2], np.zeros(4, np.int64).reshape(1, 4)])
def test_numpys_own(x: Any) -> None:
    found = dlpack.read(x, stream=None)
    assert (found.address, found.shape, found.element) == (x.ctypes.data, x.shape, x.dtype.name)
    assert [s for s, n in zip(found.strides_bytes, x.shape, strict=True) if n > 1] == [
        s for s, n in zip(x.strides, x.shape, strict=True) if n > 1
    ]


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_keeps_the_owner(version: tuple[int, int] | None) -> None:
    owner = Owner()
    seen = weakref.ref(owner)
    capsule = dlpack.capsule_of(lent(keep=owner), Where(1, 0), version)
    del owner
    gc.collect()
    assert seen() is not None
    del capsule
    gc.collect()
    assert seen() is None


def test_an_error_on_its_way_survives_the_end_of_a_capsule() -> None:
    """What frees it may be called in the middle of an error: here, while a call is given up."""
    owner = Owner()
    seen = weakref.ref(owner)
    with pytest.raises(ZeroDivisionError):
        id((dlpack.capsule_of(lent(keep=owner), Where(1, 0), (1, 0)), 1 / 0))
    del owner
    gc.collect()
    assert seen() is None


class Negated(Speaker):
    """As torch's x.conj().imag: the capsule says nothing of the signs."""

    def is_neg(self) -> bool:
        return True


def test_memory_that_holds_the_negatives_is_refused() -> None:
    x = np.ones(4, np.float32)
    assert dlpack.read(Speaker(x.__dlpack__()), stream=None).shape == (4,)
    with pytest.raises(InputError) as caught:
        dlpack.read(Negated(x.__dlpack__()), stream=None)
    assert caught.value.rules == ("OX5035",)
    assert "resolve_neg" in str(caught.value)


def test_devices() -> None:
    assert str(Where(2, 3)) == "a GPU's memory, device 3"
    assert str(Where(1, 0)) == "host memory"
    assert str(Where(14, 2)) == "device type 14, device 2"
    assert dlpack.where(Producer(0x1000, (1,), device=(2, 7))) == (2, 7)


# ---- tensors of torch in host memory
class Tensor:
    """As much of torch's as is asked for: a view of numpy's memory."""

    is_cuda = is_sparse = requires_grad = False

    def __init__(self, view: np.ndarray[Any, Any], whole: np.ndarray[Any, Any]) -> None:
        self.view, self.shape = view, view.shape
        self.storage = SimpleNamespace(data_ptr=lambda: whole.ctypes.data, nbytes=lambda: whole.nbytes)

    def untyped_storage(self) -> Any:
        return self.storage

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.view.__dlpack_device__()

    def __dlpack__(self, **more: Any) -> Any:
        return self.view.__dlpack__(**more)


Tensor.__module__ = "torch"


@pytest.mark.parametrize("named", [True, False])
def test_a_view_of_a_tensor_is_part_of_its_memory(named: bool) -> None:
    """It begins between multiples of 16 bytes: loads begin before it, where its tensor's memory is known to be."""
    whole = np.arange(70, dtype=np.float32)
    view: Any = Tensor(whole[1:61].reshape(6, 10), whole)
    out = np.zeros((6, 10), np.float32)
    ox.copy(out, opened("sim").borrow(view, ox.f32, rank=2) if named else view)
    assert np.array_equal(out, view.view)
