"""The validator: all rules asked at once, and the verdict.

Two questions are kept apart. A map *encodes* when the driver answers CUDA_SUCCESS on the device; it is *usable* when copies through it
then do what it says. What libraries refuse without need is only advice here: boxes larger than the array, overlapping, unordered and zero
strides all work. Python integers cannot overflow, so any parameters get a verdict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Final, SupportsIndex, final

from oxidecopy.errors import DescriptorError, Diagnostic, UsageError
from oxidecopy.maps import advice_rules, array_rules, box_rules, option_rules
from oxidecopy.maps.facts import Facts, capability
from oxidecopy.maps.parameters import KINDS, MapParameters
from oxidecopy.maps.rule import Breach, Finding, Gate, MapRule

RULES: Final[tuple[MapRule, ...]] = (*array_rules.RULES, *box_rules.RULES, *option_rules.RULES, *advice_rules.RULES)
_BY_KIND: Final = {
    (gate, kind): tuple(rule for rule in RULES if rule.gate == gate and kind in rule.kinds)
    for gate in ("encodes", "usable", "advice")
    for kind in KINDS
}
_ARCH: Final = re.compile(r"(?:sm_|compute_)?(\d{2,3})[af]?|(\d{1,2})\.(\d)")
_OLDEST: Final = 20  # smaller integers are meant as 9 for 9.0
_TUPLES: Final = ("global_dim", "global_strides", "box_dim", "element_strides", "lower", "upper")
_MENDS_MAX: Final = 64  # fixes applied one after the other: more than there are rules


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the validator says of one set of parameters.

    Attributes:
        parameters: what was judged.
        sm: the compute capability it was judged for, 90 for 9.0.
        findings: every broken rule, those of the driver first; advice only when the map encodes.
    """

    parameters: MapParameters
    sm: int
    findings: tuple[Finding, ...]

    @property
    def encodes(self) -> bool:
        """The driver accepts it."""
        return not self._of("encodes")

    @property
    def usable(self) -> bool:
        """It encodes, and copies do what it says."""
        return not self.errors

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """All that keeps it from being usable."""
        return (*self._of("encodes"), *self._of("usable"))

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Legal, and almost surely wrong or slow, whatever the map is used for."""
        return tuple(f.diagnostic for f in self.findings if f.rule.gate == "advice" and not f.rule.when)

    @property
    def hints(self) -> tuple[Diagnostic, ...]:
        """What is wrong or slow in some uses only, which no parameter tells: stores through rows that overlap, say."""
        return tuple(f.diagnostic for f in self.findings if f.rule.gate == "advice" and f.rule.when)

    def check(self, *, warnings: bool = False) -> None:
        """Raises what the verdict says.

        Args:
            warnings: raise those, and the hints, too.

        Raises:
            DescriptorError: with all of `errors`, when there are any.
        """
        found = (*self.errors, *((*self.warnings, *self.hints) if warnings else ()))
        if found:
            raise DescriptorError(*found)

    def mended(self) -> Verdict | None:
        """The verdict after the fixes that `errors` propose, one after the other; None when one of them is no change of parameters."""
        verdict: Verdict = self
        for _ in range(_MENDS_MAX):
            broken = [f.breach for f in verdict.findings if f.rule.gate != "advice"]
            if not broken:
                return verdict
            mends = [b.mended for b in broken if b.mended is not None]
            if not mends:
                return None
            verdict = validate(mends[0], arch=self.sm)
        return None

    def _of(self, gate: Gate) -> tuple[Diagnostic, ...]:
        return tuple(f.diagnostic for f in self.findings if f.rule.gate == gate)

    def __str__(self) -> str:
        said = "usable" if self.usable else "encodes, and is not usable" if self.encodes else "does not encode"
        lines = [f"{self.parameters.kind} map {said} on compute capability {capability(self.sm)}", *map(str, self.errors)]
        hints = [f"where it is {f.rule.when}: {f.diagnostic}" for f in self.findings if f.rule.when]
        return "\n".join([*lines, *(f"warning: {d}" for d in self.warnings), *hints])


def validate(parameters: MapParameters, *, arch: int | str = 90) -> Verdict:
    """Judges the parameters of a tensor map, without a GPU.

    Args:
        parameters: all arguments of the driver's call.
        arch: the compute capability: 90, "9.0", "sm_90" or "sm_90a".

    Raises:
        UsageError: for an `arch` that is none, or parameters that are not made of integers.
    """
    sm = compute_capability(arch)
    _readable(parameters)
    facts = Facts(parameters, sm)
    findings = [*_found(facts, "encodes"), *_found(facts, "usable")]
    if not any(f.rule.gate == "encodes" for f in findings):
        findings += _found(facts, "advice")
    return Verdict(parameters=parameters, sm=sm, findings=tuple(findings))


def _readable(parameters: object) -> None:
    """Any integers have a verdict; nothing else has.

    Raises:
        UsageError: with every field that holds something else.
    """
    if not isinstance(parameters, MapParameters):
        fix = "`desc.verdict` judges a descriptor; `ox.MapParameters.of(tensor_map, address)` makes parameters of a map"
        required = "ox.MapParameters"
        raise UsageError(
            Diagnostic(rule="OX2057", what="these are no parameters of a map", got=type(parameters).__name__, required=required, fix=fix)
        )
    wrong = []
    for field in fields(MapParameters):
        value = getattr(parameters, field.name)
        if field.name == "kind":
            known, required = value in KINDS, ", ".join(map(repr, KINDS))
        elif field.name == "element":
            known, required = isinstance(value, str), "a word"
        elif field.name in _TUPLES:
            known, required = value is None or (isinstance(value, tuple) and all(map(_is_integer, value))), "a tuple of integers, or None"
        else:
            known, required = _is_integer(value), "an integer"
        if not known:
            what, fix = f"`{field.name}` of a map's parameters is of another type", "pass the numbers that the driver is called with"
            wrong.append(Diagnostic(rule="OX2057", what=what, got=f"{value!r} ({type(value).__name__})"[:200], required=required, fix=fix))
    if wrong:
        raise UsageError(*wrong)


def _is_integer(value: object) -> bool:
    # What it nearly always is comes first: to ask for a protocol costs fifty times as much.
    return type(value) is int or (isinstance(value, SupportsIndex) and not isinstance(value, bool))


def errors_of(parameters: MapParameters, sm: int) -> list[Diagnostic]:
    """What `validate` has under `errors`, without the advice: what each factory of descriptors asks."""
    facts = Facts(parameters, sm)
    return [finding.diagnostic for gate in ("encodes", "usable") for finding in _found(facts, gate)]


def _found(facts: Facts, gate: str) -> list[Finding]:
    return [
        Finding(rule=rule, breach=breach, diagnostic=_diagnostic(rule, breach))
        for rule in _BY_KIND[gate, facts.p.kind]
        for breach in rule.check(facts)
    ]


def _diagnostic(rule: MapRule, breach: Breach) -> Diagnostic:
    # Only a refusal needs the pages: the accepting path stays fast.
    from oxidecopy.rules.descriptor import SOURCES

    required = f"{breach.required or rule.bound} ({SOURCES[rule.id]})"
    return Diagnostic(rule=rule.id, what=breach.what, got=breach.got, required=required, fix=breach.fix)


def compute_capability(arch: object) -> int:
    """`arch` as a number.

    Raises:
        UsageError: when it is none.
    """
    if isinstance(arch, int) and not isinstance(arch, bool) and _OLDEST <= arch < 1000:
        return arch
    named = _ARCH.fullmatch(arch) if isinstance(arch, str) else None
    if named is None:
        required = '90, "9.0", "sm_90" or "sm_90a"'
        fix = f"arch={arch * 10}" if isinstance(arch, int) and 9 <= arch < _OLDEST else "arch=90"
        raise UsageError(Diagnostic(rule="OX2055", what="no compute capability", got=repr(arch), required=required, fix=fix))
    return int(named[1] or named[2] + named[3])
