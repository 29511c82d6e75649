"""What `oxidecopy doctor` says, line by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

State = Literal["ok", "missing", "broken", "info"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of the answer. "missing" is an option that is not there, "broken" something that must be."""

    topic: str
    value: str
    state: State = "info"
    note: str = ""


def safely(topic: str, ask: Callable[[], list[Fact]]) -> list[Fact]:
    """What `ask` finds. An answer must come, whatever is broken here: an error becomes a line."""
    try:
        return ask()
    except Exception as problem:
        line = (str(problem).splitlines() or [""])[0]
        return [Fact(topic=topic, value="cannot be asked", state="missing", note=f"{type(problem).__name__}: {line}".removesuffix(": "))]
