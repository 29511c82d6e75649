"""The front door: verdicts as types, speed, and no program that crashes it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from oxidecopy import errors
from oxidecopy.errors import VerificationError
from oxidecopy.isa import expr
from oxidecopy.isa.expr import Const
from oxidecopy.program.verified import VerifiedProgram
from oxidecopy.rules.verifier import RULES
from oxidecopy.verify import inspect, rule_ids, verify
from tests.helpers import violations
from tests.helpers.programs import BX, BY, RANK, Builder, add, eq, lt, mod, mul
from tests.verify.test_periods import prefetch, ring

BYTES = 64 * 64 * 4


def simple(b: Builder) -> Builder:
    b.map()
    b.array()
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(BYTES)
        b.g2s((mul(BY, 64), mul(BX, 64)))
    b.wait(token)
    b.store((mul(BY, 64), mul(BX, 64)))
    b.inval()
    return b


def test_a_proof_carries_its_assumptions() -> None:
    b = simple(Builder())
    verified = verify(b.program(), b.launch())
    assert isinstance(verified, VerifiedProgram)
    assert verified.assumptions.launch == b.launch()
    assert verified.assumptions.shared_bytes == b.end
    assert [w.rule for w in verified.warnings] == ["OX3106"]


def test_all_violations_come_at_once() -> None:
    b = simple(Builder())
    b.tile("other", offset=64)
    with b.elect():
        b.fill(1)
        b.s2g((0, 1), tile=1)
    with pytest.raises(VerificationError) as caught:
        verify(b.program(), b.launch())
    assert set(caught.value.rules) == {"OX3046", "OX3050", "OX3060", "OX3065", "OX3080"}
    assert "program refused: " in str(caught.value)
    assert all(d.site for d in caught.value.diagnostics)


def test_warnings_do_not_refuse() -> None:
    b = Builder()
    with b.elect():
        b.wait_read(0)
    assert [w.rule for w in verify(b.program(), b.launch()).warnings] == ["OX3104"]


def best_ms(b: Builder) -> float:
    program, launch = b.program(), b.launch()
    best = 1e9
    for _ in range(5):
        start = time.process_time()
        verify(program, launch)
        best = min(best, time.process_time() - start)
    return best * 1e3


@pytest.mark.unmeasured  # a bound of time
def test_speed() -> None:
    """The aim is 10 ms for the prefetch pipeline and 20 ms for a clustered ring; the bounds leave room for a busy machine."""
    b = Builder()
    prefetch(b, b.index("n", 64))
    assert best_ms(b) < 100
    cluster = Builder(cluster=(2, 1, 1))
    ring(cluster, cluster.index("n", 64))
    assert best_ms(cluster) < 200


def test_ids_are_unique_and_have_their_error() -> None:
    names = [v for k, v in vars(rule_ids).items() if k.isupper() and len(v) == 6]
    assert len(set(names)) == len(names)
    assert all(v.startswith("OX3") for v in names)
    assert issubclass(errors.VerificationError, errors.OxidecopyError)


# ---- multicast
def slices(b: Builder, n: int, *, empty_counts_all: bool = True) -> None:
    """Each CTA loads one slice of a tile for all, stage after stage; peers may refill only what every CTA has read."""
    b.cluster, b.grid = (n, 1, 1), (n, 1, 1)
    b.map(box=(64 // n, 64))
    b.array()
    b.tile(stages=2)
    b.bar("full", 2)
    b.bar("empty", 2)
    b.init(0)
    b.init(1, count=32 * n if empty_counts_all else 32)
    b.cluster_sync()
    with b.elect(0), b.loop(10) as i:
        s = mod(i, 2)
        b.wait_phase(add(expr.floordiv(i, Const(2)), -1), bar=1, i=s)
        b.arm(BYTES, i=s)
        b.multicast((1 << n) - 1, (mul(RANK, 64 // n), 0), stage=s, i=s, part=RANK, of=n, tag="load")
    with b.scope((32, 64)), b.loop(10) as i:
        s = mod(i, 2)
        b.wait_phase(expr.floordiv(i, Const(2)), i=s)
        b.store(stage=s)
        if empty_counts_all:
            with b.loop(n) as peer:
                b.arrive_remote(peer, bar=1, i=s)
        else:
            b.arrive(1, s)
    b.cluster_sync()


@pytest.mark.parametrize("n", [1, 2, 4])
def test_slices_for_a_cluster(n: int) -> None:
    b = Builder()
    slices(b, n)
    assert inspect(b.program(), b.launch()).violations == ()


def test_peers_bytes_in_the_phase_before() -> None:
    """An empty barrier that counts only its own consumers lets a peer's bytes land in the receiver's previous phase."""
    b = Builder()
    slices(b, 2, empty_counts_all=False)
    found = {d.rule: d for d in inspect(b.program(), b.launch()).violations}
    assert found.keys() & {"OX3011", "OX3021"}
    assert found.keys() & {"OX3042", "OX3044"}


# ---- anything at all
def random_block(rng: random.Random, b: Builder, depth: int) -> None:  # noqa: C901, PLR0915  one case per op
    """Ops in any order, in and out of their place."""
    for _ in range(rng.randint(1, 5)):
        i, bar = rng.choice([0, 1, mod(BX, 2)]), rng.randint(0, 1)
        choice = rng.randint(0, 24)
        match choice:
            case 0:
                b.arrive(bar, i)
            case 1:
                b.arm(rng.choice([0, 64, BYTES]), bar, i)
            case 2:
                b.expect(64, bar, i)
            case 3:
                b.complete(64, bar, i)
            case 4:
                b.arrive_drop(bar, i)
            case 5:
                ranks: list[expr.Expr] = [Const(0), RANK, Const(5)]
                b.arrive_remote(rng.choice(ranks), bar, i)
            case 6:
                b.arm_remote(0, 64, bar, i)
            case 7 if b.tokens:
                b.wait(b.tokens, bar=bar, i=i)
            case 8:
                b.wait_phase(rng.randint(-1, 2), bar, i)
            case 9:
                b.wait_parity(rng.randint(0, 1), bar, i)
            case 10:
                with b.when(b.test_parity(0, 3, bar, i)):
                    random_block(rng, b, 0)
            case 11 | 12:
                b.g2s((mul(BY, 64), 0), stage=i, bar=bar, i=i)
            case 13:
                b.multicast(rng.randint(0, 9), stage=i, bar=bar, i=i)
            case 14:
                b.s2g((0, 0), stage=i)
            case 15:
                b.commit()
            case 16:
                b.wait_read(rng.randint(0, 2))
            case 17:
                b.fence()
            case 18:
                b.sync()
            case 19:
                b.store(stage=i)
            case 20:
                b.fill(stage=i)
            case 21 if depth:
                with b.elect(rng.randint(0, 2)):
                    random_block(rng, b, depth - 1)
            case 22 if depth:
                with b.when(rng.choice([lt(BX, 2), eq(RANK, 0)])):
                    random_block(rng, b, depth - 1)
            case 23 if depth:
                with b.loop(rng.choice([1, 3, 40])):
                    random_block(rng, b, depth - 1)
            case _:
                b.inval(rng.randint(0, 1), sync=rng.random() < 0.5)


@pytest.mark.parametrize("seed", range(150))
def test_no_program_crashes_it(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        b = Builder(cluster=rng.choice([(1, 1, 1), (2, 1, 1)]), threads=rng.choice([1, 32, 96]))
        b.map()
        b.array()
        b.tile(stages=2)
        b.bar("a", 2)
        b.bar("b", 2)
        if rng.random() < 0.8:
            b.init(0, count=rng.choice([1, 2, 32]))
            b.init(1)
        random_block(rng, b, 2)
        first = inspect(b.program(), b.launch())
        assert first == inspect(b.program(), b.launch())
        for d in first.violations:
            assert all((d.rule, d.what, d.fix))


def test_every_id_has_a_page_and_a_test() -> None:
    ids = {v for k, v in vars(rule_ids).items() if k.isupper() and v.startswith("OX3") and len(v) == 6}
    assert ids == {r.id for r in RULES}
    stored = Path(__file__).parents[1] / "cases" / "verifier_rules.json"  # what test_every_rule.py holds each rule against
    text = "".join(p.read_text() for p in (*Path(__file__).parent.rglob("test_*.py"), stored))
    assert {i for i in ids if f'"{i}"' not in text} == set()


# ---- the order of a report
def test_what_is_wrong_with_tiles_comes_behind_what_it_follows_from() -> None:
    """The tile is read before anything else is found, but the bytes are why."""
    c = violations.case("expected_on_another_cta").broken()
    rules = [d.rule for d in inspect(c.program, c.launch).violations]
    assert rules == ["OX3021", "OX3040"]


def test_a_peers_copy_may_also_come_early_which_the_fix_says() -> None:
    for name, said in (("multicast_into_the_phase_before", True), ("bytes_under_expected", False)):
        c = violations.case(name).broken()
        (found,) = [d for d in inspect(c.program, c.launch).violations if d.rule == "OX3021"]
        assert ("arrive_remote(rank)" in found.fix) == said
