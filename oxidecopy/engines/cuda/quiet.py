"""Writes to device memory on a private stream: they wait for no other stream, so they are legal while other streams are being captured."""

from __future__ import annotations

from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.memory import CudaBuffer

_STREAM = 0  # the one that memory is allocated on


def zero(buffer: CudaBuffer, offset: int, nbytes: int) -> None:
    """Sets bytes to 0. Nothing on the device may be using them."""
    context, driver = buffer.context, buffer.context.driver
    with context, context.relaxed():
        stream = context.private_stream(_STREAM)
        check(driver.cuMemsetD8Async(buffer.address + offset, 0, nbytes, stream), "cuMemsetD8Async", repr(buffer))
        check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize", repr(buffer))


def upload(context: PrimaryContext, data: bytes) -> CudaBuffer:
    """New device memory that holds `data`: what is launched from then on sees it."""
    buffer, driver = CudaBuffer.allocate(context, len(data)), context.driver
    with context, context.relaxed():
        stream = context.private_stream(_STREAM)
        check(driver.cuMemcpyHtoDAsync(buffer.address, data, len(data), stream), "cuMemcpyHtoDAsync", repr(buffer))
        check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize", repr(buffer))
    return buffer
