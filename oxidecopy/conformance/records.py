"""Launches a program by the interpreter's records, which no longer run it where its whole is recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oxidecopy.engines.cuda.code import encode_program
from oxidecopy.engines.cuda.engine import CudaEngine

if TYPE_CHECKING:
    from oxidecopy.conformance.case import Made
    from oxidecopy.host.device import Device


def by_records(made: Made, device: Device) -> None:
    """Launches and waits; on a simulator as any launch."""
    engine = device.engine
    if not isinstance(engine, CudaEngine):
        made.launch()
        return
    verified = made.launch.verify()
    image = encode_program(verified.program, verified.assumptions.launch, whole=False)
    engine.run_image(verified, image, made.launch.bindings)
