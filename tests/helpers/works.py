"""Works of the benchmark, run once on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import oxidecopy as ox
from oxidecopy.bench.work import Pattern, Work
from oxidecopy.typed.global_array import storage_dtype


def check_against_numpy(work: Work, ready: Callable[..., Callable[[], object]] | None, last: Any) -> None:
    """Runs what `ready` makes of inputs, the output and `last`, on random numbers: the work's result is numpy's, as it promises."""
    dev = ox.Device.open("sim-fast")
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(spec.shape, np.float32).astype(storage_dtype(spec.dtype.info)) for spec in work.inputs]
    out = dev.zeros(work.output.shape, work.output.dtype)
    assert ready is not None
    ready([dev.array(x, spec.dtype) for x, spec in zip(values, work.inputs, strict=True)], out, last)()
    rows = out.numpy().reshape(work.rows)
    expected = work.expected([Pattern(x.reshape(-1)) for x in values], 0, len(rows))
    assert expected.dtype == rows.dtype
    if work.tolerance:
        assert np.allclose(rows, expected, atol=work.tolerance)
    else:
        assert rows.tobytes() == expected.tobytes()
