"""Runs what `Builder` collects on the simulator: memory for every map and array, then `explore`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap
from oxidecopy.engines.sim import Exploration, SimBuffer, SimEngine, explore
from oxidecopy.isa.dtypes import DTYPES
from tests.helpers.programs import Builder


@dataclass
class Rig:
    """A builder's program with its memory."""

    builder: Builder
    engine: SimEngine = field(default_factory=SimEngine)
    buffers: dict[str, SimBuffer] = field(default_factory=dict)
    scalars: dict[str, int | float] = field(default_factory=dict)

    def put(self, name: str, values: npt.NDArray[Any]) -> None:
        """Memory with these bytes for a map or array."""
        data = np.ascontiguousarray(values).tobytes()
        self.buffers[name] = self.engine.allocate(len(data))
        self.engine.write(self.buffers[name], 0, memoryview(data))

    def get(self, name: str, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        kind = np.dtype(DTYPES[dtype].numpy)
        size = int(np.prod(shape)) * kind.itemsize
        return np.frombuffer(self.engine.read(self.buffers[name], 0, size), kind).reshape(shape)

    def bindings(self) -> Bindings:
        b = self.builder
        for name, tensor in b.maps.items():
            if name not in self.buffers:
                spans = zip(tensor.global_dim, (*tensor.global_strides, tensor.dtype_info.nbytes), strict=True)
                self.buffers[name] = self.engine.allocate(sum((n - 1) * s for n, s in spans) + tensor.dtype_info.nbytes)
        for name, info in b.arrays.items():
            if name not in self.buffers:
                self.buffers[name] = self.engine.allocate(info.shape[0] * info.strides_bytes[0])
        return Bindings(
            grid=b.grid,
            maps={name: BoundMap(map=tensor, buffer=self.buffers[name]) for name, tensor in b.maps.items()},
            arrays={name: BoundArray(info=info, buffer=self.buffers[name]) for name, info in b.arrays.items()},
            idx=b.idx,
            scalars=self.scalars,
        )

    def explore(self, *, seed: int = 0, hazards: bool = True, max_steps: int = 100_000) -> Exploration:
        return explore(self.builder.program(), self.bindings(), seed=seed, hazards=hazards, max_steps=max_steps)


def findings(b: Builder, seeds: int = 12) -> set[tuple[str, int]]:
    """Rule and line of everything found on some schedules.

    Which of two unordered accesses comes second, and so gets the report, depends on the schedule; that there is a report must not: what is
    wrong on one schedule is noticed on all of them.
    """
    found: set[tuple[str, int]] = set()
    clean = []
    for seed in range(seeds):
        result = Rig(b).explore(seed=seed)
        one = {(d.rule, d.site.line if d.site else 0) for d in (*result.findings, *result.diagnostics)}
        found |= one
        if not one:
            clean.append(seed)
    assert not found or not clean, f"{found} not noticed by seeds {clean}"
    return found


def rules(b: Builder, seeds: int = 12) -> set[str]:
    return {rule for rule, _ in findings(b, seeds)}


def check(b: Builder, wanted: set[tuple[str, int]]) -> None:
    """A clean program is clean on every schedule; each wanted report shows on some schedule."""
    found = findings(b)
    assert wanted <= found
    assert bool(wanted) == bool(found), found
