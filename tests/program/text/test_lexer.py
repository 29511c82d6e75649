"""Names and call sites survive whatever they hold; everything else that starts with `#` is a comment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.errors import ProgramTextError, Site
from oxidecopy.program.text.cursor import Cursor
from oxidecopy.program.text.lexer import TokenKind, format_name, format_site, format_word, parse_site, take_mnemonic, tokenize

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


@pytest.mark.parametrize(
    ("site", "text"),
    [
        (Site("load.py", 12, "tma_load"), "# load.py:12 tma_load"),
        (Site("load.py", 12), "# load.py:12"),
        (Site("C:\\k\\x.py", 1, "<module>"), "# C:\\k\\x.py:1 <module>"),
        (Site("my file.py", 1, "f"), '# "my file.py":1 f'),
        (Site('a"b.py', 1, "f.<locals>.g"), '# a"b.py:1 f.<locals>.g'),
        (Site('"', 1, "f g"), '# "\\"":1 "f g"'),
        (Site("", 0), '# "":0'),
    ],
)
def test_sites(site: Site, text: str) -> None:
    assert format_site(site) == text
    assert parse_site(text) == site


@given(st.builds(Site, anything, st.integers(-(10**9), 10**9), anything))
def test_sites_come_back(site: Site) -> None:
    _, found = tokenize(f"bar.sync {format_site(site)}".replace("bar.sync", ""), PLACE)
    assert found == site


@pytest.mark.parametrize("comment", ["# see load.py:12", "# note", "#", "# a.py:x", '# "bad \\q":1', "# a.py:1 f g", "#a.py:1"])
def test_other_comments_are_no_sites(comment: str) -> None:
    assert parse_site(comment) is None


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
    assert take_mnemonic(line) == (mnemonic, rest)
