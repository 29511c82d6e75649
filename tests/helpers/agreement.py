"""The verifier and the simulator's `explore` against each other, on one program at a time.

Neither may know of the other, and both follow the same theory, so each is the other's oracle:
a program that is accepted must end well under every schedule with the same bytes, and one that is refused must go wrong under some
schedule, unless its rule is one of those that a schedule need not show (`NOT_SHOWN`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap, Buffer
from oxidecopy.engines.sim import SimEngine, explore
from oxidecopy.engines.sim.memory import ForeignBuffer
from oxidecopy.errors import Diagnostic
from oxidecopy.isa import ops
from oxidecopy.program.program import ArrayInfo, Launch, Program
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.verify import inspect
from oxidecopy.verify import rule_ids as ids

Data: TypeAlias = npt.NDArray[np.generic]
MAX_STEPS: Final = 20_000

# Rules that a refused program may break without any schedule going wrong: why each of them is right all the same.
_BESIDE = "what lies beside the array is another barrier or tile, which may happen to take the access"
_UNDEFINED = "undefined by PTX, but the model of it here ends well"
_BOUND = "a bound of the proof, not a fault of the program"
NOT_SHOWN: Final[dict[str, str]] = {
    ids.WAIT_BEHIND: "a waiter must be overtaken by a whole phase before anything shows: few schedules do that",
    ids.EXPECT_LATE: "bytes announced earlier, and copied later by the same thread, can hold the phase open; the rule asks for an arrival",
    ids.GUARDED: "what hangs on the answer of a test may be harmless in this program; the theory wants none of it",
    ids.ANSWER: "an answer that was not asked for is an unset register, which is a no here",
    ids.BARRIER_INDEX: _BESIDE,
    ids.TILE_INDEX: _BESIDE,
    ids.DROP_TO_ZERO: _UNDEFINED,
    ids.SYNC_COUNT: _UNDEFINED,
    ids.COPY_THREADS: "the recorder asks for a Leader; copies issued anew by each thread may still agree with the bytes announced by each",
    ids.SWIZZLE_DIFFERS: "the copy runs, but its rows do not lie where the tile's layout says",
    ids.TILE_SMALL: "the copy runs into the padding behind the tile, where nothing may lie in this program",
    ids.COORD_INNER: "judged for every copy of the program, also for one that no block reaches",
    ids.SYNC_NOT_REACHED: "threads that have exited count as arrived at the cluster barrier (PTX), but the design asks all to come",
    ids.STORES_MEET: "stores of one cluster's CTAs may be ordered by syncs, which the comparison of whole launches does not look at",
    ids.LOAD_OF_STORED: "as with stores that meet: syncs of a cluster are not looked at",
    ids.PIECES: _BOUND,
    ids.STEPS: _BOUND,
}
_MEETINGS: Final = {"OX4117", "OX4118"}


# ---- a program with its arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class Global:
    """An array in global memory: its dense contents, and bytes from row to row (for the dimensions but the innermost)."""

    dtype: str
    data: Data
    strides: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        reach: list[int] = [(n - 1) * s for n, s in zip(self.data.shape, self.all_strides, strict=True)]
        return sum(reach) + 16  # stores are clipped in 16-byte steps

    @property
    def all_strides(self) -> tuple[int, ...]:
        return (*self.strides, self.data.itemsize)

    def view(self, raw: bytearray) -> Data:
        return np.ndarray(self.data.shape, self.data.dtype, raw, 0, self.all_strides)


def padded(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides of a row-major array whose rows are padded to multiples of 16 bytes."""
    strides: tuple[int, ...] = ()
    step = -(-shape[-1] * itemsize // 16) * 16
    for n in reversed(shape[:-1]):
        strides, step = (step, *strides), step * n
    return strides


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A program and one launch. `maps` and `arrays` say which of `memory` each parameter means; `expected` are final contents, if known."""

    program: Program
    grid: tuple[int, int, int]
    memory: dict[str, Global]
    maps: dict[str, tuple[str, TensorMap]] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    idx: dict[str, int] = field(default_factory=dict)
    expected: dict[str, Data] = field(default_factory=dict)
    label: str = ""

    def launch(self) -> Launch:
        return self.bindings({name: ForeignBuffer(i << 40) for i, name in enumerate(self.memory, 1)}).launch(90)

    def bindings(self, buffers: Mapping[str, Buffer]) -> Bindings:
        """The arguments, with each array in its buffer."""
        return Bindings(
            grid=self.grid,
            maps={name: BoundMap(map=m, buffer=buffers[g]) for name, (g, m) in self.maps.items()},
            arrays={name: BoundArray(info=self._info(g), buffer=buffers[g]) for name, g in self.arrays.items()},
            idx=self.idx,
            scalars={},
        )

    def _info(self, name: str) -> ArrayInfo:
        g = self.memory[name]
        return ArrayInfo(dtype=g.dtype, shape=g.data.shape, strides_bytes=g.all_strides)

    def mutant(self, program: Program, label: str) -> Case:
        """The same launch of another program."""
        return replace(self, program=program, expected={}, label=f"{self.label}: {label}")


# ---- one run
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
        return self.outcome == "ok" and not self.findings

    @property
    def rules(self) -> set[str]:
        return {d.rule for d in (*self.findings, *self.diagnostics)}


def run(case: Case, seed: int, *, hazards: bool = True) -> Run:
    """One schedule on fresh memory."""
    engine = SimEngine()
    buffers = {}
    for name, g in case.memory.items():
        raw = bytearray(b"\xa5" * g.nbytes)
        g.view(raw)[...] = g.data
        buffers[name] = engine.allocate(len(raw))
        engine.write(buffers[name], 0, memoryview(raw))
    result = explore(case.program, case.bindings(buffers), seed=seed, hazards=hazards, max_steps=MAX_STEPS)
    contents = {name: engine.read(buffers[name], 0, g.nbytes) for name, g in case.memory.items()}
    return Run(seed=seed, outcome=result.outcome, findings=result.findings, diagnostics=result.diagnostics, contents=contents)


# ---- both oracles on one program
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`problem` is empty where the two agree; `shown` says whether a refusal was seen to go wrong."""

    accepted: bool
    rules: tuple[str, ...] = ()
    problem: str = ""
    shown: bool = False
    runs: int = 0
    detail: str = ""


def judge(case: Case, *, good_seeds: Iterable[int] = range(4), bad_seeds: Iterable[int] = range(12)) -> Verdict:
    """What the two say about `case`. Accepted programs run under all `good_seeds`, refused ones until a run of `bad_seeds` goes wrong."""
    report = inspect(case.program, case.launch())
    rules = tuple(sorted({d.rule for d in report.violations}))
    if rules:
        return _refused(case, rules, bad_seeds, "\n".join(map(str, report.violations)))
    return _accepted(case, good_seeds, undecided=any(w.rule == ids.MEETING_UNDECIDED for w in report.warnings))


def _refused(case: Case, rules: tuple[str, ...], seeds: Iterable[int], detail: str) -> Verdict:
    count = 0
    for seed in seeds:
        count += 1
        if not run(case, seed).clean:
            return Verdict(accepted=False, rules=rules, shown=True, runs=count)
    # Rules cascade: one of these can bring others with it.
    problem = "" if any(rule in NOT_SHOWN for rule in rules) else "refused, but no schedule went wrong"
    return Verdict(accepted=False, rules=rules, problem=problem, runs=count, detail=detail)


def _accepted(case: Case, seeds: Iterable[int], *, undecided: bool) -> Verdict:
    """`undecided`: the verifier warns that stores may meet, so that they may."""
    runs = [run(case, 0, hazards=False), *(run(case, seed) for seed in seeds)]
    for r in runs:
        if r.outcome != "ok" or r.rules - (_MEETINGS if undecided else set()):
            detail = "\n".join(map(str, (*r.diagnostics, *r.findings)))
            return Verdict(
                accepted=True,
                rules=tuple(sorted(r.rules)),
                problem=f"accepted, but seed {r.seed} ends in {r.outcome}",
                runs=len(runs),
                detail=detail,
            )
        if r.contents != runs[0].contents and not undecided and not _asks(case.program):
            changed = [name for name in r.contents if r.contents[name] != runs[0].contents[name]]
            return Verdict(accepted=True, problem=f"accepted, but seed {r.seed} leaves other bytes in {changed}", runs=len(runs))
    for name, wanted in case.expected.items():
        got = case.memory[name].view(bytearray(runs[0].contents[name]))
        if not np.array_equal(got, wanted):
            return Verdict(accepted=True, problem=f"accepted, but {name} is not as expected", runs=len(runs), detail=f"{got}\n{wanted}")
    return Verdict(accepted=True, runs=len(runs))


def _asks(program: Program) -> bool:
    """True when something hangs on the answer of a test: what plain stores write may then differ from schedule to schedule, as designed."""
    return any(isinstance(step.op, ops.MbarrierTestToken | ops.MbarrierTestParity) for step in program.walk())


# ---- numpy's view of a copy
def read_box(source: Data, at: tuple[int, ...], box: tuple[int, ...]) -> Data:
    """The box at `at`, zero outside `source`."""
    out = np.zeros(box, source.dtype)
    inside = [(max(c, 0), min(c + n, d)) for c, n, d in zip(at, box, source.shape, strict=True)]
    if all(lo < hi for lo, hi in inside):
        to = tuple(slice(lo - c, hi - c) for (lo, hi), c in zip(inside, at, strict=True))
        out[to] = source[tuple(slice(lo, hi) for lo, hi in inside)]
    return out


def clip(target: Data, at: tuple[int, ...], tile: Data) -> tuple[Data, Data]:
    """The part of `target` that a store of `tile` at `at` reaches, as a view, and the part of `tile` that goes there."""
    ends = [max(0, min(c + n, d) - c) for c, n, d in zip(at, tile.shape, target.shape, strict=True)]
    place = tuple(slice(c, c + n) for c, n in zip(at, ends, strict=True))
    return target[place], tile[tuple(slice(0, n) for n in ends)]
