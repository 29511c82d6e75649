"""The encode calls as plain C: the order of their arguments, and what never reaches them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oxidecopy.engines.cuda.encode_call import EncodeCalls
from oxidecopy.errors import UsageError
from oxidecopy.maps.parameters import MapParameters
from tests.helpers.fake_library import FakeLibrary

TILED = MapParameters(
    dtype=7,
    global_address=0x7000,
    global_dim=(4, 9, 50),
    global_strides=(1872, 208),
    box_dim=(1, 8, 16),
    element_strides=(3, 2, 1),
    interleave=1,
    swizzle=2,
    l2_promotion=3,
    oob_fill=1,
)
IM2COL = replace(
    TILED,
    kind="im2col",
    box_dim=(),
    global_dim=(4, 8, 9, 50),
    global_strides=(14976, 1872, 208),
    element_strides=(4, 3, 2, 1),
    lower=(-2, -1),
    upper=(-4, -3),
    channels=16,
    pixels=14,
)


def padded(*values: int) -> list[int]:
    return [*values, *(0 for _ in range(8 - len(values)))]


def test_tiled() -> None:
    library = FakeLibrary()
    code, data = EncodeCalls(library).encode(TILED)
    assert (code, data) == (0, b"\x5a" * 128)
    ((name, values),) = library.calls
    assert name == "cuTensorMapEncodeTiled"
    assert values[0] % 64 == 0
    arrays = [padded(50, 9, 4), padded(208, 1872), padded(16, 8, 1), padded(1, 2, 3)]
    assert values[1:] == [7, 3, 0x7000, *arrays, 1, 2, 3, 1]


def test_im2col() -> None:
    library = FakeLibrary()
    EncodeCalls(library).encode(IM2COL)
    ((name, values),) = library.calls
    assert name == "cuTensorMapEncodeIm2col"
    arrays = [padded(50, 9, 8, 4), padded(208, 1872, 14976), padded(-1, -2), padded(-3, -4)]
    assert values[1:] == [7, 4, 0x7000, *arrays, 16, 14, padded(1, 2, 3, 4), 1, 2, 3, 1]


def test_wide() -> None:
    library = FakeLibrary()
    EncodeCalls(library).encode(replace(IM2COL, kind="im2col_wide", lower=(-2,), upper=(-4,), wide_mode=1))
    ((name, values),) = library.calls
    assert name == "cuTensorMapEncodeIm2colWide"
    assert values[1:] == [7, 4, 0x7000, padded(50, 9, 8, 4), padded(208, 1872, 14976), -2, -4, 16, 14, padded(1, 2, 3, 4), 1, 1, 2, 3, 1]


def test_a_refusal_has_a_code_and_no_bytes() -> None:
    assert EncodeCalls(FakeLibrary(refuse=lambda *_: True)).encode(TILED) == (1, b"")


def test_any_number_reaches_the_driver() -> None:
    library = FakeLibrary()
    EncodeCalls(library).encode(replace(TILED, dtype=99, swizzle=(1 << 32) - 1, global_dim=((1 << 64) - 1, 9, 50)))
    assert library.calls[0][1][1] == 99
    assert library.calls[0][1][4][2] == (1 << 64) - 1
    assert library.calls[0][1][9] == (1 << 32) - 1


@pytest.mark.parametrize(
    "changes",
    [
        {"global_dim": None},
        {"global_strides": None},
        {"global_strides": (208,)},
        {"box_dim": None},
        {"box_dim": (1, 8, 16, 4)},
        {"element_strides": (1,)},
        {"kind": "im2col", "lower": None, "upper": (0,)},
        {"kind": "im2col", "lower": (0,), "upper": ()},
        {"kind": "im2col_wide", "lower": (), "upper": (0,)},
        {"global_dim": (1,) * 7, "global_strides": (16,) * 6, "box_dim": (1,) * 7, "element_strides": (1,) * 7},
    ],
)
def test_what_would_crash_the_call_never_reaches_it(changes: dict[str, Any]) -> None:
    library = FakeLibrary()
    with pytest.raises(UsageError) as caught:
        EncodeCalls(library).encode(replace(TILED, **changes))
    assert caught.value.rules == ("OX2056",)
    assert not library.calls
