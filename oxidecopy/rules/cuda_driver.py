"""Rules of the CUDA driver layer: what the driver answers, and the lives of contexts, memory, streams and events."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_API: Final = "CUDA driver API, CUresult"
_LIFE: Final = "design of the CUDA engine: use after free, the wrong device and the wrong context are errors"
_HANDLE: Final = "from oxidecopy.engines.cuda.stream import stream_handle\n\n"


def _rule(number: int, title: str, error: str, why: str, source: str, wrong: str = "", right: str = "") -> Rule:
    return Rule(id=f"OX53{number:02}", title=title, error=error, why=why, source=source, wrong=wrong, right=right)


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        1,
        "A call of the CUDA driver succeeds",
        "DriverError",
        "The driver refused a call that passed all checks made before it. The message names the call, the driver's code and what it means.",
        _API,
    ),
    _rule(
        2,
        "The device has the memory that is asked for",
        "OutOfMemoryError",
        "Arrays of this process, of other libraries in it and of other processes share the device's memory. Memory of launches in flight "
        "is waited for before this is raised; from `dev.zeros` it is the cause of OX5011.",
        f"{_API}: CUDA_ERROR_OUT_OF_MEMORY",
    ),
    _rule(
        3,
        "No kernel has faulted in this process before a launch starts",
        "EarlierFaultError",
        "After a fault the device's context is lost: every later call in the process fails with the fault's code, whoever makes it. It is "
        "asked for first, so that the fault of an earlier kernel (perhaps another library's) is not taken for the fault of this one.",
        f"{_API}: codes that leave the process in an inconsistent state",
    ),
    _rule(
        4,
        "A kernel ends without a fault",
        "DeviceFaultError",
        "A fault (an address that is not there, an instruction that cannot be executed) ends the kernel and loses the context of the whole "
        "process. Verified programs have none.",
        f"{_API}: CUDA_ERROR_ILLEGAL_ADDRESS and its like",
    ),
    _rule(
        5,
        "The CUDA engine has NVIDIA's driver and cuda-python",
        "DeviceError",
        "Where there is no driver, `ox.Device.open()` takes the simulator and `why` says so; "
        'OX5013 is what `ox.Device.open("cuda:0")` raises. `oxidecopy doctor` lists what is there.',
        "CUDA driver API, cuInit",
    ),
    _rule(
        6,
        "A device is not used after it was closed",
        "LifetimeError",
        "Its memory, streams and modules went with it.",
        _LIFE,
    ),
    _rule(
        10,
        "Device memory is not used after it was freed",
        "LifetimeError",
        "Its address may belong to another array by then. Dropping an array is always safe: memory that launches in flight use lives until "
        "they are done.",
        _LIFE,
        "a = dev.zeros((4, 4), ox.f32)\ndev.free(a)\na.numpy()\n",
        "a = dev.zeros((4, 4), ox.f32)\na.numpy()\ndev.free(a)\n",
    ),
    _rule(
        11,
        "Memory is used on the device that it was allocated on",
        "LifetimeError",
        "An address means nothing on another device, and two opened devices do not share memory, even where they are one GPU. "
        "`dev.borrow(a, ox.f32, rank=2)` shares an array with another device that has the same memory.",
        _LIFE,
        "other = ox.Device.open('sim')\ndev.free(other.zeros((4, 4), ox.f32))\n",
        "other = ox.Device.open('sim')\nother.free(other.zeros((4, 4), ox.f32))\n",
    ),
    _rule(
        12,
        "Borrowed memory is memory of a device",
        "ArgumentError",
        "Tensor maps over host memory would be read over the bus, and managed memory would move under the copy; neither is supported.",
        "CUDA driver API, cuPointerGetAttribute: CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED",
    ),
    _rule(
        13,
        "A copy stays inside the device memory that it is given",
        "UsageError",
        "Beyond it lies other memory, which the driver would overwrite as readily.",
        _LIFE,
    ),
    _rule(
        14,
        "Memory is not asked for while a capture that uses it goes on",
        "UsageError",
        "Nothing runs while a stream is captured: there is nothing to read yet, and to wait for the stream would spoil the capture.",
        "CUDA driver API, stream capture: cuStreamSynchronize",
    ),
    _rule(
        15,
        "A call that is made during a stream capture is one that captures allow",
        "DriverError",
        "Waiting for a stream that is captured, and work on the default stream beside it, cannot be part of a graph; most such calls spoil "
        "the capture.",
        f"{_API}: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and its like",
    ),
    _rule(
        16,
        "Two GPUs whose memory is shared reach each other",
        "ArgumentError",
        "`dev.peer(a)` lets kernels of one GPU load from another one and store to it, which takes NVLink, or PCIe without an IOMMU or a "
        "host bridge in between that forbids it; `nvidia-smi topo -p2p rw` shows the pairs.",
        f"{_API}: cuDeviceCanAccessPeer",
    ),
    _rule(
        20,
        "A stream is an ox.Stream, an object with __cuda_stream__, or a handle as an integer",
        "ArgumentError",
        "Only these say which stream is meant without guessing. Handles of torch and cupy streams are integers: `.cuda_stream`, `.ptr`.",
        "the CUDA stream protocol of cuda.core: `__cuda_stream__() -> (0, handle)`",
        _HANDLE + "stream_handle('the default stream')\n",
        _HANDLE + "stream_handle(0)\n",
    ),
    _rule(
        21,
        "Streams and events are used on the device that they belong to",
        "ArgumentError",
        "The driver refuses work on a stream whose context is not current, and streams of the simulator are none of CUDA's.",
        "CUDA driver API, cuStreamGetCtx",
        "other = ox.Device.open('sim')\nox.Stream(dev).record(ox.Event(other))\n",
        "other = ox.Device.open('sim')\nox.Stream(dev).wait(ox.Event(other))\n",
    ),
    _rule(
        22,
        "Streams and events are not used after they were closed",
        "LifetimeError",
        "Their handles may name something else by then. Dropping one is always safe.",
        _LIFE,
        "stream = ox.Stream(dev)\nstream.close()\nstream.synchronize()\n",
        "stream = ox.Stream(dev)\nstream.synchronize()\nstream.close()\n",
    ),
    _rule(
        23,
        "Time passes between two events that have a time and were recorded",
        "LifetimeError",
        "An event that was never recorded, or was made with timing=False, marks no moment.",
        "CUDA driver API, cuEventElapsedTime",
        "start = ox.Event(dev)\nox.Stream(dev).record().milliseconds_since(start)\n",
        "start = ox.Stream(dev).record()\nox.Stream(dev).record().milliseconds_since(start)\n",
    ),
)
