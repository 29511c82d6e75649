"""The pages of the site: what is made of README, rules, lessons, commands and the API, and that links between them lead somewhere."""

from __future__ import annotations

import re
from posixpath import normpath

import pytest

import oxidecopy as ox
from oxidecopy._tools import site
from oxidecopy._tools.site import DOCS, ROOT, linked, on_config, parent, place

PAGES = dict(site.pages())
FILES = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.is_file()}
LINK = re.compile(r"\]\((?P<to>[^)\s]+)\)")


def text_of(page: str) -> str:
    return PAGES[page] if page in PAGES else linked((DOCS / page).read_text(), f"docs/{page}")


def test_links_lead_to_pages() -> None:
    broken = []
    for page in (*PAGES, *(name for name in FILES if name.endswith(".md"))):
        prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
        for link in LINK.finditer(prose):
            path = link["to"].partition("#")[0]
            if path and "://" not in path and normpath(f"{parent(page)}/{path}") not in PAGES.keys() | FILES:
                broken.append((page, link["to"]))
    assert broken == []


def test_every_rule_and_lesson_has_a_page() -> None:
    assert {f"rules/{rule}.md" for rule in site.rules()} <= PAGES.keys()
    assert {f"examples/{path.stem}.md" for path in (ROOT / "examples").glob("*.py")} <= PAGES.keys()
    page = PAGES["rules/OX3044.md"]
    for script in (site.rules()["OX3044"].wrong, site.rules()["OX3044"].right):
        assert f"```python\n{script.strip()}\n```" in page


def test_every_public_name_is_on_one_page_of_the_api() -> None:
    api = {name: text for name, text in PAGES.items() if name.startswith("api/") and name != "api/README.md"}
    for name in set(ox.__all__) - {"__version__"}:
        assert [page for page, text in api.items() if f"\n## `ox.{name}`\n" in text or text.startswith(f"## `ox.{name}`\n")], name
    assert "### `Cta.elect`" in PAGES["api/rings.md"]
    assert "- `pad`: start rows a multiple of 16 bytes apart" in PAGES["api/devices.md"]


def test_every_command_is_told() -> None:
    for command in ("run", "check", "explain", "show tile", "conformance fuzz", "bench gpu"):
        assert f"## `oxidecopy {command}`" in PAGES["commands.md"]


@pytest.mark.parametrize(
    ("text", "page", "made"),
    [
        ("see [c](docs/concepts.md#swizzles)", "README.md", "see [c](concepts.md#swizzles)"),
        ("see [c](concepts.md)", "docs/rings.md", "see [c](concepts.md)"),
        ("see [6](../examples/06_prefetch.py)", "docs/rings.md", "see [6](examples/06_prefetch.md)"),
        ("see [k](../oxidecopy/kernels)", "docs/kernels.md", "see k"),
        ("see [k](https://a.b/c)", "docs/kernels.md", "see [k](https://a.b/c)"),
        ("refused (OX3044)", "docs/rings.md", "refused ([OX3044](rules/OX3044.md))"),
        ("refused (OX3044)", "docs/rules/OX3014.md", "refused ([OX3044](OX3044.md))"),
        ("`OX3044`, OX9999", "docs/rings.md", "`OX3044`, OX9999"),
        ("# OX3044: a title", "docs/rings.md", "# OX3044: a title"),
        ("```text\nOX3044 [x](y.md)\n```", "docs/rings.md", "```text\nOX3044 [x](y.md)\n```"),
        ("<!-- output: python x.py -->\n```text\n1\n```", "docs/rings.md", "```text\n1\n```"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(text: str, page: str, made: str) -> None:
    assert linked(text, page) == made


def test_places() -> None:
    assert place("README.md") == "index.md"
    assert place("docs/results") == "results/README.md"
    assert place("tests/cases/violations/init_twice.py") == "violations/init_twice.md"
    assert place("oxidecopy/runtime.py") == ""


def test_a_page_that_the_navigation_lacks_is_added_to_it() -> None:
    pages = {"A": [path.name for path in DOCS.glob("*.md") if path.name != "emit.md"]}
    assert on_config({"nav": [pages]})["nav"] == [pages, {"More": ["emit.md"]}]
    assert on_config({"nav": [pages, "emit.md"]})["nav"] == [pages, "emit.md"]
