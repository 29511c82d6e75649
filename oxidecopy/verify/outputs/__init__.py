"""Where the stores of a whole launch land: apart from each other, on all of an output, and away from what other CTAs read."""

from __future__ import annotations

from oxidecopy.verify.outputs.judge import check_outputs

__all__ = ["check_outputs"]
