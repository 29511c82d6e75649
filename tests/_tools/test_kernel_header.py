"""The declarations that kernels are compiled with: as in `abi`, and as committed."""

from pathlib import Path

import pytest

from oxidecopy._tools.kernel_header import HEADER, main
from oxidecopy.engines.cuda import abi, abi_header


def test_the_committed_header_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_a_changed_header_is_noticed_and_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "abi.h"
    path.write_text(HEADER.read_text().replace("OP_END = 0x80", "OP_END = 0x81"))
    assert main(["--check"], path) == 1
    assert "out of date" in capsys.readouterr().err
    assert main([], path) == 0
    assert path.read_text() == HEADER.read_text()
    assert main(["--check"], path) == 0


def test_every_opcode_and_field_is_declared() -> None:
    text = abi_header.header_text()
    for op in abi.DeviceOp:
        assert f"OP_{op.name} = {op.value:#x}," in text
    for name, fields, nbytes in abi_header.STRUCTS:
        assert f"static_assert(sizeof({name}) == {nbytes});" in text
        for field, _, offset in fields:
            assert f"static_assert(OFFSET_OF({name}, {field}) == {offset});" in text


def test_the_hash_follows_the_declarations(monkeypatch: pytest.MonkeyPatch) -> None:
    before = abi_header.abi_hash()
    abi_header.header_text.cache_clear()
    monkeypatch.setattr(abi, "STACK_DEPTH", 5)
    changed = abi_header.abi_hash()
    monkeypatch.undo()
    abi_header.header_text.cache_clear()
    assert before != changed
    assert abi_header.abi_hash() == before


def test_fields_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        abi_header._struct("Bad", (("a", "u32", 0), ("b", "u32", 2)), 8)
