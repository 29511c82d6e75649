"""The type checkers' part of `oxidecopy doctor`: mypy, the plugin, whose configuration it would read, and which other checkers are here."""

from __future__ import annotations

import configparser
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from oxidecopy.cli.facts import Fact, safely
from oxidecopy.cli.mypy_config import OWN_SECTION, PLUGIN, sections_of, user_config

_OTHERS: Final = ("pyright", "ty", "pyrefly")
_INSTALL: Final = "pip install 'oxidecopy[mypy]'"


def types_facts() -> list[Fact]:
    """Everything, in the order it is printed."""
    mypy = version_of("mypy")
    return [
        Fact(topic="mypy", value=mypy or "not installed", state="ok" if mypy else "missing", note="" if mypy else _INSTALL),
        *safely("mypy plugin", lambda: [_plugin(mypy)]),
        *safely("mypy config", lambda: [_config(user_config(Path.cwd()))]),
        *_others(),
    ]


def version_of(package: str) -> str:
    """The installed version; empty without one."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _plugin(mypy: str) -> Fact:
    """Whether it loads into this mypy, and does more there than say that it was never tried with it."""
    topic = "mypy plugin"
    if not mypy:
        return Fact(topic=topic, value="not loaded", state="missing", note="it needs mypy")
    made = import_module(PLUGIN).plugin(mypy)
    if made.__module__ != f"{PLUGIN}._plugin":
        return Fact(topic=topic, value=f"does not know mypy {mypy}", state="missing", note=f"{_INSTALL} takes one that it was tested with")
    return Fact(topic=topic, value="loads", state="ok", note=f"plugins = {PLUGIN}")


def _config(path: Path | None) -> Fact:
    """The file that mypy would read when run here, and whether it names the plugin: mypy run by hand knows no other way to it."""
    topic = "mypy config"
    if path is None:
        return Fact(topic=topic, value="none here", note="`oxidecopy check` is strict then, with the plugin; mypy by itself is neither")
    try:
        sections = sections_of(path)
    except (OSError, ValueError, configparser.Error) as problem:
        return Fact(topic=topic, value=str(path), state="missing", note=f"cannot be read: {str(problem).splitlines()[0]}")
    named = PLUGIN in sections.get("mypy", {}).get("plugins", "").replace("\n", ",").replace(" ", "").split(",")
    own = ", ".join(f"{name} = {value}" for name, value in sections.get(OWN_SECTION, {}).items())
    note = "names the plugin" if named else f"without the plugin, which only `oxidecopy check` adds: plugins = {PLUGIN}"
    return Fact(topic=topic, value=str(path), state="ok" if named else "missing", note=f"{note}; {own}" if own else note)


def _others() -> list[Fact]:
    found = [f"{name} {installed}" for name in _OTHERS if (installed := version_of(name))]
    note = "they see states, shapes and types, not what a call took"
    return [Fact(topic="other checkers", value=", ".join(found), note=note)] if found else []
