"""Pages of the rules about code for a GPU: what a program must be so that it can be written as such."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_NO_SCRIPT: Final = "No script shows this rule: it takes a launch on a GPU. "

# Emitting is a command: it works on a file.
_WIDE: Final = '''
from pathlib import Path
from oxidecopy.cli import invoke

Path("mine.py").write_text("""
import numpy as np, oxidecopy as ox
@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1], n: ox.Idx) -> None:
    tile = cta.shared(ox.f32, (64,), align=ox.A128)
    cta.fill(tile, 1)
    cta.sync()
    cta.store(out, tile, (cta.block_idx.x * {factor},))

@kernel.recipe
def recipe(dev: ox.Device) -> ox.Recipe:
    return ox.Recipe(launch=kernel[2].bind(dev.zeros((64,), ox.f32), 1 << 60), outputs={{}})
""")
invoke("emit", "mine.py", "-o", "mine.cu")
'''

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
    Rule(
        id="OX5510",
        title="Every index of emitted code fits 64 bits, in every step of its calculation",
        error="DeviceCodeError",
        why="The program means whole numbers without end, which no GPU has: what the launch makes larger than 64 bits would wrap silently.",
        source="C++: signed overflow is undefined",
        wrong=_WIDE.format(factor="n * 64"),
        right=_WIDE.format(factor="64"),
    ),
)
