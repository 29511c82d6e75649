"""How the verifier's pages are written: one script with a gap, and the two lines that may fill it. Wrong and right differ by one edit."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Final, NamedTuple

GAP: Final = "<gap>"
NO_SCRIPT: Final = "No script shows this rule: "
BY_TEXT: Final = "The script is a program text: "  # in `beyond`
WARNS: Final = "It is a warning, which stops nothing. "  # with a script in `warned`

_HEAD: Final = """\
@ox.pipeline(threads=128{cluster})
def kernel(cta: ox.{cta}, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
"""
_TAIL: Final = """

a = dev.array(np.ones((128, 128), np.float32))
kernel[{grid}](ox.TmaDescriptor.tiled(a, box=(64, 64)), dev.empty((128, 128), ox.f32), {n})
"""


class Twins(NamedTuple):
    """The wrong and the right script of a page."""

    wrong: str
    right: str


def twins(body: str, wrong: str, right: str, *, cluster: bool = False, n: int = 4, grid: str = "") -> Twins:
    """A pipeline of 128 threads over 64 x 64 tiles of `src` and `out`, of one CTA or a cluster of two; `body` has one gap."""
    head = _HEAD.format(cluster=", cluster=(2, 1)" if cluster else "", cta="ClusterCta" if cluster else "Cta")
    return Twins(
        *(
            head + indent(fill(dedent(body), line), "    ") + _TAIL.format(n=n, grid=grid or ("2" if cluster else "1"))
            for line in (wrong, right)
        )
    )


def scripts(script: str, wrong: str, right: str) -> Twins:
    """A whole script with one gap."""
    return Twins(fill(dedent(script), wrong), fill(dedent(script), right))


def fill(script: str, words: str) -> str:
    """`script` with its gap filled. A gap that stands alone on its line takes lines, or the line goes when there are none."""
    lines: list[str] = []
    for line in script.strip("\n").split("\n"):
        if line.strip() == GAP:
            lines += [line.replace(GAP, w) for w in words.split("\n") if words]
        else:
            lines.append(line.replace(GAP, words))
    return "\n".join(lines) + "\n"
