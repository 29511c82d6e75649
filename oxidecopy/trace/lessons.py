"""Timelines of a GPU: `python -m oxidecopy.trace.lessons [--output FILE.json]`.

Lessons on their own data, and a copy by a ring of CTAs that stay, each followed by the kernels that stamp their ops, with its stalls in
words and, beside it, what the same launch takes when nobody looks. It needs a GPU, so it is no step of `_tools.check`; `--device sim`
follows the lessons in simulated time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from runpy import run_path
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, final

import oxidecopy as ox
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.host.compare import difference
from oxidecopy.trace.follow import CTAS, trace
from oxidecopy.typed.sites import LESSON_PLACES

if TYPE_CHECKING:
    from oxidecopy.host.bound import BoundLaunch
    from oxidecopy.host.recipe import RecipeFunction

LESSONS: Final = (
    ("06_prefetch", "prefetch"),
    ("07_cluster", "twice"),
    ("10_ring", "prefetch"),
    ("12_multicast_ring", "twice"),
    ("15_counter", "scale"),
    ("18_mainloop", "with_ring"),
)
_ROUNDS: Final = 9
_COPIED: Final = 256 << 20
_SIMULATED: Final = 1 << 20
_BOX: Final = (16, 256)
_COLUMNS: Final = 4096
_FOLLOWED: Final = 2  # CTAs of the copy


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A launch over time. Nanoseconds; `plain_ns` by the host's clock, call and wait included."""

    program: str
    right: bool
    outcome: str
    ops: int
    stamped_ns: int
    plain_ns: int
    stalls: tuple[str, ...]


@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def copied(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    """Boxes through four stages."""
    ring = cta.ring(stages=4, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.storer() as leader:
        for at in cta.tiles(src):
            ring.forward(leader, dst, at)


def rows(device: ox.Device, copied_bytes: int, ctas: int) -> Iterator[Row]:
    """Of every lesson, then of the copy."""
    for lesson, name in LESSONS:
        made = _recipe(lesson, name)(device)
        row = _row(f"{lesson}, {name}", made.launch)
        yield replace(row, right=all(difference(out, a.numpy(), made.expected[out]) is None for out, a in made.outputs.items()))
    x, out = (device.empty((copied_bytes // 4 // _COLUMNS, _COLUMNS), ox.f32) for _ in range(2))
    src, dst = (ox.TmaDescriptor.tiled(a, box=_BOX) for a in (x, out))
    program = f"copy of {copied_bytes >> 20} MiB, ring of 4 stages of 16 KiB, {ctas} CTAs"
    yield _row(program, copied[ctas].bind(src, dst), _FOLLOWED)


def _recipe(lesson: str, name: str) -> RecipeFunction:
    file = next(found for place in LESSON_PLACES if (found := place / f"{lesson}.py").is_file())
    (recipe,) = [recipe for recipe in run_path(str(file))[name].recipes if not recipe.refused]
    made: RecipeFunction = recipe
    return made


def _row(program: str, launch: BoundLaunch, ctas: int = CTAS) -> Row:
    made = trace(launch, ctas=ctas)
    launch()
    took = []
    for _ in range(_ROUNDS):
        start = perf_counter_ns()
        launch()
        took.append(perf_counter_ns() - start)
    return Row(
        program=program,
        right=True,
        outcome=made.summary.outcome,
        ops=made.timeline.ops,
        stamped_ns=round(made.timeline.end),
        plain_ns=round(median(took)),
        stalls=tuple(made.summary.lines),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each program and where its time goes; 1 when any is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0", help="cuda:0, or sim for simulated time, with a copy of 1 MiB")
    parser.add_argument("--output", metavar="FILE.json", type=Path, help="write the rows with date, device and version")
    options = parser.parse_args(argv)
    device = ox.Device.open(options.device)
    sizes = (_COPIED, device.engine.context.gpu.sms) if isinstance(device.engine, CudaEngine) else (_SIMULATED, 4)
    found: list[Row] = []
    for row in rows(device, *sizes):
        found.append(row)
        verdict = row.outcome if row.right else "WRONG"
        print(f"{row.program}: {verdict}; {row.ops:,} ops in {row.stamped_ns:,} ns stamped, {row.plain_ns:,} ns when nobody looks")
        print(*(f"  {line}" for line in row.stalls), sep="\n", flush=True)
    if options.output:
        data = {
            "command": "python -m oxidecopy.trace.lessons",
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "oxidecopy": ox.__version__,
            "device": device.engine.context.gpu.name if isinstance(device.engine, CudaEngine) else device.name,
            "rows": [asdict(row) for row in found],
        }
        options.output.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    return 0 if all(row.right and row.outcome == "ok" for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
