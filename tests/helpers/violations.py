"""The cases of `tests/cases/violations`: one file for each way to break a pipeline, with the fixed program and, above one line of it, the
line that breaks it.

    # broken: full.wait_phase(i + 1)
    full.wait_phase(i)

`# broken: -` leaves the line out. A case is either a pipeline with `launch(dev)`, which gives a recipe, or, for what the typed handles do
not let anybody write, `builder()`, which gives a program of the op table. `RULE` is what refuses the broken one (or warns of it),
`SIMULATOR` what every run of it shows without a proof, `EARLIER` the typed gate that refuses it before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import oxidecopy as ox
from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim import Exploration, explore
from oxidecopy.program.program import Launch, Program
from oxidecopy.verify.report import WARNING_PREFIX
from tests.engines.sim.harness import Rig

FOLDER: Final = Path(__file__).parents[1] / "cases" / "violations"
NAMES: Final = sorted(path.stem for path in FOLDER.glob("*.py"))
MARK: Final = re.compile(r"^(?P<indent> *)# broken: (?P<line>.+)\n(?P<fixed>.+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A program with its arguments on a simulator; `results` are read when it has run."""

    program: Program
    bindings: Bindings
    results: Callable[[], Mapping[str, npt.NDArray[Any]]]
    expected: Mapping[str, npt.NDArray[Any]]

    @property
    def launch(self) -> Launch:
        return self.bindings.launch(90)

    def explore(self, seed: int, *, hazards: bool = True) -> Exploration:
        return explore(self.program, self.bindings, seed=seed, hazards=hazards, max_steps=20_000)

    def right(self) -> bool:
        """The results are what numpy says."""
        found = self.results()
        return all(np.array_equal(found[name], wanted) for name, wanted in self.expected.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file."""

    name: str
    source: str
    scope: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return self._paragraphs[0].rstrip(".")

    @property
    def hardware(self) -> str:
        """What would have happened."""
        return " ".join(self._paragraphs[1].split())

    @property
    def _paragraphs(self) -> list[str]:
        return [p.strip() for p in str(self.scope["__doc__"]).split("\n\n")]

    @property
    def rule(self) -> str:
        return str(self.scope["RULE"])

    @property
    def simulator(self) -> tuple[str, ...]:
        return tuple(self.scope["SIMULATOR"])

    @property
    def earlier(self) -> str:
        return str(self.scope.get("EARLIER", ""))

    def fixed(self) -> Ready:
        return _ready(self.scope)

    def broken(self, *args: int) -> Ready:
        """As the file is with its one edit undone, launched with `args`; lines keep their numbers."""
        mark = MARK.search(self.source)
        assert mark is not None
        line = "" if mark["line"] == "-" else mark["indent"] + mark["line"]
        text = self.source[: mark.start()] + "\n" + line + "\n" + self.source[mark.end() :]
        return _ready(_run(self.name, text), *args)


def case(name: str) -> Case:
    source = (FOLDER / f"{name}.py").read_text()
    return Case(name=name, source=source, scope=_run(name, source))


def _run(name: str, source: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": f"tests.cases.violations.{name}"}
    exec(compile(source, str(FOLDER / f"{name}.py"), "exec"), scope)  # the files are ours
    return scope


def _ready(scope: Mapping[str, Any], *args: int) -> Ready:
    if "builder" in scope:
        rig = Rig(scope["builder"]())
        return Ready(program=rig.builder.program(), bindings=rig.bindings(), results=dict, expected={})
    recipe: ox.Recipe = scope["launch"](ox.Device.open("sim"), *args)
    bound = recipe.launch
    return Ready(
        program=bound.program,
        bindings=bound.bindings,
        results=lambda: {name: array.numpy() for name, array in recipe.outputs.items()},
        expected=recipe.expected,
    )


# ---- the page
PAGE: Final = Path(__file__).parents[2] / "docs" / "violations.md"
SEEDS: Final = range(6)
# What can be wrong, in groups, with the cases that show it.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "The life of a barrier": ("use_before_init", "use_after_inval", "init_twice", "init_by_all"),
    "Bytes": (
        "bytes_over_expected",
        "bytes_over_expected_at_the_edge",
        "bytes_under_expected",
        "bytes_under_expected_at_the_edge",
        "expected_by_rank_0_alone",
        "expected_on_another_cta",
        "expect_late",
        "expect_without_arrive",
    ),
    "Arrivals and waits": (
        "arrivals_too_few",
        "arrivals_too_many",
        "arrivals_leak",
        "wrong_parity_hangs",
        "wrong_parity_passes",
        "two_phases_behind",
        "two_rings_deadlock",
        "role_never_runs",
        "role_is_idle",
    ),
    "Shared tiles": (
        "read_before_wait",
        "refill_of_a_stage_still_read",
        "refill_of_a_stage_still_stored",
        "no_proxy_fence",
        "fence_in_the_wrong_thread",
        "fence_in_a_loop_of_no_iteration",
        "no_sync_before_the_copy",
        "stores_not_drained",
        "swizzle_misaligned",
        "swizzle_misaligned_from_the_second_stage_on",
    ),
    "Clusters": (
        "no_cluster_sync_before_remote_use",
        "init_not_fenced_for_the_cluster",
        "multicast_into_the_phase_before",
        "exit_with_a_peers_arrival_pending",
        "exit_with_a_peers_copy_pending",
        "mask_beyond_the_cluster",
    ),
    "Global memory": (
        "inner_coordinate_off_the_grid",
        "stores_overlap",
        "edges_touch_neighbours",
        "loads_of_what_is_stored",
        "overlapping_views",
        "output_not_covered",
    ),
}
_ENDS: Final = {"deadlock": "hangs", "fault": "faults", "ok": "ends"}


def page() -> str:
    """docs/violations.md, from the cases and what they do."""
    head = PAGE.read_text().split("\n## ", 1)[0]
    parts = [head.rstrip() + "\n"]
    for group, names in GROUPS.items():
        rows = [_row(case(name)) for name in names]
        lines = ["| what is wrong | refused by | what would have happened | the simulator, without a proof |", "|---|---|---|---|", *rows]
        parts.append(f"## {group}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _row(c: Case) -> str:
    word = "a warning, " if c.rule.startswith(WARNING_PREFIX) else ""
    earlier = f"; by the types and the recorder first ({c.earlier})" if c.earlier else ""
    link = f"[{c.kind}](../tests/cases/violations/{c.name}.py)"
    return f"| {link} | {word}{c.rule}{earlier} | {c.hardware} | {_ending(c)}: {', '.join(c.simulator)} |"


def _ending(c: Case) -> str:
    """How the broken one went, over all seeds."""
    ends = set()
    for seed in SEEDS:
        ready = c.broken()
        outcome = ready.explore(seed).outcome
        ends.add(_ENDS[outcome] if outcome != "ok" or not ready.expected else "right by luck" if ready.right() else "wrong bytes")
    return " or ".join(sorted(ends))


if __name__ == "__main__":
    PAGE.write_text(page())
