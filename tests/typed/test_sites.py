"""Which files count as the user's."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxidecopy
from oxidecopy.errors import Diagnostic, Site, UsageError
from oxidecopy.typed import sites
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


@pytest.mark.parametrize("ask", [np.sum, np.asarray, np.mean, np.testing.assert_array_almost_equal, copy.copy])
def test_who_asks_for_the_user_is_not_the_user(ask: Callable[..., object]) -> None:
    found: list[Site | None] = []

    class Asked:
        def __array__(self, *_: object, **__: object) -> None:
            found.append(caller_site_of_ours())
            raise ValueError

        def __copy__(self) -> None:
            found.append(caller_site_of_ours())

    names: dict[str, Any] = {"ask": ask, "count": 2 if "assert" in ask.__name__ else 1, "asked": Asked(), "suppress": suppress}
    exec(compile("\nwith suppress(ValueError):\n    ask(*[asked] * count)\n", "users.py", "exec"), names)
    assert found
    assert found[0] == Site("users.py", 3, "<module>")


def caller_site_of_ours() -> Site | None:
    """As asked by a method of ours: this file is taken for one of the package's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sites, "in_package", lambda file: file == __file__ or in_package(file))
        return sites.caller_site()


def test_frameworks_that_call_ours_are_not_the_user() -> None:
    """torch runs what was registered as its operator: the line is that of the call."""
    torchs: dict[str, Any] = {"__name__": "torch._library.custom_ops", "ours": caller_site_of_ours}
    exec(compile("def call():\n    return ours()\n", "custom_ops.py", "exec"), torchs)
    users: dict[str, Any] = {"__name__": "torchless", "op": torchs["call"]}
    exec(compile("\nfound = op()\n", "users.py", "exec"), users)
    assert users["found"] == Site("users.py", 2, "<module>")


def test_errors_of_a_command_line_have_no_line() -> None:
    with pytest.raises(UsageError) as caught, no_sites():
        raise UsageError(Diagnostic(rule="OX1", what="x", got="1", site=Site("cli.py", 3)))
    assert caught.value.diagnostics == (Diagnostic(rule="OX1", what="x", got="1"),)
