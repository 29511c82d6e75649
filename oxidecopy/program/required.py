"""What a program asks of its launch beyond the bounds of the hardware: conditions over grid, extents and `Idx` parameters.

The recorder writes them down where a call only makes sense for some launches; whoever judges a launch evaluates them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oxidecopy.errors import Diagnostic, Site
from oxidecopy.isa.expr import LAUNCH_KINDS, Answer, Cmp, Cond, Const, FloorDiv, Mod, Sym, evaluate, holds
from oxidecopy.program.declared import Places, known_symbols
from oxidecopy.program.nesting import NESTING_MAX, NODES_MAX, excess, fits, nodes
from oxidecopy.program.program import Launch, Program, Requirement

INTEGER_MIN: Final = -(1 << 63)
INTEGER_MAX: Final = (1 << 63) - 1


def unmet(program: Program, launch: Launch) -> list[tuple[Requirement, str]]:
    """The requirements that do not hold for `launch`, each with the numbers that say so."""
    env = launch.environment()
    found = []
    for requirement in program.requires:
        try:
            if not holds(requirement.cond, env, {}):
                found.append((requirement, _numbers(requirement.cond, env)))
        except ZeroDivisionError:
            found.append((requirement, "a division by zero"))
    return found


def _numbers(cond: Cond, env: dict[str, int]) -> str:
    """The first comparison in `cond`, in numbers."""
    comparison = next((node for node, _ in nodes(cond) if isinstance(node, Cmp)), None)
    if comparison is None:
        return "a condition that never holds"
    return f"{evaluate(comparison.a, env)} {comparison.op.value} {evaluate(comparison.b, env)}"


def check_requirements(program: Program, places: Places) -> Iterator[Diagnostic]:
    """Every requirement that no launch can be asked: its condition is too large, or not about launches."""
    symbols = known_symbols(program.params)
    for requirement, place in zip(program.requires, places.requires, strict=True):
        if not fits(requirement.cond):
            required, fix = f"at most {NESTING_MAX} levels and {NODES_MAX} operators and operands", "ask for less at once"
            yield Diagnostic(
                rule="OX1903", what="a requirement is too large", got=excess(requirement.cond), required=required, fix=fix, site=place
            )
            continue
        for node, _ in nodes(requirement.cond):
            match node:
                case Sym(name, kind) if symbols.get(name) != kind or kind not in LAUNCH_KINDS:
                    yield _broken("OX1917", "uses an integer that is not known before the launch", name, place)
                case Const(value) if not INTEGER_MIN <= value <= INTEGER_MAX:
                    yield _broken("OX1910", "holds a constant of more than 64 bits", value, place)
                case FloorDiv(_, Const(0)) | Mod(_, Const(0)):
                    yield _broken("OX1910", "divides by zero", "0", place)
                case Answer(register):
                    yield _broken("OX1917", "asks for an answer of the running program", f"?{register}", place)
                case _:
                    pass


def _broken(rule: str, what: str, got: object, place: Site | None) -> Diagnostic:
    required = "grid_dim.x, .y, .z, `Idx` parameters and extents"
    return Diagnostic(rule=rule, what=f"a requirement {what}", got=str(got)[:80], required=required, site=place)
