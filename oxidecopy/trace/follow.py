"""`trace`: follows some CTAs of a launch on the simulator, and shows what came of it in several forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final, final

from oxidecopy.engines.sim import SimEngine
from oxidecopy.engines.sim.costs import Costs
from oxidecopy.engines.sim.timed import OPS_MAX, stamped
from oxidecopy.errors import Diagnostic, UsageError
from oxidecopy.program.stamps import Block, Stamped
from oxidecopy.trace.chrome import to_chrome
from oxidecopy.trace.page import to_html
from oxidecopy.trace.picture import to_scene
from oxidecopy.trace.stalls import Summary, summary
from oxidecopy.trace.timeline import Timeline, timeline

if TYPE_CHECKING:
    from oxidecopy.host.bound import BoundLaunch

CTAS: Final = 4  # that are followed where nothing else is said


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A launch over time.

    Attributes:
        timeline: lanes, copies in flight, and states of tiles.
        summary: who waited for what, and what might help.
    """

    timeline: Timeline
    summary: Summary

    def html(self) -> str:
        """A page of its own, to look at in a browser; it loads nothing."""
        return to_html(self.timeline, self.summary)

    def chrome(self) -> str:
        """Trace events as JSON, for https://ui.perfetto.dev and chrome://tracing."""
        return to_chrome(self.timeline, self.summary)

    def png(self) -> bytes:
        """A picture, by matplotlib (the extra `plot`).

        Raises:
            ImportError: it is not installed.
        """
        from oxidecopy.draw.png import to_png

        return to_png(to_scene(self.timeline, self.summary))

    def svg(self) -> str:
        """The same picture as SVG."""
        from oxidecopy.draw.svg import to_svg

        return to_svg(to_scene(self.timeline, self.summary))


def shown(run: Stamped) -> Trace:
    """What an engine stamped, whichever it was."""
    line = timeline(run)
    return Trace(timeline=line, summary=summary(run, line))


def trace(launch: BoundLaunch, *, ctas: int | Sequence[Block] = CTAS, ops_max: int = OPS_MAX, costs: Costs | None = None) -> Trace:
    """Follows some CTAs of a launch: in simulated time, where it is bound on the simulator, else in a GPU's.

    The simulator asks for no proof, and memory is as before afterwards. A GPU runs the whole launch, verified, by an interpreter that
    stamps its ops.

    Args:
        launch: with its arguments.
        ctas: how many, from the first on, or their block indices; the simulator follows a cluster as a whole.
        ops_max: where a long launch is cut off.
        costs: the simulator's model of time.

    Raises:
        UsageError: the grid has no such CTA, or the engine can follow no launch, or not those CTAs.
        VerificationError: on a GPU, where there is no proof.
        DeviceCodeError: on a GPU, where there is no code that stamps this program.
    """
    engine, grid = launch.engine, launch.bindings.grid
    if not isinstance(engine, SimEngine) and isinstance(ctas, int) and ctas > 0 and engine.name.startswith("cuda"):
        return shown(_on_gpu(launch, ctas, ops_max))
    if not isinstance(engine, SimEngine):
        raise UsageError(
            Diagnostic(
                rule="OX6052",
                what="chosen CTAs of a launch are followed over time that is not bound on the simulator",
                got=f"a launch on {engine.name}",
                required='arrays of ox.Device.open("sim"), or a number of CTAs',
                fix='say how many CTAs, or bind it with arrays of ox.Device.open("sim")',
            )
        )
    chosen = _first(grid, ctas) if isinstance(ctas, int) else tuple(ctas)
    wrong = [block for block in chosen if not all(0 <= i < n for i, n in zip(block, grid, strict=True))]
    if wrong or not chosen:
        raise UsageError(
            Diagnostic(
                rule="OX6051",
                what="the grid has no such CTA" if wrong else "there is no CTA to follow",
                got=", ".join(map(str, wrong)) or f"{ctas}",
                required=f"block indices in a grid of {grid}" if wrong else "at least one",
                fix="name CTAs of the grid",
            )
        )
    return shown(stamped(launch.program, launch.bindings, ctas=frozenset(chosen), costs=costs, ops_max=ops_max))


def _on_gpu(launch: BoundLaunch, ctas: int, ops_max: int) -> Stamped:
    from oxidecopy.engines.cuda.engine import CudaEngine
    from oxidecopy.engines.cuda.timed import stamped as stamped_on_gpu

    engine = launch.engine
    assert isinstance(engine, CudaEngine)  # no other engine has such a name
    return stamped_on_gpu(engine, launch.verify(), launch.bindings, ctas=ctas, ops_max=ops_max)


def _first(grid: Block, count: int) -> tuple[Block, ...]:
    places = product(range(grid[2]), range(grid[1]), range(grid[0]))
    return tuple((x, y, z) for (z, y, x), _ in zip(places, range(count), strict=False))
