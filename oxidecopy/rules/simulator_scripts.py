"""The scripts of the simulator's pages: a pipeline that is recorded, not verified, and explored. Wrong and right differ by one edit."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Final

from oxidecopy.rules.verifier_scripts import Twins, fill

_HEAD: Final = """\
from oxidecopy.engines.sim import explore


@ox.pipeline(threads=128{cluster})
def kernel(cta: ox.{cta}, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
"""
_TAIL: Final = """

a = dev.array(np.ones((128, 128), np.float32))
launch = kernel[{grid}].bind(ox.TmaDescriptor.tiled(a, box=(64, 64)), dev.empty((128, 128), ox.f32), {n})
explore(launch.program, launch.bindings{options}).check()
"""


def explored(body: str, wrong: str, right: str, *, cluster: bool = False, options: str = "") -> Twins:
    """A pipeline of 128 threads over 64 x 64 tiles, one CTA or a cluster of two; `body` has one gap."""
    head = _HEAD.format(cluster=", cluster=(2, 1)" if cluster else "", cta="ClusterCta" if cluster else "Cta")
    tail = _TAIL.format(grid=2 if cluster else 1, n=4, options=options)
    return Twins(*(head + indent(fill(dedent(body), line), "    ") + tail for line in (wrong, right)))


def launched(body: str, wrong: str, right: str) -> Twins:
    """A cluster of two whose grid is the gap."""
    head = _HEAD.format(cluster=", cluster=(2, 1)", cta="ClusterCta")
    return Twins(*(head + indent(dedent(body).strip("\n"), "    ") + _TAIL.format(grid=grid, n=4, options="") for grid in (wrong, right)))
