"""Tests the mypy plugin with other versions of mypy than the installed one: `python -m oxidecopy._tools.plugin_versions [VERSION ...]`.

Without versions these are all that the plugin claims to work with, but for the newest, which the `dev` extra installs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from oxidecopy._tools.environments import Package, Run, run_command, try_all

VERSIONS: Final = ("2.2.*", "2.3.*")
# What depends on mypy: its inside, what it says of every kind of case, its cache, its workers and its daemon.
PACKAGE: Final = Package(
    name="mypy",
    look="import mypy.version as m; print('mypy', m.__version__); found = m.__file__",
    alone=False,
    tests=tuple(f"tests/mypy_plugin/test_{name}.py" for name in ("canary", "cases", "config", "after", "incremental")),
)


def main(arguments: Sequence[str] | None = None, run: Run = run_command) -> int:
    """Tests each version; 0 when all pass, 1 when one does not."""
    parser = argparse.ArgumentParser(prog="python -m oxidecopy._tools.plugin_versions", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("version", nargs="*", default=VERSIONS, help="as pip takes them after `==` (default: %(default)s)")
    return try_all(PACKAGE, parser.parse_args(arguments).version, run)


if __name__ == "__main__":
    raise SystemExit(main())
