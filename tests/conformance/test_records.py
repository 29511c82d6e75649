"""Cases that run as records: what is launched on a GPU, and on a simulator."""

from __future__ import annotations

from pathlib import Path

import oxidecopy as ox
from oxidecopy.conformance import run
from oxidecopy.conformance.case import Case
from tests.helpers.fake_engine import fake_device

GROUP = "contractions as records: "


def launched(case: Case, tmp_path: Path) -> str:
    """The kernel of it."""
    device, _, driver = fake_device(tmp_path)
    run.run_case(case, ox.Device.open("sim-fast"), device)
    (launch,) = driver.launches
    return launch.kernel.name


def test_a_whole_program_runs_as_records_where_the_case_says_so(tmp_path: Path) -> None:
    whole, records = run.cases("one tile")
    assert (whole.group, records.group) == ("contractions", "contractions as records")
    assert launched(whole, tmp_path) == "oxidecopy_product_m64n128_large"
    assert launched(records, tmp_path) == "oxidecopy_mma_global"


def test_what_no_record_computes_is_left_out() -> None:
    names = {case.name for case in run.cases("contractions: ")} - {case.name for case in run.cases(GROUP)}
    assert names == {"bf16 128x192", "bf16 128x192 to bf16", "K over blocks, added"}


def test_a_simulator_runs_them_as_any_case() -> None:
    device = ox.Device.open("sim-fast")
    for case in run.cases(GROUP + "NaN"):
        assert run.run_case(case, device, device).problem == ""
