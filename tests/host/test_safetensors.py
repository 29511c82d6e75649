"""Files of weights: what is written as the format says is read, and a damaged file is refused before anything of it is believed."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.errors import InputError

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def save(path: Path, header: Any, data: bytes = b"", *, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(dtype: str, shape: Any, start: int, stop: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def test_tensors_by_name(tmp_path: Path) -> None:
    half = X.astype(ml_dtypes.bfloat16)
    header = {"__metadata__": {"format": "pt"}, "a": entry("F32", [3, 4], 0, 48), "b": entry("BF16", [3, 4], 48, 72)}
    path = save(tmp_path / "w.safetensors", header, X.tobytes() + half.tobytes())
    assert (ox.read_safetensors(path, "a") == X).all()
    found = ox.read_safetensors(path, "b")
    assert found.dtype == half.dtype
    assert (found == half).all()
    only = save(tmp_path / "one.safetensors", {"w": entry("F8_E4M3", [4], 0, 4)}, bytes(4))
    assert ox.read_safetensors(only).shape == (4,)


BROKEN = {
    "empty": (b"", b"", None, "OX1220"),
    "no JSON": (b"{nonsense}", b"", None, "OX1220"),
    "no object": (b"[1, 2]", b"", None, "OX1220"),
    "a header beyond the file": (b"{}", b"", 1 << 40, "OX1220"),
    "nested without end": (b"[" * 100_000, b"", None, "OX1220"),
    "entries that are none": ({"w": 3}, b"", None, "OX1220"),
    "negative extents": ({"w": entry("F32", [-1, 4], 0, 16)}, bytes(16), None, "OX1220"),
    "cut short": ({"w": entry("F32", [3, 4], 0, 48)}, bytes(40), None, "OX1220"),
    "offsets of another size": ({"w": entry("F32", [3, 4], 0, 40)}, bytes(48), None, "OX1220"),
    "a terabyte": ({"w": entry("F32", [1 << 38], 0, 1 << 40)}, bytes(48), None, "OX1220"),
    "another name": ({"v": entry("F32", [3, 4], 0, 48)}, X.tobytes(), None, "OX1221"),
    "no tensors": ({}, b"", None, "OX1221"),
    "a type without elements": ({"w": entry("BOOL", [4], 0, 4)}, bytes(4), None, "OX1222"),
    "rank 6": ({"w": entry("F32", [1] * 6, 0, 4)}, bytes(4), None, "OX5007"),
    "nothing in it": ({"w": entry("F32", [0, 4], 0, 0)}, b"", None, "OX5006"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_not_right_is_refused(name: str, tmp_path: Path) -> None:
    header, data, length, rule = BROKEN[name]
    with pytest.raises(InputError) as caught:
        ox.read_safetensors(save(tmp_path / "w.safetensors", header, data, length=length), "w")
    assert rule in caught.value.rules


def test_a_file_that_is_not_there_or_another_one(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    for path in (tmp_path / "none.safetensors", tmp_path / "x.npy", tmp_path):
        with pytest.raises(InputError):
            ox.read_safetensors(path)


def test_what_is_no_path_and_no_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    wrong: list[Any] = [tmp_path / "pipe", None, 3, b"w.safetensors", "a\0b"]
    for path in wrong:
        with pytest.raises(InputError) as caught:
            ox.read_safetensors(path)
        assert caught.value.rules == ("OX1220",)
    name: Any = ["w"]
    with pytest.raises(InputError) as caught:
        ox.read_safetensors(save(tmp_path / "w.safetensors", {"w": entry("F32", [3, 4], 0, 48)}, X.tobytes()), name)
    assert caught.value.rules == ("OX1221",)


def test_which_tensor_is_meant_is_not_guessed(tmp_path: Path) -> None:
    header = {f"layer.{i}": entry("U8", [1], i, i + 1) for i in range(9)}
    with pytest.raises(InputError) as caught:
        ox.read_safetensors(save(tmp_path / "w.safetensors", header, bytes(9)))
    assert "layer.0" in str(caught.value)
    assert "4 more" in str(caught.value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_an_error_of_ours_or_leaves_the_tensor_readable(data: st.DataObject, tmp_path: Path) -> None:
    path = save(tmp_path / "w.safetensors", {"w": entry("F32", [3, 4], 0, 48)}, X.tobytes())
    raw = bytearray(path.read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    with suppress(InputError):
        assert ox.read_safetensors(path, "w").nbytes <= 48
