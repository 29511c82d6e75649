"""The table: copy bandwidth by rank, box bytes, swizzle, stages and CTAs per multiprocessor; as CSV and as a plot."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, cast, final

import oxidecopy as ox
from oxidecopy.bench.copies import Copy, Schedule, box_of, shape_of
from oxidecopy.bench.gpu import AT_ONCE, BOX_BYTES, Bench, rate
from oxidecopy.host.npy import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NBYTES: Final = 1 << 30
TITLE: Final = "oxidecopy: copies of 1 GiB f32, bytes read and written"
_ROW_BYTES: Final = {ox.SwizzleNone: 1024, ox.Swizzle128B: 128}
_STAGES: Final = (2, 4, 8)
_PER_SM: Final = (1, 2, 4)
_SHARED_SM: Final = 226 << 10  # what CTAs of one multiprocessor can have together, less a KiB for each
_FIELDS: Final = ("schedule", "rank", "box", "box_bytes", "swizzle", "stages", "per_sm", "tb_s", "of_memcpy")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of the table; `of_memcpy` is the ratio to cuMemcpyDtoDAsync of the same bytes in the same run."""

    copy: Copy
    tb_s: float
    of_memcpy: float

    def fields(self) -> tuple[str | int | float, ...]:
        c = self.copy
        box = "x".join(map(str, c.box))
        swizzle = c.swizzle.__name__.removeprefix("Swizzle")
        stages, per_sm = "" if c.schedule == "one-shot" else c.stages, c.per_sm or ""
        return c.schedule, len(c.box), box, c.box_bytes, swizzle, stages, per_sm, round(self.tb_s, 4), round(self.of_memcpy, 4)


def copies() -> Iterator[Copy]:
    """All rows: each schedule at every rank, box and swizzle that exist.

    One-shot CTAs as many as fit and as many as are fastest; rings with every number of stages and CTAs that fit.
    """
    for rank, nbytes, (swizzle, row) in product(range(1, 6), BOX_BYTES, _ROW_BYTES.items()):
        box = box_of(nbytes, rank, nbytes if rank == 1 and swizzle is ox.SwizzleNone else row)
        if box is None or box[-1] > 256:
            continue
        shape = shape_of(NBYTES, box)
        for at_once in dict.fromkeys((0, AT_ONCE.get(nbytes, 0))):
            yield Copy(schedule="one-shot", shape=shape, box=box, swizzle=swizzle, per_sm=at_once)
        for stages, per_sm in product(_STAGES, _PER_SM):
            if per_sm * (nbytes * stages + 1024) <= _SHARED_SM:
                yield Copy(schedule="persistent", shape=shape, box=box, swizzle=swizzle, stages=stages, per_sm=per_sm)
                yield Copy(schedule="counter", shape=shape, box=box, swizzle=swizzle, stages=stages, per_sm=per_sm)


def measure(bench: Bench, runs: int, say: Callable[[str], None]) -> Iterator[Entry]:
    """Each row of the table, with the arrays of `bench`, of which `NBYTES` are copied."""
    driver = 2 * bench.src.buffer.nbytes / median(bench.times_ms(bench.memcpy, runs)) / 1e9
    for copy in copies():
        say(f"{len(copy.box)}-D, {copy.box_bytes} bytes, {copy.schedule}")
        measured = rate(bench, copy, runs)
        yield Entry(copy=copy, tb_s=measured.tb_s, of_memcpy=measured.tb_s / driver)


def write_csv(path: Path, entries: Sequence[Entry]) -> None:
    """The table as CSV; raises UsageError when it cannot be written."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_FIELDS)
    table.writerows(entry.fields() for entry in entries)
    write_whole(path, lambda file: file.write(text.getvalue().encode()))


def read_csv(path: Path) -> list[Entry]:
    """The table that `write_csv` wrote, to draw it where it was not measured."""
    swizzles = {swizzle.__name__.removeprefix("Swizzle"): swizzle for swizzle in _ROW_BYTES}
    entries = []
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        box = tuple(map(int, row["box"].split("x")))
        stages, per_sm = (int(row[name] or 0) for name in ("stages", "per_sm"))
        schedule = cast("Schedule", row["schedule"])
        copy = Copy(schedule=schedule, shape=shape_of(NBYTES, box), box=box, swizzle=swizzles[row["swizzle"]], stages=stages, per_sm=per_sm)
        entries.append(Entry(copy=copy, tb_s=float(row["tb_s"]), of_memcpy=float(row["of_memcpy"])))
    return entries


def write_plot(path: Path, entries: Sequence[Entry], title: str = TITLE) -> None:
    """One panel for each rank: the best of each schedule and swizzle by box bytes. Needs matplotlib (the extra `plot`)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4), layout="constrained")
    ranks = sorted({len(e.copy.box) for e in entries})
    panels: Sequence[Axes] = figure.subplots(1, len(ranks), sharey=True, squeeze=False)[0]
    for rank, panel in zip(ranks, panels, strict=True):
        _panel(panel, [e for e in entries if len(e.copy.box) == rank])
        panel.set_title(f"{rank}-D")
    panels[0].set_ylabel("read + written, TB/s")
    panels[0].set_ylim(0, 1.05 * max(e.tb_s for e in entries))
    panels[-1].legend(fontsize="small")
    figure.suptitle(title)
    write_whole(path, lambda file: figure.savefig(file, format=path.suffix.lstrip(".") or "png", dpi=120))


def _panel(panel: Axes, entries: Sequence[Entry]) -> None:
    for schedule, swizzle in product(("one-shot", "counter", "persistent"), _ROW_BYTES):
        best: dict[int, float] = {}
        for e in entries:
            if (e.copy.schedule, e.copy.swizzle) == (schedule, swizzle):
                best[e.copy.box_bytes] = max(best.get(e.copy.box_bytes, 0.0), e.tb_s)
        style = "-o" if swizzle is ox.SwizzleNone else "--x"
        panel.plot(list(best), list(best.values()), style, label=f"{schedule}, {swizzle.__name__}", markersize=4)
    panel.set_xscale("log", base=2)
    panel.set_xlabel("box, bytes")
    panel.grid(visible=True, alpha=0.3)


def main(arguments: Sequence[str]) -> int:
    """`python -m oxidecopy.bench.gpu_table TABLE.csv PLOT.png`: draws a table that was measured somewhere else."""
    table, plot = map(Path, arguments)
    write_plot(plot, read_csv(table))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
