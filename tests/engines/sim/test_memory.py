"""Buffers, addresses, poison."""

from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np
import pytest

from oxidecopy.engines.sim.faults import Fault
from oxidecopy.engines.sim.memory import GlobalMemory, SharedMemory, poisoned


def test_addresses_are_distinct_aligned_and_apart() -> None:
    memory = GlobalMemory()
    buffers = [memory.allocate(n) for n in (1, 4096, 5000, 0, 512)]
    spans = sorted((b.address, b.address + b.mapped_bytes) for b in buffers)
    assert all(b.address % 4096 == 0 for b in buffers)
    assert all(end + 4096 <= start for (_, end), (start, _) in pairwise(spans))


def test_fresh_memory_is_the_same_poison_every_time() -> None:
    first, second = GlobalMemory().allocate(64), GlobalMemory().allocate(64)
    assert first.data.tobytes() == second.data.tobytes()
    assert np.isnan(first.data.view("<f4")).all()
    word = int(first.data.view("<u4")[0])
    assert not word >> 22 & 1  # the quiet bit: it is a signalling NaN
    assert poisoned(3).tobytes() == first.data[:4].tobytes()


def test_find() -> None:
    memory = GlobalMemory()
    a, b = memory.allocate(100), memory.allocate(100)
    assert memory.find(a.address) is a
    assert memory.find(a.address + 511) is a
    assert memory.find(a.address + 512) is None
    assert memory.find(b.address - 1) is None
    assert memory.find(b.address + 7) is b
    assert memory.find(0) is None


def test_dropped_and_freed_buffers_are_unmapped() -> None:
    memory = GlobalMemory()
    kept, freed = memory.allocate(16), memory.allocate(16)
    address = memory.allocate(16).address
    gc.collect()
    assert memory.find(address) is None
    memory.free(freed)
    assert memory.find(freed.address) is None
    assert not freed.alive
    assert memory.find(kept.address) is kept


def test_addresses_of_dropped_buffers_are_forgotten() -> None:
    memory = GlobalMemory()
    kept = memory.allocate(16)
    for _ in range(1000):
        memory.allocate(16)
    assert len(memory._bases) < 100
    assert memory.find(kept.address) is kept


def test_views_stop_at_the_end() -> None:
    memory = GlobalMemory()
    buffer = memory.allocate(512)
    memory.view(buffer.address, 512)[:] = 7
    assert (buffer.data == 7).all()
    with pytest.raises(Fault) as caught:
        memory.view(buffer.address + 1, 512)
    assert caught.value.code == 700
    assert memory.box(buffer.address, (2, 4), (256, 4), 4) is not None
    assert memory.box(buffer.address, (3, 64), (256, 4), 4) is None
    assert memory.box(0, (1,), (1,), 1) is None


def test_shared_memory_is_poisoned_afresh() -> None:
    memory = SharedMemory(256)
    before = memory.data.copy()
    memory.data[:] = 0
    memory.reset()
    assert (memory.data == before).all()
