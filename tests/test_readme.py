"""README and docs: their programs run, what they show is what is printed, their links and paths exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from oxidecopy._tools import docs

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = pytest.mark.parametrize("page", docs.PAGES, ids=lambda page: page.name)


@PAGES
def test_what_is_shown_is_what_is_printed(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.main(["--check"], [page]) == 0, capsys.readouterr().err


def test_the_readme_shows_a_program_that_runs_and_what_both_gates_refuse() -> None:
    assert "first.py" in docs.programs(README)
    assert docs.commands(README) == ["oxidecopy run hang.py", "mypy --strict typed.py", "oxidecopy check hazards.py"]
    assert len(re.findall(r"^hang\.py:\d+: .*\[OX3020\]$", README, re.MULTILINE)) == 1
    assert len(re.findall(r"^typed\.py:\d+: error: .*\[[a-z-]+\]$", README, re.MULTILINE)) >= 8
    assert len(re.findall(r"^hazards\.py:\d+: .*\[OX3\d\d\d\]$", README, re.MULTILINE)) >= 3


def test_the_wrong_lines_are_the_ones_refused() -> None:
    """Each commented line of the typed program gets an error, and no other line does."""
    lines = docs.programs(README)["typed.py"].splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "  # " in line}
    assert wrong == {int(number) for number in re.findall(r"^typed\.py:(\d+): error", README, re.MULTILINE)}


@pytest.mark.parametrize(
    ("marker", "command"),
    [
        ("main-command", "python3 -m venv .venv && .venv/bin/pip install -q -e '.[cli]' && .venv/bin/oxidecopy demo"),
        ("test-command", "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/python -m oxidecopy._tools.check"),
    ],
)
def test_the_commands_that_ci_reads(marker: str, command: str) -> None:
    assert README.count(marker) == 1
    assert f"<!-- {marker} -->\n```bash\n{command}\n```\n" in README


def test_counts_in_the_readme_are_those_of_the_results() -> None:
    results = ROOT / "docs/results"

    def of(name: str) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((results / name).read_text())
        return data

    for name, words in (("conformance.json", "programs equal to the simulator"), ("conformance_emitted.json", "as CUDA C++")):
        assert f"{of(name)['equal']:,} of {of(name)['cases']:,} {words}" in README
    assert of("conformance_descriptors.json")["agree"] == of("conformance_descriptors.json")["sets"]
    assert f"all of {of('conformance_descriptors.json')['sets']:,} parameter sets" in README
    assert re.search(rf"\b{of('fuzz_gpu.json')['numbers']['programs']:,}\s+random programs", README)
    assert f"[{len((results / 'copies.csv').read_text().splitlines()) - 1} kinds of copies]" in README
    lessons = len(list((ROOT / "examples").glob("[0-9]*.py")))
    assert (lessons, len(of("sanitizer.json")["verdicts"])) == (32, 3 * 32)  # the README says thirty-two
    assert of("sanitizer.json")["clean"]


@PAGES
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)#]+)\)", prose):
        assert link.startswith("https://") or (page.parent / link).exists(), link


@PAGES
def test_paths_of_the_package_exist(page: Path) -> None:
    for path in re.findall(r"`((?:oxidecopy|tests|examples|docs)/[\w/.]+)`", page.read_text()):
        assert (ROOT / path).exists(), path


@PAGES
def test_rules_named_have_the_form_of_ids(page: Path) -> None:
    assert not re.findall(r"\bOX\d{1,3}\b|\bOX\d{5,}\b", page.read_text())
