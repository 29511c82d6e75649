"""What verifier tests say about a built program: refused with a rule at a tagged line, or accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from oxidecopy.errors import Diagnostic
from oxidecopy.verify import Report, inspect
from tests.helpers.programs import Builder

Make: TypeAlias = Callable[[Builder, bool], None]


def report(b: Builder) -> Report:
    return inspect(b.program(), b.launch())


def made(make: Make, broken: bool) -> Builder:
    b = Builder()
    make(b, broken)
    return b


def refused(b: Builder, rule: str, tag: str = "") -> Diagnostic:
    """The program breaks `rule` (at the line tagged `tag`) and no other rule."""
    found = report(b).violations
    assert {d.rule for d in found} == {rule}, [str(d) for d in found]
    if tag:
        assert b.tags[tag] in {d.site.line for d in found if d.site}, [str(d) for d in found]
    for d in found:
        assert d.what
        assert d.fix
        assert d.required or d.got
    return found[0]


# Small programs store to a corner of their arrays; tests of what outputs get name these themselves.
_OF_OUTPUTS = ("OX3106", "OX3107")


def accepted(b: Builder, *warnings: str) -> None:
    """No violation, and exactly these warnings; those about outputs only where they are named."""
    r = report(b)
    assert not r.violations, "\n".join(map(str, r.violations))
    assert [d.rule for d in r.warnings if d.rule in warnings or d.rule not in _OF_OUTPUTS] == list(warnings), [str(d) for d in r.warnings]
