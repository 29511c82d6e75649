"""Rules of the verifier."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = ()
