"""Writes `oxidecopy/kernels/abi.h` from `oxidecopy.engines.cuda.abi`; `--check` only compares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from oxidecopy.engines.cuda.abi_header import header_text

HEADER: Final = Path(__file__).resolve().parents[1] / "kernels" / "abi.h"


def main(arguments: Sequence[str] | None = None, path: Path = HEADER) -> int:
    """Writes the header, or with `--check` says whether it is up to date: 1 when it is not."""
    parser = argparse.ArgumentParser(prog="python -m oxidecopy._tools.kernel_header", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the header is out of date")
    options = parser.parse_args(arguments)
    text = header_text()
    if path.is_file() and path.read_text() == text:
        return 0
    if options.check:
        print(f"{path.name} is out of date: python -m oxidecopy._tools.kernel_header", file=sys.stderr)
        return 1
    path.write_text(text)
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
