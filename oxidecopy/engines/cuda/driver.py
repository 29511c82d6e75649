"""The one door to NVIDIA's driver: `load_driver` imports the bindings, `check` opens what a call returned. Nothing else does either.

Everything here takes the driver as an argument, so that tests hand in a fake of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from oxidecopy.engines.cuda.bindings import Driver
from oxidecopy.engines.cuda.faults import error_of
from oxidecopy.errors import DeviceError, Diagnostic

if TYPE_CHECKING:
    from cuda.bindings.driver import CUresult

__all__ = ["Driver", "check", "first_line", "load_driver", "name_of", "start", "version_of"]

T = TypeVar("T")
U = TypeVar("U")

NO_DRIVER: Final = "OX5305"


def load_driver() -> Driver:
    """NVIDIA's bindings; the driver itself is loaded by the first call.

    Raises:
        DeviceError: when they are not installed or do not load.
    """
    try:
        from cuda.bindings import driver
    except ImportError as problem:
        raise _no_driver(f"cuda-python is not installed ({problem})", "pip install 'cuda-python>=12.9,<14'") from problem
    except Exception as problem:  # a broken install may raise anything at import
        raise _no_driver(f"cuda-python does not load ({first_line(problem)})", "reinstall cuda-python") from problem
    return driver


def start(driver: Driver) -> None:
    """Initialises the driver; any number of times.

    Raises:
        DeviceError: when there is none, or it refuses.
    """
    try:
        result = driver.cuInit(0)[0]
    except Exception as problem:  # without libcuda the bindings raise errors of several kinds
        absent = type(problem).__name__ == "DynamicLibNotFoundError"  # cuda-pathfinder's, which need not be installed
        reason = "libcuda was not found" if absent else first_line(problem)
        raise _no_driver(f"no NVIDIA driver answers ({reason})", "install NVIDIA's driver") from problem
    if name_of(result) == "CUDA_ERROR_NOT_INITIALIZED":  # measured: what it answers in the child of a process that used CUDA
        reason = "CUDA was used before this process was forked (cuInit: CUDA_ERROR_NOT_INITIALIZED)"
        raise _no_driver(reason, 'start processes with multiprocessing.get_context("spawn")')
    if result:
        raise _no_driver(f"no NVIDIA driver answers (cuInit: {name_of(result)})", "`nvidia-smi` says whether the driver works")


@overload
def check(answer: tuple[CUresult], call: str, about: str = ...) -> None: ...
@overload
def check(answer: tuple[CUresult, T], call: str, about: str = ...) -> T: ...
@overload
def check(answer: tuple[CUresult, T, U], call: str, about: str = ...) -> tuple[T, U]: ...
def check(answer: tuple[Any, ...], call: str, about: str = "") -> Any:
    """The value of a driver call, or its values.

    Args:
        answer: what the call returned.
        call: its name.
        about: what it was made for; shown when it failed.

    Raises:
        DeviceFaultError: for a code that says that a kernel faulted: the context is lost.
        OutOfMemoryError: for want of device memory.
        DriverError: for any other code than success.
    """
    if answer[0]:
        raise error_of(name_of(answer[0]), int(answer[0]), call, about)
    if len(answer) == 2:
        return answer[1]
    return answer[1:] if len(answer) > 2 else None


def name_of(result: CUresult) -> str:
    """The enum's name of a result code; its number where the bindings are older than the code."""
    return getattr(result, "name", None) or f"error {int(result)}"


def version_of(driver: Driver) -> tuple[int, int]:
    """The newest CUDA version the driver serves, such as (13, 0)."""
    number = check(driver.cuDriverGetVersion(), "cuDriverGetVersion")
    return number // 1000, number % 1000 // 10


def first_line(problem: BaseException) -> str:
    """The first line of its text, or its class where it has none."""
    return (str(problem).splitlines() or [type(problem).__name__])[0]


def _no_driver(reason: str, fix: str) -> DeviceError:
    return DeviceError(Diagnostic(rule=NO_DRIVER, what="CUDA cannot be used here", got=reason, required="an NVIDIA driver", fix=fix))
