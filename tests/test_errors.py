"""What an error shows: its diagnostics as its text, and below a traceback the command that explains it."""

from __future__ import annotations

import traceback

from oxidecopy.errors import Diagnostic, OxidecopyError, VerificationError


def test_a_traceback_names_the_page() -> None:
    error = VerificationError(Diagnostic(rule="OX3044", what="a tile is overwritten"), Diagnostic(rule="OX3014", what="a wait is missing"))
    assert "explain" not in str(error)
    lines = [line for part in traceback.format_exception(error) for line in part.splitlines()]
    assert lines[-1] == "oxidecopy explain OX3044 says why"
    assert "  a tile is overwritten [OX3044]".strip() in lines


def test_an_error_without_diagnostics_names_none() -> None:
    assert not hasattr(OxidecopyError(), "__notes__")
