"""Tokens of one line of program text, and how names are written.

A name is written bare when it is a plain word, else as a JSON string, so that any name a program can hold survives. Lexing takes time
linear in the line, and no number or line can be long enough to hurt.
"""

from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass
from typing import Final, NoReturn, final

from typing_extensions import override

from oxidecopy.errors import Diagnostic, ProgramTextError, Site

DIGITS_MAX: Final = 20  # of an integer: enough for 64 bits
RESERVED: Final = frozenset({"true", "false", "nan", "inf"})  # words with a meaning of their own where a name could stand


class TokenKind(enum.Enum):
    STRING = "string"
    FLOAT = "float"
    INT = "int"
    WORD = "word"  # a bare name, or something like 128B
    MARK = "mark"
    END = "end of the line"


@final
@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    column: int

    def is_mark(self, text: str) -> bool:
        return self.kind is TokenKind.MARK and self.text == text

    @override
    def __str__(self) -> str:
        return repr(self.text) if self.text else self.kind.value


_TOKEN: Final = re.compile(
    r"""[ ]*(?:
    (?P<comment>\#.*)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<float>[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)(?!\w))
    | (?P<int>[0-9]+(?!\w))
    | (?P<word>\w+)
    | (?P<mark>->|\.\.|//|<=|==|!=|[-+*/%()\[\]{},:=<&|~?.@])
    )""",
    re.VERBOSE,
)
_BARE: Final = re.compile(r"[^\W\d]\w*")
_MNEMONIC: Final = re.compile(r"[^\W\d]\w*(?:(?:\.|::)\w+)*")


def refuse(place: Site, rule: str, what: str, *, got: str = "", required: str = "", fix: str = "") -> NoReturn:
    """Raises `ProgramTextError` for one place of the text."""
    raise ProgramTextError(Diagnostic(rule=rule, what=what, got=got, required=required, fix=fix, site=place))


def tokenize(line: str, place: Site, start: int = 0) -> tuple[tuple[Token, ...], str]:
    """The tokens of `line` from column `start` on, an END token last, and the comment after them."""
    tokens: list[Token] = []
    end = len(line.rstrip(" "))
    at, comment = start, ""
    while at < end:
        match = _TOKEN.match(line, at)
        if match is None or match.lastgroup is None:
            rest = line[at:].lstrip(" ")
            refuse(place, "OX1901", "a character that starts no word, number, string or mark", got=repr(rest[:20]))
        kind, text = match.lastgroup, match[match.lastgroup]
        if kind == "comment":
            comment = text
        elif kind == "int" and len(text) > DIGITS_MAX:
            refuse(place, "OX1910", "a number with too many digits", got=f"{len(text)} digits", required=f"at most {DIGITS_MAX}")
        else:
            tokens.append(Token(TokenKind(kind), text, match.start(kind)))
        at = match.end()
    tokens.append(Token(TokenKind.END, "", end))
    return tuple(tokens), comment


def take_mnemonic(line: str, start: int) -> tuple[str, int]:
    """The word at column `start`, dots and all, and where it ends; empty when there is none."""
    match = _MNEMONIC.match(line, start)
    return (match[0], match.end()) if match else ("", start)


# ---- names
def quote(text: str) -> str:
    return json.dumps(text)


def unquote(text: str) -> str:
    """The value of a string token. Raises ValueError for a bad escape."""
    value = json.loads(text)
    if not isinstance(value, str):
        raise ValueError("not a string")  # noqa: TRY004  # callers handle one error for all bad strings
    return value


def format_name(name: str) -> str:
    return name if _BARE.fullmatch(name) and name not in RESERVED else quote(name)


def format_word(word: str) -> str:
    """A word of a fixed vocabulary, such as `f32` or `128B`; only a program with a wrong one needs quotes."""
    match = _TOKEN.fullmatch(word)
    return word if match and match.lastgroup == "word" and not word.startswith(" ") else quote(word)
