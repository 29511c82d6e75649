"""Tests the driver layer with other versions of cuda-python than the installed one: `python -m oxidecopy._tools.bindings [VERSION ...]`.

Without versions these are the oldest and the newest that the package allows. The bindings load without a driver, so this needs the package
index but no GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from oxidecopy._tools.environments import Package, Run, run_command, try_all

VERSIONS: Final = ("12.9.0", "13.*")
# Tests of the driver layer and of what calls it; rooms below it make device code and know no driver.
PACKAGE: Final = Package(
    name="cuda-bindings",
    look="import cuda.bindings as b; print('cuda-bindings', b.__version__); found = b.__file__",
    alone=True,
    tests=tuple(f"tests/engines/cuda/test_{name}.py" for name in ("stubs", "driver", "probe", "context", "memory", "pinned", "stream")),
)


def main(arguments: Sequence[str] | None = None, run: Run = run_command) -> int:
    """Tests each version; 0 when all pass, 1 when one does not."""
    parser = argparse.ArgumentParser(prog="python -m oxidecopy._tools.bindings", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("version", nargs="*", default=VERSIONS, help="as pip takes them after `==` (default: %(default)s)")
    return try_all([(PACKAGE, version) for version in parser.parse_args(arguments).version], run)


if __name__ == "__main__":
    raise SystemExit(main())
