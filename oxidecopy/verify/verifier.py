"""From a program and a launch to a proof or a report.

Static checks first (launch, shared layout, coordinates). Then the grid is cut into boxes of clusters over which everything that steers
control has one value, and one cluster of each box is co-executed.
"""

from __future__ import annotations

from math import prod
from typing import Final

from oxidecopy.errors import VerificationError
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Launch, Program
from oxidecopy.program.verified import Assumptions, VerifiedProgram, seal
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.affine import Range, moduli
from oxidecopy.verify.build import Compiled, build, cluster_box, compile_program, unshared
from oxidecopy.verify.contract import check_contracts
from oxidecopy.verify.ending import check_ending
from oxidecopy.verify.outputs import check_outputs
from oxidecopy.verify.report import Collector, Report
from oxidecopy.verify.resolve import UndecidedError
from oxidecopy.verify.split import split
from oxidecopy.verify.static import check_idle, check_static
from oxidecopy.verify.walk import STEPS_MAX, OutOfStepsError, run

PIECES_MAX: Final = 4096  # boxes of block indices that are looked at before the proof gives up


def verify(program: Program, launch: Launch) -> VerifiedProgram:
    """Proves `program` for every launch of the shape `launch`.

    Raises:
        VerificationError: with all violations found.
    """
    report = inspect(program, launch)
    if report.violations:
        raise VerificationError(*report.violations)
    assumptions = Assumptions(sm=launch.sm, shared_bytes=program.shared_bytes, launch=launch)
    return seal(program, assumptions, report.warnings, report.bounds)


def inspect(program: Program, launch: Launch) -> Report:
    """All violations and warnings of `program` under `launch`; never raises for a wrong program."""
    report = _inspect(program, launch, whole=False)
    # What is left out of a launch may be why another thread waits for ever: a report names it.
    return _inspect(program, launch, whole=True) if any(v.explanation is not None for v in report.violations) else report


def _inspect(program: Program, launch: Launch, *, whole: bool) -> Report:
    """`whole`: with loops that nobody comes into."""
    out = Collector()
    fits = check_contracts(program, launch, out)
    program = unshared(expanded(program))
    if check_static(program, launch, out) and fits:
        ran: dict[int, int] = {}
        try:
            compiled = compile_program(program, launch, out, whole=whole)
            if compiled.opaque is not None and _walk_pieces(launch, compiled, out, ran) and not out.report().violations:
                check_idle(program, ran, out)
                check_outputs(compiled.program, launch, compiled.folded, compiled.opaque, ran, out)
        except ZeroDivisionError:
            out.add(
                ids.DIVISOR,
                "a divisor or modulus of the program is 0 for this launch",
                site=program.site,
                required="not 0",
                fix="check the `Idx` parameter or extent that divides",
            )
    return out.report()


def _walk_pieces(launch: Launch, compiled: Compiled, out: Collector, ran: dict[int, int]) -> bool:
    """Co-executes one cluster of each piece; False when a bound of the proof was hit."""
    program = compiled.program
    todo: list[tuple[Range, ...]] = [cluster_box(program, launch)]
    pieces = 0
    while todo:
        box = todo.pop()
        pieces += 1
        if pieces > PIECES_MAX:
            out.add(
                ids.PIECES,
                "what runs depends on the block index in too many ways to check each",
                site=program.site,
                got=f"more than {PIECES_MAX} different boxes of block indices",
                required=f"at most {PIECES_MAX}",
                fix="launch a smaller grid, or let conditions and trip counts depend less on the block index",
            )
            return False
        try:
            going = _walk_piece(launch, compiled, box, out, ran)
        except UndecidedError as undecided:
            todo += split(box, undecided.what, moduli(undecided.what), program.cluster)
            continue
        except OutOfStepsError:
            if out.report().violations:  # what is wrong may well be why nothing repeats
                return False
            out.add(
                ids.STEPS,
                "the loops of this program do not settle into a pattern within the steps the proof may take",
                site=program.site,
                got=f"more than {STEPS_MAX} ops of one cluster",
                required="a state that repeats, or fewer ops",
                fix="make barrier and stage indices periodic in the loop counter (`i % stages`, `i // stages`), or loop less",
            )
            return False
        if not going:
            return False
    clusters = prod(n // c for n, c in zip(launch.grid, program.cluster, strict=True))
    if pieces < clusters:
        out.bound(
            f"of {clusters} {'clusters' if program.cluster_size > 1 else 'blocks'} {pieces} {'is' if pieces == 1 else 'are'} run",
            "whatever steers the others, conditions, trip counts, stages and phases, has the same values over a whole box of the grid;"
            " coordinates are judged over all of them",
            key="grid",
        )
    return True


def _walk_piece(launch: Launch, compiled: Compiled, box: tuple[Range, ...], out: Collector, ran: dict[int, int]) -> bool:
    """Co-executes one cluster; False when a counter's share makes it wrong, so that other pieces would only repeat it."""
    if compiled.opaque is not None and compiled.opaque.trips:
        from oxidecopy.verify.trips import Counts  # for programs with a counter alone

        return Counts(launch, compiled, box, out, ran).walk()
    machine = build(launch, compiled, box, out)
    run(machine)
    ran.update(machine.ran)
    if not machine.lost and all(a.done for a in machine.agents):
        check_ending(machine)
    return True
