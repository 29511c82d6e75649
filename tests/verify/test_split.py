"""Boxes of block indices: what differs from block to block is told apart, exactly and within the bound."""

from __future__ import annotations

from itertools import product

import pytest

from oxidecopy.isa import expr
from oxidecopy.isa.expr import Cmp, CmpOp, Const, Mod, Sym, SymKind
from oxidecopy.verify import verifier
from oxidecopy.verify.affine import Range, point
from oxidecopy.verify.split import split
from tests.helpers.programs import BX, BY, BZ, Builder, add, div, eq, lt, mod, mul
from tests.helpers.verdicts import accepted, refused


def members(box: tuple[Range, ...]) -> set[tuple[int, ...]]:
    return set(product(*(range(r.lo, r.hi + 1, r.step or 1) for r in box)))


@pytest.mark.parametrize("n", [2, 3, 7, 64, 100])
def test_parts_are_a_partition(n: int) -> None:
    box = (Range(0, n - 1, 1), Range(0, 9, 3), point(2))
    for what, mods in ((Cmp(CmpOp.LT, BX, Const(3)), ()), (Mod(BX, Const(4)), (4,)), (Mod(BY, Const(5)), (5,))):
        parts = split(box, what, mods)
        assert len(parts) > 1
        assert sum(len(members(p)) for p in parts) == len(members(box))
        assert set().union(*(members(p) for p in parts)) == members(box)


def test_an_undecided_expression_without_blocks_is_our_bug() -> None:
    with pytest.raises(RuntimeError):
        split((point(0), point(0), point(0)), Cmp(CmpOp.LT, BX, Const(3)), ())


@pytest.mark.parametrize("bad", [(0, 0, 0), (77, 0, 0), (99_999, 2, 1), (50_000, 1, 0)])
def test_one_bad_block_in_a_large_grid_is_found(bad: tuple[int, int, int]) -> None:
    for x in (bad[0], 200_000):
        b = Builder(grid=(100_000, 3, 2))
        b.bar()
        b.init()
        with b.elect():
            b.wait(b.arrive())
            where = expr.And(eq(BX, x), expr.And(eq(BY, bad[1]), eq(BZ, bad[2])))
            b.arrive()
            with b.when(where):
                b.arrive(tag="extra")
        if x == bad[0]:
            refused(b, "OX3011", "extra")
        else:
            accepted(b)


def test_parity_of_the_block_index_needs_two_pieces() -> None:
    b = Builder(grid=(1 << 20, 1, 1))
    b.bar()
    b.init()
    with b.elect(), b.when(eq(mod(BX, 2), 1)):
        b.arrive()
    accepted(b)


@pytest.mark.parametrize("m", [65, 132, 1000])
def test_a_remainder_by_a_large_number_is_cut_by_remainder(m: int) -> None:
    for extra in (0, 1):
        b = Builder(grid=(1 << 24, 1, 1))
        b.bar()
        b.init()
        with b.elect(), b.when(eq(mod(BX, m), m - 1)):
            b.wait(b.arrive())
            if extra:
                b.arrive()
                b.arrive(tag="extra")
        if extra:
            refused(b, "OX3011", "extra")
        else:
            accepted(b)


def test_trip_counts_by_block_are_all_checked() -> None:
    for extra in (0, 1):
        b = Builder(grid=(200, 1, 1))
        b.bar()
        b.init()
        with b.elect(), b.loop(BX) as i:
            token = b.arrive()
            b.wait(token)
            with b.when(lt(197, add(i, extra))):
                b.arrive()
                b.arrive(tag="extra")
        # Only block 199 reaches counter 198.
        refused(b, "OX3011", "extra")


def test_too_many_pieces_are_refused_with_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "PIECES_MAX", 50)
    for n in (100, 20):
        b = Builder(grid=(n, 1, 1))
        b.bar()
        b.init()
        with b.elect(), b.loop(BX):
            b.wait(b.arrive())
        if n == 100:
            found = refused(b, "OX3090")
            assert "50" in found.required
        else:
            accepted(b)


def test_clusters_see_their_own_block_indices() -> None:
    """Rank r of a (1, 1, 2) cluster has block_idx.z % 2 == r: that is decided without a cut."""
    b = Builder(cluster=(1, 1, 2), grid=(3, 2, 8))
    b.bar()
    b.init()
    with b.elect(), b.when(eq(mod(BZ, 2), 1)):
        b.arrive()
    b.cluster_sync()
    accepted(b)


def test_blocks_are_told_apart_by_what_hangs_on_them_alone() -> None:
    """Trip counts of a share: the 528 blocks have 63 or 64 iterations, whatever the iteration that is asked about."""
    trips = div(add(mul(BX, -1), 33295), 528)
    cond = Cmp(CmpOp.LT, Sym("i", SymKind.LOOP), trips)
    assert split((Range(0, 527, 1), point(0), point(0)), cond, ()) == [
        (Range(0, 31, 1), point(0), point(0)),
        (Range(32, 527, 1), point(0), point(0)),
    ]


def test_each_of_a_few_values_has_a_box_of_its_own() -> None:
    parts = split((Range(0, 31, 1), point(0), point(0)), Cmp(CmpOp.LE, Sym("i", SymKind.LOOP), mul(BX, 2)), ())
    assert [p[0] for p in parts] == [point(n) for n in range(32)]


def test_too_many_values_are_halved() -> None:
    parts = split((Range(0, 99, 1), point(0), point(0)), Cmp(CmpOp.LE, Sym("i", SymKind.LOOP), mul(BX, 2)), ())
    assert [p[0] for p in parts] == [Range(0, 49, 1), Range(50, 99, 1)]


def test_the_ctas_of_a_cluster_are_looked_at_each() -> None:
    """Clusters of two along x: block 3 is the second CTA of cluster 1."""
    parts = split((Range(0, 3, 1), point(0), point(0)), eq(BX, 3), (), (2, 1, 1))
    assert sorted(p[0] for p in parts) == [Range(0, 0, 0), point(1), Range(2, 3, 1)]
    assert split((Range(0, 3, 1), point(0), point(0)), eq(BX, 3), (), (1, 1, 1)) == [
        (Range(0, 2, 1), point(0), point(0)),
        (point(3), point(0), point(0)),
    ]


def test_a_part_that_cannot_be_evaluated_is_left_to_the_walk() -> None:
    cond = expr.And(lt(0, BX), Cmp(CmpOp.LT, Sym("i", SymKind.LOOP), expr.FloorDiv(Const(8), BX)))
    assert len(split((Range(0, 3, 1), point(0), point(0)), cond, ())) == 2
