"""Which files count as the user's."""

from __future__ import annotations

import sys
from pathlib import Path

import oxidecopy
from oxidecopy.typed.sites import caller_site, in_package

PACKAGE = Path(oxidecopy.__file__).resolve().parent


def test_own_files_are_not_the_users() -> None:
    assert in_package(str(PACKAGE / "typed" / "cta.py"))


def test_lessons_and_neighbours_with_the_same_prefix_are_the_users() -> None:
    assert not in_package(str(PACKAGE / "_examples" / "01_load.py"))
    assert not in_package(f"{PACKAGE}_play/mine.py")


def test_the_callers_line_is_found() -> None:
    line = sys._getframe().f_lineno + 1
    site = caller_site()
    assert site is not None
    assert (site.file, site.line, site.function) == (__file__, line, "test_the_callers_line_is_found")
