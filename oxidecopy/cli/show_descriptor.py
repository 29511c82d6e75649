"""`oxidecopy show descriptor`: what a tensor map says and what follows from it, of a pipeline or of raw bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from oxidecopy.cli.options import AsJson, Inputs
from oxidecopy.cli.report import OK, diagnostics_json, first_line, guarded, out, print_json
from oxidecopy.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from oxidecopy.cli.descriptor_words import Row
    from oxidecopy.maps.validate import Verdict
    from oxidecopy.program.map_bytes import DecodedMap
    from oxidecopy.program.tensor_map import TensorMap

HELP: Final = """Say what a tensor map holds and what follows from it.

Of a pipeline: the maps that its recipe binds. Or the 128 bytes of one map (or several, one after the other) from anywhere: a file of
bytes or of hex digits, the digits themselves, or - for standard input. Where each field lies was measured on compute capability 9.0;
bits that nobody explains are said to be unknown.
"""
EXAMPLES: Final = (
    "oxidecopy show descriptor examples/01_load.py:tma_load",
    "oxidecopy show descriptor map.bin",
    "xxd -p map.bin | oxidecopy show descriptor -",
)
_SOME_ADDRESS: Final = 1 << 32  # of a pipeline's array: its own was judged when the descriptor was made
_NAME: Final = 18
_VALUE: Final = 18


@guarded
def command(
    target: Annotated[
        str,
        typer.Argument(metavar="FILE[:NAME]|HEX|-", help="A Python file, raw maps in a file, 256 hex digits, or -.", show_default=False),
    ],
    *,
    inputs: Inputs = None,
    arch: Annotated[str, typer.Option("--arch", metavar="CC", help="Compute capability that the map is judged for.")] = "9.0",
    fields: Annotated[bool, typer.Option("--fields", help="Of raw bytes, also where each field lies.")] = False,
    as_json: AsJson = False,
) -> int:
    """Explains; nothing is verified or run."""
    from oxidecopy.cli.raw_maps import read_maps
    from oxidecopy.maps.validate import compute_capability
    from oxidecopy.program.map_bytes import decode

    compute_capability(arch)  # a wrong one is refused before anything is printed
    maps = read_maps(target)
    if maps is None:
        if fields:
            raise UsageError(
                Diagnostic(
                    rule="OX6023",
                    what="a pipeline's maps have no bytes yet: a driver makes them at the launch",
                    got="--fields",
                    required="raw bytes",
                    fix="leave --fields out",
                )
            )
        return _of_pipeline(target, inputs or [], arch, as_json=as_json)
    decoded = [decode(data) for data in maps]
    if as_json:
        print_json({"maps": [_decoded_data(one, arch) for one in decoded]})
        return OK
    for number, one in enumerate(decoded):
        if number:
            out().print()
        _print_decoded(f"map {number}" if len(decoded) > 1 else "map", one, arch, fields=fields)
    return OK


def _of_pipeline(target: str, inputs: list[Path], arch: str, *, as_json: bool) -> int:
    from oxidecopy.cli.descriptor_words import parameter_words, words
    from oxidecopy.cli.show import recorded

    program, _, launch = recorded(target, inputs)
    if not program.maps:
        raise UsageError(
            Diagnostic(
                rule="OX6023", what=f"{program.name} has no descriptors", got="a pipeline without maps", required="a parameter that is one"
            )
        )
    bound = dict(launch.maps) if launch else {}
    if as_json:
        data = [{"name": name, **asdict(of), "verdict": _verdict_data(_verdict(of, _SOME_ADDRESS, arch))} for name, of in bound.items()]
        print_json({"pipeline": program.name, "maps": data or [{"name": name} for name in program.maps]})
        return OK
    for number, (name, param) in enumerate((name, program.maps[name.partition("[")[0]]) for name in bound or program.maps):
        if number:
            out().print()
        _print(name, words(bound[name], param) if bound else parameter_words(param))
        if bound:
            _print_verdict(_verdict(bound[name], _SOME_ADDRESS, arch))
    return OK


def _print(name: str, rows: Sequence[Row]) -> None:
    console = out()
    console.print(Text(name, "bold cyan"))
    for row in rows:
        line = Text(f"  {row.name.ljust(_NAME)}", "dim").append(row.value.ljust(_VALUE) if row.remark else row.value, "default")
        if row.remark:
            line.append(f"  {row.remark}", "dim")
        console.print(line)


def _print_decoded(name: str, one: DecodedMap, arch: str, *, fields: bool) -> None:
    from oxidecopy.cli.descriptor_words import decoded_words

    console = out()
    _print(name, decoded_words(one))
    if one.tensor_map is not None:
        _print_verdict(_verdict(one.tensor_map, one.address, arch))
    console.print(Text("  read as compute capability 9.0 lays it out, where it was measured; others may differ", "dim"))
    for oddity in one.oddities:
        console.print(Text("  odd: ", "yellow").append(oddity, "default"))
    for offset, bits in one.unknown:
        console.print(Text("  unknown: ", "yellow").append(f"byte {offset:#04x} has bits {bits:#04x} that nobody explains", "default"))
    if fields:
        console.print(Text("  byte  bits   field               value       means", "bold"))
        for f in one.fields:
            place = f"  {f.offset:#04x}  {f.shift}-{f.shift + f.bits - 1}".ljust(15)
            text = Text(f"{place}{f.name.ljust(20)}", "dim").append(f"{f.value:#x}".ljust(12), "default").append(f.meaning, "default")
            console.print(text.append("  (reported, not measured)" if f.reported else "", "yellow"))


def _verdict(of: TensorMap, address: int, arch: str) -> Verdict:
    from oxidecopy.maps.parameters import MapParameters
    from oxidecopy.maps.validate import validate

    return validate(MapParameters.of(of, address), arch=arch)


def _print_verdict(verdict: Verdict) -> None:
    """What the driver and the hardware make of it, each broken rule, and what is legal and almost surely not meant."""
    console = out()
    said = "usable" if verdict.usable else "encodes, and is not usable" if verdict.encodes else "does not encode"
    console.print(Text(f"  {'verdict'.ljust(_NAME)}", "dim").append(f"{said} on {verdict.sm // 10}.{verdict.sm % 10}", "default"))
    for style, name, found in (
        ("red", "error", verdict.errors),
        ("yellow", "warning", verdict.warnings),
        ("dim", "in some uses", verdict.hints),
    ):
        for diagnostic in found:
            console.print(Text(f"  {name}: ", style).append(first_line(diagnostic), "default"))
            console.print(Text(f"    {diagnostic.got}; {diagnostic.required}" if diagnostic.got else f"    {diagnostic.required}", "dim"))
            if diagnostic.fix:
                console.print(Text("    fix: ", "cyan").append(diagnostic.fix, "default"))


def _verdict_data(verdict: Verdict) -> dict[str, Any]:
    return {
        "sm": verdict.sm,
        "encodes": verdict.encodes,
        "usable": verdict.usable,
        "errors": diagnostics_json(verdict.errors),
        "warnings": diagnostics_json(verdict.warnings),
        "hints": diagnostics_json(verdict.hints),
    }


def _decoded_data(one: DecodedMap, arch: str) -> dict[str, Any]:
    return {
        "address": one.address,
        "parameters": asdict(one.tensor_map) if one.tensor_map else None,
        "verdict": _verdict_data(_verdict(one.tensor_map, one.address, arch)) if one.tensor_map else None,
        "oddities": one.oddities,
        "unknown": [{"byte": offset, "bits": bits} for offset, bits in one.unknown],
        "fields": [
            {"name": f.name, "byte": f.offset, "bit": f.shift, "bits": f.bits, "value": f.value, "means": f.meaning, "reported": f.reported}
            for f in one.fields
        ],
    }
