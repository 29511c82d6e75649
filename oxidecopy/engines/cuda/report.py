"""What a launch reported -> the error that the simulator would have raised: who waited for what, with the user's lines.

The device writes entries of `abi.REPORT_ENTRY` to host memory that it maps; here they are read, warps that wait alike are folded into one
diagnostic, and barriers and lines get the user's names.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, final

from oxidecopy.engines.cuda.abi import NO_TOKEN, REPORT_BYTES, REPORT_ENTRIES, REPORT_ENTRY, REPORT_ENTRY_WORDS, ReportKind
from oxidecopy.engines.cuda.code.image import Image
from oxidecopy.errors import DeadlockError, Diagnostic, ExecutionError, Site
from oxidecopy.isa import ops
from oxidecopy.isa.limits import CTA_WINDOW_BYTES, MBARRIER_BYTES, SHARED_BASE
from oxidecopy.program.deadlock import Barrier, Deadlock, Stuck, Token, classes
from oxidecopy.program.explain import explain
from oxidecopy.program.program import Program, Step

DEADLOCK: Final = "OX5331"
INDEX_RANGE: Final = "OX5332"
INTERNAL: Final = "OX5333"

_HEADER: Final = struct.Struct("<4I")
_ENTRY: Final = struct.Struct(f"<{REPORT_ENTRY_WORDS}I")
_CTAS_NAMED: Final = 3  # of those that wait alike; the others are counted
# The barrier's word on compute capability 9.0 (measured): bit 63 the parity, then -pending, delivered - announced, -expected.
_COUNT: Final = 1 << 20
_TX: Final = 1 << 21
_ALWAYS_ZERO: Final = 1 << 42 | 1
# The device reads a live barrier by an arrive of nobody. That returns the upper 32 bits only, so all but the lowest 11 of the bytes.
_LOW: Final = (1 << 32) - 1
_TX_STEP: Final = 1 << 11


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the device; see `abi.REPORT_ENTRY`. `state` are the barrier's 64 bits, `value` is what an index was."""

    kind: int
    cta: int
    warp: int
    pc: int
    iteration: int
    barrier: int
    parity: int
    state: int
    value: int
    bound: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is needed to put a report into words.

    Attributes:
        image: names of threads, barriers and lines.
        grid: CTAs in x, y and z.
        limit_us: how long a wait could take.
        sm: compute capability: the layout of a barrier's word is known for 90.
        constants: of the launch, by symbol.
        site: where the pipeline was defined.
    """

    image: Image
    grid: tuple[int, int, int]
    limit_us: int
    sm: int
    constants: Mapping[str, int] = field(default_factory=dict)
    site: Site | None = None


def is_silent(raw: bytes | memoryview) -> bool:
    """Nothing was reported."""
    skip, count, _, _ = _HEADER.unpack_from(raw)
    return not skip and not count


def read_entries(raw: bytes | memoryview) -> tuple[tuple[Entry, ...], int]:
    """The entries that there was room for, and how many there were."""
    names = [name for name, _, _ in REPORT_ENTRY]
    count: int = _HEADER.unpack_from(raw)[1]
    entries = []
    for i in range(min(count, REPORT_ENTRIES)):
        field = dict(zip(names, _ENTRY.unpack_from(raw, _HEADER.size + i * _ENTRY.size), strict=True))
        state, value = (field.pop(f"{name}_low") | field.pop(f"{name}_high") << 32 for name in ("state", "value"))
        entries.append(Entry(state=state, value=value, **field))
    return tuple(entries), count


def failure(raw: bytes | memoryview, facts: Facts) -> ExecutionError | None:
    """The error that a report says, or None for a launch that went well."""
    if is_silent(raw):
        return None
    if len(raw) < REPORT_BYTES:
        raise ValueError(f"a report has {REPORT_BYTES} bytes, this one {len(raw)}")
    entries, count = read_entries(raw)
    broken = tuple(e for e in entries if e.kind in (ReportKind.OPCODE, ReportKind.PLACE) or e.kind not in set(ReportKind))
    if broken or not entries:
        return ExecutionError(*(_internal(e, facts) for e in broken[:1]), *(() if broken else (_mute(facts),)))
    data = (ReportKind.INDEX, ReportKind.EMPTY)
    indices: dict[tuple[object, ...], list[Entry]] = {}
    for e in entries:
        if e.kind in data:
            indices.setdefault((e.kind, e.parity, e.value, e.bound, _read(e, facts), _site(e, facts)), []).append(e)
    if indices:  # others that were waiting then are a consequence
        return ExecutionError(*(_index(group, facts) for group in indices.values()))
    return DeadlockError(*_waiting(entries, count, facts))


# ---- waits
def _waiting(entries: Sequence[Entry], count: int, facts: Facts) -> list[Diagnostic]:
    """One diagnostic for warps that wait at one place for one barrier in one state; those that gave up first come first."""
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: e.kind):
        key = (_agent(entry, facts), entry.pc, entry.barrier % CTA_WINDOW_BYTES, entry.parity, _missing(entry, facts.sm))
        groups.setdefault(key, []).append(entry)
    explanation = _explanation(entries, facts)
    found = [replace(_wait(group, facts), explanation=explanation) for group in groups.values()]
    if count > len(entries):
        rest = count - len(entries)
        found.append(Diagnostic(rule=DEADLOCK, what=f"{rest} more warps were waiting; a report has room for {REPORT_ENTRIES}"))
    return found


def _explanation(entries: Sequence[Entry], facts: Facts) -> Deadlock | None:
    """Who waits for whom in the cluster whose wait was given up first; None where the layout of a barrier's word is not known.

    Threads that wait at a sync do not report: they are taken to have ended.
    """
    program = next((where.program for where in facts.image.sites.values()), None)
    if program is None or facts.sm != 90:
        return None
    first = next((e for e in entries if e.kind == ReportKind.TIMEOUT), entries[0])
    blocks = {e.cta: _block(e.cta, facts.grid) for e in entries}
    corner = tuple(n // c for n, c in zip(blocks[first.cta], program.cluster, strict=True))
    named, steps, rows = classes(program), list(program.walk()), dict[tuple[int, str], Stuck]()
    for entry in entries:
        block = blocks[entry.cta]
        words = _agent(entry, facts)
        step = _step(entry, facts, steps)
        if tuple(n // c for n, c in zip(block, program.cluster, strict=True)) == corner and words in named and step is not None:
            x, y, z = (n % c for n, c in zip(block, program.cluster, strict=True))
            rank = x + program.cluster[0] * (y + program.cluster[1] * z)
            rows.setdefault((rank, words), Stuck(rank=rank, threads=named[words], step=step, on=_on(entry, program, rank, step)))
    cx, cy, cz = program.cluster
    inside = [(x, y, z) for z in range(cz) for y in range(cy) for x in range(cx)]
    where = [(corner[0] * cx + x, corner[1] * cy + y, corner[2] * cz + z) for x, y, z in inside]
    return explain(program, list(rows.values()), constants=facts.constants, blocks=where)


def _block(cta: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    return cta % grid[0], cta // grid[0] % grid[1], cta // (grid[0] * grid[1])


def _step(entry: Entry, facts: Facts, steps: Sequence[Step]) -> Step | None:
    """The wait of the program that a record does or helps to do."""
    where = facts.image.sites.get(entry.pc)
    if where is None or where.op is None:
        return None
    same = [step for step in steps if step.op is where.op]
    return next(iter(same or [step for step in steps if step.op == where.op and step.site == where.site]), None)


def _on(entry: Entry, program: Program, rank: int, step: Step) -> Barrier | Token | None:
    if entry.parity == NO_TOKEN:
        return Token(number=step.op.tokens[0]) if isinstance(step.op, ops.MbarrierWait) else None
    offset, word = entry.barrier % CTA_WINDOW_BYTES - SHARED_BASE, entry.state
    if word & _ALWAYS_ZERO:
        return None
    pending, delivered = -(word >> 43) % _COUNT, word >> 21 & (_TX - 1)
    for number, decl in enumerate(program.barriers):
        index, rest = divmod(offset - decl.offset, MBARRIER_BYTES)
        if 0 <= index < decl.stages and not rest:
            tx = -(delivered - _TX if delivered >= _TX // 2 else delivered)
            apart = 1 if word & _LOW else _TX_STEP
            return Barrier(
                rank=rank, decl=number, index=index, parity=word >> 63, pending=pending, tx=tx, tx_step=apart, asked=entry.parity
            )
    return None


def _wait(group: Sequence[Entry], facts: Facts) -> Diagnostic:
    first = group[0]
    name = barrier_name(facts.image, first.barrier)
    missing = _missing(first, facts.sm)
    how_long = (
        f"waited for {facts.limit_us / 1e6:g} s" if first.kind == ReportKind.TIMEOUT else "was waiting when another wait was given up"
    )
    phase = "nobody has made the token that it waits for" if first.parity == NO_TOKEN else f"its phase of parity {first.parity} is not over"
    details = [phase, *([f"iteration {first.iteration}"] if first.iteration else []), how_long]
    where, agent = facts.image.sites.get(first.pc), _agent(first, facts)
    return Diagnostic(
        rule=DEADLOCK,
        what=f"{agent} of {_ctas(group, facts)} {_verb('waits', [agent])} for a phase of `{name}` that does not end",
        got=", ".join([*missing, *details, *([f"at `{where.words}`"] if where is not None and where.words else [])]),
        required="all expected arrivals, and announced bytes equal to landed ones",
        fix="if the launch is only slow, allow more time with OXIDECOPY_WAIT_LIMIT_MS; "
        'else run it on Device.open("sim"), which names what is missing',
        site=_site(first, facts),
    )


def _missing(entry: Entry, sm: int) -> tuple[str, ...]:
    """What the barrier's bits say is missing; nothing where their layout is not known, or where they are not those of a live barrier."""
    word = entry.state
    if sm != 90 or word & _ALWAYS_ZERO:
        return ()
    expected, coarse = -(word >> 1) % _COUNT, "" if word & _LOW else "up to "
    pending, delivered = -(word >> 43) % _COUNT, word >> 21 & (_TX - 1)
    landed = delivered - _TX if delivered >= _TX // 2 else delivered
    said = []
    if pending:
        of = f" of {expected} arrivals" if expected else " arrival" if pending == 1 else " arrivals"
        said.append(f"{pending}{of} missing")
    if landed < 0:
        said.append(f"{coarse}{-landed} announced bytes not landed")
    elif landed > 0:
        said.append(f"{'at least ' if coarse else ''}{landed} bytes landed that were never announced")
    return tuple(said)


# ---- everything else
def _index(group: Sequence[Entry], facts: Facts) -> Diagnostic:
    """What threads read that is no index: one diagnostic for all that read the same."""
    first = group[0]
    agents = list(dict.fromkeys(_agent(entry, facts) for entry in group))
    who = f"{' and '.join(agents)} of {_ctas(group, facts)}"
    value, array, site = str(first.value - (1 << 64) if first.value >> 63 else first.value), _read(first, facts), _site(first, facts)
    if first.kind == ReportKind.EMPTY:
        return Diagnostic(
            rule=INDEX_RANGE,
            what=f"{who} {_verb('points', agents)} a descriptor at a window without elements",
            got=f"{value} elements along a dimension",
            required="one at least: a descriptor cannot be empty",
            fix="leave empty pieces out of the list of work",
            site=site,
        )
    if first.parity == 1:  # then it is where it looked, else what it found there
        what, fix = f"{who} {_verb('looks', agents)} for an index outside {repr(array) if array else 'its array'}", "read inside the array"
    else:
        what = f"{who} read an index{f' from {array!r}' if array else ''} that is out of range"
        fix = "check the indices on the host, or raise `below` to the extent that they go into"
    return Diagnostic(rule=INDEX_RANGE, what=what, got=value, required=f"0 to {first.bound - 1}", fix=fix, site=site)


def _read(entry: Entry, facts: Facts) -> str:
    """The array that a record reads an index from; empty for any other record."""
    where = facts.image.sites.get(entry.pc)
    return where.op.array.name if where is not None and isinstance(where.op, ops.LoadIndex) else ""


def _verb(singular: str, agents: Sequence[str]) -> str:
    """The verb for one thread, or for several."""
    return singular if len(agents) == 1 and not agents[0].startswith("threads") else singular.removesuffix("s")


def _internal(entry: Entry, facts: Facts) -> Diagnostic:
    where = facts.image.sites.get(entry.pc)
    if entry.kind == ReportKind.OPCODE and where is not None and isinstance(where.op, ops.EDITS):
        return Diagnostic(
            rule=INTERNAL,
            what="this GPU runs kernels that its driver made of PTX for all, which cannot replace a descriptor",
            got=f"`{where.words}` at record {entry.pc}",
            required="kernels built for its architecture: tensormap.replace is an instruction of those alone",
            fix="use a table of descriptors made on the host (ox.DescriptorTable)",
            site=_site(entry, facts),
        )
    place = entry.kind == ReportKind.PLACE
    known = ReportKind(entry.kind).name if entry.kind in set(ReportKind) else f"kind {entry.kind}"
    return Diagnostic(
        rule=INTERNAL,
        what="dynamic shared memory does not start where the code was made for"
        if place
        else "the interpreter met a record it does not know",
        got=f"{known} at record {entry.pc}, warp {entry.warp} of {_ctas((entry,), facts)}",
        required=f"shared memory from {SHARED_BASE:#x}" if place else "a record of this version",
        fix="report this: it is a mistake of oxidecopy",
        site=_site(entry, facts),
    )


def _mute(facts: Facts) -> Diagnostic:
    return Diagnostic(
        rule=INTERNAL,
        what=f"the launch of `{facts.image.name}` was given up, and no warp said why",
        fix='run it on Device.open("cuda:0", checked=True), or on Device.open("sim")',
        site=facts.site,
    )


# ---- the user's words
def barrier_name(image: Image, address: int) -> str:
    """`full[2]` for the barrier at a shared address, of whatever CTA of a cluster."""
    return image.barriers.get(address % CTA_WINDOW_BYTES - SHARED_BASE, f"the barrier at shared address {address:#x}")


def _agent(entry: Entry, facts: Facts) -> str:
    warps = facts.image.warps
    return facts.image.agents[warps[entry.warp].agent].words if entry.warp < len(warps) else f"warp {entry.warp}"


def _site(entry: Entry, facts: Facts) -> Site | None:
    where = facts.image.sites.get(entry.pc)
    return where.site if where is not None else None


def _ctas(group: Sequence[Entry], facts: Facts) -> str:
    """`CTA (1, 0, 0)`, or the first few of several."""
    x, y, _ = facts.grid
    linear = list(dict.fromkeys(entry.cta for entry in group))
    named = [str((n % x, n // x % y, n // (x * y))) for n in linear[:_CTAS_NAMED]]
    rest = len(linear) - len(named)
    return f"CTA{'s' if len(linear) > 1 else ''} {', '.join(named)}" + (f" and {rest} more" if rest else "")
