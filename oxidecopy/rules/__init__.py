"""Every rule id with its page. One module per gate; ids never change their meaning once released."""

from __future__ import annotations

from functools import cache

from oxidecopy.rules.rule import Rule


@cache
def all_rules() -> dict[str, Rule]:
    """Rules by id, in order of id."""
    from oxidecopy.rules import (
        binary,
        command,
        cubins,
        cuda_driver,
        cuda_engine,
        descriptor,
        device_code,
        foreign,
        host,
        plugin,
        recorder,
        recorder_contract,
        reshaping,
        rings,
        simulator,
        tables,
        text,
        verifier,
    )

    rows = [
        r
        for m in (
            recorder,
            recorder_contract,
            reshaping,
            rings,
            text,
            binary,
            descriptor,
            verifier,
            simulator,
            host,
            foreign,
            cuda_driver,
            cuda_engine,
            cubins,
            device_code,
            tables,
            command,
            plugin,
        )
        for r in m.RULES
    ]
    table = {r.id: r for r in sorted(rows, key=lambda r: r.id)}
    if len(table) != len(rows):
        raise RuntimeError("two rules share an id")
    return table
