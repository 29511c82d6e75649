"""Arrays of libraries that do not exist: what they say of their memory is said in the tests."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import numpy as np

# DLPack's structures, written down from its specification; the package has its own.
SHAPE = ctypes.POINTER(ctypes.c_int64)


class Tensor(ctypes.Structure):
    pass


class Old(ctypes.Structure):
    pass


class Versioned(ctypes.Structure):
    pass


Tensor._fields_ = [
    ("data", ctypes.c_void_p),
    ("device_type", ctypes.c_int32),
    ("device_id", ctypes.c_int32),
    ("ndim", ctypes.c_int32),
    ("code", ctypes.c_uint8),
    ("bits", ctypes.c_uint8),
    ("lanes", ctypes.c_uint16),
    ("shape", SHAPE),
    ("strides", SHAPE),
    ("byte_offset", ctypes.c_uint64),
]
Old._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]
Versioned._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("context", ctypes.c_void_p),
    ("deleter", ctypes.c_void_p),
    ("flags", ctypes.c_uint64),
    ("tensor", Tensor),
]


KEPT: list[object] = []  # a destructor may be called when the producer itself is gone
DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR)(("PyCapsule_New", ctypes.pythonapi))
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))


def opened(capsule: object) -> tuple[Tensor, Versioned | None]:
    """What a capsule of ours says."""
    name = name_of(capsule)
    if name == b"dltensor":
        return Old.from_address(pointer_of(capsule, name) or 0).tensor, None
    versioned = Versioned.from_address(pointer_of(capsule, name) or 0)
    return versioned.tensor, versioned


@final
class Producer:
    """Speaks DLPack. Nothing is checked: it says what it is told to say, and notes what it is asked for."""

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        *,
        device: tuple[int, int] = (1, 0),
        dtype: tuple[int, int, int] = (2, 32, 1),
        byte_offset: int = 0,
        readonly: bool = False,
        version: tuple[int, int] | None = (1, 0),
        owner: object = None,
    ) -> None:
        self.device = device
        self.version = version
        self.owner = owner
        self.asked: list[dict[str, Any]] = []
        self.freed: list[str] = []
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * max(len(strides), 1))(*strides)
        tensor = Tensor(address, *device, len(shape), *dtype, self.shape, self.strides, byte_offset)
        self.old = Old(tensor)
        self.new = Versioned(*(version or (0, 0)), None, None, int(readonly), tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **asked: Any) -> Any:
        if self.version is None and "max_version" in asked:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.asked.append(asked)
        freed = self.freed
        note = DESTRUCTOR(lambda _: freed.append("freed"))
        KEPT.append((self.old, self.new, note))
        managed, name = (self.old, b"dltensor") if self.version is None else (self.new, b"dltensor_versioned")
        return new_capsule(ctypes.addressof(managed), name, note)


@final
class Interface:
    """Speaks the CUDA array interface."""

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str = "<f4", readonly: bool = False, **more: Any) -> None:
        self.said = {"shape": shape, "typestr": typestr, "data": (address, readonly), "version": 3, **more}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.said


def producer_of(x: np.ndarray[Any, np.dtype[Any]], **more: Any) -> Producer:
    """A library's tensor over the memory of a numpy array of floats."""
    dtype = {"dtype": (2, 8 * x.itemsize, 1)}
    return Producer(x.ctypes.data, x.shape, tuple(s // x.itemsize for s in x.strides), owner=x, **{**dtype, **more})
