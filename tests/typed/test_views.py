"""Views as numbers: each against numpy's view of the same memory, and what is no view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.errors import UsageError
from oxidecopy.typed.views import Rows, View, canonical, overlaps_itself

DEV = ox.Device.open("sim")
X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
A: ox.GlobalArray[ox.f32, Any] = DEV.array(X)


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0), (-1, 0, 1, 2)])
def test_permuted(axes: tuple[int, ...]) -> None:
    view, wanted = A.permute(*axes), X.transpose(axes)
    assert view.shape == wanted.shape
    assert view.strides_bytes == wanted.strides
    assert view.buffer is A.buffer
    assert np.array_equal(view.numpy(), wanted)


def test_transposed() -> None:
    assert np.array_equal(A.T.numpy(), X.T)
    assert A.T.T.strides_bytes == A.strides_bytes


CUTS = [
    np.s_[1:],
    np.s_[:, 1:3],
    np.s_[..., 1:4],
    np.s_[0:1, ..., ::2],
    np.s_[:, :, -3:-1],
    np.s_[1:2, 2:100, ::3, 4:],
    np.s_[...],
    np.s_[:, ..., 1:, 2:],
    np.s_[:, :, :, :],
]


@pytest.mark.parametrize("key", CUTS, ids=str)
def test_sliced(key: Any) -> None:
    view, wanted = A[key], X[key]
    assert view.shape == wanted.shape
    assert np.array_equal(view.numpy(), wanted)
    again = view.permute(3, 1, 2, 0)[..., :1]
    assert np.array_equal(again.numpy(), wanted.transpose(3, 1, 2, 0)[..., :1])


@pytest.mark.parametrize(("axis", "index"), [(0, 1), (1, 2), (2, -1), (-1, 0)])
def test_selected(axis: int, index: int) -> None:
    assert np.array_equal(A.select(axis, index).numpy(), X.take(index, axis))


@pytest.mark.parametrize(
    ("of", "to"), [((4, 5), (3, 4, 5)), ((1, 5), (4, 5)), ((4, 1), (4, 6)), ((5,), (2, 3, 5)), ((1, 1), (2, 2)), ((4, 5), (4, 5))]
)
def test_broadcast(of: tuple[int, ...], to: tuple[int, ...]) -> None:
    x = np.arange(np.prod(of), dtype=np.float32).reshape(of)
    view: Any = DEV.array(x).broadcast_to(to)
    assert np.array_equal(view.numpy(), np.broadcast_to(x, to))
    assert view.overlapping == (of != to)


def test_strided() -> None:
    line = DEV.array(np.arange(64, dtype=np.float32))
    windows = line.as_strided((14, 8), (16, 4), offset_bytes=4)
    wanted = np.lib.stride_tricks.as_strided(np.arange(1, 64, dtype=np.float32), (14, 8), (16, 4))
    assert np.array_equal(windows.numpy(), wanted)
    assert windows.overlapping
    assert np.array_equal(line.as_strided((8, 8), (4, 32)).numpy(), np.arange(64, dtype=np.float32).reshape(8, 8).T)


WRONG: list[tuple[str, str, Any]] = [
    ("OX5040", "axes", lambda: A.permute(0, 1, 2)),
    ("OX5040", "axes", lambda: A.permute(0, 1, 2, 2)),
    ("OX5040", "axes", lambda: A.permute(0, 1, 2, 4)),
    ("OX5040", "axes", lambda: A.permute(0, 1, 2, 3.0)),  # type: ignore[arg-type]
    ("OX5040", "slices", lambda: A[0]),  # type: ignore[index]
    ("OX5040", "slices", lambda: A[:, :, :, :, :]),
    ("OX5040", "slices", lambda: A[..., ...]),
    ("OX5040", "slices", lambda: A[[1, 0]]),  # type: ignore[index]
    ("OX5040", "integers", lambda: A["a":"b"]),
    ("OX5040", "forwards", lambda: A[::-1]),
    ("OX5040", "step of 0", lambda: A[::0]),
    ("OX5041", "nothing is left", lambda: A[2:]),
    ("OX5041", "nothing is left", lambda: A[:, 2:1]),
    ("OX5041", "index", lambda: A.select(0, 2)),
    ("OX5041", "index", lambda: A.select(0, True)),
    ("OX5040", "select", lambda: A.select(4, 0)),
    ("OX5040", "select", lambda: DEV.array(X.ravel()).select(0, 0)),  # type: ignore[misc]
    ("OX5040", "broadcast", lambda: A.broadcast_to((2, 3, 4, 6))),
    ("OX5040", "broadcast", lambda: A.broadcast_to((4, 5))),
    ("OX5040", "shape", lambda: A.broadcast_to((1, 1, 2, 3, 4, 5))),
    ("OX5040", "shape", lambda: A.broadcast_to(5)),  # type: ignore[type-var]
    ("OX5040", "strides", lambda: A.as_strided((2, 2), (4,))),
    ("OX5040", "strides", lambda: A.as_strided((2,), (-4,))),
    ("OX5040", "strides", lambda: A.as_strided((2,), (4.0,))),  # type: ignore[arg-type]
    ("OX5040", "strides", lambda: A.as_strided((2,), (4,), offset_bytes=-4)),
    ("OX5040", "aligned", lambda: A.as_strided((2,), (6,))),
    ("OX5040", "aligned", lambda: A.as_strided((2,), (4,), offset_bytes=2)),
    ("OX5041", "beyond", lambda: A.as_strided((121,), (4,))),
    ("OX5041", "beyond", lambda: A.as_strided((2,), (1 << 62,))),
    ("OX5041", "beyond", lambda: A[1:].as_strided((2, 60), (240, 4))),
    ("OX5041", "beyond", lambda: A.as_strided((120,), (4,), offset_bytes=4)),
]


def test_rows_by_their_numbers_are_gathered() -> None:
    with pytest.raises(UsageError) as caught:
        A[[1, 0]]  # type: ignore[index]
    assert "ox.gather_rows" in caught.value.diagnostics[0].fix


@pytest.mark.parametrize(("rule", "word", "make"), WRONG)
def test_what_is_no_view(rule: str, word: str, make: Any) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    (said,) = caught.value.diagnostics
    assert said.rule == rule
    assert word in said.what
    assert said.site is not None
    assert said.site.file == __file__


def test_strides_of_one_element_mean_nothing() -> None:
    assert canonical((1, 4, 1, 8), (7, 32, 99, 4), 4) == (128, 32, 32, 4)
    assert canonical((4, 1), (4, 12345), 4) == (4, 4)
    assert canonical((1, 1), (0, 0), 2) == (2, 2)
    assert canonical((3, 1, 2), (0, 1, 4), 4) == (0, 8, 4)
    assert A[:1, :, 2:3].strides_bytes == (240, 80, 20, 4)


def test_nothing_overflows() -> None:
    large = View(shape=(1 << 40, 1 << 40), strides_bytes=(1 << 44, 16), element_bytes=4)
    assert large.span_bytes == ((1 << 40) - 1) * ((1 << 44) + 16) + 4
    assert large.permuted((1, 0)).span_bytes == large.span_bytes
    assert not overlaps_itself((1 << 40, 1 << 20), (1 << 44, 16), 4)


shapes = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), min_size=1, max_size=4)


@given(shapes, st.sampled_from([1, 2, 4]))
def test_overlaps_as_counted(dims: list[tuple[int, int]], size: int) -> None:
    shape, strides = tuple(n for n, _ in dims), tuple(s * size for _, s in dims)
    places = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(shape)]
    assert overlaps_itself(shape, strides, size) == (len(set(places)) < len(places))


# ---- what lies behind rows
PADDED = Rows(used=120, apart=128, total=1024)
DENSE = Rows(used=128, apart=128, total=1024)


@pytest.mark.parametrize(
    ("rows", "start", "nbytes", "steps", "found"),
    [
        (PADDED, 120, 8, [128], "padding"),
        (PADDED, 120, 9, [128], "elements"),  # the next row
        (PADDED, 112, 8, [128], "elements"),  # a view that ends earlier
        (PADDED, 1016, 16, [], "padding"),  # behind the last row there is nothing
        (PADDED, 120, 8, [64], "unknown"),  # rows of the view do not follow those of the memory
        (DENSE, 120, 8, [128], "elements"),
        (DENSE, 120, 8, [64], "elements"),  # all of it is elements
        (DENSE, 1024, 8, [128], "padding"),
        (DENSE, 120, 0, [128], "padding"),
    ],
)
def test_behind_rows(rows: Rows, start: int, nbytes: int, steps: list[int], found: str) -> None:
    assert rows.behind(start, start + nbytes, steps) == found


def test_rows_of_memory() -> None:
    assert Rows.of((8, 30), (128, 4), 120, 1024) == PADDED
    assert Rows.of((30,), (4,), 120, 120) == Rows(used=120, apart=120, total=120)
