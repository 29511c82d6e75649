"""Finds the user's line: the innermost frame that is not this package's."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from oxidecopy.errors import DriverError, LifetimeError, OxidecopyError, Site

# With the separator at its end: a neighbour such as oxidecopy_play/ is the user's.
_PACKAGE: Final = str(Path(__file__).resolve().parent.parent) + os.sep
# The lessons lie inside the package once it is installed, but they are user code.
_LESSONS: Final = _PACKAGE + "_examples" + os.sep
# Modules of Python's that call ours for the user: an ExitStack enters blocks, a cached property is computed at its first use, copy asks.
_DOORS: Final = frozenset(f.__code__.co_filename for f in (contextmanager, partialmethod.__init__, copy.copy))
# Packages whose functions ask objects of ours for the user: np.sum(a) wants an array of `a`, torch.from_dlpack(a) its memory, isinstance of
# a protocol its methods; torch runs what was registered as its operator.
_ASKING: Final = frozenset({"numpy", "torch", "cupy", "jax", "jaxlib", "numba", "typing", "typing_extensions"})
# What is said by engines, which know no user.
LINELESS: Final = (LifetimeError, DriverError)
# Where the lessons can be: in an installed package, or beside the package of a checkout.
LESSON_PLACES: Final = (Path(_LESSONS), Path(_PACKAGE).parent / "examples")


def in_package(filename: str) -> bool:
    """True for this package's own files; its lessons count as the user's."""
    return filename.startswith(_PACKAGE) and not filename.startswith(_LESSONS)


def caller_site() -> Site | None:
    """The place in the user's source that led here; None when there is none (all frames are ours)."""
    frame = _caller()
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame else None


def caller_code() -> tuple[CodeType, int] | None:
    """The function around the user's line, and the line."""
    frame = _caller()
    return (frame.f_code, frame.f_lineno) if frame else None


def caller_locals() -> dict[str, object]:
    """The names of the function around the user's line; none at module level, where all names are global."""
    frame = _caller()
    return dict(frame.f_locals) if frame and frame.f_code.co_name != "<module>" else {}


def _caller() -> FrameType | None:
    """The innermost frame that is the user's, seen from the caller's caller."""
    frame: FrameType | None = sys._getframe(2)  # the one fast way to a caller's line
    while frame and _is_between(frame):
        frame = frame.f_back
    return frame


def _is_between(frame: FrameType) -> bool:
    """It is neither the user's nor the end of a way from the user to us."""
    file = frame.f_code.co_filename
    return in_package(file) or file in _DOORS or str(frame.f_globals.get("__name__")).partition(".")[0] in _ASKING


@contextmanager
def at_the_users_line() -> Iterator[None]:
    """For what engines say of memory and of the driver: they know no user, and name no line."""
    try:
        yield
    except LINELESS as error:
        give_line(error)
        raise


def give_line(error: OxidecopyError) -> None:
    """The user's line, for what has none yet."""
    site = caller_site()
    error.diagnostics = tuple(d if d.site else replace(d, site=site) for d in error.diagnostics)


def move(error: OxidecopyError, planned: Site | None) -> None:
    """The user's line in place of `planned`, where what runs again was recorded."""
    site = caller_site()
    error.diagnostics = tuple(
        replace(
            d, site=site if d.site == planned else d.site, causes=tuple(replace(c, site=site) if c.site == planned else c for c in d.causes)
        )
        for d in error.diagnostics
    )


@contextmanager
def no_sites() -> Iterator[None]:
    """For what a command line asks for itself: its errors have no line in a user's source, and what was found for one is not it."""
    try:
        yield
    except OxidecopyError as error:
        error.diagnostics = tuple(replace(d, site=None) for d in error.diagnostics)
        raise
