"""`oxidecopy demo`: the tour of the lessons, each run and checked, each broken twin shown with the error it gets."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from oxidecopy.cli.options import AsJson, DeviceName
from oxidecopy.cli.report import OK, REFUSED, diagnostics_json, err, guarded, out, print_diagnostics, print_json

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from oxidecopy.cli.lessons import Lesson
    from oxidecopy.host.device import Device

HELP: Final = """Run the tour: every lesson on the device, its result checked, its broken twin refused.

The lessons are plain Python files; the table names the folder they are in.
"""
EXAMPLES: Final = ("oxidecopy demo", "oxidecopy demo --device sim-fast", "oxidecopy demo --json")


@guarded
def command(*, device: DeviceName = None, as_json: AsJson = False) -> int:
    """Runs the tour; 1 when any lesson fails."""
    from oxidecopy.cli import launch, lessons

    files = lessons.find()
    on = launch.open_device(device)
    start = perf_counter()
    done = _run(files, on)
    seconds = perf_counter() - start
    failed = [lesson for lesson in done if lesson.errors]
    if as_json:
        print_json({"ok": not failed, "device": on.name, "seconds": seconds, "lessons": [_data(lesson) for lesson in done]})
    else:
        _print(out(), done, on, files[0].parent, seconds)
        for lesson in failed:
            console = err()
            console.print(Text(f"\n{lesson.lesson} {lesson.launch}", "bold red"))
            print_diagnostics(console, lesson.errors)
    return REFUSED if failed else OK


def _run(files: list[Path], device: Device) -> list[Lesson]:
    from oxidecopy.cli import lessons

    console = err()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    done: list[Lesson] = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("lessons", total=len(files))
        for lesson in lessons.run_all(files, device, lambda name: progress.update(task, description=name)):
            done.append(lesson)
            progress.update(task, completed=len({d.lesson for d in done}) - 1)
    return done


def _print(console: Console, done: Sequence[Lesson], device: Device, folder: Path, seconds: float) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("lesson", overflow="fold")
    table.add_column("what it shows, and what came of it", overflow="fold", ratio=1)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("check", no_wrap=True)
    before = ""
    for lesson in done:
        if lesson.lesson != before:
            before = lesson.lesson
            table.add_row(Text(lesson.lesson, "bold"), Text(lesson.shows, "bold"), "", "")
        verdict = Text("FAILED", "bold red") if lesson.errors else Text("refused", "cyan") if lesson.twin else Text("OK", "bold green")
        table.add_row(
            f"  {lesson.launch}", Text(lesson.result, "cyan" if lesson.twin else "default"), f"{lesson.seconds * 1e3:.0f} ms", verdict
        )
    console.print(table, soft_wrap=False)
    good = sum(not lesson.errors for lesson in done)
    twins = sum(lesson.twin and not lesson.errors for lesson in done)
    style = "bold green" if good == len(done) else "bold red"
    console.print(
        Text(f"\n{good} of {len(done)} launches as they should be", style).append(
            f" on {device.name}, {twins} of them refused on purpose, in {seconds:.1f} s", "default"
        )
    )
    console.print(Text(f"device: {device.why}\nlessons: {folder}", "dim"))


def _data(lesson: Lesson) -> dict[str, object]:
    return {
        "lesson": lesson.lesson,
        "launch": lesson.launch,
        "shows": lesson.shows,
        "result": lesson.result,
        "broken_twin": lesson.twin,
        "ok": not lesson.errors,
        "seconds": lesson.seconds,
        "errors": diagnostics_json(lesson.errors),
    }
