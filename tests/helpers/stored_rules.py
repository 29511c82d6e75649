"""The programs that are stored for the verifier's rules, each with its launch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from oxidecopy.program.program import ArrayInfo, Launch, Program
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from oxidecopy.verify import rule_ids

STORED: Final[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "cases" / "verifier_rules.json").read_text(encoding="utf-8"))
RULES: Final = sorted(value for name, value in vars(rule_ids).items() if name.isupper())


def program_of(rule: str) -> Program:
    stored = STORED[rule]
    return replace(from_text("\n".join(stored["program"]) + "\n"), **_fields(stored["changes"]))  # to what has no text form


def launch_of(rule: str) -> Launch:
    data = STORED[rule]["launch"]
    maps = tuple((name, TensorMap(**_fields(of))) for name, of in data["maps"])
    arrays = tuple((name, ArrayInfo(**_fields(of))) for name, of in data["arrays"])
    return Launch(**{**_fields(data), "maps": maps, "arrays": arrays})


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _tupled(value) for name, value in data.items()}
