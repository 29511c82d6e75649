"""The user's file: executed under a name of its own, its pipelines and recipes found, one of them picked."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, final

from oxidecopy.errors import Diagnostic, OxidecopyError, Site, UsageError
from oxidecopy.host.pipeline import Pipeline
from oxidecopy.host.recipe import RecipeFunction
from oxidecopy.typed.sites import in_package

_NUMBERS: Final = count()
_STDLIB: Final = sysconfig.get_path("stdlib") + os.sep


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A recipe with the pipeline it launches; `pipeline` is the name in the user's file."""

    pipeline: str
    recipe: RecipeFunction

    @property
    def name(self) -> str:
        return f"{self.pipeline}:{self.recipe.name}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserFile:
    """A loaded file; pipelines by their names in it, in order."""

    path: Path
    summary: str
    pipelines: Mapping[str, Pipeline[Any]]

    def recipes(self) -> Iterator[Chosen]:
        for name, pipeline in self.pipelines.items():
            for recipe in pipeline.recipes:
                yield Chosen(pipeline=name, recipe=recipe)


def split_target(target: str) -> tuple[Path, str]:
    """`FILE`, `FILE:name` or `FILE:pipeline:recipe` as its parts; a colon inside a path (a drive letter, an odd name) stays in the path."""
    head, colon, name = target.rpartition(":")
    if colon and len(head) > 1 and name.isidentifier() and not Path(target).exists():
        if not Path(head).exists():
            file, _, pipeline = head.rpartition(":")
            if len(file) > 1 and (pipeline.isidentifier() or not pipeline) and Path(file).exists():
                return Path(file), f"{pipeline}:{name}" if pipeline else name  # `FILE::name` is how test runners have it
        return Path(head), name
    return Path(target), ""


def load(path: Path) -> UserFile:
    """Executes a Python file, as `python FILE` would but not as `__main__`.

    Raises:
        UsageError: it cannot be read, does not parse, or fails; with file and line.
    """
    path = path.absolute()
    module = ModuleType(f"_oxidecopy_user_{next(_NUMBERS)}_{path.stem}")
    module.__file__ = str(path)
    code = _compiled(path)
    # Dataclasses and annotations look their module up by name. Siblings of the file can be imported, as for a script, but last:
    # a file called copy.py or types.py beside it must not replace Python's own, which this process still imports.
    sys.modules[module.__name__] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        exec(code, module.__dict__)  # running the user's file is the point
    except OxidecopyError:
        raise
    except (Exception, SystemExit) as problem:
        raise UsageError(
            Diagnostic(
                rule="OX6002",
                what=f"{path.name} fails when it is loaded",
                got=_words(problem),
                required="a file that Python can import",
                fix=f"run `python {path.name}` and mend what it says",
                site=site_of(problem, str(path)),
            )
        ) from problem
    found: dict[str, Pipeline[Any]] = {}
    for name, value in vars(module).items():
        if isinstance(value, Pipeline) and not any(value is known for known in found.values()):
            found[name] = value
    return UserFile(path=path, summary=_first_sentence(module.__doc__), pipelines=found)


def _compiled(path: Path) -> CodeType:
    # Compiled here, not imported: an import would leave a __pycache__ beside the user's file, and could find a stale one there.
    try:
        return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise UsageError(
            Diagnostic(
                rule="OX6001",
                what=f"cannot read {path}",
                got=reason,
                required="a Python file with a pipeline",
                fix=f"name files: {path}/*.py" if path.is_dir() else "check the path; `oxidecopy demo` names the lessons' files",
            )
        ) from problem
    except SyntaxError as problem:
        site = Site(str(path), problem.lineno or 1)
        raise UsageError(
            Diagnostic(
                rule="OX6002",
                what=f"{path.name} is not valid Python",
                got=problem.msg,
                required="Python source",
                fix="mend the line",
                site=site,
            )
        ) from problem
    except ValueError as problem:  # null bytes
        raise UsageError(
            Diagnostic(
                rule="OX6002",
                what=f"{path.name} is not valid Python",
                got=str(problem),
                required="Python source",
                fix="save it as UTF-8 text",
            )
        ) from problem


def site_of(problem: BaseException, preferred: str = "") -> Site | None:
    """The user's line that led to an exception: the innermost one outside this package and any installed one; in `preferred` if any is."""
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if not in_package(f.filename)]
    frames = [f for f in frames if f.filename == preferred] or [f for f in frames if not _installed(f.filename)] or frames
    return Site(frames[-1].filename, frames[-1].lineno or 1, frames[-1].name) if frames else None


def _installed(filename: str) -> bool:
    return filename.startswith(("<", _STDLIB)) or "site-packages" in filename


def _words(problem: BaseException) -> str:
    lines = traceback.format_exception_only(problem)
    return lines[-1].strip()


def _first_sentence(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0].rstrip(".")


# ---- picking
def choose(file: UserFile, name: str) -> Chosen:
    """The recipe that `name` (of a pipeline or recipe) names; without a name, the only one that is not declared refused.

    Raises:
        UsageError: there is none, or more than one.
    """
    require_recipes(file, name)
    every = list(file.recipes())
    if name:
        named = [c for c in every if name in (c.pipeline, c.name)] or [c for c in every if c.recipe.name == name]
        if not named:
            _unknown(file, every, name)
    else:
        named = [c for c in every if not c.recipe.refused] or every
    if len(named) > 1:
        names = _names(named)
        raise UsageError(
            Diagnostic(
                rule="OX6004",
                what=f"{file.path.name} has several launches" + (f" of {name!r}" if name else ""),
                got=", ".join(names),
                required="the name of one",
                fix=f"{file.path.name}:{names[0]}",
            )
        )
    return named[0]


def _names(chosen: list[Chosen]) -> list[str]:
    """The shortest names that tell them apart: pipelines' where those differ, else recipes'."""
    pipelines = [c.pipeline for c in chosen]
    return pipelines if len(set(pipelines)) == len(pipelines) else [c.recipe.name for c in chosen]


def require_recipes(file: UserFile, asked: str = "") -> None:
    """Refuses a file in which there is nothing to launch; `asked` for is the pipeline of that name, if any."""
    if any(file.recipes()):
        return
    if file.pipelines:
        if asked and asked not in file.pipelines:
            _unknown(file, [], asked)
        name = asked or next(iter(file.pipelines))
        raise UsageError(
            Diagnostic(
                rule="OX6003",
                what=f"{file.path.name} says nowhere how to launch its pipelines",
                got=", ".join(file.pipelines),
                required="a recipe",
                fix=f"@{name}.recipe on a function of a device that returns ox.Recipe(launch={name}[grid].bind(...), outputs=...)",
            )
        )
    raise UsageError(
        Diagnostic(
            rule="OX6003",
            what=f"{file.path.name} has no pipeline",
            required="a function under @ox.pipeline(threads=...) at the top level of the file",
        )
    )


def _unknown(file: UserFile, every: list[Chosen], name: str) -> None:
    if name in file.pipelines:
        what, fix = f"pipeline {name!r} of {file.path.name} has no recipe", f"declare one with @{name}.recipe"
    else:
        known = [*file.pipelines, *(c.recipe.name for c in every)]
        close = get_close_matches(name, known, 1)
        what, fix = f"{file.path.name} has no pipeline or recipe {name!r}", f"{file.path.name}:{close[0]}" if close else ""
    got = ", ".join(dict.fromkeys(c.pipeline for c in every)) or ", ".join(file.pipelines)
    raise UsageError(Diagnostic(rule="OX6004", what=what, got=name, required=f"one of {got}", fix=fix))
