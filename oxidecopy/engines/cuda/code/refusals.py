"""What cannot be written as device code, in words. The pages of these rules are in `oxidecopy.rules.device_code`."""

from __future__ import annotations

from oxidecopy.engines.cuda.abi import PARAM_BYTES_SMALL, REGISTERS
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.errors import Diagnostic
from oxidecopy.program.program import Program

RECORDS_MAX = (1 << 16) - 1  # an agent's first record is a 16-bit number
SLOT_MAX = 255  # of a map that a record names by 8 bits
MAPS_MAX = 255


def overflow(where: Where, words: str, low: int, high: int) -> Diagnostic:
    """A value that may be larger than what can be computed with; 32 bits are not enough to be refused, as there is wide code."""
    return Diagnostic(
        rule="OX5503",
        what=f"{words} may leave 64 bits, and device code has no more",
        got=f"{low} to {high}",
        required="-9223372036854775808 to 9223372036854775807",
        fix="launch fewer blocks or iterations, or compute in an order that stays small (divide before multiplying)",
        site=where.site,
    )


def contraction(where: Where, why: str) -> Diagnostic:
    """Sums that device code cannot keep between ops: they would be lost, or moved through memory at every one."""
    return Diagnostic(
        rule="OX5569",
        what="no device code computes this contraction",
        got=why,
        required="`contract` as a whole, by a device with a kernel for it",
        fix="give each group of consumers sums of a shape that there is (by boxes and `part=`): docs/contract.md; the simulator runs all",
        site=where.site,
    )


def division(where: Where) -> Diagnostic:
    """A divisor that is 0 for this launch."""
    return Diagnostic(
        rule="OX5503",
        what=f"`{where.words}` divides by something that is 0 for this launch",
        got="0",
        required="divisors that are not 0",
        fix="use `ox.maximum(1, ...)` for the divisor",
        site=where.site,
    )


def no_room(program: Program, shared: int, needed: int, most: int) -> Diagnostic:
    """Shared memory that the program leaves too little of."""
    return Diagnostic(
        rule="OX5501",
        what=f"{program.name!r} leaves no shared memory for what its threads have to tell each other on a GPU",
        got=f"{shared} bytes of its own, and {needed} for tokens whose phase cannot be told and barriers among more than 32 classes",
        required=f"at most {most} bytes together",
        fix="use a stage less, or `wait_phase(k)`, which says the phase, and the same scopes for threads that do the same",
        site=program.site,
    )


def wide_im2col(where: Where) -> Diagnostic:
    """Copies that no kernel has."""
    return Diagnostic(
        rule="OX5532",
        what="the kernels of this version have no wide im2col copies",
        got="a copy through an Im2colWideDescriptor",
        required="tiled or im2col copies",
        fix="emitted CUDA C++ has them (`oxidecopy emit`); the simulator runs them",
        site=where.site,
    )


def reshapes(where: Where) -> Diagnostic:
    """Transposes and reductions that only one family of kernels has, in a program that it cannot run."""
    return Diagnostic(
        rule="OX5533",
        what=f"`{where.words}` stands in a program that the kernels with transposes and reductions cannot run",
        got="more than 21 warps, integers of more than 32 bits, or a token whose phase cannot be told",
        required="up to 672 threads, integers of 32 bits, and phases that are known",
        fix="use fewer threads, or transpose and reduce in a pipeline of its own; emitted CUDA C++ has no such limit",
        site=where.site,
    )


def registers(program: Program, agent: str) -> Diagnostic:
    """More integers alive at once than there are registers."""
    return Diagnostic(
        rule="OX5504",
        what=f"{agent} keep more integers at once than device code has registers",
        got="too many nested loops, indices that are read, or answers of tests",
        required=f"{REGISTERS} registers",
        fix="nest fewer loops, or read indices later: an index is kept to the end of the block that reads it",
        site=program.site,
    )


def elem(where: Where, depth: int, depth_max: int, length: int, length_max: int) -> Diagnostic:
    """An element expression that is too deep or too long."""
    deep = depth > depth_max
    return Diagnostic(
        rule="OX5505",
        what="the element expression of a map is too deep for device code" if deep else "the element expression of a map is too long",
        got=f"{depth} values at once" if deep else f"{length} operations",
        required=f"at most {depth_max}" if deep else f"at most {length_max}",
        fix="do it in two maps, one after the other",
        site=where.site,
    )


def too_long(program: Program, records: int) -> Diagnostic:
    """More records than there are numbers for."""
    return Diagnostic(
        rule="OX5506",
        what=f"{program.name!r} is too long for device code",
        got=f"{records} records",
        required=f"at most {RECORDS_MAX}",
        fix="use `cta.range` for loops that Python unrolls while recording",
        site=program.site,
    )


def together(where: Where, agent: str) -> Diagnostic:
    """A copy issued by several threads."""
    return Diagnostic(
        rule="OX5507",
        what=f"`{where.words}` is issued by several threads",
        got=agent,
        required="one thread per copy",
        fix="put it into `with cta.elect() as leader:`",
        site=where.site,
    )


def maps(program: Program, count: int) -> Diagnostic:
    """More tensor maps than there are numbers for, not counting entries of tables."""
    return Diagnostic(
        rule="OX5508",
        what=f"{program.name!r} uses too many descriptors for one launch",
        got=str(count),
        required=f"at most {MAPS_MAX}",
        fix="launch it in several pipelines",
        site=program.site,
    )


def arguments(program: Program, used: int, room: int) -> Diagnostic:
    """Argument words that do not fit beside code in global memory."""
    return Diagnostic(
        rule="OX5509",
        what=f"the arguments of {program.name!r} do not fit in a launch parameter of {PARAM_BYTES_SMALL} bytes, and its code in no other",
        got=f"{used} bytes for warps, arrays and constants",
        required=f"at most {room}",
        fix="use fewer global arrays and constants, or a shorter program: a short one has a larger parameter",
        site=program.site,
    )
