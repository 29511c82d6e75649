"""Which tiles `oxidecopy show tile` draws: one from options, or those of a pipeline where it has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, final

from oxidecopy.draw.checks import address_faults, tile_faults
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.errors import DescriptorError, Diagnostic, UsageError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import SHARED_BASE, TENSOR_SMEM_ALIGN
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.typed.sites import no_sites

if TYPE_CHECKING:
    from oxidecopy.program.program import TileDecl

_BOX: Final = re.compile(r"\d+([,x]\d+)*")
_SEPARATORS: Final = re.compile(r"\s*[,x\s]\s*")
_STAGE: Final = re.compile(r"(?P<name>\w+)\[(?P<stage>\d+)\]")
_PLAIN_ALIGN: Final = 16  # of tiles that no tensor copy uses


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A box, as far as it was said."""

    box: str | None
    dtype: str | None
    swizzle: str | None
    stored: bool

    @property
    def given(self) -> list[str]:
        said = {"--box": self.box, "--dtype": self.dtype, "--swizzle": self.swizzle, "--stored": self.stored or None}
        return [name for name, value in said.items() if value is not None]


def from_options(options: Options, at: str | None, wanted: str | None, inputs: list[Path]) -> dict[str, PlacedTile]:
    """The tile that options describe, under no name.

    Raises:
        UsageError: an option cannot be read or has no use here, or the address is not one of a tensor copy.
        DescriptorError: no map has such a box; with every broken rule.
    """
    if wanted is not None:
        refuse("--tile picks one of a pipeline's tiles", got=f"--tile {wanted} without FILE", fix=f"FILE:NAME --tile {wanted}")
    if inputs:
        refuse("--input is for a pipeline's recipe", got=f"{len(inputs)} without FILE", fix="leave --input out")
    if options.box is None:
        refuse("there is nothing to draw", got="neither a box nor a file", fix="--box 64,32 --dtype f32 --swizzle 128B, or FILE:NAME")
    mode = re.sub(r"^(ox\.)?(swizzle)?", "", options.swizzle or "none", flags=re.IGNORECASE)  # as in ox.Swizzle128B
    tile = PlacedTile(
        shape=_extents(options.box),
        dtype=_named("element type", (options.dtype or "f32").removeprefix("ox."), {name: name for name in DTYPES}, "--dtype"),
        swizzle=_named("swizzle", mode, {name.lower(): name for name in EVERY_SWIZZLE}, "--swizzle"),
        address=_address(at),
        stored=options.stored,
    )
    if options.stored and tile.info.bits != 6:
        refuse("only 6-bit elements have a form of their own for stores", got=tile.dtype, fix="leave --stored out")
    with no_sites():
        faults = tile_faults(tile)
        if faults:
            raise (UsageError if all(f.rule.startswith("OX6") for f in faults) else DescriptorError)(*faults)
    return {"": tile}


def from_pipeline(target: str, options: Options, inputs: list[Path], wanted: str | None, at: str | None) -> dict[str, PlacedTile]:
    """The tiles of a file's pipeline by name, the first stage of each; `wanted` picks one, or a stage of one, which `at` moves.

    Raises:
        UsageError: the file has no such pipeline or tile, or options say what it says itself.
        OxidecopyError: what the recorder or the host refuses.
    """
    from oxidecopy.cli.show import recorded

    if _BOX.fullmatch(target):
        refuse(f"{target} is no file", got=target, fix=f"--box {target}")
    if options.given:
        words = ", ".join(options.given)
        refuse(f"{target} says what its tiles are", got=words, fix=f"leave {words} out, or the file")
    program, _, _ = recorded(target, inputs)
    declared = {tile.name: tile for tile in program.tiles}
    if not declared:
        refuse(f"{program.name} has no shared tiles", got="a pipeline without any", fix="name another pipeline, or give --box")
    chosen = {_name(tile, 0): (tile, 0) for tile in declared.values()} if wanted is None else _picked(program.name, declared, wanted)
    if at is None:
        return {name: _placed(tile, SHARED_BASE + tile.offset + stage * tile.stage_bytes) for name, (tile, stage) in chosen.items()}
    if len(chosen) > 1:
        refuse("--at moves one tile", got=", ".join(declared), fix=f"--tile {next(iter(declared))} --at {at}")
    [(name, (tile, _))] = chosen.items()
    address = _address(at)
    faults = address_faults(address, TENSOR_SMEM_ALIGN if tile.align >= TENSOR_SMEM_ALIGN else _PLAIN_ALIGN)
    if faults:
        raise UsageError(*faults)
    return {name: _placed(tile, address)}


def _picked(program: str, declared: dict[str, TileDecl], wanted: str) -> dict[str, tuple[TileDecl, int]]:
    """`name`, or `name[2]` for a stage."""
    part = _STAGE.fullmatch(wanted)
    name, stage = (part["name"], int(part["stage"])) if part else (wanted, 0)
    if name not in declared:
        close = get_close_matches(name, declared, 1)
        refuse(f"{program} has no tile {name!r}", got=", ".join(declared), fix=f"--tile {(close or list(declared))[0]}")
    tile = declared[name]
    if stage >= tile.stages:
        refuse(f"{name} has no stage {stage}", got=f"{tile.stages} stages, counted from 0", fix=f"--tile {_name(tile, tile.stages - 1)}")
    return {_name(tile, stage): (tile, stage)}


def _name(tile: TileDecl, stage: int) -> str:
    return tile.name if tile.stages == 1 else f"{tile.name}[{stage}]"


def _placed(tile: TileDecl, address: int) -> PlacedTile:
    dense = not DTYPES[tile.dtype].group_bytes and tile.layout.dense
    return PlacedTile(shape=tile.shape, dtype=tile.dtype, swizzle=tile.swizzle, address=address, dense=dense)


def refuse(what: str, *, got: str, fix: str, required: str = "one box by its options, or a pipeline's tiles") -> NoReturn:
    """An error of how the command is used."""
    raise UsageError(Diagnostic(rule="OX6020", what=what, got=got, required=required, fix=fix))


def _extents(words: str) -> tuple[int, ...]:
    try:
        return tuple([int(part) for part in _SEPARATORS.split(words.strip().strip("()"))])
    except ValueError:
        refuse(f"--box {words} is no box", got=words, fix="--box 64,32", required="extents in elements, outermost first")


def _named(what: str, name: str, known: dict[str, str], option: str) -> str:
    """The known name that was meant, whatever its case."""
    found = known.get(name.lower())
    if found is None:
        close = get_close_matches(name.lower(), known, 1)
        fix = f"{option} {known[close[0]]}" if close else f"one of {', '.join(known.values())}"
        refuse(f"there is no {what} {name}", got=name, fix=fix, required=", ".join(known.values()))
    return found


def _address(words: str | None) -> int:
    if words is None:
        return SHARED_BASE
    try:
        return int(words, 0)
    except ValueError:
        refuse(f"--at {words} is no address", got=words, fix=f"--at {SHARED_BASE:#x}", required="a number: 1024, or 0x400")
