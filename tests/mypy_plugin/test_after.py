"""The pass runs once everything else is visited: functions that mypy comes back to, and the two phases of parallel workers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.mypy_plugin.analysed import case_files, check, errors
from tests.mypy_plugin.project import CONFIG, Project, findings

# "late" is visited twice, as it needs the type of a variable further down; in "later" that is known only after a third visit of its class.
LATE = """\
import oxidecopy as ox
def late(cta: ox.Cta) -> None:
    bar = cta.barrier()
    n = BELOW + 1
    bar.init(n)
    bar.init(n)
def soon(cta: ox.Cta) -> None:
    bar = cta.barrier()
    bar.init(1)
    bar.init(1)
def last(cta: ox.Cta) -> None:
    n = Holder(3).value
    cta.barrier().init(n + BELOW)
    bar = cta.barrier()
    bar.init(1)
    bar.init(n)
class Holder:
    def __init__(self, n: int) -> None:
        self.value = n + BELOW
class Owner:
    def __init__(self, cta: ox.Cta) -> None:
        self.bar = cta.barrier().init(1)
        bar = cta.barrier()
        bar.init(1)
        bar.init(1)
BELOW = int("3")
def module_level(cta: ox.Cta) -> ox.ManagedBarrier[ox.Uninit, ox.TmaBarrier]:
    return cta.barrier()
CTA: ox.Cta
BAR = module_level(CTA)
BAR.init(1)
BAR.init(1)
"""
MOVED = {6, 10, 16, 25}


def moved(lines: list[str]) -> list[int]:
    return sorted(int(line.split(":")[1]) for line in lines if line.endswith("[oxidecopy-moved]"))


def test_functions_that_are_visited_again_are_analysed_once(cache: Path) -> None:
    output = check({"late": LATE}, cache).output
    assert sorted(set(moved(output)) - {32}) == sorted(MOVED)
    assert len(moved(output)) == len(set(moved(output))), output
    assert not [line for line in output if "oxidecopy-plugin" in line]


def test_parallel_workers_find_the_same(new: Callable[..., Project]) -> None:
    some = dict(list(case_files().items())[::4])  # whether a worker's half is as good as a whole does not depend on which
    files = {f"{name}.py": text for name, text in {**some, "late": LATE}.items()}
    project = new(files, config=f"{CONFIG}[oxidecopy-mypy]\nleaks = error\nleaks_at_end = error\n")
    shutil.copytree(project.folder / ".mypy_cache", project.folder / "another")
    alone = project.batch()
    assert len(errors(alone.splitlines())) == len(files)
    assert findings(project.batch("--cache-dir=another", "-n", "2")) == findings(alone)
