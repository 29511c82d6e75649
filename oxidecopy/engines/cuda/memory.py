"""Device memory: owned (freed when dropped, after the launches that use it) or borrowed (whose owner is kept alive for as long).

Memory comes from the driver's stream-ordered pool where the device has one: allocated on a private stream and waited for, so that it can be
used on any stream at once; freed on a private stream after the streams that used it (`in_flight`). Never managed memory.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Self, final
from weakref import WeakSet

from oxidecopy.engines.base import FREED, OTHER_DEVICE
from oxidecopy.engines.cuda.context import Ownership, PrimaryContext
from oxidecopy.engines.cuda.driver import Driver, check
from oxidecopy.engines.cuda.faults import OUT_OF_MEMORY
from oxidecopy.engines.cuda.in_flight import Uses
from oxidecopy.errors import ArgumentError, Diagnostic, LifetimeError, OutOfMemoryError, UsageError

if TYPE_CHECKING:
    from cuda.bindings.driver import CUpointer_attribute
    from typing_extensions import Buffer as HostBytes

    from oxidecopy.engines.cuda.stream import Stream

NOT_DEVICE_MEMORY: Final = "OX5312"
OUTSIDE: Final = "OX5313"
IN_CAPTURE: Final = "OX5314"

_ALLOCATING: Final = 0  # private streams of the context
_FREEING: Final = 1


@final
class CudaBuffer:
    """`nbytes` bytes of device memory. Use `allocate` or `borrow`.

    Attributes:
        context: whose memory it is.
        nbytes: its size.
        owned: it was allocated here.
        uses: the streams of the launches that use it.
        peers: the same memory as other GPUs of this host have it.
    """

    __slots__ = ("__weakref__", "_address", "_ownership", "context", "nbytes", "owned", "peers", "uses")

    def __init__(self, context: PrimaryContext, address: int, nbytes: int, *, keep: object = None) -> None:
        self.context = context
        self.nbytes = nbytes
        self.owned = keep is None
        self.uses = Uses(context.driver)
        self.peers: WeakSet[CudaBuffer] = WeakSet()
        self._address = address
        let_go = partial(_free, context, address, self.uses) if self.owned else partial(_let_go, context, self.uses, keep)
        self._ownership: Ownership = context.own(self, let_go)

    @classmethod
    def allocate(cls, context: PrimaryContext, nbytes: int) -> Self:
        """New memory, aligned to 256 bytes at least, contents undefined; usable on any stream at once.

        Raises:
            OutOfMemoryError: when the device has not enough.
            EarlierFaultError: when the context was lost before.
        """
        if nbytes < 1:
            raise UsageError(Diagnostic(rule=OUTSIDE, what="memory of no bytes", got=str(nbytes), required="1 byte or more", fix="skip it"))
        if nbytes > context.gpu.memory_bytes:  # perhaps more than a number of the driver's holds
            raise _too_large(context, nbytes)
        with context, context.relaxed():
            context.parked.sweep()
            try:
                address = _new(context, nbytes)
            except OutOfMemoryError:  # what waits for launches in flight may be enough
                context.parked.drain()
                check(context.driver.cuStreamSynchronize(context.private_stream(_FREEING)), "cuStreamSynchronize", str(context))
                address = _new(context, nbytes)
        return cls(context, address, nbytes)

    @classmethod
    def borrow(cls, context: PrimaryContext, address: int, nbytes: int, *, keep: object) -> Self:
        """Memory that `keep` owns, which is kept alive until this is dropped and the launches that use it are done.

        Raises:
            ArgumentError: when the driver does not know the address as memory of this device (OX5311, OX5312), or knows less of it
                (OX5313).
        """
        with context:
            _check_borrowed(context, address, nbytes)
        return cls(context, address, nbytes, keep=(keep,))  # not None, whatever it is

    @property
    def address(self) -> int:
        """Address of the first byte on the device.

        Raises:
            LifetimeError: when it was freed (OX5310).
        """
        if not self._ownership.alive:
            raise LifetimeError(
                Diagnostic(
                    rule=FREED,
                    what="device memory is used after it was freed",
                    got=repr(self),
                    required="live memory",
                    fix="free an array after its last use, or drop it: memory of launches in flight lives until they are done",
                )
            )
        return self._address

    @property
    def alive(self) -> bool:
        """It was not freed, and its device is open."""
        return self._ownership.alive

    def used_on(self, stream: Stream) -> None:
        """A launch that uses it was just given to `stream`: it lives until that is done, whoever drops it. The context is current."""
        self.uses.note(stream)

    def wait(self) -> None:
        """Waits until no launch uses it, of this GPU or of others that have it.

        Raises:
            UsageError: when a stream that is being captured was given one (OX5314): it would be waited for in vain.
        """
        for peer in list(self.peers):
            peer.wait()
        if self.uses:
            refuse_capture(self)
            with self.context:
                self.uses.synchronize()

    def free(self) -> None:
        """Frees it now, for the device after the launches that use it; other GPUs that have it lose it, too. Any number of times."""
        for peer in list(self.peers):
            peer.wait()
            peer.free()
        self._ownership.end()

    def __repr__(self) -> str:
        state = "" if self.alive else ", freed"
        return f"CudaBuffer({self._address:#x}, {self.nbytes:,} bytes, {self.context}{'' if self.owned else ', borrowed'}{state})"


def owned_by(context: PrimaryContext, buffer: object) -> CudaBuffer:
    """`buffer` as live memory of this context.

    Raises:
        LifetimeError: when it is another device's (OX5311) or was freed (OX5310).
    """
    if not isinstance(buffer, CudaBuffer) or buffer.context is not context:
        raise LifetimeError(
            Diagnostic(
                rule=OTHER_DEVICE,
                what=f"memory of another device is used on {context}",
                got=repr(buffer),
                required=f"memory of this {context}",
                fix="take arrays of one `Device`: two opened ones do not share memory",
            )
        )
    buffer.address  # noqa: B018  # raises when it was freed
    return buffer


def refuse_capture(buffer: CudaBuffer) -> None:
    """Raises UsageError when a stream that is being captured uses it (OX5314)."""
    with buffer.context:
        stream = buffer.uses.in_capture()
    if stream is not None:
        raise UsageError(
            Diagnostic(
                rule=IN_CAPTURE,
                what="memory is asked for while a capture that uses it goes on: what is captured has not run yet",
                got=f"{buffer!r}, used by what {stream} captures",
                required="the end of the capture",
                fix="read and write it after the `with graph.capture():` block and `graph.replay()`; launch on the captured stream inside",
            )
        )


# ---- copies: the launches that use the memory are waited for first. Captures that do not use it go on undisturbed.
def write(buffer: CudaBuffer, offset: int, data: HostBytes) -> None:
    """Copies host bytes to the device, `offset` bytes into the buffer."""
    host = memoryview(data).cast("B")
    address = _within(buffer, offset, len(host))
    if len(host):
        buffer.wait()
        with buffer.context as context, context.relaxed():
            check(context.driver.cuMemcpyHtoD(address, host, len(host)), "cuMemcpyHtoD", repr(buffer))


def read_into(buffer: CudaBuffer, offset: int, host: bytearray | memoryview) -> None:
    """Copies as many bytes as `host` holds from the device, from `offset` on."""
    view = memoryview(host).cast("B")
    address = _within(buffer, offset, len(view))
    if len(view):
        buffer.wait()
        with buffer.context as context, context.relaxed():
            check(context.driver.cuMemcpyDtoH(view, address, len(view)), "cuMemcpyDtoH", repr(buffer))


def read(buffer: CudaBuffer, offset: int, nbytes: int) -> bytes:
    """Copies bytes from the device."""
    _within(buffer, offset, nbytes)
    host = bytearray(nbytes)
    read_into(buffer, offset, host)
    return bytes(host)


def copy(target: CudaBuffer, target_offset: int, source: CudaBuffer, source_offset: int, nbytes: int) -> None:
    """Copies on the device; both ends are of one context."""
    to, fro = _within(target, target_offset, nbytes), _within(owned_by(target.context, source), source_offset, nbytes)
    if nbytes:
        target.wait()
        source.wait()
        with target.context as context, context.relaxed():
            check(context.driver.cuMemcpyDtoD(to, fro, nbytes), "cuMemcpyDtoD", repr(target))


def fill(buffer: CudaBuffer, offset: int, nbytes: int, value: int) -> None:
    """Sets every byte to `value`, 0 to 255."""
    address = _within(buffer, offset, nbytes)
    if nbytes:
        buffer.wait()
        with buffer.context as context, context.relaxed():
            check(context.driver.cuMemsetD8(address, value, nbytes), "cuMemsetD8", repr(buffer))


def _within(buffer: CudaBuffer, offset: int, nbytes: int) -> int:
    """Address of byte `offset`; refuses what leaves the buffer."""
    if offset >= 0 and nbytes >= 0 and offset + nbytes <= buffer.nbytes:
        return buffer.address + offset
    raise UsageError(
        Diagnostic(
            rule=OUTSIDE,
            what="a copy leaves the device memory it was given",
            got=f"bytes {offset:,} to {offset + nbytes:,}",
            required=f"0 to {buffer.nbytes:,}",
            fix="copy no more than the buffer holds",
        )
    )


def _too_large(context: PrimaryContext, nbytes: int) -> OutOfMemoryError:
    said = Diagnostic(
        rule=OUT_OF_MEMORY,
        what="the device has not so much memory",
        got=f"{nbytes:,} bytes on {context}",
        required=f"at most {context.gpu.memory_bytes:,} bytes",
        fix="work on a part at a time",
    )
    return OutOfMemoryError(said, name="CUDA_ERROR_OUT_OF_MEMORY", code=2, call="cuMemAlloc")


# ---- with the driver; the context is current
def _new(context: PrimaryContext, nbytes: int) -> int:
    driver, about = context.driver, f"{nbytes:,} bytes on {context}"
    if not context.gpu.pools:
        answer = driver.cuMemAlloc(nbytes)
        context.not_lost(answer[0], "the allocation")
        return int(check(answer, "cuMemAlloc", about))
    stream = context.private_stream(_ALLOCATING)
    answer = driver.cuMemAllocAsync(nbytes, stream)
    context.not_lost(answer[0], "the allocation")
    address = int(check(answer, "cuMemAllocAsync", about))
    check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize", about)
    return address


def _free(context: PrimaryContext, address: int, uses: Uses) -> None:
    driver = context.driver
    if not context.gpu.pools:
        context.parked.park(uses, lambda: check(driver.cuMemFree(address), "cuMemFree"))
        return
    stream = context.private_stream(_FREEING)
    events: list[int] = []
    uses.take_events(events)
    for event in events:
        check(driver.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent")
        driver.cuEventDestroy(event)
    if uses:  # of streams that are being captured: their earlier work cannot be told apart before the capture ends
        context.parked.park(uses, lambda: check(driver.cuMemFreeAsync(address, stream), "cuMemFreeAsync"))
    else:
        check(driver.cuMemFreeAsync(address, stream), "cuMemFreeAsync")


def _let_go(context: PrimaryContext, uses: Uses, keep: object) -> None:
    """Holds on to `keep` for as long as launches use its memory."""
    context.parked.park(uses, partial(_forget, keep))


def _forget(keep: object) -> None:
    """Being an argument kept it alive; that is over."""


def _check_borrowed(context: PrimaryContext, address: int, nbytes: int) -> None:
    driver, kinds = context.driver, context.driver.CUpointer_attribute
    where = f"{nbytes:,} bytes at {address:#x}"
    if nbytes < 1:
        raise _refused(OUTSIDE, "memory of no bytes", where, "1 byte or more")
    kind = _about(driver, kinds.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)
    managed = bool(_about(driver, kinds.CU_POINTER_ATTRIBUTE_IS_MANAGED, address))
    ordinal = _about(driver, kinds.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)
    if kind != int(driver.CUmemorytype.CU_MEMORYTYPE_DEVICE) or managed:
        host = kind == int(driver.CUmemorytype.CU_MEMORYTYPE_HOST)
        got = "managed memory" if managed else "host memory" if host else "unknown to the driver"
        raise _refused(NOT_DEVICE_MEMORY, "the address is not device memory", f"{where}: {got}", f"memory allocated on {context}")
    if ordinal != context.ordinal:
        raise _refused(OTHER_DEVICE, "the memory is another device's", f"{where}, on cuda:{ordinal}", f"memory of {context}")
    made_in = _about(driver, kinds.CU_POINTER_ATTRIBUTE_CONTEXT, address) or 0  # 0 for memory of pools, which belongs to the device
    if made_in not in (0, int(context.handle)):
        raise _refused(OTHER_DEVICE, "the memory is another context's", where, f"memory of {context}'s primary context")
    start = _about(driver, kinds.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address)
    size = _about(driver, kinds.CU_POINTER_ATTRIBUTE_RANGE_SIZE, address)
    if start is None or size is None:
        return
    end = start + size
    if address + nbytes > end and made_in == 0:
        end = _end_of_pieces(driver, address, end, address + nbytes)
    if address + nbytes > end:
        raise _refused(OUTSIDE, "the memory is shorter than it was said to be", where, f"within {end - start:,} bytes at {start:#x}")


def _end_of_pieces(driver: Driver, address: int, end: int, wanted: int) -> int:
    """Where memory ends that was mapped piece by piece (cuMemMap, torch's expandable segments): the driver knows each piece by itself.

    Memory of pools is not: what lies behind it is another allocation.
    """
    kinds = driver.CUpointer_attribute
    if _about(driver, kinds.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address):
        return end
    ordinal = _about(driver, kinds.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)
    while end < wanted and _about(driver, kinds.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, end) == end:
        size = _about(driver, kinds.CU_POINTER_ATTRIBUTE_RANGE_SIZE, end)
        if not size or _about(driver, kinds.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, end) != ordinal:
            break
        end += size
    return end


def _about(driver: Driver, attribute: CUpointer_attribute, address: int) -> int | None:
    """What the driver says of a pointer; None where it says nothing."""
    answer = driver.cuPointerGetAttribute(attribute, address)
    return None if answer[0] or answer[1] is None else int(answer[1])


def _refused(rule: str, what: str, got: str, required: str) -> ArgumentError:
    return ArgumentError(Diagnostic(rule=rule, what=what, got=got, required=required, fix="copy it with dev.array"))
