"""The table of declarations has every field of every class, so that none is lost on the way through a text."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

from oxidecopy.isa import ops
from oxidecopy.program.program import Param
from oxidecopy.program.text.declarations import KEYWORDS, TABLE, Declared


def test_every_field_is_written() -> None:
    for declared, (_, settings) in TABLE.items():
        apart = {"name", "site"}  # the label and the comment
        assert [s.field for s in settings] == [f.name for f in fields(declared) if f.name not in apart]


def test_every_class_has_its_own_keyword() -> None:
    assert set(TABLE) == set(get_args(Declared)) >= set(get_args(Param))
    assert len(KEYWORDS) == len(TABLE)
    assert not KEYWORDS.keys() & ops.BY_MNEMONIC.keys()
