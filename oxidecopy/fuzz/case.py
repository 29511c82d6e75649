"""A program with one launch and its memory, and how it goes on the simulator, whoever judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap, Buffer, Engine
from oxidecopy.engines.sim import SimEngine, explore
from oxidecopy.engines.sim.memory import ForeignBuffer
from oxidecopy.errors import Diagnostic
from oxidecopy.program.program import ArrayInfo, Launch, Program
from oxidecopy.program.tensor_map import TensorMap

Data: TypeAlias = npt.NDArray[np.generic]
MAX_STEPS: Final = 20_000  # loop iterations of a run; the longest well-formed program takes a twentieth of it
_BETWEEN: Final = b"\xa5"  # what lies between and behind the rows of an array


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Global:
    """An array in global memory: its dense contents, and bytes from row to row (for the dimensions but the innermost)."""

    dtype: str
    data: Data
    strides: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the memory that holds it."""
        reach: list[int] = [(n - 1) * s for n, s in zip(self.data.shape, self.all_strides, strict=True)]
        return sum(reach) + 16  # stores are clipped in 16-byte steps

    @property
    def all_strides(self) -> tuple[int, ...]:
        """Of the innermost dimension, too."""
        return (*self.strides, self.data.itemsize)

    def view(self, raw: bytearray) -> Data:
        """The array as it lies in `raw`."""
        return np.ndarray(self.data.shape, self.data.dtype, raw, 0, self.all_strides)

    def image(self) -> bytearray:
        """The memory before the launch."""
        raw = bytearray(_BETWEEN * self.nbytes)
        self.view(raw)[...] = self.data
        return raw


def padded(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides of a row-major array whose rows are padded to multiples of 16 bytes."""
    strides: tuple[int, ...] = ()
    step = -(-shape[-1] * itemsize // 16) * 16
    for n in reversed(shape[:-1]):
        strides, step = (step, *strides), step * n
    return strides


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A program and one launch.

    Attributes:
        maps: which of `memory` each map (or entry of a table of maps) means, and how.
        arrays: which of `memory` each plain array parameter means.
        expected: contents of arrays after the launch, where numpy knows them.
        apart: no two stores of different CTAs meet, as whoever made the program knows, whether the verifier can tell or not.
        sm: compute capability.
        label: where it comes from, in words.
        scenes: what a well-formed program is made of, by name.
        edits: what was done to one, by name.
    """

    program: Program
    grid: tuple[int, int, int]
    memory: dict[str, Global]
    maps: dict[str, tuple[str, TensorMap]] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    idx: dict[str, int] = field(default_factory=dict)
    scalars: dict[str, int | float] = field(default_factory=dict)
    expected: dict[str, Data] = field(default_factory=dict)
    apart: bool = False
    sm: int = 90
    label: str = ""
    scenes: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()

    def launch(self) -> Launch:
        """What the verifier is told of the arguments."""
        return self.bindings({name: ForeignBuffer(i << 40, g.nbytes) for i, (name, g) in enumerate(self.memory.items(), 1)}).launch(self.sm)

    def bindings(self, buffers: Mapping[str, Buffer]) -> Bindings:
        """The arguments, with each array in its buffer."""
        return Bindings(
            grid=self.grid,
            maps={name: BoundMap(map=m, buffer=buffers[g]) for name, (g, m) in self.maps.items()},
            arrays={name: BoundArray(info=self._info(g), buffer=buffers[g]) for name, g in self.arrays.items()},
            idx=self.idx,
            scalars=self.scalars,
        )

    def on(self, engine: Engine) -> tuple[Bindings, dict[str, Buffer]]:
        """The arguments in fresh memory of `engine`, and that memory."""
        buffers: dict[str, Buffer] = {}
        for name, g in self.memory.items():
            raw = g.image()
            buffers[name] = engine.allocate(len(raw))
            engine.write(buffers[name], 0, memoryview(raw))
        return self.bindings(buffers), buffers

    def contents(self, engine: Engine, buffers: Mapping[str, Buffer]) -> dict[str, bytes]:
        """The bytes that a launch has left in that memory."""
        return {name: engine.read(buffers[name], 0, g.nbytes) for name, g in self.memory.items()}

    def _info(self, name: str) -> ArrayInfo:
        g = self.memory[name]
        return ArrayInfo(dtype=g.dtype, shape=g.data.shape, strides_bytes=g.all_strides)

    def mutant(self, program: Program, label: str, edits: tuple[str, ...] = ()) -> Case:
        """The same launch of another program."""
        return replace(self, program=program, expected={}, apart=False, label=f"{self.label}: {label}", edits=edits)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How one schedule went, and the bytes it left behind."""

    seed: int
    outcome: str
    findings: tuple[Diagnostic, ...]
    diagnostics: tuple[Diagnostic, ...]
    contents: dict[str, bytes]

    @property
    def clean(self) -> bool:
        """Nothing went wrong, and nothing only happened to go well."""
        return self.outcome == "ok" and not self.findings

    @property
    def rules(self) -> set[str]:
        """Ids of the simulator's rules that it broke."""
        return {d.rule for d in (*self.findings, *self.diagnostics)}


def run(case: Case, seed: int, *, hazards: bool = True) -> Run:
    """One schedule on fresh memory."""
    engine = SimEngine(sm=case.sm)
    bindings, buffers = case.on(engine)
    result = explore(case.program, bindings, seed=seed, hazards=hazards, max_steps=MAX_STEPS)
    contents = case.contents(engine, buffers)
    return Run(seed=seed, outcome=result.outcome, findings=result.findings, diagnostics=result.diagnostics, contents=contents)


# ---- numpy's view of a copy
def read_box(source: Data, at: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...] = ()) -> Data:
    """`box` elements from `at` on, `steps` apart (by default dense), zero outside `source`."""
    out = np.zeros(box, source.dtype)
    picked, to = [], []
    for c, n, d, s in zip(at, box, source.shape, steps or (1,) * len(box), strict=True):
        index = c + s * np.arange(n)
        inside = (index >= 0) & (index < d)
        picked.append(index[inside])
        to.append(np.flatnonzero(inside))
    out[np.ix_(*to)] = source[np.ix_(*picked)]
    return out


def clip(target: Data, at: tuple[int, ...], tile: Data) -> tuple[Data, Data]:
    """The part of `target` that a store of `tile` at `at` reaches, as a view, and the part of `tile` that goes there."""
    ends = [max(0, min(c + n, d) - c) for c, n, d in zip(at, tile.shape, target.shape, strict=True)]
    place = tuple(slice(c, c + n) for c, n in zip(at, ends, strict=True))
    return target[place], tile[tuple(slice(0, n) for n in ends)]
