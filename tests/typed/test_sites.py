"""Which files count as the user's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import oxidecopy
from oxidecopy.errors import Diagnostic, Site, UsageError
from oxidecopy.typed.sites import caller_site, in_package, no_sites

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


def test_errors_of_a_command_line_have_no_line() -> None:
    with pytest.raises(UsageError) as caught, no_sites():
        raise UsageError(Diagnostic(rule="OX1", what="x", got="1", site=Site("cli.py", 3)))
    assert caught.value.diagnostics == (Diagnostic(rule="OX1", what="x", got="1"),)
