"""Scenes as PNG, by matplotlib (the extra `plot`): one pixel of the scene is two of the image."""

from __future__ import annotations

from io import BytesIO
from typing import Final

from oxidecopy.draw.scene import PAPER, Scene

_DPI: Final = 144
_POINTS: Final = 72  # per inch; the scene's pixels are taken as points, so the image has two pixels for each
_ALIGN: Final = {"start": "left", "middle": "center", "end": "right"}


def to_png(scene: Scene) -> bytes:
    """The image; its text and size depend on the scene alone.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(scene.width / _POINTS, scene.height / _POINTS), dpi=_DPI, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)  # down, as in the scene
    corners = [
        ((box.x, box.y), (box.x + box.width, box.y), (box.x + box.width, box.y + box.height), (box.x, box.y + box.height))
        for box in scene.boxes
    ]
    axes.add_collection(PolyCollection(corners, facecolors=[box.fill for box in scene.boxes], linewidths=0), autolim=False)
    for words in scene.words:
        axes.text(
            words.x,
            words.y,
            words.text.replace("$", r"\$"),  # a pair of these would start a formula
            fontsize=words.size,
            color=words.fill,
            ha=_ALIGN[words.anchor],
            va="center",
            family="monospace",
            weight="bold" if words.bold else "normal",
        )
    file = BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()
