"""Tensors of torch, read by their attributes: a capsule of DLPack says the same and takes several times as long. torch is not imported.

What keeps the memory alive is the tensor's storage, not the tensor: so a borrowed array can be kept for as long as the tensor lives.
"""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple

from oxidecopy.interop.foreign import Foreign

_CLASSES: Final = {("torch", "Tensor"), ("torch.nn.parameter", "Parameter")}  # others may be more than their memory
_names: dict[object, str] = {}  # torch.dtype -> "float32"


class Signature(NamedTuple):
    """What of a tensor may be another one tomorrow: it can be resized, and given other memory, in place."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: object


def is_tensor(x: object) -> bool:
    """A plain tensor of torch on a GPU, whose elements are its memory and which takes part in no differentiation."""
    of = type(x)
    if (of.__module__, of.__name__) not in _CLASSES:
        return False
    tensor: Any = x
    return bool(tensor.is_cuda and not tensor.requires_grad and not tensor.is_sparse and not tensor.is_quantized and not tensor.is_neg())


def host_memory(x: object) -> tuple[int, int] | None:
    """Where the memory begins that a plain tensor in host memory is a part of, and its bytes; None for all else."""
    of = type(x)
    if (of.__module__, of.__name__) not in _CLASSES:
        return None
    tensor: Any = x
    if tensor.is_cuda or tensor.is_sparse:
        return None
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def signature(tensor: Any) -> Signature:
    """As it is now."""
    return Signature(tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)


def unchanged(tensor: Any, before: Signature) -> bool:
    """It is as it was, and still nothing that DLPack would refuse."""
    return (
        tensor.data_ptr() == before.address
        and not tensor.requires_grad
        and tensor.shape == before.shape
        and tensor.stride() == before.strides
        and tensor.dtype is before.dtype
    )


def read(tensor: Any) -> Foreign:
    """What such a tensor says of its memory, with the stream that torch fills it on."""
    dtype, size = tensor.dtype, tensor.element_size()
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = str(dtype).removeprefix("torch.")
    return Foreign(
        address=tensor.data_ptr(),
        shape=tuple(tensor.shape),
        strides_bytes=tuple([s * size for s in tensor.stride()]),
        element=name,
        element_bytes=size,
        readonly=False,
        keep=tensor.untyped_storage(),
        stream=stream_of(tensor),
    )


def stream_of(tensor: Any) -> int:
    """The stream that torch gives its work on the tensor's device to; 0 is the default stream."""
    torch: Any = sys.modules["torch"]
    number = tensor.get_device()
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001  # what Triton and torch's own compiler ask
    return int(quick(number) if quick is not None else torch.cuda.current_stream(number).cuda_stream)
