"""A launch with everything packed: parameter bytes, the array of pointers to them, configuration. Repeating it is one driver call.

The driver copies the parameters while it is called, so they may be changed between two launches: that is how a prepared launch is given
other arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from cuda.bindings.driver import CUlaunchAttribute, CUlaunchConfig

    from oxidecopy.engines.cuda.driver import Driver

Three = tuple[int, int, int]
NO_CLUSTER: Final = (1, 1, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """All of a launch but the kernel and its parameters.

    Attributes:
        grid: CTAs in x, y and z.
        block: threads of a CTA.
        cluster: CTAs of a cluster, None to leave it to what the kernel was compiled with.
        shared_bytes: dynamic shared memory of a CTA.
        cooperative: the launch is refused unless all its CTAs can be on the device at once.
        programmatic: it may begin while the kernel before it on its stream is still ending; the kernel itself waits before it reads.
    """

    grid: Three
    block: Three
    cluster: Three | None = None
    shared_bytes: int = 0
    cooperative: bool = False
    programmatic: bool = False


def launch_config(driver: Driver, shape: LaunchShape, stream: int) -> CUlaunchConfig:
    """The driver's configuration; it can be launched with any number of times."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
    config.sharedMemBytes = shape.shared_bytes
    config.hStream = stream
    attributes = _attributes(driver, shape)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def _attributes(driver: Driver, shape: LaunchShape) -> list[CUlaunchAttribute]:
    ids = driver.CUlaunchAttributeID
    found = []
    if shape.cluster is not None and shape.cluster != NO_CLUSTER:
        cluster = driver.CUlaunchAttribute()
        cluster.id = ids.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dim = cluster.value.clusterDim
        dim.x, dim.y, dim.z = shape.cluster
        found.append(cluster)
    if shape.cooperative:
        cooperative = driver.CUlaunchAttribute()
        cooperative.id = ids.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        cooperative.value.cooperative = 1
        found.append(cooperative)
    if shape.programmatic:
        programmatic = driver.CUlaunchAttribute()
        programmatic.id = ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        programmatic.value.programmaticStreamSerializationAllowed = 1
        found.append(programmatic)
    return found


@final
class ParameterBlock:
    """A kernel's parameters in memory that stays where it is.

    Attributes:
        pointers: address of the array of pointers, one per parameter: what the driver calls kernelParams.
        words: its whole words of 8 bytes, to write to.
    """

    __slots__ = ("_memory", "_pointers", "nbytes", "pointers", "words")

    def __init__(self, data: bytes, offsets: Sequence[int] = (0,)) -> None:
        self.nbytes = len(data)
        self._memory = ctypes.create_string_buffer(data, len(data) or 1)
        self.words = memoryview(self._memory).cast("B")[: len(data) // 8 * 8].cast("Q")
        base = ctypes.addressof(self._memory)
        self._pointers = (ctypes.c_void_p * (len(offsets) or 1))(*(base + offset for offset in offsets))
        self.pointers = ctypes.addressof(self._pointers)

    def write(self, data: bytes) -> None:
        """Replaces the parameters."""
        if len(data) != self.nbytes:
            raise ValueError(f"{len(data)} bytes for parameters of {self.nbytes}")
        ctypes.memmove(self._memory, data, len(data))

    @property
    def data(self) -> bytes:
        """What the next launch passes."""
        return self._memory.raw[: self.nbytes]
