"""NVTX ranges around launches, by the pipeline's name: every program runs as the same kernel, and profilers show which one it was.

Where the package `nvtx` is not installed (extra `nvtx`), a launch is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

DOMAIN: Final = "oxidecopy"


def in_range(name: str, call: Callable[[], None]) -> Callable[[], None]:
    """`call` inside a range called `name`; `call` itself without nvtx."""
    domain = _domain()
    if domain is None:
        return call
    push, pop, attributes = domain.push_range, domain.pop_range, domain.get_event_attributes(message=name)

    def ranged() -> None:
        push(attributes)
        try:
            call()
        finally:
            pop()

    return ranged


@cache
def _domain() -> Any:
    """Our domain of nvtx, or None."""
    try:
        nvtx: Any = import_module("nvtx")
    except ImportError:
        return None
    return nvtx.get_domain(DOMAIN)
