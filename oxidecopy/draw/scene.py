"""A picture as data: filled rectangles and lines of text, in pixels from the top left corner. `svg` and `png` write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

# One colour for each group of four banks (or each row, modulo eight); dark text reads on all of them.
PALETTE: Final = ("#8ecae6", "#ffd166", "#a7d49b", "#f4a6a0", "#c8b6ff", "#ffc9a0", "#b8c0cc", "#f5b8dc")
INK: Final = "#1b1f24"
FAINT: Final = "#6b7280"
PAPER: Final = "#ffffff"
EMPTY: Final = "#f0f1f3"

Anchor: TypeAlias = Literal["start", "middle", "end"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A filled rectangle; `title` is shown where a viewer can point at it."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    title: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One line of text; `y` is its middle."""

    x: float
    y: float
    text: str
    size: float = 11
    anchor: Anchor = "start"
    fill: str = INK
    bold: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is drawn, back to front; `title` says what it is to those who cannot see it."""

    title: str
    width: float
    height: float
    boxes: tuple[Box, ...]
    words: tuple[Words, ...]
