"""One-edit twins of recorded programs: drop, change or move the ops that match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from oxidecopy.isa.ops import Instr
from oxidecopy.program.program import Program, Step

Edit = Callable[[Step], Step | None]


def edited(program: Program, wanted: Callable[[Instr], bool], edit: Edit, *, nth: int | None = None) -> Program:
    """`program` with `edit` applied to the steps whose op is `wanted` (all, or the nth in program order); None drops a step."""
    seen = 0

    def walk(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        nonlocal seen
        out: list[Step] = []
        for step in steps:
            if wanted(step.op):
                seen += 1
                if nth is None or seen - 1 == nth:
                    changed = edit(step)
                    out += [changed] if changed is not None else []
                    continue
            out.append(replace(step, body=walk(step.body)))
        return tuple(out)

    steps = walk(program.steps)
    assert seen > (nth or 0), "nothing to edit"
    return replace(program, steps=steps)


def changed(**fields: Callable[[Any], Any]) -> Edit:
    """An edit that sets each named operand to what its function makes of the old one."""

    def edit(step: Step) -> Step:
        op: Any = step.op  # operands by name, whatever the op
        return replace(step, op=replace(op, **{name: fn(getattr(op, name)) for name, fn in fields.items()}))

    return edit


def dropped(program: Program, wanted: Callable[[Instr], bool], *, nth: int | None = None) -> Program:
    """`program` without the steps that match."""
    return edited(program, wanted, lambda _: None, nth=nth)
