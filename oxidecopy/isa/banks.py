"""Shared-memory banks: how often one access of a warp must be repeated.

32 banks serve one 4-byte word each per clock (CUDA Programming Guide, shared memory). Threads that want the same word share it; different
words of one bank wait for each other. A warp's access goes out in phases of at most 128 bytes: 32 lanes of up to 4 bytes, 16 of 8, 8 of 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

BANKS: Final = 32
WORD_BYTES: Final = 4
LINE_BYTES: Final = BANKS * WORD_BYTES
LANES: Final = 32


def lanes_per_phase(nbytes: int) -> int:
    """Lanes that are served together when each wants `nbytes` (1 to 16) bytes."""
    return min(LANES, LINE_BYTES // max(nbytes, WORD_BYTES))


def conflict_degree(addresses: Sequence[int], nbytes: int) -> int:
    """The most words that one bank must give, one after the other, in one phase of an access: 1 is free of conflicts.

    Args:
        addresses: the byte address of each lane, in lane order; multiples of `nbytes`.
        nbytes: bytes that each lane wants: 1, 2, 4, 8 or 16.
    """
    worst, step = 1, lanes_per_phase(nbytes)
    for first in range(0, len(addresses), step):
        words = {word for a in addresses[first : first + step] for word in range(a // WORD_BYTES, (a + nbytes - 1) // WORD_BYTES + 1)}
        counts = [0] * BANKS
        for word in words:
            counts[word % BANKS] += 1
        worst = max(worst, *counts)
    return worst
