"""`oxidecopy trace`: who runs, waits and copies when, as a page, a picture or trace events, and where the time goes in words."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from oxidecopy.cli.options import AsJson, Inputs, Target
from oxidecopy.cli.report import OK, REFUSED, err, guarded, out, print_json
from oxidecopy.errors import Diagnostic, UsageError

HELP: Final = """Show what the threads of a launch do over time, which copies are in flight, and what becomes of each tile.

The launch of FILE's recipe is followed on the simulator, in time units of a simple cost model: good to see who waits for whom, no
prediction of a speed. Nothing is verified, so what a launch that hangs waits for can be looked at, too. With --device cuda:0 a GPU runs
it, op by op, by an interpreter that stamps what it does.

The ending of the file says the form: .html is a page to look at in a browser, .json are trace events for Perfetto, .png and .svg are
pictures.
"""
EXAMPLES: Final = (
    "oxidecopy trace examples/10_ring.py:prefetch -o ring.html",
    "oxidecopy trace mine.py -o mine.html -o mine.json --ctas 8",
    "oxidecopy trace mine.py:fused --cta 0 --cta 131",
    "oxidecopy trace mine.py -o mine.png --ops 2000",
    "oxidecopy trace mine.py --device cuda:0 -o gpu.html",
)
_FORMS: Final = (".html", ".json", ".png", ".svg")


@guarded
def command(
    target: Target,
    *,
    inputs: Inputs = None,
    device: Annotated[str, typer.Option("--device", "-d", metavar="NAME", help="sim, or a GPU such as cuda:0.")] = "sim",
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", metavar="FILE.html|json|png|svg", help="Write it here; once for each form.", show_default=False),
    ] = None,
    ctas: Annotated[int, typer.Option("--ctas", min=1, max=256, help="How many CTAs are followed, from the first on.")] = 4,
    cta: Annotated[
        list[str] | None, typer.Option("--cta", metavar="X[,Y[,Z]]", help="Follow this CTA, and no others.", show_default=False)
    ] = None,
    ops: Annotated[int, typer.Option("--ops", min=1, max=1_000_000, help="Ops after which a long launch is cut off.")] = 20_000,
    as_json: AsJson = False,
) -> int:
    """Follows a launch; 1 when it does not end well."""
    from oxidecopy.cli import launch
    from oxidecopy.cli.files import choose, load, split_target

    places = output or []
    for place in places:
        _check_form(place)
    chosen = choose(load(split_target(target)[0]), split_target(target)[1])
    recipe = launch.prepare(chosen, launch.open_device(device), launch.read_inputs(inputs or ()))
    with err().status(f"following {chosen.pipeline}"):
        # A stranger, loaded by its name, and may be removed: `oxidecopy.trace.trace` and `Trace`.
        room: Any = import_module("oxidecopy.trace")
        made = room.trace(recipe.launch, ctas=[_block(text) for text in cta] if cta else ctas, ops_max=ops)
        for place in places:
            _write(place, made)
    line = made.timeline
    if as_json:
        print_json(_data(chosen.pipeline, chosen.recipe.name, made, places))
    else:
        _print(made, places)
    return OK if line.outcome == "ok" else REFUSED


def _print(made: Any, places: list[Path]) -> None:
    console, line = out(), made.timeline
    notes = ", ".join([f"{line.end / 1e3:.2f} us by the clock of: {line.source}", f"{line.ops:,} ops", *line.notes])
    console.print(Text(line.title, "bold").append(f"  {notes}", "default"))
    if line.outcome != "ok":
        console.print(Text(f"  it did not end well ({line.outcome})", "bold red"))
        for problem in line.problems:
            console.print(Text(f"  {problem.partition(chr(10))[0]}", "red"))
    for said in made.summary.lines:
        console.print(Text(f"  {said}"))
    for place in places:
        console.print(f"  written to {place}")


def _data(pipeline: str, recipe: str, made: Any, places: list[Path]) -> dict[str, Any]:
    line, said = made.timeline, made.summary
    return {
        "ok": line.outcome == "ok",
        "pipeline": pipeline,
        "recipe": recipe,
        "title": line.title,
        "outcome": line.outcome,
        "problems": line.problems,
        "nanoseconds": line.end,
        "ops": line.ops,
        "notes": line.notes,
        "model": line.model,
        "moving": said.moving,
        "flying": said.flying,
        "computing": said.computing,
        "bytes_per_ns": said.rate,
        "stalls": [
            {"role": s.role, "what": s.what, "share": s.share, "why": s.why, "advice": s.advice, "text": str(s)} for s in said.stalls
        ],
        "outputs": [str(place) for place in places],
    }


def _check_form(path: Path) -> None:
    if path.suffix.lower() not in _FORMS:
        got, fix = path.suffix or "no ending", f"-o {path.stem or 'trace'}.html"
        what = f"{path} is no form of a timeline"
        raise UsageError(Diagnostic(rule="OX6050", what=what, got=got, required=", ".join(_FORMS), fix=fix))


def _block(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() for part in parts):
        required, fix = "X, X,Y or X,Y,Z: a block index", "--cta 0"
        raise UsageError(Diagnostic(rule="OX6051", what="--cta names no CTA", got=repr(text), required=required, fix=fix))
    x, y, z = (*map(int, parts), *[0] * (3 - len(parts)))
    return x, y, z


def _write(path: Path, made: Any) -> None:
    from oxidecopy.host.npy import write_whole
    from oxidecopy.typed.sites import no_sites

    forms: dict[str, Callable[[], str | bytes]] = {".html": made.html, ".json": made.chrome, ".png": made.png, ".svg": made.svg}
    try:
        text = forms[path.suffix.lower()]()
    except ImportError:
        required, fix = "the extra `plot`", f"pip install 'oxidecopy[plot]', or -o {path.stem}.svg"
        what = "PNG pictures are drawn by matplotlib"
        raise UsageError(Diagnostic(rule="OX6022", what=what, got="not installed", required=required, fix=fix)) from None
    data = text.encode() if isinstance(text, str) else text
    with no_sites():
        write_whole(path, lambda file: file.write(data))
