"""One line of the report of `oxidecopy check`, whoever found it: mypy, the recorder, the verifier, the simulator, the loading of a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from oxidecopy.errors import Diagnostic

Gate: TypeAlias = Literal["types", "program", "schedules", "load"]
Level: TypeAlias = Literal["error", "warning", "note"]

ERROR: Final = "error"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Where in its line a finding is: 1-based columns, the end exclusive; 0 for what is not known."""

    column: int = 0
    end_line: int = 0
    end_column: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A diagnostic with the gate that found it, how bad it is, and its columns where they are known."""

    diagnostic: Diagnostic
    gate: Gate
    level: Level = ERROR
    region: Region = Region()


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Each once (two recipes may break the same rule at the same line), by file, line and column; those without a place last."""
    return sorted(dict.fromkeys(findings), key=_place)


def _place(finding: Finding) -> tuple[bool, str, int, int]:
    site = finding.diagnostic.site
    if site is None:
        return True, "", 0, 0
    return False, site.file, site.line, finding.region.column
