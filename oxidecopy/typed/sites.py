"""Finds the user's line: the innermost frame that is not this package's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from oxidecopy.errors import OxidecopyError, Site

# With the separator at its end: a neighbour such as oxidecopy_play/ is the user's.
_PACKAGE: Final = str(Path(__file__).resolve().parent.parent) + os.sep
# The lessons lie inside the package once it is installed, but they are user code.
_LESSONS: Final = _PACKAGE + "_examples" + os.sep
# Where the lessons can be: in an installed package, or beside the package of a checkout.
LESSON_PLACES: Final = (Path(_LESSONS), Path(_PACKAGE).parent / "examples")


def in_package(filename: str) -> bool:
    """True for this package's own files; its lessons count as the user's."""
    return filename.startswith(_PACKAGE) and not filename.startswith(_LESSONS)


def caller_site() -> Site | None:
    """The place in the user's source that led here; None when there is none (all frames are ours)."""
    frame = sys._getframe(1)  # the one fast way to a caller's line
    while in_package(frame.f_code.co_filename):
        parent = frame.f_back
        if parent is None:
            return None
        frame = parent
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


@contextmanager
def no_sites() -> Iterator[None]:
    """For what a command line asks for itself: its errors have no line in a user's source, and what was found for one is not it."""
    try:
        yield
    except OxidecopyError as error:
        error.diagnostics = tuple(replace(d, site=None) for d in error.diagnostics)
        raise
