"""What plans need to know of a device."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from oxidecopy.engines.cuda.context import PrimaryContext

_SIMULATED_SMS: Final = 4  # the simulator has none; so many CTAs take turns, where CTAs stay


class Machine(NamedTuple):
    """A device.

    Attributes:
        name: the product's, or the simulator's.
        sms: multiprocessors.
        driver: version of the driver, as it counts; 0 of a simulator.
    """

    name: str
    sms: int
    driver: int = 0


def machine_of(device: Any) -> Machine:
    """What is known of a device."""
    context = getattr(device.engine, "context", None)
    if not isinstance(context, PrimaryContext):
        return Machine(device.name, _SIMULATED_SMS)
    from oxidecopy.engines.cuda.driver import check

    return Machine(context.gpu.name, context.gpu.sms, int(check(context.driver.cuDriverGetVersion(), "cuDriverGetVersion")))
