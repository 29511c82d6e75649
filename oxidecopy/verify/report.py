"""Collects violations and warnings: one per rule and place, in the user's names, all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, final

from oxidecopy.errors import Cause, Diagnostic, Explanation, Site
from oxidecopy.program.program import Step
from oxidecopy.program.verified import Bound

WARNING_PREFIX: Final = "OX310"
_OF_TILES: Final = "OX304"
_CAUSES_MAX: Final = 6  # few enough to read; the first ones matter most


@final
class Report(NamedTuple):
    """What the verifier found: `violations` stop a launch, `warnings` do not. `bounds` say where it looked at less than will run."""

    violations: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    bounds: tuple[Bound, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.violations


@final
@dataclass(slots=True)
class Collector:
    """Keeps the first finding of each (rule, place)."""

    seen: set[tuple[object, ...]] = field(default_factory=set)
    found: list[Diagnostic] = field(default_factory=list)
    bounds: dict[object, Bound] = field(default_factory=dict)
    explanation: Explanation | None = None  # of what is being reported, where there is one

    def add(
        self,
        rule: str,
        what: str,
        *,
        step: Step | None = None,
        site: Site | None = None,
        got: object = "",
        required: object = "",
        fix: str = "",
        causes: Iterable[tuple[str, Step | None]] = (),
        key: object = None,
    ) -> None:
        """Reports a broken rule at `step`, or at `site`; `key` replaces the place in what counts as the same finding."""
        place = site if site is not None else step.site if step is not None else None
        mark = (rule, key) if key is not None else (rule, place, None if place is not None or step is None else id(step))
        if mark in self.seen:
            return
        self.seen.add(mark)
        made = tuple(dict.fromkeys(Cause(text, s.site) for text, s in causes if s is not None))[:_CAUSES_MAX]
        diagnostic = Diagnostic(rule=rule, what=what, got=str(got), required=str(required), fix=fix, site=place, causes=made)
        self.found.append(diagnostic if self.explanation is None else replace(diagnostic, explanation=self.explanation))

    def bound(self, what: str, why: str, *, site: Site | None = None, key: object = None) -> None:
        """Notes where less is looked at than will run; the first of each place, or `key`, is kept."""
        self.bounds.setdefault(key if key is not None else site, Bound(what=what, why=why, site=site))

    def report(self) -> Report:
        """Everything. What is wrong with tiles comes behind the rest, as it mostly follows from that: from bytes, arrivals and waits."""
        warnings = tuple(d for d in self.found if d.rule.startswith(WARNING_PREFIX))
        violations = tuple(sorted((d for d in self.found if not d.rule.startswith(WARNING_PREFIX)), key=_follows))
        return Report(violations, warnings, tuple(self.bounds.values()))


def _follows(found: Diagnostic) -> bool:
    return found.rule.startswith(_OF_TILES)
