"""Runs command lines in this process, and files for them to run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from oxidecopy.cli.app import app

# One launch that runs: a copy of at least 64 floats by one CTA. Tests break it by replacing a part.
TILES = """\
import numpy as np
import numpy.typing as npt

import oxidecopy as ox


@ox.pipeline(threads=32)
def tiles(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D1], out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (cta.block_idx.x * 64,), token)
    full.wait(token)
    cta.store(out, tile, (cta.block_idx.x * 64,))
    full.inval()


@tiles.recipe
def whole(dev: ox.Device, x: npt.NDArray[np.float32] | None = None) -> ox.Recipe:
    flat = np.arange(256, dtype=np.float32) if x is None else x.reshape(-1)
    src, out = dev.array(flat), dev.empty(flat.shape, ox.f32)
    launch = tiles[-(-flat.size // 64)].bind(ox.TmaDescriptor.tiled(src, box=(64,)), out)
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": flat})
"""


def another(name: str, source: str = TILES) -> str:
    """The same launch once more, under another name, to be put behind the first."""
    body = source.partition("import oxidecopy as ox\n")[2]
    return (
        body.replace("def tiles", f"def {name}")
        .replace("@tiles.", f"@{name}.")
        .replace("tiles[", f"{name}[")
        .replace("def whole", f"def {name}_whole")
    )


# Two launches; the second expects too few bytes, and is declared to be refused for it.
TWIN = TILES + another("twin").replace("tile.nbytes", "tile.nbytes - 16").replace("@twin.recipe", '@twin.recipe(refused="OX3021")')


def line_of(source: str, part: str, nth: int = 0) -> int:
    """The 1-based line of the nth line that holds `part`."""
    return [n for n, line in enumerate(source.splitlines(), 1) if part in line][nth]


def command(*arguments: str | Path) -> Result:
    """Runs `oxidecopy` with these arguments; a Python exception other than an exit fails the test."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def json_of(result: Result) -> Any:
    """What was printed, as one JSON document."""
    return json.loads(result.stdout)
