"""Which tiles `oxidecopy show tile` draws: one from options, or those of a pipeline where it has them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, NoReturn

from oxidecopy.draw.checks import address_faults, tile_faults
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.errors import DescriptorError, Diagnostic, UsageError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import SHARED_BASE, TENSOR_SMEM_ALIGN
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.typed.sites import no_sites

_PLAIN_ALIGN: Final = 16  # of tiles that no tensor copy uses


def from_options(box: str | None, dtype: str | None, swizzle: str | None, at: str | None, *, stored: bool) -> PlacedTile:
    """The tile that options describe.

    Raises:
        UsageError: an option cannot be read, or the address is not one of a tensor copy.
        DescriptorError: no map has such a box; with every broken rule.
    """
    if box is None:
        refuse("there is nothing to draw", got="neither a box nor a file", fix="--box 64,32 --dtype f32 --swizzle 128B, or FILE:NAME")
    tile = PlacedTile(
        shape=_extents(box),
        dtype=_named("element type", dtype or "f32", {name: name for name in DTYPES}, "--dtype"),
        swizzle=_named("swizzle", swizzle or "none", {name.lower(): name for name in EVERY_SWIZZLE}, "--swizzle"),
        address=_address(at),
        stored=stored,
    )
    if stored and tile.info.bits != 6:
        refuse("only 6-bit elements have a form of their own for stores", got=tile.dtype, fix="leave --stored out")
    with no_sites():
        faults = tile_faults(tile)
        if faults:
            raise (UsageError if all(f.rule.startswith("OX6") for f in faults) else DescriptorError)(*faults)
    return tile


def from_pipeline(target: str, wanted: str | None, at: str | None) -> dict[str, PlacedTile]:
    """The tiles of a file's pipeline by name, the first stage of each; `wanted` picks one, which `at` moves.

    Raises:
        UsageError: the file has no such pipeline or tile.
        OxidecopyError: what the recorder or the host refuses.
    """
    from oxidecopy.cli.show import recorded

    program, _, _ = recorded(target, [])
    declared = {tile.name: tile for tile in program.tiles}
    if not declared:
        refuse(f"{program.name} has no shared tiles", got="a pipeline without any", fix="name another pipeline, or give --box")
    if wanted is not None and wanted not in declared:
        close = get_close_matches(wanted, declared, 1)
        refuse(f"{program.name} has no tile {wanted!r}", got=", ".join(declared), fix=f"--tile {(close or list(declared))[0]}")
    if at is not None and wanted is None and len(declared) > 1:
        refuse("--at moves one tile", got=", ".join(declared), fix=f"--tile {next(iter(declared))} --at {at}")
    chosen = [declared[wanted]] if wanted is not None else list(declared.values())
    placed = {}
    for tile in chosen:
        address = SHARED_BASE + tile.offset if at is None else _address(at)
        faults = address_faults(address, TENSOR_SMEM_ALIGN if tile.align >= TENSOR_SMEM_ALIGN else _PLAIN_ALIGN) if at is not None else []
        if faults:
            raise UsageError(*faults)
        placed[tile.name] = PlacedTile(shape=tile.shape, dtype=tile.dtype, swizzle=tile.swizzle, address=address, dense=tile.layout.dense)
    return placed


def refuse_options(target: str, given: list[str]) -> None:
    """A pipeline says itself what its tiles are."""
    if given:
        refuse(f"{target} says what its tiles are", got=", ".join(given), fix=f"leave {', '.join(given)} out, or the file")


def refuse(what: str, *, got: str, fix: str) -> NoReturn:
    """An error of how the command is used."""
    raise UsageError(Diagnostic(rule="OX6020", what=what, got=got, required="one box by its options, or a pipeline's tiles", fix=fix))


def _extents(words: str) -> tuple[int, ...]:
    try:
        return tuple([int(part) for part in words.strip().strip("()").replace("x", ",").split(",")])
    except ValueError:
        refuse(f"--box {words} is no box", got=words, fix="--box 64,32: extents in elements, outermost first")


def _named(what: str, name: str, known: dict[str, str], option: str) -> str:
    """The known name that was meant, whatever its case."""
    found = known.get(name.lower())
    if found is None:
        close = get_close_matches(name.lower(), known, 1)
        fix = f"{option} {known[close[0]]}" if close else f"one of {', '.join(known.values())}"
        refuse(f"there is no {what} {name}", got=name, fix=fix)
    return found


def _address(words: str | None) -> int:
    if words is None:
        return SHARED_BASE
    try:
        return int(words, 0)
    except ValueError:
        refuse(f"--at {words} is no address", got=words, fix=f"--at {SHARED_BASE:#x}")
