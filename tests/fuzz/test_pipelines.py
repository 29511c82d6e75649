"""What the generator of programs covers, and that what it makes can exist."""

from __future__ import annotations

from collections import Counter

import pytest

from oxidecopy.fuzz.case import Case
from oxidecopy.fuzz.drafts import DTYPE_NAMES
from oxidecopy.fuzz.pipelines import ALONE, IN_ROLES, NEWER, NOT_GENERATED, TOGETHER, pipeline
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.ops import BY_MNEMONIC
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import errors_of
from oxidecopy.program.binary import to_bytes

SEEDS = 300


@pytest.fixture(scope="module")
def made() -> list[Case]:
    return [pipeline(seed) for seed in range(SEEDS)]


def test_the_same_seed_gives_the_same_program() -> None:
    for seed in range(5):
        assert to_bytes(pipeline(seed).program) == to_bytes(pipeline(seed).program)
    assert to_bytes(pipeline(0).program) != to_bytes(pipeline(1).program)


def test_every_op_of_the_table_is_used(made: list[Case]) -> None:
    used = {step.op.mnemonic for case in made for step in case.program.walk()}
    assert used | NOT_GENERATED.keys() == BY_MNEMONIC.keys()
    assert not used & NOT_GENERATED.keys()
    assert all(NOT_GENERATED.values())


def test_every_scene_is_used(made: list[Case]) -> None:
    used = Counter(name for case in made for name in case.scenes)
    for scene in (*ALONE, *TOGETHER, *IN_ROLES.values(), NEWER):
        assert used[scene.__name__] >= 2, scene


def test_every_type_and_swizzle_is_used(made: list[Case]) -> None:
    maps = [m for case in made for m in case.program.maps.values()]
    assert {m.dtype for m in maps} == set(DTYPE_NAMES)
    assert {name for name, info in DTYPES.items() if info.bits % 8 == 0} == set(DTYPE_NAMES)
    assert {m.swizzle for m in maps} == set(SWIZZLES)
    assert {m.rank for m in maps} == {1, 2, 3, 4, 5}
    assert {m.interleave for m in maps} == {"none", "16B", "32B"}
    assert {m.oob_fill for m in maps} == {"zero", "nan"}
    assert {m.mode for m in maps} == {"tile", "im2col"}
    assert {case.program.cluster_size for case in made} >= {1, 2, 3, 4}


def test_every_map_is_one_that_the_driver_encodes_and_copies_can_use(made: list[Case]) -> None:
    for case in made:
        for _, tensor in case.maps.values():
            assert not errors_of(MapParameters.of(tensor, 0x7F00_0000_0000), 90), (case.label, tensor)
