"""The validator against the driver's own verdicts, as measured on an H200: all 550 calls."""

from __future__ import annotations

from collections import Counter

import pytest

from oxidecopy.maps.validate import validate
from tests.helpers.encode_rows import Row, parameters, rows

COLUMNS, ROWS = rows()
NO_MAP = "map pointer null; "  # the map's own pointer, which is no parameter of the map


@pytest.mark.parametrize("row", [row for row in ROWS if row[13] != NO_MAP], ids=lambda row: row[0])
def test_driver_agrees(row: Row) -> None:
    verdict = validate(parameters(row))
    assert verdict.encodes == (row[-1] == 0), verdict


def test_vectors_are_complete() -> None:
    assert len(COLUMNS) == len(ROWS[0]) == 15
    assert Counter((row[1], row[-1]) for row in ROWS) == {
        ("tiled", 0): 203,
        ("tiled", 1): 191,
        ("im2col", 0): 75,
        ("im2col", 1): 76,
        ("wide", 0): 4,
        ("wide", 1): 1,
    }
    assert sum(row[13] == NO_MAP for row in ROWS) == 1


def test_encoding_and_being_usable_are_two_questions() -> None:
    usable = {row[0]: validate(parameters(row)) for row in ROWS if row[-1] == 0 and row[13] != NO_MAP}
    useless = {name: verdict.errors[0].rule for name, verdict in usable.items() if not verdict.usable}
    assert useless["dim0_4294967296"] == "OX2004"
    assert useless["es0_2"] == useless["i4_es0_8"] == "OX2018"
    assert useless["wide_sw3_m0"] == "OX2052"
    assert "es1_2" not in useless
    assert "il2_es0_8" not in useless  # with interleave the innermost step counts
    assert "i4_dimN_4294967296" in useless
