"""`Device`: where arrays live and pipelines run."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, final, overload

from typing_extensions import TypeVar

from oxidecopy.engines.base import SupportsStreams
from oxidecopy.errors import InputError
from oxidecopy.host.arrays import Layout, array_faults, as_stored, element_type, extents, inferred, layout, packed, refusal
from oxidecopy.host.opening import open_engine
from oxidecopy.typed.dtypes import DType, f16, f32, f64, i32, i64, u8, u16, u32, u64
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import flag

if TYPE_CHECKING:
    import numpy as np

    from oxidecopy.engines.base import Engine

DT = TypeVar("DT", bound=DType)
_Sh = TypeVar("_Sh", bound=tuple[int, ...])


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

    @staticmethod
    def open(name: str | None = None, *, checked: bool = False) -> Device:
        """Opens a device.

        Args:
            name: "cuda:0" (a GPU by its number), "cuda" (the first usable one), "sim" (the simulator, looking for races and missing
                fences), "sim-fast" (the same without looking, faster). None takes the first usable GPU, else the simulator; `why` says
                what was taken and why.
            checked: ask for checks that cost time. On a GPU each launch is waited for, and a wait that does not end is reported sooner;
                OXIDECOPY_CHECKED=1 (true, yes, on) in the environment asks for them, too. The simulator "sim" always makes its checks.

        Raises:
            UsageError: for a name that no device has; for a GPU by its name, also for a setting in the environment that means nothing.
                Without a name such a setting is ignored, with a warning that `why` repeats.
            DeviceError: for a device that is not there or cannot be used, with what was found and what is needed.
        """
        opened = open_engine(name, checked=checked)
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
                them), `ox.tf32` and the like for float32. Elements are never converted.
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
                    fix="dev.array(np.asarray(x))",
                )
            )
        chosen = None if dtype is None else element_type(dtype, self.sm)
        faults = array_faults(x)
        if faults:
            raise InputError(*faults)
        chosen = inferred(x.dtype) if chosen is None else chosen
        stored = as_stored(x, chosen)
        to = layout(x.shape, stored.itemsize, pad=flag(pad, "pad"))
        made = self._allocate(chosen, to)
        self.engine.write(made.buffer, 0, packed(stored, to))
        return made

    def empty(self, shape: _Sh, dtype: type[DT], *, pad: bool = False) -> GlobalArray[DT, _Sh]:
        """An array with whatever the memory holds (on the simulator a pattern that is NaN as f32); `pad` as for `array`."""
        chosen = element_type(dtype, self.sm)
        return self._allocate(chosen, layout(extents(shape), chosen.info.nbytes, pad=flag(pad, "pad")))

    def zeros(self, shape: _Sh, dtype: type[DT], *, pad: bool = False) -> GlobalArray[DT, _Sh]:
        """An array of zeros; `pad` as for `array`."""
        made = self.empty(shape, dtype, pad=pad)
        self.engine.fill(made.buffer, 0, made.buffer.nbytes, 0)
        return made

    def empty_like(self, a: GlobalArray[DT, _Sh]) -> GlobalArray[DT, _Sh]:
        """An array of the shape, element type and strides of `a`, with whatever the memory holds."""
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
        nbytes = a.shape[0] * a.strides_bytes[0]
        return self._allocate(a.dtype, Layout(shape=a.shape, strides_bytes=a.strides_bytes, nbytes=nbytes))

    def _allocate(self, dtype: type[DType], to: Layout) -> GlobalArray[Any, Any]:
        # Tried, not foreseen: what is free grows while the engine waits for launches that use memory of dropped arrays.
        with suppress(MemoryError):
            buffer = self.engine.allocate(to.nbytes)
            return GlobalArray(dtype=dtype, shape=to.shape, strides_bytes=to.strides_bytes, buffer=buffer, device=self)
        raise InputError(
            refusal(
                "OX5011",
                f"the array does not fit into the memory of {self.name}",
                got=f"shape {to.shape} of {dtype.__name__}: {to.nbytes:,} bytes",
                required=f"at most {self.engine.room_bytes():,} bytes",
                fix="work on a part of the array at a time",
            )
        )
