"""Conditions whose block is left before its end.

Python then skips what follows while recording, once for all threads, whatever the condition says. Recorded loops notice it by themselves:
their iterator is dropped. A with-block cannot: `return` closes it as its last line does. So the user's source is asked, if there is one.
"""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import CodeType
from typing import Final, NamedTuple, final

from oxidecopy.errors import RecordError, Site
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.sites import caller_code

_WORDS: Final = ("return", "break", "continue")
_FUNCTIONS_KEPT: Final = 256  # whose source was read


@final
class _Exit(NamedTuple):
    """A statement that leaves a with-block, whose header is on the lines `first` to `last`."""

    first: int
    last: int
    line: int
    word: str


def refuse_early_exit() -> None:
    """Refuses a `when` at the user's line whose block is left by `return`, `break` or `continue`."""
    at = caller_code()
    if at is None:
        return
    code, line = at
    for found in _exits(code):
        if found.first <= line <= found.last:
            refuse(
                RecordError,
                "OX1025",
                f"the block of a condition is left by `{found.word}`: what follows would be left out, whatever the condition says",
                got=f"`{found.word}` in the block of `when`: Python runs it while recording, once for all threads",
                required="a block that runs to its end",
                fix="put what follows under the opposite condition: `with cta.when(~cond):`",
                site=Site(code.co_filename, found.line, code.co_name),
            )


@lru_cache(maxsize=_FUNCTIONS_KEPT)
def _exits(code: CodeType) -> tuple[_Exit, ...]:
    """Every with-block of a function that is left early; none where its source cannot be read."""
    ends = [end for _, end, _, _ in code.co_positions() if end]
    first = code.co_firstlineno
    lines = linecache.getlines(code.co_filename)[first - 1 : max(ends, default=first)]
    if not any(word in line for line in lines for word in _WORDS):
        return ()
    indented = lines[0][:1].isspace()
    try:
        tree = ast.parse("".join(["if 1:\n", *lines] if indented else lines))
    except SyntaxError:  # a file that changed since it was imported, say
        return ()
    above = first - (2 if indented else 1)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            leaves = next((leaving for statement in node.body if (leaving := _leaving(statement, in_loop=False))), None)
            if leaves is not None:
                last = node.items[-1].context_expr.end_lineno or node.lineno
                found.append(_Exit(node.lineno + above, last + above, leaves.lineno + above, type(leaves).__name__.lower()))
    return tuple(found)


def _leaving(node: ast.AST, *, in_loop: bool) -> ast.stmt | None:
    """The first statement in `node` that leaves the block around it; `in_loop` when a loop lies between, which has `break` for itself."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
            return None
        case ast.Return():
            return node
        case ast.Break() | ast.Continue():
            return None if in_loop else node
        case _:
            inside = in_loop or isinstance(node, ast.For | ast.While)
            return next((found for child in ast.iter_child_nodes(node) if (found := _leaving(child, in_loop=inside))), None)
