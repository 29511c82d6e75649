"""Measured rows as CSV, and as bars.

python -m oxidecopy.bench.row_files RESULT.json TABLE.csv BARS.png      # of a result that was measured somewhere else
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from oxidecopy.bench.measure import Absent, Floor, Measured, Row
from oxidecopy.host.npy import write_whole

_FIELDS: Final = ("what", "unit", "median", "min", "max", "target", "better", "passed", "floor", "of_floor", "absent", "of")
_COLOURS: Final = {"OK": "#2a7d4f", "MISSED": "#b3362c", "": "#5b6b7a"}


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """A line for each row, with the fields of the JSON file but for the samples; raises UsageError when it cannot be written."""
    text = io.StringIO()
    table = csv.DictWriter(text, _FIELDS, restval="", extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows({name: "" if value is None else value for name, value in row.as_data().items()} for row in rows)
    write_whole(path, lambda file: file.write(text.getvalue().encode()))


def write_bars(path: Path, rows: Sequence[Row], title: str) -> None:
    """What has a floor, as a share of it: 1 is at the floor. Needs matplotlib (the extra `plot`)."""
    from matplotlib.figure import Figure

    drawn = [(row, row.floor) for row in rows if isinstance(row, Measured) and row.floor is not None]
    figure = Figure(figsize=(10, 1 + 0.24 * len(drawn)), layout="constrained")
    axes = figure.subplots()
    places = range(len(drawn))
    axes.barh(places, [floor.share for _, floor in drawn], color=[_COLOURS[row.verdict] for row, _ in drawn], height=0.7)
    axes.set_yticks(places, [row.what for row, _ in drawn], fontsize="small")
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    for place, (_, floor) in zip(places, drawn, strict=True):
        axes.text(0.01, place, f"{floor.share:.3f} of {floor.of}", va="center", color="white", fontsize="x-small")
    axes.set_xlabel("share of the floor: the fastest known for the same bytes in the same run")
    axes.grid(visible=True, axis="x", alpha=0.3)
    figure.suptitle(f"oxidecopy bench gpu: {title}", fontsize="medium")
    write_whole(path, lambda file: figure.savefig(file, format=path.suffix.lstrip(".") or "png", dpi=120))


def read_rows(result: dict[str, Any]) -> list[Row]:
    """The rows of a result file, as they were measured but for digits that it does not keep."""
    return [_row(row) for row in result["rows"]]


def _row(row: dict[str, Any]) -> Row:
    if "absent" in row:
        return Absent(what=row["what"], why=row["absent"], of=row["of"], ours=not row["passed"])
    floor = Floor(row["floor"], row["of_floor"]) if "floor" in row else None
    named = {name: row[name] for name in ("what", "unit", "target", "better", "of")}
    return Measured(samples=tuple(row["samples"]), floor=floor, **named)


def main(arguments: Sequence[str]) -> int:
    """Writes both files of a result."""
    source, table, bars = map(Path, arguments)
    result = json.loads(source.read_text(encoding="utf-8"))
    rows = read_rows(result)
    write_csv(table, rows)
    write_bars(bars, rows, f"{result['device']}, {result['date']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
