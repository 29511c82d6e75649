"""The documentation as a site: a hook of `mkdocs.yml`, and `python -m oxidecopy._tools.site [--into FOLDER]` to build it strictly.

docs/*.md are pages as they are. What is said elsewhere is made into pages here, from the files that say it: the README is the home page,
each rule and each lesson has one, and so have the commands and the public API with its docstrings. A page of docs/ that the navigation of
`mkdocs.yml` does not name yet is added to it under "More".
"""

from __future__ import annotations

import argparse
import ast
import logging
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, MutableMapping, Sequence
from importlib import import_module
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any, Final

from oxidecopy._tools import public_api
from oxidecopy.rules.rule import GATES, SHOWN

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
CONFIG: Final = ROOT / "mkdocs.yml"
_LINK: Final = re.compile(r"(?P<text>!?\[(?:[^\[\]`]|`[^`]*`)*\])\((?P<to>[^)\s]+)\)")
_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_RULE: Final = re.compile(r"\bOX\d{4}\b")
_MARKER: Final = re.compile(r"^<!-- (?:python|output|table|main-command|test-command|drawing)\b[^\n]*-->\n", re.MULTILINE)
_MORE: Final = "More"


# ---- links
def linked(text: str, page: str) -> str:
    """Markdown of a file of the repository as that of its page in the site: links lead to pages, ids of rules too.

    `page` is the file's path in the repository. Links out of docs/ lead to the page of what they name, or are no links any more.
    """
    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += [_prose(text[end : fence.start()], page), fence[0]]
        end = fence.end()
    return "".join([*parts, _prose(text[end:], page)])


def _prose(text: str, page: str) -> str:
    text = _MARKER.sub("", text)
    text = _LINK.sub(lambda m: _link(m["text"], m["to"], page), text)
    here = place(page)

    def of_rule(match: re.Match[str]) -> str:
        return f"[{match[0]}]({relpath(f'rules/{match[0]}.md', parent(here))})" if match[0] in rules() else match[0]

    # Not inside of code, links and headings: those would not be links, or links in links.
    pieces = re.split(r"(`[^`\n]*`|!?\[[^\]]*\]\([^)]*\)|^#[^\n]*$)", text, flags=re.MULTILINE)
    return "".join(piece if i % 2 else _RULE.sub(of_rule, piece) for i, piece in enumerate(pieces))


def _link(text: str, to: str, page: str) -> str:
    path, _, anchor = to.partition("#")
    if not path or "://" in path:
        return f"{text}({to})"
    found = place(normpath(f"{parent(page)}/{path}"))
    if not found:
        return text[1:-1]
    return f"{text}({relpath(found, parent(place(page)))}{f'#{anchor}' if anchor else ''})"


def parent(path: str) -> str:
    """The folder of a path with forward slashes; never empty."""
    return path.rpartition("/")[0] or "."


def place(path: str) -> str:
    """Where a file of the repository is in the site; empty when it has no page."""
    if path in ("README.md", "docs"):
        return "index.md"
    if path in ("examples", "docs/results"):
        return f"{path.removeprefix('docs/')}/README.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if re.fullmatch(r"examples/\w+\.py|tests/cases/violations/\w+\.py", path):
        return f"{path.removeprefix('tests/cases/').removesuffix('.py')}.md"
    return "CHANGELOG.md" if path == "CHANGELOG.md" else ""


# ---- pages that are made
def pages() -> Iterator[tuple[str, str]]:
    """Path in the site and text of every page that is no file of docs/."""
    yield "index.md", linked((ROOT / "README.md").read_text(encoding="utf-8"), "README.md")
    yield "CHANGELOG.md", linked((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), "CHANGELOG.md")
    yield "commands.md", _commands()
    yield from _rule_pages()
    yield from _sources("examples", "Lessons", "Each is a script of its own; `oxidecopy demo` runs them all.")
    yield from _sources("tests/cases/violations", "", "")
    yield from api_pages()


def rules() -> dict[str, Any]:
    """The rules by id."""
    from oxidecopy.rules import all_rules

    return dict(all_rules())


def _rule_pages() -> Iterator[tuple[str, str]]:
    index = ["# Rules\n", "Every refusal carries the id of a rule; `oxidecopy explain ID` prints the same page.\n"]
    gate = ""
    for rule in rules().values():
        if rule.id[2] != gate:
            gate = rule.id[2]
            index.append(f"\n## OX{gate}xxx: {GATES[gate]}\n")
        index.append(f"- [{rule.id}]({rule.id}.md) {_escaped(rule.title)}")
        lines = [f"# {rule.id}: {_escaped(rule.title)}", f"Raised as `oxidecopy.errors.{rule.error}`.", "## Why", _escaped(rule.why)]
        lines += ["## Source", _escaped(rule.source)]
        for heading, code in (("Wrong", rule.wrong), ("Right", rule.right)):
            if code:
                lines += [f"## {heading}", SHOWN[rule.shown].strip(), f"```python\n{code.strip()}\n```"]
        yield f"rules/{rule.id}.md", linked("\n\n".join(line for line in lines if line) + "\n", f"docs/rules/{rule.id}.md")
    yield "rules/README.md", "\n".join(index) + "\n"


def _escaped(words: str) -> str:
    """Prose that is no Markdown, but for what is in backticks."""
    parts = words.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\*_<>\[\]])", r"\\\1", parts[i])
    return "`".join(parts)


def _sources(folder: str, title: str, words: str) -> Iterator[tuple[str, str]]:
    """A page for each numbered or named source file, and one that lists them."""
    index = [f"# {title}\n", f"{words}\n"]
    for path in sorted((ROOT / folder).glob("*.py")):
        page = place(f"{folder}/{path.name}")
        if not page:
            continue
        source = path.read_text(encoding="utf-8")
        summary = (ast.get_docstring(ast.parse(source)) or path.stem).partition("\n")[0]
        yield page, f"# {path.stem}\n\n{linked(summary, f'{folder}/{path.name}')}\n\n```python\n{source}```\n"
        index.append(f"- [{path.stem}]({path.stem}.md): {summary}")
    if title:
        yield f"{folder}/README.md", linked("\n".join(index) + "\n", f"{folder}/README.md")


def _commands() -> str:
    """What the command line says of itself; this room knows it as a command only."""
    command = [sys.executable, "-m", "oxidecopy.cli.reference"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


# ---- the public API
# Which page a public name is on, by the module that it is from: the first that matches.
_HOST, _TYPED, _TILES = "oxidecopy.host", "oxidecopy.typed", "oxidecopy.tiles"
API: Final = (
    (
        "devices",
        "Devices, arrays, streams",
        (*(f"{_HOST}.{of}" for of in ("device", "stream", "graph")), "oxidecopy.interop", f"{_TYPED}.global_array"),
    ),
    ("calls", "Copies, transforms, reductions in one call", ("oxidecopy.oneliners",)),
    ("pipelines", "Pipelines and launches", (_HOST,)),
    ("descriptors", "Descriptors and maps", ("oxidecopy.maps", *(f"{_TYPED}.{of}" for of in ("descriptor", "im2col", "tensormap")))),
    ("rings", "Roles, rings, maps of tiles", (_TILES,)),
    ("barriers", "Barriers, tokens, groups", tuple(f"{_TYPED}.{of}" for of in ("barrier", "states", "tokens", "leader"))),
    ("types", "Element types, boxes, swizzles, symbols", tuple(f"{_TYPED}.{of}" for of in ("dtypes", "geometry", "symbolic", "scalar"))),
    ("copies", "Copies, reductions, cache policies", (_TYPED, "oxidecopy.engines")),
    ("errors", "Errors", ("oxidecopy.errors",)),
)


def api_pages() -> Iterator[tuple[str, str]]:
    """The public API by topic, signatures and docstrings."""
    on: dict[str, list[tuple[str, str, str]]] = {page: [] for page, _, _ in API}
    for name, home, original in public_api.names():
        whole = f"{home}.{original}" if public_api.is_module(f"{home}.{original}") else home
        page = next(page for page, _, homes in (*API, ("pipelines", "", ("",))) if whole.startswith(tuple(homes)))
        on[page].append((name, home, original))
    index = [
        "# API",
        f"Every public name, its signature and docstring; [`public_api.txt`](../{public_api.PAGE.name}) has all signatures at once.\n",
    ]
    for page, title, _ in API:
        index.append(f"- [{title}]({page}.md): " + ", ".join(f"`{name}`" for name, _, _ in on[page]))
        lines = [f"# {title}"]
        for name, home, original in on[page]:
            lines += public_api.documented(f"ox.{name}", home, original)
        yield f"api/{page}.md", linked("\n\n".join(lines) + "\n", f"docs/api/{page}.md")
    yield "api/README.md", "\n".join(index) + "\n"


# ---- mkdocs
def on_config(config: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Adds pages of docs/ that the navigation does not name."""
    named = set(_named(config["nav"]))
    left = [path.name for path in sorted(DOCS.glob("*.md")) if path.name not in named]
    if left:
        config["nav"].append({_MORE: left})
    return config


def _named(nav: object) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case dict():
            for value in nav.values():
                yield from _named(value)
        case list():
            for value in nav:
                yield from _named(value)
        case _:
            raise TypeError(f"no part of a navigation: {nav!r}")


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are made."""
    file: Any = import_module("mkdocs.structure.files").File
    for path, text in pages():
        files.append(file.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Pages of docs/ with the links of the site; those that were made have them."""
    return markdown if page.file.generated_by else linked(markdown, f"docs/{page.file.src_uri}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds the site; 0 when every link of it leads somewhere."""
    parser = argparse.ArgumentParser(prog="python -m oxidecopy._tools.site", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--into", metavar="FOLDER", type=Path, help="keep the site there; without it, it is built to be checked")
    options = parser.parse_args(arguments)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="oxidecopy-site-") as name:
        into = options.into.resolve() if options.into else Path(name)
        config = import_module("mkdocs.config").load_config(str(CONFIG), site_dir=str(into), strict=True)
        try:
            import_module("mkdocs.commands.build").build(config)
        except import_module("mkdocs.exceptions").Abort as problem:
            print(problem, file=sys.stderr)
            return 1
        print(f"{sum(1 for _ in into.rglob('*.html'))} pages")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
