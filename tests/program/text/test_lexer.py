"""Tokens of one line; names survive whatever they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.errors import ProgramTextError, Site
from oxidecopy.program.text.cursor import Cursor
from oxidecopy.program.text.lexer import TokenKind, format_name, format_word, take_mnemonic, tokenize

PLACE = Site("a.txt", 3)
anything = st.text(st.characters())  # lone surrogates too


def kinds(line: str) -> list[tuple[TokenKind, str]]:
    return [(t.kind, t.text) for t in tokenize(line, PLACE)[0]]


def test_tokens() -> None:
    assert kinds('a 128B 12 0..31 1.5 1e-05 "x # y" -> // <=') == [
        (TokenKind.WORD, "a"),
        (TokenKind.WORD, "128B"),
        (TokenKind.INT, "12"),
        (TokenKind.INT, "0"),
        (TokenKind.MARK, ".."),
        (TokenKind.INT, "31"),
        (TokenKind.FLOAT, "1.5"),
        (TokenKind.FLOAT, "1e-05"),
        (TokenKind.STRING, '"x # y"'),
        (TokenKind.MARK, "->"),
        (TokenKind.MARK, "//"),
        (TokenKind.MARK, "<="),
        (TokenKind.END, ""),
    ]


@pytest.mark.parametrize(("line", "rule"), [("a ; b", "OX1901"), ('"open', "OX1901"), ("\t", "OX1901"), ("9" * 21, "OX1910")])
def test_bad_tokens(line: str, rule: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        tokenize(line, PLACE)
    assert caught.value.rules == (rule,)


def test_a_number_of_twenty_digits_is_accepted() -> None:
    assert kinds("9" * 20)[0] == (TokenKind.INT, "9" * 20)


@given(anything.filter(bool))
def test_names_come_back(name: str) -> None:
    tokens, _ = tokenize(format_name(name), PLACE)
    assert Cursor(tokens, PLACE).name() == name


@given(anything)
def test_words_come_back(word: str) -> None:
    tokens, _ = tokenize(format_word(word), PLACE)
    assert Cursor(tokens, PLACE).word() == word


@pytest.mark.parametrize("name", ["true", "nan", "a b", "1a", "", "é\n"])
def test_names_that_need_quotes(name: str) -> None:
    assert format_name(name).startswith('"')


def test_plain_names_need_none() -> None:
    assert [format_name(n) for n in ("tile_2", "größe", "min")] == ["tile_2", "größe", "min"]


def test_columns_are_those_of_the_line() -> None:
    tokens, comment = tokenize("  when n < 1  # why", PLACE, 6)
    assert [t.column for t in tokens] == [7, 9, 11, 19]
    assert comment == "# why"


@pytest.mark.parametrize(
    ("line", "mnemonic", "rest"),
    [
        ("fence.proxy.async.shared::cta", "fence.proxy.async.shared::cta", ""),
        ("when: x", "when", ": x"),
        ("cp.async.bulk.tensor.g2s src, t", "cp.async.bulk.tensor.g2s", " src, t"),
        ("{", "", "{"),
        ("", "", ""),
    ],
)
def test_mnemonics(line: str, mnemonic: str, rest: str) -> None:
    word, end = take_mnemonic("  " + line, 2)
    assert (word, ("  " + line)[end:]) == (mnemonic, rest)
