"""Rules of the mypy plugin: what it refuses before anything runs. Its codes stand at the beginning of the titles."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_WHY: Final = "A type checker reports it. "
_SOURCE: Final = "oxidecopy.mypy_plugin; docs/plugin.md"


def _rule(rule: str, code: str, title: str, error: str, why: str) -> Rule:
    return Rule(id=rule, title=f"oxidecopy-{code}: {title}", error=error, why=_WHY + why, source=_SOURCE)


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX7001",
        "moved",
        "what a call took is not used again, and does not cross a recorded loop",
        "MovedError",
        "`init`, `inval`, `wait` and every parameter marked `Owned` take their argument; while recording the same mistake is OX1004 "
        "and its kin. Use the handle that the call returned, or make a new one.",
    ),
    _rule(
        "OX7002",
        "borrowed",
        "what is only lent is not taken",
        "MovedError",
        "A parameter that is not `Owned`, an attribute of one, a variable of the enclosing function or of the module, and an element "
        "at an index that is not a constant belong to somebody else. Declare the parameter `Owned[...]`, "
        "or put something back before the function ends.",
    ),
    _rule(
        "OX7003",
        "token",
        "a token is waited for on the barrier that it came from",
        "TokenError",
        "The phase that a token names is one of its own barrier; on another one the wait would pass too early or never. "
        "While recording: OX1005.",
    ),
    _rule(
        "OX7004",
        "scope",
        "a leader, group, slot or landed tile is used inside its block",
        "ScopeError",
        "Outside of its block other threads execute, and the tile is given back to the ring. Move the line into the block.",
    ),
    _rule(
        "OX7005",
        "symbolic",
        "Python does not decide on recorded values",
        "SymbolicError",
        "`if`, `while`, `and`, `not`, `min` would look at a value that only the device knows: use `cta.when`, `&`, `|`, `~`, `ox.minimum`, "
        "and in the function of a map `select` and `v.minimum`. "
        "A float for an integer `Scalar` has this code, too: Python's typing lets it pass.",
    ),
    _rule(
        "OX7006",
        "tx",
        "a barrier is told the bytes that are issued on it",
        "ArgumentError",
        "With too many bytes announced the wait never ends, with too few it ends before the data is there.",
    ),
    _rule(
        "OX7007",
        "box",
        "a box is one that a tensor map can have",
        "DescriptorError",
        "Every extent is from 1 to 256, a row is a multiple of 16 bytes, and not wider than the span of the swizzle.",
    ),
    _rule(
        "OX7008",
        "smem",
        "the tiles of a block fit into shared memory",
        "ArgumentError",
        "A block has at most 232,448 bytes (227 KiB); a launch that asks for more is refused by the driver.",
    ),
    _rule(
        "OX7009",
        "leak",
        "what must be used up is used up, on every path",
        "HazardError",
        "A token that nobody waits for stands for data that nobody knows to have landed; a commit group that nobody waits for may still "
        "be read when its tile is overwritten, or when the kernel ends; a barrier that is Ready when its last handle is lost keeps its "
        "memory. Off unless the section [oxidecopy-mypy] says `leaks = note` or `error`; barriers that are Ready where a pipeline ends "
        "have an option of their own, `leaks_at_end`. Wait, invalidate, return it, or give it away.",
    ),
    _rule(
        "OX7010",
        "plugin",
        "the plugin could do its work",
        "UsageError",
        "No script shows this rule: mypy's version is outside the tested range, the section [oxidecopy-mypy] has a wrong option, or the "
        "plugin met something that it does not know. Tested with all three. It never passes in "
        "silence: install `oxidecopy[mypy]`, or report the line that it names.",
    ),
)
