"""Rules of the verifier."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.copies import VERIFIER_RULES as COPY_RULES
from oxidecopy.rules.newer_devices import VERIFIER_RULES as NEWER_RULES
from oxidecopy.rules.replaced import VERIFIER_RULES as REPLACED_RULES
from oxidecopy.rules.rule import Rule
from oxidecopy.rules.tables import VERIFIER_RULES as TABLE_RULES
from oxidecopy.rules.verifier_barriers import BARRIER_RULES
from oxidecopy.rules.verifier_contract import CONTRACT_RULES
from oxidecopy.rules.verifier_launch import LAUNCH_RULES
from oxidecopy.rules.verifier_opaque import OPAQUE_RULES
from oxidecopy.rules.verifier_outputs import OUTPUT_RULES
from oxidecopy.rules.verifier_tiles import TILE_RULES

RULES: Final[tuple[Rule, ...]] = (
    *BARRIER_RULES,
    *TILE_RULES,
    *LAUNCH_RULES,
    *OPAQUE_RULES,
    *TABLE_RULES,
    *OUTPUT_RULES,
    *COPY_RULES,
    *NEWER_RULES,
    *REPLACED_RULES,
    *CONTRACT_RULES,
)
