"""What a number of judged programs were made of and how they went, as counts that add up over processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from oxidecopy.fuzz.case import Case
from oxidecopy.fuzz.judge import Verdict
from oxidecopy.program.text import to_text


@final
@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts by what is counted, and the programs on which the judges do not agree.

    Attributes:
        numbers: programs, well formed and mutants, accepted, refused, refusals that a schedule showed, schedules run, bytes compared.
        ops: programs that hold an op, by its mnemonic.
        scenes: programs by what they were made of.
        edits: mutants by what was changed.
        rules: refusals by the verifier's rule; several rules of one program count each.
        unshown: of these, those of programs that no schedule showed to be wrong.
        features: programs by element types, swizzles, modes of maps, sizes of clusters.
        problems: a program on which the judges do not agree, with all that is needed to make it again.
    """

    numbers: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    scenes: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    unshown: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    problems: list[dict[str, Any]] = field(default_factory=list)

    def describe(self, case: Case) -> None:
        """Counts what a program is made of."""
        self.numbers["programs"] += 1
        self.numbers["mutants" if case.edits else "well_formed"] += 1
        self.scenes.update(case.scenes)
        self.edits.update(case.edits)
        program = case.program
        self.ops.update({step.op.mnemonic for step in program.walk()})
        maps = program.maps.values()
        self.features.update({f"dtype {m.dtype}" for m in maps} | {f"dtype {t.dtype}" for t in program.tiles})
        self.features.update({f"swizzle {m.swizzle}" for m in maps} | {f"mode {m.mode}" for m in maps})
        self.features.update({f"rank {m.rank}" for m in maps} | {f"interleave {m.interleave}" for m in maps})
        self.features[f"cluster of {program.cluster_size}"] += 1

    def judged(self, case: Case, verdict: Verdict, seed: int, number: int) -> None:
        """Counts how the verifier and the simulator took it."""
        self.numbers["accepted" if verdict.accepted else "refused"] += 1
        self.numbers["schedules"] += verdict.runs
        if verdict.exhaustive:
            self.numbers[f"exhaustive_{verdict.exhaustive}"] += 1
        if verdict.stopped:
            self.numbers["stopped"] += 1
        if not verdict.accepted:
            self.rules.update(verdict.rules)
            if verdict.shown:
                self.numbers["shown"] += 1
            else:
                self.unshown.update(verdict.rules)
        if not case.edits and not verdict.accepted:
            self.problem(case, "refused, though it is well formed", seed, number, verdict.rules, verdict.detail)
        elif verdict.problem:
            self.problem(case, verdict.problem, seed, number, verdict.rules, verdict.detail)

    def problem(self, case: Case, what: str, seed: int, number: int, rules: tuple[str, ...] = (), detail: str = "") -> None:
        """Notes a program on which the judges do not agree; `number` 0 is the pipeline of the seed, others are its mutants."""
        text = to_text(case.program)
        entry = {"seed": seed, "mutant": number, "label": case.label, "problem": what, "rules": list(rules), "detail": detail}
        self.problems.append({**entry, "grid": list(case.grid), "program": text})

    def add(self, other: Tally) -> None:
        """Takes in what another process has counted."""
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        self.problems += other.problems

    def as_data(self) -> dict[str, Any]:
        """As JSON has it, each kind in order."""
        return {**{name: dict(sorted(getattr(self, name).items())) for name in _COUNTERS}, "problems": self.problems}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Tally:
        """What `as_data` gave."""
        return cls(**{name: Counter(data[name]) for name in _COUNTERS}, problems=list(data["problems"]))


_COUNTERS = ("numbers", "ops", "scenes", "edits", "rules", "unshown", "features")
