from __future__ import annotations

import pytest

from oxidecopy.engines.cuda.code.swizzles import chunk_mask
from oxidecopy.errors import DeviceCodeError
from oxidecopy.isa.swizzle import ATOM_SWIZZLES, SWIZZLES


def test_the_modes_that_device_code_computes() -> None:
    assert {name: chunk_mask(name) for name in SWIZZLES} == {"none": 0, "32B": 1, "64B": 3, "128B": 7}


@pytest.mark.parametrize("name", sorted(ATOM_SWIZZLES))
def test_wider_atoms_are_left_to_copies(name: str) -> None:
    with pytest.raises(DeviceCodeError) as caught:
        chunk_mask(name)
    assert caught.value.rules == ("OX5530",)
