"""`Device`: where arrays live and pipelines run."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, final, overload

from typing_extensions import TypeVar

from oxidecopy.engines.base import SupportsSharing, SupportsStreams
from oxidecopy.errors import ExportError, InputError, UsageError
from oxidecopy.host.arrays import Layout, array_faults, as_stored, element_type, extents, inferred, layout, packed, refusal
from oxidecopy.host.opening import open_engine
from oxidecopy.interop.foreign import SupportsCudaArray, SupportsDLPack
from oxidecopy.typed.dtypes import DType, f16, f32, f64, i32, i64, u8, u16, u32, u64
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.handles import borrowing
from oxidecopy.typed.refusal import described, flag
from oxidecopy.typed.sites import at_the_users_line
from oxidecopy.typed.views import Rows

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import CapsuleType

    from oxidecopy.engines.base import Engine
    from oxidecopy.host.pipeline import SupportsCudaStream

DT = TypeVar("DT", bound=DType)
_Sh = TypeVar("_Sh", bound=tuple[int, ...])
Shared: TypeAlias = SupportsDLPack | SupportsCudaArray


@final
class Device:
    """A device; `Device.open` finds one.

    Attributes:
        name: "sim", "sim-fast" or "cuda:0" and the like.
        engine: what runs programs and owns the memory.
        why: one line: why this device was taken.
    """

    def __init__(self, name: str, engine: Engine, *, why: str = "") -> None:
        self.name = name
        self.engine = engine
        self.why = why or f"{name}: asked for by name"
        self.kept: dict[str, Any] = {}  # what other rooms keep for as long as the device is there

    if not TYPE_CHECKING:

        def __new__(cls, name: object = None, engine: object = None, **_: object) -> Device:
            """Refuses what was meant to open one: its engine is not for users to make."""
            if engine is None:
                asked = "" if name is None else repr(name)
                fix = f"ox.Device.open({asked})"
                raise UsageError(refusal("OX5012", "a device is opened", got=f"ox.Device({asked})", required="Device.open", fix=fix))
            return object.__new__(cls)

    @staticmethod
    def open(name: str | None = None, *, checked: bool = False, arch: int | str | None = None) -> Device:
        """Opens a device.

        Args:
            name: "cuda:0" (a GPU by its number), "cuda" (the first usable one), "sim" (the simulator, looking for races and missing
                fences), "sim-fast" (the same without looking, faster). None takes the first usable GPU, else the simulator; `why` says
                what was taken and why.
            checked: ask for checks that cost time. On a GPU each launch is waited for, and a wait that does not end is reported sooner;
                OXIDECOPY_CHECKED=1 (true, yes, on) in the environment asks for them, too. The simulator "sim" always makes its checks.
            arch: for a simulator, whose limits hold: 100, "10.0" or "sm_100" for the swizzles with wider atoms, say. Only 9.0, which it is
                of when this is left out, was held against hardware.

        Raises:
            UsageError: for a name that no device has; for a GPU by its name, also for a setting in the environment that means nothing.
                Without a name such a setting is ignored, with a warning that `why` repeats.
            DeviceError: for a device that is not there or cannot be used, with what was found and what is needed.
        """
        opened = open_engine(name, checked=checked, arch=arch)
        return Device(opened.name, opened.engine, why=opened.why)

    @property
    def sm(self) -> int:
        """Compute capability, 90 for 9.0; the simulator's is that of the hardware it was measured against."""
        return self.engine.sm

    def synchronize(self) -> None:
        """Waits for everything that was started on it, on any stream; on the simulator nothing is ever in flight.

        Raises:
            ExecutionError: what went wrong in launches until now.
        """
        if isinstance(self.engine, SupportsStreams):
            self.engine.synchronize()

    def __repr__(self) -> str:
        return f"Device({self.name!r}, sm={self.sm})"

    def __reduce__(self) -> NoReturn:
        raise ExportError(
            refusal(
                "OX5039",
                "a device is neither copied nor pickled: it holds the memory of this process",
                got=repr(self),
                required="one device for each use",
                fix=f"pass it as it is; another process opens its own: Device.open({self.name!r})",
            )
        )

    # ---- arrays
    @overload
    def array(self, x: np.ndarray[_Sh, Any], dtype: type[DT], *, pad: bool = False) -> GlobalArray[DT, _Sh]: ...
    @overload
    def array(  # type: ignore[overload-overlap]  # numpy: float64 subclasses floating and float
        self, x: np.ndarray[_Sh, np.dtype[np.float32]], *, pad: bool = False
    ) -> GlobalArray[f32, _Sh]: ...
    @overload
    def array(  # type: ignore[overload-overlap]
        self, x: np.ndarray[_Sh, np.dtype[np.float16]], *, pad: bool = False
    ) -> GlobalArray[f16, _Sh]: ...
    @overload
    def array(self, x: np.ndarray[_Sh, np.dtype[np.float64]], *, pad: bool = False) -> GlobalArray[f64, _Sh]: ...
    @overload
    def array(  # type: ignore[overload-overlap]  # numpy: fewer bits subclass more bits
        self, x: np.ndarray[_Sh, np.dtype[np.int32]], *, pad: bool = False
    ) -> GlobalArray[i32, _Sh]: ...
    @overload
    def array(self, x: np.ndarray[_Sh, np.dtype[np.int64]], *, pad: bool = False) -> GlobalArray[i64, _Sh]: ...
    @overload
    def array(  # type: ignore[overload-overlap]  # numpy: fewer bits subclass more bits
        self, x: np.ndarray[_Sh, np.dtype[np.uint8]], *, pad: bool = False
    ) -> GlobalArray[u8, _Sh]: ...
    @overload
    def array(  # type: ignore[overload-overlap]  # numpy: fewer bits subclass more bits
        self, x: np.ndarray[_Sh, np.dtype[np.uint16]], *, pad: bool = False
    ) -> GlobalArray[u16, _Sh]: ...
    @overload
    def array(  # type: ignore[overload-overlap]  # numpy: fewer bits subclass more bits
        self, x: np.ndarray[_Sh, np.dtype[np.uint32]], *, pad: bool = False
    ) -> GlobalArray[u32, _Sh]: ...
    @overload
    def array(self, x: np.ndarray[_Sh, np.dtype[np.uint64]], *, pad: bool = False) -> GlobalArray[u64, _Sh]: ...
    def array(self, x: Any, dtype: Any = None, *, pad: bool = False) -> GlobalArray[Any, Any]:
        """Copies a numpy array to the device. Its strides do not matter: there it lies row by row.

        Args:
            x: the array, of rank 1 to 5.
            dtype: the element type, where numpy's types cannot tell it: `ox.bf16` and fp8 (ml_dtypes arrays, or what `np.load` makes of
                them), `ox.tf32` and the like for float32. Elements are never converted. Of packed types (`ox.u4x16_align8b` and so on)
                numpy holds one value of 4 or 6 bits in each uint8; on the device they are packed, and `numpy()` unpacks them.
            pad: start rows a multiple of 16 bytes apart, as tensor maps need them; for row lengths that are not multiples of 16 bytes.

        Raises:
            InputError: with everything that is wrong with the array.
        """
        import numpy as np

        if not isinstance(x, np.ndarray) or isinstance(x, np.ma.MaskedArray):
            raise InputError(
                refusal(
                    "OX5001",
                    "only plain numpy arrays are copied to a device",
                    got=type(x).__name__,
                    required="np.ndarray",
                    fix="dev.array(np.asarray(x))" if isinstance(x, np.ndarray) else borrowing(x) or "dev.array(np.asarray(x))",
                )
            )
        chosen = None if dtype is None else element_type(dtype, self.sm)
        faults = array_faults(x)
        if faults:
            raise InputError(*faults)
        chosen = inferred(x.dtype) if chosen is None else chosen
        stored = as_stored(x, chosen)
        to = layout(x.shape, chosen.info, pad=flag(pad, "pad"))
        made = self._allocate(chosen, to)
        self.engine.write(made.buffer, 0, packed(stored, to))
        return made

    def empty(self, shape: _Sh, dtype: type[DT], *, pad: bool = False) -> GlobalArray[DT, _Sh]:
        """An array with whatever the memory holds (on the simulator a pattern that is NaN as f32); `pad` as for `array`."""
        chosen = element_type(dtype, self.sm)
        return self._allocate(chosen, layout(extents(shape), chosen.info, pad=flag(pad, "pad")))

    def zeros(self, shape: _Sh, dtype: type[DT], *, pad: bool = False) -> GlobalArray[DT, _Sh]:
        """An array of zeros; `pad` as for `array`."""
        made = self.empty(shape, dtype, pad=pad)
        self.engine.fill(made.buffer, 0, made.buffer.nbytes, 0)
        return made

    def empty_like(self, a: GlobalArray[DT, _Sh]) -> GlobalArray[DT, _Sh]:
        """An array of the shape, element type and strides of `a`, with whatever the memory holds; dense where elements of `a` repeat."""
        if not isinstance(a, GlobalArray):
            raise InputError(
                refusal(
                    "OX5015",
                    "`empty_like` takes a device array",
                    got=type(a).__name__,
                    required="a GlobalArray",
                    fix="dev.empty(x.shape, ox.f32)",
                )
            )
        shape, strides = tuple(a.shape), a.strides_bytes
        if a.overlapping:  # a view of fewer elements: what is written to needs memory for each
            return self._allocate(a.dtype, layout(shape, a.dtype.info, pad=False))
        rows = (*shape[:-1], a.dtype.info.row_bytes(shape[-1])) if a.dtype.info.packed else shape
        nbytes = max(n * s for n, s in zip(rows, strides, strict=True))
        return self._allocate(a.dtype, Layout(shape=shape, strides_bytes=strides, nbytes=nbytes))

    def free(self, a: GlobalArray[Any, Any]) -> None:
        """Gives its memory back now, after the launches that use it; it, its views and descriptors cannot be used any more.

        Dropping an array does the same once nothing uses it. Borrowed memory goes back to its owner.
        """
        if not isinstance(a, GlobalArray):
            raise InputError(
                refusal(
                    "OX5015", "`free` takes a device array", got=described(a), required="a GlobalArray", fix="del x, for what is no array"
                )
            )
        with at_the_users_line():
            self._sharing().free(a.buffer)

    # ---- memory of other libraries
    @overload
    def borrow(
        self, x: np.ndarray[_Sh, Any], dtype: type[DT], *, rank: None = None, stream: SupportsCudaStream | int | None = None
    ) -> GlobalArray[DT, _Sh]: ...
    @overload
    def borrow(
        self, x: Shared, dtype: type[DT], *, rank: Literal[1], stream: SupportsCudaStream | int | None = None
    ) -> GlobalArray[DT, tuple[int]]: ...
    @overload
    def borrow(
        self, x: Shared, dtype: type[DT], *, rank: Literal[2], stream: SupportsCudaStream | int | None = None
    ) -> GlobalArray[DT, tuple[int, int]]: ...
    @overload
    def borrow(
        self, x: Shared, dtype: type[DT], *, rank: Literal[3], stream: SupportsCudaStream | int | None = None
    ) -> GlobalArray[DT, tuple[int, int, int]]: ...
    @overload
    def borrow(
        self, x: Shared, dtype: type[DT], *, rank: Literal[4], stream: SupportsCudaStream | int | None = None
    ) -> GlobalArray[DT, tuple[int, int, int, int]]: ...
    @overload
    def borrow(
        self, x: Shared, dtype: type[DT], *, rank: Literal[5], stream: SupportsCudaStream | int | None = None
    ) -> GlobalArray[DT, tuple[int, int, int, int, int]]: ...
    def borrow(
        self, x: object, dtype: type[DType], *, rank: int | None = None, stream: SupportsCudaStream | int | None = None
    ) -> GlobalArray[Any, Any]:
        """An array over memory of another library, without a copy: torch, cupy, jax, numpy, whatever speaks one of the protocols.

        On a GPU: objects with `__dlpack__` or `__cuda_array_interface__` on that GPU. On the simulator: numpy arrays, and objects with
        `__dlpack__` in host memory. The object is kept alive until the array, its views and all launches that use them are done.

        Args:
            x: the object.
            dtype: the element type that it holds; nothing is converted.
            rank: how many dimensions it has: what type checkers know of its shape. A numpy array's own type says it.
            stream: where it is used first; that stream waits for the work that fills the memory. None for the default stream, where
                launches go without `.on`. Launches on other streams are ordered by whoever makes them, as among all streams.

        Raises:
            InputError: with everything that is wrong with it.
        """
        from oxidecopy.host.borrowing import borrow

        return borrow(self, x, dtype, rank, stream)

    def borrow_pointer(
        self,
        address: int,
        shape: _Sh,
        dtype: type[DT],
        *,
        owner: object,
        strides_bytes: tuple[int, ...] | None = None,
        readonly: bool = False,
    ) -> GlobalArray[DT, _Sh]:
        """An array at an address, for libraries that speak neither protocol. On a GPU the driver is asked whether memory is there.

        Args:
            address: of its first element, on this device; on the simulator in this process.
            shape: extents in elements.
            dtype: the element type.
            owner: the object whose memory it is; it is kept alive for as long as the memory is used.
            strides_bytes: bytes from one index to the next, for each dimension; None for rows that follow each other.
            readonly: nothing may write to it.

        Raises:
            InputError: for an address, a shape or strides that mean nothing.
            ArgumentError: when the driver knows the memory as another device's, or as less.
        """
        from oxidecopy.host.borrowing import borrow_pointer

        return borrow_pointer(self, address, shape, dtype, strides_bytes, owner=owner, readonly=readonly)

    def peer(self, a: GlobalArray[DT, _Sh]) -> GlobalArray[DT, _Sh]:
        """An array of another GPU of this host as this one's pipelines use it: by NVLink or PCIe, in place.

        Launches here on the default stream, and what the host reads, come after launches that use it there by the default stream; with
        other streams `stream.wait(other.record())` orders the two GPUs. It keeps `a` alive. Two simulators reach each other alike.

        Args:
            a: the array, on another device of the same kind; views and borrowed arrays too.

        Raises:
            ArgumentError: when the devices do not reach each other.
        """
        from oxidecopy.host.borrowing import reach

        return reach(self, a)

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """Type and number, as DLPack counts: (1, 0) for the simulator, whose memory is the host's; (2, n) for GPU n."""
        return self._sharing().dlpack_device

    def lend_dlpack(
        self,
        a: GlobalArray[Any, Any],
        *,
        stream: int | None,
        max_version: tuple[int, int] | None,
        dl_device: tuple[int, int] | None,
        copy: bool | None,
    ) -> CapsuleType:
        """As `a.__dlpack__`."""
        from oxidecopy.host.lending import capsule

        return capsule(self._sharing(), a, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def lend_cuda_array(self, a: GlobalArray[Any, Any]) -> dict[str, object]:
        """As `a.__cuda_array_interface__`."""
        from oxidecopy.host.lending import cuda_array_interface

        return cuda_array_interface(self._sharing(), a)

    def _sharing(self) -> SupportsSharing:
        engine: object = self.engine
        if not isinstance(engine, SupportsSharing):
            raise ExportError(
                refusal(
                    "OX5039",
                    f"{self.name} shares no memory",
                    got=type(engine).__name__,
                    required="a simulator or a GPU",
                    fix='ox.Device.open("sim")',
                )
            )
        return engine

    def _allocate(self, dtype: type[DType], to: Layout) -> GlobalArray[Any, Any]:
        # Tried, not foreseen: what is free grows while the engine waits for launches that use memory of dropped arrays.
        with suppress(MemoryError):
            buffer = self.engine.allocate(to.nbytes)
            rows = Rows.of(to.shape, to.strides_bytes, dtype.info.row_bytes(to.shape[-1]), to.nbytes)
            return GlobalArray(dtype=dtype, shape=to.shape, strides_bytes=to.strides_bytes, buffer=buffer, device=self, rows=rows)
        raise InputError(
            refusal(
                "OX5011",
                f"the array does not fit into the memory of {self.name}",
                got=f"shape {to.shape} of {dtype.__name__}: {to.nbytes:,} bytes",
                required=f"at most {self.engine.room_bytes():,} bytes",
                fix="work on a part of the array at a time",
            )
        )
