"""Plain values that a pipeline function takes from outside: part of its recording, so part of the recording's key.

`V = 1.0` at module level, used as `cta.fill(tile, V)`, is recorded as 1.0. When V changes, the next launch must record again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

_PLAIN = (int, float, str)  # bool is an int; what else a function may capture is not recorded by value


def captured(fn: Callable[..., Any]) -> tuple[tuple[str, object], ...]:
    """Globals and closure values of `fn` (and of functions inside it) that are numbers, bools or strings, by name, with their types.

    Values that helper functions read from their own module are not seen: pass them as parameters.
    """
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return ()
    outside: dict[str, object] = {name: fn.__globals__[name] for name in _names(code) if name in fn.__globals__}
    for name, cell in zip(code.co_freevars, fn.__closure__ or (), strict=True):
        try:
            outside[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    return tuple((name, (type(value).__name__, value)) for name, value in sorted(outside.items()) if isinstance(value, _PLAIN))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
