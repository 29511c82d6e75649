"""Rules of the recorder."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.copies import RECORDER_RULES
from oxidecopy.rules.newer_devices import RECORDER_RULES as NEWER_RULES
from oxidecopy.rules.recorder_barriers import BARRIER_RULES
from oxidecopy.rules.recorder_blocks import BLOCK_RULES
from oxidecopy.rules.recorder_launch import LAUNCH_RULES
from oxidecopy.rules.recorder_symbols import SYMBOL_RULES
from oxidecopy.rules.recorder_tiles import TILE_RULES
from oxidecopy.rules.replaced import RECORDER_RULES as REPLACED_RULES
from oxidecopy.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    *BARRIER_RULES,
    *BLOCK_RULES,
    *SYMBOL_RULES,
    *TILE_RULES,
    *LAUNCH_RULES,
    *RECORDER_RULES,
    *NEWER_RULES,
    *REPLACED_RULES,
)
