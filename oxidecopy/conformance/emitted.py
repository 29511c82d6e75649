"""Launches a program as the CUDA C++ that `oxidecopy emit` writes: a third engine, with nothing in common with the interpreter's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oxidecopy.engines.cuda.emit.raw import run_emitted
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import DeviceError, Diagnostic

if TYPE_CHECKING:
    from oxidecopy.conformance.case import Made
    from oxidecopy.host.device import Device


def by_emitted_code(made: Made, device: Device) -> None:
    """Compiles, launches and waits, as `run_emitted`.

    Raises:
        DeviceError: the device is no GPU.
    """
    engine = device.engine
    if not isinstance(engine, CudaEngine):
        raise DeviceError(Diagnostic(rule="OX6014", what="emitted code runs on a GPU", got=device.name, fix="--device cuda:0"))
    run_emitted(engine, made.launch.verify(), made.launch.bindings)
