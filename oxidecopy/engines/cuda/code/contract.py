"""Contractions as device code: who runs them, and their records.

A warpgroup computes one by itself, so its 128 threads are one agent, whose four warps lie side by side in the hardware. All that would take
a thread out of it is moved: barriers are initialised by a thread beside it, and what the op's lane does is in the op.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from oxidecopy.engines.cuda.abi import CONTRACT_SHAPES, RECORD_BYTES, ComputeFn, ContractShape, ContractType, DeviceOp, ElementForm
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.compute import Place, UnfitError, compute_code, packed
from oxidecopy.engines.cuda.code.compute import Step as Instruction
from oxidecopy.engines.cuda.code.extra import coordinates
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.nodes import Op
from oxidecopy.engines.cuda.code.records import CONTRACT, EPILOGUE
from oxidecopy.isa import limits, mma, ops
from oxidecopy.program.expansion import operand
from oxidecopy.program.program import Program, Step

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.agents import Cast as Agents
    from oxidecopy.engines.cuda.code.lower import AgentLowering
    from oxidecopy.errors import Diagnostic

WHOLE: Final = (ops.Contract, ops.ContractDrain)
WARPS: Final = mma.WARPGROUP // limits.WARP
GROUPS_MAX: Final = 2  # that contract; beside them one warpgroup's warps, for all other agents
STAGING_BYTES: Final = 64 * 128  # of a tile that the results are staged in

_FORMS: Final = {"bf16": ElementForm.BF16, "f16": ElementForm.F16, "f32": ElementForm.BITS32}
_SOURCES: Final = 4
_INSTRUCTIONS_MAX: Final = 1 << 10
# What the machine for epilogues (kernels/fragment.cuh) has of COMPUTE's instructions: those for floats.
_OTHERS: Final = frozenset({
    "LOAD_A", "LOAD_B", "ROW_A", "ROW_B", "COLUMN_A", "COLUMN_B", "CONST_A", "CONST_B", "SCALAR_B", "PUT", "GET", "TAKE", "SELECT",
    "RSELECT", "I_AND", "I_OR", "I_XOR", "I_NOT", "ROUND", "STORE",
})  # fmt: skip
MACHINE: Final = frozenset(fn for fn in ComputeFn if (fn.name.startswith("F_") and not fn.name.startswith("F_TO")) or fn.name in _OTHERS)
_INITS: Final = (ops.MbarrierInit, ops.MbarrierInval, ops.FenceMbarrierInit)


def contracts(program: Program) -> bool:
    """True when there is a contraction in it."""
    return any(isinstance(step.op, WHOLE) for step in program.walk())


# ---- who runs it
def gathered(program: Program) -> Program:
    """The program with inits of barriers by threads that contract nothing: what is initialised is the same, before the same sync."""
    groups = [(op.lane, op.lane + op.threads) for op in (s.op for s in program.walk()) if isinstance(op, ops.Contract | ops.ContractDrain)]
    spare = next((i for i in range(program.threads) if not _among(i, groups)), None)
    if spare is None:
        return program
    beside = ops.ThreadSet(((spare, spare + 1),))
    return replace(program, steps=tuple([_beside(step, groups, beside) for step in program.steps]))


def _beside(step: Step, groups: Sequence[tuple[int, int]], threads: ops.ThreadSet) -> Step:
    op = step.op
    if not isinstance(op, ops.Scope) or len(op.threads) != 1 or not all(isinstance(inner.op, _INITS) for inner in step.body):
        return step
    return replace(step, op=replace(op, threads=threads)) if _among(op.threads.first, groups) else step


def _among(thread: int, groups: Sequence[tuple[int, int]]) -> bool:
    return any(low <= thread < high for low, high in groups)


def cast_problems(program: Program, cast: Agents) -> Iterator[Diagnostic]:
    """What keeps warpgroups from computing the program's contractions. Agents that do are put before all others."""
    groups: set[int] = set()
    for step, scopes in cast.steps_of(WHOLE):
        who = cast.inside(scopes)
        ranges = [span for i in who for span in cast.all[i].threads.ranges]
        where = Where(step.site, program, step.op)
        if len(who) != 1 or len(ranges) != 1 or ranges[0][1] - ranges[0][0] != mma.WARPGROUP:
            threads = ", ".join(str(cast.all[i]) for i in who)
            yield refusals.contraction(where, f"{threads}: a warpgroup's 128 threads do nothing apart from each other")
        groups.update(who)
    if len(groups) > GROUPS_MAX:
        yield refusals.contraction(Where(program.site, program, None), f"{len(groups)} warpgroups contract, at most {GROUPS_MAX} can")
    others = sum(cast.all[i].warps for i in cast.kept if i not in groups)
    if others > WARPS:
        yield refusals.contraction(Where(program.site, program, None), f"{others} warps beside those that contract, at most {WARPS} can be")
    cast.kept.sort(key=lambda i: (i not in groups, i))


def recordless(program: Program) -> Iterator[Diagnostic]:
    """What no record computes: sums of a shape that only a kernel for whole programs has."""
    for step in program.walk():
        if isinstance(step.op, ops.Contract):
            m, n = _sums(program, step.op)
            if CONTRACT_SHAPES.get((m, n)) == ContractShape.M64N192:
                words = f"sums of {m} x {n} in a program that is more than the tiles of one product, one after the other"
                yield refusals.contraction(Where(step.site, program, step.op), words)


# ---- records
def contract(low: AgentLowering, op: ops.Contract, where: Where) -> Op:
    """The whole mainloop with its epilogue."""
    low.refused += [refusals.contraction(where, why) for why in _problems(low.program, op)]
    tiles = low.program.tiles
    places = [low.barrier(op.full), low.barrier(op.empty), low.tile(op.a), low.tile(op.b), low.tile(op.out)]
    if any(terms for _, terms in places):
        low.refused.append(refusals.contraction(where, "which part of a tile it takes is known only at run time"))
    full, empty, a, b, out = (constant for constant, _ in places)
    m, n = _sums(low.program, op)
    number = low.shared.cast.numbers[op.number]
    shape, kind = CONTRACT_SHAPES.get((m, n), 0), _type(low.program, op) or 0
    strides = tiles[op.a.tile].stage_bytes, tiles[op.b.tile].stage_bytes
    head = CONTRACT.pack(full, empty, a, strides[0], b, strides[1], op.stages, op.peers, shape, kind, number, *_told(low.program, op))
    form = _FORMS.get(tiles[op.out.tile].dtype, ElementForm.BITS32)
    code = _epilogue(low, op, where)
    sources = [low.array(array.name) for array in op.arrays]
    sources += [0] * (_SOURCES - len(sources))
    end = EPILOGUE.pack(out, tiles[op.out.tile].stages, form, op.combine == "add", len(code), *sources[:_SOURCES])
    instructions = packed(code)
    return Op(
        op=DeviceOp.CONTRACT,
        where=where,
        aux=len(op.coords),
        slot=low.map(op.map),
        operands=((0, low.value(op.first)), (1, low.value(op.steps)), (2, low.value(op.put))),
        exact=coordinates(low, op.coords),
        tail=head + end + instructions + bytes(-len(instructions) % RECORD_BYTES),
    )


def drain(low: AgentLowering, op: ops.ContractDrain, where: Where) -> Op:
    """The wait for its stores."""
    return Op(op=DeviceOp.CONTRACT_DRAIN, where=where, imms=((0, low.shared.cast.numbers[op.number]),))


def _sums(program: Program, op: ops.Contract) -> tuple[int, int]:
    """Rows and columns of what one group sums."""
    m, n = (operand(program, ref, major, op.depth)[0] for ref, major in ((op.a, op.a_major), (op.b, op.b_major)))
    return m, n


def _told(program: Program, op: ops.Contract) -> tuple[int, int, int]:
    """CTAs in a row of the cluster, who of them is told that a stage is free, and how many they are."""
    axes = {"cluster": 0, "x": 1, "y": 2, "xy": 3}[op.told]
    return program.cluster[0], axes, program.cluster_size


def _type(program: Program, op: ops.Contract) -> ContractType | None:
    """What its operands are; None where no kernel multiplies them."""
    a, b = program.tiles[op.a.tile].dtype, program.tiles[op.b.tile].dtype
    majors = ("A" if op.a_major != "k" else "") + ("B" if op.b_major != "k" else "")
    name = (a.upper() if a == b else f"{a}_{b}".upper()) + (f"_{majors}" if majors else "")
    return ContractType[name] if name in ContractType.__members__ else None


def _problems(program: Program, op: ops.Contract) -> Iterator[str]:
    """Why the kernels do not compute it, of what the simulator does."""
    out = program.tiles[op.out.tile]
    m, n = _sums(program, op)
    if _type(program, op) is None:
        a, b = program.tiles[op.a.tile].dtype, program.tiles[op.b.tile].dtype
        yield f"{a} ({op.a_major}-major) times {b} ({op.b_major}-major)"
    if (m, n) not in CONTRACT_SHAPES:
        yield f"sums of {m} x {n}, not of " + ", ".join(f"{rows} x {columns}" for rows, columns in CONTRACT_SHAPES)
    if out.dtype not in _FORMS or out.stage_bytes != STAGING_BYTES or not _rows_of_128(out.shape):
        yield f"results staged as {out.dtype} {tuple(out.shape)}, not as 64 rows of 128 bytes"
    for array in op.arrays:
        if program.arrays[array.name].dtype not in _FORMS:
            yield f"an epilogue that reads {program.arrays[array.name].dtype}"
    if op.threads != mma.WARPGROUP:
        yield f"{op.threads} threads"


def _rows_of_128(shape: Sequence[int]) -> bool:
    return mma.extents(shape)[0] == mma.ROWS


def _epilogue(low: AgentLowering, op: ops.Contract, where: Where) -> list[Instruction]:
    """What is computed of each sum; nothing where it is only rounded."""
    somewhere = Place(0, 0)
    try:
        code = compute_code(op.fn, [somewhere] * (1 + len(op.arrays)), somewhere, low.words)
    except UnfitError:
        code = []
    if not code or len(code) > _INSTRUCTIONS_MAX or any(step.fn not in MACHINE for step in code):
        low.refused.append(refusals.contraction(where, "an epilogue of other numbers than f32, f16 and bf16, or a very long one"))
    return code if [step.fn for step in code[:-1]] != [ComputeFn.LOAD_A] or code[0].which else []
