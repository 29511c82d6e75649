"""Launches a program as the CUDA C++ that `oxidecopy emit` writes: a third engine, with nothing in common with the interpreter's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oxidecopy.engines.cuda.emit import emitted
from oxidecopy.engines.cuda.emit.raw import compiled, raw_launch
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import DeviceError, Diagnostic

if TYPE_CHECKING:
    from oxidecopy.conformance.case import Made
    from oxidecopy.host.device import Device


def by_emitted_code(made: Made, device: Device) -> None:
    """Compiles, launches and waits. Waits in the kernel are bounded, so that a program that hangs ends.

    Raises:
        DeviceError: the device is no GPU.
    """
    engine = device.engine
    if not isinstance(engine, CudaEngine):
        raise DeviceError(Diagnostic(rule="OX6014", what="emitted code runs on a GPU", got=device.name, fix="--device cuda:0"))
    verified = made.launch.verify()
    code = emitted(verified)
    counter = engine.allocate(256)
    engine.fill(counter, 0, 256, 0)
    cubin = compiled(code, engine.sm, "-DOXIDECOPY_BOUNDED_WAITS")
    engine.launch_raw(raw_launch(code, cubin, verified, made.launch.bindings, counter), None)
