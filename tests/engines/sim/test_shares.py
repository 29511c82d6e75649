"""Shares of a counter: each tile to one CTA, unevenly, the same for all roles; indices that are read are checked before use."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.sim import explore
from oxidecopy.engines.sim.faults import Refused
from oxidecopy.engines.sim.shares import Shares
from oxidecopy.errors import DeviceFaultError
from oxidecopy.host.bound import BoundLaunch
from oxidecopy.program.text import from_text, to_text


def shares(seed: int, tiles: int, grid: tuple[int, int, int]) -> list[list[int]]:
    dealt = Shares(seed, grid)
    x, y, z = grid
    return [dealt.of("n", tiles, (i, j, k)) for k in range(z) for j in range(y) for i in range(x)]


@pytest.mark.parametrize("grid", [(1, 1, 1), (5, 1, 1), (3, 2, 4)])
@pytest.mark.parametrize("tiles", [0, 1, 7, 200])
def test_each_tile_goes_to_one_cta_in_ascending_order(grid: tuple[int, int, int], tiles: int) -> None:
    for seed in range(20):
        dealt = shares(seed, tiles, grid)
        assert Counter(t for s in dealt for t in s) == Counter(range(tiles))
        assert all(s == sorted(s) for s in dealt)


def test_some_ctas_get_nothing_and_some_get_most() -> None:
    sizes = [[len(s) for s in shares(seed, 100, (8, 1, 1))] for seed in range(40)]
    assert any(0 in s for s in sizes)
    assert any(max(s) > 70 for s in sizes)
    assert len({tuple(s) for s in sizes}) > 30


def test_a_seed_deals_alike_every_time() -> None:
    assert shares(3, 50, (4, 1, 1)) == shares(3, 50, (4, 1, 1))


@pytest.mark.parametrize("tiles", [-1, 1 << 25])
def test_a_count_that_no_counter_has_is_refused(tiles: int) -> None:
    with pytest.raises(Refused):
        shares(0, tiles, (1, 1, 1))


@ox.pipeline(threads=64)
def gather(
    cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], rows: ox.GlobalArray[ox.i64, ox.D1], out: ox.GlobalArray[ox.f32, ox.D2]
) -> None:
    """Row `rows[i]` of `src` to row i of `out`."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    count = rows.shape[0]
    for i in cta.range((count + cta.grid_dim.x - 1 - cta.block_idx.x) // cta.grid_dim.x):
        at = cta.block_idx.x + i * cta.grid_dim.x
        row = cta.load_index(rows, at, below=src.shape[0])
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, (row, 0), token)
        full.wait(token)
        cta.store(out, tile, (at, 0))
        cta.sync()


def bound(rows: Any, grid: int = 3) -> tuple[BoundLaunch, ox.GlobalArray[Any, Any]]:
    dev = ox.Device.open("sim")
    data = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
    out = dev.zeros((len(rows), 16), ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(data), box=(1, 16))
    indices: ox.GlobalArray[ox.i64, ox.D1] = dev.array(np.array(rows, np.int64).reshape(len(rows)))
    return gather[grid].bind(src, indices, out), out


@pytest.mark.parametrize("grid", [1, 3, 40])
def test_a_gather_of_rows_is_numpys(grid: int) -> None:
    rows = np.random.default_rng(5).integers(0, 32, 37)
    launch, out = bound(rows, grid)
    launch()
    assert np.array_equal(out.numpy(), np.arange(32 * 16, dtype=np.float32).reshape(32, 16)[rows])
    for seed in range(4):
        assert explore(launch.program, launch.bindings, seed=seed).findings == ()


@pytest.mark.parametrize("wrong", [32, -1, 1 << 40])
@pytest.mark.parametrize("hazards", [True, False])
def test_a_value_out_of_range_ends_the_launch(wrong: int, hazards: bool) -> None:
    launch, _ = bound([0, 1, wrong, 3])
    launch.verify()
    result = explore(launch.program, launch.bindings, hazards=hazards)
    (d,) = result.diagnostics
    assert (result.outcome, d.rule) == ("fault", "OX4015")
    assert d.got == f"rows[2] = {wrong}"
    assert "below=32" in d.required
    assert d.site is not None
    assert d.site.function == "gather"
    with pytest.raises(DeviceFaultError):
        launch()


def test_an_index_outside_its_array_ends_the_launch() -> None:
    launch, _ = bound([0, 1, 2, 3])
    text = to_text(launch.program).replace("index=block_idx.x + i0 * grid_dim.x", "index=block_idx.x + i0 * grid_dim.x + 1")
    d = explore(from_text(text), launch.bindings).diagnostics[0]
    assert (d.rule, d.got, d.required) == ("OX4015", "rows[4]", "elements 0 to 3")
    assert "outside" in d.what


def test_only_integer_vectors_hold_indices() -> None:
    launch, _ = bound([0, 1, 2, 3])
    text = to_text(launch.program).replace("ld.global.index read, rows", "ld.global.index read, out")
    assert explore(from_text(text), launch.bindings).diagnostics[0].rule == "OX4014"
