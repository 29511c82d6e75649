"""Pages of the rules about code for a GPU: what a program must be so that it can be written as such."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_NO_SCRIPT: Final = "No script shows this rule: it takes a launch on a GPU. "

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="OX5501",
        title="It can be told which phase of its barrier each token names",
        error="DeviceCodeError",
        why="The hardware's waits know the parity of a phase and nothing else, so the number of the phase that a token stands for must "
        "follow from the program. It does for one thread that arrives, and for several that wait between rounds of exactly the barrier's "
        "count; not for arrivals in branches that some iterations take, or from other CTAs. " + _NO_SCRIPT,
        source="PTX 9.7.13.15: test_wait and try_wait, .parity",
    ),
)
