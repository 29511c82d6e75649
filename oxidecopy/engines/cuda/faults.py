"""What the driver's result codes mean, in our words, and the error class each becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from oxidecopy.errors import DeviceFaultError, Diagnostic, DriverError, EarlierFaultError, OutOfMemoryError

CALL_FAILED: Final = "OX5301"
OUT_OF_MEMORY: Final = "OX5302"
EARLIER_FAULT: Final = "OX5303"
FAULT: Final = "OX5304"
IN_CAPTURE: Final = "OX5315"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """One result code: what happened, and the cheapest way out. `lost` when the whole context is unusable from then on."""

    what: str
    fix: str = ""
    lost: bool = False


_RESTART: Final = "start a new process: no later CUDA call in this one can succeed"
_CAPTURE: Final = "launch on the captured stream, `pipe[grid].on(stream)` or `stream=`, and read arrays behind the capture"


def _lost(what: str, fix: str = _RESTART) -> Meaning:
    return Meaning(what=what, fix=fix, lost=True)


# By the enum's name, without `CUDA_ERROR_`. Codes that are not here are reported by name and call alone.
MEANINGS: Final[dict[str, Meaning]] = {
    "INVALID_VALUE": Meaning(what="the driver refuses an argument"),
    "OUT_OF_MEMORY": Meaning(what="the device has not enough free memory", fix="free arrays, or work on a part at a time"),
    "NOT_INITIALIZED": Meaning(what="the driver was not initialised"),
    "DEINITIALIZED": Meaning(what="the driver is shutting down with this process"),
    "STUB_LIBRARY": Meaning(what="libcuda is the toolkit's stub, not a driver", fix="take the stub's folder out of LD_LIBRARY_PATH"),
    "DEVICE_UNAVAILABLE": Meaning(what="another process holds the GPU for itself", fix="nvidia-smi shows who; set compute mode DEFAULT"),
    "NO_DEVICE": Meaning(what="the driver shows no GPU", fix="look at CUDA_VISIBLE_DEVICES and nvidia-smi"),
    "INVALID_DEVICE": Meaning(what="there is no GPU of this number", fix="`oxidecopy doctor` lists them"),
    "INVALID_IMAGE": Meaning(what="the file is no cubin that this driver reads"),
    "INVALID_CONTEXT": Meaning(what="no context of this device is current"),
    "NO_BINARY_FOR_GPU": Meaning(what="the cubin holds no code for this GPU", fix="build it for this GPU's architecture"),
    "ECC_UNCORRECTABLE": _lost("the GPU's memory had an error that could not be corrected"),
    "INVALID_PTX": Meaning(what="the PTX does not compile"),
    "NVLINK_UNCORRECTABLE": _lost("NVLink had an error that could not be corrected"),
    "JIT_COMPILER_NOT_FOUND": Meaning(what="the driver has no compiler for PTX", fix="use a cubin made for this GPU"),
    "UNSUPPORTED_PTX_VERSION": Meaning(what="the PTX is newer than the driver", fix="update the driver"),
    "CONTAINED": _lost("the GPU stopped this process because of a hardware error"),
    "INVALID_SOURCE": Meaning(what="the bytes are no machine code and no PTX"),
    "INVALID_HANDLE": Meaning(what="a handle is not, or no longer, one of this context"),
    "ILLEGAL_STATE": Meaning(what="an object is not in the state this call needs"),
    "NOT_FOUND": Meaning(what="there is nothing of this name or address"),
    "NOT_READY": Meaning(what="the work is not done yet"),
    "ILLEGAL_ADDRESS": _lost("a kernel touched memory that is not there"),
    "LAUNCH_OUT_OF_RESOURCES": Meaning(
        what="the launch needs more registers, threads or shared memory than a multiprocessor has", fix="take fewer threads per block"
    ),
    "LAUNCH_TIMEOUT": _lost("a kernel ran longer than the display's watchdog allows"),
    "CONTEXT_IS_DESTROYED": _lost("the context was destroyed", "something called cuDevicePrimaryCtxReset or cudaDeviceReset"),
    "ASSERT": _lost("an assert in a kernel failed"),
    "HARDWARE_STACK_ERROR": _lost("a kernel overran its call stack"),
    "ILLEGAL_INSTRUCTION": _lost("a kernel met an instruction that the GPU cannot execute with these operands"),
    "MISALIGNED_ADDRESS": _lost("a kernel used an address that is not aligned as the access needs"),
    "INVALID_ADDRESS_SPACE": _lost("a kernel used an address of the wrong memory space"),
    "INVALID_PC": _lost("a kernel jumped to where no code is"),
    "LAUNCH_FAILED": _lost("a kernel failed with a fault that the driver does not tell apart"),
    "COOPERATIVE_LAUNCH_TOO_LARGE": Meaning(what="a cooperative grid does not fit the GPU at once", fix="launch fewer blocks"),
    "TENSOR_MEMORY_LEAK": _lost("a kernel ended without freeing its tensor memory"),
    "PEER_ACCESS_ALREADY_ENABLED": Meaning(what="the memory of that GPU is reached already"),
    "NOT_PERMITTED": Meaning(what="the call is not permitted here"),
    "NOT_SUPPORTED": Meaning(what="this driver or GPU does not support the call"),
    "SYSTEM_NOT_READY": Meaning(what="a service that the GPU needs is not running", fix="look at nvidia-fabricmanager"),
    "SYSTEM_DRIVER_MISMATCH": Meaning(what="libcuda and the kernel module are of different versions", fix="reboot after the update"),
    "COMPAT_NOT_SUPPORTED_ON_DEVICE": Meaning(
        what="the forward-compatibility libcuda does not work with this GPU", fix="take its folder out of LD_LIBRARY_PATH"
    ),
    "STREAM_CAPTURE_UNSUPPORTED": Meaning(what="the call cannot be part of a stream capture", fix=_CAPTURE),
    "STREAM_CAPTURE_INVALIDATED": Meaning(what="the capture was spoilt by an earlier call", fix="capture again without that call"),
    "STREAM_CAPTURE_MERGE": Meaning(what="the call would join two captures", fix=_CAPTURE),
    "STREAM_CAPTURE_UNMATCHED": Meaning(what="the capture did not begin in this stream", fix="end it where it began"),
    "STREAM_CAPTURE_UNJOINED": Meaning(
        what="streams forked during the capture were not joined", fix="wait for their events before the end"
    ),
    "STREAM_CAPTURE_ISOLATION": Meaning(what="work outside the capture would depend on it", fix=_CAPTURE),
    "STREAM_CAPTURE_IMPLICIT": Meaning(what="the call would wait for a stream that is being captured", fix=_CAPTURE),
    "CAPTURED_EVENT": Meaning(what="the event was last recorded in a capture", fix="record it outside"),
    "STREAM_CAPTURE_WRONG_THREAD": Meaning(what="another thread began the capture", fix="end it there"),
    "GRAPH_EXEC_UPDATE_FAILURE": Meaning(what="the graph cannot take this update", fix="instantiate it again"),
    "INVALID_CLUSTER_SIZE": Meaning(
        what="no cluster of this size fits the GPU with these threads and shared memory",
        fix="take a smaller cluster, or less shared memory",
    ),
    "UNKNOWN": Meaning(what="the driver failed and does not say why"),
}
_UNTOLD: Final = Meaning(what="the driver call failed")


def meaning(name: str) -> Meaning:
    """What a code means; `name` is the enum's, such as ``CUDA_ERROR_ILLEGAL_ADDRESS``."""
    return MEANINGS.get(name.removeprefix("CUDA_ERROR_"), _UNTOLD)


def is_lost(name: str) -> bool:
    """The code says that the whole context is unusable from now on: every later call returns it, whoever makes it."""
    return meaning(name).lost


def error_of(name: str, code: int, call: str, about: str = "") -> DriverError | DeviceFaultError:
    """The error that a failed call becomes.

    Args:
        name: the result's enum name.
        code: its number.
        call: the driver call that returned it.
        about: what it was made for, such as "1,024 bytes on cuda:0".
    """
    told = meaning(name)
    got = f"{call}: {name} ({code})" + (f"; {about}" if about else "")
    if told.lost:
        return DeviceFaultError(
            Diagnostic(
                rule=FAULT,
                what=f"a kernel of this process faulted: {told.what}",
                got=got,
                required="kernels that end without a fault",
                fix=f"run the program on the simulator, or under compute-sanitizer, to see where; {told.fix}",
            ),
            code=code,
        )
    if name == "CUDA_ERROR_OUT_OF_MEMORY":
        said = Diagnostic(rule=OUT_OF_MEMORY, what=told.what, got=got, fix=told.fix)
        return OutOfMemoryError(said, name=name, code=code, call=call)
    capture = name.startswith(("CUDA_ERROR_STREAM_CAPTURE_", "CUDA_ERROR_CAPTURED_EVENT"))
    rule, required = (IN_CAPTURE, "calls that a capture allows") if capture else (CALL_FAILED, "")
    return DriverError(Diagnostic(rule=rule, what=told.what, got=got, required=required, fix=told.fix), name=name, code=code, call=call)


def earlier_fault(name: str, code: int, doing: str, where: str) -> EarlierFaultError:
    """For a code that was there before `doing` (such as "this launch") began on device `where`."""
    told = meaning(name)
    return EarlierFaultError(
        Diagnostic(
            rule=EARLIER_FAULT,
            what=f"an earlier kernel in this process faulted ({name}); {doing} was not started",
            got=f"{where} lost its context: {told.what}",
            required="a context without a fault",
            fix=f"{told.fix}. compute-sanitizer shows the kernel, which may be another library's",
        ),
        code=code,
    )
