"""DLPack: reading the capsules of other libraries, and making ours. Versions before 1.0, and 1.x (https://dmlc.github.io/dlpack/latest).

A capsule that is read is not renamed: nobody else has it, and as long as it is held its memory lives; when it is dropped, it frees what
it holds by itself.

Ours are made by numpy: of an array that holds our memory's owner, numpy makes a capsule, whose few fields are then overwritten with ours.
So what frees it is numpy's own C code, which may be called in any thread, without the interpreter's lock, while an error is on its way, and
while the interpreter ends; none of that can be said of a callback written in Python.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from oxidecopy.errors import OxidecopyError
from oxidecopy.interop.foreign import Foreign, SupportsDLPack, dense_strides, immutable, malformed

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import CapsuleType

CPU: Final = 1
CUDA: Final = 2
CUDA_HOST: Final = 3
CUDA_MANAGED: Final = 13
DEVICES: Final = {CPU: "host memory", CUDA: "a GPU's memory", CUDA_HOST: "pinned host memory", CUDA_MANAGED: "managed memory"}
VERSION: Final = (1, 1)  # the newest that we know: of 1.x all that may be missing is a flag
_READ_ONLY: Final = 1
_OLD, _VERSIONED = b"dltensor", b"dltensor_versioned"


class _Device(ctypes.Structure):
    """DLDevice."""


_Device._fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    """DLDataType."""


_DataType._fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    """DLTensor."""


_Tensor._fields_ = [
    ("data", ctypes.c_void_p),
    ("device", _Device),
    ("ndim", ctypes.c_int32),
    ("dtype", _DataType),
    ("shape", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64),
]


class _Managed(ctypes.Structure):
    """DLManagedTensor: before version 1.0."""


_Managed._fields_ = [("dl_tensor", _Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned."""


_ManagedVersioned._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", ctypes.c_void_p),
    ("flags", ctypes.c_uint64),
    ("dl_tensor", _Tensor),
]


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

# (code, bits) -> element type, of those that we have; DLDataTypeCode: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, 10 and 12 fp8
_TYPES: Final = {
    (1, 8): "uint8",
    (1, 16): "uint16",
    (1, 32): "uint32",
    (1, 64): "uint64",
    (0, 32): "int32",
    (0, 64): "int64",
    (2, 16): "float16",
    (2, 32): "float32",
    (2, 64): "float64",
    (4, 16): "bfloat16",
    (10, 8): "float8_e4m3fn",
    (12, 8): "float8_e5m2",
}
_CODES: Final = {name: pair for pair, name in _TYPES.items()}
_FP8_CODES: Final = 7  # and above: what version 1.1 brought
_KINDS: Final = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 5: "complex", 6: "bool"}


class Where(NamedTuple):
    """A device in DLPack's words."""

    kind: int
    number: int

    def __str__(self) -> str:
        name = DEVICES.get(self.kind, f"device type {self.kind}")
        return f"{name}, device {self.number}" if self.kind not in (CPU, CUDA_HOST) else name


def where(of: SupportsDLPack) -> Where:
    """The device that the object says it is on.

    Raises:
        InputError: when it says something else than two integers.
    """
    try:
        kind, number = of.__dlpack_device__()
        return Where(int(kind), int(number))
    except OxidecopyError:
        raise
    except Exception as problem:  # other libraries raise what they like
        said = f"{type(of).__name__}.__dlpack_device__: {type(problem).__name__}: {problem}"
        raise malformed("the object does not say on which device it is", said, "a pair of integers") from problem


# ---- reading
def read(of: SupportsDLPack, *, stream: int | None) -> Foreign:
    """What the object's capsule says.

    Args:
        of: the object.
        stream: as `__dlpack__` takes it: None on the host.

    Raises:
        InputError: when it refuses, or its capsule is none of DLPack's.
    """
    _check_signs(of)
    try:
        capsule = _ask(of, stream)
    except OxidecopyError:
        raise
    except Exception as problem:
        said = f"{type(of).__name__}.__dlpack__: {type(problem).__name__}: {problem}"
        raise malformed(
            "the object does not hand out its memory", said, "an array that DLPack can describe", _way_out(problem)
        ) from problem
    tensor, flags = _opened(capsule)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    bits, lanes = tensor.dtype.bits, tensor.dtype.lanes
    size = -(-bits * lanes // 8)
    strides = tuple(tensor.strides[i] * size for i in range(tensor.ndim)) if tensor.strides else dense_strides(shape, size)
    return Foreign(
        address=(tensor.data or 0) + tensor.byte_offset,
        shape=shape,
        strides_bytes=strides,
        element=_named(tensor.dtype.code, bits, lanes),
        element_bytes=size,
        readonly=bool(flags & _READ_ONLY) or immutable(of),
        keep=(of, capsule),  # the capsule goes first
    )


def _check_signs(of: object) -> None:
    """Refuses a tensor of torch with its negative bit: its memory holds the negatives of its elements, which its capsule does not say."""
    negative: object = getattr(of, "is_neg", None)
    if callable(negative) and negative() is True:
        got = f"a {type(of).__name__} whose is_neg() is True, as of z.conj().imag"
        raise malformed("the memory does not hold the elements, but their negatives", got, "memory as it is read", "pass x.resolve_neg()")


def _ask(of: SupportsDLPack, stream: int | None) -> object:
    given: dict[str, Any] = {} if stream is None else {"stream": stream}
    newer: Any = of  # typed for all versions of the protocol
    with suppress(TypeError):  # libraries from before 1.0 do not take a version; an error of another kind they raise below again
        return newer.__dlpack__(max_version=VERSION, **given)
    return newer.__dlpack__(**given)


def _way_out(problem: BaseException) -> str:
    gradient = "grad" in str(problem)  # torch's words
    return "pass tensor.detach()" if gradient else "dev.array(x) copies what numpy can read"


def _opened(capsule: object) -> tuple[_Tensor, int]:
    for name, layout in ((_VERSIONED, _ManagedVersioned), (_OLD, _Managed)):
        if type(capsule).__name__ == "PyCapsule" and _is_valid(capsule, name):
            managed: Any = layout.from_address(_pointer(capsule, name))
            if layout is _ManagedVersioned and managed.major != VERSION[0]:
                raise malformed("the capsule is of another version of DLPack", f"{managed.major}.{managed.minor}", "1.x, or one before 1.0")
            return managed.dl_tensor, managed.flags if layout is _ManagedVersioned else 0
    raise malformed("what `__dlpack__` returned is no capsule of DLPack", repr(capsule), "a capsule that nobody has taken yet")


def _named(code: int, bits: int, lanes: int) -> str:
    name = _TYPES.get((code, bits)) or f"{_KINDS.get(code, f'type code {code} of ')}{bits}"
    return name if lanes == 1 else f"{name} x {lanes}"


# ---- making
def capsule_of(lent: Foreign, at: Where, max_version: tuple[int, int] | None) -> CapsuleType:
    """A capsule for memory of ours; `lent.keep` lives until whoever takes it lets go.

    Args:
        lent: the memory.
        at: its device.
        max_version: the newest version that is understood; None for those before 1.0, which cannot say that memory is read-only.
    """
    import numpy as np

    rank = len(lent.shape)
    # Two elements in each dimension, none with memory of its own: that is not dense, so numpy writes down strides.
    holder: Any = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (2,) * rank, (0,) * rank).view(_holder_class())
    holder.keep = lent.keep
    capsule = _made_by_numpy(holder, max_version)
    versioned = bool(_is_valid(capsule, _VERSIONED))
    managed: Any = (_ManagedVersioned if versioned else _Managed).from_address(_pointer(capsule, _VERSIONED if versioned else _OLD))
    code, bits = _CODES[lent.element]
    if versioned:
        managed.flags = _READ_ONLY if lent.readonly else 0
        managed.minor = max(managed.minor, int(code >= _FP8_CODES))
    tensor = managed.dl_tensor
    tensor.data, tensor.byte_offset, tensor.device = lent.address, 0, _Device(at.kind, at.number)
    tensor.dtype = _DataType(code, bits, 1)
    for i in range(rank):
        tensor.shape[i] = lent.shape[i]
        tensor.strides[i] = lent.strides_bytes[i] // lent.element_bytes
    return capsule


@cache
def _holder_class() -> type[np.ndarray[Any, Any]]:
    """An array with a place for what it keeps alive; made when numpy is there."""
    import numpy as np

    class Holder(np.ndarray[Any, Any]):
        keep: object

    return Holder


def _made_by_numpy(holder: Any, max_version: tuple[int, int] | None) -> CapsuleType:
    if max_version is not None and max_version[0] >= 1:
        with suppress(TypeError):  # numpy before 2.1 knows the old form only, which everybody takes
            made: CapsuleType = holder.__dlpack__(max_version=VERSION)
            return made
    old: CapsuleType = holder.__dlpack__()
    return old
