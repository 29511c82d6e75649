from __future__ import annotations

import pytest

import oxidecopy as ox
from oxidecopy.conformance import run
from oxidecopy.conformance.emitted import by_emitted_code
from oxidecopy.errors import DeviceError


def test_the_simulator_runs_no_machine_code() -> None:
    device = ox.Device.open("sim-fast")
    made = run.cases("gathered")[0].make(device)
    with pytest.raises(DeviceError) as caught:
        by_emitted_code(made, device)
    assert caught.value.rule == "OX6014"
