"""What the driver of an H200 wrote for 200 maps, against what is read of it and what is known of its layout."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oxidecopy.engines.sim.map_image import encoded
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import validate
from oxidecopy.program.map_bytes import decode

MAPS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "cases" / "h200" / "map_bytes.json").read_text())["maps"]
ONLY_IM2COL: dict[str, Any] = {"lower": (), "upper": (), "channels": 0, "pixels": 0}


@pytest.mark.parametrize("row", MAPS, ids=lambda row: f"{row['kind']} {row['dtype']}")
def test_the_bytes_say_the_arguments(row: dict[str, Any]) -> None:
    given = MapParameters.from_data({name: value for name, value in row.items() if name != "bytes"})
    found = decode(bytes.fromhex(row["bytes"]))
    assert found.tensor_map is not None
    read = replace(MapParameters.of(found.tensor_map, found.address), element="")
    assert validate(given).encodes
    if given.kind == "tiled":
        given = replace(given, **ONLY_IM2COL)
    elif given.kind == "im2col_wide":  # on 9.0 an im2col map whose other corners are 0
        others = (0,) * (given.rank - 3)
        given = replace(given, kind="im2col", lower=(*others, *(given.lower or ())), upper=(*others, *(given.upper or ())), wide_mode=0)
    assert read == given
    assert (found.unknown, found.oddities) == ((), ())
    assert encoded(found.tensor_map, found.address) == bytes.fromhex(row["bytes"])


def test_all_kinds_are_there() -> None:
    assert len(MAPS) == 200
    assert {row["kind"] for row in MAPS} == {"tiled", "im2col", "im2col_wide"}
    assert len({row["dtype"] for row in MAPS}) == 13
