"""Bank conflicts against a model that serves words one clock after the other, and against cases known by heart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.isa.banks import conflict_degree, lanes_per_phase


def clocks(addresses: list[int], nbytes: int) -> int:
    """Serves the lanes of one phase: each clock every bank opens one word, for all bytes that lanes still want of it."""
    wanted = {a + i for a in addresses for i in range(nbytes)}
    spent = 0
    while wanted:
        opened: dict[int, int] = {}
        for byte in sorted(wanted):
            opened.setdefault(byte // 4 % 32, byte // 4)
        wanted = {byte for byte in wanted if opened[byte // 4 % 32] != byte // 4}
        spent += 1
    return spent


@given(
    nbytes=st.sampled_from([1, 2, 4, 8, 16]),
    lanes=st.lists(st.integers(0, 400), min_size=1, max_size=32),
    stride=st.sampled_from([1, 4, 8, 32]),
)
def test_against_a_clock_by_clock_model(nbytes: int, lanes: list[int], stride: int) -> None:
    addresses = [n * nbytes * stride for n in lanes]
    step = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[nbytes]
    phases = [addresses[i : i + step] for i in range(0, len(addresses), step)]
    assert conflict_degree(addresses, nbytes) == max(clocks(phase, nbytes) for phase in phases)


@pytest.mark.parametrize(
    ("addresses", "nbytes", "degree"),
    [
        ([4 * i for i in range(32)], 4, 1),  # neighbours
        ([0] * 32, 4, 1),  # one word for all
        ([128 * i for i in range(32)], 4, 32),  # one bank
        ([136 * i for i in range(32)], 4, 2),  # two words on
        ([2 * i for i in range(32)], 2, 1),  # two lanes share each word
        (list(range(32)), 1, 1),
        ([8 * i for i in range(32)], 8, 1),  # two phases
        ([16 * i for i in range(32)], 16, 1),  # four phases
        ([128 * i for i in range(8)], 16, 8),
        ([128 * i + 16 * (i ^ 3) for i in range(8)], 16, 1),
        ([128 * i for i in range(16)], 8, 16),
    ],
)
def test_known_cases(addresses: list[int], nbytes: int, degree: int) -> None:
    assert conflict_degree(addresses, nbytes) == degree


def test_phases() -> None:
    assert [lanes_per_phase(n) for n in (1, 2, 4, 8, 16)] == [32, 32, 32, 16, 8]
    assert conflict_degree([], 4) == 1
