"""Takes the verifier's rules away, one at a time, and shows a test that fails: `python -m oxidecopy._tools.rule_mutants`.

First all tests of the verifier run once, and it is noted which of them see which rule reported, and from which place of the sources. Then
each rule is silenced, and after that each place alone: what it would report is dropped, as if it were not there. The tests that saw it
run again until one fails. A rule or place without such a test has survived, and the tool ends with 1.

`--store` writes the smallest program that breaks each rule, and no other one, to `tests/cases/verifier_rules.json`; a test holds the
verifier against these in every run of the tests, so this tool is for those who change the rules.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Final, final

import pytest
from _pytest.runner import runtestprotocol

from oxidecopy import verify
from oxidecopy.errors import ProgramTextError
from oxidecopy.isa.limits import CLUSTER_MAX, THREADS_MAX
from oxidecopy.program.program import Launch, Program, Step
from oxidecopy.program.text import from_text, to_text
from oxidecopy.verify import report, rule_ids, verifier, walk
from oxidecopy.verify.report import Collector, Report

ROOT: Final = Path(__file__).resolve().parents[2]
STORED: Final = ROOT / "tests" / "cases" / "verifier_rules.json"
RESULT: Final = ROOT / "docs" / "results" / "verifier_rules.json"
RULES: Final = tuple(sorted(value for name, value in vars(rule_ids).items() if name.isupper()))
CHECKED: Final = "tests/verify/test_every_rule.py"  # what is stored is held against the verifier there, which would be no news here
PAGES: Final = "tests/rules/test_pages.py"  # of the rules' pages those of the verifier count
_KEPT: Final = 12  # programs for each rule, until it is known which of them can be stored
# Bounds of the proof as the tests lower them, by the rule that says one was reached: the real ones take seconds to reach.
BOUNDS: Final[dict[str, dict[str, int]]] = {"OX3090": {"verifier.PIECES_MAX": 50}, "OX3091": {"walk.STEPS_MAX": 2000}}
_TRIES_MAX: Final = 25  # tests that are run again for one rule or place, the quick ones first
_SOURCES: Final = ROOT / "oxidecopy" / "verify"


# ---- where rules are reported
def places() -> dict[str, tuple[int, int]]:
    """Every call that reports a rule: `file:line`, with its first and last line."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(_SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add" and len(node.args) > 1:
                found[f"{path.relative_to(_SOURCES)}:{node.lineno}"] = (node.lineno, node.end_lineno or node.lineno)
    return found


@final
@dataclass(slots=True)
class Silencer:
    """Stands in front of `Collector.add`: notes who reports, and drops what is silenced, a rule or a place."""

    calls: dict[str, tuple[int, int]] = field(default_factory=places)
    silenced: str = ""
    seen: set[str] = field(default_factory=set)  # rules and places, since it was last emptied

    def install(self) -> None:
        """For the rest of the process."""
        original = Collector.add

        def add(collector: Collector, rule: str, what: str, **words: Any) -> None:
            place = self._place(sys._getframe(1))  # noqa: SLF001  # the one way to the caller's line
            self.seen |= {rule, place}
            if self.silenced not in (rule, place):
                original(collector, rule, what, **words)

        report.Collector.add = add  # type: ignore[method-assign, assignment]

    def _place(self, frame: Any) -> str:
        name = Path(frame.f_code.co_filename)
        if not name.is_relative_to(_SOURCES):
            return ""
        file = name.relative_to(_SOURCES)
        line = next((n for n in range(frame.f_lineno, 0, -1) if f"{file}:{n}" in self.calls), 0)
        return f"{file}:{line}" if line and frame.f_lineno <= self.calls[f"{file}:{line}"][1] else ""


# ---- programs that break one rule
@final
@dataclass(slots=True)
class Smallest:
    """For each rule programs that were seen to break it and no other one, smallest first."""

    silencer: Silencer
    found: dict[str, list[tuple[Program, Launch]]] = field(default_factory=dict)

    def install(self) -> None:
        """For the rest of the process: looks at whatever is inspected."""
        original = verifier.inspect

        def inspect(program: Program, launch: Launch) -> Report:
            made = original(program, launch)
            if not self.silencer.silenced:
                self._look(program, launch, made)
            return made

        verifier.inspect = inspect
        verify.inspect = inspect

    def _look(self, program: Program, launch: Launch, made: Report) -> None:
        rule = _alone(made)
        if rule:
            kept = self.found.setdefault(rule, [])
            kept.append((program, launch))
            kept.sort(key=lambda pair: _size(pair[0]))
            del kept[_KEPT:]

    def as_data(self) -> dict[str, Any]:
        """By rule: the program as text, its launch, and what else is reported once the rule is silenced."""
        found = {rule: next(filter(None, (self._entry(rule, *pair) for pair in pairs)), None) for rule, pairs in sorted(self.found.items())}
        return {rule: entry for rule, entry in found.items() if entry is not None}

    def _entry(self, rule: str, program: Program, launch: Launch) -> dict[str, Any] | None:
        """None for what breaks the rule only under a bound that a test has changed, or has no text form."""
        legal = replace(_bare(program), threads=min(program.threads, THREADS_MAX), cluster=(1, 1, 1))
        if program.cluster_size <= CLUSTER_MAX:
            legal = replace(legal, cluster=program.cluster)
        names = ("threads", "cluster")
        changes = {name: getattr(program, name) for name in names if getattr(legal, name) != getattr(program, name)}
        try:
            again = replace(from_text(to_text(legal)), **changes)
        except ProgramTextError:
            return None
        bounds = BOUNDS.get(rule, {})
        with lowered(bounds):
            if _alone(verifier.inspect(again, launch)) != rule:
                return None
            self.silencer.silenced = rule
            others = sorted({d.rule for d in verifier.inspect(again, launch).violations})
            self.silencer.silenced = ""
        text = to_text(legal).splitlines()
        return {"launch": asdict(launch), "changes": changes, "bounds": bounds, "others": others, "program": text}


@contextmanager
def lowered(bounds: Mapping[str, int]) -> Iterator[None]:
    """With other bounds of the proof, by `module.NAME`."""
    modules = {"verifier": verifier, "walk": walk}
    places_ = {tuple(name.split(".")): value for name, value in bounds.items()}
    before = {(module, name): getattr(modules[module], name) for module, name in places_}
    try:
        for (module, name), value in places_.items():
            setattr(modules[module], name, value)
        yield
    finally:
        for (module, name), value in before.items():
            setattr(modules[module], name, value)


def _alone(made: Report) -> str:
    """The one rule that a report names; for a program that is accepted the one that it warns of."""
    rules = {d.rule for d in made.violations} or {d.rule for d in made.warnings}
    return rules.pop() if len(rules) == 1 else ""


def stored_text(stored: dict[str, Any]) -> str:
    """As JSON, a line for each line of a program and for each launch."""
    entries = []
    for rule, entry in stored.items():
        program = ",\n".join(f"    {json.dumps(line)}" for line in entry["program"])
        rest = "".join(f'   "{name}": {json.dumps(entry[name])},\n' for name in ("launch", "changes", "bounds", "others"))
        entries.append(f'  "{rule}": {{\n{rest}   "program": [\n{program}\n   ]\n  }}')
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _size(program: Program) -> tuple[int, int, int]:
    return sum(1 for _ in program.walk()), len(program.params) + len(program.tiles), program.cluster_size


def _bare(program: Program) -> Program:
    """Without call sites."""

    def steps(of: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple([Step(step.op, None, steps(step.body)) for step in of])

    return replace(
        program,
        steps=steps(program.steps),
        tiles=tuple([replace(t, site=None) for t in program.tiles]),
        barriers=tuple([replace(b, site=None) for b in program.barriers]),
        requires=tuple([replace(r, site=None) for r in program.requires]),
        site=None,
    )


# ---- pytest from the inside
@final
class Probe:
    """A plugin of pytest that runs the tests that it was given, and then some of them again for each rule and place."""

    def __init__(self) -> None:
        self.silencer = Silencer()
        self.smallest = Smallest(self.silencer)
        self.silencer.install()
        self.smallest.install()
        self.broken: list[str] = []  # tests that fail as they are
        self.killed: dict[str, str] = {}
        self.survived: list[str] = []
        self.tests = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> object:
        """Instead of pytest's own loop."""
        if session.testsfailed or session.config.option.collectonly:
            return None
        saw: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        for number, item in enumerate(session.items):
            self.silencer.seen.clear()
            start = perf_counter()
            good = self._passes(item)
            self.tests += 1
            if not good:
                self.broken.append(item.nodeid)
                continue
            for seen in self.silencer.seen:
                saw[seen].append((perf_counter() - start, number))
        for target in (*RULES, *self.silencer.calls):
            self._silence(target, [session.items[number] for _, number in sorted(saw[target])[:_TRIES_MAX]])
        return True

    def _silence(self, target: str, items: Sequence[pytest.Item]) -> None:
        self.silencer.silenced = target
        failed = next((item.nodeid for item in items if not self._passes(item)), None)
        self.silencer.silenced = ""
        if failed is None:
            self.survived.append(target)
        else:
            self.killed[target] = failed

    @staticmethod
    def _passes(item: pytest.Item) -> bool:
        return all(not made.failed for made in runtestprotocol(item, log=False, nextitem=None))


def as_data(probe: Probe) -> dict[str, Any]:
    """The score, for rules and for places."""
    return {
        "command": "python -m oxidecopy._tools.rule_mutants",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tests": probe.tests,
        "rules": len(RULES),
        "rules_killed": sum(rule in probe.killed for rule in RULES),
        "places": len(probe.silencer.calls),
        "places_killed": sum(place in probe.killed for place in probe.silencer.calls),
        "survived": sorted(probe.survived),
        "killed_by": {rule: probe.killed[rule] for rule in RULES if rule in probe.killed},
    }


def _lines(probe: Probe, data: dict[str, Any]) -> Iterator[str]:
    for name in probe.broken:
        yield f"fails as it is: {name}"
    for target in data["survived"]:
        yield f"survived: {target}"
    yield f"{data['rules_killed']} of {data['rules']} rules, {data['places_killed']} of {data['places']} places that report them"


def _pytest(probe: Probe, tests: Sequence[str]) -> None:
    quiet = ["-q", "-p", "no:cacheprovider", "--no-header", "-W", "ignore"]
    pytest.main([*quiet, "--deselect", CHECKED, "-k", f"OX3 or not {Path(PAGES).stem}", *tests], plugins=[probe])


def main(argv: Sequence[str] | None = None) -> int:
    """0 when each rule and each place is missed by a test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", default=["tests/verify", "tests/test_violations.py", PAGES], help="files or folders of tests")
    parser.add_argument("--output", metavar="FILE.json", type=Path, help=f"write the score, as in {RESULT.relative_to(ROOT)}")
    parser.add_argument("--store", action="store_true", help=f"write {STORED.relative_to(ROOT)}")
    options = parser.parse_args(argv)
    probe = Probe()
    _pytest(probe, options.tests)
    data = as_data(probe)
    print("\n".join(_lines(probe, data)))
    if options.output:
        options.output.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    if options.store:
        STORED.write_text(stored_text(probe.smallest.as_data()), encoding="utf-8")
    return 1 if probe.broken or probe.survived or not probe.tests else 0


if __name__ == "__main__":
    raise SystemExit(main())
