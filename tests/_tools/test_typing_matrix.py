"""The generated user code covers every pair, and marks what the tables of `isa` do not allow."""

from __future__ import annotations

import ast
from collections import Counter

from oxidecopy._tools.checker_table import marks
from oxidecopy._tools.typing_matrix import matrix
from oxidecopy.isa.dtypes import DTYPES

TYPES = len(DTYPES)


def test_it_is_python() -> None:
    functions = [node.name for node in ast.parse(matrix()).body if isinstance(node, ast.FunctionDef)]
    kinds = Counter(name.partition("__")[0] for name in functions)
    assert kinds == {"reductions": TYPES, "element_types": TYPES, "scalars": TYPES, "coordinates": 5, "boxes": 5, "alignments": 4}


def test_marks_are_the_pairs_that_are_wrong() -> None:
    counts = Counter(mark.kind for mark in marks({"matrix": matrix()}))
    assert counts == {
        "reductions": TYPES * 8 - sum(len(info.reduce) for info in DTYPES.values()),
        "element_types": TYPES * (TYPES - 1),
        "scalars": TYPES * (TYPES - 1),
        "coordinates": 5 * 5 * 4,
        "boxes": 5 * 4 * 2,
        "alignments": 4 * (1 + 2 + 3 + 4),  # of five alignments, those too weak for each swizzle, in four copies
    }
