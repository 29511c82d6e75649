"""Device memory of one process, on a GPU that others may use too: the driver tells only what is free on the whole device."""

from __future__ import annotations

from collections.abc import Callable

ROUNDS = 6


def leaves_memory_flat(free: Callable[[], int], work: Callable[[], None]) -> bool:
    """Whether `work` gives back what it takes of `free` bytes: what it leaks is missing after each round, what others take after some."""
    for _ in range(ROUNDS):
        before = free()
        work()
        if free() == before:
            return True
    return False
