"""What the user sets in the environment: read strictly, since a word that is misread is a wish that is not granted.

`Device.open("cuda:0")` raises for a setting that means nothing. `Device.open()` promises a device, so it goes on as if the variable were
not set; it warns, and `why` says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final, final

from oxidecopy.engines.cuda.wait_limit import default_limit_us, wait_limit_us
from oxidecopy.errors import Diagnostic, UsageError

BAD_WORD: Final = "OX5017"
CHECKED_VARIABLE: Final = "OXIDECOPY_CHECKED"
_WORDS: Final = {"": False, "0": False, "false": False, "no": False, "off": False, "1": True, "true": True, "yes": True, "on": True}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a GPU is opened.

    Attributes:
        checked: with the checks that cost time.
        limit_us: how long a wait on the device may take.
        ignored: what was set and means nothing.
    """

    checked: bool
    limit_us: int
    ignored: tuple[Diagnostic, ...] = ()

    def require_all(self) -> None:
        """Raises UsageError for what means nothing."""
        if self.ignored:
            raise UsageError(*self.ignored)

    def notes(self) -> list[str]:
        """One line for each setting that is ignored."""
        return [f"{said.what} ({said.got}; it takes {said.required}): ignored" for said in self.ignored]


def environment_flag(name: str) -> bool:
    """A yes or no of the environment, in any case; False where it is not set.

    Raises:
        UsageError: for any other word (OX5017).
    """
    text = os.environ.get(name, "")
    known = _WORDS.get(text.strip().lower())
    if known is not None:
        return known
    words = ", ".join(word for word in _WORDS if word)
    raise UsageError(
        Diagnostic(rule=BAD_WORD, what=f"{name} is neither a yes nor a no", got=repr(text), required=words, fix=f"{name}=1, or {name}=0")
    )


def settings(*, checked: bool) -> Settings:
    """What was asked for, or the environment's word for programs that do not ask."""
    ignored: list[Diagnostic] = []
    try:
        checked = environment_flag(CHECKED_VARIABLE) or checked
    except UsageError as problem:
        ignored += problem.diagnostics
    try:
        limit_us = wait_limit_us(checked=checked)
    except UsageError as problem:
        ignored += problem.diagnostics
        limit_us = default_limit_us(checked=checked)
    return Settings(checked=checked, limit_us=limit_us, ignored=tuple(ignored))
