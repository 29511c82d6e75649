"""Each measured pipeline, on the simulator, gives what numpy makes of the same data; so do what rows say of how they were checked."""

from __future__ import annotations

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.bench import work
from oxidecopy.bench.work import Pattern, Work
from oxidecopy.typed.global_array import storage_dtype

ELEMENTS, COLUMNS = 1 << 17, 512
WORKS = {f"{w.words}, {w.how}": w for ways in work.works(ELEMENTS, COLUMNS) for w in ways}


@pytest.mark.parametrize("measured", WORKS.values(), ids=WORKS)
def test_each_gives_what_numpy_gives(measured: Work) -> None:
    dev = ox.Device.open("sim-fast")
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(spec.shape, np.float32).astype(storage_dtype(spec.dtype.info)) for spec in measured.inputs]
    out = dev.zeros(measured.output.shape, measured.output.dtype)
    assert measured.bind is not None
    measured.bind([dev.array(x, spec.dtype) for x, spec in zip(values, measured.inputs, strict=True)], out, 2)()
    rows = out.numpy().reshape(measured.rows)
    expected = measured.expected([Pattern(x.reshape(-1)) for x in values], 0, len(rows))
    assert expected.dtype == rows.dtype
    if measured.tolerance:
        assert np.allclose(rows, expected, atol=measured.tolerance)
    else:
        assert rows.tobytes() == expected.tobytes()
