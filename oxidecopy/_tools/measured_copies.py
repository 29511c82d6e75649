"""Writes what one-liners know of measured copies, from the table that `oxidecopy bench gpu --table` wrote.

    python -m oxidecopy._tools.measured_copies docs/results/copies.csv

For each schedule, rank and box without a swizzle the fastest numbers of stages and of CTAs are kept.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
OUTPUT: Final = ROOT / "oxidecopy" / "oneliners" / "measured.json"
_DEVICE: Final = "NVIDIA H200, copies of 1 GiB of f32"


def compact(rows: Iterable[Mapping[str, str]]) -> list[list[Any]]:
    """Schedule, rank, bytes of a box, stages (0: none), CTAs for each multiprocessor (0: as many as fit), TB/s, of cuMemcpyDtoD."""
    best: dict[tuple[str, int, int], list[Any]] = {}
    for row in rows:
        if row["swizzle"] != "None":
            continue
        key = (row["schedule"], int(row["rank"]), int(row["box_bytes"]))
        found = [*key, int(row["stages"] or 0), int(row["per_sm"] or 0), float(row["tb_s"]), float(row["of_memcpy"])]
        if key not in best or found[5] > best[key][5]:
            best[key] = found
    return [best[key] for key in sorted(best)]


def written(table: Path) -> str:
    """The file's text."""
    text = table.read_text(encoding="utf-8")
    rows = compact(csv.DictReader(text.splitlines()))
    head = {"source": "docs/results/copies.csv", "sha256": hashlib.sha256(text.encode()).hexdigest(), "measured": _DEVICE}
    lines = ",\n".join(json.dumps(row) for row in rows)
    return json.dumps(head, indent=1)[:-2] + f',\n "rows": [\n{lines}\n]\n}}\n'


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, nargs="?", default=ROOT / "docs" / "results" / "copies.csv")
    OUTPUT.write_text(written(parser.parse_args(argv).table), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
