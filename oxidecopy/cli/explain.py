"""`oxidecopy explain`: the page of a rule, made of the same data as its error and run by the tests."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from oxidecopy.cli.options import AsJson
from oxidecopy.cli.report import OK, guarded, out, print_json
from oxidecopy.errors import Diagnostic, UsageError
from oxidecopy.rules import all_rules
from oxidecopy.rules.rule import GATES, SHOWN

if TYPE_CHECKING:
    from rich.console import Console

    from oxidecopy.rules.rule import Rule

HELP: Final = """Say what a rule means: what it asks, why, where it comes from, and a wrong and a right example.

Without an ID, list all rules.
"""
EXAMPLES: Final = ("oxidecopy explain OX3001", "oxidecopy explain", "oxidecopy explain OX2007 --json")

_LIKE: Final = 0.8  # of `difflib`: one digit off, or two swapped


@guarded
def command(
    rule_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="A rule's id, as printed with every error.", show_default=False)
    ] = None,
    *,
    as_json: AsJson = False,
) -> int:
    """Prints one page, or the list."""
    if rule_id is None:
        _list(as_json=as_json)
        return OK
    rule = _find(rule_id)
    if as_json:
        print_json(_data(rule))
    else:
        _page(out(), rule)
    return OK


def _find(wanted: str) -> Rule:
    """The rule; `ox3001` and `3001` name it too."""
    table = all_rules()
    name = wanted.strip().upper()
    name = f"OX{name}" if name.isdigit() else name
    if name in table:
        return table[name]
    for rule in table.values():
        # A type checker's code, whole or without its beginning.
        if rule.title.startswith((f"{wanted.strip().lower()}: ", f"oxidecopy-{wanted.strip().lower()}: ")):
            return rule
    near = get_close_matches(name, table, 3, _LIKE)
    raise UsageError(
        Diagnostic(
            rule="OX6009",
            what="no rule has this id",
            got=wanted,
            required="OX and four digits, as in an error's brackets",
            fix=f"did you mean {', '.join(near)}?" if near else "`oxidecopy explain` lists all",
        )
    )


def _list(*, as_json: bool) -> None:
    rules = all_rules().values()
    if as_json:
        print_json([_data(rule) for rule in rules])
        return
    console = out()
    gate = ""
    for rule in rules:
        if rule.id[2] != gate:
            gate = rule.id[2]
            console.print(Text(GATES[gate], "bold"))
        console.print(Text(f"  {rule.id}  ", "cyan").append(rule.title, "default"))


def _page(console: Console, rule: Rule) -> None:
    console.print(Text(f"{rule.id}  ", "bold cyan").append(rule.title, "bold default"))
    console.print(Text(f"raised as oxidecopy.errors.{rule.error}", "dim"))
    for heading, words in (("Why", rule.why), ("Source", rule.source)):
        console.print(Text(f"\n{heading}", "bold"))
        console.print(Padding(Text(words), (0, 0, 0, 2)), soft_wrap=False)
    for heading, code in (("Wrong", rule.wrong), ("Right", rule.right)):
        if code:
            console.print(Text(f"\n{heading}", "bold red" if heading == "Wrong" else "bold green").append(SHOWN[rule.shown], "dim"))
            _code(console, code)


def _code(console: Console, code: str) -> None:
    text = code.strip("\n")
    if console.is_terminal:
        console.print(Padding(Syntax(text, "python", background_color="default"), (0, 0, 0, 2)))
        return
    for line in text.splitlines():
        console.print(Text(f"  {line}".rstrip()))


def _data(rule: Rule) -> dict[str, str]:
    return {
        "id": rule.id,
        "title": rule.title,
        "error": rule.error,
        "why": rule.why,
        "source": rule.source,
        "shown": rule.shown,
        "wrong": rule.wrong,
        "right": rule.right,
    }
