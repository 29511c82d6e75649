"""Situations that the H200 file describes in words (its `runtime` rows without a map), and the codes they end with."""

from __future__ import annotations

import pytest

from oxidecopy.engines.base import BoundArray, BoundMap
from oxidecopy.engines.sim import ForeignBuffer, explore
from tests.engines.sim.harness import Rig
from tests.helpers.programs import RANK, Builder, eq

TILE = 64 * 64 * 4


def load_at(offset: int | None = None, bar: int | None = None, shared_bytes: int | None = None) -> Builder:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.map()
    b.tile(offset=offset)
    b.bar(offset=bar)
    b.shared_bytes = shared_bytes
    b.init(sync=False)
    token = b.arm(TILE)
    b.g2s(tag="load")
    b.wait(token)
    return b


def store_at(offset: int, shared_bytes: int) -> Builder:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.map()
    b.tile(offset=offset)
    b.shared_bytes = shared_bytes
    b.s2g()
    b.commit()
    b.wait_group()
    return b


@pytest.mark.parametrize(
    ("builder", "code"),
    [
        pytest.param(load_at(), 0, id="all right"),
        pytest.param(load_at(bar=TILE + 4), 716, id="mbarrier_addr_4_mod_8"),
        pytest.param(load_at(bar=TILE + 1), 716, id="mbarrier_addr_1_mod_8"),
        pytest.param(load_at(offset=1024, bar=0, shared_bytes=16384), 700, id="smem_dst_past_allocation"),
        pytest.param(load_at(offset=300_032, bar=0, shared_bytes=16384), 700, id="smem_dst_past_window"),
        pytest.param(load_at(offset=1 << 24, bar=0, shared_bytes=16384), 715, id="2^24 above the window"),
        pytest.param(load_at(offset=-1024, bar=TILE, shared_bytes=TILE + 8), 0, id="smem_dst_reserved"),
        pytest.param(load_at(bar=1 << 18, shared_bytes=16384), 700, id="mbarrier_past_window"),
        pytest.param(store_at(1024, 16384), 700, id="smem_src_past_allocation"),
    ],
)
def test_shared_addresses(builder: Builder, code: int) -> None:
    result = Rig(builder).explore()
    assert (result.outcome, result.code) == ("fault" if code else "ok", code)


@pytest.mark.parametrize(
    ("cluster", "mask", "code"), [(2, 4, 719), (2, 7, 719), (2, 0x8001, 719), (1, 3, 719), (2, 2, 0), (2, 0, 0), (2, 3, 0)]
)
def test_multicast_bit_beyond_cluster(cluster: int, mask: int, code: int) -> None:
    b = Builder(grid=(cluster, 1, 1), cluster=(cluster, 1, 1), threads=1)
    b.map()
    b.tile()
    b.bar()
    b.init(sync=False)
    b.cluster_sync()
    with b.when(eq(RANK, 0)):
        b.multicast(mask)
    b.cluster_sync()
    result = Rig(b).explore(hazards=False)
    assert (result.outcome, result.code) == ("fault" if code else "ok", code)


@pytest.mark.parametrize(("waits", "code"), [(False, 719), (True, 0)])
def test_multicast_to_a_cta_that_has_exited(waits: bool, code: int) -> None:
    """Exited threads count at the cluster's barrier, so the sender is behind the receiver's end."""
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=1)
    b.map()
    b.tile()
    b.bar()
    b.init(sync=False)
    b.cluster_sync()
    with b.when(eq(RANK, 0)):
        b.cluster_sync()
        b.multicast(2)
        if waits:
            b.cluster_sync()
    if waits:
        with b.when(eq(RANK, 1)):
            b.cluster_sync()
            b.cluster_sync()
    result = Rig(b).explore(hazards=False)
    assert (result.outcome, result.code) == ("fault" if code else "ok", code)


def test_freed_allocation() -> None:
    rig = Rig(load_at())
    bindings = rig.bindings()
    rig.engine.free(rig.buffers["src"])
    assert explore(rig.builder.program(), bindings).code == 700


@pytest.mark.parametrize(
    ("grid", "cluster", "code"), [((3, 1, 1), (2, 1, 1), 912), ((17, 1, 1), (17, 1, 1), 912), ((16, 1, 1), (16, 1, 1), 0)]
)
def test_cluster_sizes(grid: tuple[int, int, int], cluster: tuple[int, int, int], code: int) -> None:
    b = Builder(grid=grid, cluster=cluster, threads=1)
    b.cluster_sync()
    result = Rig(b).explore()
    assert (result.outcome, result.code) == ("refused" if code else "ok", code)


@pytest.mark.parametrize("address", [0, 0x1000_0000_0000])
def test_plain_stores_to_foreign_memory(address: int) -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.array()
    b.tile()
    b.fill()
    b.store(tag="store")
    rig = Rig(b)
    bindings = rig.bindings()
    foreign = BoundArray(info=b.arrays["out"], buffer=ForeignBuffer(address))
    result = explore(b.program(), type(bindings)(grid=(1, 1, 1), maps={}, arrays={"out": foreign}, idx={}, scalars={}))
    assert (result.outcome, result.code) == ("fault", 700)
    assert result.diagnostics[0].rule == "OX4010"
    assert result.diagnostics[0].site is not None
    assert result.diagnostics[0].site.line == b.tags["store"]


def test_a_fault_while_landing_names_the_copy() -> None:
    b = load_at()
    rig = Rig(b)
    rig.buffers["src"] = rig.engine.allocate(1024)
    bindings = rig.bindings()
    result = explore(b.program(), bindings)
    assert result.code == 700
    assert result.diagnostics[0].site is not None
    assert result.diagnostics[0].site.line == b.tags["load"]
    with pytest.raises(Exception, match="700"):
        result.check()


def test_maps_that_no_driver_encodes_are_refused() -> None:
    b = load_at()
    rig = Rig(b)
    bindings = rig.bindings()
    buffer = rig.buffers["src"]
    moved = {"src": BoundMap(map=b.maps["src"], buffer=buffer, offset_bytes=8)}
    result = explore(b.program(), type(bindings)(grid=(1, 1, 1), maps=moved, arrays={}, idx={}, scalars={}))
    assert (result.outcome, result.code) == ("refused", 1)
