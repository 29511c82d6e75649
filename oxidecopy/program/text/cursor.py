"""A position in the tokens of one line, with the few reads that all parts of the parser share."""

from __future__ import annotations

from typing import NoReturn, final

from oxidecopy.errors import Site
from oxidecopy.program.text.lexer import Token, TokenKind, refuse, unquote


@final
class Cursor:
    """Reads forward through `tokens`, of which the last is END; `place` is the line, for errors."""

    __slots__ = ("_at", "_tokens", "place")

    def __init__(self, tokens: tuple[Token, ...], place: Site) -> None:
        self._tokens = tokens
        self._at = 0
        self.place = place

    @property
    def peek(self) -> Token:
        return self._tokens[self._at]

    @property
    def following(self) -> Token:
        """The token after the next one."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Takes the next token; END stays."""
        token = self.peek
        if token.kind is not TokenKind.END:
            self._at += 1
        return token

    def take(self, mark: str) -> bool:
        """Takes `mark` if it is next."""
        found = self.peek.is_mark(mark)
        if found:
            self._at += 1
        return found

    def expect(self, mark: str) -> None:
        if not self.take(mark):
            self.unexpected(f"`{mark}`")

    def end(self) -> None:
        if self.peek.kind is not TokenKind.END:
            self.unexpected("the end of the line")

    def unexpected(self, required: str) -> NoReturn:
        token = self.peek
        refuse(self.place, "OX1901", f"unexpected text in column {token.column + 1}", got=str(token), required=required)

    # ---- values
    def integer(self) -> int:
        """An integer with an optional sign."""
        negative = self.take("-")
        if self.peek.kind is not TokenKind.INT:
            self.unexpected("an integer")
        value = int(self.advance().text)
        return -value if negative else value

    def word(self, what: str = "a word") -> str:
        """A word or a string."""
        token = self.peek
        if token.kind is TokenKind.WORD:
            return self.advance().text
        if token.kind is TokenKind.STRING:
            return self._string()
        self.unexpected(what)

    def name(self, what: str = "a name") -> str:
        """A bare or quoted name."""
        if self.peek.kind is TokenKind.WORD and self.peek.text[0].isdecimal():
            self.unexpected(what)
        return self.word(what)

    def keyword(self, word: str) -> None:
        """`word` and an equals sign."""
        if self.peek.kind is not TokenKind.WORD or self.peek.text != word:
            self.unexpected(f"`{word}=`")
        self.advance()
        self.expect("=")

    def _string(self) -> str:
        try:
            value = unquote(self.peek.text)
        except ValueError:
            refuse(self.place, "OX1901", "a string with a bad escape", got=self.peek.text[:60], required="a JSON string")
        self.advance()
        return value
