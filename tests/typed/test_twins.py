"""What a type checker refuses is refused without one, too: by the matching error, with its rule and the user's line.

The tables go through the marked lines of the contract's files in order. A rule's page says its error class; an entry `(rule, line)` is of a
mistake that shows in the function called, and None of one that has no meaning at run time.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

import pytest

import oxidecopy as ox
from oxidecopy import errors
from oxidecopy.program.program import Launch
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.rules import all_rules
from oxidecopy.verify import verify
from tests.helpers.contract import Mark, marks, run, site_of

Expected = str | tuple[str, int] | None

TYPES_BAD: Final[dict[str, list[Expected]]] = {
    "before_init": ["OX1001"],
    "wait_before_init": ["OX1001"],
    "double_init": ["OX1054"],
    "after_inval": ["OX1002"],
    "inval_uninit": ["OX1001"],
    "other_kind": ["OX1005"],
    "other_brand": ["OX1005"],
    "bytes_on_plain": ["OX1008"],
    "alignment_16": ["OX1010"],
    "alignment_for_swizzle": ["OX1010"],
    "rank": ["OX1013"],
    "dtype": ["OX1011"],
    "box": ["OX1012"],
    "no_leader": ["OX1014"],
    "forged_leader": ["OX1015"],
    "unarmed": ["OX1006"],
    "barrier_instead_of_token": ["OX1006"],
    "min_of_f32": ["OX1016"],
    "or_of_f32": ["OX1016"],
    "multicast_without_cluster": ["OX1017"],
    "wrong_argument": ["OX1053"],
    "missing_argument": ["OX1032"],
}
HOST: Final[dict[str, list[Expected]]] = {
    "host_bad": [
        *("OX2012", "OX2012", "OX1047"),  # descriptors
        *("OX1053", "OX1053", "OX1053", "OX1034", "OX1034"),  # launches
        *("OX5002", "OX5008", "OX1033"),  # arrays, and a launch without a grid
    ],
    "any_copy": [None],  # a helper of the two below; its launch is one of "host_bad"'s mistakes
    "pipelines_passed_on": [None],
    "store_bad": ["OX1011", "OX1013", "OX1013", "OX1029"],
    "idx_bad": ["OX1023", "OX1021", "OX1021", "OX1021", "OX1027"],
    "wait_nothing": ["OX1009"],
}
# Where `level1.py` defines functions that are then declared as pipelines they cannot be.
_CLUSTER, _STRANGE = 86, 87
LEVEL1: Final[dict[str, list[Expected]]] = {
    "prefetch": ["OX1021"],
    "scalar_index": ["OX1024", "OX1024"],
    "call": ["OX1053", "OX1053", "OX1053", "OX1053", "OX1032", "OX1032", "OX1032", "OX1032", "OX1032", "OX1051", "OX1034"],
    "declarations": [("OX1017", _CLUSTER), ("OX1067", _STRANGE), "OX1031", "OX1031", "OX1031", "OX1065"],
    "hosts": [
        *("OX1046", "OX2012", "OX2012", "OX2011", "OX2011", "OX2012", "OX2017", "OX2023", "OX2020", "OX2011", "OX1045"),  # descriptors
        *("OX5009", "OX5012"),  # arrays and devices
    ],
    "states": [*["OX1001"] * 5, "OX1054", *["OX1002"] * 4],
    "arrays": ["OX1001", "OX1001", "OX1054", "OX1029", "OX1009", "OX1002"],
    "kinds": ["OX1008", "OX1008", "OX1008", "OX1047", "OX1047", "OX1047", "OX1048", "OX1044"],
    "tokens": [
        *("OX1005", "OX1005", "OX1005", "OX1005", "OX1055", "OX1055", "OX1009", "OX1009", "OX1009"),  # tokens
        *("OX1029", "OX1029", "OX1029", "OX1014", "OX1039", "OX1039"),  # other arguments
    ],
    "written": [None] * 8,  # annotations do nothing, and a barrier of the wrong kind is one that was given away
    "tiles": [
        *("OX1012", "OX1012", "OX1012", "OX1013", "OX1009", "OX1009"),  # copies
        *("OX1047", "OX1047", "OX1047", "OX1056", "OX1057", "OX1057", "OX1057"),  # tiles of an element type
        *("OX1009", "OX1048", "OX1056", "OX1009", "OX1009"),
    ],
    "plain_accesses": ["OX1011", "OX1066", "OX1009", "OX1061", "OX1009", "OX1009", "OX1013"],
    "scopes": [
        *("OX1064", "OX1064", "OX1009", "OX1009", "OX1043", "OX1043", "OX1009", "OX1015"),
        *("OX1009", "OX1009", "OX1017"),  # no cluster
    ],
    "multicast": ["OX1009", "OX1029", "OX1013"],
    "symbols": [
        *("OX1029", "OX1029", "OX1023", "OX1022", "OX1022", "OX1022", "OX1029", "OX1029"),  # arithmetic
        *("OX1021", "OX1021", "OX1021", "OX1029", "OX1029"),  # numbers of Python
        *("OX1027", "OX1027", "OX1029", "OX1063", "OX1029", "OX1027", "OX1009"),  # control flow
    ],
}
# Lines of `moves.py` whose mistake shows in the function that is called, or on the next line.
_BORROW, _TWO = 16, 19
MOVES: Final[dict[str, list[Expected]]] = {
    "f01": ["OX1003"],
    "f02": ["OX1003"],
    "f03": ["OX1004"],
    "f04": ["OX1003"],
    "f08": ["OX1003"],
    "f11": [None],  # the one iteration that moves is followed by none that uses it
    "Pipe.__init__": ["OX1003"],
    "Pipe.bad_close": [None],
    "Pipe.close": ["OX1003"],
    "Pipe.maybe_cycle": [None],
    "f12": [("OX1003", _BORROW)],
    "f13": ["OX1003"],
    "f15": ["OX1003"],
    "f18": ["OX1003"],
    "f20": ["OX1003", ("OX1003", 149)],
    "f21": [("OX1003", _BORROW)],
    "f22": [None],
    "f24": [("OX1003", _TWO)],
    "f27": ["OX1003"],
    "f30": ["OX1003"],
    "f31": [None],
    "f33": [None],
    "f35": ["OX1003"],
    "f40": ["OX1005"],
    "f41": [None, None],
    "f43": [None],
    "g03": ["OX1003"],
    "t01": [None],  # the verifier's, below
    "t04": [None],
    "t05": [None],  # the descriptor's, below
    "c01": ["OX1007"],
    "s01": ["OX1018"],
    "y01": ["OX1020", "OX1020", "OX1020"],
}
CUBINS: Final[dict[str, list[Expected]]] = {
    "own_kernels": [
        *("OX1053", "OX1053", "OX1053", "OX1053", "OX1053", "OX1035", "OX1053", "OX1032", "OX1032", "OX1032"),  # arguments
        *("OX1053", "OX1053", "OX1051", "OX1034", "OX1034", "OX1033", "OX1053"),  # prepared, on a stream, grids, a swizzle
    ],
    "own_declarations": [
        "OX5401",
        None,
        "OX5408",
        "OX5408",
        "OX5408",
        "OX5408",
        "OX5404",
        "OX5405",
    ],  # Python says that `threads` is missing
}
TABLES: Final[dict[str, list[Expected]]] = {
    "tables_bad": [
        *("OX2031", "OX2031", "OX2031", "OX2030", "OX2030", "OX2030"),  # entries
        *("OX1150", "OX1150", "OX2031", "OX2030", "OX1150"),  # indices and updates
        *("OX1053", "OX1053", "OX1053", "OX1053", "OX1053"),  # launches
    ],
    "table_copies": ["OX1056", "OX1009", "OX1013", "OX1011", "OX1012", "OX1023", "OX1029", "OX1029"],
}
INTEROP: Final[dict[str, list[Expected]]] = {
    "borrowed": [
        *("OX1053", "OX1053", "OX2012"),
        # Without a rank only checkers know too little; that `owner` is missing says Python.
        *(None, "OX5033", "OX5008", "OX5030", "OX1051", None, "OX5038", "OX5038"),
    ],
    "viewed": [*("OX1053",) * 5, *("OX5040",) * 5],
    "lent": ["OX5039"],
}
FILES: Final = {
    "types_bad": TYPES_BAD,
    "host": HOST,
    "level1": LEVEL1,
    "moves": MOVES,
    "cubins": CUBINS,
    "tables": TABLES,
    "interop": INTEROP,
}


def cases() -> list[tuple[Mark, str, int]]:
    found: list[tuple[Mark, str, int]] = []
    for file, table in FILES.items():
        expected = [entry for entries in table.values() for entry in entries]
        for mark, entry in zip(marks(file), expected, strict=True):
            if entry is not None:
                rule, line = entry if isinstance(entry, tuple) else (entry, mark.line)
                found.append((mark, rule, line))
    return found


@pytest.mark.parametrize("file", FILES)
def test_the_table_goes_through_all_marks(file: str) -> None:
    found = {name: len(list(group)) for name, group in groupby(marks(file), key=lambda mark: mark.function)}
    assert found == {name: len(entries) for name, entries in FILES[file].items()}


@pytest.mark.parametrize(("mark", "rule", "line"), cases(), ids=str)
def test_the_marked_line_raises(mark: Mark, rule: str, line: int) -> None:
    error = getattr(errors, all_rules()[rule].error)
    with pytest.raises(error) as caught:
        run(mark)
    assert type(caught.value) is error
    assert set(caught.value.rules) == {rule}
    assert site_of(caught.value) == (f"{mark.file}.py", line)
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.required or diagnostic.got
        assert diagnostic.fix
        assert len(str(diagnostic)) < 1200, "more than a screen"


# ---- mistakes of moves.py that later gates refuse
def _moves(function: str) -> Mark:
    return next(mark for mark in marks("moves") if mark.function == function)


def test_bytes_that_do_not_match() -> None:
    program = run(_moves("t01"))
    assert program is not None
    box = (64, 32)
    d = TensorMap(dtype="f32", swizzle="128B", global_dim=box, global_strides=(128,), box_dim=box, element_strides=(1, 1))
    with pytest.raises(errors.VerificationError) as caught:
        verify(program, Launch(grid=(1, 1, 1), maps=(("d", d),)))
    assert "OX3021" in caught.value.rules


def test_more_shared_memory_than_there_is() -> None:
    program = run(_moves("t04"))
    assert program is not None
    with pytest.raises(errors.VerificationError) as caught:
        verify(program, Launch(grid=(1, 1, 1)))
    assert caught.value.rules == ("OX3063",)


def test_a_box_wider_than_its_swizzle() -> None:
    a = ox.Device.open("sim").empty((64, 64), ox.f32)
    with pytest.raises(errors.DescriptorError) as caught:
        ox.TmaDescriptor.tiled(a, box=(64, 64), swizzle=ox.Swizzle128B)  # type: ignore[oxidecopy-box]  # the mistake
    assert caught.value.rules == ("OX2014",)
