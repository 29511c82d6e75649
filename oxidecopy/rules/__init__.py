"""Every rule id with its page. One module per gate; ids never change their meaning once released."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from oxidecopy.rules.rule import Rule, Shown

if TYPE_CHECKING:
    from oxidecopy.rules.verifier_scripts import Twins


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
        oneliners,
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
            oneliners,
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
    table = {r.id: _with_scripts(r) for r in sorted(rows, key=lambda r: r.id)}
    if len(table) != len(rows):
        raise RuntimeError("two rules share an id")
    return table


def _with_scripts(rule: Rule) -> Rule:
    """A rule that no pipeline breaks has its scripts elsewhere."""
    from oxidecopy.rules.beyond import BEYOND
    from oxidecopy.rules.on_gpu import ON_GPU
    from oxidecopy.rules.played import PLAYED, PLAYED_ON_GPU
    from oxidecopy.rules.typed import TYPED
    from oxidecopy.rules.warned import WARNED

    tables: tuple[tuple[Shown, dict[str, Twins]], ...] = (
        ("raised", BEYOND),
        ("raised", PLAYED),
        ("warned", WARNED),
        ("typed", TYPED),
        ("gpu", ON_GPU),
        ("gpu", PLAYED_ON_GPU),
    )
    for shown, table in tables:
        if rule.id in table:
            return replace(rule, wrong=table[rule.id].wrong, right=table[rule.id].right, shown=shown)
    return rule
