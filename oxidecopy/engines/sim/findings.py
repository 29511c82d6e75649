"""Findings: what is wrong with a run although it may have ended well. One diagnostic per rule and pair of lines."""

from __future__ import annotations

from typing import Final, final

from oxidecopy.errors import Cause, Diagnostic, Site

LIMIT: Final = 100  # kinds of findings kept; a broken program in a loop must not fill the memory


@final
class Findings:
    """Collects diagnostics, each once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, Site | None, tuple[Cause, ...]], Diagnostic] = {}

    def add(self, diagnostic: Diagnostic) -> None:
        key = (diagnostic.rule, diagnostic.what, diagnostic.site, diagnostic.causes)
        if len(self._seen) < LIMIT:
            self._seen.setdefault(key, diagnostic)

    def all(self) -> tuple[Diagnostic, ...]:
        return tuple(self._seen.values())
