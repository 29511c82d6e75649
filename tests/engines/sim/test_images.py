"""Where tiles lie in shared memory: swizzles, pitches, parts of tiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.engines.sim.faults import Fault
from oxidecopy.engines.sim.images import TileImage, check_aligned
from oxidecopy.engines.sim.memory import POISON, SharedMemory
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.tensor_map import TileLayout

MODES = st.sampled_from(sorted(SWIZZLES))


@st.composite
def placed(draw: st.DrawFn) -> tuple[TileLayout, int]:
    """A tile as maps have them, at any 128-byte address."""
    mode = draw(MODES)
    item = draw(st.sampled_from([1, 2, 4, 8]))
    widest = SWIZZLES[mode].span_bytes or 256
    row = draw(st.integers(1, widest // 16)) * 16
    outer = draw(st.lists(st.integers(1, 5), max_size=3))
    return TileLayout(shape=(*outer, row // item), element_bytes=item, swizzle=mode), 1024 + 128 * draw(st.integers(0, 9))


@given(MODES, st.integers(0, 1 << 20))
def test_a_swizzle_is_its_own_inverse_and_keeps_the_line(mode: str, address: int) -> None:
    permuted = SWIZZLES[mode].permute(address)
    assert SWIZZLES[mode].permute(permuted) == address
    assert permuted // 128 == address // 128


@given(placed())
def test_bytes_lie_where_the_address_function_says(tile: tuple[TileLayout, int]) -> None:
    layout, address = tile
    memory = SharedMemory(8192 + layout.footprint_bytes)
    image = TileImage(memory, layout, address)
    values = (np.arange(layout.nbytes) % 251).astype(np.uint8)
    image.scatter(values.view("V16").reshape(*layout.shape[:-1], -1))
    mode = SWIZZLES[layout.swizzle]
    seen = set()
    for row in range(layout.rows):
        for inner in range(layout.row_bytes):
            at = mode.permute(address + row * layout.pitch_bytes + inner)
            assert memory.data[at] == values[row * layout.row_bytes + inner]
            seen.add(at)
    others = np.ones(memory.size, np.bool_)
    others[list(seen)] = False
    poison = np.resize(np.array(POISON, np.uint8), memory.size)
    assert (memory.data[others] == poison[others]).all()  # nothing else is touched, the gaps of short rows included
    assert (image.gather().view(np.uint8).reshape(-1) == values).all()
    assert (np.ascontiguousarray(image.elements()).view(np.uint8).reshape(-1) == values).all()


@given(placed(), st.data())
def test_parts_add_up(tile: tuple[TileLayout, int], data: st.DataObject) -> None:
    layout, address = tile
    whole, pieces = SharedMemory(16384 + layout.footprint_bytes), SharedMemory(16384 + layout.footprint_bytes)
    units = (np.arange(layout.nbytes) % 253).astype(np.uint8).view("V16")
    TileImage(whole, layout, address).scatter(units.reshape(*layout.shape[:-1], -1))
    image = TileImage(pieces, layout, address)
    cut = data.draw(st.integers(0, len(units)))
    image.scatter_part(units, cut, len(units))
    image.scatter_part(units, 0, cut)
    assert (whole.data == pieces.data).all()
    back = np.empty_like(units)
    image.gather_part(back, 0, cut)
    image.gather_part(back, cut, len(units))
    assert back.tobytes() == units.tobytes()


@pytest.mark.parametrize("shape", [(3, 5), (7,), (2, 3, 1)])
@pytest.mark.parametrize("address", [1024, 1027])
def test_tiles_of_any_shape_hold_plain_elements(shape: tuple[int, ...], address: int) -> None:
    memory = SharedMemory(1024)
    image = TileImage(memory, TileLayout(shape=shape, element_bytes=2, swizzle="none"), address)
    values = np.arange(int(np.prod(shape)), dtype="<u2").reshape(shape)
    image.put_elements(values, 0, image.layout.rows)
    assert (image.elements() == values).all()
    assert memory.data[address : address + values.nbytes].tobytes() == values.tobytes()


def test_rows_of_a_tile_can_be_written_alone() -> None:
    memory = SharedMemory(4096)
    layout = TileLayout(shape=(4, 2, 16), element_bytes=1, swizzle="64B")
    image = TileImage(memory, layout, 1024)
    image.put_elements(np.zeros(layout.shape, np.uint8), 0, 8)
    image.put_elements(np.ones(layout.shape, np.uint8), 3, 5)
    assert image.elements().reshape(8, 16).sum(axis=1).tolist() == [0, 0, 0, 16, 16, 0, 0, 0]


def test_written_flags() -> None:
    memory = SharedMemory(4096)
    mask = np.zeros(memory.size // 16, np.bool_)
    short = TileImage(memory, TileLayout(shape=(8, 16), element_bytes=1, swizzle="128B"), 1024)
    dense = TileImage(memory, TileLayout(shape=(8, 128), element_bytes=1, swizzle="none"), 1024)
    short.mark(mask)
    assert short.is_marked(mask)
    assert not dense.is_marked(mask)  # one span apart, 16 of 128 bytes each
    assert mask.sum() == 8
    dense.mark(mask)
    assert dense.is_marked(mask)


@pytest.mark.parametrize(("address", "code"), [(1024, 0), (-16, 700), (2048, 700), (1 << 24, 715)])
def test_window(address: int, code: int) -> None:
    memory = SharedMemory(1024)
    layout = TileLayout(shape=(4, 16), element_bytes=1, swizzle="none")
    if code == 0:
        TileImage(memory, layout, address)
        return
    with pytest.raises(Fault) as caught:
        TileImage(memory, layout, address)
    assert caught.value.code == code


@pytest.mark.parametrize("low", [1, 4, 8, 16, 32, 64, 96])
def test_tensor_copies_want_128_bytes(low: int) -> None:
    check_aligned(1024)
    with pytest.raises(Fault) as caught:
        check_aligned(1024 + low)
    assert caught.value.code == 716


def test_the_allocation_is_rounded_up_to_128() -> None:
    assert SharedMemory(1).size == 1024 + 128
    assert SharedMemory(0).size == 1024
