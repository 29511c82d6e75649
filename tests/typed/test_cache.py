"""Cache policies: what each records, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.isa import ops
from oxidecopy.isa.ops import CacheHint
from oxidecopy.program.text import from_text, to_text
from tests.helpers.recordings import recorded, refused

PLAIN = ("evict_normal", "evict_first", "evict_last", "evict_unchanged")


def hints(policy: Any) -> set[CacheHint | None]:
    """Those of all copies through a descriptor, after a trip through the text form."""

    def pipe(cta: ox.ClusterCta, src: Any) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.prefetch(leader, (0, 0), cache_hint=policy)
            src.g2s(leader, tile, (0, 0), token, cache_hint=policy)
            src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=1, cache_hint=policy)
            src.s2g(leader, tile, (0, 0), cache_hint=policy)
            src.reduce(ox.reduce.add, leader, tile, (0, 0), cache_hint=policy)

    program = from_text(to_text(recorded(pipe, cluster=(2, 1, 1))))
    found = [s.op for s in program.walk() if isinstance(s.op, ops.TensorCopy | ops.TensorPrefetch)]
    assert len(found) == 5
    return {op.hint for op in found}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_policies(name: str) -> None:
    assert hints(getattr(ox.cache, name)) == {CacheHint(name)}
    assert repr(getattr(ox.cache, name)) == f"ox.cache.{name}"


def test_without_a_policy() -> None:
    assert hints(None) == {None}


@pytest.mark.parametrize("rest", ["evict_first", "evict_unchanged"])
@pytest.mark.parametrize("fraction", [1, 0.5, 1 / 3, 1e-9])
def test_fractions(fraction: float, rest: str) -> None:
    policy = ox.cache.fractional(ox.cache.evict_last, fraction, rest=getattr(ox.cache, rest))
    assert hints(policy) == {CacheHint("evict_last", fraction, rest)}


@pytest.mark.parametrize("fraction", [0, -0.5, 1.01, float("nan"), True, "half"])
def test_fractions_that_are_none(fraction: Any) -> None:
    with pytest.raises(ox.errors.RecordError) as caught:
        ox.cache.fractional(ox.cache.evict_last, fraction)
    assert caught.value.rule == "OX1161"


@pytest.mark.parametrize("policy", ["evict_first", 1, CacheHint("evict_first")])
def test_other_things_are_no_policy(policy: Any) -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        with cta.elect() as leader:
            src.prefetch(leader, (0, 0), cache_hint=policy)  # here

    refused(pipe, "OX1009")


def test_policies_are_not_constructed() -> None:
    with pytest.raises(ox.errors.DTypeError) as caught:
        ox.CachePolicy(0)  # type: ignore[arg-type]  # the mistake
    assert caught.value.rule == "OX1160"


def test_the_rest_is_one_of_two() -> None:
    with pytest.raises(ox.errors.RecordError) as caught:
        ox.cache.fractional(ox.cache.evict_last, 0.5, rest=ox.cache.evict_normal)  # type: ignore[arg-type]  # the mistake
    assert caught.value.rule == "OX1009"


def test_each_policy_is_a_word_of_its_own() -> None:
    words = {CacheHint(p, 0.5, s).word for p in ops.PRIMARY_POLICIES for s in ops.SECONDARY_POLICIES}
    assert words == set(range(8))
