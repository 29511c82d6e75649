"""`GlobalArray`: an array in device memory, with the element type and the shape in its type.

It holds no numbers itself: only where they lie, and the device and buffer that keep them alive. Which engine owns the memory is unknown
here; what is needed of one is the `Memory` protocol. numpy is imported by `numpy()`, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, final, overload

from typing_extensions import TypeVar

from oxidecopy.typed.dtypes import DType, f16, f32, f32_ftz, f64, i32, i64, tf32, tf32_ftz, u8, u16, u32, u64
from oxidecopy.typed.symbolic import Idx

if TYPE_CHECKING:
    import numpy as np

    from oxidecopy.isa.dtypes import DTypeInfo

DT = TypeVar("DT", bound=DType)
Sh_co = TypeVar("Sh_co", bound=tuple[Idx, ...], covariant=True)
_Sh = TypeVar("_Sh", bound=tuple[int, ...])


class Buffer(Protocol):
    """Device memory: `nbytes` bytes at `address`. It is freed when nothing holds it any more."""

    @property
    def address(self) -> int:
        """Device address of its first byte."""

    @property
    def nbytes(self) -> int:
        """Its size."""


class Memory(Protocol):
    """Reads device memory as raw bytes; `offset` counts from the start of `buffer`."""

    def read(self, buffer: Any, offset: int, nbytes: int) -> bytes:
        """A copy of the bytes."""


class Owner(Protocol):
    """The device an array lives on; `sm` is its compute capability, 90 for 9.0."""

    @property
    def name(self) -> str:
        """As in `Device.open`."""

    @property
    def sm(self) -> int:
        """Compute capability."""

    @property
    def engine(self) -> Memory:
        """Where its memory is read."""


@final
class GlobalArray(Generic[DT, Sh_co]):
    """An array in device memory; `dev.array` and `dev.empty` make one.

    Attributes:
        dtype: the element type, a class such as `ox.f32`.
        shape: extents in elements, outermost first.
        strides_bytes: bytes from one index to the next, for each dimension; larger than dense where rows are padded.
        buffer: the memory, which this array keeps alive.
        offset_bytes: where element 0 lies in the buffer.
        device: the device that owns the memory.
    """

    __slots__ = ("_dtype", "_shape", "buffer", "device", "offset_bytes", "strides_bytes")

    def __init__(
        self, *, dtype: type[DT], shape: Sh_co, strides_bytes: tuple[int, ...], buffer: Buffer, device: Owner, offset_bytes: int = 0
    ) -> None:
        self._dtype = dtype
        self._shape = shape
        self.strides_bytes = strides_bytes
        self.buffer = buffer
        self.device = device
        self.offset_bytes = offset_bytes

    @property
    def dtype(self) -> type[DT]:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> Sh_co:
        """Extents in elements, outermost first: integers on the host, symbols inside a pipeline."""
        return self._shape

    @property
    def sm(self) -> int:
        """Compute capability of its device, 90 for 9.0."""
        return self.device.sm

    def __repr__(self) -> str:
        return f"GlobalArray({self._dtype.__name__}, shape={self._shape}, strides_bytes={self.strides_bytes}, device={self.device.name!r})"

    @overload
    def numpy(self: GlobalArray[u8, _Sh]) -> np.ndarray[_Sh, np.dtype[np.uint8]]: ...
    @overload
    def numpy(self: GlobalArray[u16, _Sh]) -> np.ndarray[_Sh, np.dtype[np.uint16]]: ...
    @overload
    def numpy(self: GlobalArray[u32, _Sh]) -> np.ndarray[_Sh, np.dtype[np.uint32]]: ...
    @overload
    def numpy(self: GlobalArray[i32, _Sh]) -> np.ndarray[_Sh, np.dtype[np.int32]]: ...
    @overload
    def numpy(self: GlobalArray[u64, _Sh]) -> np.ndarray[_Sh, np.dtype[np.uint64]]: ...
    @overload
    def numpy(self: GlobalArray[i64, _Sh]) -> np.ndarray[_Sh, np.dtype[np.int64]]: ...
    @overload
    def numpy(self: GlobalArray[f16, _Sh]) -> np.ndarray[_Sh, np.dtype[np.float16]]: ...
    @overload
    def numpy(self: GlobalArray[f32, _Sh]) -> np.ndarray[_Sh, np.dtype[np.float32]]: ...
    @overload
    def numpy(self: GlobalArray[f64, _Sh]) -> np.ndarray[_Sh, np.dtype[np.float64]]: ...
    @overload
    def numpy(self: GlobalArray[tf32, _Sh]) -> np.ndarray[_Sh, np.dtype[np.float32]]: ...
    @overload
    def numpy(self: GlobalArray[f32_ftz, _Sh]) -> np.ndarray[_Sh, np.dtype[np.float32]]: ...
    @overload
    def numpy(self: GlobalArray[tf32_ftz, _Sh]) -> np.ndarray[_Sh, np.dtype[np.float32]]: ...
    @overload
    def numpy(self: GlobalArray[Any, _Sh]) -> np.ndarray[_Sh, np.dtype[Any]]: ...  # bf16 and fp8: numpy's types have no name for ml_dtypes
    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """A copy of its elements: a fresh, dense numpy array of its shape (of an ml_dtypes type for bf16 and fp8)."""
        import numpy as np

        shape: tuple[int, ...] = self._shape  # type: ignore[assignment]  # on the host extents are integers
        dtype = storage_dtype(self._dtype.info)
        raw = self.device.engine.read(self.buffer, self.offset_bytes, span_bytes(shape, self.strides_bytes, dtype.itemsize))
        return np.array(np.ndarray(shape, dtype, buffer=raw, strides=self.strides_bytes), order="C", copy=True)


def storage_dtype(info: DTypeInfo) -> np.dtype[Any]:
    """The numpy dtype that stores an element type; ml_dtypes has those that numpy lacks."""
    import numpy as np

    if info.numpy in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        import ml_dtypes

        scalar: type[Any] = getattr(ml_dtypes, info.numpy)
        return np.dtype(scalar)
    return np.dtype(info.numpy)


def span_bytes(shape: tuple[int, ...], strides_bytes: tuple[int, ...], element_bytes: int) -> int:
    """Bytes from the first byte of the first element to the last byte of the last one (no extent is 0)."""
    return sum((n - 1) * s for n, s in zip(shape, strides_bytes, strict=True)) + element_bytes
