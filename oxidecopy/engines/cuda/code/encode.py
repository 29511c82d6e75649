"""`encode`: a verified program and its launch shape -> `Image`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from oxidecopy.engines.cuda.abi import (
    APPLY_FAMILY,
    APPLY_FORM,
    COMPUTE_FAMILY,
    ENTRY_POINTS,
    FEW_BARRIERS,
    FULL_FAMILY,
    INLINE_MAPS_LARGE,
    KERNEL_PREFIX,
    MANY_FAMILY,
    MMA_FAMILY,
    ONCE_FAMILY,
    RECORD,
    RESHAPE_FAMILY,
    RESHAPE_WARPS,
    TIMED_FAMILY,
    WIDE_FAMILY,
    DeviceOp,
)
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.agents import Cast
from oxidecopy.engines.cuda.code.apply import ApplyCode, apply_of
from oxidecopy.engines.cuda.code.contract import WARPS, WHOLE, cast_problems, contracts, gathered, recordless
from oxidecopy.engines.cuda.code.counted import Counted
from oxidecopy.engines.cuda.code.deal import Deal, NotCountedError
from oxidecopy.engines.cuda.code.emit import EmissionError, Emitter
from oxidecopy.engines.cuda.code.image import AgentNote, Image, Warp, Where, code_offset, form_of, room, template
from oxidecopy.engines.cuda.code.lower import Lowering
from oxidecopy.engines.cuda.code.nodes import Stream
from oxidecopy.engines.cuda.code.once import one_shot
from oxidecopy.engines.cuda.code.product import ProductCode, product_of
from oxidecopy.engines.cuda.code.tokens import Tokens
from oxidecopy.engines.cuda.code.trim import trimmed
from oxidecopy.engines.cuda.code.whole import LeftError
from oxidecopy.errors import DeviceCodeError, Diagnostic
from oxidecopy.isa import limits, ops
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Launch, Program
from oxidecopy.program.verified import VerifiedProgram

if TYPE_CHECKING:
    from oxidecopy.program.phases import Phases

_OVERFLOW: Final = "OX5503"
_STAMPED: Final = "fixed, as the code is to be stamped"
_FIXED: Final = "fixed, as the program needs device code of 64 bits, tokens that are carried or more thread classes than warps"
_IMM: Final = struct.Struct("<i")
_IMM_AT: Final = {name: offset for name, _, offset in RECORD}["imm"]


def encode(verified: VerifiedProgram) -> Image:
    """Device code for the launch shape that the proof was made for.

    Raises:
        DeviceCodeError: OX5501 to OX5511, when there is no such code.
    """
    return encode_program(verified.program, verified.assumptions.launch)


def encode_program(program: Program, launch: Launch, *, timed: bool = False, whole: bool = True) -> Image:
    """As `encode`, of a program that somebody else answers for: probes and tests. Without `whole`, all but one-shot copies are records.

    What 32 bits, phases that are known and 32 warps are not enough for becomes slower code that has no such limits. So does code that is to
    be `timed`: each op is a record of its own, and the header's `counter` says where its stamps go.
    """
    program = expanded(program, WHOLE)
    if contracts(program):
        return _contracting(gathered(program), launch, timed=timed, whole=whole)
    if any(isinstance(step.op, ops.Made) for step in program.walk()):
        program = trimmed(program)
    cast, phases = Cast(program), _phases(program, launch)
    if not timed and not cast.many and (phases is None or not phases.unknown):
        try:
            low, streams = _lowered(program, launch, cast, phases)
            left = ""
            if whole and low.deal.slots and any(isinstance(step.op, ops.MapTiles) for step in program.walk()):
                try:
                    return _apply(program, low, streams, apply_of(low, streams))
                except LeftError as reason:
                    left = str(reason)
            return _encoded(program, cast, low, streams, left=left)
        except DeviceCodeError as problem:
            if _OVERFLOW not in problem.rules:
                raise
    tokens = Tokens(program, cast, phases.unknown if phases is not None else (), launch.sm)
    fixed = Deal(launch)
    fixed.words = {step.op.name: _STAMPED if timed else _FIXED for step in program.walk() if isinstance(step.op, ops.ShareTiles)}
    low = Lowering(program, launch, cast, fixed, phases.known if phases is not None else {}, tokens)
    return _encoded(program, cast, *_deal(program, cast, low, launch.sm), timed=timed)


def _contracting(program: Program, launch: Launch, *, timed: bool, whole: bool) -> Image:
    """Of a program with contractions, which slower code has no kernels for."""
    cast, phases = Cast(program), _phases(program, launch)
    wrong = list(cast_problems(program, cast))
    if timed:
        wrong.append(refusals.contraction(Where(program.site, program, None), "a launch whose ops are to stamp the time"))
    if cast.many or (phases is not None and phases.unknown):
        wrong.append(refusals.contraction(Where(program.site, program, None), "a program that also waits for tokens of phases not known"))
    _raise(wrong)
    low, streams = _lowered(program, launch, cast, phases)
    _raise(low.refused)
    left = ""
    if whole:
        try:
            return _product(program, low, streams, product_of(low, streams, launch.grid))
        except LeftError as reason:
            left = str(reason)
    _raise(list(recordless(program)))
    return _encoded(program, cast, low, streams, left=left)


def _product(program: Program, low: Lowering, streams: list[tuple[int, Stream]], found: ProductCode) -> Image:
    """All of a program whose one record, so to say, is a PRODUCT: pc 0 is the producer, those behind it are the groups."""
    order = [streams[i][0] for i in found.agents]
    producer = len(order) - 1
    warps: list[Warp] = []
    for i, me in enumerate(order):
        kind = low.cast.all[me]
        warps += _warps(kind.count, kind.warps, 0 if i == producer else 1 + i, i)
    agents = [AgentNote(words=str(low.cast.all[me]), entry=0 if i == producer else 1 + i, records=1) for i, me in enumerate(order)]
    _fill_up(warps, agents, AgentNote(words="the rest of a warpgroup", entry=0, records=0))
    words = tuple(low.words.words)
    if code_offset(len(warps), len(words)) + len(found.head) > room("large"):
        _raise([refusals.arguments(program, code_offset(len(warps), len(words)), room("large"))])
    made, args_at = template("large", tuple(warps), words, found.head, 0, contracting=low.contracting)
    return Image(
        name=program.name,
        family=found.family,
        form="large",
        code=found.head,
        warps=tuple(warps),
        agents=tuple(agents),
        shared_bytes=program.shared_bytes,
        counted=False,
        maps=tuple(low.maps),
        arrays=low.words.arrays,
        scalars=tuple(low.words.scalars.values()),
        sites=dict(enumerate(found.sites)),
        barriers=_barriers(program),
        loops=tuple([low.notes[key]._replace(fused="product", why="") for key in sorted(low.notes)]),
        shares=low.deal.words,
        template=made,
        args_at=args_at,
        tiles=found.table,
    )


def _apply(program: Program, low: Lowering, streams: list[tuple[int, Stream]], found: ApplyCode) -> Image:
    """All of a program that is an APPLY.

    Raises:
        LeftError: its parameter has no room for it.
    """
    _raise(low.refused)
    kinds = [low.cast.all[streams[part.stream][0]] for part in found.parts]
    agents, warps = [], []
    for i, (kind, part) in enumerate(zip(kinds, found.parts, strict=True)):
        agents.append(AgentNote(words=str(kind), entry=part.entry, records=1))
        warps += _warps(kind.count, kind.warps, part.entry, i)
    words = tuple(low.words.words)
    if len(found.code) + 8 * len(words) > room(APPLY_FORM):
        raise LeftError(f"{len(found.code) + 8 * len(words):,} bytes of code and numbers, with room for {room(APPLY_FORM):,}")
    made, args_at = template(APPLY_FORM, tuple(warps), words, found.code, low.deal.slots, code_first=True)
    return Image(
        name=program.name,
        family=APPLY_FAMILY,
        form=APPLY_FORM,
        code=found.code,
        warps=tuple(warps),
        agents=tuple(agents),
        shared_bytes=low.deal.shared_bytes,
        counted=True,
        maps=tuple(low.maps),
        arrays=low.words.arrays,
        scalars=tuple(low.words.scalars.values()),
        sites={part.entry: part.waits for part in found.parts},
        barriers=_barriers(program),
        loops=tuple([low.notes[key]._replace(fused="apply", why="") for key in sorted(low.notes)]),
        shares=low.deal.words,
        template=made,
        args_at=args_at,
    )


def _fill_up(warps: list[Warp], agents: list[AgentNote], rest: AgentNote) -> None:
    """Whole warpgroups: with warps of an agent that does nothing."""
    warps += [Warp(entry=rest.entry, threads=0, first_lane=0, lanes=limits.WARP, agent=len(agents))] * (-len(warps) % WARPS)
    agents.append(rest)


def _encoded(
    program: Program, cast: Cast, low: Lowering, streams: list[tuple[int, Stream]], *, timed: bool = False, left: str = ""
) -> Image:
    _raise(low.refused)
    wide = low.tokens is not None
    emitter = Emitter(low.values, wide=wide, places=low.computes, sums=low.contracts)
    end = Where(program.site, program, None)
    warps: list[Warp] = []
    agents: list[AgentNote] = []
    wrong: list[Diagnostic] = []
    for me, stream in streams:
        kind = low.cast.all[me]
        entry = -1
        try:
            if len(streams) == 1 and not wide:
                try:
                    entry = _once(program, low, stream, emitter, kind.count)
                except LeftError as reason:
                    left = str(reason)
            if entry < 0:
                entry = emitter.agent(stream.nodes, stream.answers, end)
        except EmissionError as problem:
            wrong += problem.diagnostics or [refusals.registers(program, str(kind))]
            continue
        warps += _warps(kind.count, kind.warps, entry, len(agents))
        agents.append(AgentNote(words=str(kind), entry=entry, records=len(emitter.records) - entry))
    _raise(wrong)
    if low.contracts and len(warps) % WARPS:  # registers are given to whole warpgroups
        idle = emitter.agent([], [], end)
        _fill_up(warps, agents, AgentNote(words="the rest of a warpgroup", entry=idle, records=len(emitter.records) - idle))
    return _image(program, low, emitter, tuple(warps), tuple(agents), timed=timed, left=left)


def _lowered(program: Program, launch: Launch, cast: Cast, found: Phases | None) -> tuple[Lowering, list[tuple[int, Stream]]]:
    """Every agent's code before registers; the tiles of a share come from the counter where that is possible."""
    phases = found.known if found is not None else {}
    names = [step.op.name for step in program.walk() if isinstance(step.op, ops.ShareTiles)]
    why = "there is more than one share"
    if len(names) == 1:
        try:
            return _deal(program, cast, Lowering(program, launch, cast, Counted(launch, names[0]), phases), launch.sm)
        except NotCountedError as reason:
            why = str(reason)
        except KeyError as unknown:
            if unknown.args != (names[0],):
                raise
            why = "how many tiles a block is given is used outside of loops over them"
    fixed = Deal(launch)
    fixed.words = dict.fromkeys(names, f"fixed, as {why}")
    return _deal(program, cast, Lowering(program, launch, cast, fixed, phases), launch.sm)


def _deal(program: Program, cast: Cast, low: Lowering, sm: int) -> tuple[Lowering, list[tuple[int, Stream]]]:
    streams = [(me, low.agent(me)) for me in cast.kept]
    low.deal.finish(program, sm)
    return low, streams


def _once(program: Program, low: Lowering, stream: Stream, emitter: Emitter, threads: int) -> int:
    """The first record of a one-shot program. Its one agent is one thread, which shares nothing with other blocks: -1 when it is none.

    Such code looks for its maps in the parameter.

    Raises:
        LeftError: that thread does more, or other things.
    """
    shared = program.cluster_size > 1 or low.deal.slots > 0 or bool(low.words.words)
    if threads > 1 or shared or len(low.maps) > INLINE_MAPS_LARGE:
        return -1
    found = one_shot(stream.nodes, low.values)
    for key, note in low.notes.items():
        low.notes[key] = note._replace(fused="once", why="")
    entry = len(emitter.records)
    emitter.records.given(found.records, found.where)
    return entry


def _raise(wrong: list[Diagnostic]) -> None:
    if wrong:
        raise DeviceCodeError(*dict.fromkeys(wrong))


def _phases(program: Program, launch: Launch) -> Phases | None:
    """Only programs with tokens that somebody waits for have any."""
    if not any(isinstance(step.op, ops.MbarrierWait | ops.MbarrierTestToken) for step in program.walk()):
        return None
    from oxidecopy.program.phases import token_phases

    return token_phases(program, launch)


def _warps(threads: int, warps: int, entry: int, agent: int) -> list[Warp]:
    """The agent's warps; its threads are spread over them so that none stands for none."""
    full = limits.WARP if threads <= limits.WARP * warps else -(-threads // warps)
    made = []
    for i in range(warps):
        mine = min(full, threads - (warps - 1 - i))
        made.append(Warp(entry=entry, threads=mine, first_lane=limits.WARP * i, lanes=limits.WARP * warps, agent=agent))
        threads -= mine
    return made


def _image(
    program: Program, low: Lowering, emitter: Emitter, warps: tuple[Warp, ...], agents: tuple[AgentNote, ...], *, timed: bool, left: str
) -> Image:
    records, words = emitter.records.data, tuple(low.words.words)
    wrong = [refusals.too_long(program, len(records))] if len(records) > refusals.RECORDS_MAX else []
    if low.single_maps > refusals.MAPS_MAX:
        wrong.append(refusals.maps(program, low.single_maps))
    code = b"".join(records)
    tokens = low.tokens
    family = _family([records[pc] for pc in emitter.records.sites], len(warps))
    if tokens is not None:
        family = MANY_FAMILY if low.cast.many else TIMED_FAMILY if timed else WIDE_FAMILY
    table = 0 if tokens is not None else len(warps)  # else it lies behind the records
    form = form_of(len(low.maps), table, len(words), len(code), always_global=tokens is not None)
    if form and f"{KERNEL_PREFIX}{family}_{form}" not in ENTRY_POINTS:
        form = "global"  # a smaller room than any that it needs
    if not form:
        wrong.append(refusals.arguments(program, code_offset(table, len(words)), room("global")))
    _raise(wrong)
    slots, crew = low.deal.slots, 0 if tokens is None else len(warps)
    if tokens is not None and tokens.words:
        slots = tokens.at
    made, args_at = template(
        form, warps, words, code, slots, crew=crew, engine_words=tokens.words if tokens is not None else 0, contracting=low.contracting
    )
    return Image(
        name=program.name,
        family=family,
        form=form,
        code=code,
        warps=warps,
        agents=agents,
        shared_bytes=low.deal.shared_bytes or (tokens.shared_bytes if tokens is not None else 0) or program.shared_bytes,
        counted=low.deal.slots > 0,
        maps=tuple(low.maps),
        arrays=low.words.arrays,
        scalars=tuple(low.words.scalars.values()),
        sites=emitter.records.sites,
        barriers=_barriers(program),
        loops=tuple([low.notes[key] for key in sorted(low.notes)]),
        shares=low.deal.words,
        left=left,
        template=made,
        args_at=args_at,
    )


def _family(heads: list[bytes], warps: int) -> str:
    """The smallest that has all ops and barriers."""
    if heads[0][0] == DeviceOp.ONCE:
        return ONCE_FAMILY
    found = {head[0] for head in heads}
    if DeviceOp.CONTRACT in found:
        return MMA_FAMILY
    reshapes = bool(found & {DeviceOp.TRANSPOSE_TILE, DeviceOp.REDUCE_TILE, DeviceOp.STENCIL_TILE})
    again = {DeviceOp.IOTA, DeviceOp.LOOP} <= found  # "reshape" has iotas by 16 bytes
    fast = COMPUTE_FAMILY if DeviceOp.COMPUTE in found else RESHAPE_FAMILY if reshapes or (again and warps <= RESHAPE_WARPS) else ""
    family = fast or (FULL_FAMILY if DeviceOp.COPY_EXTRA in found else "map" if DeviceOp.MAP_TILES in found else "move")
    return f"{family}_named" if any(_barrier(head) >= FEW_BARRIERS for head in heads) else family


def _barrier(record: bytes) -> int:
    """The barrier of threads that a record names; 0 when it is no such record."""
    number: int = _IMM.unpack_from(record, _IMM_AT)[0] if record[0] == DeviceOp.BAR_SYNC else 0
    return number


def _barriers(program: Program) -> dict[int, str]:
    """Names of mbarriers by shared offset."""
    return {
        decl.offset + limits.MBARRIER_BYTES * i: decl.name if decl.stages == 1 else f"{decl.name}[{i}]"
        for decl in program.barriers
        for i in range(decl.stages)
    }
