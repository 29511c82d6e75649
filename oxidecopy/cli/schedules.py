"""`--schedules`: what some or all schedules of a launch do on the simulator, proof or not."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias, final

import typer

from oxidecopy.cli.report import counted
from oxidecopy.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from oxidecopy.engines.sim import Schedules as Explored
    from oxidecopy.host.bound import BoundLaunch

ALL: Final = "all"
NOT_A_NUMBER: Final = "OX6025"
GAVE_UP: Final = "OX6026"
DRAWN_MAX: Final = 100_000

Schedules: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--schedules",
        metavar="N|all",
        help="Run each launch on the simulator as well: under N schedules drawn by seed, or all of a small launch, up to equivalence.",
        show_default=False,
    ),
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the schedules of one launch gave: what is wrong with it, a line about how much was looked at, and numbers for programs."""

    errors: tuple[Diagnostic, ...]
    words: str
    data: dict[str, object]


def wanted(text: str | None) -> int | str | None:
    """How many schedules, or `ALL`; None without the option."""
    if text is None or text == ALL:
        return text
    if text.isascii() and text.isdigit() and 1 <= int(text) <= DRAWN_MAX:
        return int(text)
    raise UsageError(
        Diagnostic(
            rule=NOT_A_NUMBER,
            what="`--schedules` takes a number, or the word all",
            got=repr(text),
            required=f"1 to {DRAWN_MAX:,}, or all",
            fix="--schedules 100, or --schedules all for a small launch",
        )
    )


def look(launch: BoundLaunch, schedules: int | str) -> Seen:
    """Runs the launch, whatever the verifier says of it; its arrays are as before afterwards."""
    from oxidecopy.engines.sim import explore_all, explore_seeds

    if isinstance(schedules, int):
        found = explore_seeds(launch.program, launch.bindings, schedules)
        much = f"{counted(schedules, 'schedule')} drawn by seed"
    else:
        found = explore_all(launch.program, launch.bindings)
        much = _how_much(found)
    errors = (*found.diagnostics, *found.findings)
    if isinstance(schedules, str) and not found.complete:
        errors = (*errors, _gave_up(launch, found))
    return Seen(errors=errors, words=f"{much}: {_verdict(found)}", data=_data(found))


def _how_much(found: Explored) -> str:
    told = f"{counted(found.states, 'state')} with several steps to choose from, {counted(found.moves, 'step')} tried"
    if not found.complete:
        return f"not all schedules ({told}; gave up after {found.bound})"
    orders = f"about 10^{log10(found.orders):.0f}" if found.orders >= 10_000 else f"about {found.orders}"
    return f"all schedules: {found.schedules:,} after reduction, of {orders} orders ({told})"


def _verdict(found: Explored) -> str:
    if found.clean:
        return "nothing wrong"
    said = [word for word in ("deadlock", "fault", "steps", "refused") if word in found.outcomes]
    rules = sorted({d.rule for d in (*found.diagnostics, *found.findings)})
    always = "" if "ok" in found.outcomes or not found.complete else " on every schedule"
    return f"{' or '.join(said) or 'wrong'}{always if said else ''} ({', '.join(rules)})"


def _gave_up(launch: BoundLaunch, found: Explored) -> Diagnostic:
    return Diagnostic(
        rule=GAVE_UP,
        what=f"not all schedules of `{launch.program.name}` were tried",
        got=f"gave up after {found.bound}; what was seen is {'right' if found.clean else 'reported'}, of the rest nothing is known",
        required="a launch whose schedules can all be tried: few CTAs, iterations and threads that wait for each other",
        fix="launch fewer blocks or iterations in the recipe, or draw schedules by seed: --schedules 1000",
        site=launch.program.site,
    )


def _data(found: Explored) -> dict[str, object]:
    return {
        "complete": found.complete,
        "bound": found.bound or None,
        "schedules": found.schedules,
        "states": found.states,
        "steps": found.moves,
        "orders": found.orders,
        "outcomes": sorted(found.outcomes),
        "clean": found.clean,
        "seconds": round(found.seconds, 3),
    }
