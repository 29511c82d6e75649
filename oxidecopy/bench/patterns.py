"""Runs the lessons on published patterns on a GPU and measures them: `python -m oxidecopy.bench.patterns [--output FILE.json]`.

Each pipeline runs on its lesson's own data, where its bytes must be those of the simulator and of numpy, and on a large array, where they
must be numpy's, and where it is timed beside the driver's own copy and beside the same program as CUDA C++. Each twin must be refused
before it reaches the GPU. It needs a GPU, so it is no step of `_tools.check`; with `--device sim` it runs the lessons' own data, untimed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any, Final, final

import numpy as np

import oxidecopy as ox
from oxidecopy.bench.emitted import hand_written
from oxidecopy.bench.gpu import Bench, open_bench
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.compare import difference
from oxidecopy.host.recipe import Recipe, RecipeFunction

ROOT: Final = Path(__file__).resolve().parents[2]
RUNS: Final = 9
_MEMCPY_BYTES: Final = 1 << 30
_FULL: Final = 4  # CTAs for each multiprocessor, where a lesson leaves their number open (its `CTAS`)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A pipeline of a lesson with a large array for it; `moved` are the bytes that copies read and write of one of that shape."""

    lesson: str
    pipeline: str
    shape: tuple[int, ...]
    moved: Callable[[tuple[int, ...]], int]
    dtype: type[np.generic] = np.float32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of one pipeline, or of one twin (which has a rule, and nothing else)."""

    lesson: str
    pipeline: str
    right: bool
    refused: str = ""
    shape: tuple[int, ...] = ()
    moved_bytes: int = 0
    milliseconds: float = 0.0
    tb_s: float = 0.0
    of_memcpy: float = 0.0
    of_emitted: float = 0.0


def _mainloop(shape: tuple[int, ...]) -> int:
    blocks, steps = shape[0] // 64, shape[1] // 32
    return blocks * blocks * (steps * 3 // 2 + 1) * 64 * 32 * 4  # A for each CTA, half of B for each; one tile of the result


def _attention(shape: tuple[int, ...]) -> int:
    blocks, heads = shape[1] // 64, shape[2] // 32
    return heads * (sum(2 * (i + 2) for i in range(0, blocks, 2)) + 2 * blocks) * 64 * 32 * 4  # K and V; queries and result


PATTERNS: Final = (
    Pattern(lesson="18_mainloop", pipeline="mainloop", shape=(2048, 2048), moved=_mainloop),
    Pattern(lesson="18_mainloop", pipeline="with_ring", shape=(2048, 2048), moved=_mainloop),
    Pattern(lesson="19_ping_pong", pipeline="ping_pong", shape=(1 << 16, 512), moved=lambda s: s[0] * (s[1] + 32) * 4),
    Pattern(lesson="20_epilogue", pipeline="with_ring", shape=(1 << 13, 4096), moved=lambda s: s[0] * s[1] * 10),
    Pattern(lesson="20_epilogue", pipeline="by_hand", shape=(1 << 13, 4096), moved=lambda s: s[0] * s[1] * 10),
    Pattern(lesson="21_split_k", pipeline="in_memory", shape=(1 << 13, 4096), moved=lambda s: s[0] * (s[1] + 4 * 32) * 4, dtype=np.int32),
    Pattern(lesson="21_split_k", pipeline="in_cluster", shape=(1 << 13, 4096), moved=lambda s: s[0] * (s[1] + 32) * 4, dtype=np.int32),
    Pattern(lesson="22_halo_exchange", pipeline="exchange", shape=(1 << 13, 4096), moved=lambda s: s[0] * s[1] * 8 + s[0] // 16 * s[1] * 4),
    Pattern(lesson="23_convolution", pipeline="edges", shape=(8, 256, 256, 64), moved=lambda s: int(np.prod(s)) * 4 * (6 + 1)),
    Pattern(lesson="24_experts", pipeline="dispatch", shape=(1 << 15, 1024), moved=lambda s: s[0] * s[1] * 8),
    Pattern(lesson="24_experts", pipeline="with_ring", shape=(1 << 15, 1024), moved=lambda s: s[0] * s[1] * 8),
    Pattern(lesson="25_attention", pipeline="attention", shape=(3, 4096, 512), moved=_attention),
)


def load(lesson: str) -> ModuleType:
    """A lesson's file, executed."""
    spec = importlib.util.spec_from_file_location(lesson, ROOT / "examples" / f"{lesson}.py")
    assert spec is not None  # a path ending in .py has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(pattern: Pattern, device: ox.Device) -> Row:
    """The pipeline on its lesson's own data."""
    recipe = _recipe(load(pattern.lesson), pattern.pipeline)
    made, simulated = recipe(device), recipe(ox.Device.open("sim"))
    made.launch()
    simulated.launch()
    same = all(made.outputs[name].numpy().tobytes() == array.numpy().tobytes() for name, array in simulated.outputs.items())
    return Row(lesson=pattern.lesson, pipeline=pattern.pipeline, right=same and _right(made))


def twins(lesson: str, device: ox.Device) -> Iterator[Row]:
    """The lesson's twins, each refused by its rule or not."""
    for name, pipeline in vars(load(lesson)).items():
        for recipe in pipeline.recipes if isinstance(pipeline, ox.Pipeline) else ():
            if recipe.refused:
                try:
                    recipe(device).launch()
                except OxidecopyError as error:
                    rules = error.rules
                else:
                    rules = ()
                yield Row(lesson=lesson, pipeline=name, right=recipe.refused in rules, refused=recipe.refused)


def measure(pattern: Pattern, bench: Bench, memcpy_tb_s: float) -> Row:
    """The pipeline on a large array of small integers, whose sums are exact in any order."""
    module = load(pattern.lesson)
    if "CTAS" in vars(module):
        vars(module)["CTAS"] = _FULL * bench.multiprocessors
    x = np.random.default_rng(0).integers(1, 5, pattern.shape, dtype=np.int8).astype(pattern.dtype)
    made = _recipe(module, pattern.pipeline)(bench.device, x)
    made.launch()
    right = _right(made)
    launch = bench.engine.prepare(made.launch.verify(), made.launch.bindings, stream=bench.stream)
    ms = median(bench.times_ms(launch, RUNS))
    launch.end()
    emitted_ms = median(bench.times_ms(hand_written(bench.engine, made.launch.verify(), made.launch.bindings, bench.stream), RUNS))
    moved = pattern.moved(pattern.shape)
    tb_s = moved / ms / 1e9
    return Row(
        lesson=pattern.lesson,
        pipeline=pattern.pipeline,
        right=right,
        shape=pattern.shape,
        moved_bytes=moved,
        milliseconds=round(ms, 4),
        tb_s=round(tb_s, 4),
        of_memcpy=round(tb_s / memcpy_tb_s, 4),
        of_emitted=round(emitted_ms / ms, 4),
    )


def _recipe(module: ModuleType, pipeline: str) -> RecipeFunction:
    made: ox.Pipeline[...] = getattr(module, pipeline)
    (recipe,) = [r for r in made.recipes if not r.refused]
    return recipe


def _right(made: Recipe) -> bool:
    return all(difference(name, array.numpy(), made.expected[name]) is None for name, array in made.outputs.items())


def _said(row: Row) -> str:
    verdict = f"refused by {row.refused}" if row.refused else "right"
    measured = (
        f"{row.milliseconds:.3f} ms, {row.tb_s:.3f} TB/s, {row.of_memcpy:.3f} of cuMemcpyDtoD, {row.of_emitted:.3f} of CUDA C++"
        if row.shape
        else ""
    )
    return f"{row.lesson:<18} {row.pipeline:<16} {verdict if row.right else 'WRONG':<20} {measured}"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a line for each pipeline and twin; 1 when any is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0", help="cuda:0, or sim to run the lessons' own data without times")
    parser.add_argument("--output", metavar="FILE.json", type=Path, help="write the rows with date, device and version")
    options = parser.parse_args(argv)
    device = ox.Device.open(options.device)
    rows: list[Row] = []

    def add(row: Row) -> None:
        rows.append(row)
        print(_said(row), flush=True)

    for pattern in PATTERNS:
        add(check(pattern, device))
    for lesson in dict.fromkeys(p.lesson for p in PATTERNS):
        for row in twins(lesson, device):
            add(row)
    facts: dict[str, Any] = {"device": device.name}
    if device.name != "sim":
        bench = open_bench(_MEMCPY_BYTES)
        memcpy = 2 * _MEMCPY_BYTES / median(bench.times_ms(bench.memcpy, RUNS)) / 1e9
        facts = {"device": bench.engine.context.gpu.name, "cubin": bench.engine.code_file.file, "memcpy_tb_s": round(memcpy, 4)}
        for pattern in PATTERNS:
            add(measure(pattern, bench, memcpy))
    right = all(row.right for row in rows)
    if options.output:
        data = {
            "command": "python -m oxidecopy.bench.patterns",
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "oxidecopy": ox.__version__,
            **facts,
            "right": right,
            "rows": [asdict(row) for row in rows],
        }
        options.output.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
