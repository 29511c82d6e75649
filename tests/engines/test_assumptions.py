"""Every assumption of a proof is held by both engines against the arguments of a launch; a new field of `Launch` fails here until it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.discharge import _shape
from oxidecopy.engines.sim import SimEngine
from oxidecopy.errors import ExecutionError
from oxidecopy.host.bound import BoundLaunch
from oxidecopy.program.program import Launch
from oxidecopy.program.verified import Assumptions, VerifiedProgram, seal
from tests.helpers.launching import copy_pipeline, descriptor, numbers

# Another value for each field, with the words by which the difference is named.
OTHER: Final[dict[str, tuple[Callable[[Launch], object], str]]] = {
    "grid": (lambda _: (1, 1, 1), "grid"),
    "maps": (lambda launch: ((launch.maps[0][0], replace(launch.maps[0][1], global_dim=(32, 16))),), "tensor map `src`"),
    "arrays": (lambda launch: ((launch.arrays[0][0], replace(launch.arrays[0][1], shape=(16, 32))),), "array `out`"),
    "idx": (lambda _: (("n", 1),), "index parameters"),
    "same": (lambda _: (("out", "src"),), "parameters over one view"),
    "overlapping": (lambda _: (("out", "src"),), "parameters that share memory"),
    "edges": (lambda _: (("src", "elements"),), "what lies behind the rows"),
    "sm": (lambda _: 100, "compute capability"),
}


def bound() -> BoundLaunch:
    dev = ox.Device.open("sim")
    return copy_pipeline()[2, 2].bind(descriptor(dev.array(numbers())), dev.zeros((32, 32), ox.f32))


def differences(proof: VerifiedProgram, launch: BoundLaunch) -> tuple[list[str], list[str]]:
    """What the simulator and what the CUDA engine say."""
    assert isinstance(launch.engine, SimEngine)
    try:
        launch.engine.run(proof, launch.bindings)
        said: list[str] = []
    except ExecutionError as error:
        said = [d.what for d in error.diagnostics]
    return said, [d.what for d in _shape(proof, launch.bindings.launch(90))]


def test_the_table_names_every_field() -> None:
    assert set(OTHER) == {f.name for f in fields(Launch)}
    assert {f.name for f in fields(Assumptions)} == {"launch", "sm", "shared_bytes"}


@pytest.mark.parametrize("name", OTHER)
def test_each_assumption_is_held(name: str) -> None:
    launch = bound()
    proof, (other, words) = launch.verify(), OTHER[name]
    changed: Any = {name: other(launch.launch)}
    assumed = replace(proof.assumptions, launch=replace(launch.launch, **changed))
    if name == "sm":
        assumed = replace(assumed, sm=100)
    for said in differences(seal(launch.program, assumed, ()), launch):
        assert len(said) == 1
        assert words in said[0]


def test_so_is_the_shared_memory() -> None:
    launch = bound()
    assumed = replace(launch.verify().assumptions, shared_bytes=1)
    for said in differences(seal(launch.program, assumed, ()), launch):
        assert len(said) == 1
        assert "shared bytes" in said[0]


def test_nothing_differs_in_a_launch_like_the_proven_one() -> None:
    launch = bound()
    assert differences(launch.verify(), bound()) == ([], [])
