"""The measured edits of a map as one program for any engine: each on a tile of zeros, whose 128 bytes are then stored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import oxidecopy as ox
from oxidecopy.engines.base import Bindings, BoundArray, BoundMap
from oxidecopy.host.device import Device
from oxidecopy.isa.ops import MAP_FIELDS
from oxidecopy.program.program import ArrayInfo, Launch
from oxidecopy.program.text import from_text
from oxidecopy.program.verified import Assumptions, seal

Edit = tuple[str, int, int]  # field, entry, value as the instruction has it
ROWS: list[tuple[str, dict[str, str]]] = json.loads((Path(__file__).parents[1] / "cases/h200/tensormap_replace.json").read_text())["edits"]
FIELDS = dict(zip(("addr", "rank", "box", "dim", "stride", "es", "dt", "il", "sw", "fill"), MAP_FIELDS, strict=True))
BY_NUMBER = ("box", "dim", "stride", "es")  # their names have the entry, then the value
ADDRESS = 0x123456789ABCDEF0


def edit_of(name: str) -> Edit:
    """A row's name as the edit that it stands for."""
    match = re.fullmatch(r"([a-z]+)(\d+)?(?:_(\d+))?", name)
    assert match is not None
    kind, first, second = match[1], int(match[2] or 0), int(match[3] or 0)
    return (FIELDS[kind], first, second) if kind in BY_NUMBER else (FIELDS[kind], 0, ADDRESS if kind == "addr" else first)


def image_of(changes: dict[str, str]) -> bytes:
    """128 zero bytes with these."""
    data = bytearray(128)
    for offset, byte in changes.items():
        data[int(offset, 16)] = int(byte, 16)
    return bytes(data)


def ran(dev: Device, edits: list[Edit]) -> list[bytes]:
    """What an engine makes of each edit. The verifier has no say: it refuses fields that are written one by one."""
    lines = [
        "program edits threads=32 cluster=(1, 1, 1) shared=128:",
        "  array out: u8 rank=1",
        "  tile m: u8 (128,) align=128 at=0 step=128",
    ]
    lines.append("  scope elect {0}:")
    for i, (field, entry, value) in enumerate(edits):
        lines.append("    st.shared.fill m, 0")
        lines.append(f"    tensormap.replace {field} ord={entry}, value={value - (1 << 64) if value >> 63 else value}, m")
        lines.append(f"    st.global.tile out, m, [{128 * i}]")
    program = from_text("\n".join(lines) + "\n")
    out = dev.zeros((128 * len(edits),), ox.u8)
    info = ArrayInfo(dtype="u8", shape=out.shape, strides_bytes=(1,))
    launch = Launch(grid=(1, 1, 1), arrays=(("out", info),), sm=dev.engine.sm)
    proof = seal(program, Assumptions(sm=dev.engine.sm, shared_bytes=program.shared_bytes, launch=launch), ())
    arrays = {"out": BoundArray(info=info, buffer=out.buffer)}
    dev.engine.run(proof, Bindings(grid=(1, 1, 1), maps={}, arrays=arrays, idx={}, scalars={}))
    made = out.numpy().tobytes()
    return [made[128 * i : 128 * (i + 1)] for i in range(len(edits))]


def bound_to(dev: Device, grid: tuple[int, int, int], infos: dict[str, ArrayInfo]) -> tuple[Launch, Bindings]:
    """A launch of programs over `src`, a map of 48 x 64 f32 in boxes of 8 x 32, arrays x and y of that size, cuts and slots."""
    source, x, y = (dev.zeros((48, 64), ox.f32) for _ in range(3))
    slots = dev.zeros((8 * grid[0], 128), ox.u8)
    map_ = ox.TmaDescriptor.tiled(source, box=(8, 32)).tensor_map
    found: dict[str, ox.GlobalArray[Any, Any]] = {"x": x, "y": y, "cuts": dev.zeros((8,), ox.i32), "slots": slots}
    made = {}
    for name, array in found.items():
        plain = ArrayInfo(
            dtype=array.dtype.info.name, shape=array.shape, strides_bytes=array.strides_bytes, align=128 if name == "slots" else 16
        )
        made[name] = BoundArray(info=infos.get(name, plain), buffer=array.buffer)
    launch = Launch(grid=grid, maps=(("src", map_),), arrays=tuple(sorted((name, a.info) for name, a in made.items())))
    maps = {"src": BoundMap(map=map_, buffer=source.buffer)}
    return launch, Bindings(grid=grid, maps=maps, arrays=made, idx={}, scalars={})
