"""Roles: which warps produce, consume and store. Declared once with the pipeline, opened as blocks inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, final, get_args

from oxidecopy.errors import Diagnostic, UsageError
from oxidecopy.isa import limits
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.declared import REGISTERS, registers_taken, wrong_registers
from oxidecopy.program.program import RegisterHint
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.symbolic import constant

RoleName = Literal["producer", "consumers", "storer"]
_NAMES: Final = get_args(RoleName)


@final
class Role(NamedTuple):
    """One role's warps, half-open; `number` counts consumer groups."""

    name: RoleName
    first: int
    stop: int
    number: int = 0

    @property
    def threads(self) -> ThreadSet:
        """All threads of the role's warps."""
        return ThreadSet(((self.first * limits.WARP, self.stop * limits.WARP),))

    def __str__(self) -> str:
        return f"{self.name}({self.number})" if self.number else self.name


@final
class Roles(NamedTuple):
    """All roles of a pipeline. `registers` are hints for engines (PTX setmaxnreg), by role."""

    all: tuple[Role, ...]
    registers: tuple[tuple[str, int], ...] = ()

    @property
    def threads(self) -> int:
        """Threads of the CTA: up to the last warp that has a role."""
        return max(r.stop for r in self.all) * limits.WARP

    @property
    def hints(self) -> tuple[RegisterHint, ...]:
        """The register hints by threads, in order; each consumer group has its own."""
        wanted = dict(self.registers)
        return tuple(RegisterHint(r.threads, wanted[r.name]) for r in sorted(self.all, key=lambda r: r.first) if r.name in wanted)

    def of(self, name: RoleName) -> tuple[Role, ...]:
        """The roles of that name, in order of their number."""
        return tuple(r for r in self.all if r.name == name)


def roles(
    *,
    producer: int | range = 1,
    consumers: int | range | Sequence[int | range] = 4,
    store: int | range = 0,
    registers: Mapping[RoleName, int] | None = None,
) -> Roles:
    """Declares roles by warps.

    Args:
        producer: warps of the producer; one elected lane of them issues the loads.
        consumers: warps of the consumer group, or a sequence of them for several groups (an empty one for none).
        store: warps of a separate store role; none by default.
        registers: registers per thread that each role would like (24 to 256, a multiple of 8; 65,536 in all), a hint for GPU engines.

    A number takes that many warps, consumers first (so that groups of four are warpgroups), then the producer, then the store role.
    A `range` names the warps; then all roles must.
    """
    several = isinstance(consumers, Sequence) and not isinstance(consumers, range | str)
    groups: Sequence[object] = tuple(consumers) if isinstance(consumers, Sequence) and several else (consumers,)
    wanted: list[tuple[RoleName, int, object]] = [("consumers", i, g) for i, g in enumerate(groups)]
    wanted.append(("producer", 0, producer))
    wanted += [("storer", 0, store)] if not (isinstance(store, int) and store == 0) else []
    made: list[Role] = []
    at = 0
    broken = []
    for name, number, warps in wanted:
        span = warps if isinstance(warps, range) else range(at, at + (constant(warps) or 0))
        if not span or span.step != 1 or span.start < 0 or span.stop * limits.WARP > limits.THREADS_MAX:
            broken.append(
                _refusal(
                    f"the warps of {name!r} make no role",
                    got=repr(warps),
                    required=f"1 or more consecutive warps below {limits.THREADS_MAX // limits.WARP}",
                    fix="ox.roles(producer=1, consumers=4): numbers of warps, all roles together; consumers=() for none",
                )
            )
            continue
        at = max(at, span.stop)
        made.append(Role(name=name, first=span.start, stop=span.stop, number=number))
    for i, a in enumerate(made):
        broken += [
            _refusal(
                f"the roles {a} and {b} share warps",
                got=f"{a.first} to {a.stop - 1} and {b.first} to {b.stop - 1}",
                required="warps of their own",
                fix="give numbers, and let the roles be laid out",
            )
            for b in made[i + 1 :]
            if a.first < b.stop and b.first < a.stop
        ]
    hints, wrong = _checked_hints({} if registers is None else registers, made)
    broken += wrong
    if broken:
        raise UsageError(*broken)
    found = Roles(all=tuple(made), registers=hints)
    taken = registers_taken(found.hints, found.threads)
    if taken > limits.REGISTERS_PER_CTA:
        asked = ", ".join(f"{len(h.threads)} threads x {h.registers}" for h in found.hints)
        required = f"at most {limits.REGISTERS_PER_CTA} with {limits.REGISTERS_MIN} for each thread of the other warps"
        raise UsageError(_refusal("the register hints ask for more than a CTA can have", got=f"{asked}: {taken}", required=required))
    return found


def _checked_hints(registers: object, made: Sequence[Role]) -> tuple[tuple[tuple[str, int], ...], list[Diagnostic]]:
    """The hints by role, and what is wrong with them."""
    if not isinstance(registers, Mapping):
        wrong = _refusal("register hints are by role", got=repr(registers)[:80], required='a mapping such as {"producer": 40}')
        return (), [wrong]
    known = {r.name for r in made}
    broken = [
        _refusal(
            f"the register hint of {name!r} is for no role",
            got=repr(name)[:80],
            required=", ".join(n for n in _NAMES if n in known) or "a role with warps",
            fix="declare the role, or leave its hint out",
        )
        for name in registers
        if name not in known
    ]
    broken += [
        _refusal(f"the register hint of {name!r} is out of range", got=repr(n)[:80], required=f"{REGISTERS} (PTX setmaxnreg)")
        for name, n in registers.items()
        if name in known and wrong_registers(n)
    ]
    return tuple(sorted((str(name), n) for name, n in registers.items() if name in known)), broken


def _refusal(what: str, *, got: str, required: str, fix: str = "") -> Diagnostic:
    return Diagnostic(rule="OX1101", what=what, got=got, required=required, fix=fix, site=caller_site())
