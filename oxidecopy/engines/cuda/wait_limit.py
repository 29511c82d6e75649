"""How long a wait on the device may take."""

from __future__ import annotations

import os
from typing import Final

from oxidecopy.errors import Diagnostic, UsageError

BAD_LIMIT: Final = "OX5337"
LIMIT_VARIABLE: Final = "OXIDECOPY_WAIT_LIMIT_MS"
LIMIT_MS: Final = 4000  # of one wait: far more than any copy takes, less than a display's watchdog
LIMIT_CHECKED_MS: Final = 1000
LIMIT_MAX_MS: Final = 1 << 22  # a bit over an hour; in microseconds it still fits 32 bits


def default_limit_us(*, checked: bool) -> int:
    """Where nobody says otherwise, in microseconds."""
    return 1000 * (LIMIT_CHECKED_MS if checked else LIMIT_MS)


def wait_limit_us(*, checked: bool) -> int:
    """How long a wait on the device may take, in microseconds: of the environment, else 4 s, when checked 1 s.

    Raises:
        UsageError: when the environment holds something else than a number of milliseconds.
    """
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return default_limit_us(checked=checked)
    if len(text) <= len(str(LIMIT_MAX_MS)) and text.isascii() and text.isdecimal() and 1 <= int(text) <= LIMIT_MAX_MS:
        return 1000 * int(text)
    raise UsageError(
        Diagnostic(
            rule=BAD_LIMIT,
            what=f"{LIMIT_VARIABLE} is no limit for waits",
            got=repr(text),
            required=f"milliseconds, 1 to {LIMIT_MAX_MS}",
            fix=f"{LIMIT_VARIABLE}={LIMIT_MS}",
        )
    )
