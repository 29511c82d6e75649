"""`GlobalArray`: an array in device memory, with the element type and the shape in its type.

It holds no numbers itself: only where they lie, and the device and buffer that keep them alive. Which engine owns the memory is unknown
here; what is needed of one is the `Memory` protocol, and to hand memory to other libraries the `Lender` protocol. numpy is imported by
`numpy()`, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, final, overload, runtime_checkable

from typing_extensions import CapsuleType, TypeVar

from oxidecopy.errors import ExportError
from oxidecopy.program.program import Edge
from oxidecopy.typed.dtypes import (
    DType,
    Packed,
    f16,
    f32,
    f32_ftz,
    f64,
    i32,
    i64,
    tf32,
    tf32_ftz,
    u4x16_align8b,
    u4x16_align16b,
    u6x16_align16b,
    u8,
    u16,
    u32,
    u64,
)
from oxidecopy.typed.geometry import D2, D3, D4, D5
from oxidecopy.typed.packed import bytes_as, refuse_view, require_packed, unpack
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.sites import at_the_users_line
from oxidecopy.typed.symbolic import Idx
from oxidecopy.typed.views import Rows, View, overlaps_itself

if TYPE_CHECKING:
    from types import EllipsisType

    import numpy as np

    from oxidecopy.isa.dtypes import DTypeInfo

DT = TypeVar("DT", bound=DType)
Sh_co = TypeVar("Sh_co", bound=tuple[Idx, ...], covariant=True)
_Sh = TypeVar("_Sh", bound=tuple[int, ...])
_D2 = TypeVar("_D2", bound=DType)
_P = TypeVar("_P", bound=Packed)


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


@runtime_checkable
class Lender(Protocol):
    """A device that hands its arrays to other libraries. Any: its arrays are of every type."""

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """DLPack's type and number of the device."""

    def lend_dlpack(
        self,
        a: GlobalArray[Any, Any],
        *,
        stream: int | None,
        max_version: tuple[int, int] | None,
        dl_device: tuple[int, int] | None,
        copy: bool | None,
    ) -> CapsuleType:
        """As `__dlpack__`."""

    def lend_cuda_array(self, a: GlobalArray[Any, Any]) -> dict[str, object]:
        """As `__cuda_array_interface__`; raises AttributeError where it has none."""


@final
class GlobalArray(Generic[DT, Sh_co]):
    """An array in device memory: `dev.array` and `dev.empty` make one, `dev.borrow` makes one of another library's memory.

    Views (`permute`, `T`, slices, `select`, `broadcast_to`, `as_strided`) are arrays over the same memory. Other libraries take an array
    without a copy by `__dlpack__`, or `__cuda_array_interface__`.

    Attributes:
        dtype: the element type, a class such as `ox.f32`.
        shape: extents in elements, outermost first.
        strides_bytes: bytes from one index to the next, for each dimension; larger than dense where rows are padded. Of packed elements
            the last is 1: their row is so many bytes.
        buffer: the memory, which this array keeps alive.
        offset_bytes: where element 0 lies in the buffer.
        device: the device that owns the memory.
        readonly: nothing may write to it: its owner said so.
    """

    __slots__ = ("_dtype", "_rows", "_shape", "buffer", "device", "mark", "offset_bytes", "readonly", "strides_bytes")

    def __init__(
        self,
        *,
        dtype: type[DT],
        shape: Sh_co,
        strides_bytes: tuple[int, ...],
        buffer: Buffer,
        device: Owner,
        offset_bytes: int = 0,
        readonly: bool = False,
        rows: Rows | None = None,
    ) -> None:
        self._dtype = dtype
        self._shape = shape
        self.strides_bytes = strides_bytes
        self.buffer = buffer
        self.device = device
        self.offset_bytes = offset_bytes
        self.readonly = readonly
        self._rows = rows  # of the memory it was made with; None where another library laid it out
        self.mark: Any = None  # what who tells arrays apart again and again keeps of this one

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

    def __reduce__(self) -> NoReturn:
        refuse(
            ExportError,
            "OX5039",
            "an array is neither copied nor pickled: it is memory of a device in this process",
            got=repr(self),
            required="a copy that is asked for",
            fix="a.numpy() is a copy that can be pickled; dev.array makes an array of it",
        )

    @property
    def rows(self) -> Rows | None:
        """How its memory was laid out when it was made: what lies behind its rows is told by that. None where another library did it."""
        return self._rows

    @property
    def overlapping(self) -> bool:
        """Several of its elements share memory, as in a broadcast array: it can be read, not stored to."""
        return overlaps_itself(*self._place())

    # ---- views
    def permute(self, *axes: int) -> GlobalArray[DT, Sh_co]:
        """Its dimensions in another order: dimension i of the view is `axes[i]`. BSHD as BHSD is `a.permute(0, 2, 1, 3)`."""
        return self._view(self._as_view().permuted(axes))

    @property
    def T(self) -> GlobalArray[DT, Sh_co]:  # noqa: N802  # numpy's name for it
        """Its dimensions in reverse order."""
        return self._view(self._as_view().permuted(range(len(self.strides_bytes))[::-1]))

    def __getitem__(self, key: slice | EllipsisType | tuple[slice | EllipsisType, ...], /) -> GlobalArray[DT, Sh_co]:
        """A part of it, of the same rank: a slice with a positive step for each dimension."""
        return self._view(self._as_view().sliced(key))

    @overload
    def select(self: GlobalArray[DT, D2], axis: int, index: int, /) -> GlobalArray[DT, tuple[int]]: ...
    @overload
    def select(self: GlobalArray[DT, D3], axis: int, index: int, /) -> GlobalArray[DT, tuple[int, int]]: ...
    @overload
    def select(self: GlobalArray[DT, D4], axis: int, index: int, /) -> GlobalArray[DT, tuple[int, int, int]]: ...
    @overload
    def select(self: GlobalArray[DT, D5], axis: int, index: int, /) -> GlobalArray[DT, tuple[int, int, int, int]]: ...
    def select(self, axis: int, index: int, /) -> GlobalArray[DT, Any]:
        """Without dimension `axis`, at `index` of it."""
        return self._view(self._as_view().selected(axis, index))

    def broadcast_to(self, shape: _Sh, /) -> GlobalArray[DT, _Sh]:
        """Repeated, as numpy's: dimensions of one element become longer, leading ones are added. Repeated elements are the same memory."""
        return self._view(self._as_view().broadcast(shape))

    def as_strided(self, shape: _Sh, strides_bytes: tuple[int, ...], *, offset_bytes: int = 0) -> GlobalArray[DT, _Sh]:
        """Any shape over its memory.

        Args:
            shape: extents in elements.
            strides_bytes: bytes from one index to the next, for each dimension; 0 and overlapping ones are allowed.
            offset_bytes: where the view's first element lies, counted from this array's first one.

        Raises:
            UsageError: when the view would reach beyond what this array spans, or its elements would not be aligned.
        """
        return self._view(self._as_view().strided(shape, strides_bytes, offset_bytes))

    # ---- packed elements
    def packed(self: GlobalArray[u8, Sh_co], dtype: type[_P], /) -> GlobalArray[_P, Sh_co]:
        """The bytes of its rows as packed elements of 4 or 6 bits, the lowest bits first: no element is converted.

        Views of bytes, and bytes of other libraries, become arrays of packed elements so.

        Raises:
            UsageError: when rows are no whole groups of elements, or their bytes do not follow each other.
        """
        return self._reread(dtype, bytes_as(dtype, self._dtype, *self._place()[:2]))

    @property
    def bytes(self: GlobalArray[_P, Sh_co]) -> GlobalArray[u8, Sh_co]:
        """The bytes that packed elements lie in, as an array of its own over the same memory."""
        require_packed(self._dtype, "`bytes`")
        return self._reread(u8, self._place()[0])

    def over(self, dtype: type[_D2], shape: _Sh, strides_bytes: tuple[int, ...], offset_bytes: int = 0) -> GlobalArray[_D2, _Sh]:
        """Elements of any type over its memory, for who knows what lies there: nothing is looked at before it is launched with.

        Args:
            dtype: the element type.
            shape: extents in elements.
            strides_bytes: bytes from one index to the next, for each dimension.
            offset_bytes: where the first element lies, counted from this array's first one; it may be before it.
        """
        return GlobalArray(
            dtype=dtype,
            shape=shape,
            strides_bytes=strides_bytes,
            buffer=self.buffer,
            device=self.device,
            offset_bytes=self.offset_bytes + offset_bytes,
            readonly=self.readonly,
            rows=self._rows,
        )

    def _reread(self, dtype: type[_D2], shape: tuple[int, ...]) -> GlobalArray[_D2, Any]:
        """The same memory as elements of another type."""
        return GlobalArray(
            dtype=dtype,
            shape=shape,
            strides_bytes=self.strides_bytes,
            buffer=self.buffer,
            device=self.device,
            offset_bytes=self.offset_bytes,
            readonly=self.readonly,
            rows=self._rows,
        )

    def _place(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Extents, strides and the size of an element; packed ones as the bytes that they lie in."""
        shape: tuple[int, ...] = self._shape  # type: ignore[assignment]  # on the host extents are integers
        info = self._dtype.info
        return (
            ((*shape[:-1], info.row_bytes(shape[-1])), self.strides_bytes, 1) if info.packed else (shape, self.strides_bytes, info.nbytes)
        )

    def _as_view(self) -> View:
        refuse_view(self._dtype)
        shape, strides, size = self._place()
        return View(shape=shape, strides_bytes=strides, element_bytes=size)

    def _view(self, made: View) -> GlobalArray[DT, Any]:
        return GlobalArray(
            dtype=self._dtype,
            shape=made.shape,
            strides_bytes=made.strides_bytes,
            buffer=self.buffer,
            device=self.device,
            offset_bytes=self.offset_bytes + made.offset_bytes,
            readonly=self.readonly,
            rows=self._rows,
        )

    def reached_by(self, device: Owner, buffer: Buffer, offset_bytes: int) -> GlobalArray[DT, Sh_co]:
        """The same array on a device that knows its buffer as part of `buffer`, from `offset_bytes` on: use `Device.peer`."""
        return GlobalArray(
            dtype=self._dtype,
            shape=self._shape,
            strides_bytes=self.strides_bytes,
            buffer=buffer,
            device=device,
            offset_bytes=self.offset_bytes + offset_bytes,
            readonly=self.readonly,
            rows=None if offset_bytes else self._rows,
        )

    def behind_rows(self, nbytes: int) -> Edge:
        """What lies in the `nbytes` bytes behind each of its rows, where stores through a descriptor may write."""
        shape, strides, size = self._place()
        if self._rows is None:
            return "padding" if not nbytes else "unknown"
        end = self.offset_bytes + shape[-1] * size
        return self._rows.behind(end, end + nbytes, [s for n, s in zip(shape[:-1], strides[:-1], strict=True) if n > 1])

    # ---- other libraries
    def __dlpack_device__(self) -> tuple[int, int]:
        """Where it lies, in DLPack's words: (1, 0) for the simulator's memory, (2, n) for GPU n."""
        return self._lender().dlpack_device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Its memory for another library, without a copy: `torch.from_dlpack(a)`, `cupy.from_dlpack(a)`, `np.from_dlpack(a)`.

        The memory lives until the library lets go of it.

        Args:
            stream: the stream that it is used on first, which then waits for the launches that use it now: None or 1 for the default
                stream, 2 for the per-thread one, -1 for no waiting, else a handle.
            max_version: the newest version of DLPack that the library knows; None for those before 1.0.
            dl_device: where it is wanted: where it is, or None.
            copy: True is refused: it is never copied.

        Raises:
            ExportError: for what DLPack cannot say, or what the library cannot be told.
        """
        return self._lender().lend_dlpack(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """Version 3, for arrays on a GPU; others do not have it. Its `stream` waits for the launches that use the memory now."""
        if not isinstance(self.device, Lender):
            raise AttributeError(f"{self.device.name} has no memory of CUDA's")  # noqa: TRY004  # as an object without it does
        return self.device.lend_cuda_array(self)

    if not TYPE_CHECKING:  # a method that never returns would fit what numpy's types take

        def __array__(self, *_: object, **__: object) -> NoReturn:
            """Refused: numpy would copy unseen, or make an object of it."""
            refuse(
                ExportError,
                "OX5039",
                "an array is no numpy array, and is not turned into one unseen",
                got=repr(self),
                required="a copy, or a loan, that is asked for",
                fix="a.numpy() copies it; np.from_dlpack(a) shares the memory, on the simulator",
            )

    def _lender(self) -> Lender:
        if isinstance(self.device, Lender):
            return self.device
        refuse(
            ExportError,
            "OX5039",
            "this device does not hand out its memory",
            got=self.device.name,
            required="a simulator or a GPU",
            fix="np.asarray(a.numpy()) copies it",
        )

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
    def numpy(self: GlobalArray[u4x16_align8b, _Sh]) -> np.ndarray[_Sh, np.dtype[np.uint8]]: ...
    @overload
    def numpy(self: GlobalArray[u4x16_align16b, _Sh]) -> np.ndarray[_Sh, np.dtype[np.uint8]]: ...
    @overload
    def numpy(self: GlobalArray[u6x16_align16b, _Sh]) -> np.ndarray[_Sh, np.dtype[np.uint8]]: ...
    @overload
    def numpy(self: GlobalArray[Any, _Sh]) -> np.ndarray[_Sh, np.dtype[Any]]: ...  # bf16 and fp8: numpy's types have no name for ml_dtypes
    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """A copy of its elements: a fresh, dense numpy array of its shape (of an ml_dtypes type for bf16 and fp8).

        Of packed types one value of 4 or 6 bits in each uint8.
        """
        import numpy as np

        info, (shape, strides, _) = self._dtype.info, self._place()
        dtype = storage_dtype(info)
        with at_the_users_line():
            raw = self.device.engine.read(self.buffer, self.offset_bytes, span_bytes(shape, strides, dtype.itemsize))
        found = np.array(np.ndarray(shape, dtype, buffer=raw, strides=strides), order="C", copy=True)
        last: tuple[int, ...] = self._shape  # type: ignore[assignment]  # as above
        return unpack(found, last[-1], info.bits) if info.packed else found


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
