"""What the plugin has to say of itself: once in each run, whatever mypy takes from its cache."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol, final

from mypy.errorcodes import ErrorCode
from mypy.nodes import Context
from mypy.plugin import ReportConfigContext

from oxidecopy.mypy_plugin import _codes


class Reporter(Protocol):
    """What is used of mypy's checker here; it is the same in all versions."""

    path: str

    def fail(self, msg: str, context: Context, /, *, code: ErrorCode | None = None) -> object: ...
    def note(self, msg: str, context: Context, /, *, code: ErrorCode | None = None) -> object: ...


_INSTALLED: Final = frozenset({"site-packages", "dist-packages", "typeshed"})  # folders of what is not the user's

# Mypy gives each of its parallel workers the same file of options, whose name is of one run.
_WORKERS_OPTIONS: Final = re.compile(r"--options-data=(?P<path>.*\.worker_options\..+\.data)")

_OURS: Final = Path(__file__).absolute().parents[1]


@final
class Told:
    """Errors and notes that stand in the first line of the first file that mypy checks and has to do with us.

    Were it left to mypy's cache, that file would say them for ever, another one that is checked later again, and a run in which nothing has
    changed might say nothing. So while there is something to say, mypy checks all of the user's files anew.
    """

    def __init__(self, errors: Sequence[str] = (), notes: Sequence[str] = ()) -> None:
        self._errors = errors
        self._notes = notes
        self._path = ""

    def data(self, ctx: ReportConfigContext) -> bool:
        """What the cache is to keep of a file; mypy takes a file from it when it is asked again and the answer is the same."""
        if ctx.is_check or not (self._errors or self._notes):
            return False
        path = Path(ctx.path)
        return _INSTALLED.isdisjoint(path.parts) and not path.absolute().is_relative_to(_OURS)

    def say(self, reporter: Reporter) -> None:
        """Says all, if it is not said yet; in the same file again: the daemon may have forgotten it, and mypy drops doubles."""
        if not (self._errors or self._notes) or self._path not in {"", reporter.path}:
            return
        if Path(reporter.path).absolute().is_relative_to(_OURS):
            return  # a user looks at files of their own
        if not self._path and _said_by_another():
            self._errors = self._notes = ()
            return
        self._path = reporter.path
        place = Context()
        place.line, place.column = 1, 0
        for text in self._errors:
            reporter.fail(text, place, code=_codes.PLUGIN)
        for text in self._notes:
            reporter.note(text, place, code=_codes.PLUGIN)


def _said_by_another() -> bool:
    """Of the parallel workers of a run the first one speaks for all: it locks their options for as long as it lives."""
    shared = next((match["path"] for word in sys.argv if (match := _WORKERS_OPTIONS.fullmatch(word))), None)
    if shared is None or sys.platform == "win32":
        return False
    import fcntl  # not on every system

    try:
        fcntl.flock(os.open(shared, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # better twice than never
    return False
