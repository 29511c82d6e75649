"""The matrix of parameter sets: how many, which kinds, and that all of them can be passed to the driver."""

from __future__ import annotations

from collections import Counter

from oxidecopy.conformance.descriptor_cases import RANDOM, cases
from oxidecopy.engines.cuda.encode_call import _refuse_crash
from oxidecopy.maps.parameters import KINDS
from oxidecopy.maps.validate import RULES
from tests.helpers.descriptor_matrix import matrix, verdicts

# What no call can carry (arrays shorter than its rank), what only newer devices get as far as, and what a matrix for 9.0 has no device for.
NOT_ALONE = {"OX2012", "OX2017", "OX2025", "OX2044", "OX2036", "OX2038", "OX2039", "OX2040", "OX2051"}


def test_there_are_thousands_of_each_kind_and_each_is_there_once() -> None:
    assert len(matrix()) >= 5000
    assert len({case.parameters for case in matrix()}) == len(matrix())
    kinds = Counter(case.parameters.kind for case in matrix())
    assert all(kinds[kind] >= 1000 for kind in KINDS)
    groups = Counter(case.group.partition(", ")[2] for case in matrix())
    assert groups["random"] > RANDOM * 0.7
    assert groups["single faults"] > 2000


def test_the_seed_decides() -> None:
    other = cases(7)
    assert cases(7) == other != list(matrix())
    assert [c for c in other if "random" not in c.group] == [c for c in matrix() if "random" not in c.group]


def test_each_can_be_passed() -> None:
    """No null pointer, no array that is too short, no number beyond its C type."""
    unsigned = {"global_dim": 64, "global_strides": 64, "box_dim": 32, "element_strides": 32}
    for case in matrix():
        _refuse_crash(case.parameters)
        p = case.parameters
        for name, bits in unsigned.items():
            assert all(0 <= n < 1 << bits for n in getattr(p, name)), case
        assert all(-(1 << 31) <= n < 1 << 31 for n in (*(p.lower or ()), *(p.upper or ()))), case
        words = (p.dtype, p.interleave, p.swizzle, p.l2_promotion, p.oob_fill, p.channels, p.pixels, p.wide_mode)
        assert all(0 <= n < 1 << 32 for n in words), case
        assert 0 <= p.global_address < 1 << 64


def test_each_rule_is_broken_alone() -> None:
    """So that a rule that is too strict or too lax shows: the driver's answer hangs on it."""
    found: Counter[str] = Counter()
    encode = 0
    for verdict in verdicts():
        ids = {f.rule.id for f in verdict.findings if f.rule.gate == "encodes"}
        encode += not ids
        if len(ids) == 1:
            found.update(ids)
    assert {rule.id for rule in RULES if rule.gate == "encodes"} - set(found) <= NOT_ALONE
    assert len(matrix()) * 0.3 < encode < len(matrix()) * 0.7
