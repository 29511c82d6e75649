"""All marked modules of the plugin's tests by name, for one check of them all."""

from __future__ import annotations

from tests.mypy_plugin import test_copies, test_literals
from tests.mypy_plugin.analysed import case_files
from tests.mypy_plugin.page_sources import PAGES


def every_source() -> dict[str, str]:
    """The case files, and those that tests write themselves."""
    return {**case_files(), "copies": test_copies.source(), **test_literals.SOURCES, **PAGES}
