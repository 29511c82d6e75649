"""`.npy` files: whole ones in every form, damaged ones refused with what is wrong, writes whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from oxidecopy.errors import InputError, UsageError
from oxidecopy.host.npy import load_npy, save_npy


def _refused(path: Path, *rules: str) -> str:
    with pytest.raises(InputError) as caught:
        load_npy(path)
    assert caught.value.rules == rules
    assert all(d.got and d.required and d.fix and d.site is not None and d.site.file == __file__ for d in caught.value.diagnostics)
    return str(caught.value)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6, dtype=np.float32),
        np.arange(24, dtype=np.int64).reshape(2, 3, 4),
        np.asfortranarray(np.arange(12, dtype=np.float16).reshape(3, 4)),
        np.arange(6, dtype=">f4"),
        np.arange(6, dtype=">u2").reshape(3, 2),
    ],
)
def test_numpy_files_are_read(tmp_path: Path, x: np.ndarray[Any, Any]) -> None:
    np.save(tmp_path / "x.npy", x)
    got = load_npy(tmp_path / "x.npy")
    assert got.dtype == x.dtype.newbyteorder("=")
    assert got.dtype.isnative
    assert got.flags.writeable
    assert got.shape == x.shape
    assert (got == x).all()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_format_versions(tmp_path: Path, version: tuple[int, int]) -> None:
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, np.arange(5, dtype=np.int32), version=version)
    assert (load_npy(tmp_path / "x.npy") == np.arange(5)).all()


def test_ml_dtypes_come_back_as_raw_bytes(tmp_path: Path) -> None:
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    save_npy(tmp_path / "x.npy", x)
    got = load_npy(tmp_path / "x.npy")
    assert got.dtype == np.dtype("V2")
    assert (got.view(ml_dtypes.bfloat16) == x).all()


def test_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    np.save(tmp_path / "near.npy", np.ones(2))
    assert "near.npy" in _refused(tmp_path / "x.npy", "OX5020")


def test_missing_file_without_neighbours(tmp_path: Path) -> None:
    assert "no .npy file" in _refused(tmp_path / "x.npy", "OX5020")
    assert "is not there either" in _refused(tmp_path / "no" / "x.npy", "OX5020")


def test_directory_and_device(tmp_path: Path) -> None:
    assert "a directory" in _refused(tmp_path, "OX5021")
    assert "a device or pipe" in _refused(Path("/dev/null"), "OX5021")


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", np.ones(2))

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert "Permission denied" in _refused(tmp_path / "x.npy", "OX5022")
    _refused(tmp_path / "x.npy" / "under_a_file", "OX5022")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "it is empty"),
        (b"hello world", "it begins with b'hello '"),
        (b"PK\x03\x04........", "a .npz"),
        (b"\x80\x04.........", "pickle"),
        (b"\x93NUMPX\x01\x00", "begins"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, word: str) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    assert word in _refused(tmp_path / "x.npy", "OX5023")


_START = b"\x93NUMPY\x01\x00"


def _with_header(text: bytes) -> bytes:
    return _START + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        _START[:6],
        _START[:7],
        _START,
        _START + b"\x76",
        _START + b"\x76\x00",
        _START + b"\x76\x00{'descr'",
        b"\x93NUMPY\x09\x00\x10\x00",
        _with_header(b"{'descr': "),
        _with_header(b"[1, 2]"),
        _with_header(b"\xff\xfe"),
        _with_header(b"{'descr': '<f4', 'fortran_order': False}"),
        _with_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': 5}"),
        _with_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-5,)}"),
        _with_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}"),
        _with_header(b"{'descr': '<q9', 'fortran_order': False, 'shape': (5,)}"),
        _with_header(b"{'descr': '<f4', 'fortran_order': 0, 'shape': (5,)}"),
        _with_header(b"__import__('os').getpid()"),
        b"\x93NUMPY\x02\x00" + (1 << 30).to_bytes(4, "little") + b"{}",
        _with_header(b"(" * 60_000),
    ],
)
def test_damaged_header(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    _refused(tmp_path / "x.npy", "OX5024")


def test_every_truncation_and_extension_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    whole = (tmp_path / "x.npy").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "y.npy").write_bytes(whole[:length])
        with pytest.raises(InputError) as caught:
            load_npy(tmp_path / "y.npy")
        assert caught.value.rule in ("OX5023", "OX5024", "OX5025")
    (tmp_path / "y.npy").write_bytes(whole[:-4])
    text = _refused(tmp_path / "y.npy", "OX5025")
    assert "12 bytes" in text
    assert "16 bytes for shape (4,) of float32" in text
    (tmp_path / "y.npy").write_bytes(whole + b"\0")
    assert "goes on" in _refused(tmp_path / "y.npy", "OX5025")


def test_every_flipped_header_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    whole = bytearray((tmp_path / "x.npy").read_bytes())
    for at in range(128):
        for bit in (0x01, 0x80):
            whole[at] ^= bit
            (tmp_path / "y.npy").write_bytes(whole)
            with contextlib.suppress(InputError):
                assert load_npy(tmp_path / "y.npy").nbytes == 16
            whole[at] ^= bit


def test_huge_declared_shape_is_not_allocated(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(_with_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}"))
    assert "4,835,703,278,458,516,698,824,704 bytes" in _refused(tmp_path / "x.npy", "OX5025")


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([None, 1]), allow_pickle=True)
    assert "pickled" in _refused(tmp_path / "x.npy", "OX5026")


@pytest.mark.parametrize(
    ("x", "rules"),
    [
        (np.zeros((3, 0), np.float32), ("OX5006",)),
        (np.float32(1), ("OX5007",)),
        (np.zeros(3, np.complex64), ("OX5002",)),
        (np.zeros((1,) * 6, "U3"), ("OX5007", "OX5002")),
        (np.zeros(3, [("a", ">f4")]), ("OX5002",)),
    ],
)
def test_arrays_for_no_device(tmp_path: Path, x: Any, rules: tuple[str, ...]) -> None:
    np.save(tmp_path / "x.npy", x)
    assert "x.npy" in _refused(tmp_path / "x.npy", *rules)


def test_saved_file_is_numpys(tmp_path: Path) -> None:
    save_npy(tmp_path / "out", np.arange(3, dtype=np.float32))
    assert (np.load(tmp_path / "out") == np.arange(3)).all()
    assert os.listdir(tmp_path) == ["out"]


def test_saving_through_a_link_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "link.npy").symlink_to(tmp_path / "x.npy")
    save_npy(tmp_path / "link.npy", np.arange(3))
    assert (tmp_path / "link.npy").is_symlink()
    assert (np.load(tmp_path / "x.npy") == np.arange(3)).all()


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError, OSError(28, "No space left on device")])
def test_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: Any) -> None:
    save_npy(tmp_path / "x.npy", np.arange(3))
    before = (tmp_path / "x.npy").read_bytes()

    def half(file: Any, *_: object, **__: object) -> None:
        file.write(b"half")
        raise interruption

    monkeypatch.setattr(np, "save", half)
    with pytest.raises(BaseException) as caught:
        save_npy(tmp_path / "x.npy", np.arange(4))
    assert isinstance(caught.value, (KeyboardInterrupt, MemoryError, UsageError))
    assert (tmp_path / "x.npy").read_bytes() == before
    assert os.listdir(tmp_path) == ["x.npy"]


@pytest.mark.parametrize("name", ["missing/x.npy", "."])
def test_unwritable(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        save_npy(tmp_path / name, np.arange(4))
    assert caught.value.rules == ("OX5027",)
    assert not os.listdir(tmp_path)


def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    """As root, a result for /dev/null would otherwise take its place for the whole machine."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError) as caught:
        save_npy(tmp_path / "pipe", np.arange(4))
    assert caught.value.rules == ("OX5027",)
    assert "it is a device or pipe" in str(caught.value)
    assert os.listdir(tmp_path) == ["pipe"]
    assert (tmp_path / "pipe").is_fifo()
