"""The measured encode calls as parameters of the validator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast

from oxidecopy.maps.parameters import Kind, MapParameters

PATH: Final = Path(__file__).parents[1] / "cases" / "h200" / "encode.json"
BASE: Final = 0x7F00_0000_0000  # stands for the 512-aligned device address that offsets count from
_NULLS: Final = {"dims": "global_dim", "strides": "global_strides", "box": "box_dim", "es": "element_strides"}

Row = list[Any]


def rows() -> tuple[list[str], list[Row]]:
    """The columns and all rows."""
    data = json.loads(PATH.read_text())
    return data["columns"], data["encode"]


def parameters(row: Row) -> MapParameters:
    """A row's arguments, turned outermost first."""
    _, kind, dtype, rank, address, dims, strides, box, steps, interleave, swizzle, promotion, fill, note, _ = row
    fields: dict[str, Any] = {
        "kind": cast("Kind", "im2col_wide" if kind == "wide" else kind),
        "dtype": dtype,
        "global_address": _address(address),
        "global_dim": tuple(dims),
        "global_strides": tuple(strides),
        "element_strides": tuple(steps),
        "interleave": interleave,
        "swizzle": swizzle,
        "l2_promotion": promotion,
        "oob_fill": fill,
    }
    if kind == "tiled":
        fields["box_dim"] = tuple(box)
    else:
        lower, upper, fields["channels"], fields["pixels"] = box
        fields |= {"lower": tuple(lower), "upper": tuple(upper)}
    if note.startswith("mode "):
        fields["wide_mode"] = int(note[5:])
    if note.startswith("null pointer: "):
        fields[_NULLS[note.removeprefix("null pointer: ")]] = None
    return MapParameters(**fields).turned(rank)


def _address(value: int | str) -> int:
    if value == "null":
        return 0
    return int(value, 16) if isinstance(value, str) else BASE + value
