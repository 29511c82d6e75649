"""Tables of descriptors on the way to the driver: their maps lie in their order, and are pointed elsewhere without being encoded again."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.engines.base import BoundMap, RawLaunch, RawParameter
from oxidecopy.engines.cuda import abi
from oxidecopy.errors import LifetimeError
from oxidecopy.host.device import Device
from tests.helpers.fake_driver import FakeDriver, FakeImage, FakeKernel
from tests.helpers.fake_engine import fake_engine
from tests.helpers.launching import Out, descriptor, numbers

FIELDS = {name: offset for name, _, offset in abi.HEADER}


@ox.pipeline(threads=32)
def load(cta: ox.Cta, src: ox.DescriptorTable[ox.f32, ox.D2], out: Out) -> None:
    i = cta.block_idx.x
    tile, full = cta.shared(src[0]), cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src[i].g2s(leader, tile, (0, 0), token)
    full.wait(token)
    cta.store(out, tile, (i * 16, 0))


class Scene:
    """A device on the fake driver."""

    def __init__(self, folder: Path) -> None:
        self.engine, self.driver = fake_engine(folder)
        self.dev = Device("cuda:0", self.engine)

    def table(self, entries: int, first: int = 0) -> tuple[ox.DescriptorTable[Any, Any, Any, Any], list[int]]:
        """With arrays of several sizes, and their addresses."""
        arrays = [self.dev.array(numbers(first + i, 16 + 8 * (i % 3))) for i in range(entries)]
        return ox.DescriptorTable([descriptor(a) for a in arrays]), [a.buffer.address for a in arrays]

    def maps(self, count: int) -> list[int]:
        """What the maps of the last launch point to, in the order of their slots."""
        parameter = self.driver.launches[-1].parameters[0]
        inline = abi.INLINE_MAPS_LARGE if len(parameter) == abi.PARAM_BYTES_LARGE else abi.INLINE_MAPS_SMALL
        at = inline * abi.MAP_BYTES + FIELDS["table"]
        table = int.from_bytes(parameter[at : at + 8], "little")
        found = [parameter[slot * abi.MAP_BYTES :][:8] for slot in range(min(count, inline))]
        found += [self.driver.bytes_at(table + abi.MAP_BYTES * place, 8) for place in range(count - inline)]
        return [int.from_bytes(data, "little") for data in found]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("entries", [1, 2, 3, 8, 9, 40])
def test_entries_lie_side_by_side(scene: Scene, entries: int) -> None:
    table, addresses = scene.table(entries)
    launch = load[entries].prepare(table, scene.dev.zeros((16 * entries, 16), ox.f32))
    launch()
    assert scene.maps(entries) == addresses


def test_an_update_of_the_address_encodes_nothing(scene: Scene) -> None:
    table, addresses = scene.table(12)
    out = scene.dev.zeros((16 * 12, 16), ox.f32)
    launch = load[12].prepare(table, out)
    launch()
    encoded, pointed = (scene.driver.calls[name] for name in ("cuTensorMapEncodeTiled", "cuTensorMapReplaceAddress"))
    assert encoded == 3
    other = scene.dev.array(numbers(5, 24))  # as large as entry 10
    table.update(10, descriptor(other))
    launch()
    assert scene.maps(12) == addresses
    launch.update(table, out)
    launch()
    assert scene.maps(12) == [*addresses[:10], other.buffer.address, addresses[11]]
    assert scene.driver.calls["cuTensorMapEncodeTiled"] == encoded
    assert scene.driver.calls["cuTensorMapReplaceAddress"] > pointed


def test_memory_of_entries_lives_until_the_launch_is_over(scene: Scene) -> None:
    table, addresses = scene.table(3)
    out, stream = scene.dev.zeros((48, 16), ox.f32), ox.Stream(scene.dev)
    scene.driver.hold(stream.handle)
    load[3].on(stream)(table, out)
    del table
    gc.collect()
    assert all(scene.driver.memory[address].alive for address in addresses)
    scene.driver.finish()
    scene.engine.synchronize()
    gc.collect()
    assert not any(scene.driver.memory[address].alive for address in addresses)


def test_a_freed_entry_is_refused(scene: Scene) -> None:
    table, _ = scene.table(3)
    scene.engine.free(table[1].array.buffer)
    with pytest.raises(LifetimeError):
        load[3](table, scene.dev.zeros((48, 16), ox.f32))


# ---- kernels of the user's
def raw(driver: FakeDriver, maps: tuple[BoundMap, ...]) -> RawLaunch:
    driver.images.append(FakeImage(b"\x7fELF mine", (FakeKernel("mine", ((0, 8),)),)))
    return RawLaunch(
        image=b"\x7fELF mine",
        kernel="mine",
        grid=(1, 1, 1),
        threads=(32, 1, 1),
        cluster=None,
        shared_bytes=0,
        parameters=(RawParameter(name="maps", offset=0, nbytes=8, value=maps),),
        parameter_bytes=8,
    )


def test_a_kernel_of_the_users_is_given_the_address_of_a_table(scene: Scene) -> None:
    table, addresses = scene.table(5)
    bound = tuple(load[5].bind(table, scene.dev.zeros((80, 16), ox.f32)).bindings.maps.values())
    launch, stream = raw(scene.driver, bound), ox.Stream(scene.dev)
    scene.engine.launch_raw(launch, stream)
    at = int.from_bytes(scene.driver.launches[-1].parameters[0], "little")
    assert at % abi.MAP_BYTES == 0
    found = [int.from_bytes(scene.driver.bytes_at(at + abi.MAP_BYTES * i, 8), "little") for i in range(5)]
    assert found == addresses
    scene.driver.hold(stream.handle)
    scene.engine.launch_raw(launch, stream)
    del table, bound, launch
    gc.collect()
    assert scene.driver.memory[at].alive
    assert all(scene.driver.memory[address].alive for address in addresses)
