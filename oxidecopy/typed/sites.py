"""Finds the user's line: the innermost frame that is not this package's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from oxidecopy.errors import Site

_PACKAGE: Final = str(Path(__file__).resolve().parent.parent)


def in_package(filename: str) -> bool:
    """True for this package's own files."""
    return filename.startswith(_PACKAGE)


def caller_site() -> Site | None:
    """The place in the user's source that led here; None when there is none (all frames are ours)."""
    frame = sys._getframe(1)  # noqa: SLF001  # the one fast way to a caller's line
    while frame.f_code.co_filename.startswith(_PACKAGE):
        parent = frame.f_back
        if parent is None:
            return None
        frame = parent
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
