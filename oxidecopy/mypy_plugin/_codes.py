"""The plugin's error codes. Each can be silenced by itself: `# type: ignore[oxidecopy-moved]`."""

from __future__ import annotations

from typing import Final

from mypy.errorcodes import ErrorCode, error_codes

CATEGORY: Final = "oxidecopy"


def _code(name: str, description: str) -> ErrorCode:
    """The code; mypy refuses to make one twice, and an interpreter may load a plugin twice."""
    full = f"oxidecopy-{name}"
    return error_codes.get(full) or ErrorCode(full, description, CATEGORY)


MOVED: Final = _code("moved", "Use of a value that a call has taken")
BORROWED: Final = _code("borrowed", "Move out of something that is only borrowed")
TOKEN: Final = _code("token", "A token is waited for on another barrier")
SCOPE: Final = _code("scope", "Use of a value after the block that it belongs to")
SYMBOLIC: Final = _code("symbolic", "Python's control flow, or a number, where a recorded value is meant")
TX: Final = _code("tx", "Announced and issued bytes differ")
BOX: Final = _code("box", "A box that the copy unit cannot move")
SMEM: Final = _code("smem", "Shared memory over the limit")
LEAK: Final = _code("leak", "A value that must be used up is not")
PLUGIN: Final = _code("plugin", "The plugin could not check this")

# The page of `oxidecopy explain` for each.
PAGES: Final[dict[str, str]] = {
    MOVED.code: "OX7001",
    BORROWED.code: "OX7002",
    TOKEN.code: "OX7003",
    SCOPE.code: "OX7004",
    SYMBOLIC.code: "OX7005",
    TX.code: "OX7006",
    BOX.code: "OX7007",
    SMEM.code: "OX7008",
    LEAK.code: "OX7009",
    PLUGIN.code: "OX7010",
}
