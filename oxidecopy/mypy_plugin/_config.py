"""The plugin's own section of mypy's config file, the tested range of mypy, and the digest of the plugin's own files.

An own section, since a plugin's error code in mypy's global `enable_error_code` ends the daemon of mypy 2.4.
"""

from __future__ import annotations

import configparser
import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

SECTION: Final = "oxidecopy-mypy"
TESTED: Final = ((2, 2), (2, 4))  # minor versions, both included; the extra `oxidecopy[mypy]` says the same
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "leaks": ("off", "note", "error"),
    "leaks_at_end": ("off", "note", "error"),
    "unsupported_mypy": ("error", "note"),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the section says.

    Attributes:
        leaks: how leaks are reported.
        leaks_at_end: the same for barriers that are Ready where a pipeline ends: the kernel's memory ends with it, so most do no harm.
        unsupported_mypy: how another version of mypy than the tested ones is reported.
        problems: the options that the section says wrongly.
    """

    leaks: str = "off"
    leaks_at_end: str = "off"
    unsupported_mypy: str = "error"
    problems: tuple[str, ...] = ()


DEFAULTS: Final = Config()


def read(config_file: str | None) -> Config:
    """Reads the section; without a file or a section, the defaults."""
    given = _section(config_file)
    problems = [
        f"[{SECTION}] has no option {name!r} = {value!r}: "
        + (f"one of {', '.join(CHOICES[name])}" if name in CHOICES else "unknown option")
        for name, value in given.items()
        if value not in CHOICES.get(name, ())
    ]
    good = {name: value for name, value in given.items() if value in CHOICES.get(name, ())}
    return Config(**good, problems=tuple(problems))


def _section(config_file: str | None) -> dict[str, str]:
    if not config_file:
        return {}
    if config_file.endswith(".toml"):
        with Path(config_file).open("rb") as file:
            section = tomllib.load(file).get("tool", {}).get(SECTION, {})
        return {str(name): str(value) for name, value in section.items()}
    parser = configparser.RawConfigParser()
    parser.read(config_file, encoding="utf-8")
    return dict(parser[SECTION]) if parser.has_section(SECTION) else {}


def tested(version: str) -> bool:
    """Is this version of mypy in the tested range? What does not look like a version is not."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and TESTED[0] <= (int(found[1]), int(found[2])) <= TESTED[1]


def digest() -> str:
    """A hash of the plugin's files: mypy itself looks at the top one only, and would keep results of an older plugin."""
    here = Path(__file__).parent
    found = hashlib.sha256()
    for path in sorted(here.rglob("*.py")):
        found.update(path.relative_to(here).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
