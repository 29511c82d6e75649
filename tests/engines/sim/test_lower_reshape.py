"""Transposes and reductions on the simulator: the stated order of additions, classes that share, races, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from oxidecopy.engines.sim.faults import INVALID_VALUE
from oxidecopy.engines.sim.lower_reshape import fold
from oxidecopy.isa import ops
from tests.engines.sim.harness import Rig, check
from tests.helpers.programs import Builder


def two(threads: int = 128, *, into: tuple[int, ...] = (32, 64), dtype: str = "f32", synced: bool = True) -> Builder:
    """A tile with its columns' numbers, and another one."""
    b = Builder(threads=threads, grid=(1, 1, 1))
    b.array(shape=into)
    b.tile("source", shape=(64, 32), swizzle="128B")
    b.tile("out", shape=into, dtype=dtype)
    b.op(ops.Iota(tile=b.ref(0), axis=1))
    if synced:
        b.sync()
    return b


def reduced(b: Builder, axis: int = 1, how: str = "sum", onto: int = 0) -> None:
    b.op(ops.ReduceTile(op=how, onto=onto, axis=axis, source=b.ref(0), out=b.ref(1)), "made")


def flipped(b: Builder) -> None:
    b.op(ops.TransposeTile(source=b.ref(0), out=b.ref(1)), "made")


@pytest.mark.parametrize("threads", [1, 7, 128])
def test_classes_share_a_transpose(threads: int) -> None:
    b = two(threads)
    flipped(b)
    b.sync()
    with b.elect():
        b.fence()
    b.store(tile=1)
    rig = Rig(b)
    result = rig.explore()
    assert (result.outcome, result.findings) == ("ok", ())
    assert (rig.get("out", "f32", (32, 64)) == np.arange(32, dtype=np.float32)[:, None]).all()


@pytest.mark.parametrize(("axis", "onto", "wanted"), [(1, 0, 496.0), (1, 1, 498.0), (0, 0, None)])
def test_sums_onto_what_is_there(axis: int, onto: int, wanted: float | None) -> None:
    b = two(into=(64,) if axis else (32,))
    b.op(ops.Fill(tile=b.ref(1), value=2.0))
    b.sync()
    reduced(b, axis, onto=onto)
    b.sync()
    b.store(tile=1, coords=(0,))
    rig = Rig(b)
    result = rig.explore()
    assert (result.outcome, result.findings) == ("ok", ())
    found = rig.get("out", "f32", (64 if axis else 32,))
    assert (found == (wanted if wanted is not None else np.arange(32) * 64)).all()


def model(row: np.ndarray[tuple[int], np.dtype[np.float32]], partials: int) -> np.float32:
    """The order of additions, number by number."""
    parts: list[np.float32] = []
    for p in range(min(partials, len(row))):
        total = row[p]
        for x in row[p + partials :: partials]:
            total = np.float32(total + x)
        parts.append(total)
    parts += [np.float32(-0.0)] * (partials - len(parts))
    while len(parts) > 1:
        parts = [np.float32(a + b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


@pytest.mark.parametrize("length", [1, 5, 32, 33, 75, 200])
def test_the_order_of_additions(length: int) -> None:
    rows = np.random.default_rng(length).standard_normal((3, length)).astype(np.float32)
    wanted = [[model(row, n) for row in rows] for n in (32, 4)]
    made = [fold(rows.view(np.uint32), "f32", "sum", 1), fold(np.ascontiguousarray(rows.T).view(np.uint32), "f32", "sum", 0)]
    assert [list(m.view(np.float32)) for m in made] == wanted


def test_signs_and_nans() -> None:
    rows = np.array([[-0.0, -0.0], [np.nan, 1.0], [-np.inf, -3.0]], np.float32).view(np.uint32)
    assert list(fold(rows, "f32", "sum", 1)) == [0x80000000, 0x7FFFFFFF, 0xFF800000]
    assert list(fold(rows, "f32", "max", 1)) == [0x80000000, 0x7FFFFFFF, 0xC0400000]


@pytest.mark.parametrize("synced", [False, True])
def test_what_is_read_is_synced(synced: bool) -> None:
    b = two(synced=synced)
    flipped(b)
    check(b, set() if synced else {("OX4101", b.tags["made"])})


@pytest.mark.parametrize("case", ["shape", "type", "itself", "vector", "axis", "half"])
def test_what_fits_nothing_is_refused(case: str) -> None:
    b = two(
        into={"shape": (64, 32), "vector": (64, 1), "axis": (32,), "half": (64,)}.get(case, (32, 64)),
        dtype="f16" if case == "half" else "f32",
    )
    if case == "type":
        b.tile("bits", shape=(32, 64), dtype="u32")
        b.op(ops.TransposeTile(source=b.ref(0), out=b.ref(2)))
    elif case == "itself":
        b.op(ops.TransposeTile(source=b.ref(0), out=b.ref(0)))
    elif case == "shape":
        flipped(b)
    else:
        reduced(b)
    result = Rig(b).explore()
    assert (result.outcome, result.code) == ("refused", INVALID_VALUE)
