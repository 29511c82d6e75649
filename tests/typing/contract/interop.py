"""Memory of other libraries, and views: element type and rank are known to the checkers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

import oxidecopy as ox

Out2 = ox.GlobalArray[ox.f32, ox.D2]
Out3 = ox.GlobalArray[ox.f32, ox.D3]


class Tensor:
    """As torch's, jax's and cupy's."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise NotImplementedError

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> CapsuleType:
        raise NotImplementedError


class Array:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise NotImplementedError


@ox.pipeline(threads=128)
def flat(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: Out2) -> None: ...


@ox.pipeline(threads=128)
def deep(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D3], out: Out3) -> None: ...


def by_interface(dev: ox.Device, c: Array, stream: ox.Stream) -> Out3:
    return dev.borrow(c, ox.f32, rank=3, stream=stream)


def borrowed(dev: ox.Device, t: Tensor, cube: Tensor, half: Tensor, x: npt.NDArray[np.float32], stream: ox.Stream) -> None:
    a = dev.borrow(t, ox.f32, rank=2)
    b = dev.borrow(cube, ox.f32, rank=3, stream=stream)
    h = dev.borrow(half, ox.f16, rank=2)
    n = dev.borrow(x, ox.f32)
    at = x.ctypes.data
    p = dev.borrow_pointer(at, (4, 8), ox.f32, owner=x, strides_bytes=(32, 4))
    again = dev.borrow(a, ox.f32, rank=2)
    d = ox.TmaDescriptor.tiled(a, box=(16, 16))
    flat[1](d, n)
    flat[1](d, p)
    flat[1](d, again)
    deep[1](ox.TmaDescriptor.tiled(b, box=(1, 16, 16)), b)
    flat[1](d, b)  # E rank
    flat[1](d, h)  # E dtype
    deep[1](ox.TmaDescriptor.tiled(a, box=(1, 16, 16)), b)  # E rank of box
    dev.borrow(t, ox.f32)  # E rank is unknown
    dev.borrow(t, ox.f32, rank=6)  # E no such rank
    dev.borrow(t, np.float32, rank=2)  # E numpy dtype instead of ox's
    dev.borrow([1.0], ox.f32, rank=1)  # E shares no memory
    dev.borrow(t, ox.f32, rank=2, stream="main")  # E no stream
    dev.borrow_pointer(at, (4, 8), ox.f32)  # E no owner
    dev.borrow_pointer("0x7000", (4, 8), ox.f32, owner=x)  # E no address
    dev.borrow_pointer(at, (4, 8), ox.f32, owner=x, strides_bytes=(32.0, 4))  # E float stride


def viewed(a: Out2, b: Out3, line: ox.GlobalArray[ox.f32, ox.D1], d: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    flat[1](d, a.permute(1, 0))
    flat[1](d, a.T)
    flat[1](d, a[1:, ::2])
    flat[1](d, a[..., 4:])
    flat[1](d, b.select(0, 0))
    flat[1](d, line.broadcast_to((4, 512)))
    flat[1](d, line.as_strided((4, 8), (16, 4), offset_bytes=16))
    deep[1](ox.TmaDescriptor.tiled(b.permute(1, 0, 2), box=(1, 16, 16)), b)
    flat[1](d, b.permute(1, 0, 2))  # E rank
    flat[1](d, b[0:1])  # E rank
    flat[1](d, a.select(0, 1))  # E rank
    flat[1](d, a.broadcast_to((2, 128, 512)))  # E rank
    flat[1](d, a.as_strided((4,), (4,)))  # E rank
    line.select(0, 0)  # E nothing would be left
    _ = a[0]  # E an index is no slice
    a.permute("x", "y")  # E axes
    a.broadcast_to([4, 8])  # E list for a shape
    a.as_strided((4, 8), 4)  # E one stride for two dimensions


def lent(a: Out2) -> None:
    _x: CapsuleType = a.__dlpack__(stream=1, max_version=(1, 0))
    _d: tuple[int, int] = a.__dlpack_device__()
    _y: npt.NDArray[Any] = np.from_dlpack(a)
    a.__dlpack__(stream="main")  # E no stream
