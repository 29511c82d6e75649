"""Scenes as SVG: text stays text, each box says what it is when pointed at. The bytes depend on the scene alone."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from oxidecopy.draw.scene import PAPER, Box, Scene, Words

_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def to_svg(scene: Scene) -> str:
    """The whole document."""
    size = f'width="{scene.width:g}" height="{scene.height:g}" viewBox="0 0 {scene.width:g} {scene.height:g}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family={quoteattr(_FONT)}>',
            f"<title>{escape(scene.title)}</title>",
            f'<rect width="100%" height="100%" fill="{PAPER}"/>',
            *map(_box, scene.boxes),
            *map(_words, scene.words),
            "</svg>\n",
        ]
    )


def _box(box: Box) -> str:
    place = f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" fill="{box.fill}"'
    return f"<rect {place}><title>{escape(box.title)}</title></rect>" if box.title else f"<rect {place}/>"


def _words(words: Words) -> str:
    bold = ' font-weight="bold"' if words.bold else ""
    # Not `dominant-baseline`, which some viewers ignore: a third of the size below the middle is where a line's foot is.
    place = f'x="{words.x:g}" y="{words.y + words.size * 0.35:g}" font-size="{words.size:g}" text-anchor="{words.anchor}"'
    return f'<text {place} fill="{words.fill}"{bold} pointer-events="none" xml:space="preserve">{escape(words.text)}</text>'
