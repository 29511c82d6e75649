"""The configuration that `oxidecopy check` gives mypy: the user's own where there is one, with the plugin added; strict otherwise.

Mypy has no option that names a plugin, so a file is written that says what theirs says. What names files to check is left out: the command
line names them.
"""

from __future__ import annotations

import configparser
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

PLUGIN: Final = "oxidecopy.mypy_plugin"
OWN_SECTION: Final = "oxidecopy-mypy"  # of the plugin; in TOML under `tool`

_OWN_FILES: Final = ("mypy.ini", ".mypy.ini")
_SHARED_FILES: Final = ("pyproject.toml", "setup.cfg")
_HOME_FILES: Final = ("~/.config/mypy/config", "~/.mypy.ini")
_NOT_OURS: Final = ("files", "exclude", "packages", "modules", "cache_dir", "quickstart_file", "junit_xml", "pretty", "error_summary")

Sections = dict[str, dict[str, str]]


def user_config(start: Path) -> Path | None:
    """The file that mypy would read when run in `start`: there, then in the folders above up to a repository's, then at home."""
    for folder in (start, *start.parents):
        for name in (*_OWN_FILES, *_SHARED_FILES):
            path = folder / name
            if path.is_file() and (name in _OWN_FILES or "mypy" in _readable(path)):
                return path
        if (folder / ".git").exists() or (folder / ".hg").exists():
            break
    homes = [os.environ["XDG_CONFIG_HOME"] + "/mypy/config"] if os.environ.get("XDG_CONFIG_HOME") else []
    return next((path for name in (*homes, *_HOME_FILES) if (path := Path(name).expanduser()).is_file()), None)


def _readable(path: Path) -> Sections:
    try:
        return sections_of(path)
    except (OSError, ValueError, configparser.Error):
        return {}


def sections_of(path: Path) -> Sections:
    """The sections about mypy and about the plugin, as mypy's ini form says them.

    Raises:
        OSError, ValueError, configparser.Error: it cannot be read, or is not of its format.
    """
    if path.suffix == ".toml":
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
        return dict(_of_toml(tool)) if "mypy" in tool else {}
    parser = configparser.RawConfigParser()
    parser.read_string(path.read_text(encoding="utf-8"), str(path))
    return {name: dict(parser[name]) for name in parser.sections() if name in {"mypy", OWN_SECTION} or name.startswith("mypy-")}


def _of_toml(tool: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    main = dict(tool["mypy"])
    overrides = main.pop("overrides", [])
    yield "mypy", {key: _ini(value) for key, value in main.items()}
    modules: Sections = {}
    for entry in overrides:
        names = entry.get("module", [])
        for name in [names] if isinstance(names, str) else names:
            modules.setdefault(f"mypy-{name}", {}).update({k: _ini(v) for k, v in entry.items() if k != "module"})
    yield from modules.items()
    if OWN_SECTION in tool:
        yield OWN_SECTION, {key: _ini(value) for key, value in tool[OWN_SECTION].items()}


def _ini(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def written(path: Path | None, *, plugin: bool) -> str:
    """The text of the configuration: of the file at `path`, or strict when it is None; with our plugin when `plugin` is set."""
    sections = {"mypy": {"strict": "True"}} if path is None else sections_of(path)
    main = sections.setdefault("mypy", {})
    for key in _NOT_OURS:
        main.pop(key, None)
    main.setdefault("follow_imports", "silent")  # the report is about the files named
    if path is not None:
        folder = path.absolute().parent
        sections = {name: {k: _anchored(v, folder) for k, v in section.items()} for name, section in sections.items()}
        main = sections["mypy"]
    plugins = [_plugin_path(p.strip(), path) for p in main.get("plugins", "").replace("\n", ",").split(",") if p.strip()]
    if plugin and PLUGIN not in plugins:
        plugins.append(PLUGIN)
    if plugins:
        main["plugins"] = ", ".join(plugins)
    return "\n".join(_lines(sections))


def _anchored(value: str, folder: Path) -> str:
    # Mypy sets this variable to the folder of the file that it reads, which is not the user's any more.
    return value.replace("${MYPY_CONFIG_FILE_DIR}", str(folder)).replace("$MYPY_CONFIG_FILE_DIR", str(folder))


def _plugin_path(plugin: str, path: Path | None) -> str:
    """A plugin named by a file is found beside the configuration that names it."""
    name, colon, entry = plugin.rpartition(":") if ".py:" in plugin else (plugin, "", "")
    return f"{path.absolute().parent / name}{colon}{entry}" if path is not None and name.endswith(".py") else plugin


def _lines(sections: Sections) -> Iterator[str]:
    for name, section in sections.items():
        yield f"[{name}]"
        for key, value in section.items():
            yield f"{key} = " + value.strip().replace("\n", "\n    ")
        yield ""
