"""Each measured pipeline, on the simulator, gives what numpy makes of the same data; so do what rows say of how they were checked."""

from __future__ import annotations

import pytest

from oxidecopy.bench import work
from oxidecopy.bench.work import Work
from tests.helpers.works import check_against_numpy

ELEMENTS, COLUMNS = 1 << 17, 512
WORKS = {f"{w.words}, {w.how}": w for ways in work.works(ELEMENTS, COLUMNS) for w in ways}


@pytest.mark.parametrize("measured", WORKS.values(), ids=WORKS)
def test_each_gives_what_numpy_gives(measured: Work) -> None:
    check_against_numpy(measured, measured.bind, 2)
