"""Says things once each, in order of lines, through mypy's own messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mypy.checker import TypeChecker
from mypy.errorcodes import ErrorCode
from mypy.nodes import Context


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One error, or note, with notes of its own."""

    code: ErrorCode
    node: Context
    text: str
    notes: tuple[str, ...]
    level: str


@final
class Reports:
    """Findings of one function; `emit` hands them to mypy."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int], Finding] = {}
        self.quiet = False  # looking at a way out that nothing is said of

    def say(self, code: ErrorCode, node: Context, text: str, *notes: str, level: str = "error") -> None:
        """One error, or note, per code and place: the first stays, later rounds of a loop find the same in other words."""
        if self.quiet:
            return
        self._found.setdefault((code.code, node.line, node.column), Finding(code, node, text, notes, level))

    def said(self, code: ErrorCode, node: Context) -> bool:
        """Something of this code stands at this place already."""
        return (code.code, node.line, node.column) in self._found

    @property
    def empty(self) -> bool:
        """There is nothing to hand over."""
        return not self._found

    def emit(self, checker: TypeChecker) -> None:
        """Reports everything, and forgets it."""
        for finding in sorted(self._found.values(), key=lambda f: (f.node.line, f.node.column)):
            tell = checker.note if finding.level == "note" else checker.fail
            tell(finding.text, finding.node, code=finding.code)
            for note in finding.notes:
                checker.note(note, finding.node, code=finding.code)
        self._found.clear()
