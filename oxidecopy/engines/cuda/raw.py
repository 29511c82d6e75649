"""Kernels that the user compiled: loaded once per image, packed once per launch object and stream, then launched like any other."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from threading import Lock
from typing import final
from weakref import WeakKeyDictionary

from oxidecopy.engines.base import BoundArray, BoundMap, RawLaunch
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.launch import LaunchShape, ParameterBlock
from oxidecopy.engines.cuda.memory import CudaBuffer, owned_by
from oxidecopy.engines.cuda.module import Module
from oxidecopy.engines.cuda.quiet import upload
from oxidecopy.engines.cuda.repeat import Repeatable
from oxidecopy.engines.cuda.residency import require_room
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.engines.cuda.tensor_map import MapEncoder


@final
class RawLauncher:
    """The user's kernels in one context."""

    def __init__(self, context: PrimaryContext, encoder: MapEncoder) -> None:
        self._context = context
        self._encoder = encoder
        self._modules: dict[bytes, Module] = {}
        self._ready: WeakKeyDictionary[RawLaunch, dict[int, Repeatable]] = WeakKeyDictionary()
        self._lock = Lock()

    def launch(self, launch: RawLaunch, stream: Stream) -> None:
        """Launches on `stream`; does not wait."""
        with self._lock:
            ready = self._ready.setdefault(launch, {})
            one = ready.get(stream.handle)
            if one is None or one.stream.closed:
                one = ready[stream.handle] = self._pack(launch, stream)
        one()

    def _pack(self, launch: RawLaunch, stream: Stream) -> Repeatable:
        context = self._context
        shape = LaunchShape(
            grid=launch.grid,
            block=launch.threads,
            cluster=launch.cluster,
            shared_bytes=launch.shared_bytes,
            cooperative=launch.cooperative,
            programmatic=launch.programmatic,
        )
        with context, context.relaxed():
            kernel = self._module(launch.image).kernel(launch.kernel)
            clusters = launch.cluster or launch.compiled_cluster
            threads, cluster = prod(launch.threads), prod(clusters or (1, 1, 1))
            kernel.allow(threads=threads, shared_bytes=launch.shared_bytes, cluster_size=cluster)
            require_room(context, kernel, replace(shape, cluster=clusters), launch.kernel)
            data, buffers = bytearray(launch.parameter_bytes), []
            for parameter in launch.parameters:
                value = parameter.value
                if isinstance(value, tuple):
                    pointed = [owned_by(context, entry.buffer) for entry in value]
                    table = upload(context, b"".join(map(self._pointing, value, pointed)))
                    buffers += [*pointed, table]
                    value = table.address.to_bytes(8, "little")
                elif not isinstance(value, bytes):
                    buffers.append(owned_by(context, value.buffer))
                    value = self._pointing(value, buffers[-1])
                data[parameter.offset : parameter.offset + parameter.nbytes] = value
        block = ParameterBlock(bytes(data), [parameter.offset for parameter in launch.parameters])
        return Repeatable(context, kernel, shape, stream, block, tuple(dict.fromkeys(buffers)))

    def _pointing(self, bound: BoundMap | BoundArray, buffer: CudaBuffer) -> bytes:
        address = buffer.address + bound.offset_bytes
        return self._encoder.encode(bound.map, address) if isinstance(bound, BoundMap) else address.to_bytes(8, "little")

    def _module(self, image: bytes) -> Module:
        """A cubin in the driver. It stays there: its kernels may be running, and a process has few."""
        found = self._modules.get(image)
        if found is None:
            limit = self._context.gpu.shared_bytes_block
            found = self._modules[image] = Module(self._context.driver, image, limit, "the cubin")
        return found
