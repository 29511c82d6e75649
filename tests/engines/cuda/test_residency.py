"""Launches that the device can never hold are refused before the driver sees them, with what fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.launch import LaunchShape, launch_config
from oxidecopy.engines.cuda.module import Kernel, Module
from oxidecopy.engines.cuda.residency import require_room
from oxidecopy.errors import DriverError, ExecutionError, Site
from tests.helpers.fake_driver import FakeDriver, FakeGpu, FakeImage, FakeKernel
from tests.helpers.fake_engine import fake_device
from tests.helpers.launching import copy_pipeline, descriptor, numbers

CODE = b"\x7fELF"
SITE = Site("pipe.py", 7)


@final
@dataclass
class Scene:
    driver: FakeDriver
    context: PrimaryContext
    kernel: Kernel

    def require(self, shape: LaunchShape) -> None:
        require_room(self.context, self.kernel, shape, "load", SITE)

    def launch(self, shape: LaunchShape) -> None:
        """Without asking first."""
        with self.context:
            check(self.driver.cuLaunchKernelEx(launch_config(self.driver, shape, 1), self.kernel.function, 0, 0), "cuLaunchKernelEx")


@pytest.fixture
def scene() -> Iterator[Scene]:
    driver = FakeDriver([FakeGpu()], images=[FakeImage(CODE, (FakeKernel("kernel", max_cluster=12),))])
    context = PrimaryContext(driver, 0)
    with context:
        kernel = Module(driver, CODE, 232_448, "test").kernel("kernel")
        kernel.allow(threads=1, shared_bytes=100_000, cluster_size=16)
    yield Scene(driver, context, kernel)
    assert driver.stack == []


def refused(scene: Scene, shape: LaunchShape) -> ExecutionError:
    """By us, and rightly: the driver refuses it, too."""
    with pytest.raises(ExecutionError) as caught:
        scene.require(shape)
    with pytest.raises(DriverError):
        scene.launch(shape)
    assert caught.value.diagnostics[0].site == SITE
    return caught.value


# 100,000 bytes leave room for two CTAs on each of 132 SMs
@pytest.mark.parametrize(("grid", "fits"), [((264, 1, 1), True), ((2, 4, 33), True), ((265, 1, 1), False), ((5, 53, 1), False)])
def test_a_cooperative_grid(scene: Scene, grid: tuple[int, int, int], fits: bool) -> None:
    shape = LaunchShape(grid=grid, block=(64, 1, 1), shared_bytes=100_000, cooperative=True)
    if fits:
        scene.require(shape)
        scene.launch(shape)
        return
    (said,) = refused(scene, shape).diagnostics
    assert said.rule == "OX5340"
    assert said.what == "the cooperative launch of `load` has more CTAs than cuda:0 can hold at once"
    assert said.got == f"grid {grid}: 265 CTAs, 64 threads and 100,000 bytes of shared memory per CTA"
    assert said.required == "at most 264 CTAs, 2 on each of 132 SMs"
    assert "264" in said.fix


@pytest.mark.parametrize(("clusters", "fits"), [(33, True), (34, False)])
def test_a_cooperative_grid_of_clusters(scene: Scene, clusters: int, fits: bool) -> None:
    shape = LaunchShape(grid=(8 * clusters, 1, 1), block=(64, 1, 1), cluster=(8, 1, 1), shared_bytes=100_000, cooperative=True)
    if fits:
        scene.require(shape)
        scene.launch(shape)
    else:
        assert refused(scene, shape).rules == ("OX5340",)


@pytest.mark.parametrize("cooperative", [True, False])
def test_a_cluster_that_never_fits(scene: Scene, cooperative: bool) -> None:
    large = LaunchShape(grid=(16, 1, 1), block=(64, 1, 1), cluster=(16, 1, 1), cooperative=cooperative)
    (said,) = refused(scene, large).diagnostics
    assert (said.rule, said.what) == ("OX5341", "no cluster of `load` fits on cuda:0")
    assert said.got.startswith("clusters of 16 CTAs (16, 1, 1), 64 threads and 0 bytes")
    scene.require(LaunchShape(grid=(12, 1, 1), block=(64, 1, 1), cluster=(12, 1, 1), cooperative=cooperative))


def test_the_drivers_other_way_to_say_that_no_cluster_fits(scene: Scene) -> None:
    scene.driver.fail["cuOccupancyMaxActiveClusters"] = "CUDA_ERROR_INVALID_CLUSTER_SIZE"
    with pytest.raises(ExecutionError) as caught:
        scene.require(LaunchShape(grid=(8, 1, 1), block=(64, 1, 1), cluster=(8, 1, 1)))
    assert caught.value.rules == ("OX5341",)


def test_a_grid_that_asks_for_nothing_is_not_asked_about(scene: Scene) -> None:
    scene.require(LaunchShape(grid=(1 << 20, 1, 1), block=(1024, 1, 1), cluster=(1, 1, 1)))
    assert not any(name.startswith("cuOccupancy") for name in scene.driver.calls)


def test_each_shape_is_asked_about_once(scene: Scene) -> None:
    for grid in (8, 16, 8):
        scene.require(LaunchShape(grid=(grid, 1, 1), block=(64, 1, 1), cluster=(8, 1, 1)))
    assert scene.driver.calls["cuOccupancyMaxActiveClusters"] == 1
    scene.require(LaunchShape(grid=(8, 1, 1), block=(64, 1, 1), cluster=(8, 1, 1), shared_bytes=8))
    assert scene.driver.calls["cuOccupancyMaxActiveClusters"] == 2


def test_a_pipeline_is_refused_before_the_driver_is_asked_to_launch(tmp_path: Path) -> None:
    dev, _, driver = fake_device(tmp_path)
    many = dev.zeros((16 * 8192, 16), ox.f32)
    launch = copy_pipeline()[1, 8192].attributes(cooperative=True)
    with pytest.raises(ExecutionError) as caught:
        launch(descriptor(many), many)
    assert caught.value.rules == ("OX5340",)
    assert caught.value.diagnostics[0].site is not None
    assert driver.calls["cuLaunchKernelEx"] == 0
    copy_pipeline()[1, 8192](descriptor(many), many)
    small = dev.array(numbers())
    copy_pipeline()[2, 2].attributes(cooperative=True)(descriptor(small), small)
    assert driver.calls["cuLaunchKernelEx"] == 2
