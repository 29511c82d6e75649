"""Call sites survive whatever they hold; everything else that starts with `#` is a comment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.errors import Site
from oxidecopy.program.text.lexer import tokenize
from oxidecopy.program.text.sites import format_site, parse_site

PLACE = Site("a.txt", 3)
HOME = Site("load.py", 10, "tma_load")
anything = st.sampled_from(["load.py", "tma_load", ""]) | st.text(st.characters())  # lone surrogates too
sites = st.builds(Site, anything, st.integers(-(10**9), 10**9), anything)


@pytest.mark.parametrize(
    ("site", "text"),
    [
        (Site("b.py", 12, "tma_load"), "# b.py:12 tma_load"),
        (Site("b.py", 12), "# b.py:12"),
        (Site("load.py", 12, "tma_load"), "# :12"),
        (Site("load.py", 12, "helper"), "# :12 helper"),
        (Site("load.py", 12), '# :12 ""'),
        (Site("C:\\k\\x.py", 1, "<module>"), "# C:\\k\\x.py:1 <module>"),
        (Site("my file.py", 1, "f"), '# "my file.py":1 f'),
        (Site('a"b.py', 1, "f.<locals>.g"), '# a"b.py:1 f.<locals>.g'),
        (Site('"', 1, "f g"), '# "\\"":1 "f g"'),
        (Site("", 0), '# "":0'),
        (Site(":", 3), "# ::3"),
    ],
)
def test_sites(site: Site, text: str) -> None:
    assert format_site(site, HOME) == text
    assert parse_site(text, HOME) == site


@given(sites, st.none() | sites)
def test_sites_come_back(site: Site, home: Site | None) -> None:
    _, comment = tokenize(f"0  {format_site(site, home)}", PLACE)
    assert parse_site(comment, home) == site


@pytest.mark.parametrize(
    "comment", ["# see load.py:12", "# note", "#", "", "# a.py:x", '# "bad \\q":1', "# a.py:1 f g", "#a.py:1", "# :1 f g"]
)
def test_other_comments_are_no_sites(comment: str) -> None:
    assert parse_site(comment, HOME) is None


def test_nothing_is_relative_to_a_program_without_a_site() -> None:
    assert parse_site("# :12") is None
