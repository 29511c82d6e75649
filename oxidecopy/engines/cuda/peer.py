"""Memory of another GPU of this host, reached over NVLink or PCIe by the same addresses. Nothing is copied."""

from __future__ import annotations

from typing import Final

from oxidecopy.engines.base import OTHER_DEVICE
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.driver import check, name_of
from oxidecopy.engines.cuda.memory import CudaBuffer
from oxidecopy.errors import ArgumentError, Diagnostic

NO_PATH: Final = "OX5316"
_ALREADY: Final = "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"


def reach(context: PrimaryContext, buffer: object) -> CudaBuffer:
    """`buffer` of another GPU as memory that kernels of `context` load from and store to; a buffer of `context` itself is that already.

    Waits for the launches that use it now. It is kept alive until the result is dropped and the launches that use that are done.

    Raises:
        ArgumentError: when it is no GPU's memory (OX5311), or the GPUs do not reach each other (OX5316).
        LifetimeError: when it was freed (OX5310).
    """
    if not isinstance(buffer, CudaBuffer):
        required, fix = "memory of another GPU", "copy it: dev.array(a.numpy())"
        what = f"{context} reaches the memory of GPUs alone"
        raise ArgumentError(Diagnostic(rule=OTHER_DEVICE, what=what, got=repr(buffer), required=required, fix=fix))
    if buffer.context is context:
        return buffer
    address = buffer.address
    _open(context, buffer.context)
    buffer.wait()
    found = CudaBuffer(context, address, buffer.nbytes, keep=(buffer,))
    buffer.peers.add(found)
    return found


def _open(context: PrimaryContext, owner: PrimaryContext) -> None:
    """Lets kernels of `context` use the memory of `owner`'s GPU: that of allocations, and that of its pool. Any number of times."""
    driver = context.driver
    if not check(driver.cuDeviceCanAccessPeer(context.ordinal, owner.ordinal), "cuDeviceCanAccessPeer", f"{context}, {owner}"):
        raise ArgumentError(
            Diagnostic(
                rule=NO_PATH,
                what=f"{context} does not reach the memory of {owner}",
                got="cuDeviceCanAccessPeer: 0",
                required="two GPUs with NVLink or PCIe peer access between them",
                fix="copy it through the host: dev.array(a.numpy())",
            )
        )
    with context:
        answer = driver.cuCtxEnablePeerAccess(owner.handle, 0)
        if name_of(answer[0]) != _ALREADY:
            check(answer, "cuCtxEnablePeerAccess", f"{context}, {owner}")
    if owner.gpu.pools:
        access = driver.CUmemAccessDesc()
        access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = context.ordinal
        access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        with owner:
            pool = check(driver.cuDeviceGetDefaultMemPool(owner.ordinal), "cuDeviceGetDefaultMemPool", str(owner))
            check(driver.cuMemPoolSetAccess(pool, [access], 1), "cuMemPoolSetAccess", f"{context}, {owner}")
