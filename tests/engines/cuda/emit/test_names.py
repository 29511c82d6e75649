"""Identifiers of C++ for any name of a user's."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.engines.cuda.emit.names import Names, comment


def test_names_stay_where_they_can() -> None:
    names = Names()
    assert [names.new(n) for n in ("src_tile", "src_tile", "int", "main", "smem", "2d", "größe", "")] == [
        "src_tile", "src_tile_2", "int_2", "main_2", "smem_2", "n2d", "gr_e", "it",
    ]  # fmt: skip


def test_a_kernel_is_no_function_of_the_compiler() -> None:
    assert [Names().kernel(n) for n in ("copy", "max", "expf", "fold", "main")] == ["copy", "max_kernel", "expf_kernel", "fold", "main_2"]


@given(st.lists(st.text(max_size=6), max_size=20))
def test_any_names_become_identifiers_each_its_own(wanted: list[str]) -> None:
    names = Names()
    made = [names.new(n) for n in wanted]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", n) for n in made)


@given(st.text())
def test_a_comment_stays_on_its_line(text: str) -> None:
    made = comment(text)
    assert made.isprintable()
    assert "\\" not in made
