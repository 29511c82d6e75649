"""`ox.copy`, with numpy as the oracle: every kind of view, every way to do it, and what is refused."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, DTypeError, OxidecopyError, ShapeError
from oxidecopy.host.arrays import INFERRED
from oxidecopy.oneliners import moving
from oxidecopy.oneliners.pipelines import boxes_once
from oxidecopy.oneliners.ready import KEPT_MAX, Kept, kept_by

Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def dev() -> ox.Device:
    return ox.Device.open("sim")


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    found: Array = np.random.default_rng(len(shape)).integers(0, 200, shape).astype(dtype)
    return found


def pipelines(said: ox.Explanation[Any]) -> list[str]:
    return [line.partition("[")[0] for line in said.launches]


# ---- rows between multiples of 16 bytes
@pytest.mark.parametrize(("apart", "launches"), [(1 << 7, 4), (1 << 20, 2)], ids=["a launch for each place", "one for all, and the rest"])
def test_dense_rows_off_the_grid(apart: int, launches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "_APART", apart)
    dev = ox.Device.open("sim")  # one of its own: plans of the others are kept
    x = numbers((37, 101))
    a = dev.array(x)
    said = ox.copy(dev.empty(x.shape, ox.f32, pad=True), a, explain=True)
    assert pipelines(said) == ["copy_shifted"] * launches
    assert (said.out.numpy() == x).all()
    for view, wanted in ((a[:, 3:], x[:, 3:]), (a[1:, 3:77], x[1:, 3:77]), (a[:3], x[:3])):
        assert (ox.copy(dev.empty(wanted.shape, ox.f32, pad=True), view).numpy() == wanted).all()
        assert (ox.copy(dev.zeros(wanted.shape, ox.f32), view).numpy() == wanted).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64])
def test_dense_rows_of_any_type(dev: ox.Device, dtype: Any) -> None:
    x = numbers((37, 51), dtype)
    assert (ox.copy(dev.empty(x.shape, dev.array(x).dtype, pad=True), dev.array(x)).numpy() == x).all()


def test_a_long_row_from_its_second_element_on(dev: ox.Device) -> None:
    x = numbers((40_000,))
    said = ox.copy(None, dev.array(x)[1:], explain=True)
    assert "boxes (19, 256)" in said.launches[0]  # of rows of 1,024
    assert (said.out.numpy() == x[1:]).all()


# ---- ways
def test_equal_layouts_are_one_long_row_copied_as_rows(dev: ox.Device) -> None:
    x = numbers((130, 251))
    said = ox.copy(None, dev.array(x), explain=True)
    assert (said.out.numpy() == x).all()
    assert pipelines(said) == ["copy_boxes", "copy_boxes"]  # rows, and what is left of the long one
    assert "32,630 words" in said.text
    assert "docs/results/copies.csv" in said.text


def test_permuted_heads_are_boxes_from_map_to_map(dev: ox.Device) -> None:
    x = numbers((2, 9, 3, 64), np.float16)
    said = ox.copy(None, dev.array(x).permute(0, 2, 1, 3), explain=True)
    assert (said.out.numpy() == x.transpose(0, 2, 1, 3)).all()
    assert pipelines(said) == ["copy_boxes"]
    assert "words of 4" in said.text


def test_a_view_whose_elements_follow_each_other_elsewhere(dev: ox.Device) -> None:
    x = numbers((20, 36))
    said = ox.copy(None, dev.array(x).T, explain=True)
    assert (said.out.numpy() == x.T).all()
    assert pipelines(said) == ["copy_transposed"]


@pytest.mark.parametrize(
    ("dtype", "shape", "boxes"), [(np.uint8, (2, 300, 1024), (1, 1, 256, 256)), (np.float64, (100, 256), (1, 64, 128))]
)
def test_large_transposes_walk_down_strips(
    dtype: Any, shape: tuple[int, ...], boxes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "_STRIPS_FROM", 0)
    dev, x = ox.Device.open("sim-fast"), numbers(shape, dtype)
    *outer, row, column = range(len(shape))
    said = ox.copy(None, dev.array(x).permute(*outer, column, row), explain=True)
    assert (said.out.numpy() == np.swapaxes(x, -1, -2)).all()
    assert "strips of" in said.text
    assert f"boxes {boxes}" in said.text


def test_a_transposed_view_whose_rows_are_no_multiples_of_16_bytes(dev: ox.Device) -> None:
    x = numbers((21, 36))
    said = ox.copy(dev.empty((36, 21), ox.f32), dev.array(x).T, explain=True)
    assert (said.out.numpy() == x.T).all()
    assert pipelines(said) == ["copy_elements"]


TURNED = [(np.uint8, (300, 272), (1, 0)), (np.float16, (2, 40, 3, 72), (2, 3, 0, 1)), (np.int64, (3, 70, 66), (0, 2, 1))]


@pytest.mark.parametrize(("dtype", "shape", "order"), TURNED)
def test_boxes_are_transposed(dev: ox.Device, dtype: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = numbers(shape, dtype)
    said = ox.copy(
        dev.empty(tuple(shape[k] for k in order), INFERRED[np.dtype(dtype).name], pad=True),
        dev.array(x, pad=True).permute(*order),
        explain=True,
    )
    assert (said.out.numpy() == x.transpose(order)).all()
    assert pipelines(said) == ["copy_transposed"]


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int64])
def test_rows_that_begin_anywhere(dev: ox.Device, dtype: Any) -> None:
    x = numbers((5, 299), dtype)
    said = ox.copy(None, dev.array(x)[1:, 1:-2], explain=True)
    assert (said.out.numpy() == x[1:, 1:-2]).all()
    assert pipelines(said) == ["copy_shifted"]


@pytest.mark.parametrize(
    ("dtype", "first", "step"),
    [(np.float32, 0, 2), (np.float32, 1, 2), (np.uint8, 3, 4), (np.float16, 1, 2), (np.float16, 0, 4), (np.uint8, 5, 8)],
)
def test_elements_apart_are_parts_of_words(dev: ox.Device, dtype: Any, first: int, step: int) -> None:
    x = numbers((5, 64), dtype)
    said = ox.copy(None, dev.array(x)[1:, first::step], explain=True)
    assert (said.out.numpy() == x[1:, first::step]).all()
    assert pipelines(said)[0] == "copy_parts"


@pytest.mark.parametrize(("columns", "step"), [(20, 3), (21, 2), (20, 4)])
def test_elements_apart_that_are_no_parts_of_words(dev: ox.Device, columns: int, step: int) -> None:
    x = numbers((3, columns))
    said = ox.copy(None, dev.array(x)[:, ::step], explain=True)
    assert (said.out.numpy() == x[:, ::step]).all()
    assert pipelines(said)[0] in ("copy_shifted", "copy_elements")


def test_a_row_is_not_written_beyond(dev: ox.Device) -> None:
    x, y = numbers((6, 13)), numbers((6, 32)) + 1000
    out = dev.array(y)
    ox.copy(out[:, 3:16], dev.array(x, pad=True))
    y[:, 3:16] = x
    assert (out.numpy() == y).all()


def test_padding_behind_a_row_is_nobodys(dev: ox.Device) -> None:
    x = numbers((6, 13))
    said = ox.copy(dev.empty(x.shape, ox.f32, pad=True), dev.array(x, pad=True), explain=True)
    assert pipelines(said) == ["copy_boxes"]
    assert (said.out.numpy() == x).all()


def test_repeated_sources(dev: ox.Device) -> None:
    x = numbers((1, 64))
    assert (ox.copy(None, dev.array(x).broadcast_to((5, 64))).numpy() == x).all()
    assert (ox.copy(None, dev.array(x.reshape(64, 1)).broadcast_to((64, 7))).numpy() == x.reshape(64, 1)).all()


def test_bits_are_kept_where_types_are_equal(dev: ox.Device) -> None:
    x = np.array([0x7F800001, 0x80000000, 1], np.uint32).view(np.float32).repeat(16)
    assert (ox.copy(None, dev.array(x)).numpy().view(np.uint32) == x.view(np.uint32)).all()


def test_packed_elements_are_copied_as_their_bytes() -> None:
    newer = ox.Device.open("sim", arch=100)
    x = np.arange(4 * 32, dtype=np.uint8).reshape(4, 32) % 16
    assert (ox.copy(None, newer.array(x, ox.u4x16_align8b)).numpy() == x).all()


# ---- element types
@pytest.mark.parametrize("pad", [False, True])
def test_values_become_another_type(dev: ox.Device, pad: bool) -> None:
    x = np.random.default_rng(1).standard_normal((7, 50)).astype(np.float32)
    assert (ox.copy(ox.f16, dev.array(x, pad=pad)).numpy() == x.astype(np.float16)).all()
    out = ox.copy(dev.empty((50, 7), ox.bf16, pad=pad), dev.array(x, pad=pad).T)
    assert (out.numpy() == x.T.astype(ml_dtypes.bfloat16)).all()


# ---- random views
@st.composite
def views(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[slice, ...], bool]:
    """A shape, an order of its dimensions, a part of them, and whether rows are padded."""
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.sampled_from((1, 2, 3, 4, 8, 17))) for _ in range(rank))
    order = tuple(draw(st.permutations(range(rank))))
    parts = tuple(slice(draw(st.integers(0, n - 1)), n, draw(st.sampled_from((1, 1, 2)))) for n in shape)
    return shape, order, parts, draw(st.booleans())


few = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


@few
@given(view=views(), into=st.booleans(), dtype=st.sampled_from((np.uint8, np.float16, np.float32, np.uint64)))
def test_any_view_is_copied_as_numpy_does(view: Any, into: bool, dtype: Any) -> None:
    dev = ox.Device.open("sim")
    shape, order, parts, pad = view
    x = numbers(shape, dtype)
    whole = dev.array(x, pad=pad)
    part, wanted = whole.permute(*order)[tuple(parts[k] for k in order)], x.transpose(order)[tuple(parts[k] for k in order)]
    if not into:
        assert (ox.copy(None, part).numpy() == wanted).all()
        return
    y = numbers(wanted.shape, dtype) + 1
    ox.copy(part, dev.array(y))
    wanted[...] = y
    assert (whole.numpy() == x).all()  # and nothing around the part is written


# ---- arrays of other libraries
def test_numpys_arrays_lie_on_the_simulator() -> None:
    x, y = numbers((9, 14)), np.zeros((14, 9), np.float32)
    assert ox.copy(y, x.T) is y
    assert (y == x.T).all()
    half = np.zeros((9, 14), np.float16)
    ox.copy(half, x)
    assert (half == x.astype(np.float16)).all()


def test_a_part_that_begins_between_multiples_of_16_bytes() -> None:
    x = numbers((40,))
    y = np.zeros(33, np.float32)
    ox.copy(y, x[3:36])
    assert (y == x[3:36]).all()


# ---- plans are kept
def test_a_second_call_records_nothing(dev: ox.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = dev.array(numbers((8, 64))), dev.array(numbers((8, 64)) + 1)
    out = dev.empty((8, 64), ox.f32)
    ox.copy(out, a)
    monkeypatch.setattr("oxidecopy.oneliners.calls.made_ready", None)
    ox.copy(out, a)
    ox.copy(out, b)  # other memory of the same kind
    assert (out.numpy() == b.numpy()).all()
    assert ox.copy(out, a, explain=True).kept


def test_a_plan_keeps_no_memory_alive(dev: ox.Device) -> None:
    """Nor does making it look at the names of the function that asks, which would keep them until that returns."""
    boxes_once.cache_clear()
    a, out = dev.array(numbers((8, 88))), dev.empty((8, 88), ox.f32)  # of a shape that nobody has asked for
    ox.copy(out, a)
    ox.copy(out, a)
    gone = [weakref.ref(each.buffer) for each in (a, out)]
    del a, out
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_rows_with_neighbours_have_a_plan_of_their_own(dev: ox.Device) -> None:
    """What lies behind a row is part of the key: here other elements, there nobody's bytes."""
    x = numbers((4, 5))
    padded, among = dev.zeros((4, 5), ox.f32, pad=True), dev.zeros((4, 8), ox.f32)
    src = dev.array(x, pad=True)
    ox.copy(padded, src)
    part = among[:, :5]
    assert part.strides_bytes == padded.strides_bytes
    assert pipelines(ox.copy(part, src, explain=True)) == ["copy_elements"]
    assert not among.numpy()[:, 5:].any()


def test_plans_for_arrays_apart_are_not_for_such_as_share_memory(dev: ox.Device) -> None:
    a, b = dev.array(numbers((9, 64))), dev.array(numbers((9, 64)))
    ox.copy(b[1:], a[:-1])
    refused("OX1202", ArgumentError, a[1:], a[:-1])
    ox.copy(b[1:], a[:-1])
    x, y, out = numbers((8, 64)), dev.array(numbers((8, 64)) + 5), dev.empty((8, 64), ox.f32)
    for first, second, wanted in ((b[:8], y, None), (y, y, (x + 5) * 2), (y, out, None), (out, out, None)):
        made = ox.transform(lambda v, w: v + w, first, second, out=out)
        assert wanted is None or (made.numpy() == wanted).all()


def test_only_so_many_plans_are_kept(dev: ox.Device) -> None:
    kept = Kept()
    some: Any = SimpleNamespace(elsewhere=False)
    for key in range(KEPT_MAX + 3):
        kept.put(key, some)
    assert kept.get(2) is None
    assert kept.get(3) is some
    kept.clear()
    assert kept.get(3) is None
    assert kept_by(dev) is kept_by(dev)


# ---- what is refused
def test_the_same_elements_are_left_alone(dev: ox.Device) -> None:
    a = dev.array(numbers((8, 8)))
    said = ox.copy(a, a, explain=True)
    assert said.launches == ()
    assert "same elements" in said.text


def refused(rule: str, error: type[OxidecopyError], dst: Any, src: Any, **options: Any) -> None:
    with pytest.raises(error) as caught:
        ox.copy(dst, src, **options)
    assert rule in caught.value.rules
    assert caught.value.diagnostics[0].site is not None
    assert caught.value.diagnostics[0].site.file == __file__


def test_what_cannot_be_copied_is_refused_at_the_users_line(dev: ox.Device) -> None:
    a = dev.array(numbers((8, 64)))
    refused("OX1200", ShapeError, dev.empty((64,), ox.f32), a)
    refused("OX1202", ArgumentError, a[1:], a[:-1])
    refused("OX1204", ArgumentError, a, 3)
    refused("OX1204", ArgumentError, None, None)
    with pytest.raises(ArgumentError, match=r"ox\.f16 makes a new array"):
        ox.copy("float16", a)  # type: ignore[call-overload]
    refused("OX1050", ArgumentError, ox.Device.open("sim").empty((8, 64), ox.f32), a)
    refused("OX5042", ArgumentError, a[:1].broadcast_to((8, 64)), dev.array(numbers((8, 64))))
    refused("OX5016", ArgumentError, None, a, explain="yes")
    refused("OX1051", ArgumentError, None, a, stream="s")
    fixed = numbers((8, 64))
    fixed.flags.writeable = False
    refused("OX5037", ArgumentError, dev.borrow(fixed, ox.f32), a)
    newer = ox.Device.open("sim", arch=100)
    packed = newer.array(np.zeros((4, 32), np.uint8), ox.u4x16_align8b)
    refused("OX1201", DTypeError, ox.u8, packed)


def test_parts_of_one_array_may_be_copied_to_each_other(dev: ox.Device) -> None:
    x = numbers((8, 64))
    a = dev.array(x)
    ox.copy(a[:4], a[4:])
    ox.copy(a[4:, :32], a[:4, 32:])
    x[:4] = x[4:]
    x[4:, :32] = x[:4, 32:]
    assert (a.numpy() == x).all()


@pytest.mark.parametrize(
    ("into", "of"), [(np.s_[:, ::2], np.s_[:, 1::2]), (np.s_[:, 1:30], np.s_[:, 33:62]), (np.s_[:, 1:30], np.s_[:, 1:30])]
)
def test_parts_that_lie_between_each_other_go_through_an_array_of_their_own(dev: ox.Device, into: Any, of: Any) -> None:
    x = numbers((8, 64))
    a = dev.array(x)
    assert ox.copy(a[into], a[of], explain=True).temporaries
    x[into] = x[of].copy()
    assert (a.numpy() == x).all()


def test_an_element_is_copied_to_one_beside_it(dev: ox.Device) -> None:
    x = numbers((1, 8))
    a = dev.array(x)
    ox.copy(a[:, :1], a[:, 1:2])  # what is loaded begins with the destination
    assert (a.numpy()[0] == [x[0, 1], *x[0, 1:]]).all()
