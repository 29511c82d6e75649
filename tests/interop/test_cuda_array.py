"""The CUDA array interface: what is written is read."""

from __future__ import annotations

from typing import Any

import pytest

from oxidecopy.errors import InputError
from oxidecopy.interop import cuda_array
from oxidecopy.interop.foreign import Foreign
from tests.helpers.foreign import Interface


class Speaker:
    def __init__(self, said: dict[str, object]) -> None:
        self.__cuda_array_interface__: dict[str, Any] = said


@pytest.mark.parametrize(
    ("shape", "strides", "element", "size"),
    [
        ((2, 3), (12, 4), "float32", 4),
        ((2, 3), (4, 8), "float32", 4),
        ((5,), (2,), "float16", 2),
        ((4, 4), (0, 1), "uint8", 1),
        ((1 << 40, 2), (16, 8), "int64", 8),
    ],
)
@pytest.mark.parametrize(("readonly", "stream"), [(False, None), (True, 1), (False, 0x5500)])
def test_what_is_written_is_read(
    shape: tuple[int, ...], strides: tuple[int, ...], element: str, size: int, readonly: bool, stream: int | None
) -> None:
    wanted = Foreign(
        address=0x7000, shape=shape, strides_bytes=strides, element=element, element_bytes=size, readonly=readonly, keep=None, stream=stream
    )
    said = cuda_array.written(wanted)
    assert (said["version"], said["strides"] is None) == (3, strides in ((12, 4), (2,), (16, 8)))
    found = cuda_array.read(Speaker(said))
    for field in ("address", "shape", "strides_bytes", "element", "element_bytes", "readonly", "stream"):
        assert getattr(found, field) == getattr(wanted, field)


def test_words_for_types() -> None:
    assert cuda_array.has_typestr("float64")
    assert not cuda_array.has_typestr("bfloat16")
    assert not cuda_array.has_typestr("float8_e4m3fn")


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_versions(version: int) -> None:
    assert cuda_array.read(Interface(0x7000, (4,), version=version)).strides_bytes == (4,)


@pytest.mark.parametrize(
    "more", [{"version": -1}, {"version": 4}, {"stream": True}, {"stream": -1}, {"typestr": "float32"}, {"shape": (2.0,)}]
)
def test_what_means_nothing(more: dict[str, Any]) -> None:
    said = Interface(0x7000, (4,))
    said.said.update(more)
    with pytest.raises(InputError) as caught:
        cuda_array.read(said)
    assert caught.value.rules == ("OX5035",)
