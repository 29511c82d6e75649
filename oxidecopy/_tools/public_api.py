"""Writes `docs/public_api.txt`: every public name with its signature, as type checkers see it; `--check` only compares.

What is public is what `oxidecopy.__all__` names, and what can be reached from there by a name without a leading underscore. The file is
what a release promises (docs/releases.md): a line that goes or changes is a change of the API, and belongs into CHANGELOG.md. Sources are
parsed, never imported, so that the text is that of the annotations.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias, final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "public_api.txt"
COMMAND: Final = "python -m oxidecopy._tools.public_api"
HEAD: Final = f"# The public API of oxidecopy, made by `{COMMAND}`. A change of it is said in CHANGELOG.md.\n"

# Special methods that say nothing of how a value may be used.
_DULL: Final = {
    f"__{name}__" for name in ("repr", "str", "hash", "format", "slots", "init_subclass", "class_getitem", "del", "setattr", "reduce")
}
_INNER: Final = {"recorder", "trace", "_key"}  # parameters of constructors that only this package can call
_TOLD: Final = ("overload", "final", "staticmethod", "classmethod", "property", "deprecated")  # decorators that are part of a signature

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@final
@dataclass(frozen=True, slots=True)
class Module:
    """A parsed module: its statements as type checkers see them, by the names that they define, and what it imports by name."""

    name: str
    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


@cache
def parsed(name: str) -> ast.Module:
    """The source of one module of the package."""
    path = ROOT.joinpath(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def module(name: str) -> Module:
    """One module of the package."""
    made = Module(name)
    for node in seen(parsed(name).body):
        if isinstance(node, ast.ImportFrom):
            made.imported.update({alias.asname or alias.name: (str(node.module), alias.name) for alias in node.names})
        for defined in names_of(node):
            made.defined.setdefault(defined, []).append(node)
    return made


def seen(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that a type checker reads: those for it alone too, those that only run not."""
    for node in body:
        match node:
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                yield from seen(node.body)
            case ast.If(test=ast.UnaryOp(ast.Not(), ast.Name("TYPE_CHECKING"))):
                yield from seen(node.orelse)
            case _:
                yield node


def names_of(node: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(name)):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case _:
            return []


def found(home: str, name: str) -> tuple[Module, list[ast.stmt]]:
    """Where a name of a module is really defined, and how; nothing for names of other packages."""
    at = module(home)
    if name in at.defined:
        return at, at.defined[name]
    first, dot, rest = name.partition(".")
    source, original = at.imported.get(first, ("", ""))
    if not source.startswith("oxidecopy"):
        return at, []
    return found(f"{source}.{original}", rest) if dot else found(source, original)


# ---- what is said of one name
def described(shown: str, home: str, name: str) -> Iterator[str]:
    """The lines of a public name."""
    at, nodes = found(home, name)
    match nodes:
        case [ast.ClassDef() as cls]:
            bases = ", ".join([*map(ast.unparse, cls.bases), *(ast.unparse(keyword) for keyword in cls.keywords)])
            marks = "".join(f"@{mark} " for mark in decorators(cls))
            yield f"{marks}class {shown}({bases})" if bases else f"{marks}class {shown}"
            yield from (f"    {line}" for _, line in sorted(members(at, cls).items()) for line in line.split("\n"))
        case [ast.FunctionDef(), *_]:
            yield from signatures(shown, nodes)
        case _:
            yield from (assigned(shown, node) for node in nodes)


def decorators(node: ast.ClassDef | Function) -> list[str]:
    """Those that tell a caller something, as written without what they are given."""
    names = [ast.unparse(mark.func if isinstance(mark, ast.Call) else mark).rpartition(".")[2] for mark in node.decorator_list]
    return [name for name in names if name in _TOLD]


def signatures(shown: str, nodes: Sequence[ast.stmt]) -> list[str]:
    """A line for each overload, or one for a function that has none."""
    functions = [node for node in nodes if isinstance(node, Function)]
    overloads = [node for node in functions if "overload" in decorators(node)]
    return [signature(shown, node) for node in overloads or functions]


def signature(shown: str, node: Function) -> str:
    """One line."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    marks = decorators(node)
    if "property" in marks:
        return f"{shown}: property{returns}"
    kind = "".join(f"@{mark} " for mark in marks if mark not in ("overload", "final"))
    return f"{kind}def {shown}({ast.unparse(node.args)}){returns}"


def assigned(shown: str, node: ast.stmt) -> str:
    """A constant by its type where it has one, an alias by its value."""
    match node:
        case ast.AnnAssign(annotation=annotation, value=value):
            typed = ast.unparse(annotation)
            alias = typed in ("TypeAlias", "Final") and value is not None
            return f"{shown}: {typed} = {ast.unparse(value)}" if alias and value is not None else f"{shown}: {typed}"
        case ast.Assign(value=value):
            return f"{shown} = {ast.unparse(value)}"
        case _:
            raise TypeError(f"no definition: {ast.unparse(node)}")


# ---- classes
def members(at: Module, cls: ast.ClassDef) -> dict[str, str]:
    """What a class has, and what it has from bases that are not public themselves, by name; its own first."""
    lines = own(cls)
    for base in cls.bases:
        home, nodes = found(at.name, ast.unparse(base.value if isinstance(base, ast.Subscript) else base))
        for node in nodes:
            if isinstance(node, ast.ClassDef) and node.name not in named(home.name):
                lines = members(home, node) | lines
    return lines


def own(cls: ast.ClassDef) -> dict[str, str]:
    """What the body of a class says, and its constructor sets."""
    told: dict[str, list[ast.stmt]] = {}
    for node in seen(cls.body):
        for name in names_of(node):
            told.setdefault(name, []).append(node)
    lines: dict[str, str] = {}
    for constructor in told.get("__init__", []):
        if isinstance(constructor, Function):
            lines.update(attributes(constructor))
    for name, nodes in told.items():
        if public(name, nodes) and not isinstance(nodes[0], ast.ClassDef):
            lines[name] = "\n".join(signatures(name, nodes)) if isinstance(nodes[0], Function) else assigned(name, nodes[0])
    return lines


@cache
def named(home: str) -> frozenset[str]:
    """The public names of a module: a class that has one of them as a base need not repeat what that has."""
    if home == "oxidecopy.errors":
        return frozenset(module(home).defined)
    return frozenset(name for source, name in module("oxidecopy").imported.values() if source == home)


def public(name: str, nodes: Sequence[ast.stmt]) -> bool:
    """Users may name it, or use it by an operator or a statement."""
    if name == "__init__":
        return not any(argument.arg in _INNER for node in nodes if isinstance(node, Function) for argument in node.args.args)
    return (name.startswith("__") and name.endswith("__") and name not in _DULL) or not name.startswith("_")


def attributes(constructor: Function) -> Iterator[tuple[str, str]]:
    """The attributes that a constructor sets, with their types where these are written down."""
    given = {a.arg: ast.unparse(a.annotation) for a in (*constructor.args.args, *constructor.args.kwonlyargs) if a.annotation}
    for node in ast.walk(constructor):
        match node:
            case ast.AnnAssign(target=ast.Attribute(ast.Name("self"), name), annotation=annotation) if not name.startswith("_"):
                yield name, f"{name}: {ast.unparse(annotation)}"
            case ast.Assign(targets=[ast.Attribute(ast.Name("self"), name)], value=value) if not name.startswith("_"):
                typed = given.get(value.id) if isinstance(value, ast.Name) else None
                yield name, f"{name}: {typed}" if typed else name


# ---- the file
def names() -> list[tuple[str, str, str]]:
    """Every public name, the module that it is imported from, and what it is called there."""
    package = module("oxidecopy")
    (told,) = (node.value for node in package.defined["__all__"] if isinstance(node, ast.Assign))
    found = sorted(set(ast.literal_eval(told)) - {"__version__"}, key=lambda name: (name.casefold(), name))
    return [(name, *package.imported[name]) for name in found]


def text() -> str:
    """All of it."""
    lines: list[str] = []
    for name, home, original in names():
        if is_module(f"{home}.{original}"):
            lines += ["", f"module ox.{name}"]
            lines += [f"    {line}" for line in of_module(f"{home}.{original}", f"ox.{name}")]
        else:
            lines += ["", *described(f"ox.{name}", home, original)]
    return HEAD + "\n".join(lines) + "\n"


def is_module(name: str) -> bool:
    """A public name may be a module of the package."""
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def of_module(home: str, shown: str) -> Iterator[str]:
    """What a public module defines itself."""
    for name, nodes in sorted(module(home).defined.items()):
        if not name.startswith("_") and not any(is_type_variable(node) for node in nodes):
            yield from described(f"{shown}.{name}", home, name)


def is_type_variable(node: ast.stmt) -> bool:
    """They are part of the signatures that use them."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ("TypeVar", "ParamSpec")


# ---- with docstrings, for the site
def documented(shown: str, home: str, name: str) -> Iterator[str]:
    """Paragraphs of Markdown about a public name: its signature, what its docstring says, and the same for what a class has."""
    if is_module(f"{home}.{name}"):
        whole = f"{home}.{name}"
        yield f"## `{shown}`"
        yield prose(ast.get_docstring(parsed(whole)) or "")
        for member, nodes in sorted(module(whole).defined.items()):
            if not member.startswith("_") and not any(is_type_variable(node) for node in nodes):
                yield from (
                    part.replace("## ", "### ", 1) if part.startswith("## ") else part
                    for part in documented(f"{shown}.{member}", whole, member)
                )
        return
    at, nodes = found(home, name)
    yield f"## `{shown}`"
    first = list(described(shown, home, name))
    if isinstance(nodes[0], ast.ClassDef):
        yield code(first[:1])
        yield prose(ast.get_docstring(nodes[0]) or "")
        for member, (lines, words) in sorted(told(at, nodes[0]).items()):
            yield f"### `{shown.rpartition('.')[2]}.{member}`"
            yield code(lines)
            yield prose(words)
        return
    yield code(first)
    yield prose(next((words for node in nodes if isinstance(node, Function) for words in [ast.get_docstring(node)] if words), ""))


def told(at: Module, cls: ast.ClassDef) -> dict[str, tuple[list[str], str]]:
    """The methods and properties of a class that have something to say: their signatures and docstrings."""
    words = docstrings(at, cls)
    return {name: (lines.split("\n"), words[name]) for name, lines in members(at, cls).items() if words.get(name)}


def docstrings(at: Module, cls: ast.ClassDef) -> dict[str, str]:
    """Docstrings by name, those of bases that are not public too."""
    found_in: dict[str, str] = {}
    for base in cls.bases:
        home, nodes = found(at.name, ast.unparse(base.value if isinstance(base, ast.Subscript) else base))
        for node in nodes:
            if isinstance(node, ast.ClassDef) and node.name not in named(home.name):
                found_in |= docstrings(home, node)
    for node in seen(cls.body):
        if isinstance(node, Function) and (words := ast.get_docstring(node)):
            found_in[node.name] = words
    return found_in


def code(lines: Sequence[str]) -> str:
    """A block of signatures."""
    return "```python\n" + "\n".join(lines) + "\n```"


def prose(docstring: str) -> str:
    """A docstring as Markdown: its sections are lists, what is written as code stays code."""
    lines = []
    section = False
    for line in docstring.splitlines():
        if re.fullmatch(r"(Args|Raises|Returns|Attributes|Yields):", line):
            section = True
            lines += ["", f"**{line[:-1]}**", ""]
        elif section and re.match(r"    \S", line):
            name, colon, rest = line.strip().partition(":")
            lines.append(f"- `{name}`:{rest}" if colon else f"- {name}")
        else:
            lines.append(line.replace("``", "`") if not section else f"  {line.strip()}".rstrip())
    return "\n".join(lines)


def difference(old: str, new: str) -> str:
    """What changed, and what to do about it."""
    lines = [line for line in difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="") if line[:1] in "+-"][2:]
    gone = sum(line.startswith("-") for line in lines)
    kind = "lines went or changed, which breaks whoever relies on them" if gone else "lines came"
    return "\n".join(
        [
            f"the public API is not what {PAGE.name} says: {kind}",
            *(f"  {line}" for line in lines),
            "add it to CHANGELOG.md (Added; Changed or Removed where a line went), then:",
            f"  {COMMAND}",
        ]
    )


def main(arguments: Sequence[str] | None = None, path: Path = PAGE) -> int:
    """Writes the file, or with `--check` says how it differs: 1 when it does."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file is out of date")
    options = parser.parse_args(arguments)
    new = text()
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    if old == new:
        return 0
    if options.check:
        print(difference(old, new), file=sys.stderr)
        return 1
    path.write_text(new, encoding="utf-8")
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
