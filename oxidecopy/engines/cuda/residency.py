"""Can a launch be on the device at all: its clusters, and all CTAs of a cooperative one?

The driver's occupancy calls are asked before the launch, once for each shape of a kernel, so that no launch reaches the driver that it
would refuse for want of room.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Final

from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.launch import NO_CLUSTER, LaunchShape, launch_config
from oxidecopy.engines.cuda.module import Kernel
from oxidecopy.errors import Diagnostic, ExecutionError, Site

NO_ROOM: Final = "OX5340"
NO_CLUSTER_FITS: Final = "OX5341"


def require_room(context: PrimaryContext, kernel: Kernel, shape: LaunchShape, name: str, site: Site | None = None) -> None:
    """Refuses a launch that can never be on the device. `name` is what the user calls it.

    Raises:
        ExecutionError: no cluster of it fits (OX5341), or not all of a cooperative grid fits at once (OX5340).
    """
    clustered = shape.cluster is not None and shape.cluster != NO_CLUSTER
    if not (clustered or shape.cooperative):
        return
    ctas = resident_ctas(context, kernel, shape)
    needs = f"{prod(shape.block):,} threads and {shape.shared_bytes:,} bytes of shared memory per CTA"
    if ctas == 0 and shape.cluster is not None:
        raise ExecutionError(
            Diagnostic(
                rule=NO_CLUSTER_FITS,
                what=f"no cluster of `{name}` fits on {context}",
                got=f"clusters of {prod(shape.cluster)} CTAs {shape.cluster}, {needs}",
                required="a cluster that a GPU processing cluster has room for (cuOccupancyMaxActiveClusters: 0)",
                fix="take a smaller cluster (8 CTAs are portable), or fewer stages or smaller boxes for less shared memory",
                site=site,
            )
        )
    grid, sms = prod(shape.grid), context.gpu.sms
    where = "in whole clusters" if clustered else f"{ctas // sms} on each of {sms} SMs"
    if shape.cooperative and grid > ctas:
        raise ExecutionError(
            Diagnostic(
                rule=NO_ROOM,
                what=f"the cooperative launch of `{name}` has more CTAs than {context} can hold at once",
                got=f"grid {shape.grid}: {grid:,} CTAs, {needs}",
                required=f"at most {ctas:,} CTAs, {where}",
                fix=f"launch at most {ctas:,} CTAs and let each loop over its tiles, or leave out cooperative=True",
                site=site,
            )
        )


def resident_ctas(context: PrimaryContext, kernel: Kernel, shape: LaunchShape) -> int:
    """CTAs of such launches that the device can hold at once, if nothing else is on it."""
    key = (shape.block, shape.cluster, shape.shared_bytes)
    known = kernel.resident.get(key)
    if known is None:
        with context:
            known = kernel.resident[key] = _ask(context, kernel, shape)
    return known


def _ask(context: PrimaryContext, kernel: Kernel, shape: LaunchShape) -> int:
    driver = context.driver
    if shape.cluster is None or shape.cluster == NO_CLUSTER:
        answer = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel.function, prod(shape.block), shape.shared_bytes)
        return context.gpu.sms * check(answer, "cuOccupancyMaxActiveBlocksPerMultiprocessor", kernel.name)
    config = launch_config(driver, replace(shape, cooperative=False, programmatic=False), 0)
    answer = driver.cuOccupancyMaxActiveClusters(kernel.function, config)
    if answer[0] == driver.CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE:  # the driver's other way to say that none fits
        return 0
    return prod(shape.cluster) * check(answer, "cuOccupancyMaxActiveClusters", kernel.name)
