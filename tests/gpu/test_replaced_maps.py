"""tensormap.replace on a GPU: what each instruction writes, as it was measured before and as the simulator has it."""

from __future__ import annotations

import pytest

from oxidecopy.engines.sim.map_image import replaced
from oxidecopy.host.device import Device
from tests.helpers.map_edits import ROWS, edit_of, image_of, ran

pytestmark = pytest.mark.gpu
MORE = ["dt3", "dt7", "dt11", "dt12", "il1", "il2", "sw1", "sw2", "box4_77", "dim4_77", "stride2_4096", "es0_3", "es4_5"]


def test_every_measured_edit(dev: Device) -> None:
    made = ran(dev, [edit_of(name) for name, _ in ROWS])
    assert {name for (name, changes), data in zip(ROWS, made, strict=True) if data != image_of(changes)} == set()


def test_more_of_them_are_as_simulated(dev: Device) -> None:
    edits = [edit_of(name) for name in MORE]
    assert ran(dev, edits) == [replaced(bytes(128), *edit) for edit in edits]
