"""Tests the mypy plugin with other versions of mypy than the installed one: `python -m oxidecopy._tools.plugin_versions [VERSION ...]`.

Without versions these are all that the plugin claims to work with, but for the newest, which the `dev` extra installs; and one that is
too old.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from oxidecopy._tools.environments import Package, Run, run_command, try_all

VERSIONS: Final = ("2.2.*", "2.3.*")
# What depends on mypy: its inside, what it says of every kind of case, its ways of visiting a file (parallel workers too), its cache. What
# the cases say without a rule, our section of its configuration, and the daemon's sixteen edits are left to the newest version.
_TESTS: Final = (
    "test_canary.py",
    "test_cases.py::test_marks",
    "test_after.py",
    "test_incremental.py::test_an_edit_of_a_dependency_is_seen_through_the_cache",
)
_LOOK: Final = "import mypy.version as m; print('mypy', m.__version__); found = m.__file__"
PACKAGE: Final = Package(
    name="mypy",
    look=_LOOK,
    alone=False,
    tests=tuple(f"tests/mypy_plugin/{test}" for test in _TESTS),
)

# One that the plugin does not claim to work with, which it has to say.
UNTESTED: Final = "1.15.*"
OTHER: Final = Package(name="mypy", look=_LOOK, alone=False, tests=("tests/mypy_plugin/test_untested.py::test_a_mypy_of_another_version",))


def main(arguments: Sequence[str] | None = None, run: Run = run_command) -> int:
    """Tests each version; 0 when all pass, 1 when one does not."""
    parser = argparse.ArgumentParser(prog="python -m oxidecopy._tools.plugin_versions", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("version", nargs="*", default=VERSIONS, help="as pip takes them after `==` (default: %(default)s)")
    given = parser.parse_args(arguments).version
    other = [(OTHER, UNTESTED)] if given is VERSIONS else []
    return try_all([*((PACKAGE, version) for version in given), *other], run)


if __name__ == "__main__":
    raise SystemExit(main())
