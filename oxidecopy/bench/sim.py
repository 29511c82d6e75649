"""What import, recording and verification may cost, and the simulator's throughput on one core.

All but the import is counted in CPU time of this process, which other processes disturb less than the clock; they do disturb it, by caches.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Final

import numpy as np

import oxidecopy as ox
from oxidecopy.bench.measure import Measured, one_core, seconds
from oxidecopy.bench.pipelines import CLUSTER, DEPTH, STAGES, TILE, cluster_ring, gemm_ring, one_shot, prefetch
from oxidecopy.bench.results import result, this_cpu
from oxidecopy.errors import Diagnostic, ExecutionError, UsageError
from oxidecopy.typed.sites import LESSON_PLACES
from oxidecopy.verify import verify

if TYPE_CHECKING:
    from oxidecopy.host.bound import BoundLaunch
    from oxidecopy.host.recipe import RecipeFunction

_IMPORT_MS: Final = 50.0
_PROOF_MS: Final = 20.0
_FAST_MB_S: Final = 300.0
_HAZARDS_MB_S: Final = 30.0
# Elements along each side of the array that is copied: long enough runs to time, on either device.
_SIDE: Final = {"sim-fast": 4096, "sim": 1024}

_IMPORT: Final = """
import sys, time
start = time.perf_counter()
import oxidecopy
took = time.perf_counter() - start
heavy = sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "cuda", "ml_dtypes"})
print(took, *heavy)
"""


def measure_all(runs: int, say: Callable[[str], None]) -> list[Measured]:
    """Everything, `runs` samples each; `say` is told what comes next."""
    say("import")
    rows = [import_time(runs)]
    with one_core():
        say("recording and verifying")
        rows += proof_times(runs)
        rows += ring_times(runs)
        for device, target in (("sim-fast", _FAST_MB_S), ("sim", _HAZARDS_MB_S)):
            for name in ("one-shot", "prefetch"):
                say(f"{name} on {device}")
                rows.append(throughput(name, device, target, runs))
    return rows


def import_time(runs: int) -> Measured:
    """`import oxidecopy` in processes of its own, the compiled files warm."""
    _import_once()
    samples = tuple(1e3 * _import_once() for _ in range(runs))
    return Measured(
        what="import oxidecopy",
        unit="ms",
        samples=samples,
        target=_IMPORT_MS,
        better="lower",
        of="a fresh process each; numpy and cuda stay out",
    )


def _import_once() -> float:
    """Seconds; an error when it imports what it must not."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True, env=environment)
    took, *heavy = done.stdout.split()
    if heavy:
        raise ExecutionError(
            Diagnostic(
                rule="OX6013", what="`import oxidecopy` loads what it must not", got=", ".join(heavy), required="neither numpy nor cuda"
            )
        )
    return float(took)


def proof_times(runs: int, places: Sequence[Path] = LESSON_PLACES) -> list[Measured]:
    """Each launch of the prefetch lesson that must run: from the call of its recipe to the proof, nothing cached.

    Raises:
        UsageError: the lesson is not installed.
    """
    lessons = [path for place in places for path in sorted(place.glob("[0-9]*_prefetch.py"))]
    if not lessons:
        looked = ", ".join(map(str, places))
        raise UsageError(Diagnostic(rule="OX6012", what="the prefetch lesson is not there", got=f"none in {looked}"))
    device = ox.Device.open("sim-fast")
    samples = [_prove(lessons[0], device) for _ in range(runs + 1)][1:]  # the first loads modules
    return [
        Measured(
            what=f"record and verify {name}", unit="ms", samples=tuple(s[name] for s in samples), target=_PROOF_MS, better="lower",
            of=f"CPU time of the process: {lessons[0].name}, its arrays made, recorded and verified; a fresh pipeline each time,"
            " the proof not cached",
        )
        for name in samples[0]
    ]  # fmt: skip


def _prove(lesson: Path, device: ox.Device) -> dict[str, float]:
    """Milliseconds by pipeline, each loaded anew so that nothing is recorded yet."""
    took: dict[str, float] = {}
    for name, pipeline in run_path(str(lesson)).items():
        if not isinstance(pipeline, ox.Pipeline):
            continue
        for recipe in pipeline.recipes:
            if not recipe.refused:
                took[name] = _proof_ms(partial(_launch_of, recipe, device))
    return took


def _launch_of(recipe: RecipeFunction, device: ox.Device) -> BoundLaunch:
    return recipe(device).launch


def _proof_ms(bind: Callable[[], BoundLaunch]) -> float:
    """Milliseconds of CPU time to record and prove what is bound."""

    def record_and_prove() -> None:
        bound = bind()
        verify(bound.program, bound.launch)

    return 1e3 * seconds(record_and_prove)


def ring_times(runs: int) -> list[Measured]:
    """Each ring of a cluster: from binding its arguments to the proof, nothing cached."""
    device = ox.Device.open("sim-fast")
    found = []
    for name, bind, words in (
        ("a 4-stage cluster ring", _bound_cluster_ring, "one consumer group, grid 8, f32 2048 x 2560 in tiles of 64 x 32"),
        ("a 4-stage GEMM-like cluster ring", _bound_gemm_ring, "A and B swizzled by 128 bytes, two consumer groups, grid 8, 80 steps"),
    ):
        samples = tuple(_proof_ms(bind(device)) for _ in range(runs + 1))[1:]  # the first loads modules
        found.append(
            Measured(
                what=f"record and verify {name}", unit="ms", samples=samples, target=_PROOF_MS, better="lower",
                of=f"CPU time of the process: {STAGES} stages of multicast tiles, cluster {CLUSTER}, {words}; a fresh pipeline each time,"
                " the proof not cached",
            )
        )  # fmt: skip
    return found


def _bound_cluster_ring(device: ox.Device) -> Callable[[], BoundLaunch]:
    """Records it when called, with arguments that are there already."""
    shape = (2048, 2560)
    src = ox.TmaDescriptor.tiled(device.empty(shape, ox.f32), box=(DEPTH, DEPTH))
    first, second = device.empty(shape, ox.f32), device.empty(shape, ox.f32)
    pipe = ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)(cluster_ring)
    return lambda: pipe[8].bind(src, first, second)


def _bound_gemm_ring(device: ox.Device) -> Callable[[], BoundLaunch]:
    steps, rows = 80, 4 * CLUSTER * TILE
    shape, other = (rows, steps * DEPTH), (2 * CLUSTER * TILE, steps * DEPTH)
    a = ox.TmaDescriptor.tiled(device.empty(shape, ox.f32), box=(TILE, DEPTH), swizzle=ox.Swizzle128B)
    b = ox.TmaDescriptor.tiled(device.empty(other, ox.f32), box=(2 * TILE, DEPTH), swizzle=ox.Swizzle128B)
    first, second = device.empty(shape, ox.f32), device.empty((2 * rows, steps * DEPTH), ox.f32)
    pipe = ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)), cluster=CLUSTER)(gemm_ring)
    return lambda: pipe[8].bind(a, b, first, second, steps)


def throughput(name: str, device_name: str, target: float, runs: int) -> Measured:
    """MB/s (10^6 bytes) of payload, counted once, that a launch loads and stores; the result is checked once."""
    device = ox.Device.open(device_name)
    side = _SIDE[device_name]
    bound, x, out = _bound(name, device, (side, side))
    bound.verify()
    bound()
    if not np.array_equal(out.numpy(), x):
        raise ExecutionError(Diagnostic(rule="OX6007", what=f"{name} on {device_name}: the copy differs from its source"))
    samples = tuple(x.nbytes / 1e6 / seconds(bound) for _ in range(runs))
    clocks = "without" if device_name == "sim-fast" else "with"
    return Measured(
        what=f"{name}, {clocks} hazard clocks", unit="MB/s", samples=samples, target=target, better="higher",
        of=f"per second of CPU time: f32 {side} x {side} in {TILE} x {TILE} tiles on {device_name}, one core, verified before",
    )  # fmt: skip


def _bound(
    name: str, device: ox.Device, shape: tuple[int, int]
) -> tuple[BoundLaunch, np.ndarray[tuple[int, int], np.dtype[np.float32]], ox.GlobalArray[ox.f32, ox.D2]]:
    """A freshly decorated pipeline on a fresh array."""
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    src, out = device.array(x), device.empty(shape, ox.f32)
    maps = ox.TmaDescriptor.tiled(src, box=(TILE, TILE)), ox.TmaDescriptor.tiled(out, box=(TILE, TILE))
    rows, columns = shape[0] // TILE, shape[1] // TILE
    if name == "one-shot":
        return ox.pipeline(threads=32)(one_shot)[columns, rows].bind(*maps), x, out
    return ox.pipeline(threads=64)(prefetch)[rows].bind(*maps, columns), x, out


# ---- the result as a file
def as_data(rows: Sequence[Measured], runs: int) -> dict[str, object]:
    """The rows with what is needed to measure them again."""
    return result(f"oxidecopy bench sim --runs {runs}", rows, {**this_cpu(), "numpy": np.__version__})
