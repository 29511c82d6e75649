"""The open blocks of a recording, and where among them a token was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

from oxidecopy.errors import Site
from oxidecopy.isa import ops
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.program import Step

ROLES: Final = frozenset({"warps", "producer", "consumers", "storer"})


@final
@dataclass(slots=True, eq=False)
class Frame:
    """An open block. `threads` are those that execute it; `steps` grows until the block closes. `number` is never used again."""

    op: ops.Block | None
    threads: ThreadSet
    site: Site | None
    number: int
    steps: list[Step] = field(default_factory=list)
    # Called when the block closes in order: rings number their stages then, and drain their stores.
    closing: list[Callable[[Frame], None]] = field(default_factory=list)

    def at_close(self, hook: Callable[[Frame], None]) -> None:
        """Calls `hook` when the block closes; once, however often it is asked for."""
        if hook not in self.closing:
            self.closing.append(hook)

    @property
    def is_loop(self) -> bool:
        """It is run several times."""
        return isinstance(self.op, ops.Loop)

    @property
    def is_role(self) -> bool:
        """It is run by warps that go their own way."""
        return isinstance(self.op, ops.Scope) and self.op.role in ROLES


@final
class Position(NamedTuple):
    """Where a token was made: the loops and roles that were open."""

    loops: tuple[int, ...]
    roles: tuple[int, ...]


def fresh(stem: str, taken: set[str]) -> str:
    """`stem`, or `stem` with the first number that makes it new."""
    name, n = stem, 1
    while name in taken:
        name, n = f"{stem}{n}", n + 1
    return name
